/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/plan/return_sites.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "collector/plan/site.h"

struct search {
    struct disasm *disasm;
    const struct flow_map *map;
    const struct image_function *functions, *function;
    size_t function_count;
    uint64_t *seen; /* one bit a byte of the function's extent */
    uint64_t *far;  /* addresses in fragments that were followed; there are few */
    size_t far_count, far_capacity;
    uint64_t *todo;
    size_t todo_count, todo_capacity;
    struct return_sites *sites;
};

static void search_release(struct search *search)
{
    free(search->seen);
    free(search->far);
    free(search->todo);
}

void return_sites_release(struct return_sites *sites)
{
    free(sites->items);
    *sites = (struct return_sites){0};
}

static bool is_in_extent(const struct search *search, uint64_t address)
{
    return address - search->function->address < search->function->size;
}

/* Whether a jump to `address` stays in the function. */
static bool is_own(const struct search *search, uint64_t address)
{
    const struct image_function *other;

    if (is_in_extent(search, address))
        return true;
    other = image_functions_find(search->functions, search->function_count, address);
    return other && (other->flags & IMAGE_FUNCTION_FRAGMENT);
}

/* Whether this place is met for the first time; from then on it is not. -ENOMEM. */
static int meet(struct search *search, uint64_t address)
{
    uint64_t at = address - search->function->address;

    if (is_in_extent(search, address)) {
        bool is_new = !(search->seen[at / 64] >> (at % 64) & 1);

        search->seen[at / 64] |= (uint64_t)1 << (at % 64);
        return is_new;
    }
    for (size_t i = 0; i < search->far_count; i++)
        if (search->far[i] == address)
            return 0;
    if (array_reserve(&search->far, &search->far_capacity, search->far_count + 1) < 0)
        return -ENOMEM;
    search->far[search->far_count++] = address;
    return 1;
}

static int push(struct search *search, uint64_t address)
{
    if (!is_own(search, address))
        return 0;
    if (array_reserve(&search->todo, &search->todo_capacity, search->todo_count + 1) < 0)
        return -ENOMEM;
    search->todo[search->todo_count++] = address;
    return 0;
}

static int add_return(struct search *search, const struct instruction *instruction)
{
    struct return_sites *sites = search->sites;
    enum site_refusal refusal;

    if (site_classify(instruction, &refusal) == SITE_REFUSED ||
        flow_map_has_any(search->map, instruction->address, instruction->length, FLOW_CHANGES))
        return -EILSEQ;
    if (array_reserve(&sites->items, &sites->capacity, sites->count + 1) < 0)
        return -ENOMEM;
    sites->items[sites->count++] = instruction->address;
    return 0;
}

/* Follows one way until it ends or meets one that was followed before. */
static int follow(struct search *search, uint64_t address)
{
    struct instruction instruction;

    for (;; address += instruction.length) {
        size_t size = 0;
        const uint8_t *code = flow_map_code(search->map, address, &size);
        int r = is_own(search, address) ? meet(search, address) : 0;

        if (r <= 0)
            return r;
        if (!code || disasm_decode(search->disasm, code, size, address, &instruction) < 0)
            return -EILSEQ;
        switch (instruction.kind) {
        case INSTRUCTION_RETURN:
            return add_return(search, &instruction);
        case INSTRUCTION_JUMP:
            return push(search, instruction.target);
        case INSTRUCTION_BRANCH:
            if (push(search, instruction.target) < 0)
                return -ENOMEM;
            break;
        case INSTRUCTION_JUMP_INDIRECT:
        case INSTRUCTION_TRAP:
            return 0;
        default:
            break;
        }
    }
}

/* The entry, and what jump tables and tables of labels lead to. */
static int push_ways_in(struct search *search)
{
    const struct image_function *function = search->function;

    if (push(search, function->address) < 0)
        return -ENOMEM;
    for (uint64_t at = function->address; at - function->address < function->size; at++)
        if (flow_map_has(search->map, at, FLOW_LISTED) && push(search, at) < 0)
            return -ENOMEM;
    return 0;
}

int return_sites_find(struct disasm *disasm, const struct flow_map *map,
                      const struct image_function *functions, size_t count, size_t index,
                      struct return_sites *sites)
{
    CLEANUP(search_release)
    struct search search = {
        .disasm = disasm,
        .map = map,
        .functions = functions,
        .function = &functions[index],
        .function_count = count,
        .sites = sites,
    };
    int r;

    sites->count = 0;
    search.seen = calloc(functions[index].size / 64 + 1, sizeof(*search.seen));
    if (!search.seen)
        return -ENOMEM;
    r = push_ways_in(&search);
    while (r == 0 && search.todo_count)
        r = follow(&search, search.todo[--search.todo_count]);
    return r;
}
