/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Predicts whether the nesting of a call is assumed: it is as it was when the same function was last called
 * inside the same one. A segment stores where that is wrong (docs/trace-format.md), so that a loop full of
 * callbacks costs nothing after its first turn. Functions are local ids; 0 for a call from before the
 * segment, or none.
 */
#ifndef TRACESTORE_ASSUMED_HISTORY_H
#define TRACESTORE_ASSUMED_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#define ASSUMED_HISTORY_BITS 10

/* All zero at the begin of a segment: nothing is assumed. */
struct assumed_history {
    uint8_t slots[(1 << ASSUMED_HISTORY_BITS) / 8];
};

/* Pairs that share a slot spoil each other's predictions, and nothing else. */
static inline uint32_t assumed_history_slot(uint16_t outer, uint16_t function)
{
    return ((outer * 40503u + function) * 2654435769u) >> (32 - ASSUMED_HISTORY_BITS);
}

static inline bool assumed_history_predicts(const struct assumed_history *history, uint32_t slot)
{
    return history->slots[slot / 8] >> slot % 8 & 1;
}

/* The prediction was wrong. */
static inline void assumed_history_correct(struct assumed_history *history, uint32_t slot)
{
    history->slots[slot / 8] ^= (uint8_t)(1u << slot % 8);
}

#endif
