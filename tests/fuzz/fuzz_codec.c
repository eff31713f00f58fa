/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The codec alone, without the segment around its code. Bits 1 and 2 of the input's first byte choose what
 * the rest is:
 *
 *   0  code: the decoder gives words, or an error; whatever words it gives, the codec keeps them
 *   1  words of 16 bits
 *   2  words of 8 bits, each pair of bytes a stretch of words and how often it repeats: loops, believed runs
 *
 * Words survive encoding and decoding, and so does every prefix of them; stable bytes stay; an encoder that
 * follows where it can makes the same code.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "store/bytes/codec.h"

#define WORDS_MAX 16384 /* bounds the time of an input */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct words {
    uint16_t word[WORDS_MAX];
    size_t count;
};

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* The code as it would be if the stream ended here. */
static void finish(const struct codec *codec, const struct codec_encoder *encoder, struct bytes *code)
{
    struct codec_tail tail;

    codec->snapshot(encoder, &tail);
    require(tail.size <= CODEC_TAIL_BYTES && tail.keep >= encoder->stable && tail.keep <= encoder->code.size);
    code->size = 0;
    require(bytes_add(code, encoder->code.data, tail.keep) == 0);
    require(bytes_add(code, tail.data, tail.size) == 0);
}

/* As an allocation of its own: a byte read behind its end is noticed. */
static void expect_words(const struct codec *codec, const struct bytes *code, const uint16_t *words,
                         size_t count)
{
    uint8_t *copy = malloc(code->size ? code->size : 1);
    struct codec_decoder *decoder;
    uint16_t word;

    require(copy != NULL);
    if (code->size)
        memcpy(copy, code->data, code->size);
    decoder = codec->decoder_new(copy, code->size);
    require(decoder != NULL);
    for (size_t i = 0; i < count; i++)
        require(codec->decode(decoder, &word) == 0 && word == words[i]);
    require(codec->at_end(decoder));
    codec->decoder_free(decoder);
    free(copy);
}

/* What follows where it can makes the same code. */
static void expect_code(const struct codec *codec, const struct bytes *code, const struct words *words)
{
    struct codec_encoder *encoder = codec->encoder_new();
    struct bytes same = {0};

    require(encoder != NULL);
    for (size_t i = 0; i < words->count;) {
        i += codec->follow(encoder, &words->word[i], words->count - i);
        if (i < words->count)
            require(codec->encode(encoder, words->word[i++]) == 0);
    }
    finish(codec, encoder, &same);
    require(same.size == code->size && (!same.size || memcmp(same.data, code->data, same.size) == 0));
    codec->encoder_free(encoder);
    bytes_release(&same);
}

/* The words, and those before `cut`, survive; what is stable at the cut is the beginning of the whole code.
 */
static void round_trip(const struct codec *codec, const struct words *words, size_t cut)
{
    struct codec_encoder *encoder = codec->encoder_new();
    struct bytes code = {0}, before = {0};

    require(encoder != NULL);
    for (size_t i = 0; i < words->count; i++) {
        if (i == cut) {
            finish(codec, encoder, &code);
            expect_words(codec, &code, words->word, cut);
            require(bytes_add(&before, encoder->code.data, encoder->stable) == 0);
        }
        require(codec->encode(encoder, words->word[i]) == 0);
    }
    finish(codec, encoder, &code);
    expect_words(codec, &code, words->word, words->count);
    expect_code(codec, &code, words);
    require(before.size <= code.size && (!before.size || memcmp(before.data, code.data, before.size) == 0));
    codec->encoder_free(encoder);
    bytes_release(&before);
    bytes_release(&code);
}

static void decode_hostile(const struct codec *codec, const uint8_t *data, size_t size, struct words *words)
{
    struct codec_decoder *decoder = codec->decoder_new(data, size);

    require(decoder != NULL);
    codec->at_end(decoder);
    while (words->count < WORDS_MAX && codec->decode(decoder, &words->word[words->count]) == 0) {
        words->count++;
        codec->at_end(decoder);
    }
    codec->decoder_free(decoder);
}

static void read_words(const uint8_t *data, size_t size, struct words *words)
{
    for (size_t i = 0; i + 1 < size && words->count < WORDS_MAX; i += 2)
        words->word[words->count++] = (uint16_t)(data[i] | data[i + 1] << 8);
}

/* A byte below 128: that word. Another one: the words before it, as many as its low four bits say, and one
 * more, come again as often as the next byte says. */
static void read_loops(const uint8_t *data, size_t size, struct words *words)
{
    for (size_t i = 0; i < size && words->count < WORDS_MAX; i++) {
        size_t body = (data[i] & 15u) + 1;

        if (data[i] < 128) {
            words->word[words->count++] = data[i];
            continue;
        }
        if (++i == size || body > words->count)
            return;
        for (size_t left = data[i] * body; left && words->count < WORDS_MAX; left--, words->count++)
            words->word[words->count] = words->word[words->count - body];
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct words words;
    const struct codec *codec;

    if (size < 3)
        return 0;
    words.count = 0;
    codec = CODEC_DEFAULT;
    switch (data[0] >> 1 & 3) {
    case 0:
        decode_hostile(codec, data + 3, size - 3, &words);
        break;
    case 1:
        read_words(data + 3, size - 3, &words);
        break;
    default:
        read_loops(data + 3, size - 3, &words);
        break;
    }
    round_trip(codec, &words, (size_t)(data[1] | data[2] << 8));
    return 0;
}
