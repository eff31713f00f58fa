/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Call sites of a segment's calls: predicted, and what was not is told (docs/trace-format.md).
 *
 * A program's control flow decides from where a function is called next, and most of it is in the stream of
 * calls and returns already: after the same last three events a function mostly is called from the same place
 * as the last time. Of an event counts the site of the call that it began or ended. So the model keeps for
 * (three events, function) the site that came then, and for each function the one it was called from last,
 * for events that are new. (More than three gain nothing; one alone takes up to half as much again.) A call
 * whose site is the predicted one is word 0 for the codec, which takes runs and repetitions of misses away as
 * well; another one is the site's local id.
 *
 * All work is constant per event; the model takes 16 KiB, and two bytes an open call and a function.
 */
#ifndef TRACESTORE_SITES_H
#define TRACESTORE_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/bytes/codec.h"
#include "store/bytes/dictionary.h"

#define SITE_TABLE_BITS 12

struct site_guess {
    uint16_t function, site; /* local ids; function 0: nothing yet */
};

/* What encoder and decoder keep alike. Zero-initialised at the start of a segment, but for its open calls. */
struct site_model {
    struct site_guess table[1 << SITE_TABLE_BITS];
    uint16_t *last; /* of the function with local id i + 1: the site it was called from last, 0: none */
    size_t last_count, last_capacity;
    uint16_t *open; /* the sites of the open calls, outermost first; 0: unknown */
    size_t depth, open_capacity;
    uint64_t context; /* the last three events, 17 bits each: the site, and whether the call was ended */
};

/* ------------------------------------------------------------------------------------------ writing */

/* The sites of one thread's open segment. */
struct site_encoder {
    const struct codec *codec;
    struct codec_encoder *words;
    struct dictionary dictionary; /* its ids are site ids, 0 among them: unknown */
    struct bytes stack;           /* the local ids of the calls open at the start */
    struct site_model model;
};

/* NULL: out of memory. */
struct site_encoder *site_encoder_new(const struct codec *codec);
void site_encoder_free(struct site_encoder *encoder); /* accepts NULL */

/* Makes room for a call of the function with that local id from `site`, and looks up the site's local id: a
 * site_encoder_call after it cannot fail. -ENOMEM, -E2BIG: the dictionary is full. */
int site_encoder_prepare(struct site_encoder *encoder, uint16_t function, uint32_t site, uint16_t *ret_local);
/* `opens`: a return will end it. */
void site_encoder_call(struct site_encoder *encoder, uint16_t function, uint16_t site, bool opens);
/* There is an open call. */
void site_encoder_return(struct site_encoder *encoder);

/* Payload bytes so far. */
size_t site_encoder_bytes(const struct site_encoder *encoder);

/* The sites of all calls that are open now, for the next segment: as many as site_encoder_return was not
 * called for. Free with free(). -ENOMEM. */
int site_encoder_open_sites(const struct site_encoder *encoder, uint32_t **ret_sites, size_t *ret_count);

/* Begins a new segment inside calls from `sites`. With more than DICTIONARY_MAX different ones the sites of
 * the innermost become unknown. -ENOMEM: nothing has changed. */
int site_encoder_begin(struct site_encoder *encoder, const uint32_t *sites, size_t count);

/* ------------------------------------------------------------------------------------------ reading */

struct site_decoder;

/* The three sections of a segment with `depth` calls open at its start; what they borrow must outlive the
 * decoder. -EBADMSG, -ENOMEM. */
int site_decoder_open(const struct codec *codec, const uint8_t *stack, size_t stack_size,
                      const uint8_t *dictionary, size_t dictionary_size, const uint8_t *words,
                      size_t words_size, size_t depth, struct site_decoder **ret_decoder);
void site_decoder_free(struct site_decoder *decoder); /* accepts NULL */

/* The site id of the open call with that index, 0 the outermost. */
uint32_t site_decoder_open_site(const struct site_decoder *decoder, size_t index);
/* The next call's site id, 0: unknown. -EBADMSG, -ENOMEM. */
int site_decoder_call(struct site_decoder *decoder, uint16_t function, bool opens, uint32_t *ret_site);
void site_decoder_return(struct site_decoder *decoder);
/* Whether the code ends here. */
bool site_decoder_at_end(struct site_decoder *decoder);

#endif
