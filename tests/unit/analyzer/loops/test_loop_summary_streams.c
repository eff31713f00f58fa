/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Several workers: the summaries, the numbers of the loops and the gaps are those that one worker makes. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyzer/loops/loop_summary.h"
#include "base/error.h"
#include "tests/unit/analyzer/streams.h"

enum { RUNS = 2, THREADS = 9, SYMBOLS = 4, MOST = 600 };

struct fixture {
    char path[64];
    struct tracestore *store;
    struct tracestore_run runs[RUNS];
};

/* Streams of nested loops, some with gaps; the threads of both runs have many bodies in common. */
static void write_thread(struct trace_writer *writer, int64_t process, unsigned number,
                         const uint32_t *functions, uint64_t *seed)
{
    char label[16];
    struct trace_thread_description thread = {
        .process_id = process, .tid = (int32_t)number, .label = label, .returns = TRACE_RETURNS_PROBED};
    struct thread_writer *stream = NULL;
    uint32_t symbols[MOST];
    size_t count = random_stream(seed, SYMBOLS, MOST / (1 + random_below(seed, 5)), symbols);

    snprintf(label, sizeof(label), "0.%u", number);
    cr_assert_eq(trace_writer_thread(writer, &thread, &stream, NULL), 0);
    for (size_t i = 0; i < count; i++) {
        if (random_below(seed, 100) == 0)
            cr_assert_eq(thread_writer_lost(stream, 5000, 5, "ring full", NULL), 0);
        cr_assert_eq(thread_writer_call(stream, functions[symbols[i]]), 0);
        cr_assert_eq(thread_writer_return(stream), 0);
    }
    cr_assert_eq(thread_writer_end(stream, 9000, NULL), 0);
}

static void write_run(struct fixture *fixture, uint64_t *seed, struct tracestore_run *ret_run)
{
    struct trace_run_description run = {.command = "x", .options = "", .started_ns = 1000};
    struct trace_image_description image = {.path = "/x", .build_id = "aa", .kind = "main"};
    struct trace_process_description process = {
        .pid = 1, .rank = -1, .exe = "/x", .argv = "x", .started_ns = 1000};
    struct trace_writer *writer = NULL;
    uint32_t functions[SYMBOLS];
    int64_t image_id, process_id;

    cr_assert_eq(trace_writer_begin(fixture->store, &run, NULL, &writer, NULL), 0);
    cr_assert_eq(trace_writer_image(writer, &image, &image_id, NULL), 0);
    cr_assert_eq(trace_writer_process(writer, &process, &process_id, NULL), 0);
    for (unsigned i = 0; i < SYMBOLS; i++) {
        char name[] = {(char)('A' + i), 0};
        struct trace_function_description function = {.name = name, .address = 16 * (i + 1), .size = 16};

        cr_assert_eq(trace_writer_function(writer, image_id, &function, &functions[i], NULL), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        write_thread(writer, process_id, i, functions, seed);
    cr_assert_eq(trace_writer_flush(writer, 9000, NULL), 0);
    cr_assert_eq(trace_writer_end(writer, 10000, 0, NULL), 0);
    trace_writer_free(writer);
    cr_assert_eq(tracestore_find_run(fixture->store, "latest", ret_run, NULL), 0);
}

static void begin(struct fixture *fixture, uint64_t seed)
{
    strcpy(fixture->path, "/tmp/test_summary_streams.XXXXXX");
    close(mkstemp(fixture->path));
    unlink(fixture->path);
    cr_assert_eq(tracestore_open(fixture->path, TRACESTORE_CREATE, &fixture->store, NULL), 0);
    for (size_t run = 0; run < RUNS; run++)
        write_run(fixture, &seed, &fixture->runs[run]);
}

static void end(struct fixture *fixture)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};

    for (size_t run = 0; run < RUNS; run++)
        tracestore_run_release(&fixture->runs[run]);
    tracestore_free(fixture->store);
    for (size_t i = 0; i < 3; i++) {
        char path[80];

        snprintf(path, sizeof(path), "%s%s", fixture->path, suffixes[i]);
        unlink(path);
    }
}

static void read_with(const struct fixture *fixture, unsigned workers, struct loop_summary summaries[2])
{
    const struct loop_source sources[RUNS] = {{fixture->store, &fixture->runs[0]},
                                              {fixture->store, &fixture->runs[1]}};
    struct filter *all = NULL, *some = NULL;
    struct error err = {0};

    cr_assert_eq(filter_new(NULL, NULL, &all, NULL), 0);
    cr_assert_eq(filter_new("/[ABC]/", NULL, &some, NULL), 0);
    struct loop_options options[2] = {
        {.filter = all, .max_body = 10, .workers = workers},
        {.filter = some, .max_body = 3, .min_repeats = 2, .with_returns = true}};
    cr_assert_eq(loop_summary_read_each(sources, RUNS, options, 2, summaries, &err), 0, "%s", err.message);
    filter_free(all);
    filter_free(some);
}

/* A summary as text: loops by their numbers, and what each loop is. */
static char *summary_text(const struct loop_summary *summary)
{
    const struct loop_table *table = &summary->table;
    char *text = NULL, *line;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    for (size_t run = 0; run < RUNS; run++)
        for (size_t i = 0; i < summary->runs[run].thread_count; i++) {
            const struct thread_loops *thread = &summary->runs[run].threads[i];

            line = sequence_text(table, &thread->loops);
            fprintf(out, "%s %lu %lu: %s\n", thread->label, (unsigned long)thread->events,
                    (unsigned long)thread->kept, line);
            for (size_t gap = 0; gap < thread->gap_count; gap++)
                fprintf(out, "gap %lu %s\n", (unsigned long)thread->gaps[gap].events,
                        thread->gaps[gap].cause);
            for (size_t at = 0; at < thread->loops.count; at++)
                if (thread->loops.elements[at].kind == NLR_LOST)
                    fprintf(out, "lost %lu\n", (unsigned long)thread->loops.elements[at].count);
            free(line);
        }
    for (size_t number = 0; number < table->number_count; number++) {
        uint32_t id = table->numbered[number];
        const struct nlr_sequence body = {(struct nlr_element *)loop_table_elements(table, id),
                                          table->bodies[id].length};

        line = sequence_text(table, &body);
        fprintf(out, "L%zu = %s, %lu events\n", number, line, (unsigned long)table->bodies[id].events);
        free(line);
    }
    fprintf(out, "%zu bodies, %lu lost\n", table->count, (unsigned long)table->lost);
    fclose(out);
    return text;
}

Test(summary_streams, any_number_of_workers_gives_the_same)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct fixture fixture;
        char *expected[2] = {NULL, NULL};

        begin(&fixture, seed);
        for (unsigned workers = 1; workers <= 4; workers++) {
            struct loop_summary summaries[2];

            read_with(&fixture, workers, summaries);
            for (size_t view = 0; view < 2; view++) {
                char *text = summary_text(&summaries[view]);

                if (!expected[view])
                    expected[view] = strdup(text);
                cr_assert_str_eq(text, expected[view], "%u workers", workers);
                cr_assert_not_null(strstr(text, "lost"));
                cr_assert_not_null(strstr(text, "L3 ="));
                free(text);
                loop_summary_release(&summaries[view]);
            }
        }
        free(expected[0]);
        free(expected[1]);
        end(&fixture);
    }
}
