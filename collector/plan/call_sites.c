/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/plan/call_sites.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "collector/plan/site.h"
#include "image/arch/code_bytes.h"

struct search {
    struct disasm *disasm;
    struct flow_map *map;
    const struct image_function *functions;
    struct callee *callees;
    size_t count;
    struct call_sites *sites;
};

void call_sites_release(struct call_sites *sites)
{
    free(sites->items);
    *sites = (struct call_sites){0};
}

static uint64_t entry_of(const struct search *search, size_t callee)
{
    return search->functions[search->callees[callee].function].address;
}

/* The callee that begins at `address`; there is one. */
static size_t callee_at(const struct search *search, uint64_t address)
{
    size_t low = 0, high = search->count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (entry_of(search, middle) <= address)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static int add_site(struct search *search, size_t callee, uint64_t address, bool is_jump)
{
    struct call_sites *sites = search->sites;

    if (array_reserve(&sites->items, &sites->capacity, sites->count + 1) < 0)
        return -ENOMEM;
    sites->items[sites->count++] = (struct call_site){
        .callee = callee, .address = address, .length = CODE_CALL_BYTES, .is_jump = is_jump};
    return 0;
}

/* Jumps are tail calls, unless they are the function's own loops. */
static int add_jumps(struct search *search, size_t callee)
{
    uint64_t entry = entry_of(search, callee);
    size_t count;
    const struct flow_edge *edges = flow_map_edges_to(search->map, entry, entry, &count);

    for (size_t i = 0; i < count; i++) {
        if (edges[i].kind != FLOW_EDGE_FALL && flow_map_is_inside(search->map, entry, edges[i].from))
            continue;
        if (edges[i].kind != FLOW_EDGE_JUMP)
            search->callees[callee].is_complete = false;
        else if (add_site(search, callee, edges[i].from, true) < 0)
            return -ENOMEM;
    }
    return 0;
}

/* Bytes at offset `at` of the region would be the displacement to the callee: whose are they? */
static int note_distance(struct search *search, const struct flow_region *region, size_t at, size_t callee)
{
    const uint8_t *code = region->code + at;
    uint64_t address = region->address + at;
    size_t lead;
    enum code_reference reference = code_reference(code, at, &lead);

    if (reference != CODE_NO_REFERENCE && reference != CODE_REFERENCE_POINTER &&
        flow_map_has(search->map, address - lead, FLOW_START))
        return reference == CODE_REFERENCE_CALL ? add_site(search, callee, address - lead, false)
                                                : 0; /* an edge of the map */
    if (address + CODE_DISTANCE_BYTES == entry_of(search, callee) && code_distance_is_padding(code, at))
        return 0;
    search->callees[callee].is_complete = false;
    return 0;
}

static bool has_bit(const uint64_t *bits, uint64_t at)
{
    return bits[at / 64] >> (at % 64) & 1;
}

/* Reads the code of region `from` for references into region `to`: every byte, so it asks the bits itself. */
static int read_region(struct search *search, size_t from, size_t to, bool absolute)
{
    size_t count;
    const struct flow_region *region = &flow_map_regions(search->map, &count)[from];
    const struct flow_region *target = &flow_map_regions(search->map, &count)[to];
    const uint64_t *candidates = flow_map_bits(search->map, to, FLOW_CANDIDATE);

    for (size_t at = 0; at + 4 <= region->size; at++) {
        uint64_t reached, literal;
        uint32_t word;

        memcpy(&word, region->code + at, sizeof(word));
        reached = code_distance_target(region->code + at, region->address + at) - target->address;
        literal = word - target->address;
        if (reached < target->size && has_bit(candidates, reached) &&
            note_distance(search, region, at, callee_at(search, target->address + reached)) < 0)
            return -ENOMEM;
        if (absolute && literal < target->size && has_bit(candidates, literal))
            search->callees[callee_at(search, target->address + literal)].is_complete = false;
    }
    return 0;
}

static int read_code(struct search *search, bool absolute)
{
    size_t count;

    flow_map_regions(search->map, &count);
    for (size_t i = 0; i < count * count; i++)
        if (read_region(search, i / count, i % count, absolute) < 0)
            return -ENOMEM;
    return 0;
}

static int compare_sites(const void *left, const void *right)
{
    const struct call_site *a = left, *b = right;

    if (a->callee != b->callee)
        return a->callee < b->callee ? -1 : 1;
    return (a->address > b->address) - (a->address < b->address);
}

/* The second opinion: it is what the walk has taken it for, and the kernel emulates it. A call must have the
 * usual length, so that its return address is known. */
static bool is_sound(const struct search *search, const struct call_site *site)
{
    struct instruction instruction;
    enum site_refusal refusal;
    size_t size;
    const uint8_t *code = flow_map_code(search->map, site->address, &size);

    if (!code || disasm_decode(search->disasm, code, size, site->address, &instruction) < 0 ||
        flow_map_has_any(search->map, site->address, instruction.length, FLOW_CHANGES))
        return false;
    return instruction.kind == (site->is_jump ? INSTRUCTION_JUMP : INSTRUCTION_CALL) &&
           instruction.target == entry_of(search, site->callee) &&
           (site->is_jump || instruction.length == CODE_CALL_BYTES) &&
           site_classify(&instruction, &refusal) == SITE_EMULATED;
}

static void deal_out(struct search *search)
{
    struct call_sites *sites = search->sites;
    size_t at = 0;

    if (sites->count)
        qsort(sites->items, sites->count, sizeof(*sites->items), compare_sites);
    for (size_t i = 0; i < search->count; i++) {
        struct callee *callee = &search->callees[i];

        callee->first = at;
        for (; at < sites->count && sites->items[at].callee == i; at++)
            callee->is_complete = callee->is_complete && is_sound(search, &sites->items[at]);
        callee->count = at - callee->first;
        callee->is_complete &= callee->count > 0;
    }
}

int call_sites_find(struct disasm *disasm, struct flow_map *map, const struct image_function *functions,
                    bool absolute, struct callee *callees, size_t count, struct call_sites *sites)
{
    struct search search = {disasm, map, functions, callees, count, sites};
    int r = 0;

    for (size_t i = 0; i < count && r == 0; i++) {
        callees[i].is_complete = !flow_map_has(map, entry_of(&search, i), FLOW_TAKEN);
        flow_map_set(map, entry_of(&search, i), FLOW_CANDIDATE);
        r = add_jumps(&search, i);
    }
    if (r == 0)
        r = read_code(&search, absolute);
    for (size_t i = 0; i < count; i++)
        flow_map_clear(map, entry_of(&search, i), FLOW_CANDIDATE);
    if (r < 0)
        return r;
    deal_out(&search);
    return 0;
}
