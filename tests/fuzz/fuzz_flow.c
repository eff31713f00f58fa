/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Any bytes as the code of a function and, what is not code, as its jump tables: its flow graph, the order of
 * its points, and the values that follow from its instructions. The first five bytes say where the function
 * begins, how long it is, and where a fragment of it begins (none: not behind it).
 */
#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "image/flow/flow_graph.h"
#include "image/flow/flow_values.h"

enum { HEAD = 5, POINTS = 16, LOOPS = 4 };

#define LOADED 0x400000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* ---------------------------------------------------------------------------------------------- the image */

struct file_head {
    Elf64_Ehdr elf;
    Elf64_Phdr load;
};

/* A program with one segment, in which the bytes are. NULL: it cannot be made. */
static struct elf_image *image_of(const uint8_t *bytes, size_t size)
{
    struct file_head head = {
        .elf = {.e_type = ET_EXEC,
                .e_machine = EM_X86_64,
                .e_version = EV_CURRENT,
                .e_phoff = offsetof(struct file_head, load),
                .e_ehsize = sizeof(Elf64_Ehdr),
                .e_phentsize = sizeof(Elf64_Phdr),
                .e_phnum = 1},
        .load = {.p_type = PT_LOAD,
                 .p_flags = PF_R | PF_X,
                 .p_vaddr = LOADED,
                 .p_filesz = sizeof(head) + size,
                 .p_memsz = sizeof(head) + size},
    };
    AUTO_CLOSE int fd = memfd_create("fuzz", MFD_CLOEXEC);
    struct elf_image *image = NULL;

    memcpy(head.elf.e_ident, ELFMAG, SELFMAG);
    head.elf.e_ident[EI_CLASS] = ELFCLASS64;
    head.elf.e_ident[EI_DATA] = ELFDATA2LSB;
    head.elf.e_ident[EI_VERSION] = EV_CURRENT;
    if (fd < 0 || write(fd, &head, sizeof(head)) != (ssize_t)sizeof(head) ||
        write(fd, bytes, size) != (ssize_t)size)
        return NULL;
    return elf_image_open_fd(fd, "fuzz", &image, NULL) == 0 ? image : NULL;
}

/* ---------------------------------------------------------------------------------------------- the graph */

static void check_blocks(const struct flow_graph *graph)
{
    require(graph->first < graph->block_count && graph->blocks[graph->first].start == graph->entry);
    for (uint32_t i = 0; i < graph->block_count; i++) {
        const struct flow_block *block = &graph->blocks[i];
        const uint32_t *next = flow_graph_next(graph, i);

        require(block->start < block->end && block->count > 0);
        require(block->first + block->count <= graph->instruction_count);
        require(graph->instructions[block->first].address == block->start);
        require(i == 0 || graph->blocks[i - 1].start < block->start);
        require((size_t)block->next + block->nexts <= graph->successor_count);
        for (uint32_t k = 0; k < block->nexts; k++)
            require(next[k] < graph->block_count);
        if (block->dominator == FLOW_NONE)
            continue;
        require(flow_graph_dominates(graph, graph->first, i));
        require(flow_graph_dominates(graph, block->dominator, i));
    }
}

static void check_loops(const struct flow_graph *graph)
{
    for (uint32_t i = 0; i < graph->loop_count; i++) {
        const struct flow_loop *loop = &graph->loops[i];

        require(graph->blocks[loop->header].loop == i);
        require(loop->parent == FLOW_NONE
                    ? loop->depth == 1
                    : loop->parent < i && loop->depth == graph->loops[loop->parent].depth + 1);
    }
    for (uint32_t i = 0; i < graph->block_count; i++)
        for (uint32_t loop = graph->blocks[i].loop; loop != FLOW_NONE; loop = graph->loops[loop].parent) {
            require(loop < graph->loop_count && flow_graph_in_loop(graph, loop, i));
            require(flow_graph_dominates(graph, graph->loops[loop].header, i));
        }
}

/* What is said of two points is said of them the other way round. */
static void check_order(const struct flow_graph *graph)
{
    static const enum flow_order reversed[] = {[FLOW_SAME] = FLOW_SAME,
                                               [FLOW_BEFORE] = FLOW_AFTER,
                                               [FLOW_AFTER] = FLOW_BEFORE,
                                               [FLOW_UNORDERED] = FLOW_UNORDERED,
                                               [FLOW_UNKNOWN] = FLOW_UNKNOWN};
    size_t step = graph->instruction_count / POINTS + 1;
    enum flow_order order, reverse;

    for (size_t a = 0; a < graph->instruction_count; a += step)
        for (size_t b = 0; b <= a; b += step) {
            uint64_t at_a = graph->instructions[a].address, at_b = graph->instructions[b].address;

            require(flow_graph_order(graph, at_a, at_b, &order) == 0);
            require(flow_graph_order(graph, at_b, at_a, &reverse) == 0);
            require(reverse == reversed[order]);
            require(a == b || order != FLOW_SAME);
        }
}

/* ---------------------------------------------------------------------------------------------- values */

static void check_state(const struct flow_value *state, size_t places)
{
    for (size_t i = 0; i < places; i++) {
        require(state[i].kind <= FLOW_VALUE_SUM);
        require(state[i].kind == FLOW_VALUE_UNKNOWN || state[i].size == 4 || state[i].size == 8);
        require(state[i].kind != FLOW_VALUE_SUM || state[i].place < places);
    }
}

static void check_values(const struct flow_graph *graph, struct flow_values *values, uint32_t loop)
{
    struct flow_value state[FLOW_PLACE_SLOTS + FLOW_SLOTS_MAX];
    size_t step = graph->instruction_count / POINTS + 1, places;

    require(flow_values_follow(values, loop) == 0);
    places = flow_values_places(values);
    require(places <= FLOW_PLACE_SLOTS + FLOW_SLOTS_MAX);
    for (size_t i = 0; i < graph->instruction_count; i += step)
        if (flow_values_before(values, graph->instructions[i].address, state))
            check_state(state, places);
    for (uint32_t i = 0; i < graph->block_count; i++)
        if (flow_values_after_block(values, i, state))
            check_state(state, places);
}

static void follow_values(const struct flow_graph *graph, bool calls_keep)
{
    AUTO_FLOW_VALUES struct flow_values *values = NULL;

    if (flow_values_new(graph, calls_keep, &values, NULL) < 0)
        return;
    flow_values_vouch(values, -16, 4);
    check_values(graph, values, FLOW_NONE);
    for (uint32_t i = 0; i < graph->loop_count && i < LOOPS; i++)
        check_values(graph, values, i);
}

/* ---------------------------------------------------------------------------------------------- all */

static size_t number_at(const uint8_t *data)
{
    return data[0] | (size_t)data[1] << 8;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_ELF_IMAGE struct elf_image *image = NULL;
    AUTO_DISASM struct disasm *disasm = NULL;
    AUTO_FLOW_GRAPH struct flow_graph *graph = NULL;
    char name[] = "function", cold[] = "function.cold";
    struct image_function functions[2] = {{.name = name}, {.name = cold, .flags = IMAGE_FUNCTION_FRAGMENT}};
    size_t count = 1, room, begin, length, fragment;

    if (size <= HEAD || disasm_new(&disasm, NULL) < 0)
        return 0;
    room = size - HEAD;
    begin = data[0] % room;
    length = 1 + number_at(data + 1) % (room - begin);
    fragment = number_at(data + 3);
    functions[0].address = LOADED + sizeof(struct file_head) + begin;
    functions[0].size = length;
    if (fragment >= begin + length && fragment < room) {
        functions[1].address = LOADED + sizeof(struct file_head) + fragment;
        functions[1].size = room - fragment;
        functions[1].part_of = functions[0].address;
        count = 2;
    }
    image = image_of(data + HEAD, room);
    if (!image || flow_graph_new(image, functions, count, &functions[0], disasm, &graph) < 0)
        return 0;
    check_blocks(graph);
    check_loops(graph);
    check_order(graph);
    follow_values(graph, data[0] & 1);
    return 0;
}
