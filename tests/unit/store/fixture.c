/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "fixture.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"

uint64_t generator_next(struct generator *generator)
{
    uint64_t z = generator->state += 0x9e3779b97f4a7c15ull; /* splitmix64 */

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

uint32_t generator_below(struct generator *generator, uint32_t limit)
{
    return (uint32_t)(generator_next(generator) >> 33) % limit;
}

/* ------------------------------------------------------------------------------------------ streams */

void stream_add(struct stream *stream, uint32_t event)
{
    cr_assert_eq(array_reserve(&stream->events, &stream->capacity, stream->count + 1), 0);
    stream->events[stream->count++] = event;
}

void stream_release(struct stream *stream)
{
    free(stream->events);
    *stream = (struct stream){0};
}

/* The same body again and again, now and then another one. */
static void add_loop(struct stream *stream, struct generator *generator)
{
    uint32_t first = generator_below(generator, 20) + 1, length = generator_below(generator, 6) + 1;
    uint32_t times = generator_below(generator, 200) + 1;

    for (uint32_t i = 0; i < times; i++) {
        for (uint32_t k = 0; k < length; k++) {
            stream_add(stream, first + k);
            stream_add(stream, 0);
        }
    }
}

static uint32_t draw(struct generator *generator, enum stream_kind kind, size_t depth, size_t at,
                     size_t count)
{
    uint32_t roll = generator_below(generator, 1000);

    switch (kind) {
    case STREAM_RECURSION:
        return at / 500 % 2 ? 0 : 7;
    case STREAM_DEEP:
        return at < count / 2 ? generator_below(generator, 5) + 1 : 0;
    case STREAM_MANY_FUNCTIONS:
        return roll < 100 && depth ? 0 : (uint32_t)at * 37 + 1;
    case STREAM_LOSSES:
        return roll < 20 ? TRACESTORE_LOST_FUNCTION : roll < 500 ? 0 : roll % 13 + 1;
    default:
        return roll < 500 ? 0 : generator_below(generator, 300) + 1;
    }
}

void stream_generate(struct stream *stream, enum stream_kind kind, uint64_t seed, size_t count)
{
    struct generator generator = {seed};
    size_t depth = 0;

    while (stream->count < count && kind == STREAM_LOOPS)
        add_loop(stream, &generator);
    while (stream->count < count) {
        uint32_t event = draw(&generator, kind, depth, stream->count, count);

        if (!event && !depth)
            event = 1;
        depth += event == TRACESTORE_LOST_FUNCTION ? 0 : event ? 1 : (size_t)-1;
        stream_add(stream, event);
    }
}

/* ------------------------------------------------------------------------------------------ a store */

void fixture_open(struct fixture *fixture, const struct trace_writer_options *options)
{
    const struct trace_run_description run = {.name = "test", .command = "./prog -x", .started_ns = 1000};
    const struct trace_image_description image = {.path = "/bin/prog", .build_id = "ab", .kind = "main"};
    const struct trace_process_description process = {
        .pid = 77, .rank = -1, .exe = "/bin/prog", .argv = "prog"};
    struct error err = {0};

    *fixture = (struct fixture){.folder = "/tmp/tracectl-store.XXXXXX"};
    cr_assert_not_null(mkdtemp(fixture->folder));
    snprintf(fixture->path, sizeof(fixture->path), "%s/t.db", fixture->folder);
    cr_assert_eq(tracestore_open(fixture->path, TRACESTORE_CREATE, &fixture->store, &err), 0, "%s",
                 err.message);
    cr_assert_eq(trace_writer_begin(fixture->store, &run, options, &fixture->writer, &err), 0, "%s",
                 err.message);
    cr_assert_eq(trace_writer_image(fixture->writer, &image, &fixture->image_id, &err), 0, "%s", err.message);
    cr_assert_eq(trace_writer_process(fixture->writer, &process, &fixture->process_id, &err), 0, "%s",
                 err.message);
}

void fixture_close(struct fixture *fixture)
{
    struct dirent *entry;
    DIR *folder;

    trace_writer_free(fixture->writer);
    tracestore_free(fixture->store);
    folder = opendir(fixture->folder);
    cr_assert_not_null(folder);
    while ((entry = readdir(folder)))
        unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
    rmdir(fixture->folder);
}

struct thread_writer *fixture_thread(struct fixture *fixture, const char *label, enum trace_returns returns)
{
    const struct trace_thread_description description = {
        .process_id = fixture->process_id, .tid = 78, .label = label, .started_ns = 1500, .returns = returns};
    struct thread_writer *thread;
    struct error err = {0};

    cr_assert_eq(trace_writer_thread(fixture->writer, &description, &thread, &err), 0, "%s", err.message);
    return thread;
}

uint32_t fixture_function(struct fixture *fixture, const char *name)
{
    struct trace_function_description function = {.name = name};
    uint32_t function_id;
    struct error err = {0};

    cr_assert_eq(trace_writer_function(fixture->writer, fixture->image_id, &function, &function_id, &err), 0,
                 "%s", err.message);
    return function_id;
}

void fixture_functions(struct fixture *fixture, uint32_t count)
{
    char name[16];

    for (uint32_t i = 1; i <= count; i++) {
        snprintf(name, sizeof(name), "f%u", i);
        cr_assert_eq(fixture_function(fixture, name), i);
    }
}

void write_events(struct thread_writer *thread, const struct stream *stream, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        uint32_t event = stream->events[i];
        int code = event == TRACESTORE_LOST_FUNCTION ? thread_writer_lost(thread, 2000 + i, 5, "test", NULL)
                   : event                           ? thread_writer_call(thread, event)
                                                     : thread_writer_return(thread);

        cr_assert_eq(code, 0, "event %zu: %d", i, code);
    }
}

static void expect_event(const struct event *event, uint32_t expected, uint32_t *open, size_t *depth)
{
    if (expected == TRACESTORE_LOST_FUNCTION) {
        cr_assert_eq(event->kind, EVENT_LOST);
        cr_assert_eq(event->function, TRACESTORE_LOST_FUNCTION);
        cr_assert_eq(event->depth, *depth);
    } else if (expected) {
        cr_assert_eq(event->kind, EVENT_CALL);
        cr_assert_eq(event->function, expected);
        cr_assert_eq(event->depth, *depth);
        open[(*depth)++] = expected;
    } else {
        cr_assert_eq(event->kind, EVENT_RETURN);
        cr_assert_eq(event->depth, --*depth);
        cr_assert_eq(event->function, open[*depth]);
    }
}

void expect_stream(struct tracestore *store, int64_t thread_id, const struct stream *stream, size_t count)
{
    uint32_t *open = calloc(count + 1, sizeof(*open));
    struct event_iter *iter;
    struct error err = {0};
    struct event event;
    size_t depth = 0;
    int code;

    cr_assert_eq(event_iter_open(store, thread_id, 0, &iter, &err), 0, "%s", err.message);
    for (size_t i = 0; i < count; i++) {
        code = event_iter_next(iter, &event, &err);
        cr_assert_eq(code, 0, "event %zu of %zu: %d %s", i, count, code, err.message);
        cr_assert_eq(event.seq, i);
        expect_event(&event, stream->events[i], open, &depth);
    }
    code = event_iter_next(iter, &event, &err);
    cr_assert_eq(code, 1, "after the last event: %d %s", code, err.message);
    event_iter_free(iter);
    free(open);
}

int64_t ask(struct sqlite3 *db, const char *sql)
{
    sqlite3_stmt *row;
    int64_t answer = -1;

    cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(db));
    if (sqlite3_step(row) == SQLITE_ROW && sqlite3_column_type(row, 0) != SQLITE_NULL)
        answer = sqlite3_column_int64(row, 0);
    sqlite3_finalize(row);
    return answer;
}

void run_sql(struct sqlite3 *db, const char *sql)
{
    cr_assert_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(db));
}
