/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "go_fixture.h"

#include <criterion/criterion.h>

#include "base/array.h"
#include "base/error.h"

/* ------------------------------------------------------------------------------------------ random events */

/* Small numbers mostly, now and then any. */
static uint64_t any_number(struct generator *generator)
{
    uint32_t roll = generator_below(generator, 10);

    return roll < 4 ? 0 : roll < 8 ? generator_below(generator, 50) : generator_next(generator);
}

struct process_event go_event_random(struct generator *generator, uint64_t ns)
{
    struct process_event event = {
        .ns = ns + generator_below(generator, 5000),
        .goroutine = any_number(generator),
        .other = any_number(generator),
        .object = any_number(generator),
        .value = (int64_t)any_number(generator),
        .site = (uint32_t)any_number(generator),
        .tid = (uint32_t)any_number(generator),
        .kind = (uint8_t)generator_below(generator, GO_EVENT_KINDS + 2),
        .operation = (uint8_t)any_number(generator),
        .flags = (uint8_t)any_number(generator),
    };

    if (event.kind == GO_EVENT_CREATE || event.kind == GO_EVENT_TEST)
        event.value = (uint32_t)event.value;
    return event;
}

/* ------------------------------------------------------------------------------------------ a program */

struct program {
    struct generator *generator;
    uint64_t ns;
    struct process_event *events;
    size_t count, limit;
};

/* A few hundred nanoseconds to a few microseconds later. */
static void emit(struct program *program, struct process_event event)
{
    program->ns += 300 + generator_below(program->generator, 4000);
    event.ns = program->ns;
    event.tid = 5000 + (uint32_t)(event.goroutine % 4);
    if (program->count < program->limit)
        program->events[program->count++] = event;
}

/* One turn of a producer (odd) or consumer (even) goroutine. */
static void take_turn(struct program *program, uint64_t goroutine)
{
    bool sends = goroutine & 1;
    uint64_t pair = goroutine / 2, channel = 0xc000100000 + pair * 96, mutex = 0xc000200000 + pair % 3 * 8;
    uint64_t partner = sends ? goroutine - 1 : goroutine + 1;
    struct process_event lock = {.kind = GO_EVENT_OPERATE,
                                 .goroutine = goroutine,
                                 .operation = GO_OP_MUTEX_LOCK,
                                 .object = mutex,
                                 .site = sends ? 11 : 21,
                                 .flags = GO_FLAG_DONE};
    struct process_event move = {.kind = GO_EVENT_OPERATE,
                                 .goroutine = goroutine,
                                 .operation = sends ? GO_OP_CHAN_SEND : GO_OP_CHAN_RECV,
                                 .object = channel,
                                 .site = sends ? 13 : 23};

    emit(program, lock);
    lock.operation = GO_OP_MUTEX_UNLOCK;
    lock.site++;
    emit(program, lock);
    emit(program, move);
    if (generator_below(program->generator, 3) == 0) {
        emit(program,
             (struct process_event){.kind = GO_EVENT_BLOCK, .goroutine = goroutine, .value = 14 + sends});
        emit(program,
             (struct process_event){.kind = GO_EVENT_WAKE, .goroutine = partner, .other = goroutine});
        emit(program, (struct process_event){.kind = GO_EVENT_RUN, .goroutine = goroutine});
    }
}

void go_events_of_program(struct generator *generator, unsigned pairs, struct process_event *events,
                          size_t count)
{
    struct program program = {generator, 1700000000000000000ull, events, 0, count};

    for (uint64_t goroutine = 2; goroutine < 2 + 2 * pairs; goroutine++)
        emit(&program, (struct process_event){.kind = GO_EVENT_CREATE,
                                              .goroutine = 1,
                                              .other = goroutine,
                                              .operation = GO_OP_GO,
                                              .site = 5,
                                              .value = goroutine & 1 ? 7 : 8});
    while (program.count < count)
        take_turn(&program, 2 + generator_below(generator, 2 * pairs));
}

/* ------------------------------------------------------------------------------------------ in a store */

bool go_event_same(const struct process_event *a, const struct process_event *b)
{
    return a->ns == b->ns && a->goroutine == b->goroutine && a->other == b->other && a->object == b->object &&
           a->value == b->value && a->site == b->site && a->tid == b->tid && a->kind == b->kind &&
           a->operation == b->operation && a->flags == b->flags;
}

struct process_writer *fixture_go_program(struct fixture *fixture)
{
    static const char *const reasons[] = {[14] = "chan receive", [15] = "chan send", [19] = "sleep"};
    const struct go_program_description program = {.process_id = fixture->process_id,
                                                   .image_id = fixture->image_id,
                                                   .version = "go1.22.12",
                                                   .operations = true,
                                                   .wait_reasons = reasons,
                                                   .wait_reason_count = ARRAY_SIZE(reasons),
                                                   .from_ns = 1000,
                                                   .from_start = true};
    struct process_writer *go = NULL;
    struct error err = {0};

    cr_assert_eq(trace_writer_go_program(fixture->writer, &program, &go, &err), 0, "%s", err.message);
    return go;
}

void expect_go_events(struct tracestore *store, int64_t process_id, const struct process_event *events,
                      size_t count)
{
    struct process_event_iter *iter = NULL;
    struct error err = {0};
    struct process_event event;

    cr_assert_eq(process_event_iter_open(store, PROCESS_STREAM_GO, process_id, &iter, &err), 0, "%s",
                 err.message);
    for (size_t i = 0; i < count; i++) {
        cr_assert_eq(process_event_iter_next(iter, &event, &err), 0, "event %zu: %s", i, err.message);
        cr_assert_eq(process_event_iter_seq(iter), i);
        cr_assert(go_event_same(&event, &events[i]), "event %zu is another one", i);
    }
    cr_assert_eq(process_event_iter_next(iter, &event, &err), 1);
    cr_assert_eq(process_event_iter_next(iter, &event, &err), 1);
    process_event_iter_free(iter);
}
