/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "tests/unit/store/model.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

#define DEEPEST 40

struct builder {
    struct model *model;
    const struct model_options *options;
    struct trace_writer *writer;
    sqlite3 *expected; /* x_events and x_calls are made here */
    uint64_t now;
    bool ended;
};

struct frame {
    uint64_t seq;
    uint32_t function;
    uint32_t site;
    bool assumed;
};

/* xorshift64*, so that a seed means the same everywhere. */
uint32_t model_random(struct model *model, uint32_t below)
{
    model->random ^= model->random >> 12;
    model->random ^= model->random << 25;
    model->random ^= model->random >> 27;
    return (uint32_t)((model->random * 0x2545f4914f6cdd1du) >> 33) % below;
}

static void must(int r, const struct error *err)
{
    cr_assert_geq(r, 0, "%s", err->message);
}

static void exec(sqlite3 *db, const char *sql)
{
    char *message = NULL;

    cr_assert_eq(sqlite3_exec(db, sql, NULL, NULL, &message), SQLITE_OK, "%s: %s", sql, message);
}

static void execf(sqlite3 *db, const char *format, ...)
{
    va_list args;
    char *sql;

    va_start(args, format);
    sql = sqlite3_vmprintf(format, args);
    va_end(args);
    exec(db, sql);
    sqlite3_free(sql);
}

/* --------------------------------------------------------------------------------------- writing a thread */

struct stream {
    struct thread_writer *writer;
    int64_t run_id, thread_id;
    enum trace_returns returns;
    bool call_sites;
    struct frame stack[DEEPEST];
    uint32_t depth;
    uint64_t seq, last_lost;
    bool any_lost;
};

static void expect_event(struct builder *builder, struct stream *stream, const char *kind,
                         const struct frame *frame, uint32_t depth)
{
    bool call = strcmp(kind, "call") == 0;

    execf(builder->expected,
          "INSERT INTO x_events VALUES(%lld, %lld, %lld, NULL, NULL, '%s', nullif(%u, 0), %u, nullif(%u, 0), "
          "%d)",
          stream->run_id, stream->thread_id, stream->seq, kind, frame->function, depth,
          call ? frame->site : 0, call && frame->assumed);
}

static void expect_call(struct builder *builder, const struct stream *stream, uint32_t depth, int64_t end_seq,
                        const char *state)
{
    const struct frame *frame = &stream->stack[depth];

    execf(builder->expected,
          "INSERT INTO x_calls VALUES(%lld, %lld, %lld, nullif(%lld, -1), nullif(%lld, -1), %u, %u, NULL, "
          "NULL, '%s', nullif(%u, 0), %d, NULL, NULL, NULL)",
          stream->run_id, stream->thread_id, frame->seq, end_seq, depth ? (int64_t)frame[-1].seq : -1ll,
          frame->function, depth, state, frame->site, frame->assumed);
}

/* Mostly one of few, now and then none. */
static uint32_t draw_site(struct model *model, const struct stream *stream)
{
    uint32_t roll = model_random(model, 40);

    return !stream->call_sites || roll == 0 ? 0 : model->sites[roll < 30 ? roll % 3 : roll % 24];
}

static int write_call(const struct stream *stream, const struct frame *frame)
{
    if (frame->assumed)
        return thread_writer_call_assumed(stream->writer, frame->function, frame->site);
    return stream->call_sites ? thread_writer_call_from(stream->writer, frame->function, frame->site)
                              : thread_writer_call(stream->writer, frame->function);
}

static void append_call(struct builder *builder, struct stream *stream)
{
    struct model *model = builder->model;
    bool bare = stream->returns == TRACE_RETURNS_NONE;
    uint32_t depth = bare ? 0 : stream->depth;
    struct frame *frame = &stream->stack[depth];

    *frame = (struct frame){.seq = stream->seq,
                            .function = model->functions[model_random(model, stream->seq < 30 ? 10 : 12)],
                            .site = draw_site(model, stream),
                            /* Phases without one, so that some segments have none. */
                            .assumed = depth && stream->seq / 128 % 2 && model_random(model, 4) == 0};
    cr_assert_eq(write_call(stream, frame), 0);
    expect_event(builder, stream, "call", frame, depth);
    if (bare)
        expect_call(builder, stream, 0, -1, "unknown");
    else
        stream->depth++;
    stream->seq++;
}

static void append_return(struct builder *builder, struct stream *stream)
{
    cr_assert_eq(thread_writer_return(stream->writer), 0);
    stream->depth--;
    expect_event(builder, stream, "return", &stream->stack[stream->depth], stream->depth);
    expect_call(builder, stream, stream->depth, (int64_t)stream->seq, "returned");
    stream->seq++;
}

static void append_lost(struct builder *builder, struct stream *stream)
{
    struct error err = {0};

    must(thread_writer_lost(stream->writer, builder->now, 1 + model_random(builder->model, 9), "test", &err),
         &err);
    expect_event(builder, stream, "lost", &(struct frame){0}, stream->depth);
    stream->last_lost = stream->seq++;
    stream->any_lost = true;
}

static void append_event(struct builder *builder, struct stream *stream)
{
    struct model *model = builder->model;
    bool may_return = stream->depth && stream->returns != TRACE_RETURNS_NONE;
    /* Phases that go up and phases that go down, so that some calls last over many segments. */
    uint32_t up = stream->seq / 64 % 2 ? 45 : 56;

    builder->now += 1 + model_random(model, 50);
    if (builder->options->times && model_random(model, 4) == 0)
        cr_assert_eq(thread_writer_anchor(stream->writer, builder->now), 0);
    if ((int)model_random(model, 100) < builder->options->lost_percent)
        append_lost(builder, stream);
    else if (stream->depth == DEEPEST - 1 || (may_return && model_random(model, 100) >= up))
        append_return(builder, stream);
    else
        append_call(builder, stream);
}

static void expect_open_calls(struct builder *builder, struct stream *stream)
{
    while (stream->depth) {
        const struct frame *frame = &stream->stack[--stream->depth];
        bool known = builder->ended && stream->returns == TRACE_RETURNS_PROBED &&
                     !(stream->any_lost && stream->last_lost > frame->seq);

        expect_call(builder, stream, stream->depth, -1, known ? "open" : "unknown");
    }
}

/* ------------------------------------------------------------------------------------------ writing runs */

static void begin_streams(struct builder *builder, struct stream *streams, int64_t process_id)
{
    static const enum trace_returns kinds[] = {TRACE_RETURNS_PROBED, TRACE_RETURNS_PROBED,
                                               TRACE_RETURNS_INFERRED, TRACE_RETURNS_NONE};
    struct error err = {0};

    for (int i = 0; i < builder->options->threads; i++) {
        char label[16];
        struct trace_thread_description thread = {
            .process_id = process_id,
            .tid = 100 + i,
            .label = label,
            .started_ns = builder->now,
            .returns = kinds[model_random(builder->model, 4)],
            .call_sites = model_random(builder->model, 2),
        };

        snprintf(label, sizeof(label), "0.%d", i);
        streams[i] = (struct stream){.run_id = trace_writer_run_id(builder->writer),
                                     .returns = thread.returns,
                                     .call_sites = thread.call_sites};
        must(trace_writer_thread(builder->writer, &thread, &streams[i].writer, &err), &err);
    }
}

/* Thread ids are known from the catalog, once a flush has committed it. */
static void find_thread_ids(struct builder *builder, struct stream *streams, struct tracestore *store)
{
    for (int i = 0; i < builder->options->threads; i++) {
        sqlite3_stmt *statement;
        char sql[128];

        snprintf(sql, sizeof(sql), "SELECT thread_id FROM threads WHERE run_id = %lld AND label = '0.%d'",
                 (long long)streams[i].run_id, i);
        sqlite3_prepare_v2(tracestore_db(store), sql, -1, &statement, NULL);
        cr_assert_eq(sqlite3_step(statement), SQLITE_ROW);
        streams[i].thread_id = sqlite3_column_int64(statement, 0);
        sqlite3_finalize(statement);
    }
}

static void write_functions(struct builder *builder)
{
    static const struct trace_image_description image = {"/bin/model", "", "main"};
    struct error err = {0};
    int64_t image_id;

    must(trace_writer_image(builder->writer, &image, &image_id, &err), &err);
    for (int i = 0; i < 12; i++) {
        char name[16], demangled[24];
        struct trace_function_description function = {.name = name, .address = 0x1000u + 16u * (unsigned)i};

        snprintf(name, sizeof(name), "f%d", i);
        snprintf(demangled, sizeof(demangled), "people::f%d()", i);
        function.demangled = i % 3 ? NULL : demangled;
        must(trace_writer_function(builder->writer, image_id, &function, &builder->model->functions[i], &err),
             &err);
    }
    for (uint32_t i = 0; i < 24; i++) {
        const struct trace_call_site_description site = {.image_id = image_id,
                                                         .address = 0x1000 + 16 * (i / 2) + 4 + i % 2,
                                                         .function_id = builder->model->functions[i / 2],
                                                         .file = i % 4 ? "model.c" : NULL,
                                                         .line = i % 4 ? 10 + (int)i : 0};

        must(trace_writer_call_site(builder->writer, &site, &builder->model->sites[i], &err), &err);
    }
}

static void write_run(struct builder *builder, struct tracestore *store, bool end)
{
    struct trace_run_description run = {"model", "model", "", builder->now};
    struct trace_writer_options options = {.segment_events = builder->options->segment_events};
    struct trace_process_description process = {1, 0, -1, "/bin/model", "model", builder->now};
    struct stream *streams = calloc((size_t)builder->options->threads, sizeof(*streams));
    struct error err = {0};
    int64_t process_id;

    builder->ended = end;
    must(trace_writer_begin(store, &run, &options, &builder->writer, &err), &err);
    write_functions(builder);
    must(trace_writer_process(builder->writer, &process, &process_id, &err), &err);
    begin_streams(builder, streams, process_id);
    must(trace_writer_flush(builder->writer, builder->now, &err), &err);
    find_thread_ids(builder, streams, store);
    for (int i = 0; i < builder->options->threads * builder->options->events; i++) {
        append_event(builder, &streams[model_random(builder->model, (uint32_t)builder->options->threads)]);
        if (model_random(builder->model, 400) == 0)
            must(trace_writer_flush(builder->writer, builder->now, &err), &err);
    }
    must(trace_writer_flush(builder->writer, ++builder->now, &err), &err);
    for (int i = 0; i < builder->options->threads; i++)
        expect_open_calls(builder, &streams[i]);
    if (end)
        must(trace_writer_end(builder->writer, ++builder->now, 0, &err), &err);
    trace_writer_free(builder->writer);
    free(streams);
}

/* ----------------------------------------------------------------------------------------- expected times */

/* Times are not what this model is about: it takes those of the event iterator, which has its own tests. */
static void copy_times(struct model *model)
{
    sqlite3_stmt *threads, *update;

    sqlite3_prepare_v2(model->db, "SELECT thread_id FROM threads", -1, &threads, NULL);
    sqlite3_prepare_v2(model->db,
                       "UPDATE x_events SET ns = ?1, ns_error = ?2 WHERE thread_id = ?3 AND seq = ?4", -1,
                       &update, NULL);
    while (sqlite3_step(threads) == SQLITE_ROW) {
        struct event_iter *iter;
        struct event event;
        struct error err = {0};

        must(event_iter_open(model->store, sqlite3_column_int64(threads, 0), 0, &iter, &err), &err);
        while (event_iter_next(iter, &event, &err) == 0) {
            if (!event.ns)
                continue;
            sqlite3_bind_int64(update, 1, (int64_t)event.ns);
            sqlite3_bind_int64(update, 2, (int64_t)event.ns_error);
            sqlite3_bind_int64(update, 3, sqlite3_column_int64(threads, 0));
            sqlite3_bind_int64(update, 4, (int64_t)event.seq);
            cr_assert_eq(sqlite3_step(update), SQLITE_DONE);
            sqlite3_reset(update);
        }
        event_iter_free(iter);
    }
    sqlite3_finalize(threads);
    sqlite3_finalize(update);
    exec(model->db,
         "UPDATE x_calls SET ns = (SELECT ns FROM x_events e WHERE e.thread_id = x_calls.thread_id "
         "AND e.seq = x_calls.seq);"
         "UPDATE x_calls SET (duration_ns, duration_min_ns, duration_max_ns) = "
         "(SELECT iif(c.ns_error = 0 AND e.ns_error = 0 AND NOT lossy, e.ns - c.ns, NULL), "
         "iif(lossy, 0 * (e.ns - c.ns), max(0, e.ns - c.ns - c.ns_error)), "
         "iif(e.ns_error < 9223372036854775807 - e.ns, e.ns + e.ns_error - c.ns, NULL) "
         "FROM x_events e, x_events c, (SELECT EXISTS (SELECT 1 FROM x_events l WHERE l.kind = 'lost' "
         "AND l.thread_id = x_calls.thread_id AND l.seq BETWEEN x_calls.seq AND x_calls.end_seq) AS lossy) "
         "WHERE e.thread_id = x_calls.thread_id AND e.seq = x_calls.end_seq "
         "AND c.thread_id = x_calls.thread_id AND c.seq = x_calls.seq)");
}

static void copy_expected(struct model *model, sqlite3 *from)
{
    static const char *const queries[] = {"SELECT * FROM x_events", "SELECT * FROM x_calls"};
    static const char *const inserts[] = {"INSERT INTO x_events VALUES(?,?,?,?,?,?,?,?,?,?)",
                                          "INSERT INTO x_calls VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"};

    for (int table = 0; table < 2; table++) {
        sqlite3_stmt *row, *insert;

        sqlite3_prepare_v2(from, queries[table], -1, &row, NULL);
        sqlite3_prepare_v2(model->db, inserts[table], -1, &insert, NULL);
        while (sqlite3_step(row) == SQLITE_ROW) {
            for (int i = 0; i < sqlite3_column_count(row); i++)
                sqlite3_bind_value(insert, i + 1, sqlite3_column_value(row, i));
            cr_assert_eq(sqlite3_step(insert), SQLITE_DONE);
            sqlite3_reset(insert);
        }
        sqlite3_finalize(row);
        sqlite3_finalize(insert);
    }
    exec(model->db,
         "UPDATE x_calls SET name = (SELECT coalesce(f.demangled, f.name) FROM functions f "
         "WHERE f.function_id = x_calls.function_id)");
}

static const char expected_tables[] =
    "CREATE TEMP TABLE x_events(run_id INTEGER, thread_id INTEGER, seq INTEGER, ns INTEGER, ns_error INTEGER,"
    " kind TEXT, function_id INTEGER, depth INTEGER, call_site INTEGER, assumed INTEGER);"
    "CREATE TEMP TABLE x_calls(run_id INTEGER, thread_id INTEGER, seq INTEGER, end_seq INTEGER,"
    " parent_seq INTEGER, function_id INTEGER, depth INTEGER, ns INTEGER, duration_ns INTEGER, state TEXT,"
    " call_site INTEGER, assumed INTEGER, duration_min_ns INTEGER, duration_max_ns INTEGER, name TEXT);"
    "CREATE INDEX temp.x_by_seq ON x_events(thread_id, seq)";

void model_init(struct model *model, const struct model_options *options)
{
    struct builder builder = {.model = model, .options = options, .now = 1000000};
    struct tracestore *store;
    struct error err = {0};
    int fd;

    *model = (struct model){.path = "/tmp/vtab-model-XXXXXX", .random = options->seed * 2654435761u + 1};
    fd = mkstemp(model->path);
    close(fd);
    unlink(model->path);
    must(tracestore_open(model->path, TRACESTORE_CREATE, &store, &err), &err);
    cr_assert_eq(sqlite3_open(":memory:", &builder.expected), SQLITE_OK);
    exec(builder.expected, expected_tables);
    exec(builder.expected, "BEGIN");
    for (int i = 0; i < options->runs; i++)
        write_run(&builder, store, !options->unfinished || i + 1 < options->runs);
    tracestore_free(store);
    must(tracestore_open(model->path, TRACESTORE_READ, &model->store, &err), &err);
    model->db = tracestore_db(model->store);
    exec(model->db, "PRAGMA query_only = 0"); /* the temporary tables below are ours */
    exec(model->db, expected_tables);
    copy_expected(model, builder.expected);
    sqlite3_close(builder.expected);
    if (options->times)
        copy_times(model);
}

void model_release(struct model *model)
{
    char path[80];

    tracestore_free(model->store);
    unlink(model->path);
    snprintf(path, sizeof(path), "%s-wal", model->path);
    unlink(path);
    snprintf(path, sizeof(path), "%s-shm", model->path);
    unlink(path);
}

char *model_rows(struct model *model, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    int r = sqlite3_prepare_v2(model->db, sql, -1, &statement, NULL);

    while (r == SQLITE_OK && (r = sqlite3_step(statement)) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(statement); i++) {
            const char *cell = (const char *)sqlite3_column_text(statement, i);

            fprintf(stream, "%s%s", i ? "|" : "", cell ? cell : "NULL");
        }
        fputc('\n', stream);
        r = SQLITE_OK;
    }
    if (r != SQLITE_DONE)
        fprintf(stream, "error: %s\n", sqlite3_errmsg(model->db));
    sqlite3_finalize(statement);
    fclose(stream);
    return text;
}

int64_t model_number(struct model *model, const char *sql)
{
    char *rows = model_rows(model, sql), *end;
    int64_t number = strtoll(rows, &end, 10);

    cr_assert(end != rows && *end == '\n', "%s: %s", sql, rows);
    free(rows);
    return number;
}
