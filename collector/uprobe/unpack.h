/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The other half of bpf/pack.h: makes the records that a thread would have written out of its tokens.
 *
 * Tokens come in chunks, one record of the ring each. The end of the last chunk may be unpacked out of the
 * slot before the record has come; then only what is new in the record is unpacked from it. The bytes are not
 * trusted: what cannot be is refused, and a chunk says what the predictor must have come to.
 */
#ifndef TRACECTL_COLLECTOR_UPROBE_UNPACK_H
#define TRACECTL_COLLECTOR_UPROBE_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/predict.h"
#include "bpf/wire.h"
#include "collector/backend/life_cycle_source.h"

/* Of one slot; all zeros before its first chunk. */
struct unpacker {
    uint32_t tid;         /* whose slot it is */
    uint32_t chunk;       /* number of the one that comes, or has begun */
    uint32_t length, run; /* unpacked of it: bytes of tokens, and events behind them */
    uint32_t events, returns;
    uint64_t reported_ns; /* the last time that was told */
    uint64_t next_ns;     /* of the event that comes next; 0: not told */
    struct predictor predictor;
};

struct unpack_sink {
    wire_handler handle;
    void *context;
    uint64_t records; /* counted up */
    int answer;       /* the first one that is not 0, or the first failure */
};

/* The slot's next tokens are of thread `tid`. */
void unpack_begin(struct unpacker *unpacker, uint32_t tid);

/* Hands on what is new in the tokens of this chunk, and in a run of `run` events behind them. -EBADMSG: such
 * tokens cannot be, and the unpacker is of no use any more. A failure of the sink is its `answer`. */
int unpack_tokens(struct unpacker *unpacker, const uint8_t *tokens, size_t length, uint32_t run,
                  struct unpack_sink *sink);

/* The chunk is complete. -EBADMSG: the events cannot have been these. */
int unpack_end(struct unpacker *unpacker, uint64_t check);

/* The same where no check is known. */
void unpack_next_chunk(struct unpacker *unpacker);

#endif
