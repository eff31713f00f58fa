/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is known about every byte of an image's code: where instructions begin, where branches lead, which
 * places have their address taken, and who jumps to which function.
 *
 * The code is walked through linearly, beginning anew at every function, so that data between functions, or
 * inside one, spoils no more than what it stands in. What lies between functions is walked through as well:
 * it may be code that has no symbol. Bytes that are no instruction are passed over one by one. A walk that
 * got lost may take bytes for branches that are none; that makes more targets, never fewer.
 *
 * Not seen: targets of indirect jumps, unless their table is found (flow_image.h).
 */
#ifndef TRACECTL_IMAGE_FLOW_FLOW_MAP_H
#define TRACECTL_IMAGE_FLOW_FLOW_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "image/functions/functions.h"

struct flow_map;

enum flow_mark {
    FLOW_START,   /* an instruction begins here */
    FLOW_TARGET,  /* a branch, a jump, a jump table or a taken address leads here; or a call that is to no
                     function */
    FLOW_TAKEN,   /* the address is in a register, in data or in a table: whoever has it may call */
    FLOW_LISTED,  /* data holds the address: a pointer, or an entry of a jump table */
    FLOW_LANDING, /* flow_map_edges_to() knows who comes here: first bytes of functions, all of a fragment */
    FLOW_CANDIDATE, /* for users of the map: who refers to this address is wanted */
    FLOW_STRAY,     /* bytes of the code, wherever they begin, read as a long branch to here; set by
                       branch_targets_mark() */
    FLOW_CHANGES,   /* memory may have another byte here than the file (flow_changes.h) */
    FLOW_MARKS,
};

/* A way into a function that is not a call. */
struct flow_edge {
    uint64_t from; /* the instruction */
    uint64_t to;
    enum flow_edge_kind {
        FLOW_EDGE_BRANCH, /* conditional */
        FLOW_EDGE_JUMP,
        FLOW_EDGE_FALL, /* the function before continues here */
    } kind;
};

struct flow_region {
    const uint8_t *code;
    size_t size;
    uint64_t address;
};

/* A map without code. -ENOMEM. */
int flow_map_new(struct flow_map **ret_map);
void flow_map_free(struct flow_map *map);

DEFINE_CLEANUP(cleanup_flow_map, struct flow_map *, flow_map_free)
#define AUTO_FLOW_MAP CLEANUP(cleanup_flow_map)

/* Adds a stretch of code, which is borrowed and overlaps no other. -ENOMEM. */
int flow_map_add(struct flow_map *map, const uint8_t *code, size_t size, uint64_t address);

/* Walks through all code. `functions` are sorted by address; borrowed until the map is freed. To be called
 * once, after the last flow_map_add(). With `absolute`, immediates may be addresses too (programs that are
 * not position-independent). -ENOMEM. */
int flow_map_walk(struct flow_map *map, const struct image_function *functions, size_t count, bool absolute);

/* Marks are false, and setting them does nothing, where there is no code. */
bool flow_map_has(const struct flow_map *map, uint64_t address, enum flow_mark mark);
bool flow_map_has_mark(const struct flow_map *map, enum flow_mark mark); /* anywhere */
void flow_map_set(struct flow_map *map, uint64_t address, enum flow_mark mark);

/* The same for `size` addresses, which may be more than there are in the map. O(marks set). */
void flow_map_set_range(struct flow_map *map, uint64_t address, uint64_t size, enum flow_mark mark);
void flow_map_clear(struct flow_map *map, uint64_t address, enum flow_mark mark);

/* Whether some of the `size` bytes from `address` on have the mark. */
bool flow_map_has_any(const struct flow_map *map, uint64_t address, uint64_t size, enum flow_mark mark);

/* One bit for each byte of flow_map_regions()[region], for those who look at all of them. Borrowed. */
const uint64_t *flow_map_bits(const struct flow_map *map, size_t region, enum flow_mark mark);

/* Marks an address as taken, which makes it a target too. */
void flow_map_take(struct flow_map *map, uint64_t address);

/* The edges that lead into [first, last], sorted by where they lead to. Borrowed. */
const struct flow_edge *flow_map_edges_to(const struct flow_map *map, uint64_t first, uint64_t last,
                                          size_t *ret_count);

/* Whether the instruction at `from` belongs to the function that begins at `entry`: it lies in its extent, or
 * in a fragment that this function jumps into. */
bool flow_map_is_inside(const struct flow_map *map, uint64_t entry, uint64_t from);

/* Whether a jump or a branch of the function that begins at `entry` leads back to its first instruction, so
 * that every turn of a loop passes there. */
bool flow_map_loops(const struct flow_map *map, uint64_t entry);

/* The places, code or data, that a `lea` takes the address of without their being functions. Borrowed,
 * unsorted. */
const uint64_t *flow_map_leas(const struct flow_map *map, size_t *ret_count);

/* Borrowed. */
const struct flow_region *flow_map_regions(const struct flow_map *map, size_t *ret_count);

/* The code at `address` and how much follows; NULL where there is none. */
const uint8_t *flow_map_code(const struct flow_map *map, uint64_t address, size_t *ret_size);

#endif
