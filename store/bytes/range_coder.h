/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Binary arithmetic coding with adaptive probabilities, after the carryless coder and the state maps of
 * Mahoney's lpaq1 (2007): an interval [low, high] of 32-bit numbers is cut in two by each bit, in proportion
 * to the probability that both sides compute, and bytes that low and high agree on are put out.
 *
 * The same functions encode and decode: with `decoding` (a constant at every call) the bit that is given is
 * ignored, and the one that is read is returned. A model written with them cannot differ between its two
 * sides.
 */
#ifndef TRACESTORE_RANGE_CODER_H
#define TRACESTORE_RANGE_CODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RANGE_CODER_BIT_BYTES 4   /* one coded bit puts out at most so many bytes */
#define RANGE_CODER_FLUSH_BYTES 4 /* so does the end */

struct range_coder {
    uint32_t low, high;
    uint32_t value; /* decoding: the 32 bits of the code from `low`'s first byte on, zeros behind its end */
    uint8_t *out;   /* encoding: where the next byte goes; the caller has seen to the room */
    const uint8_t *in;  /* decoding: the next byte to be read */
    const uint8_t *end; /* decoding */
    size_t shifted;     /* decoding: bytes of the code that low and high have left behind */
};

static inline void range_encoder_init(struct range_coder *coder)
{
    *coder = (struct range_coder){.high = UINT32_MAX};
}

static inline uint32_t range_coder_next_byte(struct range_coder *coder)
{
    return coder->in < coder->end ? *coder->in++ : 0;
}

static inline void range_decoder_init(struct range_coder *coder, const uint8_t *code, size_t size)
{
    /* A code of no bytes may be NULL, to which C does not let us add even 0. */
    *coder = (struct range_coder){.high = UINT32_MAX, .in = code, .end = size ? code + size : code};
    for (int i = 0; i < 4; i++)
        coder->value = coder->value << 8 | range_coder_next_byte(coder);
}

/* Codes a bit that is 1 with probability p / 65536, 0 < p < 65536. */
static inline int range_coder_bit(struct range_coder *coder, int bit, uint32_t p, bool decoding)
{
    uint32_t middle = coder->low + (uint32_t)((uint64_t)(coder->high - coder->low) * p >> 16);

    if (decoding)
        bit = coder->value <= middle;
    if (bit)
        coder->high = middle;
    else
        coder->low = middle + 1;
    while (!((coder->low ^ coder->high) >> 24)) {
        if (decoding) {
            coder->value = coder->value << 8 | range_coder_next_byte(coder);
            coder->shifted++;
        } else {
            *coder->out++ = (uint8_t)(coder->high >> 24);
        }
        coder->low <<= 8;
        coder->high = coder->high << 8 | 0xff;
    }
    return bit;
}

/* The fewest bytes that, with zeros behind them, lie between low and high: how the code would end now.
 * Returns their number. */
static inline unsigned range_coder_ending(const struct range_coder *coder,
                                          uint8_t ending[RANGE_CODER_FLUSH_BYTES])
{
    unsigned size = 0;
    uint64_t rest = UINT32_MAX, value;

    for (;; size++, rest >>= 8) {
        value = (coder->low + rest) & ~rest;
        if (value <= coder->high)
            break;
    }
    for (unsigned i = 0; i < size; i++)
        ending[i] = (uint8_t)(value >> (24 - 8 * i));
    return size;
}

/* Decoding: whether what is left of the code is how it had to end here. */
static inline bool range_coder_at_end(const struct range_coder *coder, size_t size)
{
    uint8_t ending[RANGE_CODER_FLUSH_BYTES];
    unsigned ending_size = range_coder_ending(coder, ending);
    uint32_t value = 0;

    for (unsigned i = 0; i < ending_size; i++)
        value |= (uint32_t)ending[i] << (24 - 8 * i);
    return coder->shifted + ending_size == size && coder->value == value;
}

/* ------------------------------------------------------------------------------------ adaptive probabilities
 */

/* The probability of a 1 as 22 bits, and how often it has been seen as 10 bits: p += (bit - p) / (n + 1.5).
 */
struct adaptive_bit {
    uint32_t state;
};

#define ADAPTIVE_LIMIT 255                                /* the slowest adaptation: by about 1 / 256 */
extern const uint16_t adaptive_rates[ADAPTIVE_LIMIT + 1]; /* 65536 / (n + 1.5) */

/* p of 65536, taken to have been seen `seen` times. */
static inline struct adaptive_bit adaptive_start(uint32_t p, unsigned seen)
{
    return (struct adaptive_bit){p << 16 | seen};
}

/* As if nothing had been seen. */
static inline void adaptive_forget(struct adaptive_bit *bits, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bits[i] = adaptive_start(32768, 0);
}

/* 1..65535 of 65536 */
static inline uint32_t adaptive_p(struct adaptive_bit adaptive)
{
    uint32_t p = adaptive.state >> 16;

    return p ? p : 1;
}

/* How many bits it has learned, up to the limit. */
static inline unsigned adaptive_seen(struct adaptive_bit adaptive)
{
    return adaptive.state & 0x3ff;
}

static inline void adaptive_learn(struct adaptive_bit *adaptive, int bit, unsigned limit)
{
    uint32_t state = adaptive->state, seen = state & 0x3ff;
    int64_t miss = (int64_t)(bit ? 0x3fffff : 0) - (state >> 10);

    state = (uint32_t)((int64_t)(state >> 10) + (miss * adaptive_rates[seen] >> 16)) << 10;
    adaptive->state = state | (seen < limit ? seen + 1 : seen);
}

/* Codes a bit by its adaptive probability, which learns it. */
static inline int range_coder_adaptive(struct range_coder *coder, struct adaptive_bit *adaptive, int bit,
                                       unsigned limit, bool decoding)
{
    bit = range_coder_bit(coder, bit, adaptive_p(*adaptive), decoding);
    adaptive_learn(adaptive, bit, limit);
    return bit;
}

/* Codes a bit by an adaptive probability for its place, and the more of it is known by another for its
 * context. Both learn it. */
static inline int range_coder_in_context(struct range_coder *coder, struct adaptive_bit *any,
                                         unsigned any_limit, struct adaptive_bit *here, unsigned here_limit,
                                         int bit, bool decoding)
{
    uint32_t p_any = adaptive_p(*any), p_here = adaptive_p(*here), seen = adaptive_seen(*here);
    uint32_t p = !seen ? p_any : seen < 3 ? (p_any + p_here) / 2 : (p_any + 3 * p_here) / 4;

    bit = range_coder_bit(coder, bit, p < 64 ? 64 : p > 65472 ? 65472 : p, decoding);
    adaptive_learn(here, bit, here_limit);
    adaptive_learn(any, bit, any_limit);
    return bit;
}

/* ------------------------------------------------------------------------------------ numbers */

/* Elias' gamma code with adaptive bits: the number of binary digits of value + 1 in unary, then the digits
 * behind the first, the upper two of them adaptive. No adaptive bit is used twice in a number. */
#define NUMBER_DIGITS 32
#define NUMBER_BITS (2 * NUMBER_DIGITS) /* that are coded, at most */

struct adaptive_number {
    struct adaptive_bit length[NUMBER_DIGITS], upper[NUMBER_DIGITS][3];
};

static inline void adaptive_number_init(struct adaptive_number *number)
{
    adaptive_forget(number->length, NUMBER_DIGITS);
    adaptive_forget(number->upper[0], (size_t)3 * NUMBER_DIGITS);
}

/* Codes a number up to 2^31 - 2. */
static inline uint32_t range_coder_number(struct range_coder *coder, struct adaptive_number *number,
                                          uint32_t value, bool decoding)
{
    const unsigned limit = 30;
    unsigned digits = 1, node = 1;
    uint32_t code = 1;

    value++;
    while (digits < NUMBER_DIGITS - 1 && range_coder_adaptive(coder, &number->length[digits],
                                                              !decoding && value >> digits, limit, decoding))
        digits++;
    for (int i = (int)digits - 2; i >= 0; i--) {
        int bit = (int)(value >> i & 1);

        if (node < 4) {
            bit = range_coder_adaptive(coder, &number->upper[digits][node - 1], bit, limit, decoding);
            node = 2 * node + (unsigned)bit;
        } else {
            bit = range_coder_bit(coder, bit, 32768, decoding);
        }
        code = code << 1 | (uint32_t)bit;
    }
    return code - 1;
}

#endif
