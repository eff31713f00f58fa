/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to image/: the instructions of a function, found by following its paths from the entry. */
#ifndef TRACECTL_IMAGE_FLOW_FLOW_READER_H
#define TRACECTL_IMAGE_FLOW_FLOW_READER_H

#include "image/flow/flow_graph.h"

/* A function and its fragments: more of them than that are not followed. */
#define FLOW_EXTENTS_MAX 16

struct flow_extent {
    uint64_t address;
    uint64_t size;
    const uint8_t *code; /* borrowed from the image */
    uint8_t *marks;      /* of each byte */
};

/* To be filled with what is borrowed, the rest zero. */
struct flow_reader {
    struct elf_image *image;
    const struct image_function *functions;
    size_t function_count;
    struct disasm *disasm;
    struct flow_graph *graph; /* gets the instructions and the targets of jumps out of the function */
    struct flow_extent extents[FLOW_EXTENTS_MAX];
    size_t extent_count;
    uint64_t *pending; /* addresses that are still to be followed */
    size_t pending_count, pending_capacity;
    uint64_t (*ways)[2]; /* from an indirect jump to a target of its table */
    size_t way_count, way_capacity;
    uint8_t reading; /* the mark of what is read now: not 0 for code that nothing was seen to lead to */
    bool rejoins;    /* such code leads back into what was followed */
};

/* Reads the function: graph->instructions are sorted then. -ENOENT: there is no code; -E2BIG, -ENOMEM. To be
 * released in any case. */
int flow_reader_read(struct flow_reader *reader, const struct image_function *function);
void flow_reader_release(struct flow_reader *reader);

/* The part of the function that holds the address, or NULL. */
struct flow_extent *flow_reader_extent(struct flow_reader *reader, uint64_t address);

/* Whether a block begins there. */
bool flow_reader_is_leader(struct flow_reader *reader, uint64_t address);

/* Whether the instruction may be followed by the one behind it. */
bool flow_reader_goes_on(struct flow_reader *reader, const struct instruction *instruction);

/* Whether the targets of the indirect jump at `from` are known. */
bool flow_reader_has_way(const struct flow_reader *reader, uint64_t from);

#endif
