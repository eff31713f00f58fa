/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/flow/flow_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "image/flow/flow_switch.h"

#define FUNCTION_SIZE_MAX (4u << 20)

enum mark {
    MARK_START = 1,  /* an instruction begins here */
    MARK_LEADER = 2, /* and a block */
    MARK_UNSEEN = 4, /* read though nothing was seen to lead here */
};

/* ---------------------------------------------------------------------------------------------- extents */

struct flow_extent *flow_reader_extent(struct flow_reader *reader, uint64_t address)
{
    for (size_t i = 0; i < reader->extent_count; i++)
        if (address - reader->extents[i].address < reader->extents[i].size)
            return &reader->extents[i];
    return NULL;
}

static uint8_t *mark_at(struct flow_reader *reader, uint64_t address)
{
    struct flow_extent *extent = flow_reader_extent(reader, address);

    return extent ? &extent->marks[address - extent->address] : NULL;
}

static int add_extent(struct flow_reader *reader, const struct image_function *part)
{
    struct flow_extent *extent = &reader->extents[reader->extent_count];
    size_t size = 0;

    if (reader->extent_count == FLOW_EXTENTS_MAX)
        return 0;
    *extent = (struct flow_extent){.address = part->address, .size = part->size};
    extent->code = elf_image_code(reader->image, part->address, &size);
    if (!extent->code || size < part->size)
        return -ENOENT;
    if (part->size > FUNCTION_SIZE_MAX)
        return -E2BIG;
    extent->marks = calloc(part->size, 1);
    if (!extent->marks)
        return -ENOMEM;
    reader->extent_count++;
    return 0;
}

static int add_extents(struct flow_reader *reader, const struct image_function *function)
{
    int r = add_extent(reader, function);

    for (size_t i = 0; r == 0 && i < reader->function_count; i++) {
        const struct image_function *other = &reader->functions[i];

        if ((other->flags & IMAGE_FUNCTION_FRAGMENT) && other->part_of == function->address)
            r = add_extent(reader, other);
    }
    return r;
}

/* ---------------------------------------------------------------------------------------------- calls */

static const char *const no_return[] = {
    "abort",
    "exit",
    "_exit",
    "_Exit",
    "quick_exit",
    "longjmp",
    "_longjmp",
    "siglongjmp",
    "pthread_exit",
    "__assert_fail",
    "__assert",
    "__cxa_throw",
    "__cxa_rethrow",
    "__chk_fail",
    "__stack_chk_fail",
    "__longjmp_chk",
    "_Unwind_Resume",
    "__fortify_fail",
    "err",
    "errx",
    "__cxa_bad_cast",
    "__cxa_throw_bad_array_new_length",
    "__libc_fatal",
    "thrd_exit",
};

static const char *const twice[] = {"setjmp", "_setjmp", "sigsetjmp", "__sigsetjmp", "vfork", "getcontext"};

static bool is_named(const char *name, const char *const *names, size_t count)
{
    const char *at = strstr(name, "@plt");
    size_t length = at ? (size_t)(at - name) : strlen(name);

    for (size_t i = 0; i < count; i++)
        if (strncmp(name, names[i], length) == 0 && names[i][length] == '\0')
            return true;
    return false;
}

/* Whether the call comes back. */
static bool comes_back(struct flow_reader *reader, const struct instruction *call)
{
    const struct image_function *callee =
        call->target ? image_functions_find(reader->functions, reader->function_count, call->target) : NULL;

    if (!callee || callee->address != call->target)
        return true;
    if (is_named(callee->name, twice, ARRAY_SIZE(twice)))
        reader->graph->returns_twice = true;
    return !is_named(callee->name, no_return, ARRAY_SIZE(no_return));
}

/* ---------------------------------------------------------------------------------------------- following */

/* Wants `address` to be followed, as the beginning of a block. False in *ret_inside: it is outside the
 * function. */
static int follow(struct flow_reader *reader, uint64_t address, bool *ret_inside)
{
    uint8_t *mark = mark_at(reader, address);

    if (ret_inside)
        *ret_inside = mark;
    if (!mark)
        return 0;
    if (reader->reading && (*mark & MARK_START) && !(*mark & MARK_UNSEEN))
        reader->rejoins = true;
    *mark |= MARK_LEADER;
    if (*mark & MARK_START)
        return 0;
    if (array_reserve(&reader->pending, &reader->pending_capacity, reader->pending_count + 1) < 0)
        return -ENOMEM;
    reader->pending[reader->pending_count++] = address;
    return 0;
}

static int add_tail(struct flow_graph *graph, uint64_t target)
{
    if (array_reserve(&graph->tails, &graph->tail_capacity, graph->tail_count + 1) < 0)
        return -ENOMEM;
    graph->tails[graph->tail_count++] = target;
    return 0;
}

/* What a branch or jump leads to. */
static int follow_target(struct flow_reader *reader, const struct instruction *instruction)
{
    bool inside;
    int r = follow(reader, instruction->target, &inside);

    return r < 0 || inside ? r : add_tail(reader->graph, instruction->target);
}

/* Whether the instruction may be followed by the one behind it. */
bool flow_reader_goes_on(struct flow_reader *reader, const struct instruction *instruction)
{
    switch (instruction->kind) {
    case INSTRUCTION_JUMP:
    case INSTRUCTION_JUMP_INDIRECT:
    case INSTRUCTION_RETURN:
    case INSTRUCTION_TRAP:
        return false;
    case INSTRUCTION_CALL:
        return comes_back(reader, instruction);
    default:
        return true;
    }
}

/* Reads from `address` up to where the path ends or meets what was read before. */
static int read_run(struct flow_reader *reader, uint64_t address)
{
    struct flow_graph *graph = reader->graph;
    struct flow_extent *extent;

    while ((extent = flow_reader_extent(reader, address))) {
        size_t at = address - extent->address;
        struct instruction instruction;

        if (extent->marks[at] & MARK_START) {
            extent->marks[at] |= MARK_LEADER;
            reader->rejoins |= reader->reading && !(extent->marks[at] & MARK_UNSEEN);
            return 0;
        }
        if (disasm_decode(reader->disasm, extent->code + at, extent->size - at, address, &instruction) < 0)
            return 0;
        if (array_reserve(&graph->instructions, &graph->instruction_capacity, graph->instruction_count + 1) <
            0)
            return -ENOMEM;
        graph->instructions[graph->instruction_count++] = instruction;
        extent->marks[at] |= MARK_START | reader->reading;
        if ((instruction.kind == INSTRUCTION_BRANCH || instruction.kind == INSTRUCTION_JUMP) &&
            follow_target(reader, &instruction) < 0)
            return -ENOMEM;
        if (!flow_reader_goes_on(reader, &instruction))
            return 0;
        address += instruction.length;
        if (instruction.kind == INSTRUCTION_BRANCH && follow(reader, address, NULL) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int read_pending(struct flow_reader *reader)
{
    while (reader->pending_count > 0) {
        int r = read_run(reader, reader->pending[--reader->pending_count]);

        if (r < 0)
            return r;
    }
    return 0;
}

/* ---------------------------------------------------------------------------------------------- switches */

static int compare_instructions(const void *left, const void *right)
{
    const struct instruction *a = left, *b = right;

    return (a->address > b->address) - (a->address < b->address);
}

static void sort_instructions(struct flow_graph *graph)
{
    if (graph->instruction_count)
        qsort(graph->instructions, graph->instruction_count, sizeof(*graph->instructions),
              compare_instructions);
}

/* How many instructions up to and with `last` follow directly on each other. */
static size_t run_before(const struct flow_graph *graph, size_t last)
{
    size_t first = last;

    while (first > 0 && graph->instructions[first - 1].address + graph->instructions[first - 1].length ==
                            graph->instructions[first].address)
        first--;
    return last + 1 - first;
}

static int add_way(struct flow_reader *reader, uint64_t from, uint64_t to)
{
    if (array_reserve(&reader->ways, &reader->way_capacity, reader->way_count + 1) < 0)
        return -ENOMEM;
    reader->ways[reader->way_count][0] = from;
    reader->ways[reader->way_count++][1] = to;
    return 0;
}

bool flow_reader_has_way(const struct flow_reader *reader, uint64_t from)
{
    for (size_t i = 0; i < reader->way_count; i++)
        if (reader->ways[i][0] == from)
            return true;
    return false;
}

/* Follows the table of the jump, if all its entries are in the function. */
static int resolve(struct flow_reader *reader, size_t jump)
{
    const struct flow_graph *graph = reader->graph;
    struct flow_run run = {.all = graph->instructions, .all_count = graph->instruction_count};
    uint64_t from = graph->instructions[jump].address;
    AUTO_FREE uint64_t *targets = NULL;
    size_t count;
    int r;

    run.count = run_before(graph, jump);
    run.items = graph->instructions + jump + 1 - run.count;
    r = flow_switch_targets(reader->image, &run, &targets, &count);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    for (size_t i = 0; i < count; i++)
        if (!flow_reader_extent(reader, targets[i]))
            return 0;
    for (size_t i = 0; i < count; i++)
        if (add_way(reader, from, targets[i]) < 0 || follow(reader, targets[i], NULL) < 0)
            return -ENOMEM;
    return 1;
}

/* Until no table leads to anything new. */
static int read_all(struct flow_reader *reader)
{
    struct flow_graph *graph = reader->graph;

    for (bool again = true; again;) {
        int r = read_pending(reader);

        if (r < 0)
            return r;
        again = false;
        sort_instructions(graph);
        for (size_t i = 0; i < graph->instruction_count; i++) {
            if (graph->instructions[i].kind != INSTRUCTION_JUMP_INDIRECT ||
                flow_reader_has_way(reader, graph->instructions[i].address))
                continue;
            r = resolve(reader, i);
            if (r < 0)
                return r;
            again |= r > 0;
        }
    }
    return 0;
}

/* ---------------------------------------------------------------------------------------------- unseen code
 */

/* Reads the code of `extent` that nothing led to, each stretch from its first instruction that is no filler.
 */
static int read_unseen(struct flow_reader *reader, const struct flow_extent *extent)
{
    struct instruction instruction;

    for (size_t at = 0; at < extent->size; at += instruction.length) {
        if (disasm_decode(reader->disasm, extent->code + at, extent->size - at, extent->address + at,
                          &instruction) < 0) {
            instruction.length = 1;
            continue;
        }
        if ((extent->marks[at] & MARK_START) || instruction.kind == INSTRUCTION_NOP ||
            instruction.kind == INSTRUCTION_TRAP)
            continue;
        if (follow(reader, extent->address + at, NULL) < 0 || read_pending(reader) < 0)
            return -ENOMEM;
    }
    return 0;
}

/* Whether handlers of exceptions, or whatever else nothing was seen to lead to, lead back. What was read only
 * for that is forgotten again. */
static int find_unseen(struct flow_reader *reader)
{
    struct flow_graph *graph = reader->graph;
    size_t seen = graph->instruction_count, tails = graph->tail_count;

    reader->reading = MARK_UNSEEN;
    for (size_t i = 0; i < reader->extent_count; i++)
        if (read_unseen(reader, &reader->extents[i]) < 0)
            return -ENOMEM;
    graph->unseen_entries = reader->rejoins;
    graph->instruction_count = seen;
    graph->tail_count = tails;
    return 0;
}

/* ---------------------------------------------------------------------------------------------- all */

bool flow_reader_is_leader(struct flow_reader *reader, uint64_t address)
{
    const uint8_t *mark = mark_at(reader, address);

    return mark && (*mark & MARK_LEADER);
}

int flow_reader_read(struct flow_reader *reader, const struct image_function *function)
{
    int r = add_extents(reader, function);

    if (r == 0)
        r = follow(reader, function->address, NULL);
    if (r == 0)
        r = read_all(reader);
    return r == 0 ? find_unseen(reader) : r;
}

void flow_reader_release(struct flow_reader *reader)
{
    for (size_t i = 0; i < reader->extent_count; i++)
        free(reader->extents[i].marks);
    free(reader->pending);
    free(reader->ways);
}
