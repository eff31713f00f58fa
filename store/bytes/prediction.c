/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/bytes/prediction.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define FIRST_SLOTS 64u     /* all memory begins small, so that idle threads stay small */
#define ROOM_FOR_ALL 16384u /* bytes, see make_room */
#define PIECE 64u           /* elements that are copied before a word */
/* How large tables may get, and the share of each that may be used before it grows. */
#define CONTEXT_MOST CONTEXT_SLOTS_MAX
#define CONTEXT_SHARE 2
#define HEAD_MOST MATCH_HEADS_MAX
#define HEAD_SHARE 8
#define TREE_MOST TREE_BITS_MAX
#define TREE_SHARE 32
#define FIRST_WEIGHT 22938
#define FIRST_STEP_SEEN 10

/* ------------------------------------------------------------------------------------ constant tables */

int16_t prediction_stretch[4096];
uint16_t prediction_squash[4096];

/* 65536 / (1 + exp(-x)) for x = -8, -7.5, ... 8 */
static const uint32_t logistic[STEPS] = {
    22,    36,    60,    98,    162,   267,   439,   720,   1179,  1921,  3108,
    4971,  7812,  11955, 17625, 24743, 32768, 40793, 47911, 53581, 57724, 60565,
    62428, 63615, 64357, 64816, 65097, 65269, 65374, 65438, 65476, 65500, 65514,
};

/* The logistic function between these points is taken for straight, and stretch is its inverse. */
__attribute__((constructor)) static void fill_tables(void)
{
    int next = 0;

    for (int i = 0; i < 4096; i++) {
        uint32_t left = logistic[i / 128], right = logistic[i / 128 + 1], part = (uint32_t)i % 128;

        prediction_squash[i] = (uint16_t)((left * (128 - part) + right * part) / 128);
        for (; next <= prediction_squash[i] / 16; next++)
            prediction_stretch[next] = (int16_t)(i - 2048);
    }
    for (; next < 4096; next++)
        prediction_stretch[next] = STRETCH_MAX;
}

/* 65536 / (n + 1.5) */
#define RATE(n) (uint16_t)(131072 / (2 * (n) + 3))
#define FOUR(F, n) F(n), F((n) + 1), F((n) + 2), F((n) + 3)
#define SIXTEEN(F, n) FOUR(F, n), FOUR(F, (n) + 4), FOUR(F, (n) + 8), FOUR(F, (n) + 12)
#define SIXTY_FOUR(F, n) SIXTEEN(F, n), SIXTEEN(F, (n) + 16), SIXTEEN(F, (n) + 32), SIXTEEN(F, (n) + 48)
#define UP_TO_255(F) \
    { \
        SIXTY_FOUR(F, 0), SIXTY_FOUR(F, 64), SIXTY_FOUR(F, 128), SIXTY_FOUR(F, 192) \
    }

const uint16_t adaptive_rates[ADAPTIVE_LIMIT + 1] = UP_TO_255(RATE);

/* Up to 7 one by one, then two levels a binary digit. */
const uint8_t prediction_trust_of_count[CONTEXT_COUNT_MAX + 1] = {
    [1] = 1,
    [2] = 2,
    [3] = 3,
    [4] = 4,
    [5] = 5,
    [6] = 6,
    [7] = 7,
    [8 ... 11] = 8,
    [12 ... 15] = 9,
    [16 ... 23] = 10,
    [24 ... 31] = 11,
    [32 ... 47] = 12,
    [48 ... 63] = 13,
    [64 ... 95] = 14,
    [96 ... 127] = 15,
    [128 ... 191] = 16,
    [192 ... 255] = 17,
};

/* ------------------------------------------------------------------------------------ memory */

static void reset_mixers(struct prediction *prediction)
{
    for (unsigned level = 0; level < TRUST_LEVELS; level++)
        for (int voice = 0; voice < CONTEXTS; voice++)
            prediction->trust[voice][level] = adaptive_start(65536 - 24576 / (level + 1), 2);
    for (int mixer = 0; mixer < MIXERS; mixer++) {
        for (int voice = 0; voice < CONTEXTS; voice++)
            prediction->weights[mixer][voice] = FIRST_WEIGHT;
        for (int step = 0; step < STEPS; step++)
            prediction->steps[mixer][step] = adaptive_start(logistic[step], FIRST_STEP_SEEN);
    }
    adaptive_forget(prediction->choice[0], (size_t)FAMILIARITIES * CHOICES);
    adaptive_forget(prediction->novel[0], (size_t)FAMILIARITIES * 2);
    adaptive_number_init(&prediction->jump);
    adaptive_number_init(&prediction->run);
}

static uint32_t limit_of(uint32_t limit, uint32_t mask, uint32_t most)
{
    return mask < most - 1 ? limit : UINT32_MAX;
}

/* Of the size that its mask says, and nothing is used. A table may grow to `most` elements, and has to when
 * one of `share` is used. */
static void limit_table(struct table_size *table, uint32_t most, uint32_t share)
{
    table->used = table->copied = 0;
    table->limit = limit_of(table->mask / share, table->mask, most);
}

static void reset_size(struct table_size *table, uint32_t most, uint32_t share)
{
    table->mask = FIRST_SLOTS - 1;
    limit_table(table, most, share);
}

static void limit_rings(struct prediction *prediction)
{
    prediction->words_limit = limit_of(prediction->words_mask, prediction->words_mask, WORDS_MAX);
    prediction->frames_limit = limit_of(prediction->frames_mask - 1, prediction->frames_mask, FRAMES_MAX);
}

#define RESET_TABLE(elements, table, kind) \
    (reset_size(table, kind##_MOST, kind##_SHARE), memset(elements, 0, FIRST_SLOTS * sizeof(*(elements))))

void prediction_reset(struct prediction *prediction)
{
    prediction->words_mask = prediction->frames_mask = FIRST_SLOTS - 1;
    prediction->position = prediction->grown_for = prediction->depth = 0;
    prediction->known = 1;
    prediction->long_hash = prediction->match_hash = prediction->far_hash = prediction->recent = 0;
    memset(prediction->words, 0, FIRST_SLOTS * sizeof(*prediction->words));
    memset(prediction->frames, 0, FIRST_SLOTS * sizeof(*prediction->frames));
    limit_rings(prediction);
    for (int i = 0; i < CONTEXTS; i++)
        RESET_TABLE(prediction->tables[i].slots, &prediction->tables[i].size, CONTEXT);
    RESET_TABLE(prediction->heads.positions, &prediction->heads.size, HEAD);
    RESET_TABLE(prediction->far_heads.positions, &prediction->far_heads.size, HEAD);
    reset_size(&prediction->tree.size, TREE_MOST, TREE_SHARE);
    adaptive_forget(prediction->tree.bits, FIRST_SLOTS);
    prediction->match_at = prediction->match_length = 0;
    prediction->surprise = 0;
    prediction->was_novel = prediction->crowded = false;
    reset_mixers(prediction);
}

/* Whether the kernel counts memory that nothing was written to (vm.overcommit_memory is 2): then what is
 * reserved is missing elsewhere. */
static bool reserving_costs(void)
{
    static atomic_int known; /* 1 no, 2 yes */

    if (!known) {
        AUTO_FCLOSE FILE *file = fopen("/proc/sys/vm/overcommit_memory", "re");

        known = file && getc(file) == '2' ? 2 : 1;
    }
    return known == 2;
}

/* Room for `count` elements in all, of at most `most`. From a few pages on it is room for all of them, if the
 * kernel has it: pages that nothing was written to take no memory, and what was written is never moved again,
 * which no word could wait for. */
static int make_room(void **elements, uint32_t *capacity, uint32_t count, uint32_t most, size_t size)
{
    void *grown = NULL;

    if (count <= *capacity)
        return 0;
    if (count * size >= ROOM_FOR_ALL && !reserving_costs())
        grown = realloc(*elements, most * size);
    if (grown)
        count = most;
    else
        grown = realloc(*elements, count * size);
    if (!grown)
        return -ENOMEM;
    *elements = grown;
    *capacity = count;
    return 0;
}

#define MAKE_ROOM(elements, capacity, count, most) \
    make_room((void **)(elements), capacity, count, most, sizeof(**(elements)))

/* The first `count` elements of `size` bytes are written to from now on. */
static void touch(struct prediction *prediction, uint32_t *touched, uint32_t count, size_t size)
{
    if (count <= *touched)
        return;
    prediction->memory += (count - *touched) * size;
    *touched = count;
}

#define TOUCH(elements, touched, count) touch(prediction, touched, count, sizeof(*(elements)))

static void touch_first(struct prediction *prediction)
{
    prediction->memory = sizeof(*prediction);
    TOUCH(prediction->words, &prediction->words_touched, FIRST_SLOTS);
    TOUCH(prediction->frames, &prediction->frames_touched, FIRST_SLOTS);
    TOUCH(prediction->heads.positions, &prediction->heads.size.touched, FIRST_SLOTS);
    TOUCH(prediction->far_heads.positions, &prediction->far_heads.size.touched, FIRST_SLOTS);
    TOUCH(prediction->tree.bits, &prediction->tree.size.touched, FIRST_SLOTS);
    for (int i = 0; i < CONTEXTS; i++)
        TOUCH(prediction->tables[i].slots, &prediction->tables[i].size.touched, FIRST_SLOTS);
}

int prediction_init(struct prediction *prediction)
{
    int code;

    *prediction = (struct prediction){0};
    code = MAKE_ROOM(&prediction->words, &prediction->words_capacity, FIRST_SLOTS, WORDS_MAX) |
           MAKE_ROOM(&prediction->frames, &prediction->frames_capacity, FIRST_SLOTS, FRAMES_MAX) |
           MAKE_ROOM(&prediction->heads.positions, &prediction->heads.size.capacity, FIRST_SLOTS,
                     MATCH_HEADS_MAX) |
           MAKE_ROOM(&prediction->far_heads.positions, &prediction->far_heads.size.capacity, FIRST_SLOTS,
                     MATCH_HEADS_MAX) |
           MAKE_ROOM(&prediction->tree.bits, &prediction->tree.size.capacity, FIRST_SLOTS, TREE_BITS_MAX);
    for (int i = 0; i < CONTEXTS; i++)
        code |= MAKE_ROOM(&prediction->tables[i].slots, &prediction->tables[i].size.capacity, FIRST_SLOTS,
                          CONTEXT_SLOTS_MAX);
    if (code) {
        prediction_release(prediction);
        return -ENOMEM;
    }
    prediction_reset(prediction);
    touch_first(prediction);
    return 0;
}

void prediction_release(struct prediction *prediction)
{
    free(prediction->words);
    free(prediction->frames);
    free(prediction->heads.positions);
    free(prediction->far_heads.positions);
    free(prediction->tree.bits);
    for (int i = 0; i < CONTEXTS; i++)
        free(prediction->tables[i].slots);
    *prediction = (struct prediction){0};
}

/* ------------------------------------------------------------------------------------ growing */

/* Another piece of the copy by which a table doubles. */
static int grow_table(struct prediction *prediction, void **elements, size_t size, struct table_size *table,
                      uint32_t most, uint32_t share)
{
    uint32_t count = table->mask + 1;
    uint32_t piece = count - table->copied < PIECE ? count - table->copied : PIECE;
    uint8_t *bytes;

    if (make_room(elements, &table->capacity, 2 * count, most, size))
        return -ENOMEM;
    bytes = *elements;
    memcpy(bytes + (count + table->copied) * size, bytes + table->copied * size, piece * size);
    table->copied += piece;
    touch(prediction, &table->touched, count + table->copied, size);
    if (table->copied < count)
        return 0;
    table->mask = 2 * count - 1;
    limit_table(table, most, share);
    return 0;
}

#define GROW_TABLE(elements, table, kind) \
    grow_table(prediction, (void **)(elements), sizeof(**(elements)), table, kind##_MOST, kind##_SHARE)

/* The rings are not yet full: nothing has to move. */
static int grow_words(struct prediction *prediction)
{
    if (MAKE_ROOM(&prediction->words, &prediction->words_capacity, 2 * (prediction->words_mask + 1),
                  WORDS_MAX))
        return -ENOMEM;
    prediction->words_mask = 2 * prediction->words_mask + 1;
    TOUCH(prediction->words, &prediction->words_touched, prediction->words_mask + 1);
    limit_rings(prediction);
    return 0;
}

static int grow_frames(struct prediction *prediction)
{
    if (MAKE_ROOM(&prediction->frames, &prediction->frames_capacity, 2 * (prediction->frames_mask + 1),
                  FRAMES_MAX))
        return -ENOMEM;
    prediction->frames_mask = 2 * prediction->frames_mask + 1;
    TOUCH(prediction->frames, &prediction->frames_touched, prediction->frames_mask + 1);
    limit_rings(prediction);
    return 0;
}

static bool is_crowded(const struct table_size *table)
{
    return table->used > table->limit;
}

static int grow_one(struct prediction *prediction)
{
    bool words = prediction->position > prediction->words_limit;
    bool frames = prediction->depth > prediction->frames_limit;

    /* The rings cannot wait for each other: the next word stands behind their ends. */
    if (words && grow_words(prediction))
        return -ENOMEM;
    if (frames && grow_frames(prediction))
        return -ENOMEM;
    if (words || frames)
        return 0;
    for (int i = 0; i < CONTEXTS; i++)
        if (is_crowded(&prediction->tables[i].size))
            return GROW_TABLE(&prediction->tables[i].slots, &prediction->tables[i].size, CONTEXT);
    if (is_crowded(&prediction->heads.size))
        return GROW_TABLE(&prediction->heads.positions, &prediction->heads.size, HEAD);
    if (is_crowded(&prediction->far_heads.size))
        return GROW_TABLE(&prediction->far_heads.positions, &prediction->far_heads.size, HEAD);
    if (is_crowded(&prediction->tree.size))
        return GROW_TABLE(&prediction->tree.bits, &prediction->tree.size, TREE);
    prediction->crowded = false;
    return 0;
}

int prediction_grow(struct prediction *prediction)
{
    int code;

    if (prediction->grown_for == prediction->position)
        return 0;
    code = grow_one(prediction);
    if (!code)
        prediction->grown_for = prediction->position;
    return code;
}
