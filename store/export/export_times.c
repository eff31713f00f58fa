/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>

#include "store/export/export_run.h"
#include "store/segment/event_iter.h"

#define STEP_NS 1000u /* between two events of a run without times */

int export_clock_open(struct export_clock *clock, const struct export_run *run,
                      const struct tracestore_thread *thread, uint64_t first_seq)
{
    const struct event_range range = {.first_seq = first_seq, .last_seq = UINT64_MAX, .no_sites = true};

    *clock = (struct export_clock){.origin_ns = run->origin_ns};
    if (!run->timed)
        return 0;
    if (thread->started_ns > clock->origin_ns)
        clock->origin_ns = thread->started_ns;
    return event_iter_open_db(tracestore_db(run->store), thread->thread_id, &range, &clock->ahead, run->err);
}

void export_clock_release(struct export_clock *clock)
{
    event_iter_free(clock->ahead);
    *clock = (struct export_clock){0};
}

/* Fetches the next event that runs ahead. What is damaged is reported by the iterator that follows. */
static int fetch(struct export_clock *clock, struct error *err)
{
    int r;

    do
        r = event_iter_next(clock->ahead, &clock->pending, err);
    while (r == -EBADMSG || r == -ENOTSUP);
    clock->has_pending = r == 0;
    clock->ended = r == 1;
    return r < 0 ? r : 0;
}

static void begin_group(struct export_clock *clock, const struct event *first)
{
    uint64_t until = first->ns + first->ns_error;

    clock->from_ns = first->ns > clock->last_ns ? first->ns : clock->last_ns;
    if (clock->from_ns < clock->origin_ns)
        clock->from_ns = clock->origin_ns;
    clock->span_ns = until > clock->from_ns ? until - clock->from_ns : 0;
    clock->count = clock->index = 0;
}

/* Counts the events that share the interval of `first`. */
static int next_group(struct export_clock *clock, const struct event *first, struct error *err)
{
    int r = 0;

    begin_group(clock, first);
    while (r == 0 && !clock->ended && (!clock->has_pending || clock->pending.seq < first->seq))
        r = fetch(clock, err);
    while (r == 0 && clock->has_pending && clock->pending.ns == first->ns &&
           clock->pending.ns_error == first->ns_error) {
        clock->count++;
        r = fetch(clock, err);
    }
    return r;
}

/* from + span * (index + 1) / (count + 1), where the product may not fit. An anchor itself has no span. */
static uint64_t interpolate(const struct export_clock *clock)
{
    const uint64_t steps = clock->count + 1, step = clock->index + 1;
    const uint64_t whole = clock->span_ns / steps, rest = clock->span_ns % steps;

    return clock->from_ns + whole * step + (uint64_t)((double)rest * (double)step / (double)steps);
}

int export_clock_place(struct export_clock *clock, const struct event *event, uint64_t *ret_ns,
                       struct error *err)
{
    uint64_t at;
    int r;

    if (!clock->ahead) {
        *ret_ns = clock->origin_ns + event->seq * STEP_NS;
        return 0;
    }
    if (clock->index >= clock->count) {
        r = next_group(clock, event, err);
        if (r < 0)
            return r;
    }
    if (!clock->count)
        clock->count = 1; /* the event is gone from under the one that runs ahead: the run was changed */
    at = interpolate(clock);
    clock->index++;
    if (at <= clock->last_ns)
        at = clock->last_ns + 1; /* more events than nanoseconds */
    *ret_ns = clock->last_ns = at;
    return 0;
}
