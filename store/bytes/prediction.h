/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a thread will do next: the model behind codec 1 (docs/trace-format.md has it number by number).
 *
 * Words are those of a segment: 0 a return, others a call of the function with that local id. The model has
 * two parts.
 *
 * A match is the place where the last words stood before, followed as long as it is right (Lempel and Ziv's
 * idea, as in ParLOT). It is believed without asking anything else: then a word costs a comparison. It is
 * best found by the last sixty-four words: rounds of a loop in a loop look the same nearby, and differ
 * further back. Where nothing is found by so many, sixteen will do.
 *
 * Any other word is predicted by five contexts, which remember the word that followed them last: the last
 * three words; the last twenty-one; the function that runs now with its last two callees; the same function
 * with its caller and all that it has called so far; and that with all that the caller has called, too. Each
 * context is a voice that counts as much as it has deserved: its answers are weighed by logistic mixing
 * (Mahoney, "Adaptive Weighing of Context Models for Lossless Data Compression", 2005).
 *
 * Everything is an integer, so that any machine decodes what any other has encoded. All memory grows with
 * what was seen, up to about 5 MiB; the work of a word is bounded.
 */
#ifndef TRACESTORE_PREDICTION_H
#define TRACESTORE_PREDICTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/bytes/range_coder.h"

enum { CONTEXT_RECENT, CONTEXT_LONG, CONTEXT_CALLEES, CONTEXT_PATH, CONTEXT_PATHS, CONTEXTS };

#define TRUST_LEVELS 32 /* how often a voice has been right of late, in steps */

#define MATCH_LEAST 12  /* words that must agree before a match begins */
#define FAR_LEAST 48    /* or, for one by the far hash, so many */
#define MATCH_VERIFY 64 /* so many words are looked at */

#define NO_WORD (-1)

#define CONTEXT_COUNT_MAX 255

/* What followed a context: the word last, another one before it, how often in a row the first was right. */
struct context_slot {
    uint16_t word, other;
    uint16_t check; /* part of the hash */
    uint16_t count; /* 0: empty */
};

/* Tables are indexed by the low bits of a hash, and double by copying themselves when enough of them is used:
 * what was learned stays where the longer index finds it. The copy is made piece by piece, before one word
 * after the other, and used when it is whole. */
struct table_size {
    uint32_t mask, used;
    uint32_t limit;    /* when more is used, the table has to grow; UINT32_MAX: it is as large as it may be */
    uint32_t copied;   /* elements so far */
    uint32_t touched;  /* elements that were ever written to: the memory behind them takes no room */
    uint32_t capacity; /* elements that there is memory for */
};

struct context_table {
    struct context_slot *slots;
    struct table_size size;
    struct context_slot *slot; /* of the present context */
};

struct match_table {
    uint32_t *positions; /* behind the last words with this hash; 0: none */
    struct table_size size;
};

struct word_tree {
    struct adaptive_bit *bits;
    struct table_size size;
};

/* A call that is open, or what lies below all of them. */
struct call_frame {
    uint32_t path; /* hash of all its callees so far */
    uint16_t function, last, last_but_one;
};

#define MATCH_CLASSES 4
#define MISS_CLASSES 4
#define MIXERS (MATCH_CLASSES * MISS_CLASSES)
#define STEPS 33  /* from -8 to 8 in logistic units */
#define CHOICES 3 /* words that are tried behind the expected one */
#define FAMILIARITIES 4

struct prediction {

    /* what has happened */
    uint16_t *words;                                     /* a ring, of which the last words are kept */
    uint32_t words_mask, words_limit, words_capacity;    /* limit: of the position, as above */
    uint32_t position;                                   /* of the next word */
    uint32_t grown_for;                                  /* the position before which memory grew last */
    struct call_frame *frames;                           /* a ring as well: the innermost calls are kept */
    uint32_t frames_mask, frames_limit, frames_capacity; /* limit: of the depth */
    uint32_t depth;
    uint32_t known; /* the words below it have been seen */
    uint64_t long_hash, match_hash, far_hash;
    uint64_t recent; /* the last three words, the very last one lowest */

    /* what follows from it */
    struct context_table tables[CONTEXTS];
    struct match_table heads, far_heads; /* by match_hash and far_hash */
    uint32_t match_at, match_length;     /* the predicted word's position; 0: no match */
    struct adaptive_bit trust[CONTEXTS][TRUST_LEVELS];
    int32_t weights[MIXERS][CONTEXTS]; /* 65536 is 1 */
    struct adaptive_bit steps[MIXERS][STEPS];
    struct adaptive_bit choice[FAMILIARITIES][CHOICES];
    struct adaptive_bit novel[FAMILIARITIES][2];
    struct word_tree tree;
    struct adaptive_number jump, run;
    unsigned surprise; /* how many misses of late */
    bool was_novel;
    bool crowded; /* some memory has to grow */
    uint32_t words_touched, frames_touched;
    size_t memory; /* bytes of all that was touched, with this struct */
};

/* How much a table, and the rings, may grow to. */
#define CONTEXT_SLOTS_MAX (1u << 16)
#define MATCH_HEADS_MAX (1u << 16)
#define TREE_BITS_MAX (1u << 18)
#define WORDS_MAX (1u << 18)
#define FRAMES_MAX (1u << 10)

/* The memory of a stream that has just begun. -ENOMEM. */
int prediction_init(struct prediction *prediction);
void prediction_release(struct prediction *prediction);
/* As after init, with the memory that is there. */
void prediction_reset(struct prediction *prediction);
/* To be called before a word when `crowded`: grows the rings, or a piece of one table, once a word, however
 * often it is called, so that both sides do it at the same time and no word waits for long. -ENOMEM: nothing
 * has changed. */
int prediction_grow(struct prediction *prediction);

/* ln(p / (1 - p)) and its inverse. Logistic units are 1/256; p is of 4096 for stretch, of 65536 for squash.
 */
#define STRETCH_MAX 2047
extern int16_t prediction_stretch[4096];
extern uint16_t prediction_squash[4096]; /* of -2048..2047, less -2048 */

/* The level of trust in a context that was right so often in a row. */
extern const uint8_t prediction_trust_of_count[CONTEXT_COUNT_MAX + 1];

#endif
