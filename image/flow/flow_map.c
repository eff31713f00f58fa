/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/flow/flow_map.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "image/arch/disasm.h"
#include "image/arch/operands.h"

struct region {
    struct flow_region code;
    uint64_t *marks[FLOW_MARKS]; /* one bit a byte of code */
};

struct flow_map {
    struct region *regions;
    size_t region_count, region_capacity;
    struct flow_region *plain; /* regions[].code, side by side */
    const struct image_function *functions;
    size_t function_count;
    struct flow_edge *edges;
    size_t edge_count, edge_capacity;
    uint64_t *leas;
    size_t lea_count, lea_capacity;
};

/* ---------------------------------------------------------------------------------------------- life */

int flow_map_new(struct flow_map **ret_map)
{
    *ret_map = calloc(1, sizeof(**ret_map));
    return *ret_map ? 0 : -ENOMEM;
}

void flow_map_free(struct flow_map *map)
{
    if (!map)
        return;
    for (size_t i = 0; i < map->region_count; i++)
        for (int mark = 0; mark < FLOW_MARKS; mark++)
            free(map->regions[i].marks[mark]);
    free(map->regions);
    free(map->plain);
    free(map->edges);
    free(map->leas);
    free(map);
}

int flow_map_add(struct flow_map *map, const uint8_t *code, size_t size, uint64_t address)
{
    struct flow_region *plain = realloc(map->plain, (map->region_count + 1) * sizeof(*plain));
    struct region *region;

    if (!plain)
        return -ENOMEM;
    map->plain = plain;
    if (array_reserve(&map->regions, &map->region_capacity, map->region_count + 1) < 0)
        return -ENOMEM;
    region = &map->regions[map->region_count];
    *region = (struct region){.code = {code, size, address}};
    plain[map->region_count++] = region->code;
    for (int mark = 0; mark < FLOW_MARKS; mark++) {
        region->marks[mark] = calloc(size / 64 + 1, sizeof(uint64_t));
        if (!region->marks[mark])
            return -ENOMEM;
    }
    return 0;
}

/* ---------------------------------------------------------------------------------------------- marks */

static struct region *region_at(const struct flow_map *map, uint64_t address)
{
    for (size_t i = 0; i < map->region_count; i++)
        if (address - map->regions[i].code.address < map->regions[i].code.size)
            return &map->regions[i];
    return NULL;
}

static bool get(const struct region *region, uint64_t address, enum flow_mark mark)
{
    uint64_t at = address - region->code.address;

    return region->marks[mark][at / 64] >> (at % 64) & 1;
}

static void set(struct region *region, uint64_t address, enum flow_mark mark)
{
    uint64_t at = address - region->code.address;

    region->marks[mark][at / 64] |= (uint64_t)1 << (at % 64);
}

bool flow_map_has(const struct flow_map *map, uint64_t address, enum flow_mark mark)
{
    const struct region *region = region_at(map, address);

    return region && get(region, address, mark);
}

bool flow_map_has_mark(const struct flow_map *map, enum flow_mark mark)
{
    for (size_t i = 0; i < map->region_count; i++)
        for (size_t word = 0; word <= map->regions[i].code.size / 64; word++)
            if (map->regions[i].marks[mark][word])
                return true;
    return false;
}

bool flow_map_has_any(const struct flow_map *map, uint64_t address, uint64_t size, enum flow_mark mark)
{
    for (uint64_t at = 0; at < size; at++)
        if (flow_map_has(map, address + at, mark))
            return true;
    return false;
}

void flow_map_set(struct flow_map *map, uint64_t address, enum flow_mark mark)
{
    struct region *region = region_at(map, address);

    if (region)
        set(region, address, mark);
}

void flow_map_set_range(struct flow_map *map, uint64_t address, uint64_t size, enum flow_mark mark)
{
    uint64_t end = size > UINT64_MAX - address ? UINT64_MAX : address + size;

    for (size_t i = 0; i < map->region_count; i++) {
        const struct flow_region *code = &map->regions[i].code;
        uint64_t from = address > code->address ? address : code->address;

        for (uint64_t at = from; at < end && at - code->address < code->size; at++)
            set(&map->regions[i], at, mark);
    }
}

void flow_map_clear(struct flow_map *map, uint64_t address, enum flow_mark mark)
{
    struct region *region = region_at(map, address);
    uint64_t at;

    if (!region)
        return;
    at = address - region->code.address;
    region->marks[mark][at / 64] &= ~((uint64_t)1 << (at % 64));
}

const uint64_t *flow_map_bits(const struct flow_map *map, size_t region, enum flow_mark mark)
{
    return map->regions[region].marks[mark];
}

void flow_map_take(struct flow_map *map, uint64_t address)
{
    flow_map_set(map, address, FLOW_TAKEN);
    flow_map_set(map, address, FLOW_TARGET);
}

/* Where edges are kept: first bytes, and everywhere in fragments, which are jumped into and out of. */
static void mark_landings(struct flow_map *map)
{
    for (size_t i = 0; i < map->function_count; i++) {
        const struct image_function *function = &map->functions[i];
        uint64_t end = function->address + 1;

        if (function->flags & IMAGE_FUNCTION_FRAGMENT)
            end = function->address + function->size;
        if (i + 1 < map->function_count && function[1].address < end)
            end = function[1].address;
        for (uint64_t at = function->address; at < end; at++)
            flow_map_set(map, at, FLOW_LANDING);
    }
}

/* ---------------------------------------------------------------------------------------------- walking */

static int add_edge(struct flow_map *map, uint64_t from, uint64_t to, enum flow_edge_kind kind)
{
    if (array_reserve(&map->edges, &map->edge_capacity, map->edge_count + 1) < 0)
        return -ENOMEM;
    map->edges[map->edge_count++] = (struct flow_edge){from, to, kind};
    return 0;
}

static int note_branch(struct flow_map *map, const struct instruction *instruction)
{
    struct region *region = region_at(map, instruction->target);

    if (!region)
        return 0;
    if (instruction->kind == INSTRUCTION_CALL) {
        if (!get(region, instruction->target, FLOW_LANDING))
            set(region, instruction->target, FLOW_TARGET);
        return 0;
    }
    set(region, instruction->target, FLOW_TARGET);
    if (!get(region, instruction->target, FLOW_LANDING))
        return 0;
    return add_edge(map, instruction->address, instruction->target,
                    instruction->kind == INSTRUCTION_JUMP ? FLOW_EDGE_JUMP : FLOW_EDGE_BRANCH);
}

static int note_made_address(struct flow_map *map, const struct instruction *instruction)
{
    enum machine_register reg;
    uint64_t address;

    if (!instruction_makes_fixed_address(instruction, &reg, &address))
        return 0;
    flow_map_take(map, address);
    if (flow_map_has(map, address, FLOW_LANDING))
        return 0;
    if (array_reserve(&map->leas, &map->lea_capacity, map->lea_count + 1) < 0)
        return -ENOMEM;
    map->leas[map->lea_count++] = address;
    return 0;
}

/* Whether what stands behind the instruction is not reached from it. A call at the end of a function is one
 * that does not return. */
static bool ends_path(const struct instruction *instruction)
{
    return instruction_leaves(instruction) || instruction_is_call(instruction) ||
           instruction->kind == INSTRUCTION_TRAP;
}

static int note(struct flow_map *map, const struct instruction *instruction, bool absolute)
{
    uint64_t address;

    switch (instruction->kind) {
    case INSTRUCTION_BRANCH:
    case INSTRUCTION_JUMP:
    case INSTRUCTION_CALL:
        return note_branch(map, instruction);
    case INSTRUCTION_OTHER:
        if (absolute && instruction_absolute_address(instruction, &address))
            flow_map_take(map, address);
        return note_made_address(map, instruction);
    default:
        return 0;
    }
}

/* Walks from `first` to `last`, the place in the region where the next function begins. `*falls`: the path
 * leads on from what was last seen; on return, beyond `last`. */
static int walk_stretch(struct flow_map *map, struct region *region, size_t first, size_t last, bool absolute,
                        bool *falls)
{
    const struct flow_region *code = &region->code;
    struct instruction instruction;

    for (size_t at = first; at < last; at += instruction.length) {
        if (disasm_skim(code->code + at, code->size - at, code->address + at, &instruction) < 0) {
            instruction.length = 1;
            *falls = false;
            continue;
        }
        set(region, code->address + at, FLOW_START);
        if (instruction.kind != INSTRUCTION_NOP)
            *falls = !ends_path(&instruction);
        if (note(map, &instruction, absolute) < 0)
            return -ENOMEM;
    }
    return 0;
}

/* Walks through one region; `*next` is the index of the first function that may lie in it or behind it. */
static int walk_region(struct flow_map *map, struct region *region, size_t *next, bool absolute)
{
    size_t at = 0;
    bool falls = false;

    while (*next < map->function_count && map->functions[*next].address < region->code.address)
        (*next)++;
    for (;;) {
        bool is_last = *next >= map->function_count ||
                       map->functions[*next].address - region->code.address >= region->code.size;
        size_t last = is_last ? region->code.size : map->functions[*next].address - region->code.address;

        if (walk_stretch(map, region, at, last, absolute, &falls) < 0)
            return -ENOMEM;
        if (is_last)
            return 0;
        if (falls && last > 0 &&
            add_edge(map, region->code.address + last - 1, region->code.address + last, FLOW_EDGE_FALL) < 0)
            return -ENOMEM;
        falls = false;
        at = last;
        (*next)++;
    }
}

static int compare_regions(const void *left, const void *right)
{
    const struct region *a = left, *b = right;

    return (a->code.address > b->code.address) - (a->code.address < b->code.address);
}

static int compare_edges(const void *left, const void *right)
{
    const struct flow_edge *a = left, *b = right;

    if (a->to != b->to)
        return a->to < b->to ? -1 : 1;
    return (a->from > b->from) - (a->from < b->from);
}

int flow_map_walk(struct flow_map *map, const struct image_function *functions, size_t count, bool absolute)
{
    size_t next = 0;

    map->functions = functions;
    map->function_count = count;
    if (map->region_count)
        qsort(map->regions, map->region_count, sizeof(*map->regions), compare_regions);
    for (size_t i = 0; i < map->region_count; i++)
        map->plain[i] = map->regions[i].code;
    mark_landings(map);
    for (size_t i = 0; i < map->region_count; i++)
        if (walk_region(map, &map->regions[i], &next, absolute) < 0)
            return -ENOMEM;
    if (map->edge_count)
        qsort(map->edges, map->edge_count, sizeof(*map->edges), compare_edges);
    return 0;
}

/* ---------------------------------------------------------------------------------------------- questions */

/* How many edges lead to places before `address`. */
static size_t edges_before(const struct flow_map *map, uint64_t address)
{
    size_t low = 0, high = map->edge_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (map->edges[middle].to < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct flow_edge *flow_map_edges_to(const struct flow_map *map, uint64_t first, uint64_t last,
                                          size_t *ret_count)
{
    size_t from = edges_before(map, first);

    *ret_count = (last == UINT64_MAX ? map->edge_count : edges_before(map, last + 1)) - from;
    return map->edges ? map->edges + from : NULL;
}

static bool covers(const struct image_function *function, uint64_t address)
{
    return address - function->address < function->size;
}

bool flow_map_is_inside(const struct flow_map *map, uint64_t entry, uint64_t from)
{
    const struct image_function *function = image_functions_find(map->functions, map->function_count, entry);
    const struct image_function *other = image_functions_find(map->functions, map->function_count, from);
    const struct flow_edge *edges;
    size_t count;

    if (!function || function->address != entry)
        return false;
    if (covers(function, from))
        return true;
    if (!other || !(other->flags & IMAGE_FUNCTION_FRAGMENT))
        return false;
    if (other->part_of)
        return other->part_of == entry;
    edges = flow_map_edges_to(map, other->address, other->address + other->size - 1, &count);
    for (size_t i = 0; i < count; i++)
        if (covers(function, edges[i].from))
            return true;
    return false;
}

bool flow_map_loops(const struct flow_map *map, uint64_t entry)
{
    size_t count;
    const struct flow_edge *edges = flow_map_edges_to(map, entry, entry, &count);

    for (size_t i = 0; i < count; i++)
        if (edges[i].kind != FLOW_EDGE_FALL && flow_map_is_inside(map, entry, edges[i].from))
            return true;
    return false;
}

const uint64_t *flow_map_leas(const struct flow_map *map, size_t *ret_count)
{
    *ret_count = map->lea_count;
    return map->leas;
}

const struct flow_region *flow_map_regions(const struct flow_map *map, size_t *ret_count)
{
    *ret_count = map->region_count;
    return map->plain;
}

const uint8_t *flow_map_code(const struct flow_map *map, uint64_t address, size_t *ret_size)
{
    const struct region *region = region_at(map, address);

    if (!region)
        return NULL;
    *ret_size = region->code.size - (address - region->code.address);
    return region->code.code + (address - region->code.address);
}
