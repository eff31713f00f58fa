/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Codec 1: each word by how well it was predicted (prediction.h), as an arithmetic code (range_coder.h).
 *
 * While a match is believed, nothing is put out: the words that come true are counted, and when one does not
 * (or the code ends), their number is put out, and then that word by the votes of the others.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/bytes/codec.h"
#include "store/bytes/prediction_run.h"
#include "store/bytes/prediction_step.h"

/* A word is a run's length, a few flags, 16 bits of a tree or one more number. */
#define WORD_BYTES ((2 * NUMBER_BITS + CHOICES + 24) * RANGE_CODER_BIT_BYTES)

_Static_assert(NUMBER_BITS *RANGE_CODER_BIT_BYTES + RANGE_CODER_FLUSH_BYTES + 1 <= CODEC_TAIL_BYTES,
               "a snapshot's tail");

struct prediction_encoder {
    struct codec_encoder base;
    struct range_coder coder;
    uint32_t run; /* words of the believed match that came true */
    struct prediction prediction;
};

struct prediction_decoder {
    const uint8_t *code;
    size_t size;
    struct range_coder coder;
    bool running; /* the length of the run is known: */
    uint32_t run; /* so many words of it are still to come */
    struct prediction prediction;
};

static inline bool is_believed(const struct prediction *prediction)
{
    return prediction->match_length > 0;
}

static inline uint16_t believed_word(const struct prediction *prediction)
{
    return prediction->words[prediction->match_at & prediction->words_mask];
}

/* Another word of the run: only what has happened is kept up to date. */
static inline void go_on(struct prediction *prediction, uint16_t word)
{
    follow_word(prediction, word);
    prediction->match_at++;
    prediction->match_length++;
}

/* The run is over: the hashes of the last words are made up for. */
static inline void end_run(struct prediction *prediction)
{
    for (uint32_t i = HASHED_WORDS; i; i--)
        hash_word(prediction, word_before(prediction, i));
}

/* ------------------------------------------------------------------------------------------ encoder */

static void encoder_reset(struct codec_encoder *base)
{
    struct prediction_encoder *encoder = (struct prediction_encoder *)base;

    base->code.size = base->stable = 0;
    encoder->run = 0;
    range_encoder_init(&encoder->coder);
    prediction_reset(&encoder->prediction);
}

static void encoder_free(struct codec_encoder *base)
{
    struct prediction_encoder *encoder = (struct prediction_encoder *)base;

    if (!encoder)
        return;
    bytes_release(&base->code);
    prediction_release(&encoder->prediction);
    free(encoder);
}

static void count_memory(struct prediction_encoder *encoder)
{
    encoder->base.memory = sizeof(*encoder) - sizeof(encoder->prediction) + encoder->prediction.memory;
}

static struct codec_encoder *encoder_new(void)
{
    struct prediction_encoder *encoder = calloc(1, sizeof(*encoder));

    if (encoder && prediction_init(&encoder->prediction)) {
        free(encoder);
        return NULL;
    }
    if (!encoder)
        return NULL;
    range_encoder_init(&encoder->coder);
    count_memory(encoder);
    return &encoder->base;
}

static int reserve(struct codec_encoder *base)
{
    struct prediction_encoder *encoder = (struct prediction_encoder *)base;

    if (encoder->prediction.crowded) {
        if (prediction_grow(&encoder->prediction))
            return -ENOMEM;
        count_memory(encoder);
    }
    return bytes_reserve(&base->code, WORD_BYTES);
}

/* Apart from the other words, which need few registers. */
static __attribute__((noinline)) void encode_open_word(struct prediction_encoder *encoder, uint16_t word)
{
    struct prediction *prediction = &encoder->prediction;
    struct bytes *code = &encoder->base.code;
    struct expectation expected;
    int excluded = NO_WORD;

    encoder->coder.out = code->data + code->size;
    if (is_believed(prediction)) {
        range_coder_number(&encoder->coder, &prediction->run, encoder->run, false);
        encoder->run = 0;
        end_run(prediction);
        excluded = believed_word(prediction);
    }
    code_open_word(prediction, &encoder->coder, word, excluded, false, &expected);
    learn_word(prediction, &expected, word);
    code->size = encoder->base.stable = (size_t)(encoder->coder.out - code->data);
}

static int encode(struct codec_encoder *base, uint16_t word)
{
    struct prediction_encoder *encoder = (struct prediction_encoder *)base;

    if (UNLIKELY(encoder->prediction.crowded || base->code.capacity - base->code.size < WORD_BYTES) &&
        reserve(base))
        return -ENOMEM;
    if (is_believed(&encoder->prediction) && word == believed_word(&encoder->prediction)) {
        encoder->run++;
        go_on(&encoder->prediction, word);
    } else {
        encode_open_word(encoder, word);
    }
    return 0;
}

static size_t follow(struct codec_encoder *base, const uint16_t *words, size_t count)
{
    struct prediction_encoder *encoder = (struct prediction_encoder *)base;
    struct prediction *prediction = &encoder->prediction;
    size_t followed = 0;

    if (is_believed(prediction) && !prediction->crowded)
        followed = prediction_follow_run(prediction, words, count);
    encoder->run += (uint32_t)followed;
    return followed;
}

static void snapshot(const struct codec_encoder *base, struct codec_tail *ret_tail)
{
    const struct prediction_encoder *encoder = (const struct prediction_encoder *)base;
    struct adaptive_number number = encoder->prediction.run;
    struct range_coder coder = encoder->coder;

    coder.out = ret_tail->data;
    if (encoder->run)
        range_coder_number(&coder, &number, encoder->run, false);
    coder.out += range_coder_ending(&coder, coder.out);
    *coder.out++ = (uint8_t)encoder->prediction.position;
    ret_tail->keep = base->stable;
    ret_tail->size = (size_t)(coder.out - ret_tail->data);
}

/* ------------------------------------------------------------------------------------------ decoder */

static void decoder_free(struct codec_decoder *base)
{
    struct prediction_decoder *decoder = (struct prediction_decoder *)base;

    if (!decoder)
        return;
    prediction_release(&decoder->prediction);
    free(decoder);
}

static struct codec_decoder *decoder_new(const uint8_t *code, size_t size)
{
    struct prediction_decoder *decoder = calloc(1, sizeof(*decoder));

    if (decoder && prediction_init(&decoder->prediction)) {
        free(decoder);
        return NULL;
    }
    if (!decoder)
        return NULL;
    decoder->code = code;
    decoder->size = size;
    range_decoder_init(&decoder->coder, code, size ? size - 1 : 0);
    return (struct codec_decoder *)decoder;
}

static __attribute__((noinline)) int decode_open_word(struct prediction_decoder *decoder, uint16_t *ret_word)
{
    struct prediction *prediction = &decoder->prediction;
    struct expectation expected;
    int excluded = NO_WORD;
    uint32_t word;

    if (is_believed(prediction)) {
        decoder->running = false;
        end_run(prediction);
        excluded = believed_word(prediction);
    }
    word = code_open_word(prediction, &decoder->coder, 0, excluded, true, &expected);
    if (word >= prediction->known || decoder->coder.shifted > decoder->size)
        return -EBADMSG;
    learn_word(prediction, &expected, (uint16_t)word);
    *ret_word = (uint16_t)word;
    return 0;
}

static int decode(struct codec_decoder *base, uint16_t *ret_word)
{
    struct prediction_decoder *decoder = (struct prediction_decoder *)base;
    struct prediction *prediction = &decoder->prediction;

    if (prediction->crowded && prediction_grow(prediction))
        return -ENOMEM;
    if (!is_believed(prediction))
        return decode_open_word(decoder, ret_word);
    if (!decoder->running) {
        decoder->run = range_coder_number(&decoder->coder, &prediction->run, 0, true);
        decoder->running = true;
    }
    if (!decoder->run)
        return decode_open_word(decoder, ret_word);
    decoder->run--;
    *ret_word = believed_word(prediction);
    go_on(prediction, *ret_word);
    return 0;
}

static bool at_end(struct codec_decoder *base)
{
    struct prediction_decoder *decoder = (struct prediction_decoder *)base;

    return !decoder->run && decoder->size && range_coder_at_end(&decoder->coder, decoder->size - 1) &&
           decoder->code[decoder->size - 1] == (uint8_t)decoder->prediction.position;
}

const struct codec codec_prediction = {
    .id = 1,
    .name = "prediction",
    .encoder_new = encoder_new,
    .encoder_reset = encoder_reset,
    .encoder_free = encoder_free,
    .reserve = reserve,
    .encode = encode,
    .follow = follow,
    .snapshot = snapshot,
    .decoder_new = decoder_new,
    .decoder_free = decoder_free,
    .decode = decode,
    .at_end = at_end,
};
