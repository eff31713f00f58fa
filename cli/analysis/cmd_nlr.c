/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl nlr: what the threads of a run did, as sequences of functions and loops. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "analyzer/loops/progress.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/analysis/loops.h"
#include "cli/common/command.h"

struct nlr_arguments {
    struct loops_arguments loops;
    const char *run, *thread;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct nlr_arguments *arguments = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &arguments->loops;
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num == 0)
            arguments->run = arg;
        else if (state->arg_num == 1)
            arguments->thread = arg;
        else
            argp_usage(state);
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_usage(state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static bool is_wanted(const struct nlr_arguments *arguments, const struct thread_loops *thread)
{
    return !arguments->thread || !strcmp(arguments->thread, thread->label);
}

static json_t *json_progress(const struct loop_summary *summary, const struct thread_progress *progress)
{
    char name[24];

    if (!progress->known)
        return json_null();
    snprintf(name, sizeof(name), "L%" PRIu32, summary->table.numbers[progress->loop]);
    return json_pack("{s:s, s:i, s:o, s:o, s:f}", "loop", name, "peers", (int)progress->peers, "iterations",
                     cli_json_count(progress->iterations), "furthest", cli_json_count(progress->furthest),
                     "share", (double)progress->iterations / (double)progress->furthest);
}

static void print_json(const struct nlr_arguments *arguments, const struct loops_input *input,
                       const struct thread_progress *progress)
{
    const struct loop_summary *summary = &input->summary;
    const struct run_loops *run = &summary->runs[0];
    json_t *threads = json_array(), *unknown = json_array();
    AUTO_JSON json_t *document =
        json_pack("{s:o, s:o, s:o, s:o}", "run", json_integer(run->run_id), "threads", threads, "loops",
                  cli_loops_legend(summary), "unknown", unknown);

    for (size_t i = 0; i < run->thread_count; i++) {
        const struct thread_loops *thread = &run->threads[i];
        json_t *item = json_object();

        if (!is_wanted(arguments, thread)) {
            json_decref(item);
            continue;
        }
        json_object_set_new(item, "thread", cli_json_text(thread->label));
        json_object_set_new(item, "entries",
                            cli_loops_entries(summary, thread->loops.elements, thread->loops.count));
        json_object_set_new(item, "events", cli_json_count(thread->events));
        json_object_set_new(item, "kept", cli_json_count(thread->kept));
        json_object_set_new(item, "progress", json_progress(summary, &progress[i]));
        json_object_set_new(item, "last_call", json_string(cli_loops_last_call(thread->last_call)));
        json_array_append_new(threads, item);
        for (size_t gap = 0; gap < thread->gap_count; gap++)
            json_array_append_new(unknown, cli_loops_json_gap(thread->label, NULL, &thread->gaps[gap]));
    }
    cli_loops_json_gaps(run, NULL, unknown);
    json_object_set_new(document, "completeness", completeness_json(input->completeness, 1));
    cli_json_print(document);
}

/* ------------------------------------------------------------------------------------------ text */

/* Threads that did the same are shown once. */
struct fold {
    uint64_t hash;
    size_t first;                 /* the first thread of these; its own number in the first itself */
    size_t threads;               /* of the first: how many they are */
    uint64_t fewest, most_events; /* of the first: what the filter was given */
};

static bool did_the_same(const struct thread_loops *a, const struct thread_loops *b)
{
    return a->loops.count == b->loops.count && a->last_call == b->last_call &&
           (!a->loops.count || nlr_same(a->loops.elements, b->loops.elements, a->loops.count));
}

/* For each thread of the run that is asked for. Threads with lost events are like no other: nobody knows what
 * is missing. NULL: no memory. */
static struct fold *fold_threads(const struct nlr_arguments *arguments, const struct run_loops *run)
{
    struct fold *folds = calloc(run->thread_count + 1, sizeof(*folds));

    for (size_t i = 0; folds && i < run->thread_count; i++) {
        const struct thread_loops *thread = &run->threads[i];
        size_t first = 0;

        folds[i].hash = nlr_hash_block(thread->loops.elements, thread->loops.count);
        if (!is_wanted(arguments, thread))
            continue;
        while (first < i && (!folds[first].threads || folds[first].hash != folds[i].hash ||
                             !did_the_same(&run->threads[first], thread)))
            first++;
        folds[i].first = first;
        if (!folds[first].threads++ || thread->events < folds[first].fewest)
            folds[first].fewest = thread->events;
        if (thread->events > folds[first].most_events)
            folds[first].most_events = thread->events;
    }
    return folds;
}

/* "thread 1.0", "threads 0.0, 2.0, 4.0 and 13 more" */
static void print_labels(const struct run_loops *run, const struct fold *folds, size_t first)
{
    enum { MOST_LABELS = 8 };
    size_t shown = 0;

    fputs(folds[first].threads > 1 ? "threads" : "thread", stdout);
    for (size_t i = first; i < run->thread_count && shown < MOST_LABELS && shown < folds[first].threads; i++)
        if (i == first ||
            (folds[i].first == first && folds[i].hash == folds[first].hash && !folds[i].threads))
            text_print(stdout, "%s %s", shown++ ? "," : "", run->threads[i].label);
    if (folds[first].threads > shown)
        text_print(stdout, " and %zu more", folds[first].threads - shown);
}

static void print_head(const struct run_loops *run, const struct fold *folds, size_t first,
                       const struct thread_progress *progress)
{
    const struct fold *fold = &folds[first];
    bool colour = cli_colour();

    cli_style(colour, CLI_BOLD);
    print_labels(run, folds, first);
    cli_style(colour, CLI_PLAIN);
    text_print(stdout, "  %" PRIu64, fold->fewest);
    if (fold->most_events > fold->fewest)
        text_print(stdout, " to %" PRIu64, fold->most_events);
    text_print(stdout, " events, %" PRIu64 " kept, %zu entries", run->threads[first].kept,
               run->threads[first].loops.count);
    if (progress->known)
        text_print(stdout, ", %" PRIu64 " of %" PRIu64 " iterations of its %zu %s", progress->iterations,
                   progress->furthest, progress->peers, progress->peers == 1 ? "peer" : "peers");
    putchar('\n');
}

static void print_entries(const struct loop_summary *summary, const struct thread_loops *thread)
{
    size_t gap = 0;
    char text[512];

    for (size_t i = 0; i < thread->loops.count; i++) {
        const struct nlr_element *element = &thread->loops.elements[i];

        cli_loops_text(summary, element, text, sizeof(text));
        text_print(stdout, "  %s", text);
        if (element->kind == NLR_LOST && thread->gaps[gap].events)
            text_print(stdout, "  %" PRIu64 " events are missing: %s", thread->gaps[gap].events,
                       thread->gaps[gap].cause);
        else if (element->kind == NLR_LOST)
            text_print(stdout, "  events are missing: %s", thread->gaps[gap].cause);
        gap += element->kind == NLR_LOST;
        if (i + 1 == thread->loops.count && thread->last_call == LAST_CALL_OPEN)
            fputs("  (never returned)", stdout);
        putchar('\n');
    }
}

static int print_text(const struct nlr_arguments *arguments, const struct loops_input *input,
                      const struct thread_progress *progress)
{
    const struct loop_summary *summary = &input->summary;
    AUTO_FREE bool *wanted = calloc(summary->table.number_count + 1, sizeof(*wanted));
    const struct run_loops *run = &summary->runs[0];
    AUTO_FREE struct fold *folds = fold_threads(arguments, run);

    if (!wanted || !folds)
        return -ENOMEM;
    for (size_t i = 0; i < run->thread_count && !cli_output_broken(); i++) {
        const struct thread_loops *thread = &run->threads[i];

        if (!folds[i].threads)
            continue;
        print_head(run, folds, i, &progress[i]);
        print_entries(summary, thread);
        putchar('\n');
        cli_loops_mark(summary, thread->loops.elements, thread->loops.count, wanted);
    }
    cli_loops_print_legend(summary, wanted);
    completeness_print(input->completeness, 1);
    cli_loops_print_gaps(run, "");
    return 0;
}

static bool has_thread(const struct nlr_arguments *arguments, const struct run_loops *run)
{
    for (size_t i = 0; i < run->thread_count; i++)
        if (is_wanted(arguments, &run->threads[i]))
            return true;
    return !arguments->thread;
}

static const struct argp_child children[] = {
    {&cli_loops_argp, 0, NULL, 0}, {&cli_common_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
    .parser = parse,
    .args_doc = "RUN [P.T]",
    .doc =
        "Show the calls of all threads of a run, or of thread P.T, as a sequence of functions and "
        "loops.\vL0 ^ 16 stands for sixteen iterations of loop L0, which the legend lists. Expanding all "
        "loops restores the calls that the filter keeps, in order. ? marks a place where events are "
        "missing. A loop name has the same meaning in all threads; therefore all threads are read, even "
        "for P.T alone. Threads with the same sequence are shown once. '7 of 16 iterations' compares the "
        "progress of a thread in its loops with the furthest of the threads that begin with the "
        "same loop.",
    .children = children,
};

static int run(int argc, char **argv)
{
    CLEANUP(cli_loops_release) struct loops_input input = {0};
    AUTO_FREE struct thread_progress *progress = NULL;
    struct nlr_arguments arguments = {0};
    struct error err = {0};
    int r;

    cli_parse(&cmd_nlr, argc, argv, &arguments);
    r = cli_loops_read(&arguments.loops, &arguments.run, 1, &input, &err);
    if (r >= 0 && !has_thread(&arguments, &input.summary.runs[0]))
        r = error_say(&err, -ENOENT, "no thread '%s' in run %s (tracectl show %s lists them)",
                      arguments.thread, arguments.run, arguments.run);
    if (r < 0)
        return cli_loops_fail(r, &err);
    progress = calloc(input.summary.runs[0].thread_count + 1, sizeof(*progress));
    r = progress ? progress_of_run(&input.summary.runs[0], progress) : -ENOMEM;
    if (r >= 0 && cli.json)
        print_json(&arguments, &input, progress);
    else if (r >= 0)
        r = print_text(&arguments, &input, progress);
    if (r < 0) {
        error_no_memory(&err);
        return cli_fail(&err);
    }
    return cli_finish(EXIT_NOTHING_FOUND);
}

const struct command cmd_nlr = {
    .name = "nlr",
    .summary = "summarise the calls of threads as loops",
    .argp = &argp,
    .examples =
        "Summarise all threads of a run, MPI calls only:\n"
        "  tracectl nlr latest --filter mpi\n"
        "Summarise one thread:\n"
        "  tracectl nlr latest 5.0\n",
    .run = run,
};
