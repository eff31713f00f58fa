/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/cascade/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/text.h"

static void place_release(struct cascade_place *place)
{
    free(place->function);
    free(place->file);
    free(place->thread);
    free(place->program);
}

void cascade_report_release(struct cascade_report *report)
{
    place_release(&report->source);
    place_release(&report->sink);
    for (size_t i = 0; i < report->count; i++) {
        place_release(&report->links[i].waits);
        place_release(&report->links[i].delays);
    }
    free(report->key);
    free(report->step);
    free(report->source_job);
    free(report->sink_job);
    *report = (struct cascade_report){0};
}

/* ------------------------------------------------------------------------------------------ making */

/* A place in a function other than the one that the event tells, if `function` is not NULL. */
static int make_place(struct cascade_place *place, const struct recorded_run *run, uint32_t event,
                      const char *function)
{
    const struct process_event *of = &run->trace.events[event];
    const struct trace_process *process = &run->trace.processes[run->trace.threads[of->thread].process];
    struct event_place known = recorded_run_place(run, event);
    bool other = function && strcmp(function, known.function) != 0;
    char label[64];

    cascade_trace_label(&run->trace, of->thread, label, sizeof(label));
    place->function = strdup(other ? function : known.function);
    place->file = strdup(other ? "" : known.file);
    place->line = other ? 0 : known.line;
    place->thread = strdup(label);
    place->program = strdup(path_file_name(process->exe));
    return place->function && place->file && place->thread && place->program ? 0 : -ENOMEM;
}

/* Where the function is, when its events do not tell. */
static int place_function(struct cascade_place *place, const struct recorded_run *run, uint32_t function)
{
    const struct tracestore_function *known = recorded_run_find(run, function);
    char *file;

    if (*place->file || !known || !*known->file)
        return 0;
    file = strdup(known->file);
    if (!file)
        return -ENOMEM;
    free(place->file);
    place->file = file;
    place->line = known->line;
    return 0;
}

static char *job_words(const struct recorded_run *run, uint32_t event)
{
    struct job job = origin_of(&run->origins, event);
    char label[64], *words = NULL;
    int r;

    if (job.kind == JOB_THREAD) {
        cascade_trace_label(&run->trace, (uint32_t)job.id, label, sizeof(label));
        r = asprintf(&words, "thread %s itself", label);
    } else if (job.kind == JOB_REQUEST) {
        r = asprintf(&words, "a client's request on connection %" PRIu64, job.id);
    } else {
        r = asprintf(&words, "an event with an unknown sender");
    }
    return r < 0 ? NULL : words;
}

static int make_link(struct cascade_report_link *link, const struct recorded_run *run,
                     const struct cascade_link *from)
{
    int r;

    *link = (struct cascade_report_link){.kind = CASCADE_CAUSE, .edge = from->edge};
    if (from->contention) {
        const struct resource *resource = &run->contention.resources[from->resource];

        link->kind = resource->pool ? CASCADE_POOL : CASCADE_LOCK;
        link->lock = resource->address;
    }
    r = make_place(&link->waits, run, from->waits, NULL);
    return r < 0 ? r : make_place(&link->delays, run, from->delays, NULL);
}

/* The same places, the same triplet. */
static char *make_key(const struct cascade_report *report)
{
    char *key = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&key, &size);

    if (!out)
        return NULL;
    fprintf(out, "%s>%s", report->source.function, report->step);
    for (size_t i = 0; i < report->count; i++)
        fprintf(out, "|%d%d %s:%d %s:%d", (int)report->links[i].kind, (int)report->links[i].edge,
                report->links[i].delays.function, report->links[i].delays.line,
                report->links[i].waits.function, report->links[i].waits.line);
    fprintf(out, "|%s", report->sink.function);
    if (fclose(out) != 0) {
        free(key);
        return NULL;
    }
    return key;
}

/* Certain and near is worse than certain and far, and that is worse than possible. */
static enum cascade_severity severity_of(const struct cascade_report *report)
{
    const struct loop_growth *growth = report->growth;

    if (growth->kind == LOOP_BOUNDED || growth->possible || growth->fit == FIT_LOGARITHMIC)
        return CASCADE_LOW;
    return report->count <= 2 ? CASCADE_HIGH : CASCADE_MEDIUM;
}

/* The function that is the sink, of a call of it. */
static const char *sink_name(const struct recorded_run *run, char *text, size_t size)
{
    for (uint32_t i = 0; i < run->kind_count; i++)
        if (run->kinds[i].sink)
            return recorded_run_function(run, i, text, size);
    return "?";
}

int cascade_report_make(struct cascade_report *report, const struct recorded_run *run,
                        const struct found_cascade *found)
{
    const struct timed_loop *loop = &run->frames.loops[found->loop];
    const struct sink_call *sink = &run->frames.sinks[found->sink];
    char function[512], step[512];
    int r = make_place(&report->source, run, loop->first,
                       recorded_run_function(run, loop->function, function, sizeof(function)));

    if (r == 0)
        r = place_function(&report->source, run, loop->function);
    if (r == 0)
        r = make_place(&report->sink, run, sink->first, sink_name(run, function, sizeof(function)));
    for (size_t i = 0; i < found->count && r == 0; i++) {
        report->count = i + 1;
        r = make_link(&report->links[i], run, &found->links[found->count - 1 - i]);
    }
    if (r < 0)
        return r;
    report->step = strdup(recorded_run_function(run, loop->step, step, sizeof(step)));
    report->source_job = job_words(run, loop->first);
    report->sink_job = job_words(run, sink->first);
    if (!report->step || !report->source_job || !report->sink_job)
        return -ENOMEM;
    report->key = make_key(report);
    report->severity = severity_of(report);
    return report->key ? 0 : -ENOMEM;
}

/* ------------------------------------------------------------------------------------------ words */

void cascade_place_print(FILE *out, const struct cascade_place *place)
{
    text_show(out, *place->function ? place->function : "an unknown function");
    if (*place->file && place->line)
        text_print(out, " (%s:%d)", path_file_name(place->file), place->line);
}

void cascade_link_sentence(FILE *out, const struct cascade_report_link *link)
{
    cascade_place_print(out, &link->waits);
    if (link->kind == CASCADE_LOCK)
        fputs(" waits for the lock that ", out);
    else if (link->kind == CASCADE_POOL)
        fputs(" waits for the thread that runs ", out);
    else
        text_print(out, " waits for %s of ", hb_edge_words(link->edge));
    cascade_place_print(out, &link->delays);
    if (link->kind == CASCADE_LOCK)
        fputs(" holds", out);
}

static void print_steps(FILE *out, const struct cascade_report *report)
{
    static const char *const names[][2] = {
        {"lock", "locks"}, {"pool of threads", "pools of threads"}, {"cause", "causes"}};
    unsigned counts[3] = {0};
    const char *before = "over ";

    for (size_t i = 0; i < report->count; i++)
        counts[report->links[i].kind]++;
    for (size_t i = 0; i < 3; i++) {
        if (!counts[i])
            continue;
        text_print(out, "%s%u %s", before, counts[i], names[i][counts[i] != 1]);
        before = " and ";
    }
}

void cascade_report_sentence(FILE *out, const struct cascade_report *report)
{
    fputs("the loop over ", out);
    text_print(out, "%s in ", report->step);
    cascade_place_print(out, &report->source);
    text_print(out, " can delay %s, ", report->sink.function);
    print_steps(out, report);
}

void cascade_growth_sentence(FILE *out, const struct loop_growth *growth, const uint64_t *sizes, size_t runs)
{
    static const char *const kinds[] = {"appears bounded", "waits until another thread acts",
                                        "runs until its input ends it", "grows with the workload"};

    text_print(out, "%s%s; ", growth->possible && growth->kind == LOOP_FOLLOWS ? "possibly " : "",
               kinds[growth->kind]);
    for (size_t i = 0; i < runs; i++)
        text_print(out, "%s%" PRIu64, i ? ", " : "", growth->counts[i]);
    fputs(runs == 1 && growth->counts[0] == 1 ? " iteration" : " iterations", out);
    if (runs > 1 && growth->fit != FIT_UNKNOWN) {
        fputs(" at sizes ", out);
        for (size_t i = 0; i < runs; i++)
            text_print(out, "%s%" PRIu64, i ? ", " : "", sizes[i]);
        text_print(out, ": nearest to %s", loop_fit_name(growth->fit));
    } else if (runs > 1) {
        fputs(", one run each", out);
    }
}

void cascade_advice(FILE *out, const struct cascade_report *report)
{
    if (report->growth->kind == LOOP_WAITS)
        text_print(out, "delay the event that ends the wait in %s", report->source.function);
    else if (report->growth->kind == LOOP_READS)
        text_print(out, "give %s more input", report->source.function);
    else
        text_print(out, "increase the work of %s", report->source.function);
    text_print(out, ", and call %s at the same time", report->sink.function);
}
