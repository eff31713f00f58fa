/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What must happen before what, of events that are made up here. */
#include <criterion/criterion.h>

#include "analyzer/cascade/causes.h"

static struct cascade_trace trace;
static struct handlers handlers;
static struct causality causality;
static uint64_t now;

static void set_up(void)
{
    uint32_t number;

    cr_assert_eq(
        cascade_trace_process(&trace, &(struct trace_process){.label = "0", .exe = "", .pid = 1}, &number),
        0);
}

static void tear_down(void)
{
    causality_release(&causality);
    handlers_release(&handlers);
    cascade_trace_release(&trace);
}

TestSuite(causes, .init = set_up, .fini = tear_down);

/* Appends an event of process 0 and returns its number. */
static uint32_t say(uint32_t thread, enum sync_event_kind kind, enum sync_phase phase, uint64_t object)
{
    const struct process_event event = {.ns = ++now,
                                        .object = object,
                                        .other = kind == SYNC_ENQUEUE ? 2 : 1,
                                        .thread = thread,
                                        .kind = (uint8_t)kind,
                                        .phase = (uint8_t)phase};

    cr_assert_eq(cascade_trace_append(&trace, 0, &event), 0);
    return (uint32_t)trace.count - 1;
}

static void find(void)
{
    cr_assert_eq(handlers_find(&trace, &handlers), 0);
    cr_assert_eq(causality_find(&trace, &handlers, &causality), 0);
}

/* A thread that was there before the recording and is first seen with a handler: what that does is not before
 * the handlers of others' events. */
Test(causes, handlers_of_a_thread_that_was_there_before)
{
    uint32_t first, inside, second;

    say(1, SYNC_ENQUEUE, SYNC_AT, 0x10);
    say(2, SYNC_ENQUEUE, SYNC_AT, 0x20);
    first = say(0, SYNC_HANDLER, SYNC_BEGIN, 0x10);
    inside = say(0, SYNC_MUTEX_LOCK, SYNC_BEGIN, 0x1000);
    say(0, SYNC_MUTEX_UNLOCK, SYNC_AT, 0x1000);
    say(0, SYNC_HANDLER, SYNC_END, 0);
    second = say(0, SYNC_HANDLER, SYNC_BEGIN, 0x20);
    find();
    cr_expect(event_before(&causality, first, inside));
    cr_expect_not(event_before(&causality, inside, second));
    cr_expect_not(event_before(&causality, second, inside));
}

/* The same address is queued again and again: each handler comes after its own event. */
Test(causes, an_object_is_used_again)
{
    uint32_t queued[3], handled[3];

    for (int i = 0; i < 3; i++) {
        queued[i] = say(1, SYNC_ENQUEUE, SYNC_AT, 0x10);
        handled[i] = say(0, SYNC_HANDLER, SYNC_BEGIN, 0x10);
        say(0, SYNC_HANDLER, SYNC_END, 0);
    }
    find();
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            cr_expect_eq(event_before(&causality, queued[i], handled[j]), i <= j, "%d, %d", i, j);
}
