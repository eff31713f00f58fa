/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rows of a timeline. */
#include "analyzer/go/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"

DEFINE_CLEANUP(cleanup_iter, struct process_event_iter *, process_event_iter_free)

void go_timeline_release(struct go_timeline *timeline)
{
    free(timeline->columns);
    free(timeline->rows);
    *timeline = (struct go_timeline){0};
}

/* ------------------------------------------------------------------------------------------ repetition */

/* Whether rows tell the same, but for when. `heads`: they may stand for different repetitions. */
static bool same_row(const struct go_timeline_row *a, const struct go_timeline_row *b, bool heads)
{
    return a->goroutine == b->goroutine && a->other == b->other && a->object == b->object &&
           a->value == b->value && a->site == b->site && a->moment == b->moment &&
           a->operation == b->operation && a->flags == b->flags && a->blocked == b->blocked &&
           a->has_result == b->has_result && a->result == b->result && a->woken == b->woken &&
           (heads || (a->stretch == b->stretch && a->repeats == b->repeats));
}

/* Whether the `length` rows before row `end` are those before them once more. */
static bool repeats(const struct go_timeline *timeline, size_t end, size_t length)
{
    const struct go_timeline_row *second = &timeline->rows[end - length];
    const struct go_timeline_row *first = second - length;

    if ((first->stretch && first->stretch != length) || second->stretch)
        return false;
    for (size_t i = 0; i < length; i++)
        if (!same_row(&first[i], &second[i], i == 0))
            return false;
    return true;
}

/* Folds a stretch that ends before row `end`. */
static void fold(struct go_timeline *timeline, size_t end)
{
    for (size_t length = 1; length <= GO_TIMELINE_LONGEST && 2 * length <= end; length++) {
        struct go_timeline_row *second = &timeline->rows[end - length];
        struct go_timeline_row *first = second - length;

        if (!repeats(timeline, end, length))
            continue;
        first->repeats = first->stretch ? first->repeats + 1 : 2;
        first->stretch = (uint32_t)length;
        memmove(second, second + length, (timeline->row_count - end) * sizeof(*second));
        timeline->row_count -= length;
        return;
    }
}

/* Keeps the last rows, as many as are wanted; no part of a stretch. */
static void forget(struct go_timeline *timeline)
{
    size_t excess = timeline->row_count - timeline->most_rows;

    for (size_t i = excess > GO_TIMELINE_LONGEST ? excess - GO_TIMELINE_LONGEST : 0; i < excess; i++)
        if (i + timeline->rows[i].stretch > excess)
            excess = i + timeline->rows[i].stretch;
    timeline->earlier += excess;
    timeline->row_count -= excess;
    memmove(timeline->rows, timeline->rows + excess, timeline->row_count * sizeof(*timeline->rows));
}

static int append(struct go_timeline *timeline, const struct go_timeline_row *row)
{
    if (timeline->row_count >= 2 * timeline->most_rows)
        forget(timeline);
    if (array_reserve(&timeline->rows, &timeline->row_capacity, timeline->row_count + 1))
        return -ENOMEM;
    timeline->rows[timeline->row_count++] = *row;
    /* what the last row says may still grow */
    fold(timeline, timeline->row_count - 1);
    return 0;
}

/* ------------------------------------------------------------------------------------------ rows of events
 */

static struct go_timeline_column *own_column(const struct go_timeline *timeline, uint64_t goroutine)
{
    long at = go_timeline_column_of(timeline, goroutine);

    return at < 0 ? NULL : &timeline->columns[at];
}

/* The last row of all, if it is an operation that this goroutine is in; more may be said of it. */
static struct go_timeline_row *open_operation(struct go_timeline *timeline, uint64_t goroutine)
{
    const struct go_timeline_column *column = own_column(timeline, goroutine);
    struct go_timeline_row *row = timeline->row_count ? &timeline->rows[timeline->row_count - 1] : NULL;

    return row && column && !column->hidden && row->goroutine == goroutine &&
                   row->moment == GO_MOMENT_OPERATES
               ? row
               : NULL;
}

static struct go_timeline_row row_of(const struct process_event *event, enum go_moment moment)
{
    return (struct go_timeline_row){
        .ns = event->ns,
        .goroutine = event->goroutine,
        .site = event->site,
        .moment = (uint8_t)moment,
        .value = event->value,
    };
}

static int add_plain(struct go_timeline *timeline, const struct process_event *event, enum go_moment moment)
{
    struct go_timeline_row row = row_of(event, moment);

    return append(timeline, &row);
}

static int add_test(struct go_timeline *timeline, const struct process_event *event)
{
    struct go_timeline_row row = row_of(event, GO_MOMENT_TEST);

    row.site = (uint32_t)event->value;
    return append(timeline, &row);
}

/* Whether a site is in code that only serves itself: the runtime's, and package testing's if `testing`. */
static int is_foreign(const struct go_timeline *timeline, uint32_t site, bool testing, bool *ret_foreign)
{
    struct go_place place;
    int r = site ? timeline->places.find(timeline->places.context, site, &place) : 0;

    *ret_foreign =
        r == 0 && site &&
        (go_is_runtime(place.function) || (testing && go_role_of(place.function) >= GO_ROLE_TESTING));
    return r;
}

static int add_operation(struct go_timeline *timeline, const struct process_event *event)
{
    struct go_timeline_row row = row_of(event, GO_MOMENT_OPERATES);
    struct go_timeline_column *column = own_column(timeline, event->goroutine);
    bool foreign = false;
    int r;

    if ((event->flags & GO_FLAG_INNER) || event->operation == GO_OP_GO)
        return 0;
    column->case_sends = 0;
    column->operation = GO_OP_NONE;
    r = is_foreign(timeline, event->site, true, &foreign);
    column->hidden = foreign || event->operation == GO_OP_CHAN_MAKE;
    if (r < 0 || column->hidden)
        return r;
    if (!(event->flags & GO_FLAG_TRY))
        column->operation = event->operation;
    if (!column->first_site)
        column->first_site = event->site;
    row.operation = event->operation;
    row.flags = event->flags;
    row.object = event->object;
    return append(timeline, &row);
}

static int add_creation(struct go_timeline *timeline, const struct process_event *event)
{
    struct go_timeline_row row = row_of(event, GO_MOMENT_OPERATES);
    bool foreign = false;
    int r;

    if (!own_column(timeline, event->goroutine))
        return 0;
    r = is_foreign(timeline, event->site, false, &foreign);
    if (r < 0 || foreign)
        return r;
    row.operation = GO_OP_GO;
    row.other = event->other;
    return append(timeline, &row);
}

static void add_case(struct go_timeline *timeline, const struct process_event *event)
{
    if ((event->flags & GO_FLAG_SEND) && event->value >= 0 && event->value < 64)
        own_column(timeline, event->goroutine)->case_sends |= UINT64_C(1) << event->value;
}

/* The answer of an operation belongs to the last row of its goroutine. */
static void add_result(struct go_timeline *timeline, const struct process_event *event)
{
    for (size_t i = timeline->row_count; i-- > 0 && timeline->row_count - i <= GO_TIMELINE_LONGEST;) {
        struct go_timeline_row *row = &timeline->rows[i];

        if (row->goroutine != event->goroutine)
            continue;
        if (own_column(timeline, event->goroutine)->hidden || row->has_result ||
            (row->moment != GO_MOMENT_OPERATES && row->moment != GO_MOMENT_GOES_ON))
            return;
        row->has_result = true;
        row->result = event->value;
        if (row->moment == GO_MOMENT_GOES_ON)
            row->operation = event->operation;
        row->result_sends = event->value >= 0 && event->value < 64 &&
                            own_column(timeline, event->goroutine)->case_sends >> event->value & 1;
        return;
    }
}

/* Whether a stop is the program's own doing: for the runtime's purposes, goroutines stop anywhere. */
static bool is_own_stop(const struct go_timeline *timeline, const struct go_timeline_column *column,
                        int64_t reason)
{
    const struct go_program *program = timeline->program;
    enum go_wait wait = reason >= 0 && (uint64_t)reason < program->wait_reason_count
                            ? go_wait_of(program->wait_reasons[reason])
                            : GO_WAIT_OTHER;

    if (wait == GO_WAIT_NETWORK)
        return true;
    if (!program->operations)
        return go_wait_on_others(wait) || wait == GO_WAIT_SLEEP;
    return go_operation_waits(column->operation, wait);
}

static int add_stop(struct go_timeline *timeline, const struct process_event *event)
{
    struct go_timeline_row *row = open_operation(timeline, event->goroutine);
    struct go_timeline_column *column = own_column(timeline, event->goroutine);

    column->waits = is_own_stop(timeline, column, event->value);
    if (!column->waits)
        return 0;
    column->woken_by = 0;
    if (!row)
        return add_plain(timeline, event, GO_MOMENT_BLOCKS);
    row->blocked = true;
    return 0;
}

/* A goroutine that is not known to have waited only continues where it was. */
static int add_run(struct go_timeline *timeline, const struct process_event *event)
{
    struct go_timeline_column *column = own_column(timeline, event->goroutine);
    struct go_timeline_row row = row_of(event, GO_MOMENT_GOES_ON);
    bool waited = column->waits;

    column->waits = false;
    if (!column->begun) {
        column->begun = true;
        return column->created ? add_plain(timeline, event, GO_MOMENT_BEGINS) : 0;
    }
    if (!waited)
        return 0;
    row.other = column->woken_by;
    return append(timeline, &row);
}

static void add_wake(struct go_timeline *timeline, const struct process_event *event)
{
    struct go_timeline_row *row = open_operation(timeline, event->goroutine);
    long woken = go_timeline_column_of(timeline, event->other);

    if (woken >= 0)
        timeline->columns[woken].woken_by = event->goroutine;
    if (event->goroutine && row && !row->woken++)
        row->other = event->other;
}

/* An event of a goroutine that has a column. */
static int add_own(struct go_timeline *timeline, const struct process_event *event)
{
    switch (event->kind) {
    case GO_EVENT_RUN:
        return add_run(timeline, event);
    case GO_EVENT_OPERATE:
        return add_operation(timeline, event);
    case GO_EVENT_CASE:
        add_case(timeline, event);
        return 0;
    case GO_EVENT_RESULT:
        add_result(timeline, event);
        return 0;
    case GO_EVENT_BLOCK:
        return add_stop(timeline, event);
    case GO_EVENT_DELAY:
        return add_plain(timeline, event, GO_MOMENT_DELAYED);
    case GO_EVENT_TEST:
        return add_test(timeline, event);
    case GO_EVENT_PANIC:
        return add_plain(timeline, event, GO_MOMENT_PANICS);
    case GO_EVENT_END:
        return add_plain(timeline, event, GO_MOMENT_ENDS);
    default:
        return 0;
    }
}

int go_timeline_add(struct go_timeline *timeline, const struct process_event *event)
{
    struct go_timeline_column *created;

    if (!timeline->from_ns)
        timeline->from_ns = event->ns;
    switch (event->kind) {
    case GO_EVENT_CREATE:
        created = own_column(timeline, event->other);
        if (created)
            created->created = true;
        return add_creation(timeline, event);
    case GO_EVENT_WAKE:
        add_wake(timeline, event);
        return 0;
    case GO_EVENT_FATAL:
        return add_plain(timeline, event, GO_MOMENT_FATAL);
    case GO_EVENT_EXIT:
        return add_plain(timeline, event, GO_MOMENT_EXITS);
    case GO_EVENT_LOST:
        return add_plain(timeline, event, GO_MOMENT_MISSED);
    default:
        return own_column(timeline, event->goroutine) ? add_own(timeline, event) : 0;
    }
}

void go_timeline_end(struct go_timeline *timeline)
{
    fold(timeline, timeline->row_count);
    if (timeline->row_count > timeline->most_rows)
        forget(timeline);
}

/* ------------------------------------------------------------------------------------------ reading */

static int pass_over(struct tracestore *store, const struct go_program *program, struct go_timeline *timeline,
                     struct go_replay *replay, struct error *err)
{
    CLEANUP(cleanup_iter) struct process_event_iter *iter = NULL;
    struct process_event event;
    int r = process_event_iter_open(store, PROCESS_STREAM_GO, program->process_id, &iter, err);

    if (r < 0)
        return r;
    while ((r = process_event_iter_next(iter, &event, err)) == 0) {
        r = replay ? go_timeline_meet(timeline, replay, &event) : go_timeline_add(timeline, &event);
        if (r < 0)
            return error_set(err, r, NULL, "making the timeline of goroutines");
    }
    return r < 0 ? r : 0;
}

int go_timeline_read(struct tracestore *store, const struct go_program *program,
                     struct go_place_source places, struct go_replay *replay,
                     const struct go_verdict *verdict, const struct go_timeline_options *options,
                     struct go_timeline *ret_timeline, struct error *err)
{
    int r = go_timeline_begin(ret_timeline, program, places, replay, verdict, options);

    if (r < 0)
        return error_set(err, r, NULL, "making the timeline of goroutines");
    r = pass_over(store, program, ret_timeline, replay, err);
    if (!r)
        r = pass_over(store, program, ret_timeline, NULL, err);
    if (!r)
        go_timeline_end(ret_timeline);
    return r;
}
