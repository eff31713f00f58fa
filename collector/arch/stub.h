/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The stubs of inline probes.
 *
 * A probed function begins with a jump to a stub of its own, which appends one record to the thread's buffer,
 * does what the replaced instructions did, and jumps back behind them. A stub at an exit does what they did up
 * to the RET, appends a record, and returns. All this is pure: bytes and addresses in, bytes out.
 */
#ifndef TRACECTL_COLLECTOR_ARCH_STUB_H
#define TRACECTL_COLLECTOR_ARCH_STUB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/arch/displacement.h"

/* Which stub is wanted. Addresses are those of the target process. */
struct stub_order {
    uint32_t number;   /* what its records say: agent_record.function, not 0 */
    uint64_t address;  /* where the stub's first byte will be */
    uint64_t aside;    /* where what is seldom run will be: away, so that others are near each other */
    uint64_t function; /* where the function's first byte is */
    uint64_t head;     /* where the area's head is (collector/arch/record.h), within reach of the stub */
    bool timed;        /* the area keeps times */
    bool at_exit;      /* the last displaced instruction is a RET, which the record comes right before;
                            `function` is where the patched bytes are, `code` what they are */
    uint64_t exit; /* of an entry: the stub to continue in where a displaced RET, or the instruction behind
                            the displaced ones, would be next; 0: none */
    const uint8_t *code; /* the function's own first bytes, all that are displaced */
    const struct displacement *displacement;
};

/* Offsets into the stub. A function's jump leads to its first byte. */
struct stub {
    uint16_t size;
    uint16_t aside; /* bytes there */
    /* Where each of the displaced instructions begins; of a stub at an exit, for the RET, what records it. A thread that stands before instruction N in the
     * function may be put at moved[N], and back; in between, where one became several, it may not. */
    uint16_t moved[DISPLACE_INSTRUCTIONS];
};

/* No stub has more bytes, nor more aside. */
extern const size_t stub_max, stub_aside_max;

/* Writes a stub to `bytes`, of which there are `room`, and what belongs aside to `aside`, of which there are
 * stub_aside_max. -ENOSPC: not enough; -ERANGE: the stub's place is too far from what it or a displaced
 * instruction refers to. `*ret_stub` is untouched then. */
int stub_emit(const struct stub_order *order, uint8_t *bytes, size_t room, uint8_t *aside,
              struct stub *ret_stub);

/* The jump from `from` to `to`: DISPLACE_JUMP bytes. -ERANGE. */
int stub_patch(uint64_t from, uint64_t to, uint8_t *bytes);

#endif
