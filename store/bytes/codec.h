/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Codecs: how a segment's stream of 16-bit words becomes bytes. Word 0 is a return, word n the n-th function
 * of the segment's dictionary.
 *
 * A codec is incremental: the work and the delay of each word are bounded by a constant (but for the growth
 * of a buffer), nothing waits for the next word, and the stream can be cut after any word.
 */
#ifndef TRACESTORE_CODEC_H
#define TRACESTORE_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/bytes/bytes.h"

#define CODEC_TAIL_BYTES 272

/* The first part of every codec's encoder: the bytes so far, of which the first `stable` never change again.
 */
struct codec_encoder {
    struct bytes code;
    size_t stable;
    size_t memory; /* bytes of everything else that was written to since encoder_new */
};

/* How the stream would end if it ended now: the first `keep` bytes of the code, then `data`. */
struct codec_tail {
    size_t keep;
    size_t size;
    uint8_t data[CODEC_TAIL_BYTES];
};

struct codec_decoder;

struct codec {
    uint8_t id; /* as in segments.codec */
    const char *name;

    /* NULL: out of memory. reset: as new, but keeps the memory. */
    struct codec_encoder *(*encoder_new)(void);
    void (*encoder_reset)(struct codec_encoder *encoder);
    void (*encoder_free)(struct codec_encoder *encoder); /* accepts NULL */

    /* Makes room: the next encode cannot fail. -ENOMEM. */
    int (*reserve)(struct codec_encoder *encoder);
    /* Appends one word. -ENOMEM: nothing has changed. */
    int (*encode)(struct codec_encoder *encoder, uint16_t word);
    /* Appends the first of `words`, as many as cost no more than a comparison, and returns how many those
     * are. The one behind them has to be encoded. */
    size_t (*follow)(struct codec_encoder *encoder, const uint16_t *words, size_t count);
    /* Does not disturb the encoder. */
    void (*snapshot)(const struct codec_encoder *encoder, struct codec_tail *ret_tail);

    /* NULL: out of memory. The code must outlive the decoder. */
    struct codec_decoder *(*decoder_new)(const uint8_t *code, size_t size);
    void (*decoder_free)(struct codec_decoder *decoder); /* accepts NULL */
    /* -EBADMSG when there is no further word. */
    int (*decode)(struct codec_decoder *decoder, uint16_t *ret_word);
    /* After the last word: whether the code ends here, to the last bit. */
    bool (*at_end)(struct codec_decoder *decoder);
};

extern const struct codec codec_prediction;

/* The codec that new segments are written with. */
#define CODEC_DEFAULT (&codec_prediction)

/* NULL: a codec that this version does not know. */
const struct codec *codec_find(unsigned id);

#endif
