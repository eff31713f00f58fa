/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/plan/got_calls.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "collector/plan/site.h"
#include "image/arch/operands.h"

struct search {
    struct disasm *disasm;
    const struct flow_map *map;
    const struct image_function *functions;
    struct callee *callees;
    size_t count;
    struct call_sites *sites;
};

static uint64_t slot_of(const struct search *search, size_t callee)
{
    return search->functions[search->callees[callee].function].address;
}

/* Whether a callee's slot is at `address`, and which. */
static bool find_slot(const struct search *search, uint64_t address, size_t *ret_callee)
{
    size_t low = 0, high = search->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (slot_of(search, middle) < address)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_callee = low;
    return low < search->count && slot_of(search, low) == address;
}

/* The second opinion, as for other calls: of that length, and one that may carry a probe. */
static bool is_sound(const struct search *search, const struct instruction *skimmed, size_t size)
{
    struct instruction instruction;
    enum site_refusal refusal;

    return disasm_decode(search->disasm, skimmed->code, size, skimmed->address, &instruction) == 0 &&
           instruction.length == skimmed->length && instruction.kind == skimmed->kind &&
           site_classify(&instruction, &refusal) == SITE_SINGLE_STEPPED;
}

/* The instruction, in `size` bytes of code, refers to a callee's slot. */
static int note(struct search *search, const struct instruction *instruction, size_t size, size_t callee)
{
    bool is_jump = instruction->kind == INSTRUCTION_JUMP_INDIRECT;
    struct call_sites *sites = search->sites;

    if (instruction_only_compares(instruction)) /* a program asks whether a weak function is there */
        return 0;
    if ((!is_jump && instruction->kind != INSTRUCTION_CALL_INDIRECT) ||
        !is_sound(search, instruction, size)) {
        search->callees[callee].is_complete = false;
        return 0;
    }
    if (array_reserve(&sites->items, &sites->capacity, sites->count + 1) < 0)
        return -ENOMEM;
    sites->items[sites->count++] = (struct call_site){
        .callee = callee, .address = instruction->address, .length = instruction->length, .is_jump = is_jump};
    return 0;
}

/* Stubs leave through slots, too: what calls them is seen there. */
static bool is_stub(const struct search *search, size_t functions, uint64_t address)
{
    const struct image_function *function = image_functions_find(search->functions, functions, address);

    return function && function->flags & IMAGE_FUNCTION_PLT;
}

static int read_region(struct search *search, size_t functions, const struct flow_region *region)
{
    struct instruction instruction;
    int r = 0;

    for (size_t at = 0; r == 0 && at < region->size; at++) {
        size_t callee;
        uint64_t slot;

        if (!flow_map_has(search->map, region->address + at, FLOW_START) ||
            disasm_skim(region->code + at, region->size - at, region->address + at, &instruction) < 0)
            continue;
        if (instruction_fixed_memory(&instruction, &slot) && find_slot(search, slot, &callee) &&
            !is_stub(search, functions, instruction.address))
            r = note(search, &instruction, region->size - at, callee);
        at += instruction.length - 1u;
    }
    return r;
}

static int compare_sites(const void *left, const void *right)
{
    const struct call_site *a = left, *b = right;

    if (a->callee != b->callee)
        return a->callee < b->callee ? -1 : 1;
    return (a->address > b->address) - (a->address < b->address);
}

int got_calls_find(struct disasm *disasm, const struct flow_map *map, const struct image_function *functions,
                   size_t function_count, struct callee *callees, size_t count, struct call_sites *sites)
{
    struct search search = {disasm, map, functions, callees, count, sites};
    size_t regions, at = 0;
    const struct flow_region *region = flow_map_regions(map, &regions);
    int r = 0;

    for (size_t i = 0; i < count; i++)
        callees[i].is_complete = true;
    for (size_t i = 0; r == 0 && i < regions; i++)
        r = read_region(&search, function_count, &region[i]);
    if (r < 0)
        return r;
    if (sites->count)
        qsort(sites->items, sites->count, sizeof(*sites->items), compare_sites);
    for (size_t i = 0; i < count; i++) {
        callees[i].first = at;
        while (at < sites->count && sites->items[at].callee == i)
            at++;
        callees[i].count = at - callees[i].first;
        callees[i].is_complete &= callees[i].count > 0;
    }
    return 0;
}
