/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A sequence of bits as the lengths of its runs: of zeros, of ones, of zeros, ..., each a varint; the first
 * may be 0. The last run is not written: it lasts to the end of the sequence, which the reader knows. So what
 * is written never changes again, and a sequence without a one takes no bytes.
 */
#ifndef TRACESTORE_BIT_RUNS_H
#define TRACESTORE_BIT_RUNS_H

#include "store/bytes/bytes.h"

/* All zero is the empty sequence. */
struct bit_runs {
    struct bytes section;
    uint64_t length; /* of the last run, so far */
    bool bit;        /* of the last run */
};

static inline void bit_runs_release(struct bit_runs *runs)
{
    bytes_release(&runs->section);
}

/* Room for one bit: a bit_runs_add after it cannot fail. -ENOMEM. */
static inline int bit_runs_reserve(struct bit_runs *runs, bool bit)
{
    return bit == runs->bit ? 0 : bytes_reserve(&runs->section, VARINT_MAX_BYTES);
}

static inline void bit_runs_add(struct bit_runs *runs, bool bit)
{
    if (bit != runs->bit) {
        runs->section.size += varint_put(runs->section.data + runs->section.size, runs->length);
        runs->length = 0;
        runs->bit = bit;
    }
    runs->length++;
}

struct bit_runs_reader {
    struct bytes_reader in;
    uint64_t left; /* bits of the run that are still to come */
    bool bit;
    bool last; /* the run is the last one: `left` means nothing */
};

/* -EBADMSG. An empty section is a sequence of zeros. */
static inline int bit_runs_open(struct bit_runs_reader *reader, const uint8_t *data, size_t size)
{
    *reader = (struct bit_runs_reader){.in = reader_over(data, size), .last = !size};
    reader->left = size ? reader_varint(&reader->in) : 0;
    return reader->in.failed ? -EBADMSG : 0;
}

/* The next bit. -EBADMSG. */
static inline int bit_runs_next(struct bit_runs_reader *reader, bool *ret_bit)
{
    if (!reader->last && !reader->left) {
        reader->bit = !reader->bit;
        reader->last = !reader_left(&reader->in);
        reader->left = reader->last ? 0 : reader_varint(&reader->in);
        if (!reader->last && !reader->left) /* it has no bit, or could not be read */
            return -EBADMSG;
    }
    reader->left -= !reader->last;
    *ret_bit = reader->bit;
    return 0;
}

/* Whether the sequence may end here: the last run has begun. */
static inline bool bit_runs_at_end(const struct bit_runs_reader *reader)
{
    return reader->last;
}

#endif
