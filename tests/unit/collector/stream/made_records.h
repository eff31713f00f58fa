/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Records as inline probes make them, of a program that does much of what it does again. */
#ifndef TESTS_MADE_RECORDS_H
#define TESTS_MADE_RECORDS_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collector/arch/record.h"

struct generator {
    uint64_t state;
};

static inline uint32_t below(struct generator *generator, uint32_t limit)
{
    generator->state = generator->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((generator->state >> 33) * limit >> 31);
}

/* A request: calls out of a few places, that come back, tail calls, longjmp. */
static inline size_t make_request(struct generator *generator, struct agent_record *records, size_t count,
                                  uint32_t variety)
{
    uint64_t sp = 100000;
    size_t i;

    for (i = 0; i < count; i++) {
        records[i] = (struct agent_record){
            .function = 1 + below(generator, 7),
            .return_address = 1 + below(generator, variety),
            .sp = sp,
        };
        sp += 16 * (uint64_t)below(generator, 5);
        sp -= sp > 5000 ? 16 * (uint64_t)below(generator, 6) : 0;
        sp = sp > 100000 ? 100000 : sp;
    }
    return i;
}

/* A program: requests like those before, the beginnings of such, and new ones. */
static inline struct agent_record *make_records(struct generator *generator, size_t count, uint32_t variety)
{
    struct agent_record *records = calloc(count, sizeof(*records));
    size_t starts[32] = {0}, requests = 0, i = 0;

    while (i < count) {
        size_t length = 1 + below(generator, 200), start = starts[below(generator, 32)];

        length = length < count - i ? length : count - i;
        if (requests < 32 || below(generator, 50) == 0) {
            starts[requests++ % 32] = i;
            i += make_request(generator, &records[i], length, variety);
            continue;
        }
        length = length < i - start ? length : i - start;
        memcpy(&records[i], &records[start], length * sizeof(*records));
        i += length;
    }
    for (i = 0; i < count; i++) { /* the tick is no part of what is looked up */
        records[i].sp &= AGENT_SP_MASK;
        records[i].sp |= (uint64_t)(i & 0xffff) << AGENT_TICK_SHIFT;
    }
    return records;
}

#endif
