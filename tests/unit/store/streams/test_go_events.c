/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "tests/unit/store/go_fixture.h"

#define COUNT 90000u

struct program {
    struct fixture fixture;
    struct process_writer *go;
    struct process_event *events;
};

/* The store has functions 1 to 30, and `events` name some of them. */
static void open_program(struct program *program)
{
    struct generator generator = {3};

    fixture_open(&program->fixture, NULL);
    fixture_functions(&program->fixture, 30);
    program->go = fixture_go_program(&program->fixture);
    program->events = calloc(COUNT, sizeof(*program->events));
    go_events_of_program(&generator, 6, program->events, COUNT);
}

static void close_program(struct program *program)
{
    free(program->events);
    fixture_close(&program->fixture);
}

static void append(struct program *program, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        cr_assert_eq(process_writer_append(program->go, &program->events[i]), 0);
}

static void flush(struct program *program)
{
    struct error err = {0};

    cr_assert_eq(trace_writer_flush(program->fixture.writer, 5000, &err), 0, "%s", err.message);
}

static void end(struct program *program)
{
    struct error err = {0};

    cr_assert_eq(trace_writer_end(program->fixture.writer, 6000, 0, &err), 0, "%s", err.message);
}

static void expect(struct program *program, size_t count)
{
    expect_go_events(program->fixture.store, program->fixture.process_id, program->events, count);
}

Test(go_events, all_come_back_at_every_flush)
{
    const size_t steps[] = {1, 2, 500, 3000, 30000, COUNT};
    struct program program;
    size_t at = 0;

    open_program(&program);
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        append(&program, at, steps[i]);
        at = steps[i];
        flush(&program);
        expect(&program, at);
    }
    end(&program);
    expect(&program, COUNT);
    close_program(&program);
}

/* Small segments are not left behind: what flushes write goes to one row until that is large. */
Test(go_events, small_flushes_share_a_segment)
{
    struct program program;

    open_program(&program);
    for (size_t at = 0; at < 2000; at += 50) {
        append(&program, at, at + 50);
        flush(&program);
    }
    cr_assert_eq(ask(tracestore_db(program.fixture.store), "SELECT count(*) FROM process_segments"), 1);
    expect(&program, 2000);
    close_program(&program);
}

/* A reader that is at the end of the last segment goes on when that has grown. */
Test(go_events, a_reader_follows_a_growing_segment)
{
    struct process_event_iter *iter = NULL;
    struct program program;
    struct process_event event;
    struct error err = {0};

    open_program(&program);
    cr_assert_eq(process_event_iter_open(program.fixture.store, PROCESS_STREAM_GO, program.fixture.process_id,
                                         &iter, &err),
                 0);
    for (size_t i = 0; i < 300; i++) {
        cr_assert_eq(process_event_iter_next(iter, &event, &err), 1);
        append(&program, i, i + 1);
        flush(&program);
        cr_assert_eq(process_event_iter_next(iter, &event, &err), 0);
        cr_assert(go_event_same(&event, &program.events[i]));
    }
    process_event_iter_free(iter);
    close_program(&program);
}

Test(go_events, time_does_not_go_back)
{
    struct program program;

    open_program(&program);
    program.events[1].ns = program.events[0].ns - 5;
    append(&program, 0, 2);
    end(&program);
    program.events[1].ns = program.events[0].ns;
    expect(&program, 2);
    close_program(&program);
}

Test(go_events, a_program_says_what_it_is)
{
    struct go_program *programs = NULL;
    struct program program;
    struct error err = {0};
    size_t count = 0;

    open_program(&program);
    append(&program, 0, 10);
    end(&program);
    cr_assert_eq(go_programs(program.fixture.store, 1, &programs, &count, &err), 0, "%s", err.message);
    cr_assert_eq(count, 1);
    cr_assert_eq(programs[0].process_id, program.fixture.process_id);
    cr_assert_eq(programs[0].run_id, 1);
    cr_assert_str_eq(programs[0].label, "0");
    cr_assert_str_eq(programs[0].version, "go1.22.12");
    cr_assert_str_eq(programs[0].image, "/bin/prog");
    cr_assert(programs[0].operations && programs[0].from_start);
    cr_assert_eq(programs[0].from_ns, 1000);
    cr_assert_eq(programs[0].events, 10);
    cr_assert_eq(programs[0].wait_reason_count, 20);
    cr_assert_str_eq(programs[0].wait_reasons[14], "chan receive");
    cr_assert_null(programs[0].wait_reasons[13]);
    go_programs_free(programs, count);
    cr_assert_eq(go_programs(program.fixture.store, 2, &programs, &count, &err), 0);
    cr_assert_eq(count, 0);
    close_program(&program);
}

Test(go_events, a_damaged_segment_is_passed)
{
    struct process_event_iter *iter = NULL;
    struct program program;
    struct error err = {0};
    struct process_event event;
    uint64_t behind, count = 0;

    open_program(&program);
    append(&program, 0, COUNT);
    end(&program);
    behind = (uint64_t)ask(tracestore_db(program.fixture.store),
                           "SELECT event_count FROM process_segments WHERE first_seq = 0");
    cr_assert(behind && behind < COUNT);
    run_sql(tracestore_db(program.fixture.store),
            "UPDATE process_segments SET checksum = 1 WHERE first_seq = 0");
    cr_assert_eq(process_event_iter_open(program.fixture.store, PROCESS_STREAM_GO, program.fixture.process_id,
                                         &iter, &err),
                 0);
    cr_assert_eq(process_event_iter_next(iter, &event, &err), -EBADMSG);
    while (process_event_iter_next(iter, &event, &err) == 0) {
        cr_assert_eq(process_event_iter_seq(iter), behind + count);
        cr_assert(go_event_same(&event, &program.events[behind + count++]));
    }
    cr_assert_eq(behind + count, COUNT);
    process_event_iter_free(iter);
    run_sql(tracestore_db(program.fixture.store), "DELETE FROM process_segments WHERE first_seq = 0");
    cr_assert_eq(process_event_iter_open(program.fixture.store, PROCESS_STREAM_GO, program.fixture.process_id,
                                         &iter, &err),
                 0);
    cr_assert_eq(process_event_iter_next(iter, &event, &err), -EBADMSG); /* a gap is told, too */
    cr_assert_eq(process_event_iter_next(iter, &event, &err), 0);
    cr_assert_eq(process_event_iter_seq(iter), behind);
    process_event_iter_free(iter);
    close_program(&program);
}

/* After a flush that failed, nothing is lost: the next one writes it. */
Test(go_events, a_failed_flush_is_made_again)
{
    struct program program;
    struct error err = {0};
    sqlite3 *other = NULL;

    open_program(&program);
    append(&program, 0, 400);
    flush(&program);
    append(&program, 400, 80000);
    sqlite3_busy_timeout(tracestore_db(program.fixture.store), 0);
    cr_assert_eq(sqlite3_open(program.fixture.path, &other), SQLITE_OK);
    run_sql(other, "BEGIN IMMEDIATE");
    cr_assert_eq(trace_writer_flush(program.fixture.writer, 5000, &err), -EBUSY);
    run_sql(other, "ROLLBACK");
    sqlite3_close(other);
    expect(&program, 400);
    flush(&program);
    expect(&program, 80000);
    cr_assert_eq(trace_writer_pending_bytes(program.fixture.writer), 0);
    close_program(&program);
}

/* ------------------------------------------------------------------------------------------ usages */

static const int case_lines[2] = {21, 0};
static const bool case_sends[2] = {true, false};
static const struct go_usage_description usages[3] = {
    {.function = "main.f", .file = "/b.go", .line = 7, .operation = GO_OP_MUTEX_LOCK, .standard = true},
    {.function = "main.g",
     .file = "/a.go",
     .line = 20,
     .operation = GO_OP_SELECT,
     .blocks = true,
     .case_lines = case_lines,
     .case_sends = case_sends,
     .case_count = 2},
    {.function = "main.g", .file = "/a.go", .line = 9, .operation = GO_OP_CHAN_SEND},
};

static void write_usages(struct fixture *fixture)
{
    struct error err = {0};

    cr_assert_eq(trace_writer_go_usages(fixture->writer, fixture->image_id, usages, ARRAY_SIZE(usages), &err),
                 0, "%s", err.message);
}

static void expect_usages(struct fixture *fixture)
{
    struct go_usage_row *rows = NULL;
    struct error err = {0};
    size_t count = 0;

    cr_assert_eq(go_usage_rows(fixture->store, fixture->image_id, &rows, &count, &err), 0, "%s", err.message);
    cr_assert_eq(count, 3);
    cr_assert(rows[0].line == 9 && rows[1].line == 20 && rows[2].line == 7);
    cr_assert_str_eq(rows[1].function, "main.g");
    cr_assert_str_eq(rows[1].file, "/a.go");
    cr_assert(rows[1].blocks && !rows[0].blocks && rows[2].standard && !rows[1].standard);
    cr_assert_eq(rows[1].operation, GO_OP_SELECT);
    cr_assert_eq(rows[1].case_count, 2);
    cr_assert(rows[1].case_lines[0] == 21 && rows[1].case_lines[1] == 0);
    cr_assert(rows[1].case_sends[0] && !rows[1].case_sends[1]);
    cr_assert_eq(rows[0].case_count, 0);
    go_usage_rows_free(rows, count);
}

Test(go_usages, are_kept_once_for_an_image)
{
    struct fixture fixture;
    struct error err = {0};

    fixture_open(&fixture, NULL);
    write_usages(&fixture);
    write_usages(&fixture);
    cr_assert_eq(trace_writer_flush(fixture.writer, 5000, &err), 0, "%s", err.message);
    expect_usages(&fixture);
    write_usages(&fixture);
    cr_assert_eq(trace_writer_end(fixture.writer, 6000, 0, &err), 0, "%s", err.message);
    expect_usages(&fixture);
    fixture_close(&fixture);
}
