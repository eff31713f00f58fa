/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whose column a timeline has: the goroutines that matter. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/go/timeline.h"
#include "base/array.h"
#include "base/cleanup.h"

enum { MOST_ALIKE = 2, MOST_HOLDERS = 8 };

long go_timeline_column_of(const struct go_timeline *timeline, uint64_t goroutine)
{
    size_t low = 0, high = timeline->column_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (timeline->columns[middle].goroutine < goroutine)
            low = middle + 1;
        else
            high = middle;
    }
    return low < timeline->column_count && timeline->columns[low].goroutine == goroutine ? (long)low : -1;
}

static struct go_timeline_column describe(const struct go_goroutine *goroutine)
{
    const struct go_action *action = goroutine->state == GO_STATE_BLOCKED ? go_waiting_in(goroutine) : NULL;

    return (struct go_timeline_column){
        .goroutine = goroutine->goroutine,
        .parent = goroutine->parent,
        .function = goroutine->function,
        .created_at = goroutine->created_at,
        .state = goroutine->state,
        .wait_reason = goroutine->state == GO_STATE_BLOCKED ? goroutine->wait_reason : -1,
        .waits_at = action ? action->site : 0,
    };
}

/* Adds a column, unless it is there, or there is no room. */
static int add_column(struct go_timeline *timeline, const struct go_goroutine *goroutine)
{
    size_t at = timeline->column_count;

    if (!goroutine || goroutine->system || go_timeline_column_of(timeline, goroutine->goroutine) >= 0)
        return 0;
    if (timeline->column_count == timeline->most_columns)
        return 0;
    if (array_reserve(&timeline->columns, &timeline->column_capacity, timeline->column_count + 1))
        return -ENOMEM;
    while (at && timeline->columns[at - 1].goroutine > goroutine->goroutine)
        at--;
    memmove(&timeline->columns[at + 1], &timeline->columns[at],
            (timeline->column_count - at) * sizeof(*timeline->columns));
    timeline->columns[at] = describe(goroutine);
    timeline->column_count++;
    return 0;
}

static struct go_timeline_column *find_column(const struct go_timeline *timeline, uint64_t goroutine)
{
    long at = go_timeline_column_of(timeline, goroutine);

    return at < 0 ? NULL : &timeline->columns[at];
}

/* ------------------------------------------------------------------------------------------ the stuck ones
 */

static size_t count_alike(const struct go_timeline *timeline, const struct go_timeline_column *one)
{
    size_t count = 0;

    for (size_t i = 0; i < timeline->column_count; i++)
        count += timeline->columns[i].created_at == one->created_at &&
                 timeline->columns[i].waits_at == one->waits_at;
    return count;
}

static int add_cycle(struct go_timeline *timeline, const struct go_replay *replay,
                     const struct go_verdict *verdict)
{
    int r = 0;

    for (size_t i = 0; !r && i < verdict->cycle_count; i++) {
        struct go_timeline_column *column;

        r = add_column(timeline, go_replay_goroutine(replay, verdict->cycle[i].goroutine));
        column = find_column(timeline, verdict->cycle[i].goroutine);
        if (column)
            column->stuck = column->in_cycle = true;
    }
    return r;
}

static int add_stuck(struct go_timeline *timeline, const struct go_replay *replay,
                     const struct go_verdict *verdict)
{
    int r = add_cycle(timeline, replay, verdict);

    for (size_t i = 0; !r && i < verdict->outcome_count; i++) {
        const struct go_goroutine *goroutine = go_replay_goroutine(replay, verdict->outcomes[i].goroutine);
        struct go_timeline_column *column, candidate;

        if (verdict->outcomes[i].kind != GO_OUTCOME_STUCK || !goroutine)
            continue;
        candidate = describe(goroutine);
        if (count_alike(timeline, &candidate) < MOST_ALIKE)
            r = add_column(timeline, goroutine);
        column = find_column(timeline, goroutine->goroutine);
        if (column)
            column->stuck = true;
        else
            timeline->left_out++;
    }
    if (!r && verdict->crashed)
        r = add_column(timeline, go_replay_goroutine(replay, verdict->crashed));
    return r;
}

/* ------------------------------------------------------------------------------------------ their partners
 */

/* Who holds or has used an object. */
static int add_users(struct go_timeline *timeline, const struct go_replay *replay, uint64_t object)
{
    const struct go_object *known = object ? go_replay_object(replay, object) : NULL;
    uint64_t holders[MOST_HOLDERS];
    size_t count = object ? go_replay_holders(replay, object, holders, MOST_HOLDERS) : 0;
    int r = 0;

    for (size_t i = 0; !r && i < count && i < MOST_HOLDERS; i++)
        r = add_column(timeline, go_replay_goroutine(replay, holders[i]));
    for (size_t i = 0; !r && known && i < known->user_count; i++)
        r = add_column(timeline, go_replay_goroutine(replay, known->users[i].goroutine));
    return r;
}

static int add_partners(struct go_timeline *timeline, const struct go_replay *replay, uint64_t goroutine)
{
    const struct go_goroutine *stuck = go_replay_goroutine(replay, goroutine);
    const struct go_action *action = stuck ? go_waiting_in(stuck) : NULL;
    int r = stuck ? add_column(timeline, go_replay_parent(replay, stuck)) : 0;

    if (!r && action)
        r = add_users(timeline, replay, action->object);
    for (size_t i = 0; !r && action && i < action->case_count; i++)
        r = add_users(timeline, replay, action->cases[i].object);
    return r;
}

static int add_all_partners(struct go_timeline *timeline, const struct go_replay *replay)
{
    AUTO_FREE uint64_t *stuck = calloc(timeline->column_count + 1, sizeof(*stuck));
    size_t count = timeline->column_count;
    int r = 0;

    if (!stuck)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        stuck[i] = timeline->columns[i].goroutine;
    for (size_t i = 0; !r && i < count; i++)
        r = add_partners(timeline, replay, stuck[i]);
    return r;
}

int go_timeline_meet(struct go_timeline *timeline, struct go_replay *replay,
                     const struct process_event *event)
{
    const struct go_timeline_column *one, *other;

    if (timeline->chosen || event->kind != GO_EVENT_WAKE || !event->goroutine || !event->other)
        return 0;
    one = find_column(timeline, event->goroutine);
    other = find_column(timeline, event->other);
    if (one && one->stuck && !other)
        return add_column(timeline, go_replay_goroutine(replay, event->other));
    if (other && other->stuck && !one)
        return add_column(timeline, go_replay_goroutine(replay, event->goroutine));
    return 0;
}

/* ------------------------------------------------------------------------------------------ beginning */

static int add_each(void *context, const struct go_goroutine *goroutine)
{
    struct go_timeline *timeline = context;
    int r = add_column(timeline, goroutine);

    timeline->left_out += !goroutine->system && !find_column(timeline, goroutine->goroutine);
    return r;
}

static void mark_stuck(struct go_timeline *timeline, const struct go_verdict *verdict)
{
    for (size_t i = 0; i < verdict->outcome_count; i++) {
        struct go_timeline_column *column = find_column(timeline, verdict->outcomes[i].goroutine);

        if (column && verdict->outcomes[i].kind == GO_OUTCOME_STUCK)
            column->stuck = true;
    }
    for (size_t i = 0; i < verdict->cycle_count; i++) {
        struct go_timeline_column *column = find_column(timeline, verdict->cycle[i].goroutine);

        if (column)
            column->in_cycle = true;
    }
}

static int choose(struct go_timeline *timeline, struct go_replay *replay, const struct go_verdict *verdict,
                  const struct go_timeline_options *options)
{
    int r = 0;

    timeline->chosen = true;
    for (size_t i = 0; !r && i < options->goroutine_count; i++)
        r = add_column(timeline, go_replay_goroutine(replay, options->goroutines[i]));
    if (options->goroutine_count)
        return r;
    if (options->all)
        return go_replay_each(replay, add_each, timeline);
    r = add_stuck(timeline, replay, verdict);
    if (r || !timeline->column_count)
        return r ? r : go_replay_each(replay, add_each, timeline);
    timeline->chosen = false;
    return add_all_partners(timeline, replay);
}

int go_timeline_begin(struct go_timeline *timeline, const struct go_program *program,
                      struct go_place_source places, struct go_replay *replay,
                      const struct go_verdict *verdict, const struct go_timeline_options *options)
{
    int r;

    *timeline = (struct go_timeline){
        .most_rows = options->all    ? SIZE_MAX / 4
                     : options->rows ? options->rows
                                     : GO_TIMELINE_ROWS,
        .most_columns = options->all || options->goroutine_count ? SIZE_MAX : GO_TIMELINE_COLUMNS,
        .program = program,
        .places = places,
    };
    r = choose(timeline, replay, verdict, options);
    mark_stuck(timeline, verdict);
    return r;
}
