/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/segment/sites.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

#define CONTEXT_MASK (((uint64_t)1 << 51) - 1)

/* ------------------------------------------------------------------------------------------ the model */

static void model_release(struct site_model *model)
{
    free(model->last);
    free(model->open);
}

/* Room for one more call of `function`. */
static int model_reserve(struct site_model *model, uint16_t function)
{
    if (array_reserve(&model->open, &model->open_capacity, model->depth + 1) ||
        array_reserve(&model->last, &model->last_capacity, function))
        return -ENOMEM;
    while (model->last_count < function)
        model->last[model->last_count++] = 0;
    return 0;
}

static inline struct site_guess *model_guess(struct site_model *model, uint16_t function)
{
    uint64_t hash = (model->context * 0x9e3779b97f4a7c15ull + function) * 0x9e3779b97f4a7c15ull;

    return &model->table[hash >> (64 - SITE_TABLE_BITS)];
}

static inline void model_event(struct site_model *model, uint16_t site, bool ended)
{
    model->context = (model->context << 17 | (uint64_t)site << 1 | ended) & CONTEXT_MASK;
}

/* 0: no idea. */
static inline uint16_t model_predict(const struct site_model *model, const struct site_guess *guess,
                                     uint16_t function)
{
    return guess->function == function ? guess->site : model->last[function - 1];
}

static inline void model_call(struct site_model *model, struct site_guess *guess, uint16_t function,
                              uint16_t site, bool opens)
{
    *guess = (struct site_guess){.function = function, .site = site};
    model->last[function - 1] = site;
    model_event(model, site, false);
    if (opens)
        model->open[model->depth++] = site;
}

static inline void model_return(struct site_model *model)
{
    model_event(model, model->open[--model->depth], true);
}

/* ------------------------------------------------------------------------------------------ encoder */

struct site_encoder *site_encoder_new(const struct codec *codec)
{
    struct site_encoder *encoder = calloc(1, sizeof(*encoder));

    if (!encoder)
        return NULL;
    encoder->codec = codec;
    encoder->words = codec->encoder_new();
    if (encoder->words)
        return encoder;
    free(encoder);
    return NULL;
}

void site_encoder_free(struct site_encoder *encoder)
{
    if (!encoder)
        return;
    encoder->codec->encoder_free(encoder->words);
    dictionary_release(&encoder->dictionary);
    bytes_release(&encoder->stack);
    model_release(&encoder->model);
    free(encoder);
}

int site_encoder_prepare(struct site_encoder *encoder, uint16_t function, uint32_t site, uint16_t *ret_local)
{
    uint16_t local = dictionary_local(&encoder->dictionary, site);
    int code = 0;

    if (model_reserve(&encoder->model, function) || encoder->codec->reserve(encoder->words))
        return -ENOMEM;
    if (!local)
        code = dictionary_add(&encoder->dictionary, site, &local);
    if (!code)
        *ret_local = local;
    return code;
}

void site_encoder_call(struct site_encoder *encoder, uint16_t function, uint16_t site, bool opens)
{
    struct site_guess *guess = model_guess(&encoder->model, function);
    bool right = model_predict(&encoder->model, guess, function) == site;

    encoder->codec->encode(encoder->words, right ? 0 : site); /* there is room */
    model_call(&encoder->model, guess, function, site, opens);
}

void site_encoder_return(struct site_encoder *encoder)
{
    model_return(&encoder->model);
}

size_t site_encoder_bytes(const struct site_encoder *encoder)
{
    return encoder->stack.size + encoder->dictionary.section.size + encoder->words->code.size;
}

int site_encoder_open_sites(const struct site_encoder *encoder, uint32_t **ret_sites, size_t *ret_count)
{
    const struct site_model *model = &encoder->model;
    uint32_t *sites = malloc((model->depth + 1) * sizeof(*sites));

    if (!sites)
        return -ENOMEM;
    for (size_t i = 0; i < model->depth; i++)
        sites[i] = model->open[i] ? encoder->dictionary.ids[model->open[i] - 1] : 0;
    *ret_sites = sites;
    *ret_count = model->depth;
    return 0;
}

/* The dictionary and the local ids of a segment that begins inside calls from `sites`. */
static int begin_stack(const uint32_t *sites, size_t count, struct dictionary *dictionary,
                       struct bytes *stack, uint16_t *open)
{
    for (size_t i = 0; i < count; i++) {
        int code;

        open[i] = dictionary_local(dictionary, sites[i]);
        code = open[i] ? 0 : dictionary_add(dictionary, sites[i], &open[i]);
        if (code == -ENOMEM || bytes_add_varint(stack, open[i]))
            return -ENOMEM;
    }
    return 0;
}

int site_encoder_begin(struct site_encoder *encoder, const uint32_t *sites, size_t count)
{
    CLEANUP(dictionary_release) struct dictionary dictionary = {0};
    AUTO_BYTES stack = {0};
    struct site_model *model = &encoder->model;
    AUTO_FREE uint16_t *open = calloc(count + 1, sizeof(*open));

    if (!open || begin_stack(sites, count, &dictionary, &stack, open) ||
        array_reserve(&model->open, &model->open_capacity, count))
        return -ENOMEM;
    dictionary_release(&encoder->dictionary);
    bytes_release(&encoder->stack);
    encoder->dictionary = dictionary;
    encoder->stack = stack;
    dictionary = (struct dictionary){0};
    stack = (struct bytes){0};
    if (count)
        memcpy(model->open, open, count * sizeof(*open));
    model->depth = count;
    model->last_count = 0;
    model->context = 0;
    memset(model->table, 0, sizeof(model->table));
    encoder->codec->encoder_reset(encoder->words);
    return 0;
}

/* ------------------------------------------------------------------------------------------ decoder */

struct site_decoder {
    const struct codec *codec;
    struct codec_decoder *words;
    uint32_t *sites;
    size_t site_count;
    struct site_model model;
};

DEFINE_CLEANUP(cleanup_decoder, struct site_decoder *, site_decoder_free)

void site_decoder_free(struct site_decoder *decoder)
{
    if (!decoder)
        return;
    decoder->codec->decoder_free(decoder->words);
    free(decoder->sites);
    model_release(&decoder->model);
    free(decoder);
}

static int read_stack(struct site_decoder *decoder, const uint8_t *data, size_t size, size_t depth)
{
    struct bytes_reader reader = reader_over(data, size);
    struct site_model *model = &decoder->model;

    if (depth > size) /* a byte each, at least */
        return -EBADMSG;
    if (array_reserve(&model->open, &model->open_capacity, depth))
        return -ENOMEM;
    while (model->depth < depth) {
        uint64_t local = reader_varint(&reader);

        if (reader.failed || local > decoder->site_count)
            return -EBADMSG;
        model->open[model->depth++] = (uint16_t)local;
    }
    return reader_left(&reader) ? -EBADMSG : 0;
}

int site_decoder_open(const struct codec *codec, const uint8_t *stack, size_t stack_size,
                      const uint8_t *dictionary, size_t dictionary_size, const uint8_t *words,
                      size_t words_size, size_t depth, struct site_decoder **ret_decoder)
{
    CLEANUP(cleanup_decoder) struct site_decoder *decoder = calloc(1, sizeof(*decoder));
    int code;

    if (!decoder)
        return -ENOMEM;
    decoder->codec = codec;
    decoder->words = codec->decoder_new(words, words_size);
    if (!decoder->words)
        return -ENOMEM;
    code = dictionary_read(dictionary, dictionary_size, 0, &decoder->sites, &decoder->site_count);
    if (!code)
        code = read_stack(decoder, stack, stack_size, depth);
    if (!code)
        *ret_decoder = take_pointer(decoder);
    return code;
}

static inline uint32_t site_id(const struct site_decoder *decoder, uint16_t local)
{
    return local ? decoder->sites[local - 1] : 0;
}

uint32_t site_decoder_open_site(const struct site_decoder *decoder, size_t index)
{
    return site_id(decoder, decoder->model.open[index]);
}

int site_decoder_call(struct site_decoder *decoder, uint16_t function, bool opens, uint32_t *ret_site)
{
    struct site_guess *guess = model_guess(&decoder->model, function);
    uint16_t word, site;
    int code;

    if (model_reserve(&decoder->model, function))
        return -ENOMEM;
    code = decoder->codec->decode(decoder->words, &word);
    if (code)
        return code;
    site = word ? word : model_predict(&decoder->model, guess, function);
    if (!site || site > decoder->site_count)
        return -EBADMSG;
    model_call(&decoder->model, guess, function, site, opens);
    *ret_site = site_id(decoder, site);
    return 0;
}

void site_decoder_return(struct site_decoder *decoder)
{
    model_return(&decoder->model);
}

bool site_decoder_at_end(struct site_decoder *decoder)
{
    return decoder->codec->at_end(decoder->words);
}
