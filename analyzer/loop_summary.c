/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/loop_summary.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/run_gaps.h"
#include "analyzer/thread_match.h"
#include "base/array.h"
#include "base/cleanup.h"

int thread_label_compare(const char *a, const char *b)
{
    while (*a && *b) {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            char *end_a, *end_b;
            unsigned long long x = strtoull(a, &end_a, 10), y = strtoull(b, &end_b, 10);

            if (x != y)
                return x < y ? -1 : 1;
            a = end_a;
            b = end_b;
        } else if (*a != *b) {
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        } else {
            a++, b++;
        }
    }
    return (*a != 0) - (*b != 0);
}

static void run_release(struct run_loops *run)
{
    for (size_t i = 0; i < run->thread_count; i++) {
        free(run->threads[i].label);
        free(run->threads[i].key);
        free(run->threads[i].loops.elements);
        free(run->threads[i].gaps);
    }
    free(run->threads);
    run_gaps_release(run);
}

void loop_summary_release(struct loop_summary *summary)
{
    for (size_t i = 0; i < summary->run_count; i++)
        run_release(&summary->runs[i]);
    free(summary->runs);
    symbols_release(&summary->symbols);
    loop_table_release(&summary->table);
    *summary = (struct loop_summary){0};
}

/* ------------------------------------------------------------------------------------------ views */

/* The state of the last call that was kept. Nothing kept comes after it, so that its depth is enough to know
 * its return, and no stack is needed. */
struct last_kept {
    bool open, blurred; /* blurred: events were lost since, its return may be among them */
    uint32_t depth;
};

/* What one set of options makes of the events: a summary of its own. */
struct view {
    struct loop_summary *summary;
    const struct loop_options *options;
    struct nlr_options nlr;
    struct nlr_builder *builder;
    bool with_returns;
    uint32_t *symbols; /* of the run being read, by function id: what filter and blind spots leave of it */
    size_t symbol_count;
    /* Of the thread being read: */
    struct thread_loops *thread;
    struct last_kept last;
    bool in_gap;
};

struct reader {
    const struct loop_source *source;
    struct view *views;
    size_t view_count;
};

static int view_open(struct view *view, struct loop_summary *summary, size_t runs,
                     const struct loop_options *options, struct error *err)
{
    int r;

    *view = (struct view){.summary = summary, .options = options};
    view->nlr = (struct nlr_options){options->max_body,
                                     options->min_repeats ? options->min_repeats : NLR_STRICT_REPEATS};
    view->with_returns = options->with_returns || filter_keeps_returns(options->filter);
    summary->runs = calloc(runs, sizeof(*summary->runs));
    if (!summary->runs)
        return error_no_memory(err);
    summary->run_count = runs;
    r = nlr_builder_new(&summary->table, &view->nlr, &view->builder);
    return r >= 0 ? 0
                  : error_set(err, r, r == -EINVAL ? "see --help for the limits" : NULL,
                              "setting up loop recognition");
}

static void reader_release(struct reader *reader)
{
    for (size_t i = 0; i < reader->view_count; i++) {
        free(reader->views[i].symbols);
        nlr_builder_free(reader->views[i].builder);
    }
    free(reader->views);
}

/* ------------------------------------------------------------------------------------------ functions */

static bool is_blind(const struct loop_summary *summary, const char *name)
{
    /* What one run did not see all the time cannot be compared; a run by itself shows what it has. */
    if (summary->run_count < 2)
        return false;
    for (size_t run = 0; run < summary->run_count; run++)
        for (size_t i = 0; i < summary->runs[run].blind_count; i++)
            if (!strcmp(summary->runs[run].blind[i].name, name))
                return true;
    return false;
}

static int map_functions(struct view *view, const struct tracestore_function *functions, size_t count,
                         struct error *err)
{
    struct loop_summary *summary = view->summary;

    view->symbol_count = 0;
    for (size_t i = 0; i < count; i++)
        if (functions[i].function_id >= view->symbol_count)
            view->symbol_count = (size_t)functions[i].function_id + 1;
    free(view->symbols);
    view->symbols = malloc((view->symbol_count + 1) * sizeof(*view->symbols));
    if (!view->symbols)
        return error_no_memory(err);
    memset(view->symbols, 0xff, view->symbol_count * sizeof(*view->symbols));
    for (size_t i = 0; i < count; i++) {
        const struct tracestore_function *function = &functions[i];
        const struct filter_function asked = {function->name, function->demangled, function->image,
                                              function->file};
        int r = symbols_mention(&summary->symbols, function->name);

        if (r >= 0 && filter_keeps(view->options->filter, &asked) &&
            !is_blind(summary, function->name))
            r = symbols_add(&summary->symbols, function->name, function->demangled,
                            &view->symbols[function->function_id]);
        if (r < 0)
            return error_no_memory(err);
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------ one thread */

static int add_gap(struct view *view, const struct loop_gap *gap)
{
    struct thread_loops *thread = view->thread;

    if (view->in_gap && thread->gap_count) {
        struct loop_gap *last = &thread->gaps[thread->gap_count - 1];

        last->events = last->events && gap->events ? last->events + gap->events : 0;
        return 0;
    }
    if (array_reserve(&thread->gaps, &thread->gap_capacity, thread->gap_count + 1))
        return -ENOMEM;
    thread->gaps[thread->gap_count++] = *gap;
    return nlr_builder_push(view->builder, loop_table_lost(&view->summary->table));
}

static int add_gaps(struct reader *reader, const struct loop_gap *gap)
{
    int r = 0;

    for (size_t i = 0; i < reader->view_count && !r; i++) {
        r = add_gap(&reader->views[i], gap);
        reader->views[i].in_gap = reader->views[i].last.blurred = true;
    }
    return r;
}

/* What an event is to nested loop recognition. */
static uint32_t event_symbol(const struct view *view, const struct event *event)
{
    uint32_t symbol = event->function < view->symbol_count ? view->symbols[event->function] : SYMBOL_DROPPED;

    if (event->kind == EVENT_RETURN && symbol != SYMBOL_DROPPED)
        return view->with_returns ? SYMBOL_RETURN : SYMBOL_DROPPED;
    return symbol;
}

static void track_last(struct last_kept *last, const struct event *event, bool kept)
{
    if (event->kind == EVENT_CALL && kept)
        *last = (struct last_kept){.open = true, .depth = event->depth};
    else if (event->kind == EVENT_RETURN && event->depth <= last->depth)
        last->open = false;
}

static int add_event(struct view *view, const struct event *event)
{
    uint32_t symbol = event_symbol(view, event);

    view->thread->events++;
    track_last(&view->last, event, symbol != SYMBOL_DROPPED);
    if (symbol == SYMBOL_DROPPED)
        return 0;
    view->thread->kept++;
    view->in_gap = false;
    return nlr_builder_push(view->builder, nlr_symbol(symbol));
}

/* Reads the stream to its end. A damaged segment is a gap like others: the iterator goes on behind it. */
static int read_events(struct reader *reader, int64_t thread_id, struct event_iter *iter, struct error *err)
{
    struct event event;
    int r;

    for (;;) {
        struct loop_gap gap = {0};

        r = event_iter_next(iter, &event, err);
        if (r > 0)
            return 0;
        if (r < 0 && r != -EBADMSG)
            return r;
        if (r == 0 && event.kind != EVENT_LOST) {
            for (size_t i = 0; i < reader->view_count && !r; i++)
                r = add_event(&reader->views[i], &event);
        } else {
            if (r)
                snprintf(gap.cause, sizeof(gap.cause), "damaged segment");
            else
                run_gaps_find(reader->source, thread_id, event.seq, &gap);
            r = add_gaps(reader, &gap);
        }
        if (r)
            return error_no_memory(err);
    }
}

static enum last_call last_call(const struct view *view, enum trace_returns returns)
{
    if (!view->last.open && returns != TRACE_RETURNS_NONE)
        return LAST_CALL_RETURNED;
    if (view->last.blurred || view->thread->incomplete || !trace_returns_tell_open(returns))
        return LAST_CALL_UNKNOWN;
    return LAST_CALL_OPEN;
}

/* The `index`-th thread of a run, in all views. */
static int begin_thread(struct reader *reader, size_t run, size_t index, const char *label, struct error *err)
{
    for (size_t i = 0; i < reader->view_count; i++) {
        struct view *view = &reader->views[i];

        view->thread = &view->summary->runs[run].threads[index];
        view->summary->runs[run].thread_count = index + 1;
        view->last = (struct last_kept){0};
        view->in_gap = false;
        view->thread->label = strdup(label);
        if (!view->thread->label)
            return error_no_memory(err);
    }
    return 0;
}

static int end_thread(struct view *view, const struct run_loops *run, const struct tracestore_thread *from)
{
    struct thread_loops *thread = view->thread;
    struct loop_gap gap = {.cause = "unfinished"};

    if (run->unfinished && !from->ended_ns) {
        view->last.blurred = true;
        view->in_gap = false; /* a cause of its own */
        if (add_gap(view, &gap))
            return -ENOMEM;
    }
    thread->incomplete = run->incomplete || run_gaps_has_unplaced(run, thread->label);
    thread->last_call = last_call(view, from->returns);
    return nlr_builder_take(view->builder, &thread->loops);
}

static int read_thread(struct reader *reader, size_t run, size_t index, const struct tracestore_thread *from,
                       struct error *err)
{
    struct event_iter *iter = NULL;
    int r = begin_thread(reader, run, index, from->label, err);

    if (r < 0)
        return r;
    r = event_iter_open(reader->source->store, from->thread_id, 0, &iter, err);
    if (r < 0)
        return r;
    r = read_events(reader, from->thread_id, iter, err);
    event_iter_free(iter);
    for (size_t i = 0; i < reader->view_count && r >= 0; i++)
        if (end_thread(&reader->views[i], &reader->views[i].summary->runs[run], from))
            r = error_no_memory(err);
    return r;
}

/* ------------------------------------------------------------------------------------------ all of them */

static int map_run(struct reader *reader, struct error *err)
{
    struct tracestore_function *functions = NULL;
    size_t count = 0;
    int r = tracestore_functions(reader->source->store, reader->source->run->run_id, &functions, &count, err);

    for (size_t i = 0; i < reader->view_count && r >= 0; i++)
        r = map_functions(&reader->views[i], functions, count, err);
    tracestore_functions_free(functions, count);
    return r;
}

static int read_run(struct reader *reader, size_t run, struct error *err)
{
    struct tracestore_thread *threads = NULL;
    size_t count = 0;
    int r = map_run(reader, err);

    if (r >= 0)
        r = tracestore_threads(reader->source->store, reader->source->run->run_id, &threads, &count, err);
    for (size_t i = 0; i < reader->view_count && r >= 0; i++) {
        struct run_loops *loops = &reader->views[i].summary->runs[run];

        loops->threads = calloc(count + 1, sizeof(*loops->threads));
        if (!loops->threads)
            r = error_no_memory(err);
    }
    for (size_t i = 0; i < count && r >= 0; i++)
        r = read_thread(reader, run, i, &threads[i], err);
    tracestore_threads_free(threads, count);
    return r;
}

/* The two-block rule over all threads of all runs, then the numbers of the loops in what came out. */
static int finish(struct loop_summary *summary, const struct nlr_options *nlr, bool known_rule)
{
    AUTO_FREE struct nlr_sequence **sequences = NULL;
    size_t count = 0;
    int r = 0;

    for (size_t run = 0; run < summary->run_count; run++)
        count += summary->runs[run].thread_count;
    sequences = malloc((count + 1) * sizeof(struct nlr_sequence *));
    if (!sequences)
        return -ENOMEM;
    count = 0;
    for (size_t run = 0; run < summary->run_count; run++)
        for (size_t i = 0; i < summary->runs[run].thread_count; i++)
            sequences[count++] = &summary->runs[run].threads[i].loops;
    if (known_rule)
        r = known_loops_apply(&summary->table, nlr, sequences, count);
    for (size_t i = 0; i < count && r >= 0; i++)
        r = loop_table_number(&summary->table, sequences[i]->elements, sequences[i]->count);
    return r;
}

static int read_all(struct reader *reader, const struct loop_source *sources, size_t runs, struct error *err)
{
    int r = 0;

    /* Blind spots of all runs first: they decide what is left out of each. */
    for (size_t i = 0; i < reader->view_count; i++)
        for (size_t run = 0; run < runs && r >= 0; run++)
            r = run_gaps_read(&sources[run], &reader->views[i].summary->runs[run], err);
    for (size_t run = 0; run < runs && r >= 0; run++) {
        reader->source = &sources[run];
        r = read_run(reader, run, err);
    }
    for (size_t i = 0; i < reader->view_count && runs > 1 && r >= 0; i++)
        r = threads_match(sources, reader->views[i].summary, err);
    for (size_t i = 0; i < reader->view_count && r >= 0; i++)
        if (finish(reader->views[i].summary, &reader->views[i].nlr, !reader->views[i].options->min_repeats))
            r = error_no_memory(err);
    return r;
}

int loop_summary_read_each(const struct loop_source *sources, size_t runs, const struct loop_options *options,
                           size_t count, struct loop_summary *ret_summaries, struct error *err)
{
    CLEANUP(reader_release) struct reader reader = {.views = calloc(count, sizeof(struct view))};
    int r = 0;

    if (!reader.views)
        return error_no_memory(err);
    for (size_t i = 0; i < count; i++)
        ret_summaries[i] = (struct loop_summary){0};
    for (size_t i = 0; i < count && r >= 0; i++) {
        r = view_open(&reader.views[i], &ret_summaries[i], runs, &options[i], err);
        reader.view_count = i + 1;
    }
    if (r >= 0)
        r = read_all(&reader, sources, runs, err);
    for (size_t i = 0; i < count && r < 0; i++)
        loop_summary_release(&ret_summaries[i]);
    return r;
}

int loop_summary_read(const struct loop_source *sources, size_t runs, const struct loop_options *options,
                      struct loop_summary *ret_summary, struct error *err)
{
    return loop_summary_read_each(sources, runs, options, 1, ret_summary, err);
}
