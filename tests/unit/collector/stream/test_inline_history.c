/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Records that are taken in stretches make the events that they make one by one, in a store that is read back. */
#include <criterion/criterion.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "bpf/wire.h"
#include "collector/stream/streams_private.h"
#include "store/segment/event_iter.h"
#include "store/segment/segment_counts.h"
#include "tests/unit/collector/stream/fake_images.h"
#include "tests/unit/collector/stream/made_records.h"

#define PID 70
#define MS 1000000u

/* One way into one store. */
struct recording {
    char path[64];
    struct tracestore *store;
    struct trace_writer *writer;
    struct streams *streams;
};

static struct wire_losses no_losses(struct life_cycle_source *source, uint32_t tid)
{
    (void)source;
    (void)tid;
    return (struct wire_losses){.calls = 0, .returns = 0};
}

static const struct life_cycle_operations source_operations = {.consume_losses = no_losses};
static struct life_cycle_source source = {&source_operations};
static struct plan plan;
static struct traced_image image = {
    .returns = TRACE_RETURNS_INFERRED, .plan = &plan, .entry_function = 0, .main_function = 99};

static struct traced_thread *thread_of(struct recording *recording)
{
    return registry_thread(&recording->streams->registry, PID);
}

static enum stream_times times = STREAM_TIMES_ANCHOR;

static void begin(struct recording *recording, const char *name, uint64_t segment_events)
{
    const struct stream_options options = {.times = times, .source = &source};
    const struct trace_run_description run = {.name = "t", .command = "test", .options = "", .started_ns = 1};
    const struct trace_writer_options limits = {.segment_events = segment_events};
    const struct stream_code code = {.start = 0x1000, .end = 0x2000, .image = &image};
    const struct wire_exec exec = {.header = {.kind = WIRE_EXEC, .tid = PID, .ns = MS}, .old_tid = PID};
    struct stream_program program = {.image = &image, .rank = -1};
    struct error err = {0};
    pid_t pid = PID;

    *recording = (struct recording){.store = NULL};
    snprintf(recording->path, sizeof(recording->path), "/tmp/test_history_%s_%d.db", name, (int)getpid());
    unlink(recording->path);
    cr_assert_eq(tracestore_open(recording->path, TRACESTORE_CREATE, &recording->store, &err), 0, "%s",
                 err.message);
    cr_assert_eq(trace_writer_begin(recording->store, &run, &limits, &recording->writer, &err), 0);
    cr_assert_eq(streams_new(&options, NULL, recording->writer, &recording->streams, &err), 0);
    cr_assert_eq(streams_add_process(recording->streams, PID, &pid, 1, &err), 0);
    cr_assert_eq(streams_handle(recording->streams, &exec, sizeof(exec)), 0);
    program.exe = strdup("/bin/test");
    program.argv = strdup("test");
    cr_assert_eq(streams_set_program(recording->streams, PID, &program, &err), 0);
    cr_assert_eq(streams_set_code(recording->streams, PID, &code, 1, &err), 0);
    recording->streams->to_realtime_ns = 0;
    thread_of(recording)->started_ns = 1;
}

static void end(struct recording *recording)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    char path[80];

    trace_writer_free(recording->writer);
    tracestore_free(recording->store);
    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
        snprintf(path, sizeof(path), "%s%s", recording->path, suffixes[i]);
        unlink(path);
    }
}

static void take(struct recording *recording, const struct agent_record *records, size_t count, uint64_t ns)
{
    cr_assert_eq(streams_inline_calls(recording->streams, PID, records, count, ns), 0, "%s",
                 streams_error(recording->streams)->message);
}

/* What comes between inline calls. */
static void disturb(struct recording *recording, uint32_t what, uint64_t sp, uint64_t ns)
{
    const struct wire_call call = {
        .header = {.kind = what == 0 ? WIRE_CALL : WIRE_RETURN,
                   .sp_high = (__u16)(sp >> 32),
                   .tid = PID,
                   .ns = ns},
        .sp_low = (__u32)sp,
        .function = 5,
    };
    struct error err = {0};

    if (what < 2)
        cr_assert_eq(streams_handle(recording->streams, &call, sizeof(call)), 0);
    else if (what == 2)
        cr_assert_eq(streams_inline_lost(recording->streams, PID, 7), 0);
    else if (what == 3)
        cr_assert_eq(streams_function_missed(recording->streams, (uint32_t)(sp / 16 % 7)), 0);
    else
        cr_assert_eq(trace_writer_flush(recording->writer, ns, &err), 0, "%s", err.message);
}

/* The process executes another program: the calls that are open never return. */
static void replace_program(struct recording *recording, uint64_t ns)
{
    const struct wire_exec exec = {.header = {.kind = WIRE_EXEC, .tid = PID, .ns = ns}, .old_tid = PID};
    const struct stream_code code = {.start = 0x1000, .end = 0x2000, .image = &image};
    struct stream_program program = {
        .image = &image, .exe = strdup("/bin/test"), .argv = strdup("test"), .rank = -1};
    struct error err = {0};

    cr_assert_eq(streams_handle(recording->streams, &exec, sizeof(exec)), 0);
    cr_assert_eq(streams_set_program(recording->streams, PID, &program, &err), 0);
    cr_assert_eq(streams_set_code(recording->streams, PID, &code, 1, &err), 0);
}

static struct event_iter *events_of(struct recording *recording)
{
    struct tracestore_thread *threads;
    struct event_iter *iter;
    struct error err = {0};
    size_t count;

    cr_assert_eq(trace_writer_end(recording->writer, UINT32_MAX, 0, &err), 0, "%s", err.message);
    cr_assert_eq(
        tracestore_threads(recording->store, trace_writer_run_id(recording->writer), &threads, &count, &err),
        0);
    cr_assert_eq(count, 1);
    cr_assert_eq(event_iter_open(recording->store, threads[0].thread_id, 0, &iter, &err), 0);
    tracestore_threads_free(threads, count);
    return iter;
}

/* How often the segments' lists say that each function was called. */
static void count_calls(const char *path, uint64_t counts[static 100])
{
    struct segment_counts segments;
    struct function_calls function;
    struct error err = {0};
    sqlite3 *db;

    memset(counts, 0, 100 * sizeof(*counts));
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    cr_assert_eq(segment_counts_open(&segments, db, COUNTS_OF_ALL, &err), 0);
    while (segment_counts_next(&segments, &function, &err) == 0)
        if (function.function < 100)
            counts[function.function] += function.calls;
    cr_assert_eq(err.code, 0, "%s", err.message);
    segment_counts_close(&segments);
    sqlite3_close(db);
}

static void expect_same_open(const struct event_iter *left, const struct event_iter *right)
{
    size_t depth, other_depth;
    const struct open_call *one = event_iter_open_calls(left, &depth);
    const struct open_call *other = event_iter_open_calls(right, &other_depth);

    cr_assert_eq(depth, other_depth);
    for (size_t i = 0; i < depth; i++) {
        cr_assert_eq(one[i].seq, other[i].seq);
        cr_assert_eq(one[i].ns, other[i].ns);
        cr_assert_eq(one[i].function, other[i].function);
        cr_assert_eq(one[i].assumed, other[i].assumed);
    }
}

/* Both stores say the same; returns how many events each has. */
static uint64_t expect_same(struct recording *a, struct recording *b, bool same_segments)
{
    struct event_iter *left = events_of(a), *right = events_of(b);
    uint64_t calls[100] = {0}, counts[2][100], events = 0;
    struct event one, other;
    struct error err = {0};
    int code;

    while ((code = event_iter_next(left, &one, &err)) == 0) {
        cr_assert_eq(event_iter_next(right, &other, &err), 0, "%s", err.message);
        cr_assert_eq(one.kind, other.kind, "event %llu", (unsigned long long)events);
        cr_assert_eq(one.function, other.function, "event %llu", (unsigned long long)events);
        cr_assert_eq(one.seq, other.seq);
        cr_assert_eq(one.ns, other.ns, "event %llu", (unsigned long long)events);
        if (same_segments) /* how late an event can have been is less well known at the end of some */
            cr_assert_eq(one.ns_error, other.ns_error, "event %llu", (unsigned long long)events);
        cr_assert_eq(one.assumed, other.assumed, "event %llu", (unsigned long long)events);
        if (one.kind == EVENT_CALL)
            calls[one.function]++;
        if (events++ % 97 == 0)
            expect_same_open(left, right);
    }
    cr_assert_eq(code, 1, "%s", err.message);
    cr_assert_eq(event_iter_next(right, &other, &err), 1);
    event_iter_free(left);
    event_iter_free(right);
    count_calls(a->path, counts[0]);
    count_calls(b->path, counts[1]);
    cr_assert_arr_eq(counts[0], counts[1], sizeof(counts[0]));
    cr_assert_arr_eq(counts[0], calls, sizeof(calls));
    return events;
}

/* Of some places the caller is known. */
static void place(struct agent_record *records, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t place = records[i].return_address;

        if (place % 5 < 4)
            records[i].return_address = 0x1005 + 16 * (place / 5 % 7);
    }
}

/* Some records become exits, of one of those before them: the same ones where records come again. */
static void add_exits(struct agent_record *records, size_t count)
{
    for (size_t i = 3; i < count; i++) {
        const struct agent_record *before = &records[i - 1];
        uint64_t chosen = agent_record_sp(before) / 16 + before->function * 5;

        if (chosen % 4 || (agent_record_is_exit(before) && agent_record_is_exit(before - 1)))
            continue;
        before -= chosen / 4 % 3;
        records[i].function = before->function | AGENT_EXIT;
        records[i].sp = (records[i].sp & ~AGENT_SP_MASK) | agent_record_sp(before);
    }
}

/* `steady`: few other events come between, and segments are long. Returns how many records came in stretches. */
static uint64_t compare(uint64_t seed, size_t count, uint32_t variety, bool steady, bool exits)
{
    struct generator generator = {seed};
    struct agent_record *records = make_records(&generator, count, variety);
    struct recording quick, plain;
    uint64_t ns = 2 * MS, served = 0;

    place(records, count);
    if (exits)
        add_exits(records, count);
    begin(&quick, "quick", steady ? 0 : 20000);
    begin(&plain, "plain", steady ? 0 : 20000);
    thread_of(&plain)->paths.rest = UINT32_MAX; /* each call is worked out */
    for (size_t i = 0, piece; i < count; i += piece) {
        uint64_t before = thread_of(&quick)->history.served;

        piece = 1 + below(&generator, below(&generator, 4) ? 3000 : 10);
        piece = piece < count - i ? piece : count - i;
        take(&quick, &records[i], piece, ns);
        take(&plain, &records[i], piece, ns);
        if (thread_of(&quick)->history.served > before)
            served += thread_of(&quick)->history.served - before;
        ns += below(&generator, 2) ? MS / 3 : 0;
        if (below(&generator, steady ? 50 : 4) == 0) {
            uint32_t what = below(&generator, 5);
            uint64_t sp = 90000 + 16 * (uint64_t)below(&generator, 600);

            disturb(&quick, what, sp, ns);
            disturb(&plain, what, sp, ns);
        }
        if (below(&generator, 100) == 0) {
            replace_program(&quick, ns);
            replace_program(&plain, ns);
        }
        cr_assert_leq(thread_of(&quick)->history.memory, (size_t)1 << 20);
    }
    cr_assert_eq(quick.streams->registry.paths_memory_left + thread_of(&quick)->history.memory +
                     thread_of(&quick)->paths.memory,
                 REGISTRY_PATHS_MEMORY);
    cr_assert_geq(expect_same(&quick, &plain, steady), exits ? count / 2 : count);
    streams_free(quick.streams);
    streams_free(plain.streams);
    end(&quick);
    end(&plain);
    free(records);
    return served;
}

Test(inline_history, stretches_make_the_events_of_their_records)
{
    for (uint64_t seed = 1; seed <= 3; seed++)
        for (uint32_t variety = 3; variety <= 300; variety *= 10) {
            cr_assert_gt(compare(seed, 100000, variety, true, false), 30000);
            compare(seed + 10, 100000, variety, false, false);
        }
}

Test(inline_history, exits_between_them_change_nothing)
{
    for (uint64_t seed = 21; seed <= 22; seed++)
        for (uint32_t variety = 3; variety <= 300; variety *= 10) {
            cr_assert_gt(compare(seed, 50000, variety, true, true), 5000);
            compare(seed + 10, 50000, variety, false, true);
        }
}

/* A call that ends where its function returns has both times of its own; not one of a function of which some calls
 * are not recorded, and not where times are those of ticks. */
Test(inline_history, an_exit_has_its_time)
{
    const struct agent_record records[] = {{1, 0, 1000},
                                           {2, 0, 900},
                                           {2 | AGENT_EXIT, 0, 900},
                                           {3, 0, 900},
                                           {3 | AGENT_EXIT, 0, 900},
                                           {1 | AGENT_EXIT, 0, 1000}};
    static const bool has_time[] = {true, true, true, true, false, true};

    for (times = STREAM_TIMES_ANCHOR; times <= STREAM_TIMES_FULL; times++) {
        struct recording recording;
        struct event_iter *events;
        struct event event;
        struct error err = {0};

        begin(&recording, "exits", 0);
        cr_assert_eq(streams_function_missed(recording.streams, 2), 0);
        for (size_t i = 0; i < ARRAY_SIZE(records); i++)
            take(&recording, &records[i], 1, (i + 2) * MS);
        cr_assert_eq(thread_of(&recording)->stack.depth, 0);
        events = events_of(&recording);
        for (size_t i = 0; i < ARRAY_SIZE(records); i++) {
            bool is_exit = agent_record_is_exit(&records[i]);

            cr_assert_eq(event_iter_next(events, &event, &err), 0, "%s", err.message);
            cr_assert_eq(event.kind, is_exit ? EVENT_RETURN : EVENT_CALL);
            if (times == STREAM_TIMES_FULL || !is_exit)
                cr_assert_eq(event.ns_error == 0, has_time[i], "event %zu", i);
            if (event.ns_error == 0)
                cr_assert_eq(event.ns, (i + 2) * MS, "event %zu", i);
            cr_assert(times == STREAM_TIMES_FULL || !is_exit || event.ns_error > 0, "event %zu", i);
        }
        event_iter_free(events);
        streams_free(recording.streams);
        end(&recording);
    }
    times = STREAM_TIMES_ANCHOR;
}

/* A record that differs in one bit ends a stretch. */
Test(inline_history, a_record_that_differs_is_another_one)
{
    struct generator generator = {5};
    struct agent_record *records = make_records(&generator, 60000, 30);
    struct recording quick, plain;

    for (size_t i = 30000; i < 60000; i++)
        records[i] = records[i % 500];
    for (size_t i = 31000; i < 60000; i += 777) {
        if (i % 3 == 0)
            records[i].sp ^= (uint64_t)1 << (4 + i % 40);
        else if (i % 3 == 1)
            records[i].return_address ^= 1u << i % 32;
        else
            records[i].function = records[i].function % 7 + 1;
    }
    begin(&quick, "quick", 0);
    begin(&plain, "plain", 0);
    thread_of(&plain)->paths.rest = UINT32_MAX;
    take(&quick, records, 60000, 2 * MS);
    take(&plain, records, 60000, 2 * MS);
    cr_assert_gt(thread_of(&quick)->history.served, 20000);
    expect_same(&quick, &plain, true);
    streams_free(quick.streams);
    streams_free(plain.streams);
    end(&quick);
    end(&plain);
    free(records);
}
