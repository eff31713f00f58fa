/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The instructions at the beginning of a function that move to its stub, since a jump takes their place. */
#ifndef TRACECTL_COLLECTOR_ARCH_DISPLACEMENT_H
#define TRACECTL_COLLECTOR_ARCH_DISPLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "collector/arch/liveness.h"

#define DISPLACE_JUMP 5         /* bytes that are replaced: a jump to the stub */
#define DISPLACE_INSTRUCTIONS 5 /* at most, of a byte each */
#define DISPLACE_BYTES 19       /* at most: four of a byte and one of fifteen */

/* What moves. Offsets and lengths in bytes. */
struct displacement {
    uint8_t offset;  /* of the patched bytes from the function's first one: the length of the instruction that
                       stays in front of them, 0: none does */
    uint32_t pushed; /* bytes by which the stack pointer is lower there than at the function's entry */
    uint8_t length;  /* of the instructions that move, DISPLACE_BYTES at most; less than DISPLACE_JUMP where
                       padding makes up the rest */
    uint8_t count;   /* how many they are, DISPLACE_INSTRUCTIONS at most */
    uint8_t starts[DISPLACE_INSTRUCTIONS]; /* where each begins, from `offset` */
    bool falls; /* the last one leads on to the next, so that the stub has to jump back behind them */
    bool calls; /* the last one is a call: not to be patched in a process with shadow stacks */
    struct liveness liveness; /* of the function behind the instruction that stays */
};

#endif
