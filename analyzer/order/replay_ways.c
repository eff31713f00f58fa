/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/order/replay_ways.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* Functions that a call may jump on to, one after the other; where there are more it may be anything. */
#define CHAIN_MAX 32

struct maker {
    struct order_code *code;
    const struct order_function *function;
    const struct flow_graph *graph;
    replay_lookup lookup;
    void *context;
    struct replay_map *map;
};

/* ---------------------------------------------------------------------------------------------- sites */

/* Whether the block ends with a jump of which nothing is known, or leaves the function through a pointer. */
static bool jumps_anywhere(const struct flow_graph *graph, const struct flow_block *block)
{
    const struct instruction *last = &graph->instructions[block->first + block->count - 1];

    return (block->flags & FLOW_BLOCK_UNKNOWN) ||
           ((block->flags & FLOW_BLOCK_TAIL) && last->kind == INSTRUCTION_JUMP_INDIRECT);
}

/* What the recording has of the function that begins at `address`; of what is none, nothing. */
static uint32_t id_at(const struct maker *maker, uint32_t image, uint64_t address)
{
    size_t count;
    const struct image_function *functions = order_code_functions(maker->code, image, &count);
    const struct image_function *to = image_functions_find(functions, count, address);

    return to && to->address == address ? maker->lookup(maker->context, image, address) : REPLAY_NOT_RECORDED;
}

static int add_jump(struct replay_site *site, uint32_t function)
{
    if (array_reserve(&site->jumps, &site->jump_capacity, site->jump_count + 1) < 0)
        return -ENOMEM;
    site->jumps[site->jump_count++] = function;
    return 0;
}

/* The functions that `function` jumps to become part of the site; those that are ours are followed, too. */
static int follow_jumps(const struct maker *maker, struct replay_site *site,
                        const struct order_function *function, struct order_function **chain, size_t *count)
{
    size_t function_count;
    const struct image_function *functions =
        order_code_functions(maker->code, function->image, &function_count);

    for (uint32_t i = 0; i < function->graph->block_count; i++)
        site->anything |= jumps_anywhere(function->graph, &function->graph->blocks[i]);
    for (size_t i = 0; i < function->graph->tail_count && !site->anything; i++) {
        uint64_t address = function->graph->tails[i];
        const struct sample_place place = {
            .image = function->image, .entry = SAMPLE_NO_ADDRESS, .address = address};
        const struct image_function *to = image_functions_find(functions, function_count, address);
        uint32_t id = id_at(maker, function->image, address);
        bool known = false;

        site->anything |= id == REPLAY_NOT_RECORDED || *count == CHAIN_MAX;
        if (site->anything || id == REPLAY_SILENT)
            continue;
        if (add_jump(site, id) < 0)
            return -ENOMEM;
        chain[*count] =
            to && !(to->flags & IMAGE_FUNCTION_PLT) ? order_code_function(maker->code, &place) : NULL;
        for (size_t k = 0; k < *count; k++)
            known |= chain[k] == chain[*count];
        *count += chain[*count] && !known ? 1 : 0;
    }
    return 0;
}

/* What is recorded beside a call of the function at `address`, because it left by a jump. */
static int find_jumps(const struct maker *maker, struct replay_site *site, uint64_t address)
{
    const struct sample_place place = {
        .image = maker->function->image, .entry = SAMPLE_NO_ADDRESS, .address = address};
    struct order_function *chain[CHAIN_MAX + 1];
    size_t count = 0, function_count;
    const struct image_function *functions =
        order_code_functions(maker->code, maker->function->image, &function_count);
    const struct image_function *to = image_functions_find(functions, function_count, address);

    if (!to || (to->flags & IMAGE_FUNCTION_PLT))
        return 0;
    chain[count++] = order_code_function(maker->code, &place);
    for (size_t i = 0; i < count && !site->anything; i++) {
        if (!chain[i] || !chain[i]->graph)
            site->anything = true;
        else if (follow_jumps(maker, site, chain[i], chain, &count) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int add_site(const struct maker *maker, const struct instruction *call)
{
    struct replay_map *map = maker->map;
    uint32_t loops[ORDER_LOOPS_MAX], id = REPLAY_NOT_RECORDED;
    struct replay_site site = {.return_address = call->address + call->length,
                               .block = flow_graph_block(maker->graph, call->address)};

    if (call->kind == INSTRUCTION_CALL)
        id = id_at(maker, maker->function->image, call->target);
    if (id == REPLAY_SILENT)
        return 0;
    site.anything = id == REPLAY_NOT_RECORDED;
    site.function = id;
    site.depth = order_loops_around(maker->graph, call->address, loops);
    if (array_reserve(&map->sites, &map->site_capacity, (size_t)map->site_count + 1) < 0)
        return -ENOMEM;
    map->sites[map->site_count] = site;
    return find_jumps(maker, &map->sites[map->site_count++], call->target);
}

static int find_sites(const struct maker *maker)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < maker->graph->instruction_count; i++) {
        const struct instruction *instruction = &maker->graph->instructions[i];

        if (instruction->kind == INSTRUCTION_CALL || instruction->kind == INSTRUCTION_CALL_INDIRECT)
            r = add_site(maker, instruction);
    }
    return r;
}

/* ---------------------------------------------------------------------------------------------- ways */

/* What is known at the beginning of a block that ways without calls lead to. */
struct arrival {
    bool reached, queued;
    struct replay_turns turns[ORDER_LOOPS_MAX];
};

struct walk {
    const struct maker *maker;
    struct arrival *blocks;
    uint32_t *queue;
    uint32_t count;
    uint32_t from; /* number of the way's origin: 0 the entry, i + 1 site i */
};

static uint32_t depth_of(const struct flow_graph *graph, uint32_t block)
{
    uint32_t loop = graph->blocks[block].loop;
    uint32_t depth = loop == FLOW_NONE ? 0 : graph->loops[loop].depth;

    return depth < ORDER_LOOPS_MAX ? depth : ORDER_LOOPS_MAX;
}

/* The loop of that depth (from 1) around a block. */
static uint32_t loop_at(const struct flow_graph *graph, uint32_t block, uint32_t depth)
{
    uint32_t loop = graph->blocks[block].loop;

    while (graph->loops[loop].depth > depth)
        loop = graph->loops[loop].parent;
    return loop;
}

/* The turns of the loops around `to` behind the edge. */
static void cross(const struct flow_graph *graph, uint32_t from, uint32_t to,
                  const struct replay_turns *before, struct replay_turns *behind)
{
    uint32_t depth = depth_of(graph, to);

    for (uint32_t i = 0; i < depth; i++) {
        uint32_t loop = loop_at(graph, to, i + 1);

        if (!flow_graph_in_loop(graph, loop, from)) {
            behind[i] = (struct replay_turns){TURNS_ENTERED, 0};
            continue;
        }
        behind[i] = before[i];
        if (graph->loops[loop].header == to)
            behind[i].count++;
    }
}

/* Ways meet: whether less is known than before. */
static bool meet(struct replay_turns *turns, const struct replay_turns *other, uint32_t depth)
{
    bool changed = false;

    for (uint32_t i = 0; i < depth; i++) {
        if (turns[i].kind == TURNS_UNKNOWN ||
            (turns[i].kind == other[i].kind && turns[i].count == other[i].count))
            continue;
        turns[i].kind = TURNS_UNKNOWN;
        changed = true;
    }
    return changed;
}

static void arrive(struct walk *walk, uint32_t block, const struct replay_turns *turns)
{
    struct arrival *arrival = &walk->blocks[block];
    uint32_t depth = depth_of(walk->maker->graph, block);
    bool changed = true;

    if (arrival->reached)
        changed = meet(arrival->turns, turns, depth);
    else
        memcpy(arrival->turns, turns, depth * sizeof(*turns));
    arrival->reached = true;
    if (changed && !arrival->queued) {
        arrival->queued = true;
        walk->queue[walk->count++] = block;
    }
}

static int add_way(const struct walk *walk, uint32_t site, const struct replay_turns *turns)
{
    struct replay_map *map = walk->maker->map;
    struct replay_way way = {.to = site};

    memcpy(way.turns, turns, map->sites[site].depth * sizeof(*turns));
    for (size_t i = map->first_way[walk->from]; i < map->way_count; i++)
        if (map->ways[i].to == site) {
            meet(map->ways[i].turns, way.turns, map->sites[site].depth);
            return 0;
        }
    if (array_reserve(&map->ways, &map->way_capacity, map->way_count + 1) < 0)
        return -ENOMEM;
    map->ways[map->way_count++] = way;
    return 0;
}

/* Goes through the block from `address` on, up to its first call that is recorded. A call of which nobody
 * knows what it calls may have called nothing: the way continues after it as well. */
static int walk_block(struct walk *walk, uint32_t block, uint64_t address, const struct replay_turns *turns)
{
    const struct flow_graph *graph = walk->maker->graph;
    const struct replay_map *map = walk->maker->map;
    struct replay_turns behind[ORDER_LOOPS_MAX] = {0};
    const uint32_t *next = flow_graph_next(graph, block);

    for (uint32_t i = 0; i < map->site_count; i++) {
        if (map->sites[i].block != block || map->sites[i].return_address <= address)
            continue;
        if (add_way(walk, i, turns) < 0)
            return -ENOMEM;
        if (!map->sites[i].anything)
            return 0;
    }
    for (uint32_t k = 0; k < graph->blocks[block].nexts; k++) {
        cross(graph, block, next[k], turns, behind);
        arrive(walk, next[k], behind);
    }
    return 0;
}

/* All ways from the entry, or from behind a site, to the calls that may come next. */
static int walk_from(struct walk *walk, uint32_t from)
{
    const struct replay_map *map = walk->maker->map;
    struct replay_turns start[ORDER_LOOPS_MAX] = {0};
    uint32_t block = from ? map->sites[from - 1].block : walk->maker->graph->first;
    int r;

    memset(walk->blocks, 0, walk->maker->graph->block_count * sizeof(*walk->blocks));
    walk->count = 0;
    walk->from = from;
    walk->maker->map->first_way[from] = map->way_count;
    for (uint32_t i = 0; !from && i < ORDER_LOOPS_MAX; i++)
        start[i].kind = TURNS_ENTERED;
    r = walk_block(walk, block, from ? map->sites[from - 1].return_address : 0, start);
    while (r == 0 && walk->count > 0) {
        uint32_t next = walk->queue[--walk->count];
        struct arrival arrival = walk->blocks[next];

        walk->blocks[next].queued = false;
        r = walk_block(walk, next, 0, arrival.turns);
    }
    walk->maker->map->first_way[from + 1] = map->way_count;
    return r;
}

static int find_ways(const struct maker *maker)
{
    AUTO_FREE struct arrival *blocks = calloc(maker->graph->block_count, sizeof(*blocks));
    AUTO_FREE uint32_t *queue = calloc(maker->graph->block_count, sizeof(*queue));
    struct walk walk = {.maker = maker, .blocks = blocks, .queue = queue};
    int r = blocks && queue ? 0 : -ENOMEM;

    maker->map->first_way = calloc((size_t)maker->map->site_count + 2, sizeof(*maker->map->first_way));
    if (!maker->map->first_way)
        return -ENOMEM;
    for (uint32_t i = 0; r == 0 && i <= maker->map->site_count; i++)
        r = walk_from(&walk, i);
    return r;
}

/* ---------------------------------------------------------------------------------------------- life */

int replay_map_new(struct order_code *code, const struct order_function *function, replay_lookup lookup,
                   void *context, struct replay_map **ret_map)
{
    struct replay_map *map = calloc(1, sizeof(*map));
    const struct maker maker = {code, function, function->graph, lookup, context, map};
    int r;

    if (!map)
        return -ENOMEM;
    map->graph = function->graph;
    r = find_sites(&maker);
    if (r == 0)
        r = find_ways(&maker);
    if (r < 0) {
        replay_map_free(map);
        return r;
    }
    *ret_map = map;
    return 0;
}

void replay_map_free(struct replay_map *map)
{
    if (!map)
        return;
    for (uint32_t i = 0; i < map->site_count; i++)
        free(map->sites[i].jumps);
    free(map->sites);
    free(map->ways);
    free(map->first_way);
    free(map);
}
