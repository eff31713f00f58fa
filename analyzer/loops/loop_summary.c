/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/loops/loop_summary.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/loops/known_loops.h"
#include "analyzer/loops/loop_summary_streams.h"
#include "analyzer/loops/run_gaps.h"
#include "analyzer/loops/thread_match.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"

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

/* A view for each set of options. */
struct reader {
    const struct loop_source *sources;
    size_t runs;
    const struct loop_options *options; /* by view */
    struct stream_view *views;
    size_t view_count;
};

static int view_open(struct stream_view *view, struct loop_summary *summary, size_t runs,
                     const struct loop_options *options, struct error *err)
{
    *view = (struct stream_view){.summary = summary};
    view->nlr = (struct nlr_options){options->max_body,
                                     options->min_repeats ? options->min_repeats : NLR_STRICT_REPEATS};
    view->with_returns = options->with_returns || filter_keeps_returns(options->filter);
    summary->runs = calloc(runs, sizeof(*summary->runs));
    view->symbols = calloc(runs, sizeof(*view->symbols));
    if (!summary->runs || !view->symbols)
        return error_no_memory(err);
    summary->run_count = runs;
    return 0;
}

static void reader_release(struct reader *reader)
{
    for (size_t i = 0; i < reader->view_count; i++) {
        for (size_t run = 0; reader->views[i].symbols && run < reader->runs; run++)
            free(reader->views[i].symbols[run].symbols);
        free(reader->views[i].symbols);
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

static int map_functions(struct loop_summary *summary, const struct filter *filter,
                         struct stream_symbols *map, const struct tracestore_function *functions,
                         size_t count, struct error *err)
{
    for (size_t i = 0; i < count; i++)
        if (functions[i].function_id >= map->count)
            map->count = (size_t)functions[i].function_id + 1;
    map->symbols = malloc((map->count + 1) * sizeof(*map->symbols));
    if (!map->symbols)
        return error_no_memory(err);
    memset(map->symbols, 0xff, map->count * sizeof(*map->symbols));
    for (size_t i = 0; i < count; i++) {
        const struct tracestore_function *function = &functions[i];
        const struct filter_function asked = {function->name, function->demangled, function->image,
                                              function->file, function->aliases};
        int r = symbols_mention(&summary->symbols, function->name);

        if (r >= 0 && filter_keeps(filter, &asked) && !is_blind(summary, function->name))
            r = symbols_add(&summary->symbols, function->name, function->demangled,
                            &map->symbols[function->function_id]);
        if (r < 0)
            return error_no_memory(err);
    }
    return 0;
}

static int map_run(struct reader *reader, size_t run, struct error *err)
{
    const struct loop_source *source = &reader->sources[run];
    struct tracestore_function *functions = NULL;
    size_t count = 0;
    int r = tracestore_functions(source->store, source->run->run_id, &functions, &count, err);

    for (size_t i = 0; i < reader->view_count && r >= 0; i++)
        r = map_functions(reader->views[i].summary, reader->options[i].filter, &reader->views[i].symbols[run],
                          functions, count, err);
    tracestore_functions_free(functions, count);
    return r;
}

/* ------------------------------------------------------------------------------------------ all of them */

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

static int read_all(struct reader *reader, struct error *err)
{
    const struct loop_source *sources = reader->sources;
    int r = 0;

    /* Blind spots of all runs first: they decide what is left out of each. */
    for (size_t i = 0; i < reader->view_count; i++)
        for (size_t run = 0; run < reader->runs && r >= 0; run++)
            r = run_gaps_read(&sources[run], &reader->views[i].summary->runs[run], err);
    for (size_t run = 0; run < reader->runs && r >= 0; run++)
        r = map_run(reader, run, err);
    if (r >= 0)
        r = loop_summary_streams_read(sources, reader->runs, reader->views, reader->view_count,
                                      reader->options[0].workers, err);
    for (size_t i = 0; i < reader->view_count && reader->runs > 1 && r >= 0; i++)
        r = threads_match(sources, reader->views[i].summary, err);
    for (size_t i = 0; i < reader->view_count && r >= 0; i++)
        if (finish(reader->views[i].summary, &reader->views[i].nlr, !reader->options[i].min_repeats))
            r = error_no_memory(err);
    return r;
}

int loop_summary_read_each(const struct loop_source *sources, size_t runs, const struct loop_options *options,
                           size_t count, struct loop_summary *ret_summaries, struct error *err)
{
    CLEANUP(reader_release)
    struct reader reader = {.sources = sources, .runs = runs, .options = options};
    int r = 0;

    reader.views = calloc(count, sizeof(*reader.views));
    if (!reader.views)
        return error_no_memory(err);
    for (size_t i = 0; i < count; i++)
        ret_summaries[i] = (struct loop_summary){0};
    for (size_t i = 0; i < count && r >= 0; i++) {
        r = view_open(&reader.views[i], &ret_summaries[i], runs, &options[i], err);
        reader.view_count = i + 1;
    }
    if (r >= 0)
        r = read_all(&reader, err);
    for (size_t i = 0; i < count && r < 0; i++)
        loop_summary_release(&ret_summaries[i]);
    return r;
}

int loop_summary_read(const struct loop_source *sources, size_t runs, const struct loop_options *options,
                      struct loop_summary *ret_summary, struct error *err)
{
    return loop_summary_read_each(sources, runs, options, 1, ret_summary, err);
}

bool loop_summary_keeps_nothing(const struct loop_summary *summary)
{
    uint64_t events = 0, kept = 0;

    for (size_t run = 0; run < summary->run_count; run++)
        for (size_t i = 0; i < summary->runs[run].thread_count; i++) {
            events += summary->runs[run].threads[i].events;
            kept += summary->runs[run].threads[i].kept;
        }
    return events && !kept;
}
