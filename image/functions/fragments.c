/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * gcc moves the blocks of a function that are hardly ever run into a part of their own, NAME.cold, which has
 * an .eh_frame entry like a function. Taken for functions, such parts would be calls that never were; a
 * function taken for a part would be lost, which is worse. So without a name to go by, evidence decides:
 *
 *   - its entry says that the frame at its first byte is not that of a function that was just called, and
 *     nothing calls it: a part for certain;
 *   - the frame looks like a fresh one: then it is a part only if nothing calls it, nothing takes its
 *     address, and one function alone jumps to it, by a conditional jump (no compiler makes a tail call of
 *     that, unless told to optimise for size), or by an unconditional one when it jumps back into the midst
 *     of that function.
 *
 * Code is not disassembled for this: every place that could be a distance is looked at, whatever
 * instruction it belongs to. That may see references that are none (one in some millions of bytes hits a
 * beginning), which errs on the side of functions. A part belongs to the function that jumps to its
 * beginning, or if there is none or several, to the one that has most jumps to and from it.
 */
#include "image/functions/fragments.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "image/arch/code_bytes.h"
#include "image/functions/fragment_names.h"

#define NONE UINT32_MAX
#define MANY (UINT32_MAX - 1)
#define FILTER_BITS ((uint64_t)1 << 20)
#define VOTERS 8
/* Of functions that were not optimised for size. Fragments are packed: one in eight is aligned like this. */
#define FUNCTION_ALIGNMENT 16

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

static void candidates_release(struct candidates *candidates)
{
    free(candidates->items);
}

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
    struct address_range go; /* what Go compiled, in one piece; empty in other images */
};

/* ---------------------------------------------------------------------------------------------- scanning */

/* The targets that a scan looks for: candidates' beginnings, or their whole extents. */
struct scan {
    const struct finder *finder;
    struct candidates *targets;
    struct votes *votes; /* of each target; NULL: beginnings are looked for */
    unsigned grain;      /* addresses that share a bit of the filter: 1 << grain */
    uint64_t *filter;    /* which addresses may be targets */
    uint32_t *slots;     /* hash table of beginnings: index of a target, or NONE */
    uint64_t slot_mask;
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

/* The slot of the target that begins at `address`, or the free one where it would be. */
static uint32_t *slot_of(const struct scan *scan, uint64_t address)
{
    uint64_t hash = address * 0x9e3779b97f4a7c15u >> 32; /* Fibonacci hashing: Knuth, volume 3, 6.4 */

    for (;; hash++) {
        uint32_t *slot = &scan->slots[hash & scan->slot_mask];

        if (*slot == NONE || scan->targets->items[*slot].start == address)
            return slot;
    }
}

/* The target whose extent covers `address`. */
static struct candidate *covering(const struct scan *scan, uint64_t address)
{
    size_t low = 0, high = scan->targets->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (scan->targets->items[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low && address < scan->targets->items[low - 1].end ? &scan->targets->items[low - 1] : NULL;
}

static struct candidate *target_at(const struct scan *scan, uint64_t address)
{
    uint32_t index;

    if (scan->votes)
        return covering(scan, address);
    index = *slot_of(scan, address);
    return index == NONE ? NULL : &scan->targets->items[index];
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

static void note(const struct scan *scan, struct candidate *target, uint64_t from,
                 enum code_reference reference)
{
    bool jump = reference == CODE_REFERENCE_JUMP || reference == CODE_REFERENCE_BRANCH;
    uint32_t source = jump ? function_at(scan->finder, from) : NONE;

    if (jump && source == target->function)
        return;
    if (scan->votes) {
        if (jump && source != NONE && !(scan->finder->functions[source].flags & IMAGE_FUNCTION_FRAGMENT))
            vote(&scan->votes[target - scan->targets->items], source);
        return;
    }
    target->called |= reference == CODE_REFERENCE_CALL;
    target->pointed |= reference == CODE_REFERENCE_POINTER;
    target->conditional |= reference == CODE_REFERENCE_BRANCH;
    if (jump)
        target->owner = source != NONE && (target->owner == NONE || target->owner == source) ? source : MANY;
}

static void scan_code(const struct scan *scan, uint64_t address, const uint8_t *code, size_t size)
{
    bool absolute = !elf_image_facts(scan->finder->image)->pie; /* addresses are operands, too */

    for (size_t at = 0; at + 4 <= size; at++) {
        enum code_reference reference;
        struct candidate *target;
        uint32_t operand;
        uint64_t to;

        memcpy(&operand, code + at, sizeof(operand));
        to = code_distance_target(code + at, address + at);
        if (filter_has(scan, to) && (reference = code_reference(code + at, at, NULL)) &&
            (target = target_at(scan, to)))
            note(scan, target, address + at, reference);
        if (absolute && filter_has(scan, operand) && (target = target_at(scan, operand)))
            note(scan, target, address + at, CODE_REFERENCE_POINTER);
    }
}

/* Pointers in data; the addends of relocations are loaded with the rest, and looked at here as well. */
static void scan_data(const struct scan *scan)
{
    struct address_range range;
    bool executable;
    size_t size = 0;

    for (size_t i = 0; elf_image_segment(scan->finder->image, i, &range, &executable); i++) {
        const uint8_t *data = executable ? NULL : elf_image_bytes(scan->finder->image, range.start, &size);

        for (size_t at = 0; data && at + 8 <= size; at += 8) {
            struct candidate *target;
            uint64_t to;

            memcpy(&to, data + at, sizeof(to));
            if (filter_has(scan, to) && (target = target_at(scan, to)))
                target->pointed = true;
        }
    }
}

/* Go's own code neither jumps into nor calls C functions: it reaches them by pointers in data. */
static void scan_section(const struct scan *scan, uint64_t start, uint64_t end)
{
    const struct finder *finder = scan->finder;
    size_t size;
    const uint8_t *code;

    if (start < finder->go.end && end > finder->go.start) {
        scan_section(scan, start, finder->go.start);
        start = finder->go.end;
    }
    code = start < end ? elf_image_code(finder->image, start, &size) : NULL;
    if (code)
        scan_code(scan, start, code, size < end - start ? size : end - start);
}

static void scan_sections(const struct scan *scan)
{
    const struct code_map *map = scan->finder->map;
    uint64_t done = 0; /* sections of crafted files may overlap */

    for (size_t i = 0; i < map->count; i++) {
        if (map->items[i].end <= done)
            continue;
        scan_section(scan, map->items[i].start > done ? map->items[i].start : done, map->items[i].end);
        done = map->items[i].end;
    }
}

static void scan_release(struct scan *scan)
{
    free(scan->filter);
    free(scan->slots);
}

/* Prepares a scan for the beginnings of `targets` or, with `votes`, for their extents. */
static int scan_prepare(struct scan *scan, const struct finder *finder, struct candidates *targets,
                        struct votes *votes)
{
    uint64_t slots = 16;

    while (slots < 2 * (uint64_t)targets->count)
        slots *= 2;
    *scan = (struct scan){.finder = finder, .targets = targets, .votes = votes, .grain = votes ? 4 : 0};
    scan->filter = calloc(FILTER_BITS / 64, sizeof(*scan->filter));
    scan->slots = malloc(slots * sizeof(*scan->slots));
    scan->slot_mask = slots - 1;
    if (!scan->filter || !scan->slots)
        return -ENOMEM;
    memset(scan->slots, 0xff, slots * sizeof(*scan->slots));
    for (size_t i = 0; i < targets->count; i++) {
        const struct candidate *target = &targets->items[i];

        filter_add(scan, target->start, votes ? target->end : target->start + 1);
        *slot_of(scan, target->start) = (uint32_t)i;
    }
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
        enum code_reference reference = code_reference(code + at, at, NULL);
        uint32_t to;
        uint64_t address;

        if (reference != CODE_REFERENCE_JUMP && reference != CODE_REFERENCE_BRANCH)
            continue;
        address = code_distance_target(code + at, fragment->start + at);
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

enum verdict { FUNCTION, FRAGMENT, FRAGMENT_UNLESS_POINTED };

static enum verdict judge(const struct finder *finder, const struct fde_list *fdes,
                          const struct candidate *candidate)
{
    if (candidate->called)
        return FUNCTION;
    if (finder->functions[candidate->function].flags & IMAGE_FUNCTION_FRAGMENT)
        return FRAGMENT; /* so its name says, and nothing speaks against it */
    if (entry_at(fdes, candidate->start) == FDE_CONTINUED)
        return FRAGMENT;
    if (candidate->pointed || candidate->owner == NONE || candidate->owner == MANY)
        return FUNCTION;
    if (candidate->start % FUNCTION_ALIGNMENT == 0)
        return FUNCTION;
    return candidate->conditional || jumps_back(finder, candidate) ? FRAGMENT_UNLESS_POINTED : FUNCTION;
}

/* Marks the fragments, and drops the other candidates from the list. Data are read only when they matter. */
static void decide(const struct scan *scan, const struct fde_list *fdes, struct candidates *candidates)
{
    const struct finder *finder = scan->finder;
    bool unsettled = false;
    size_t kept = 0;

    for (size_t i = 0; i < candidates->count && !unsettled; i++)
        unsettled = judge(finder, fdes, &candidates->items[i]) == FRAGMENT_UNLESS_POINTED;
    if (unsettled)
        scan_data(scan);
    for (size_t i = 0; i < candidates->count; i++) {
        struct candidate *candidate = &candidates->items[i];
        unsigned *flags = &finder->functions[candidate->function].flags;

        if (judge(finder, fdes, candidate) != FUNCTION) {
            *flags |= IMAGE_FUNCTION_FRAGMENT;
            candidates->items[kept++] = *candidate;
        } else {
            *flags &= ~(unsigned)IMAGE_FUNCTION_FRAGMENT;
        }
    }
    candidates->count = kept;
}

/* ---------------------------------------------------------------------------------------------- owners */

/* Who has more than twice the votes of any other: fragments of functions that are alike may be folded into
 * one. */
static uint32_t winner(const struct votes *votes)
{
    unsigned most = 0, second = 0;
    uint32_t best = NONE;

    for (size_t i = 0; i < VOTERS; i++) {
        if (votes->count[i] <= most) {
            second = votes->count[i] > second ? votes->count[i] : second;
            continue;
        }
        second = most;
        most = votes->count[i];
        best = votes->function[i];
    }
    return most > 2 * second ? best : NONE;
}

static bool is_settled(const struct finder *finder, const struct candidate *fragment)
{
    return fragment->owner != NONE && fragment->owner != MANY &&
           !(finder->functions[fragment->owner].flags & IMAGE_FUNCTION_FRAGMENT);
}

/* Settles by votes whose parts `fragments` are. */
static int elect(const struct finder *finder, struct candidates *fragments)
{
    AUTO_FREE struct votes *votes = calloc(fragments->count, sizeof(*votes));
    CLEANUP(scan_release) struct scan scan = {0};

    if (!votes || scan_prepare(&scan, finder, fragments, votes) < 0)
        return -ENOMEM;
    scan_sections(&scan);
    for (size_t i = 0; i < fragments->count; i++) {
        uint32_t owner;

        vote_outwards(finder, &fragments->items[i], &votes[i]);
        owner = winner(&votes[i]);
        if (owner != NONE)
            finder->functions[fragments->items[i].function].part_of = finder->functions[owner].address;
    }
    return 0;
}

/* Sets `part_of`: to the one function that jumps to the beginning; where there is none such, to the winner.
 */
static int find_owners(const struct finder *finder, struct candidates *fragments)
{
    size_t open = 0;
    int r;

    for (size_t i = 0; i < fragments->count; i++) {
        const struct candidate *fragment = &fragments->items[i];

        if (is_settled(finder, fragment))
            finder->functions[fragment->function].part_of = finder->functions[fragment->owner].address;
        else
            fragments->items[open++] = *fragment;
    }
    fragments->count = open;
    if (open == 0)
        return 0;
    r = elect(finder, fragments);
    return r < 0 ? r : fragment_names_find_owners(finder->functions, finder->count);
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

/* From the first of Go's functions to the last. */
static struct address_range go_code(const struct image_function *functions, size_t count)
{
    struct address_range range = {0, 0};

    for (size_t i = 0; i < count; i++) {
        if (functions[i].source != IMAGE_SOURCE_GOPCLNTAB)
            continue;
        if (!range.end)
            range.start = functions[i].address;
        range.end = functions[i].address + functions[i].size;
    }
    return range;
}

int fragments_find(struct elf_image *image, const struct code_map *map, const struct fde_list *fdes,
                   struct image_function *functions, size_t count)
{
    const struct finder finder = {image, map, functions, count, go_code(functions, count)};
    CLEANUP(candidates_release) struct candidates candidates = {0};
    CLEANUP(scan_release) struct scan scan = {0};

    if (count >= MANY)
        return 0;
    if (collect(&finder, &candidates) < 0)
        return -ENOMEM;
    if (candidates.count == 0)
        return 0;
    if (scan_prepare(&scan, &finder, &candidates, NULL) < 0)
        return -ENOMEM;
    scan_sections(&scan);
    decide(&scan, fdes, &candidates);
    return find_owners(&finder, &candidates);
}
