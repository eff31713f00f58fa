/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where each call of a function ends, and which instructions move to the stubs that see it.
 *
 * A RET is replaced by a jump to a stub of its own, with the instructions before it as far as five bytes need
 * them, and with padding behind it where those are not enough. The stub executes the instructions, writes a
 * record, and returns. The return address is never touched. What displace.h requires of the first bytes of a
 * function holds here for all that moves but its first byte: nothing leads there, nothing comes back there,
 * and all of it lies in one block of the function's graph (flow_graph.h), behind the bytes that the jump at
 * its entry replaces. A RET among those, or right behind them with nothing else leading to it, needs no jump:
 * the entry's stub continues in the exit's.
 *
 * A function is exact if all its ends are known. Those are its RETs, and jumps to functions that have probes
 * themselves: whose entry ends the call as well. It is not where an indirect jump leads to unknown places
 * (one of them might be among the bytes that move), where code that nothing was seen to lead to returns
 * (handlers of exceptions, or data), where execution continues into what follows, where a RET cannot move,
 * and where two functions share one. Nothing is patched at the exits of such a function.
 */
#ifndef TRACECTL_COLLECTOR_DISPLACE_DISPLACE_EXIT_H
#define TRACECTL_COLLECTOR_DISPLACE_DISPLACE_EXIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/displace/displace_image.h"

/* Why the returns of a function are not seen. displace_exit_refusal_text() puts each into words. */
enum exit_refusal {
    EXIT_OK,
    EXIT_NO_ENTRY, /* its calls are not seen by inline probes */
    EXIT_UNKNOWN,  /* its code is not understood, or memory has other bytes there than the file */
    EXIT_INDIRECT, /* an indirect jump leads to places that are not known */
    EXIT_UNSEEN,   /* code that nothing was seen to lead to returns */
    EXIT_FALLS,    /* it continues into what follows it */
    EXIT_TAIL,     /* it jumps to something that has no probe */
    EXIT_SHORT,    /* around a RET there are not five bytes that can move */
    EXIT_SHARED,   /* its bytes are also those of another function, or have another probe */
    EXIT_REFUSALS,
};

/* A RET. Addresses are link-time. */
struct displace_exit {
    uint64_t address;    /* of the patched bytes; with `in_entry` of the RET */
    const uint8_t *code; /* the bytes there in the file; borrowed, until elf_image_forget() */
    bool in_entry; /* nothing is patched: the entry's stub continues here instead of executing the RET, or
                            instead of jumping back to it */
    struct displacement displacement; /* what moves from `address` on, the RET last; without `liveness` */
};

/* The exits of an image's functions: those of function i are items[first[i]] to items[first[i + 1] - 1], none
 * where its refusal is not EXIT_OK. An exact function may have none: it never returns, or leaves by tail
 * calls. */
struct displace_exits {
    enum exit_refusal *refusals;
    size_t *first;
    struct displace_exit *items;
    size_t count, capacity;
    size_t functions;
};

/* Which functions are seen to be called. */
struct displace_entries {
    const struct displace_site *sites; /* displace_image(), of each */
    const bool *chosen;                /* of each: it has an inline probe there */
    const bool *recorded;              /* of each: it has some probe */
    struct flow_map *map;              /* as displace_image() left it */
};

/* Looks at all functions (image_functions() of `image`). Reads all code of the image. -ENOMEM, -ENOTSUP: no
 * disassembler. The caller frees the answer. */
int displace_exits_new(struct elf_image *image, const struct image_function *functions, size_t count,
                       const struct displace_entries *entries, struct displace_exits **ret_exits,
                       struct error *err);

/* Accepts NULL. */
void displace_exits_free(struct displace_exits *exits);

/* The function has no exits from here on: `refusal` is why. Its items stay where they are, unused. */
void displace_exits_refuse(struct displace_exits *exits, size_t function, enum exit_refusal refusal);

/* Those of a function, and how many; NULL: none. */
const struct displace_exit *displace_exits_of(const struct displace_exits *exits, size_t function,
                                              size_t *ret_count);

/* How many bytes from its address on an exit's jump, or what moves, has; 0 where nothing is patched. */
size_t displace_exit_bytes(const struct displace_exit *exit);

/* A few lower-case words. */
const char *displace_exit_refusal_text(enum exit_refusal refusal);

#endif
