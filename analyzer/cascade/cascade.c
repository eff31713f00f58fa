/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/cascade/cascade.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/cascade/recorded_run.h"
#include "analyzer/cascade/report.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"

enum { MOST_RECOGNISED = 16 /* handlers, that are named */ };

/* The runs while they are looked at. */
struct runs {
    struct recorded_run runs[GROWTH_MOST_RUNS];
    size_t count;
};

static void free_runs(struct runs **runs)
{
    for (size_t i = 0; *runs && i < (*runs)->count; i++)
        recorded_run_release(&(*runs)->runs[i]);
    free(*runs);
}

void cascade_result_release(struct cascade_result *result)
{
    for (size_t i = 0; i < result->count; i++)
        cascade_report_release(&result->reports[i]);
    free(result->reports);
    growth_table_free(result->growth);
    for (size_t i = 0; i < result->runs; i++)
        free(result->facts[i].recognised);
    *result = (struct cascade_result){0};
}

const char *cascade_severity_name(enum cascade_severity severity)
{
    static const char *const names[] = {"low", "medium", "high"};

    return severity < ARRAY_SIZE(names) ? names[severity] : "?";
}

/* ------------------------------------------------------------------------------------------ loops */

static const struct loop_growth *growth_of(const struct growth_table *table, const struct recorded_run *run,
                                           const struct timed_loop *loop)
{
    char function[512], step[512];

    return growth_table_find(table, recorded_run_function(run, loop->function, function, sizeof(function)),
                             recorded_run_function(run, loop->step, step, sizeof(step)));
}

/* The iterations of all loops of one call of a function with one step are counted together. */
static int add_growth(struct growth_table *table, size_t number, const struct recorded_run *run)
{
    const struct frames *frames = &run->frames;
    int r = 0;

    for (size_t i = 0, end; i < frames->loop_count && r == 0; i = end) {
        for (end = i; end < frames->loop_count && frames->loops[end].frame == frames->loops[i].frame;)
            end++;
        for (size_t j = i; j < end && r == 0; j++) {
            const struct timed_loop *loop = &frames->loops[j];
            char function[512], step[512];
            uint64_t iterations = 0;

            for (size_t k = i; k < end; k++)
                iterations += frames->loops[k].step == loop->step ? frames->loops[k].iterations : 0;
            r = growth_table_add(table, number,
                                 recorded_run_function(run, loop->function, function, sizeof(function)),
                                 recorded_run_function(run, loop->step, step, sizeof(step)), iterations,
                                 loop->only_waits, loop->ends_on_read);
        }
    }
    return r;
}

struct source_context {
    const struct recorded_run *run;
    const struct growth_table *table;
    const struct cascade_options *options;
};

/* Mere waiting holds nobody up unless something is held meanwhile. */
static bool is_source(const void *pointer, const struct timed_loop *loop, bool section)
{
    const struct source_context *context = pointer;
    const struct loop_growth *growth;

    if (!context->options->loops)
        return true;
    growth = growth_of(context->table, context->run, loop);
    return growth && growth->kind != LOOP_BOUNDED && (growth->kind != LOOP_WAITS || section);
}

/* ------------------------------------------------------------------------------------------ one run */

static int add_found(struct cascade_result *result, size_t number, const struct recorded_run *run,
                     const struct found_cascade *found, const struct cascade_options *options)
{
    const struct timed_loop *loop = &run->frames.loops[found->loop];
    const struct sink_call *sink = &run->frames.sinks[found->sink];
    struct cascade_report report = {.growth = growth_of(result->growth, run, loop), .runs = 1u << number};
    struct job source_job = origin_of(&run->origins, loop->first),
               sink_job = origin_of(&run->origins, sink->first);

    if (options->origins && same_job(source_job, sink_job))
        return 0;
    if (cascade_report_make(&report, run, found) < 0) {
        cascade_report_release(&report);
        return -ENOMEM;
    }
    for (size_t i = 0; i < result->count; i++)
        if (!strcmp(result->reports[i].key, report.key)) {
            result->reports[i].runs |= report.runs;
            result->reports[i].times++;
            cascade_report_release(&report);
            return 0;
        }
    report.times = 1;
    if (array_reserve(&result->reports, &result->capacity, result->count + 1) < 0) {
        cascade_report_release(&report);
        return -ENOMEM;
    }
    result->reports[result->count++] = report;
    return 0;
}

/* The names of the handlers that were recognised, with commas between them; NULL: none, or no memory. */
static char *recognised_names(const struct recorded_run *run)
{
    uint64_t reported[MOST_RECOGNISED];
    size_t count = 0, size = 0;
    char *names = NULL;
    FILE *out = NULL;

    for (size_t i = 0; i < run->handlers.count && count < MOST_RECOGNISED; i++) {
        uint64_t function = run->handlers.handlers[i].function;
        char text[512];
        size_t j = 0;

        while (j < count && reported[j] != function)
            j++;
        if (function < TRACE_RECOGNISED || j < count)
            continue;
        if (!out)
            out = open_memstream(&names, &size);
        if (!out)
            return NULL;
        fprintf(out, "%s%s", count ? ", " : "",
                recorded_run_function(run, (uint32_t)(function - TRACE_RECOGNISED), text, sizeof(text)));
        reported[count++] = function;
    }
    if (out && fclose(out) != 0)
        free(take_pointer(names));
    return names;
}

static void note_facts(struct cascade_run_facts *facts, const struct recorded_run *run)
{
    size_t edges;

    hb_edges(run->causality.graph, &edges);
    *facts = (struct cascade_run_facts){
        .parts = run->parts,
        .events = run->trace.count,
        .nodes = hb_node_count(run->causality.graph),
        .edges = edges,
        .sections = run->contention.count,
        .chains = hb_chain_count(run->causality.graph),
        .sink_calls = run->frames.sink_calls,
        .sink_regions = run->frames.sink_count,
        .lost = run->trace.lost,
        .unmatched = run->causality.unmatched,
        .calls_incomplete = run->frames.incomplete,
        .recognised = recognised_names(run),
    };
    for (size_t i = 0; i < run->trace.process_count; i++)
        facts->processes_without_locks += !run->trace.processes[i].locks;
}

static int look_at(struct cascade_result *result, size_t number, const struct recorded_run *run,
                   const struct cascade_options *options)
{
    const struct search_input input = {&run->trace, &run->causality, &run->contention, &run->frames};
    const struct source_context context = {run, result->growth, options};
    struct found_cascades found;
    int r = search_cascades(&input, &options->search, is_source, &context, &found);

    for (size_t i = 0; i < found.count && r == 0; i++)
        r = add_found(result, number, run, &found.cascades[i], options);
    result->facts[number].search_complete = found.complete;
    found_cascades_release(&found);
    return r;
}

/* ------------------------------------------------------------------------------------------ the whole */

static int compare_reports(const void *a, const void *b)
{
    const struct cascade_report *first = a, *second = b;

    if (first->severity != second->severity)
        return first->severity > second->severity ? -1 : 1;
    if (first->count != second->count)
        return first->count < second->count ? -1 : 1;
    return strcmp(first->key, second->key);
}

static int no_sink(const struct cascade_result *result, const char *sink, struct error *err)
{
    for (size_t i = 0; i < result->runs; i++)
        if (result->facts[i].sink_calls)
            return 0;
    return error_say(err, -ENOENT,
                     "cannot predict delays of '%s': no run calls it (tracectl top RUN lists functions)",
                     sink);
}

int cascades_find(const struct cascade_source *sources, size_t count, const char *sink,
                  const struct cascade_options *options, struct cascade_result *ret_result, struct error *err)
{
    CLEANUP(free_runs) struct runs *runs = calloc(1, sizeof(*runs));
    int r = runs ? 0 : -ENOMEM;

    *ret_result = (struct cascade_result){.runs = count};
    for (size_t i = 0; i < count; i++)
        ret_result->sizes[i] = sources[i].size;
    if (r == 0)
        r = growth_table_new(count, ret_result->sizes, &ret_result->growth);
    if (r < 0)
        return error_no_memory(err), -ENOMEM;
    for (size_t i = 0; i < count && r == 0; i++) {
        runs->count = i + 1;
        r = recorded_run_read(&runs->runs[i], sources[i].store, &sources[i].parts, sink, options->recognise,
                              err);
        if (r < 0)
            return r;
        note_facts(&ret_result->facts[i], &runs->runs[i]);
        r = add_growth(ret_result->growth, i, &runs->runs[i]);
    }
    if (r == 0 && no_sink(ret_result, sink, err) < 0)
        return -ENOENT;
    growth_table_judge(ret_result->growth);
    for (size_t i = 0; i < count && r == 0; i++)
        r = look_at(ret_result, i, &runs->runs[i], options);
    if (r < 0)
        return error_no_memory(err), -ENOMEM;
    if (ret_result->count)
        qsort(ret_result->reports, ret_result->count, sizeof(*ret_result->reports), compare_reports);
    return 0;
}
