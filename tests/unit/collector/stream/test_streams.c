/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From wire records to stored events, without a kernel: the records are made here, the store is a real one,
 * and the image table is replaced by one whose probe N is function "fN". */
#include <criterion/criterion.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "bpf/wire.h"
#include "collector/stream/streams.h"
#include "tests/unit/collector/stream/fake_images.h"

#define TOP 0x7ffd00001000u
#define MS 1000000u

static struct {
    char path[64];
    struct tracestore *store;
    struct trace_writer *writer;
    struct streams *streams;
    struct traced_image image;
    struct wire_losses pending[2000];
    struct plan plan;
    int rank;
    uint64_t ns;
} world;

/* As the recorder does. */
static void begin_program(pid_t pid)
{
    struct stream_program program = {
        .image = &world.image, .exe = strdup("/bin/test"), .argv = strdup("test"), .rank = world.rank};
    const struct stream_code code = {.start = 0x1000, .end = 0x2000, .image = &world.image};
    struct error err = {0};

    cr_assert_eq(streams_set_program(world.streams, pid, &program, &err), 0, "%s", err.message);
    cr_assert_eq(streams_set_code(world.streams, pid, &code, 1, &err), 0, "%s", err.message);
}

static struct wire_losses consume_losses(struct life_cycle_source *source, uint32_t tid)
{
    struct wire_losses lost = world.pending[tid];

    (void)source;
    world.pending[tid] = (struct wire_losses){.calls = 0, .returns = 0};
    return lost;
}

static const struct life_cycle_operations source_operations = {.consume_losses = consume_losses};
static struct life_cycle_source source = {&source_operations};

static void begin(void)
{
    const struct stream_options options = {
        .times = STREAM_TIMES_ANCHOR,
        .source = &source,
    };
    const struct trace_run_description run = {.name = "t", .command = "test", .options = "", .started_ns = 1};
    struct error err = {0};

    memset(&world, 0, sizeof(world));
    world.ns = 1000 * MS;
    world.rank = -1;
    world.image.returns = TRACE_RETURNS_PROBED;
    world.image.plan = &world.plan;
    world.image.entry_function = 0;
    world.image.main_function = 9;
    snprintf(world.path, sizeof(world.path), "/tmp/test_streams_%d.db", (int)getpid());
    unlink(world.path);
    cr_assert_eq(tracestore_open(world.path, TRACESTORE_CREATE, &world.store, &err), 0, "%s", err.message);
    cr_assert_eq(trace_writer_begin(world.store, &run, NULL, &world.writer, &err), 0, "%s", err.message);
    cr_assert_eq(streams_new(&options, NULL, world.writer, &world.streams, &err), 0, "%s", err.message);
}

static void end(void)
{
    char side[80];

    streams_free(world.streams);
    trace_writer_free(world.writer);
    tracestore_free(world.store);
    unlink(world.path);
    snprintf(side, sizeof(side), "%s-wal", world.path);
    unlink(side);
    snprintf(side, sizeof(side), "%s-shm", world.path);
    unlink(side);
}

TestSuite(streams, .init = begin, .fini = end);

static void handle(const void *record, size_t size)
{
    int r = streams_handle(world.streams, record, size);

    cr_assert_eq(r, 0, "%s", streams_error(world.streams)->message);
}

static void call_at(uint32_t tid, uint64_t sp, uint32_t function, enum wire_kind kind)
{
    const struct wire_call record = {
        .header = {.kind = (__u8)kind, .sp_high = (__u16)(sp >> 32), .tid = tid, .ns = world.ns += 10},
        .sp_low = (__u32)sp,
        .function = function,
    };

    handle(&record, sizeof(record));
}

static void call(uint32_t tid, uint64_t sp, uint32_t function)
{
    call_at(tid, sp, function, WIRE_CALL);
}

static void ret(uint32_t tid, uint64_t sp)
{
    call_at(tid, sp + 8, 0, WIRE_RETURN);
}

static void process_begins(pid_t pid)
{
    const struct wire_exec exec = {.header = {.kind = WIRE_EXEC, .tid = (__u32)pid, .ns = world.ns},
                                   .old_tid = (__u32)pid};
    struct error err = {0};

    cr_assert_eq(streams_add_process(world.streams, pid, &pid, 1, &err), 0);
    handle(&exec, sizeof(exec));
    begin_program((pid_t)exec.header.tid);
}

static void forks(uint32_t parent, uint32_t tgid, uint32_t tid)
{
    const struct wire_fork fork = {.header = {.kind = WIRE_FORK, .tid = tid, .ns = world.ns},
                                   .tgid = tgid,
                                   .parent_tid = parent,
                                   .parent_tgid = parent};

    handle(&fork, sizeof(fork));
}

static void exits(uint32_t tgid, uint32_t tid, bool last, uint32_t code)
{
    const struct wire_exit record = {
        .header = {.kind = WIRE_EXIT, .flags = last ? WIRE_LAST_THREAD : 0, .tid = tid, .ns = world.ns},
        .tgid = tgid,
        .exit_code = code,
    };

    handle(&record, sizeof(record));
}

/* The run as text, one thread after the other: "0.0: f1( f2( ) ! ?f3( ) ) | ", with ? before a call whose
 * nesting is assumed. */
static char *told(void)
{
    struct tracestore_function *functions;
    struct tracestore_thread *threads;
    size_t function_count, thread_count, size;
    struct error err = {0};
    char *text = NULL;
    FILE *out = open_memstream(&text, &size);

    cr_assert_eq(trace_writer_end(world.writer, 5, 0, &err), 0, "%s", err.message);
    cr_assert_eq(
        tracestore_threads(world.store, trace_writer_run_id(world.writer), &threads, &thread_count, &err), 0,
        "%s", err.message);
    cr_assert_eq(tracestore_functions(world.store, trace_writer_run_id(world.writer), &functions,
                                      &function_count, &err),
                 0, "%s", err.message);
    for (size_t t = 0; t < thread_count; t++) {
        struct event_iter *iter;
        struct event event;

        fprintf(out, "%s%s:", t ? " | " : "", threads[t].label);
        cr_assert_eq(event_iter_open(world.store, threads[t].thread_id, 0, &iter, &err), 0);
        while (!event_iter_next(iter, &event, &err)) {
            const char *name = "?";

            for (size_t f = 0; f < function_count; f++)
                if (functions[f].function_id == event.function)
                    name = functions[f].name;
            if (event.kind == EVENT_CALL)
                fprintf(out, " %s%s(", event.assumed ? "?" : "", name);
            else
                fputs(event.kind == EVENT_RETURN ? " )" : " !", out);
        }
        event_iter_free(iter);
    }
    fclose(out);
    tracestore_threads_free(threads, thread_count);
    tracestore_functions_free(functions, function_count);
    return text;
}

static void expect(const char *text)
{
    char *is = told();

    cr_assert_str_eq(is, text);
    free(is);
}

Test(streams, calls_and_returns_of_two_threads)
{
    process_begins(100);
    forks(100, 100, 101);
    call(100, TOP, 1);
    call(101, TOP - 90000, 2);
    call(100, TOP - 100, 3);
    ret(101, TOP - 90000);
    ret(100, TOP - 100);
    ret(100, TOP);
    expect("0.0: f1( f3( ) ) | 0.1: f2( )");
}

Test(streams, threads_are_numbered_by_creation_and_only_those_with_events_are_stored)
{
    process_begins(100);
    forks(100, 100, 101);
    forks(100, 100, 102);
    call(102, TOP, 1);
    expect("0.2: f1(");
}

/* What a query that gives one text says of the store once the recording has ended. */
static void same(const char *wanted, const char *query)
{
    sqlite3_stmt *statement;
    sqlite3 *db;

    cr_assert_eq(sqlite3_open_v2(world.path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    cr_assert_eq(sqlite3_prepare_v2(db, query, -1, &statement, NULL), SQLITE_OK, "%s", sqlite3_errmsg(db));
    cr_assert_eq(sqlite3_step(statement), SQLITE_ROW);
    cr_assert_str_eq((const char *)sqlite3_column_text(statement, 0), wanted);
    sqlite3_finalize(statement);
    sqlite3_close(db);
}

Test(streams, processes_are_numbered_by_creation_whichever_calls_first)
{
    process_begins(100);
    forks(100, 200, 200);
    forks(100, 300, 300);
    forks(200, 400, 400); /* while its parent forks */
    forks(100, 500, 500); /* never calls anything */
    forks(100, 600, 600);
    call(600, TOP, 6);
    call(400, TOP, 4);
    call(300, TOP, 3);
    call(200, TOP, 2);
    call(100, TOP, 1);
    expect("0.0: f1( | 1.0: f2( | 2.0: f3( | 3.0: f4( | 5.0: f6(");
}

/* Inline calls are read behind the records of the kernel side. */
Test(streams, parents_are_stored_before_their_children)
{
    process_begins(100);
    forks(100, 200, 200);
    forks(200, 300, 300);
    call(300, TOP, 3);
    call(100, TOP, 1);
    expect("0.0: f1( | 2.0: f3(");
    same("100<0 200<1 300<2",
         "SELECT group_concat(pid || '<' || coalesce(parent_process_id, 0), ' ')"
         " FROM (SELECT * FROM processes ORDER BY process_id)");
}

Test(streams, a_pid_that_comes_round_again_is_a_new_process)
{
    process_begins(100);
    forks(100, 200, 200);
    call(200, TOP, 1);
    exits(200, 200, true, 0);
    forks(100, 200, 200);
    call(200, TOP, 2);
    expect("1.0: f1( | 2.0: f2(");
}

Test(streams, a_thread_has_the_name_that_it_ends_with)
{
    struct wire_exit record = {
        .header = {.kind = WIRE_EXIT, .tid = 101, .ns = 1500 * MS}, .tgid = 100, .comm = "a short-lived 1"};

    process_begins(100);
    forks(100, 100, 101);
    call(101, TOP, 1);
    memcpy(record.comm, "sixteen letters!", sizeof(record.comm));
    handle(&record, sizeof(record));
    expect("0.1: f1(");
    same("sixteen letters!", "SELECT name FROM threads");
}

Test(streams, no_call_comes_before_its_thread)
{
    world.ns = 5000 * MS;
    process_begins(100);
    forks(100, 100, 101);
    world.ns = 4990 * MS; /* when the tick of an inline call began */
    call(101, TOP, 1);
    expect("0.1: f1(");
    same("1", "SELECT first_ns >= started_ns FROM threads JOIN segments USING (thread_id)");
}

Test(streams, inferred_returns_balance)
{
    process_begins(100);
    call(100, TOP, 1);
    call(100, TOP - 100, 2);
    call(100, TOP - 200, 3);
    call(100, TOP - 100, 4);
    ret(100, TOP);
    expect("0.0: f1( f2( f3( ) ) f4( ) )");
}

static void call_from_with(uint32_t tid, uint64_t sp, uint32_t function, uint64_t return_address,
                           uint8_t flags)
{
    const struct wire_call_from record = {
        .call = {.header = {.kind = WIRE_CALL_FROM,
                            .flags = flags,
                            .sp_high = (__u16)(sp >> 32),
                            .tid = tid,
                            .ns = world.ns += 10},
                 .sp_low = (__u32)sp,
                 .function = function},
        .return_address = return_address,
    };

    handle(&record, sizeof(record));
}

static void call_from(uint32_t tid, uint64_t sp, uint32_t function, uint64_t return_address)
{
    call_from_with(tid, sp, function, return_address, 0);
}

/* Of a function without a return probe. */
static void unseen(uint32_t tid, uint64_t sp, uint32_t function, uint64_t return_address)
{
    call_from_with(tid, sp, function, return_address, WIRE_RETURN_UNSEEN);
}

Test(streams, a_call_out_of_a_known_caller_closes_what_that_caller_called_before)
{
    process_begins(100);
    call_from(100, TOP, 1, 0x500000);
    call_from(100, TOP - 100, 2, 0x1010 + 5); /* out of f1 */
    call_from(100, TOP - 150, 3, 0x1010 + 9); /* out of f1 again, from deeper down */
    expect("0.0: f1( f2( ) f3(");
}

Test(streams, calls_out_of_untraced_code_are_assumed_to_be_inside_what_is_open)
{
    process_begins(100);
    unseen(100, TOP, 0, 1);                   /* _start */
    unseen(100, TOP - 100, 9, 0x500000);      /* main */
    unseen(100, TOP - 200, 2, 0x1090 + 5);    /* out of main */
    unseen(100, TOP - 300, 3, 0x500000);      /* out of a library */
    unseen(100, TOP - 400, 4, 0x1030 + 5);    /* out of f3 */
    call_from(100, TOP - 500, 5, 0x1040 + 5); /* out of f4, with a return probe */
    unseen(100, TOP - 600, 6, 0x500000);      /* out of a library */
    ret(100, TOP - 500);
    expect("0.0: f0( f9( f2( ?f3( f4( f5( f6( ) )");
}

Test(streams, main_is_called_when_all_constructors_have_returned)
{
    process_begins(100);
    call_from(100, TOP, 0, 1); /* _start */
    call_from(100, TOP - 100, 4, 0x500000);
    call_from(100, TOP - 200, 9, 0x500000); /* main, from deeper down */
    expect("0.0: f0( f4( ) f9(");
}

Test(streams, returns_of_calls_from_before_are_counted_not_stored)
{
    process_begins(100);
    ret(100, TOP);
    call(100, TOP, 1);
    ret(100, TOP);
    ret(100, TOP + 100);
    cr_assert_eq(streams_counts(world.streams).unmatched_returns, 2);
    expect("0.0: f1( )");
}

Test(streams, a_loss_stands_where_it_happened)
{
    const struct wire_lost lost = {
        .header = {.kind = WIRE_LOST, .tid = 100, .ns = 2000 * MS}, .calls = 3, .returns = 2};
    struct tracestore_totals totals;
    struct error err = {0};

    process_begins(100);
    call(100, TOP, 1);
    handle(&lost, sizeof(lost));
    call(100, TOP - 100, 2);
    expect("0.0: f1( ! f2(");
    cr_assert_eq(tracestore_run_totals(world.store, trace_writer_run_id(world.writer), &totals, &err), 0);
    cr_assert_eq(totals.lost, 5);
}

Test(streams, losses_that_a_thread_could_not_report_come_at_its_end)
{
    process_begins(100);
    call(100, TOP, 1);
    world.pending[100] = (struct wire_losses){.calls = 4, .returns = 0};
    exits(100, 100, true, 0);
    expect("0.0: f1( !");
}

Test(streams, losses_of_threads_that_live_on_come_at_the_end_of_the_recording)
{
    struct error err = {0};

    process_begins(100);
    world.pending[100] = (struct wire_losses){.calls = 0, .returns = 4};
    cr_assert_eq(streams_resolve(world.streams, NULL, &err), 0);
    expect("0.0: !");
}

Test(streams, a_forked_child_is_a_process_of_its_own)
{
    process_begins(100);
    call(100, TOP, 1);
    forks(100, 200, 200);
    call(200, TOP - 100, 2);
    ret(200, TOP - 100);
    ret(200, TOP); /* of f1, which the parent called */
    ret(100, TOP);
    expect("0.0: f1( ) | 1.0: f2( )");
}

static void execs(uint32_t pid, uint32_t old_tid)
{
    const struct wire_exec exec = {.header = {.kind = WIRE_EXEC, .tid = pid, .ns = 2000 * MS},
                                   .old_tid = old_tid};

    handle(&exec, sizeof(exec));
    begin_program((pid_t)exec.header.tid);
}

Test(streams, a_new_program_runs_inside_the_calls_that_never_return)
{
    process_begins(100);
    call(100, TOP - 5000, 1);
    execs(100, 100);
    call(100, TOP, 2); /* above f1's frame, which is gone */
    call(100, TOP - 100, 3);
    ret(100, TOP - 100);
    ret(100, TOP);
    expect("0.0: f1( f2( f3( ) )");
}

Test(streams, a_new_program_inside_a_call_that_may_have_returned)
{
    process_begins(100);
    unseen(100, TOP - 5000, 1, 0x500000);
    execs(100, 100);
    call(100, TOP, 2);
    call(100, TOP - 100, 3);
    expect("0.0: f1( ?f2( f3(");
}

/* What was open before is not on the stack that can be looked at. */
Test(streams, a_new_program_settles_nothing_of_the_old_one)
{
    struct tracestore_thread *threads;
    size_t count;

    process_begins(100);
    unseen(100, TOP - 5000, 1, 0x500000);
    execs(100, 100);
    call(100, TOP, 2);
    exits(100, 100, true, 0);
    expect("0.0: f1( ?f2(");
    cr_assert_eq(tracestore_threads(world.store, trace_writer_run_id(world.writer), &threads, &count, NULL),
                 0);
    cr_assert_eq(threads[0].returns, TRACE_RETURNS_INFERRED);
    tracestore_threads_free(threads, count);
}

Test(streams, a_thread_that_execs_becomes_the_main_thread)
{
    process_begins(100);
    forks(100, 100, 101);
    call(100, TOP, 1);
    call(101, TOP - 90000, 2);
    execs(100, 101);
    call(100, TOP, 3);
    expect("0.0: f1( | 0.1: f2( f3(");
}

Test(streams, a_process_that_gets_a_rank_by_exec_gets_its_number)
{
    process_begins(100);
    process_begins(200);
    call(100, TOP, 1);
    call(200, TOP, 2);
    world.rank = 5;
    execs(200, 200);
    call(200, TOP, 3);
    forks(100, 300, 300);
    call(300, TOP, 4);
    expect("0.0: f1( | 1.0: f4( | 5.0: f2( f3(");
}

Test(streams, a_program_that_recorded_nothing_before_exec_takes_no_label)
{
    process_begins(100);
    execs(100, 100);
    call(100, TOP, 2);
    expect("0.0: f2(");
}

Test(streams, a_tid_that_comes_round_again_is_a_new_thread)
{
    process_begins(100);
    forks(100, 100, 101);
    call(101, TOP, 1);
    exits(100, 101, false, 0);
    forks(100, 100, 101);
    call(101, TOP, 2);
    expect("0.1: f1( | 0.2: f2(");
}

static void takes_rank(uint32_t pid, int rank)
{
    struct stream_program program = {
        .image = &world.image, .rank = rank, .exe = strdup("/bin/test"), .argv = strdup("test")};
    struct error err = {0};

    streams_set_program(world.streams, pid, &program, &err);
}

Test(streams, ranks_name_processes)
{
    process_begins(100);
    process_begins(200);
    takes_rank(200, 5);
    call(200, TOP, 1);
    call(100, TOP, 2);
    expect("0.0: f2( | 5.0: f1(");
}

Test(streams, a_rank_displaces_a_process_without_one)
{
    process_begins(100);
    process_begins(200);
    takes_rank(200, 0);
    call(100, TOP, 1);
    call(200, TOP, 2);
    forks(100, 100, 101);
    call(101, TOP, 3);
    expect("0.0: f2( | 1.0: f1( | 1.1: f3(");
}

Test(streams, records_of_unknown_threads_are_counted)
{
    process_begins(100);
    call(777, TOP, 1);
    cr_assert_eq(streams_counts(world.streams).strays, 1);
}

Test(streams, malformed_records_are_refused)
{
    const struct wire_header bad = {.kind = 99, .tid = 1};
    const struct wire_header cut = {.kind = WIRE_EXIT, .tid = 1};

    cr_assert_lt(streams_handle(world.streams, &bad, sizeof(bad)), 0);
    cr_assert_lt(streams_handle(world.streams, &cut, sizeof(cut)), 0);
    cr_assert_lt(streams_handle(world.streams, &cut, 3), 0);
}

Test(streams, a_call_out_of_a_function_that_was_not_always_seen_tells_nothing)
{
    process_begins(100);
    call_from(100, TOP, 1, 0x500000);
    call_from(100, TOP - 100, 2, 0x1010 + 5); /* out of f1 */
    cr_assert_eq(streams_function_missed(world.streams, 1), 0);
    call_from(100, TOP - 150, 3, 0x1010 + 9); /* out of another f1, inside f2 */
    expect("0.0: f1( f2( f3(");
}

Test(streams, calls_inside_one_whose_return_probe_is_gone_are_assumed_to_be)
{
    const bool gone[] = {false, true};
    struct tracestore_thread *threads;
    struct error err = {0};
    size_t count;

    process_begins(100);
    call_from(100, TOP, 1, 0x500000);
    cr_assert_eq(streams_returns_unseen(world.streams, gone, 2, &err), 0);
    call_from(100, TOP - 100, 2, 0x500000);
    call_from(100, TOP - 200, 3, 0x500000);
    ret(100, TOP - 200);
    expect("0.0: f1( ?f2( f3( )");
    cr_assert_eq(tracestore_threads(world.store, trace_writer_run_id(world.writer), &threads, &count, &err),
                 0);
    cr_assert_eq(threads[0].returns, TRACE_RETURNS_INFERRED);
    tracestore_threads_free(threads, count);
}

Test(streams, processes_have_used_what_their_clocks_say)
{
    struct error err = {0};
    pid_t self = getpid();

    cr_assert_eq(streams_cpu_ns(world.streams), 0);
    cr_assert_eq(streams_add_process(world.streams, self, &self, 1, &err), 0);
    cr_assert_gt(streams_cpu_ns(world.streams), 0);
}
