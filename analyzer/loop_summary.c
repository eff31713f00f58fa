/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/loop_summary.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/run_gaps.h"
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
        free(run->threads[i].loops.elements);
        free(run->threads[i].gaps);
    }
    free(run->threads);
    run_gaps_release(run);
}

void loop_summary_release(struct loop_summary *summary)
{
    for (size_t i = 0; i < ARRAY_SIZE(summary->runs); i++)
        run_release(&summary->runs[i]);
    symbols_release(&summary->symbols);
    loop_table_release(&summary->table);
    *summary = (struct loop_summary){0};
}

/* ------------------------------------------------------------------------------------------ functions */

struct catalog {
    struct tracestore_function *functions;
    size_t count;
    uint32_t *symbols; /* by function id: what the filter and the blind spots leave of it */
    size_t symbol_count;
};

static void catalog_release(struct catalog *catalog)
{
    tracestore_functions_free(catalog->functions, catalog->count);
    free(catalog->symbols);
}

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

static int map_functions(struct loop_summary *summary, const struct loop_options *options,
                         struct catalog *catalog, struct error *err)
{
    for (size_t i = 0; i < catalog->count; i++)
        if (catalog->functions[i].function_id >= catalog->symbol_count)
            catalog->symbol_count = (size_t)catalog->functions[i].function_id + 1;
    catalog->symbols = malloc((catalog->symbol_count + 1) * sizeof(*catalog->symbols));
    if (!catalog->symbols)
        return error_no_memory(err);
    memset(catalog->symbols, 0xff, catalog->symbol_count * sizeof(*catalog->symbols));
    for (size_t i = 0; i < catalog->count; i++) {
        const struct tracestore_function *function = &catalog->functions[i];
        uint32_t *symbol = &catalog->symbols[function->function_id];
        int r = symbols_mention(&summary->symbols, function->name);

        if (r >= 0 && filter_keeps(options->filter, function->name, function->demangled) &&
            !is_blind(summary, function->name))
            r = symbols_add(&summary->symbols, function->name, function->demangled, symbol);
        if (r < 0)
            return error_no_memory(err);
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------ one thread */

struct reader {
    struct loop_summary *summary;
    const struct loop_source *source;
    const struct catalog *catalog;
    struct nlr_builder *builder;
    bool with_returns;
};

/* The state of the last call that was kept. Nothing kept comes after it, so that its depth is enough to know
 * its return, and no stack is needed. */
struct last_kept {
    bool open, blurred; /* blurred: events were lost since, its return may be among them */
    uint32_t depth;
};

static int add_gap(struct reader *reader, struct thread_loops *thread, const struct loop_gap *gap,
                   bool adjacent)
{
    if (adjacent && thread->gap_count) {
        struct loop_gap *last = &thread->gaps[thread->gap_count - 1];

        last->events = last->events && gap->events ? last->events + gap->events : 0;
        return 0;
    }
    if (array_reserve(&thread->gaps, &thread->gap_capacity, thread->gap_count + 1))
        return -ENOMEM;
    thread->gaps[thread->gap_count++] = *gap;
    return nlr_builder_push(reader->builder, loop_table_lost(&reader->summary->table));
}

/* What an event is to nested loop recognition. */
static uint32_t event_symbol(const struct reader *reader, const struct event *event)
{
    const struct catalog *catalog = reader->catalog;
    uint32_t symbol =
        event->function < catalog->symbol_count ? catalog->symbols[event->function] : SYMBOL_DROPPED;

    if (event->kind == EVENT_RETURN && symbol != SYMBOL_DROPPED)
        return reader->with_returns ? SYMBOL_RETURN : SYMBOL_DROPPED;
    return symbol;
}

static void track_last(struct last_kept *last, const struct event *event, bool kept)
{
    if (event->kind == EVENT_CALL && kept)
        *last = (struct last_kept){.open = true, .depth = event->depth};
    else if (event->kind == EVENT_RETURN && event->depth <= last->depth)
        last->open = false;
}

/* Reads the stream to its end. A damaged segment is a gap like others: the iterator goes on behind it. */
static int read_events(struct reader *reader, struct thread_loops *thread, int64_t thread_id,
                       struct event_iter *iter, struct last_kept *last, struct error *err)
{
    struct event event;
    bool in_gap = false;

    for (;;) {
        struct loop_gap gap = {0};
        uint32_t symbol;
        int r = event_iter_next(iter, &event, err);

        if (r > 0)
            return 0;
        if (r < 0 && r != -EBADMSG)
            return r;
        if (r == -EBADMSG || event.kind == EVENT_LOST) {
            if (r == -EBADMSG)
                snprintf(gap.cause, sizeof(gap.cause), "damaged segment");
            else
                run_gaps_find(reader->source, thread_id, event.seq, &gap);
            if (add_gap(reader, thread, &gap, in_gap))
                return error_no_memory(err);
            in_gap = last->blurred = true;
            continue;
        }
        thread->events++;
        symbol = event_symbol(reader, &event);
        track_last(last, &event, symbol != SYMBOL_DROPPED);
        if (symbol == SYMBOL_DROPPED)
            continue;
        thread->kept++;
        in_gap = false;
        if (nlr_builder_push(reader->builder, nlr_symbol(symbol)))
            return error_no_memory(err);
    }
}

static int read_thread(struct reader *reader, struct run_loops *run, const struct tracestore_thread *from,
                       struct thread_loops *thread, struct error *err)
{
    struct event_iter *iter = NULL;
    struct last_kept last = {0};
    int r;

    thread->label = strdup(from->label);
    if (!thread->label)
        return error_no_memory(err);
    r = event_iter_open(reader->source->store, from->thread_id, 0, &iter, err);
    if (r < 0)
        return r;
    r = read_events(reader, thread, from->thread_id, iter, &last, err);
    event_iter_free(iter);
    if (r < 0)
        return r;
    if (run->unfinished && !from->ended_ns) {
        struct loop_gap gap = {.cause = "unfinished"};

        last.blurred = true;
        if (add_gap(reader, thread, &gap, false))
            return error_no_memory(err);
    }
    thread->incomplete = run->incomplete || run_gaps_has_unplaced(run, thread->label);
    if (!last.open && from->returns != TRACE_RETURNS_NONE)
        thread->last_call = LAST_CALL_RETURNED;
    else if (last.blurred || thread->incomplete || !trace_returns_tell_open(from->returns))
        thread->last_call = LAST_CALL_UNKNOWN;
    else
        thread->last_call = LAST_CALL_OPEN;
    return nlr_builder_take(reader->builder, &thread->loops) ? error_no_memory(err) : 0;
}

/* ------------------------------------------------------------------------------------------ all of them */

static int read_run(struct reader *reader, struct run_loops *run, const struct loop_options *options,
                    struct error *err)
{
    CLEANUP(catalog_release) struct catalog catalog = {0};
    struct tracestore_thread *threads = NULL;
    size_t count = 0;
    int r;

    r = tracestore_functions(reader->source->store, run->run_id, &catalog.functions, &catalog.count, err);
    if (r >= 0)
        r = map_functions(reader->summary, options, &catalog, err);
    if (r >= 0)
        r = tracestore_threads(reader->source->store, run->run_id, &threads, &count, err);
    if (r < 0)
        return r;
    reader->catalog = &catalog;
    run->threads = calloc(count + 1, sizeof(*run->threads));
    if (!run->threads)
        r = error_no_memory(err);
    for (size_t i = 0; run->threads && i < count && r >= 0; i++) {
        run->thread_count = i + 1;
        r = read_thread(reader, run, &threads[i], &run->threads[i], err);
    }
    reader->catalog = NULL;
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

DEFINE_CLEANUP(cleanup_builder, struct nlr_builder *, nlr_builder_free)

static int read_all(struct loop_summary *summary, const struct loop_source *sources,
                    const struct loop_options *options, struct error *err)
{
    const struct nlr_options nlr = {options->max_body,
                                    options->min_repeats ? options->min_repeats : NLR_STRICT_REPEATS};
    CLEANUP(cleanup_builder) struct nlr_builder *builder = NULL;
    struct reader reader = {.summary = summary};
    int r = nlr_builder_new(&summary->table, &nlr, &builder);

    if (r < 0)
        return error_set(err, r, r == -EINVAL ? "see --help for the limits" : NULL,
                         "setting up loop recognition");
    reader.builder = builder;
    reader.with_returns = options->with_returns || filter_keeps_returns(options->filter);
    /* Blind spots of all runs first: they decide what is left out of each. */
    for (size_t i = 0; i < summary->run_count && r >= 0; i++)
        r = run_gaps_read(&sources[i], &summary->runs[i], err);
    for (size_t i = 0; i < summary->run_count && r >= 0; i++) {
        reader.source = &sources[i];
        r = read_run(&reader, &summary->runs[i], options, err);
    }
    if (r >= 0 && finish(summary, &nlr, !options->min_repeats))
        r = error_no_memory(err);
    return r;
}

int loop_summary_read(const struct loop_source *sources, size_t count, const struct loop_options *options,
                      struct loop_summary *ret_summary, struct error *err)
{
    struct loop_summary summary = {.run_count = count};
    int r;

    if (!count || count > ARRAY_SIZE(summary.runs))
        return error_set(err, -EINVAL, NULL, "summarising %zu runs at once", count);
    r = read_all(&summary, sources, options, err);
    if (r < 0) {
        loop_summary_release(&summary);
        return r;
    }
    *ret_summary = summary;
    return 0;
}
