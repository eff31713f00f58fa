/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>

#include "store/bytes/codec.h"
#include "tests/unit/store/fixture.h"

static const struct codec *const all_codecs[] = {&codec_prediction};

#define FOR_EACH_CODEC(codec) \
    for (const struct codec *const *each = all_codecs, *codec; \
         each < all_codecs + ARRAY_SIZE(all_codecs) && (codec = *each); each++)

/* The code as it would be if the stream ended here. */
static void finish(const struct codec *codec, const struct codec_encoder *encoder, struct bytes *code)
{
    struct codec_tail tail;

    codec->snapshot(encoder, &tail);
    code->size = 0;
    cr_assert_eq(bytes_add(code, encoder->code.data, tail.keep), 0);
    cr_assert_eq(bytes_add(code, tail.data, tail.size), 0);
    cr_assert_leq(tail.size, CODEC_TAIL_BYTES);
    cr_assert_geq(tail.keep, encoder->stable);
}

static void expect_words(const struct codec *codec, const struct bytes *code, const uint16_t *words,
                         size_t count)
{
    struct codec_decoder *decoder = codec->decoder_new(code->data, code->size);
    uint16_t word;

    for (size_t i = 0; i < count; i++) {
        cr_assert_eq(codec->decode(decoder, &word), 0, "word %zu of %zu", i, count);
        cr_assert_eq(word, words[i], "word %zu of %zu: %u, not %u", i, count, word, words[i]);
    }
    cr_assert(codec->at_end(decoder), "bytes are left after %zu words", count);
    codec->decoder_free(decoder);
}

static uint16_t *generate_words(enum stream_kind kind, uint64_t seed, size_t *count)
{
    struct stream stream = {0};
    uint16_t *words;

    stream_generate(&stream, kind, seed, *count);
    *count = stream.count;
    words = calloc(stream.count, sizeof(*words));
    for (size_t i = 0; i < stream.count; i++)
        words[i] = (uint16_t)stream.events[i];
    stream_release(&stream);
    return words;
}

/* In pieces of any length. */
static void encode_following(const struct codec *codec, struct codec_encoder *encoder, const uint16_t *words,
                             size_t count, uint64_t seed)
{
    struct generator generator = {seed};

    for (size_t i = 0; i < count;) {
        size_t piece = 1 + generator_below(&generator, 300), left = count - i;

        piece = piece < left ? piece : left;
        i += codec->follow(encoder, &words[i], piece);
        if (i < count)
            cr_assert_eq(codec->encode(encoder, words[i++]), 0);
    }
}

static void round_trip(const struct codec *codec, enum stream_kind kind, uint64_t seed, size_t count)
{
    uint16_t *words = generate_words(kind, seed, &count);
    struct codec_encoder *encoder = codec->encoder_new();
    struct bytes code = {0};

    for (size_t i = 0; i < count; i++)
        cr_assert_eq(codec->encode(encoder, words[i]), 0);
    finish(codec, encoder, &code);
    expect_words(codec, &code, words, count);

    /* A reset encoder gives the same bytes again, and so does one that follows where it can. */
    codec->encoder_reset(encoder);
    encode_following(codec, encoder, words, count, seed);
    {
        struct bytes again = {0};

        finish(codec, encoder, &again);
        cr_assert_eq(again.size, code.size);
        cr_assert_arr_eq(again.data, code.data, code.size);
        bytes_release(&again);
    }
    codec->encoder_free(encoder);
    bytes_release(&code);
    free(words);
}

Test(codec, round_trips)
{
    FOR_EACH_CODEC(codec)
    for (int kind = 0; kind < STREAM_KINDS; kind++)
        for (uint64_t seed = 1; seed <= 8; seed++)
            round_trip(codec, (enum stream_kind)kind, seed, (size_t)1 << (2 * seed));
}

/* Longer than the window and than the longest match. */
Test(codec, long_streams)
{
    FOR_EACH_CODEC(codec)
    {
        round_trip(codec, STREAM_LOOPS, 5, 400000);
        round_trip(codec, STREAM_RANDOM, 6, 200000);
        round_trip(codec, STREAM_RECURSION, 7, 300000);
        round_trip(codec, STREAM_MANY_FUNCTIONS, 8, 300000);
    }
}

static void cut_everywhere(const struct codec *codec, const uint16_t *words, size_t count, size_t from)
{
    struct codec_encoder *encoder = codec->encoder_new();
    struct bytes code = {0};

    for (size_t i = 0; i < count; i++) {
        if (i >= from) {
            finish(codec, encoder, &code);
            expect_words(codec, &code, words, i);
        }
        codec->encode(encoder, words[i]);
    }
    codec->encoder_free(encoder);
    bytes_release(&code);
}

Test(codec, a_stream_can_be_cut_after_any_word)
{
    FOR_EACH_CODEC(codec)
    for (int kind = 0; kind < STREAM_KINDS; kind++) {
        size_t count = 600;
        uint16_t *words = generate_words((enum stream_kind)kind, 3, &count);

        cut_everywhere(codec, words, count, 0);
        free(words);
    }
}

/* A loop that is believed in the end, and what then comes otherwise, several times. */
Test(codec, believed_runs_can_be_cut)
{
    uint16_t words[3000];

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        words[i] = i % 700 == 699 ? 9 : i % 2 ? 0 : (uint16_t)(1 + i / 2 % 5);
    FOR_EACH_CODEC(codec)
    cut_everywhere(codec, words, ARRAY_SIZE(words), 2000);
}

/* The calls that are open come to the end of their ring at the same word as the history does. What the
 * encoder's memory was used for before does not matter. */
Test(codec, calls_only_behind_a_first_return)
{
    uint16_t words[1500] = {0};

    for (size_t i = 1; i < ARRAY_SIZE(words); i++)
        words[i] = (uint16_t)(1 + i % 7 + i / 50 % 3);
    FOR_EACH_CODEC(codec)
    {
        struct codec_encoder *encoder = codec->encoder_new();
        struct bytes code = {0};

        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
            codec->encode(encoder, 5);
        codec->encoder_reset(encoder);
        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
            codec->encode(encoder, words[i]);
        finish(codec, encoder, &code);
        expect_words(codec, &code, words, ARRAY_SIZE(words));
        codec->encoder_free(encoder);
        bytes_release(&code);
    }
}

/* Stable bytes never change: what a journal relies on. */
Test(codec, stable_bytes_stay)
{
    size_t count = 3000;
    uint16_t *words = generate_words(STREAM_LOOPS, 9, &count);

    FOR_EACH_CODEC(codec)
    {
        struct codec_encoder *encoder = codec->encoder_new();
        struct bytes before = {0};
        size_t stable = 0;

        for (size_t i = 0; i < count; i++) {
            codec->encode(encoder, words[i]);
            cr_assert_geq(encoder->stable, stable);
            if (stable)
                cr_assert_arr_eq(encoder->code.data, before.data, stable);
            stable = encoder->stable;
            before.size = 0;
            bytes_add(&before, encoder->code.data, stable);
        }
        cr_assert_gt(stable, 0);
        codec->encoder_free(encoder);
        bytes_release(&before);
    }
    free(words);
}

static void expect_bytes(const struct codec *codec, const uint16_t *words, size_t count,
                         const uint8_t *expected, size_t size)
{
    struct codec_encoder *encoder = codec->encoder_new();
    struct bytes code = {0};

    for (size_t i = 0; i < count; i++)
        codec->encode(encoder, words[i]);
    finish(codec, encoder, &code);
    cr_assert_eq(code.size, size, "%zu bytes, not %zu", code.size, size);
    if (size)
        cr_assert_arr_eq(code.data, expected, size);
    codec->encoder_free(encoder);
    bytes_release(&code);
}

/* Those of docs/trace-format.md. */
Test(codec, known_answers)
{
    const uint16_t one[] = {1}, loop[] = {1, 0, 2, 0, 1, 0, 2, 0, 1, 0, 2, 0}, high[] = {0x1234, 0, 0x0100};
    const uint8_t none[] = {0}, one_code[] = {0x40, 1}, loop_code[] = {0x7d, 0x03, 12},
                  high_code[] = {0x00, 0x07, 0x72, 0xff, 0xff, 0x29, 3},
                  rounds_code[] = {0x7d, 0x03, 0x00, 0x5f, 41};
    uint16_t rounds[41] = {[40] = 3};

    for (size_t i = 0; i < 40; i++)
        rounds[i] = loop[i % 4];
    expect_bytes(&codec_prediction, NULL, 0, none, sizeof(none));
    expect_bytes(&codec_prediction, one, ARRAY_SIZE(one), one_code, sizeof(one_code));
    expect_bytes(&codec_prediction, loop, ARRAY_SIZE(loop), loop_code, sizeof(loop_code));
    expect_bytes(&codec_prediction, high, ARRAY_SIZE(high), high_code, sizeof(high_code));
    expect_bytes(&codec_prediction, rounds, ARRAY_SIZE(rounds), rounds_code, sizeof(rounds_code));
}

/* Whatever the bytes are: words or an error, and an end. */
Test(codec, garbage_ends)
{
    struct generator generator = {99};
    uint8_t garbage[300];

    for (int round = 0; round < 500; round++) {
        for (size_t i = 0; i < sizeof(garbage); i++)
            garbage[i] = (uint8_t)generator_next(&generator);
        FOR_EACH_CODEC(codec)
        {
            struct codec_decoder *decoder = codec->decoder_new(garbage, sizeof(garbage));
            uint16_t word;
            size_t words = 0;

            while (words < 1000000 && codec->decode(decoder, &word) == 0)
                words++;
            codec->decoder_free(decoder);
        }
    }
}

Test(codec, unknown_ids_are_not_found)
{
    cr_assert_eq(codec_find(1), &codec_prediction);
    cr_assert_null(codec_find(2));
    cr_assert_null(codec_find(0));
    cr_assert_null(codec_find(200));
}
