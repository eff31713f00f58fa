/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ParLOT's own codec, which ours is compared with, in two stages: word-level Lempel-Ziv, then byte-level zero
 * elimination (Taheri, Devale, Gopalakrishnan, Burtscher, "ParLOT: Efficient Whole-Program Call Tracing for
 * HPC Applications", 2018). The paper leaves the bit-exact form open; this is ours:
 *
 * LZ. After each word both sides look up, by a hash of the last three words, where those three stood last. If
 * the three are really the same there, a match begins: the words that follow are predicted to be the words
 * that followed then, and only how many of them came true is emitted, as one word (it may be 0). Otherwise
 * the next word is emitted as it is. The decoder knows the same three words, so nothing says which of the two
 * it is. A word that ends a match is emitted after the length. Looking up the words *before* the match, and
 * not the first one in it as the paper's text can also be read, is what reaches the ratios that are published
 * for it: half of all words are zero, and the last zero is rarely the one wanted.
 *
 * ZE. The two bytes of each word, low one first, in groups of eight: a bitmap of the bytes that are not zero,
 * then these bytes. The last group may be short.
 */
#include "tests/bench/codec_parlot.h"

#define WINDOW_WORDS 65536u
#define FIRST_CAPACITY 256u /* the window grows up to WINDOW_WORDS, so that idle threads stay small */
#define FIRST_INDEX \
    3u /* three zero words stand before the stream, so that it has a context from the start \
        */
#define TABLE_SIZE 4096u
#define MATCH_MAX 65535u
#define CONTEXT_MASK 0xffffffffffffull

/* The part of the state that both sides keep in step: where the last three words stood before. */
struct history {
    uint16_t *words; /* circular once it has WINDOW_WORDS */
    uint32_t capacity;
    uint32_t next;    /* where the next word goes */
    uint64_t context; /* the last three words, the last one lowest */
    uint16_t source;  /* in a match: where the predicted word stands */
    bool matching;
    uint16_t table[TABLE_SIZE]; /* hash of three words -> the index behind their last occurrence */
};

struct parlot_encoder {
    struct codec_encoder base; /* stable: where the group that is being filled begins */
    unsigned fill;             /* bytes in that group, 0..7 */
    uint32_t length;           /* words of the match so far */
    struct history history;
};

struct parlot_decoder {
    struct bytes_reader in;
    uint8_t bitmap;
    unsigned left;   /* bytes of the group not yet decoded */
    uint32_t length; /* words of the match still to come */
    bool length_known;
    struct history history;
};

static void history_reset(struct history *history)
{
    for (size_t i = 0; i < TABLE_SIZE; i++)
        history->table[i] = FIRST_INDEX;
    memset(history->words, 0, FIRST_INDEX * sizeof(uint16_t));
    history->next = FIRST_INDEX;
    history->context = 0;
    history->matching = false;
}

static int history_init(struct history *history)
{
    history->words = malloc(FIRST_CAPACITY * sizeof(uint16_t));
    if (!history->words)
        return -ENOMEM;
    history->capacity = FIRST_CAPACITY;
    history_reset(history);
    return 0;
}

/* Makes room for one more word: grows the window, or begins it anew when it is full. */
static int history_make_room(struct history *history)
{
    uint16_t *grown;

    if (history->next < history->capacity)
        return 0;
    if (history->capacity == WINDOW_WORDS) {
        history->next = 0;
        return 0;
    }
    grown = realloc(history->words, 2 * history->capacity * sizeof(uint16_t));
    if (!grown)
        return -ENOMEM;
    history->words = grown;
    history->capacity *= 2;
    return 0;
}

/* Whether the three words before index `at` are the last three. No index is ever read before it was written:
 * the table holds indices behind words that were, and the window wraps only when all of it has been. */
static inline bool same_context(const struct history *history, uint16_t at)
{
    const uint16_t *words = history->words;
    uint64_t context = history->context;

    return words[(uint16_t)(at - 1)] == (uint16_t)context &&
           words[(uint16_t)(at - 2)] == (uint16_t)(context >> 16) &&
           words[(uint16_t)(at - 3)] == (uint16_t)(context >> 32);
}

/* Takes in a word for which there is room, and begins a match if none goes on and there is one. */
static inline void history_add(struct history *history, uint16_t word)
{
    uint16_t *behind;

    history->words[history->next++] = word;
    history->context = (history->context << 16 | word) & CONTEXT_MASK;
    behind = &history->table[history->context * 0x9e3779b97f4a7c15ull >> 52];
    if (!history->matching && same_context(history, *behind)) {
        history->matching = true;
        history->source = *behind;
    }
    *behind = (uint16_t)history->next;
}

/* ------------------------------------------------------------------------------------------ encoder */

/* Appends a byte to the zero-eliminated bytes of size `*size`, whose last group begins at `*group`. */
static inline void put_byte(uint8_t *out, size_t *size, size_t *group, unsigned *fill, uint8_t byte)
{
    if (*fill == 0)
        out[(*size)++] = 0;
    if (byte) {
        out[*group] |= (uint8_t)(1u << *fill);
        out[(*size)++] = byte;
    }
    *fill = (*fill + 1) % 8;
    if (*fill == 0)
        *group = *size;
}

static inline void put_word(struct parlot_encoder *encoder, uint16_t word)
{
    struct bytes *code = &encoder->base.code;

    put_byte(code->data, &code->size, &encoder->base.stable, &encoder->fill, (uint8_t)word);
    put_byte(code->data, &code->size, &encoder->base.stable, &encoder->fill, (uint8_t)(word >> 8));
}

static void parlot_encoder_reset(struct codec_encoder *base)
{
    struct parlot_encoder *encoder = (struct parlot_encoder *)base;

    base->code.size = 0;
    base->stable = 0;
    encoder->fill = 0;
    encoder->length = 0;
    history_reset(&encoder->history);
}

static void parlot_encoder_free(struct codec_encoder *base)
{
    struct parlot_encoder *encoder = (struct parlot_encoder *)base;

    if (!encoder)
        return;
    bytes_release(&base->code);
    free(encoder->history.words);
    free(encoder);
}

static struct codec_encoder *parlot_encoder_new(void)
{
    struct parlot_encoder *encoder = calloc(1, sizeof(*encoder));

    if (encoder && history_init(&encoder->history)) {
        free(encoder);
        return NULL;
    }
    if (!encoder)
        return NULL;
    encoder->base.memory = sizeof(*encoder) + encoder->history.capacity * sizeof(uint16_t);
    return &encoder->base;
}

static int parlot_reserve(struct codec_encoder *base)
{
    struct parlot_encoder *encoder = (struct parlot_encoder *)base;

    if (history_make_room(&encoder->history))
        return -ENOMEM;
    base->memory = sizeof(*encoder) + encoder->history.capacity * sizeof(uint16_t);
    return bytes_reserve(&base->code, 8); /* two words, and the bitmaps of the groups they begin */
}

static int parlot_encode(struct codec_encoder *base, uint16_t word)
{
    struct parlot_encoder *encoder = (struct parlot_encoder *)base;
    struct history *history = &encoder->history;

    if (parlot_reserve(base))
        return -ENOMEM;
    if (history->matching && history->words[history->source] == word && encoder->length < MATCH_MAX) {
        history->source++;
        encoder->length++;
        history_add(history, word);
        return 0;
    }
    if (history->matching)
        put_word(encoder, (uint16_t)encoder->length);
    put_word(encoder, word);
    history->matching = false;
    encoder->length = 0;
    history_add(history, word);
    return 0;
}

static void parlot_snapshot(const struct codec_encoder *base, struct codec_tail *ret_tail)
{
    const struct parlot_encoder *encoder = (const struct parlot_encoder *)base;
    unsigned fill = encoder->fill;
    size_t group = 0;

    ret_tail->keep = base->stable;
    ret_tail->size = base->code.size - base->stable;
    if (ret_tail->size)
        memcpy(ret_tail->data, base->code.data + base->stable, ret_tail->size);
    if (encoder->history.matching) {
        put_byte(ret_tail->data, &ret_tail->size, &group, &fill, (uint8_t)encoder->length);
        put_byte(ret_tail->data, &ret_tail->size, &group, &fill, (uint8_t)(encoder->length >> 8));
    }
}

/* ------------------------------------------------------------------------------------------ decoder */

static void parlot_decoder_free(struct codec_decoder *base)
{
    struct parlot_decoder *decoder = (struct parlot_decoder *)base;

    if (!decoder)
        return;
    free(decoder->history.words);
    free(decoder);
}

static struct codec_decoder *parlot_decoder_new(const uint8_t *code, size_t size)
{
    struct parlot_decoder *decoder = calloc(1, sizeof(*decoder));

    if (decoder && history_init(&decoder->history)) {
        free(decoder);
        return NULL;
    }
    if (decoder)
        decoder->in = reader_over(code, size);
    return (struct codec_decoder *)decoder;
}

static inline uint8_t get_byte(struct parlot_decoder *decoder)
{
    uint8_t byte = 0;

    if (!decoder->left) {
        decoder->bitmap = reader_u8(&decoder->in);
        decoder->left = 8;
    }
    if (decoder->bitmap & 1) {
        byte = reader_u8(&decoder->in);
        if (!byte) /* the encoder would not have marked it */
            reader_fail(&decoder->in);
    }
    decoder->bitmap >>= 1;
    decoder->left--;
    return byte;
}

static inline uint16_t get_word(struct parlot_decoder *decoder)
{
    uint8_t low = get_byte(decoder);

    return (uint16_t)(low | get_byte(decoder) << 8);
}

/* In a match, reads its length as soon as it is needed: it may be the end's, which is in the stream as well.
 */
static int parlot_decode(struct codec_decoder *base, uint16_t *ret_word)
{
    struct parlot_decoder *decoder = (struct parlot_decoder *)base;
    struct history *history = &decoder->history;
    uint16_t word;

    if (history_make_room(history))
        return -ENOMEM;
    if (history->matching && !decoder->length_known) {
        decoder->length = get_word(decoder);
        decoder->length_known = true;
    }
    if (history->matching && decoder->length) {
        decoder->length--;
        word = history->words[history->source++];
    } else {
        word = get_word(decoder);
        history->matching = false;
        decoder->length_known = false;
    }
    if (decoder->in.failed)
        return -EBADMSG;
    history_add(history, word);
    *ret_word = word;
    return 0;
}

static bool parlot_at_end(struct codec_decoder *base)
{
    struct parlot_decoder *decoder = (struct parlot_decoder *)base;

    if (decoder->history.matching && !decoder->length_known)
        decoder->length = get_word(decoder);
    return !decoder->in.failed && !decoder->length && !decoder->bitmap && !reader_left(&decoder->in);
}

/* Every word goes through the window. */
static size_t parlot_follow(struct codec_encoder *base, const uint16_t *words, size_t count)
{
    (void)base;
    (void)words;
    (void)count;
    return 0;
}

const struct codec codec_parlot = {
    .id = CODEC_PARLOT_ID,
    .name = "parlot",
    .encoder_new = parlot_encoder_new,
    .encoder_reset = parlot_encoder_reset,
    .encoder_free = parlot_encoder_free,
    .reserve = parlot_reserve,
    .encode = parlot_encode,
    .follow = parlot_follow,
    .snapshot = parlot_snapshot,
    .decoder_new = parlot_decoder_new,
    .decoder_free = parlot_decoder_free,
    .decode = parlot_decode,
    .at_end = parlot_at_end,
};
