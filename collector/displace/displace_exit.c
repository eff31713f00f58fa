/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/displace/displace_exit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "collector/arch/relocate.h"
#include "image/arch/code_bytes.h"
#include "image/arch/effects.h"
#include "image/flow/branch_targets.h"
#include "image/flow/flow_graph.h"
#include "image/flow/flow_image.h"

#define PAGE 4096u

struct search {
    struct elf_image *image;
    const struct image_function *functions;
    size_t count;
    const struct displace_entries *entries;
    struct flow_map *map;
    struct disasm *disasm;
    struct displace_exits *exits;
    const struct displace_site *entry; /* of the function that is looked at */
    const struct flow_graph *graph;
};

/* ------------------------------------------------------------------------------------ one RET */

/* What moves so far: from `start` up to `end`, where the RET ends. */
struct stretch {
    size_t first, last; /* instructions of the graph */
    uint64_t start, end;
};

static uint64_t entry_end(const struct search *search)
{
    size_t moved = search->entry->displacement.length;

    return search->entry->address + (moved > DISPLACE_JUMP ? moved : DISPLACE_JUMP);
}

/* Whether the entry's stub comes to the RET, and nothing else but who is led to the function's first
 * instruction. */
static bool is_in_entry(const struct search *search, const struct instruction *ret)
{
    const struct displacement *displacement = &search->entry->displacement;
    uint64_t end = search->entry->address + displacement->length;

    if (!displacement->falls)
        return ret->address >= search->entry->address && ret->address + ret->length == end;
    return ret->address == end && !branch_targets_within(search->map, end, end);
}

/* Whether the instruction does in a stub what it does here, and continues with the next one. */
static bool may_come_before(const struct instruction *instruction)
{
    return (instruction->kind == INSTRUCTION_OTHER || instruction->kind == INSTRUCTION_NOP ||
            instruction->kind == INSTRUCTION_PUSH) &&
           relocate_can(instruction) && !instruction_may_stay(instruction);
}

/* Takes in instructions before, as far as needed and possible. */
static void extend(const struct search *search, struct stretch *stretch)
{
    const struct flow_graph *graph = search->graph;
    uint32_t block = flow_graph_block(graph, stretch->start);

    while (stretch->end - stretch->start < DISPLACE_JUMP && stretch->first > graph->blocks[block].first) {
        const struct instruction *before = &graph->instructions[stretch->first - 1];

        if (before->address + before->length != stretch->start || before->address < entry_end(search) ||
            !may_come_before(before) || branch_targets_within(search->map, stretch->start, stretch->start))
            return;
        stretch->first--;
        stretch->start = before->address;
    }
}

/* The first byte behind `address` that is another function's, or the end of the code. */
static uint64_t next_function(const struct search *search, uint64_t address, uint64_t end)
{
    size_t low = 0, high = search->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (search->functions[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < search->count && search->functions[low].address < end ? search->functions[low].address : end;
}

/* Whether `wanted` bytes behind the RET are never run. */
static bool has_padding(const struct search *search, const struct stretch *stretch, size_t wanted)
{
    const struct flow_graph *graph = search->graph;
    size_t size = 0, room;
    const uint8_t *code = elf_image_code(search->image, stretch->end, &size);
    struct instruction instruction;

    room = code ? next_function(search, stretch->end - 1, stretch->end + size) - stretch->end : 0;
    if (room < wanted || (stretch->last + 1 < graph->instruction_count &&
                          graph->instructions[stretch->last + 1].address < stretch->end + wanted))
        return false;
    for (size_t at = 0; at < wanted; at += instruction.length) {
        if (code_is_trap(code + at)) {
            instruction.length = CODE_TRAP_BYTES;
            continue;
        }
        if (disasm_skim(code + at, room - at, 0, &instruction) < 0 || instruction.kind != INSTRUCTION_NOP)
            return false;
    }
    return true;
}

/* Writes down what moves. */
static enum exit_refusal fill(const struct search *search, const struct stretch *stretch,
                              struct displace_exit *exit)
{
    struct displacement *displacement = &exit->displacement;
    struct instruction again;
    size_t size = 0;

    exit->address = stretch->start;
    exit->code = elf_image_code(search->image, stretch->start, &size);
    if (!exit->code || size < stretch->end - stretch->start)
        return EXIT_UNKNOWN;
    for (size_t i = stretch->first; i <= stretch->last; i++) {
        const struct instruction *instruction = &search->graph->instructions[i];
        size_t at = instruction->address - stretch->start;

        if (!disasm_agree(search->disasm, exit->code + at, size - at, instruction->address, &again) ||
            again.length != instruction->length)
            return EXIT_UNKNOWN;
        displacement->starts[displacement->count++] = (uint8_t)at;
        displacement->length += again.length;
    }
    return EXIT_OK;
}

static enum exit_refusal check_bytes(const struct search *search, const struct displace_exit *exit)
{
    size_t bytes = displace_exit_bytes(exit);

    if (flow_map_has_any(search->map, exit->address, bytes, FLOW_CHANGES))
        return EXIT_UNKNOWN;
    return exit->address % PAGE > PAGE - DISPLACE_JUMP ||
                   branch_targets_within(search->map, exit->address + 1, exit->address + bytes - 1)
               ? EXIT_SHORT
               : EXIT_OK;
}

static enum exit_refusal place_exit(const struct search *search, size_t index, struct displace_exit *exit)
{
    const struct instruction *ret = &search->graph->instructions[index];
    struct stretch stretch = {index, index, ret->address, ret->address + ret->length};
    enum exit_refusal refusal;

    if (!relocate_can(ret))
        return EXIT_UNKNOWN;
    if (is_in_entry(search, ret)) {
        exit->in_entry = true;
        return fill(search, &stretch, exit);
    }
    if (ret->address < entry_end(search) && ret->address + ret->length > search->entry->address)
        return EXIT_SHORT;
    extend(search, &stretch);
    if (stretch.end - stretch.start < DISPLACE_JUMP &&
        !has_padding(search, &stretch, DISPLACE_JUMP - (stretch.end - stretch.start)))
        return EXIT_SHORT;
    refusal = fill(search, &stretch, exit);
    return refusal == EXIT_OK ? check_bytes(search, exit) : refusal;
}

/* ------------------------------------------------------------------------------------ one function */

static bool is_entry_of_recorded(const struct search *search, uint64_t address)
{
    const struct image_function *function = image_functions_find(search->functions, search->count, address);

    return function && function->address == address &&
           search->entries->recorded[function - search->functions];
}

/* Whether what follows the instruction is known. A call that is followed by nothing does not return. */
static bool continues_well(const struct flow_graph *graph, size_t index)
{
    const struct instruction *instruction = &graph->instructions[index];
    uint64_t end = instruction->address + instruction->length;
    bool is_last = index + 1 == graph->instruction_count;

    if (!is_last && instruction[1].address < end)
        return false; /* they overlap */
    return instruction_leaves(instruction) || instruction_is_call(instruction) ||
           instruction->kind == INSTRUCTION_TRAP || (!is_last && instruction[1].address == end);
}

/* Whether a RET lies in the part of the function that was not followed. */
static bool returns_unseen(const struct search *search, uint64_t start, uint64_t end)
{
    struct instruction instruction;
    size_t size = 0;
    const uint8_t *code = elf_image_code(search->image, start, &size);

    for (uint64_t at = start; code && at < end && at - start < size; at++)
        if (flow_map_has(search->map, at, FLOW_START) && !flow_graph_instruction(search->graph, at) &&
            disasm_skim(code + (at - start), size - (at - start), at, &instruction) >= 0 &&
            instruction.kind == INSTRUCTION_RETURN)
            return true;
    return false;
}

static enum exit_refusal check_flow(const struct search *search, const struct image_function *function)
{
    const struct flow_graph *graph = search->graph;

    for (uint32_t i = 0; i < graph->block_count; i++)
        if (graph->blocks[i].flags & FLOW_BLOCK_UNKNOWN)
            return EXIT_INDIRECT;
    for (size_t i = 0; i < graph->instruction_count; i++)
        if (!continues_well(graph, i))
            return EXIT_FALLS;
    for (size_t i = 0; i < graph->tail_count; i++)
        if (!is_entry_of_recorded(search, graph->tails[i]))
            return EXIT_TAIL;
    return returns_unseen(search, function->address, function->address + function->size) ? EXIT_UNSEEN
                                                                                         : EXIT_OK;
}

static int place_exits(struct search *search, enum exit_refusal *ret_refusal)
{
    struct displace_exits *exits = search->exits;
    size_t before = exits->count;

    for (size_t i = 0; i < search->graph->instruction_count && *ret_refusal == EXIT_OK; i++) {
        if (search->graph->instructions[i].kind != INSTRUCTION_RETURN)
            continue;
        if (array_reserve(&exits->items, &exits->capacity, exits->count + 1))
            return -ENOMEM;
        exits->items[exits->count] = (struct displace_exit){0};
        *ret_refusal = place_exit(search, i, &exits->items[exits->count]);
        exits->count++;
    }
    if (*ret_refusal != EXIT_OK)
        exits->count = before;
    return 0;
}

static int look_at(struct search *search, size_t index, enum exit_refusal *ret_refusal)
{
    const struct image_function *function = &search->functions[index];
    AUTO_FLOW_GRAPH struct flow_graph *graph = NULL;
    int r;

    if (!search->entries->chosen[index]) {
        *ret_refusal = EXIT_NO_ENTRY;
        return 0;
    }
    r = flow_graph_new(search->image, search->functions, search->count, function, search->disasm, &graph);
    if (r) {
        *ret_refusal = EXIT_UNKNOWN;
        return r == -ENOMEM ? r : 0;
    }
    search->graph = graph;
    search->entry = &search->entries->sites[index];
    *ret_refusal = check_flow(search, function);
    return place_exits(search, ret_refusal);
}

/* ------------------------------------------------------------------------------------ what meets */

/* Bytes that a jump of a function's takes. */
struct taken {
    uint64_t start, end;
    size_t function;
    bool is_exit;
};

static int compare_taken(const void *left, const void *right)
{
    const struct taken *a = left, *b = right;

    return (a->start > b->start) - (a->start < b->start);
}

static size_t list_taken(const struct search *search, struct taken *list)
{
    size_t count = 0, exit_count;

    for (size_t i = 0; i < search->count; i++) {
        const struct displace_site *site = &search->entries->sites[i];

        if (search->entries->chosen[i])
            list[count++] = (struct taken){site->address, site->address + DISPLACE_JUMP, i, false};
        for (const struct displace_exit *exit = displace_exits_of(search->exits, i, &exit_count); exit_count;
             exit++, exit_count--)
            if (!exit->in_entry)
                list[count++] =
                    (struct taken){exit->address, exit->address + displace_exit_bytes(exit), i, true};
    }
    return count;
}

/* No two jumps share a byte: exits give way. */
static int part(struct search *search)
{
    AUTO_FREE struct taken *list = calloc(search->count + search->exits->count + 1, sizeof(*list));
    uint64_t end = 0;
    size_t count, last = 0;

    if (!list)
        return -ENOMEM;
    count = list_taken(search, list);
    qsort(list, count, sizeof(*list), compare_taken);
    for (size_t i = 0; i < count; i++) {
        if (i && list[i].start < end) {
            if (list[i].is_exit)
                displace_exits_refuse(search->exits, list[i].function, EXIT_SHARED);
            if (list[last].is_exit)
                displace_exits_refuse(search->exits, list[last].function, EXIT_SHARED);
        }
        if (list[i].end > end) {
            end = list[i].end;
            last = i;
        }
    }
    return 0;
}

/* ------------------------------------------------------------------------------------ an image */

void displace_exits_free(struct displace_exits *exits)
{
    if (!exits)
        return;
    free(exits->refusals);
    free(exits->first);
    free(exits->items);
    free(exits);
}

DEFINE_CLEANUP(cleanup_exits, struct displace_exits *, displace_exits_free)

void displace_exits_refuse(struct displace_exits *exits, size_t function, enum exit_refusal refusal)
{
    exits->refusals[function] = refusal;
}

const struct displace_exit *displace_exits_of(const struct displace_exits *exits, size_t function,
                                              size_t *ret_count)
{
    *ret_count = 0;
    if (!exits || exits->refusals[function] != EXIT_OK)
        return NULL;
    *ret_count = exits->first[function + 1] - exits->first[function];
    return *ret_count ? &exits->items[exits->first[function]] : NULL;
}

size_t displace_exit_bytes(const struct displace_exit *exit)
{
    size_t moved = exit->displacement.length;

    if (exit->in_entry)
        return 0;
    return moved > DISPLACE_JUMP ? moved : DISPLACE_JUMP;
}

static void release(struct search *search)
{
    disasm_free(search->disasm);
}

int displace_exits_new(struct elf_image *image, const struct image_function *functions, size_t count,
                       const struct displace_entries *entries, struct displace_exits **ret_exits,
                       struct error *err)
{
    CLEANUP(cleanup_exits) struct displace_exits *exits = calloc(1, sizeof(*exits));
    CLEANUP(release)
    struct search search = {.image = image,
                            .functions = functions,
                            .count = count,
                            .map = entries->map,
                            .entries = entries,
                            .exits = exits};
    int r;

    if (!exits)
        return error_no_memory(err);
    exits->functions = count;
    exits->refusals = calloc(count + 1, sizeof(*exits->refusals));
    exits->first = calloc(count + 1, sizeof(*exits->first));
    if (!exits->refusals || !exits->first)
        return error_no_memory(err);
    r = disasm_new(&search.disasm, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++) {
        if (look_at(&search, i, &exits->refusals[i]))
            return error_no_memory(err);
        exits->first[i + 1] = exits->count;
    }
    if (part(&search))
        return error_no_memory(err);
    *ret_exits = take_pointer(exits);
    return 0;
}

const char *displace_exit_refusal_text(enum exit_refusal refusal)
{
    static const char *const texts[EXIT_REFUSALS] = {
        [EXIT_OK] = "not refused",
        [EXIT_NO_ENTRY] = "their calls have no inline probe",
        [EXIT_UNKNOWN] = "their code is not understood",
        [EXIT_INDIRECT] = "an indirect jump leads to unknown places",
        [EXIT_UNSEEN] = "code that nothing was seen to lead to returns",
        [EXIT_FALLS] = "they continue into what follows",
        [EXIT_TAIL] = "they jump to something that has no probe",
        [EXIT_SHORT] = "there is no room for a jump at a return",
        [EXIT_SHARED] = "they share code with others",
    };

    return refusal < EXIT_REFUSALS && texts[refusal] ? texts[refusal] : "unknown";
}
