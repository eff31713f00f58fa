/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * gcc moves the blocks of a function that are hardly ever run into a part of their own, NAME.cold, which has
 * an .eh_frame entry like a function. Taken for functions, such parts would be calls that never were; a
 * function taken for a part would be lost, which is worse. So without a name to go by, evidence decides:
 *
 *   - its entry says that the frame at its first byte is not that of a function that was just called, and
 * nothing calls it: a part for certain;
 *   - the frame looks like a fresh one: then it is a part only if nothing calls it, nothing takes its
 * address, and one function alone jumps to it, by a conditional jump (no compiler makes a tail call of that,
 * unless told to optimise for size), or by an unconditional one when it jumps back into the midst of that
 * function.
 *
 * Code is not disassembled for this: every place that could be a rel32 operand is looked at, whatever
 * instruction it belongs to. That may see references that are none (one in some millions of bytes hits a
 * beginning), which errs on the side of functions. A part belongs to the function that jumps to its
 * beginning, or if there is none or several, to the one that has most jumps to and from it.
 */
#include "image/fragments.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"

#define NONE UINT32_MAX
#define MANY (UINT32_MAX - 1)
#define FILTER_BITS ((uint64_t)1 << 20)
#define VOTERS 8

enum reference { REFERENCE_CALL, REFERENCE_JUMP, REFERENCE_CONDITIONAL, REFERENCE_POINTER };

/* What is known about a function that may be a fragment. */
struct candidate {
    uint64_t start, end;
    uint32_t function; /* index */
    uint32_t owner;    /* the function that jumps to its first byte; NONE, MANY */
    bool called, pointed, conditional;
};

struct candidates {
    struct candidate *items; /* sorted */
    size_t count, capacity;
};

/* Jumps between one fragment and the functions that may own it. */
struct votes {
    uint32_t function[VOTERS];
    unsigned count[VOTERS];
};

struct finder {
    struct elf_image *image;
    const struct code_map *map;
    struct image_function *functions;
    size_t count;
};

/* ---------------------------------------------------------------------------------------------- scanning */

/* The targets that a scan looks for: candidates' beginnings, or their whole extents. */
struct scan {
    const struct finder *finder;
    struct candidates *targets;
    struct votes *votes; /* of each target; NULL: beginnings are looked for */
    unsigned grain;      /* addresses that share a bit of the filter: 1 << grain */
    uint64_t *filter;
};

static void filter_add(struct scan *scan, uint64_t start, uint64_t end)
{
    uint64_t first = start >> scan->grain, last = (end - 1) >> scan->grain;

    for (uint64_t grain = first; grain <= last && grain - first < FILTER_BITS; grain++)
        scan->filter[grain % FILTER_BITS / 64] |= (uint64_t)1 << (grain % 64);
}

static bool filter_has(const struct scan *scan, uint64_t address)
{
    uint64_t grain = address >> scan->grain;

    return scan->filter[grain % FILTER_BITS / 64] >> (grain % 64) & 1;
}

/* The target that `address` lies in or, in a scan for beginnings, begins. */
static struct candidate *target_at(const struct scan *scan, uint64_t address)
{
    size_t low = 0, high = scan->targets->count;
    struct candidate *found;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (scan->targets->items[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    found = low ? &scan->targets->items[low - 1] : NULL;
    if (!found || address >= found->end || (!scan->votes && address != found->start))
        return NULL;
    return found;
}

static uint32_t function_at(const struct finder *finder, uint64_t address)
{
    const struct image_function *found = image_functions_find(finder->functions, finder->count, address);

    return found ? (uint32_t)(found - finder->functions) : NONE;
}

static void vote(struct votes *votes, uint32_t function)
{
    for (size_t i = 0; i < VOTERS; i++) {
        if (votes->count[i] && votes->function[i] != function)
            continue;
        votes->function[i] = function;
        votes->count[i]++;
        return;
    }
}

/* What the rel32 operand behind `code` (of which `before` bytes may be read backwards) would be. */
static bool classify(const uint8_t *code, size_t before, enum reference *ret_reference)
{
    if (before >= 1 && code[-1] == 0xe8)
        *ret_reference = REFERENCE_CALL;
    else if (before >= 1 && code[-1] == 0xe9)
        *ret_reference = REFERENCE_JUMP;
    else if (before >= 2 && code[-2] == 0x0f && (code[-1] & 0xf0) == 0x80)
        *ret_reference = REFERENCE_CONDITIONAL;
    else if (before >= 1 && (code[-1] & 0xc7) == 0x05) /* ModRM: disp32(%rip) */
        *ret_reference = REFERENCE_POINTER;
    else
        return false;
    return true;
}

static void note(const struct scan *scan, struct candidate *target, uint64_t from, enum reference reference)
{
    bool jump = reference == REFERENCE_JUMP || reference == REFERENCE_CONDITIONAL;
    uint32_t source = jump ? function_at(scan->finder, from) : NONE;

    if (jump && source == target->function)
        return;
    if (scan->votes) {
        if (jump && source != NONE && !(scan->finder->functions[source].flags & IMAGE_FUNCTION_FRAGMENT))
            vote(&scan->votes[target - scan->targets->items], source);
        return;
    }
    target->called |= reference == REFERENCE_CALL;
    target->pointed |= reference == REFERENCE_POINTER;
    target->conditional |= reference == REFERENCE_CONDITIONAL;
    if (jump)
        target->owner = source != NONE && (target->owner == NONE || target->owner == source) ? source : MANY;
}

static void scan_code(const struct scan *scan, uint64_t address, const uint8_t *code, size_t size)
{
    bool absolute = !elf_image_facts(scan->finder->image)->pie; /* addresses are operands, too */

    for (size_t at = 0; at + 4 <= size; at++) {
        enum reference reference = REFERENCE_POINTER;
        struct candidate *target;
        uint32_t operand;
        uint64_t to;

        memcpy(&operand, code + at, sizeof(operand));
        to = address + at + 4 + (uint64_t)(int64_t)(int32_t)operand;
        if (filter_has(scan, to) && classify(code + at, at, &reference) && (target = target_at(scan, to)))
            note(scan, target, address + at, reference);
        if (absolute && filter_has(scan, operand) && (target = target_at(scan, operand)))
            note(scan, target, address + at, REFERENCE_POINTER);
    }
}

/* Pointers in data; the addends of relocations are loaded with the rest, and looked at here as well. */
static void scan_data(const struct scan *scan, const uint8_t *data, size_t size)
{
    for (size_t at = 0; at + 8 <= size; at += 8) {
        struct candidate *target;
        uint64_t to;

        memcpy(&to, data + at, sizeof(to));
        if (filter_has(scan, to) && (target = target_at(scan, to)))
            target->pointed = true;
    }
}

static void scan_image(const struct scan *scan)
{
    struct elf_image *image = scan->finder->image;
    const struct code_map *map = scan->finder->map;
    struct address_range range;
    uint64_t done = 0;
    bool executable;
    size_t size;

    for (size_t i = 0; i < map->count; i++) { /* sections of crafted files may overlap */
        uint64_t start = map->items[i].start > done ? map->items[i].start : done;
        const uint8_t *code = start < map->items[i].end ? elf_image_code(image, start, &size) : NULL;

        if (!code)
            continue;
        size = size < map->items[i].end - start ? size : map->items[i].end - start;
        scan_code(scan, start, code, size);
        done = start + size;
    }
    for (size_t i = 0; !scan->votes && elf_image_segment(image, i, &range, &executable); i++) {
        const uint8_t *data = executable ? NULL : elf_image_bytes(image, range.start, &size);

        if (data)
            scan_data(scan, data, size);
    }
}

static int run_scan(const struct finder *finder, struct candidates *targets, struct votes *votes)
{
    AUTO_FREE uint64_t *filter = calloc(FILTER_BITS / 64, sizeof(*filter));
    struct scan scan = {finder, targets, votes, votes ? 4 : 0, filter};

    if (!filter)
        return -ENOMEM;
    for (size_t i = 0; i < targets->count; i++)
        filter_add(&scan, targets->items[i].start,
                   votes ? targets->items[i].end : targets->items[i].start + 1);
    scan_image(&scan);
    return 0;
}

/* ---------------------------------------------------------------------------------------------- deciding */

/* Lets each function vote that `fragment` jumps into, behind its beginning. */
static void vote_outwards(const struct finder *finder, const struct candidate *fragment, struct votes *votes)
{
    size_t size;
    const uint8_t *code = elf_image_code(finder->image, fragment->start, &size);

    if (!code)
        return;
    size = size < fragment->end - fragment->start ? size : fragment->end - fragment->start;
    for (size_t at = 1; at + 4 <= size; at++) {
        enum reference reference;
        int32_t operand;
        uint32_t to;
        uint64_t address;

        if (!classify(code + at, at, &reference) ||
            (reference != REFERENCE_JUMP && reference != REFERENCE_CONDITIONAL))
            continue;
        memcpy(&operand, code + at, sizeof(operand));
        address = fragment->start + at + 4 + (uint64_t)(int64_t)operand;
        to = function_at(finder, address);
        if (to != NONE && to != fragment->function && finder->functions[to].address != address)
            vote(votes, to);
    }
}

static bool jumps_back(const struct finder *finder, const struct candidate *candidate)
{
    struct votes votes = {0};

    vote_outwards(finder, candidate, &votes);
    for (size_t i = 0; i < VOTERS; i++)
        if (votes.count[i] && votes.function[i] == candidate->owner)
            return true;
    return false;
}

static int compare_fdes(const void *left, const void *right)
{
    const struct fde *a = left, *b = right;

    return (a->address > b->address) - (a->address < b->address);
}

static enum fde_entry entry_at(const struct fde_list *fdes, uint64_t address)
{
    const struct fde key = {.address = address};
    const struct fde *found =
        fdes->count ? bsearch(&key, fdes->items, fdes->count, sizeof(key), compare_fdes) : NULL;

    return found ? found->entry : FDE_CALLED;
}

static bool is_fragment(const struct finder *finder, const struct fde_list *fdes,
                        const struct candidate *candidate)
{
    if (candidate->called)
        return false;
    if (finder->functions[candidate->function].flags & IMAGE_FUNCTION_FRAGMENT)
        return true; /* so its name says, and nothing speaks against it */
    if (entry_at(fdes, candidate->start) == FDE_CONTINUED)
        return true;
    if (candidate->pointed || candidate->owner == NONE || candidate->owner == MANY)
        return false;
    return candidate->conditional || jumps_back(finder, candidate);
}

/* Marks the fragments, and drops the other candidates from the list. */
static void decide(const struct finder *finder, const struct fde_list *fdes, struct candidates *candidates)
{
    size_t kept = 0;

    for (size_t i = 0; i < candidates->count; i++) {
        struct candidate *candidate = &candidates->items[i];
        unsigned *flags = &finder->functions[candidate->function].flags;

        if (is_fragment(finder, fdes, candidate)) {
            *flags |= IMAGE_FUNCTION_FRAGMENT;
            candidates->items[kept++] = *candidate;
        } else {
            *flags &= ~(unsigned)IMAGE_FUNCTION_FRAGMENT;
        }
    }
    candidates->count = kept;
}

/* ---------------------------------------------------------------------------------------------- owners */

static uint32_t winner(const struct votes *votes)
{
    uint32_t best = NONE;
    unsigned most = 0;

    for (size_t i = 0; i < VOTERS; i++) {
        if (votes->count[i] == most)
            best = NONE;
        if (votes->count[i] <= most)
            continue;
        most = votes->count[i];
        best = votes->function[i];
    }
    return best;
}

static bool is_settled(const struct finder *finder, const struct candidate *fragment)
{
    return fragment->owner != NONE && fragment->owner != MANY &&
           !(finder->functions[fragment->owner].flags & IMAGE_FUNCTION_FRAGMENT);
}

/* Settles whose parts the fragments are by votes, for those that one function's jump did not settle. */
static int elect_owners(const struct finder *finder, struct candidates *fragments)
{
    struct candidates open = {0};
    AUTO_FREE struct votes *votes = NULL;
    int r = 0;

    open.items = calloc(fragments->count + 1, sizeof(*open.items));
    votes = calloc(fragments->count + 1, sizeof(*votes));
    if (!open.items || !votes)
        r = -ENOMEM;
    for (size_t i = 0; r == 0 && i < fragments->count; i++)
        if (!is_settled(finder, &fragments->items[i]))
            open.items[open.count++] = fragments->items[i];
    if (r == 0 && open.count)
        r = run_scan(finder, &open, votes);
    for (size_t i = 0; r == 0 && i < open.count; i++) {
        uint32_t owner;

        vote_outwards(finder, &open.items[i], &votes[i]);
        owner = winner(&votes[i]);
        if (owner != NONE)
            finder->functions[open.items[i].function].part_of = finder->functions[owner].address;
    }
    free(open.items);
    return r;
}

/* ---------------------------------------------------------------------------------------------- all of it */

static int collect(const struct finder *finder, struct candidates *candidates)
{
    for (size_t i = 0; i < finder->count; i++) {
        const struct image_function *function = &finder->functions[i];

        if (!(function->flags & (IMAGE_FUNCTION_NO_NAME | IMAGE_FUNCTION_FRAGMENT)) ||
            (function->flags & IMAGE_FUNCTION_ENTRY_POINT))
            continue;
        if (array_reserve(&candidates->items, &candidates->capacity, candidates->count + 1) < 0)
            return -ENOMEM;
        candidates->items[candidates->count++] = (struct candidate){
            .start = function->address,
            .end = function->address + function->size,
            .function = (uint32_t)i,
            .owner = NONE,
        };
    }
    return 0;
}

int fragments_find(struct elf_image *image, const struct code_map *map, const struct fde_list *fdes,
                   struct image_function *functions, size_t count)
{
    const struct finder finder = {image, map, functions, count};
    struct candidates candidates = {0};
    int r = count < MANY ? collect(&finder, &candidates) : 0;

    if (r == 0 && candidates.count)
        r = run_scan(&finder, &candidates, NULL);
    if (r == 0) {
        decide(&finder, fdes, &candidates);
        for (size_t i = 0; i < candidates.count; i++)
            if (is_settled(&finder, &candidates.items[i]))
                functions[candidates.items[i].function].part_of =
                    functions[candidates.items[i].owner].address;
        r = elect_owners(&finder, &candidates);
    }
    free(candidates.items);
    return r;
}
