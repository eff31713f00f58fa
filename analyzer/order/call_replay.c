/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/order/call_replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/order/replay_ways.h"
#include "base/array.h"

/* One way: where it stands, as a number of a site plus 1 (0: at the entry), and its iterations. */
struct stand {
    bool reached;
    struct order_iteration iterations[ORDER_LOOPS_MAX];
};

struct replay {
    const struct replay_map *map;
    struct stand *now, *next; /* by site plus 1 */
};

int replay_new(const struct replay_map *map, struct replay **ret_replay)
{
    struct replay *replay = calloc(1, sizeof(*replay));

    if (!replay)
        return -ENOMEM;
    replay->map = map;
    replay->now = calloc(map->site_count + 1, sizeof(*replay->now));
    replay->next = calloc(map->site_count + 1, sizeof(*replay->next));
    if (!replay->now || !replay->next) {
        replay_free(replay);
        return -ENOMEM;
    }
    replay->now[0].reached = true;
    *ret_replay = replay;
    return 0;
}

void replay_free(struct replay *replay)
{
    if (!replay)
        return;
    free(replay->now);
    free(replay->next);
    free(replay);
}

/* ---------------------------------------------------------------------------------------------- steps */

static bool fits(const struct replay_site *site, uint32_t function, uint64_t return_address)
{
    if (return_address && return_address != site->return_address)
        return false;
    return site->anything || site->function == function;
}

/* A way arrives: where another one has arrived already, only what both agree on is known. */
static void arrive(struct stand *stand, const struct order_iteration iterations[ORDER_LOOPS_MAX],
                   uint32_t depth)
{
    if (!stand->reached) {
        stand->reached = true;
        memcpy(stand->iterations, iterations, depth * sizeof(*iterations));
        return;
    }
    for (uint32_t i = 0; i < depth; i++)
        if (!iterations[i].known || stand->iterations[i].count != iterations[i].count)
            stand->iterations[i].known = false;
}

/* The iterations behind a way, from those before it. */
static void go(const struct stand *from, const struct replay_way *way, uint32_t depth,
               struct order_iteration iterations[ORDER_LOOPS_MAX])
{
    for (uint32_t i = 0; i < depth; i++) {
        const struct replay_turns *turns = &way->turns[i];

        iterations[i].known =
            turns->kind == TURNS_ENTERED || (turns->kind == TURNS_MORE && from->iterations[i].known);
        iterations[i].count = turns->count + (turns->kind == TURNS_MORE ? from->iterations[i].count : 0);
    }
}

static void step_from(struct replay *replay, uint32_t number, uint32_t function, uint64_t return_address)
{
    const struct replay_map *map = replay->map;
    struct order_iteration iterations[ORDER_LOOPS_MAX];

    for (size_t i = map->first_way[number]; i < map->first_way[number + 1]; i++) {
        const struct replay_way *way = &map->ways[i];
        const struct replay_site *site = &map->sites[way->to];

        if (!fits(site, function, return_address))
            continue;
        go(&replay->now[number], way, site->depth, iterations);
        arrive(&replay->next[way->to + 1], iterations, site->depth);
    }
    if (number && replay_site_goes_on(&map->sites[number - 1], function))
        arrive(&replay->next[number], replay->now[number].iterations, map->sites[number - 1].depth);
}

void replay_call(struct replay *replay, uint32_t function, uint64_t return_address)
{
    struct stand *done = replay->now;

    for (uint32_t i = 0; i <= replay->map->site_count; i++)
        if (replay->now[i].reached)
            step_from(replay, i, function, return_address);
    replay->now = replay->next;
    replay->next = done;
    memset(done, 0, (replay->map->site_count + 1) * sizeof(*done));
}

void replay_lose(struct replay *replay)
{
    memset(replay->now, 0, (replay->map->site_count + 1) * sizeof(*replay->now));
}

int replay_point(const struct replay *replay, struct order_point *ret_point)
{
    uint32_t found = 0;

    for (uint32_t i = 1; i <= replay->map->site_count; i++) {
        if (replay->now[i].reached && found)
            return -ENOENT;
        if (replay->now[i].reached)
            found = i;
    }
    if (!found || replay->now[0].reached)
        return -ENOENT;
    memset(ret_point, 0, sizeof(*ret_point));
    ret_point->address = replay->map->sites[found - 1].return_address - 1;
    ret_point->depth = replay->map->sites[found - 1].depth;
    memcpy(ret_point->iterations, replay->now[found].iterations, sizeof(ret_point->iterations));
    return 0;
}
