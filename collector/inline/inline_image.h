/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which functions of an image have inline probes, and the code for it at the addresses of one process.
 *
 * A function is given to an inline probe where displace.h allows it. All others keep their uprobes. The two
 * must not meet: the kernel writes its breakpoint over what is there, and continues with what the file has. So
 * a function is left to its uprobes, too, when one of another function would stand among its patched bytes.
 */
#ifndef TRACECTL_COLLECTOR_INLINE_INLINE_IMAGE_H
#define TRACECTL_COLLECTOR_INLINE_INLINE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/arch/stub.h"
#include "collector/displace/displace_exit.h"
#include "collector/displace/displace_image.h"
#include "collector/plan/plan.h"

struct error;

/* Where a jump to a stub is put. */
struct inline_place {
    uint64_t address;                 /* link-time */
    size_t function;                  /* whose */
    const struct displace_exit *exit; /* NULL: its entry */
};

struct inline_image {
    struct displace_site *sites;  /* of each function, in the order of image_functions() */
    uint8_t *code;                /* the bytes that stubs are made of, which `sites` and `exits` point to */
    bool *chosen;                 /* whether the function has an inline probe */
    struct displace_exits *exits; /* NULL: returns are inferred */
    bool *exact;                  /* of each function: its exits are seen; NULL without `exits` */
    size_t count, chosen_count;
    struct inline_place *places; /* in ascending order */
    size_t place_count;
    uint64_t low, high; /* link-time addresses that all patched bytes lie between */
    size_t aside_at;    /* where in the buffer for stubs those parts begin that are seldom run */
    size_t stub_bytes;  /* at most, of all stubs together */
    bool may_lock;      /* it can call mlockall() without an import that says so */
    bool left;          /* a program changes its code: what is taken out does not come back */
};

/* Why no function of the image may be patched, whatever process runs it; NULL: some may.
 * `reports_slot_sharing`: inline_share_slots() is called of children by vfork(). */
const char *inline_image_refusal(struct elf_image *image, bool reports_slot_sharing);

/* Why no process that runs this program may have inline probes in its libraries; NULL: some may. It lives as
 * long as the program. */
const char *inline_program_refusal(struct elf_image *image, const struct image_function *functions,
                                   size_t count, bool reports_slot_sharing);

/* Why no function of a library may be patched because of what it is, by its path: NULL: some may. */
const char *inline_library_refusal(const char *path);

/* Whether an image can lock all memory without an import that says so. */
bool inline_may_lock(struct elf_image *image);

/* Chooses among the functions that `plan`, which was made of the same `functions`, has probes for or could
 * not find a place in; those whose ends are known get exits as well if plan->exact. -ENOMEM, -ENODATA: none
 * can or may be patched. */
int inline_image_new(struct elf_image *image, const struct image_function *functions, size_t count,
                     const struct plan *plan, struct inline_image **ret_inlined, struct error *err);

/* Accepts NULL. */
void inline_image_free(struct inline_image *inlined);

/* Why a function has no inline probe; NULL: it has one. */
const char *inline_image_reason(const struct inline_image *inlined, size_t function);

/* In words: how many functions have probes of which kind, and why not inline ones; of how many returns are
 * seen, and why not of the others. The caller frees it; NULL: no memory. */
char *inline_image_summary(const struct inline_image *inlined, const struct plan *plan);

/* One patched place in a process. */
struct inline_patch {
    uint64_t address; /* in the process */
    size_t function;
    uint8_t old[DISPLACE_JUMP], new[DISPLACE_JUMP];
    uint64_t stub; /* where it is */
    uint16_t moved[DISPLACE_INSTRUCTIONS];
    uint8_t starts[DISPLACE_INSTRUCTIONS], count; /* as in struct displacement */
};

struct inline_order {
    const struct image_function *functions;
    uint32_t first_number; /* what the records of function 0 say */
    uint64_t load_bias;
    uint64_t head;  /* where the area is to be mapped */
    bool timed;     /* it keeps times */
    uint8_t *stubs; /* `stub_bytes` of buffer, for what goes to head + AGENT_STUBS_OFFSET */
};

/* What stubs take of their buffer: up to `end`, and from inline_image.aside_at up to `aside_end`. */
struct inline_extent {
    size_t end, aside_end;
};

/* Writes the stubs, and fills in `place_count` patches in ascending order. -ERANGE: `head` is too far away. */
int inline_image_emit(const struct inline_image *inlined, const struct inline_order *order,
                      struct inline_patch *patches, struct inline_extent *ret_extent);

#endif
