/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One word of the model of prediction.h: what is expected, how the word is coded, what is learned from it.
 * The same functions encode and decode (range_coder.h); they are inline so that `decoding` is a constant.
 */
#ifndef TRACESTORE_PREDICTION_STEP_H
#define TRACESTORE_PREDICTION_STEP_H

#include "store/bytes/prediction.h"

#define HASH_MULTIPLIER 0x9e3779b97f4a7c15ull
#define PATH_MULTIPLIER 0x9e3779b1u
/* The last bits of a factor are zeros: what was added so many words ago has left a 64-bit hash. */
#define LONG_MULTIPLIER (HASH_MULTIPLIER << 3)        /* 21 words */
#define MATCH_MULTIPLIER (0xb67ff4331b14fce9ull << 4) /* 16 words */
#define FAR_MULTIPLIER (0xd6e8feb86659fd93ull << 1)   /* 64 words */
#define HASHED_WORDS 64
#define RECENT_MASK 0xffffffffffffull /* 3 words */

#define TRUST_LIMIT 250 /* how slowly the several probabilities adapt */
#define STEP_LIMIT 127
#define FLAG_LIMIT 60
#define TREE_LIMIT 12
#define TREE_ROOT_LIMIT 60

#define MIXER_RATE 3 /* of 65536 */
#define SURPRISE_MISS 4
#define SURPRISE_MAX 15

#define STEP_INLINE static inline __attribute__((always_inline))

#define LIKELY(condition) __builtin_expect(condition, true)
#define UNLIKELY(condition) __builtin_expect(condition, false)

/* Before a loop over voices: so that what is known of each of them stays in registers. */
#ifdef __clang__
#define FOR_EACH_VOICE _Pragma("clang loop unroll(full)")
#else
#define FOR_EACH_VOICE _Pragma("GCC unroll 8")
#endif

/* The voice whose word is tried first when the elected one is wrong, and so on. */
static const uint8_t voice_order[CONTEXTS] = {CONTEXT_PATHS, CONTEXT_LONG, CONTEXT_PATH, CONTEXT_CALLEES,
                                              CONTEXT_RECENT};

/* What the voices say of the next word. */
struct expectation {
    int word;   /* NO_WORD: nothing */
    uint32_t p; /* that it comes, of 65536 */
    int logistic;
    unsigned mixer, familiarity;
    int words[CONTEXTS];
    int evidence[CONTEXTS]; /* for `word`: how much each is trusted, negative: it says another one */
    struct adaptive_bit *trusts[CONTEXTS]; /* where that comes from */
};

/* ------------------------------------------------------------------------------------ what has happened */

STEP_INLINE uint16_t word_before(const struct prediction *prediction, uint32_t count)
{
    return prediction->words[(prediction->position - count) & prediction->words_mask];
}

STEP_INLINE struct call_frame *frame_at(const struct prediction *prediction, uint32_t depth)
{
    return &prediction->frames[depth & prediction->frames_mask];
}

STEP_INLINE struct call_frame *current_frame(const struct prediction *prediction)
{
    return frame_at(prediction, prediction->depth);
}

/* The calls that are open at `depth` follow a word; returns how deep they are behind it. */
STEP_INLINE uint32_t follow_frames(const struct prediction *prediction, uint32_t depth, uint16_t word)
{
    struct call_frame *frame = frame_at(prediction, depth);

    if (word) {
        frame->last_but_one = frame->last;
        frame->last = word;
        frame->path = (frame->path + word) * PATH_MULTIPLIER;
        frame->path ^= frame->path >> 15;
        *frame_at(prediction, ++depth) = (struct call_frame){.function = word};
    } else if (depth) {
        depth--;
    } else {
        *frame = (struct call_frame){0};
    }
    return depth;
}

/* The word happens: the history and the calls that are open follow it. */
STEP_INLINE void follow_word(struct prediction *prediction, uint16_t word)
{
    prediction->words[prediction->position++ & prediction->words_mask] = word;
    prediction->depth = follow_frames(prediction, prediction->depth, word);
    if (UNLIKELY(prediction->position > prediction->words_limit ||
                 prediction->depth > prediction->frames_limit))
        prediction->crowded = true;
}

STEP_INLINE void hash_word(struct prediction *prediction, uint32_t word)
{
    prediction->long_hash = (prediction->long_hash + word + 1) * LONG_MULTIPLIER;
    prediction->match_hash = (prediction->match_hash + word + 1) * MATCH_MULTIPLIER;
    prediction->far_hash = (prediction->far_hash + word + 1) * FAR_MULTIPLIER;
    prediction->recent = (prediction->recent << 16 | word) & RECENT_MASK;
}

/* ------------------------------------------------------------------------------------ what is expected */

STEP_INLINE bool is_slot_of(const struct context_slot *slot, uint16_t check)
{
    return (slot->check == check) & (slot->count != 0);
}

/* Of the two slots that a context may have, the one that is its own, or else the one that was right less
 * often in a row. Which of them it is nobody can foresee: no jump. */
STEP_INLINE struct context_slot *find_slot(struct prediction *prediction, int context, uint64_t key)
{
    struct context_table *table = &prediction->tables[context];
    uint64_t hash = (key ^ key >> 32) * HASH_MULTIPLIER;
    uint32_t index = (uint32_t)(hash >> 28) & table->size.mask;
    uint16_t check = (uint16_t)(hash >> 48);
    struct context_slot *slot = &table->slots[index ^ !is_slot_of(&table->slots[index], check)];

    if (UNLIKELY(!is_slot_of(slot, check))) {
        struct context_slot *neighbour = slot;

        slot = &table->slots[index];
        slot = neighbour->count < slot->count ? neighbour : slot;
        *slot = (struct context_slot){.check = check};
        prediction->crowded |= ++table->size.used > table->size.limit;
    }
    table->slot = slot;
    return slot;
}

STEP_INLINE void find_slots(struct prediction *prediction, struct context_slot *slots[CONTEXTS])
{
    const struct call_frame *frame = current_frame(prediction);
    const struct call_frame *caller = prediction->depth ? frame_at(prediction, prediction->depth - 1) : frame;
    uint64_t callees = (uint64_t)frame->function << 32 | (uint64_t)frame->last << 16 | frame->last_but_one;
    uint64_t path = (uint64_t)caller->function << 48 | (uint64_t)frame->function << 32 | frame->path;

    slots[CONTEXT_RECENT] = find_slot(prediction, CONTEXT_RECENT, prediction->recent * HASH_MULTIPLIER);
    slots[CONTEXT_LONG] = find_slot(prediction, CONTEXT_LONG, prediction->long_hash * HASH_MULTIPLIER);
    slots[CONTEXT_CALLEES] = find_slot(prediction, CONTEXT_CALLEES, callees * HASH_MULTIPLIER);
    slots[CONTEXT_PATH] = find_slot(prediction, CONTEXT_PATH, path * HASH_MULTIPLIER);
    slots[CONTEXT_PATHS] =
        find_slot(prediction, CONTEXT_PATHS, (path * HASH_MULTIPLIER + caller->path) * HASH_MULTIPLIER);
}

STEP_INLINE unsigned choose_mixer(const struct prediction *prediction)
{
    uint32_t length = prediction->match_length;
    unsigned match_class = !length ? 0 : length < 32 ? 1 : length < 512 ? 2 : 3;
    unsigned surprise = prediction->surprise;
    unsigned miss_class = !surprise ? 0 : surprise <= 3 ? 1 : surprise <= 11 ? 2 : 3;

    return match_class * MISS_CLASSES + miss_class;
}

/* Of the words that are not `excluded`, the one that the voices together trust most: to `expected`. */
STEP_INLINE void elect(const struct prediction *prediction, struct expectation *expected)
{
    const int32_t *weights = prediction->weights[expected->mixer];
    int64_t most = INT64_MIN;

    expected->word = NO_WORD;
    for (int voice = 0; voice < CONTEXTS; voice++) {
        int64_t sum = 0;

        if (expected->words[voice] == NO_WORD || expected->words[voice] == expected->word)
            continue;
        for (int other = 0; other < CONTEXTS; other++)
            if (expected->words[other] == expected->words[voice])
                sum += (int64_t)weights[other] * expected->evidence[other];
        if (sum > most) {
            most = sum;
            expected->word = expected->words[voice];
        }
    }
}

/* The evidence for the elected word, when voices disagree; returns its weighted sum. */
STEP_INLINE int64_t take_sides(const struct prediction *prediction, struct expectation *expected)
{
    const int32_t *weights = prediction->weights[expected->mixer];
    int64_t sum = 0;

    for (int voice = 0; voice < CONTEXTS; voice++) {
        if (expected->words[voice] != expected->word)
            expected->evidence[voice] = -expected->evidence[voice];
        sum += (int64_t)weights[voice] * expected->evidence[voice];
    }
    return sum;
}

/* The probability of the elected word, of the weighted sum of evidence. */
STEP_INLINE void weigh(const struct prediction *prediction, struct expectation *expected, int64_t sum)
{
    const struct adaptive_bit *step;
    uint32_t place, part, p;

    sum >>= 16;
    expected->logistic = sum > STRETCH_MAX ? STRETCH_MAX : sum < -STRETCH_MAX ? -STRETCH_MAX : (int)sum;
    place = (uint32_t)(expected->logistic + 2048);
    part = place % 128;
    step = &prediction->steps[expected->mixer][place / 128];
    p = (adaptive_p(step[0]) * (128 - part) + adaptive_p(step[1]) * part) / 128;
    p = (prediction_squash[place] + 3 * p) / 4;
    expected->p = p < 16 ? 16 : p > 65535 ? 65535 : p;
}

/* The voices so far. */
struct hearing {
    int first; /* the word that was said first */
    unsigned heard;
    bool agree;  /* nobody has said another one */
    int64_t sum; /* of their evidence for it, weighted */
};

STEP_INLINE void hear(const struct prediction *prediction, struct expectation *expected, int voice, int word,
                      struct adaptive_bit *trust, struct hearing *hearing)
{
    bool silent = word == NO_WORD;
    int evidence = silent ? 0 : prediction_stretch[trust->state >> 20];

    expected->words[voice] = word;
    expected->evidence[voice] = evidence;
    expected->trusts[voice] = trust;
    hearing->first = hearing->first == NO_WORD ? word : hearing->first;
    hearing->heard += !silent;
    hearing->agree &= silent | (word == hearing->first);
    hearing->sum += (int64_t)prediction->weights[expected->mixer][voice] * evidence;
}

/* What the voices say, of the words that are not `excluded`. Mostly they agree. */
STEP_INLINE void expect(struct prediction *prediction, int excluded, struct expectation *expected)
{
    static const uint8_t familiarities[CONTEXTS + 1] = {0, 1, 1, 2, 2, 3};
    struct hearing hearing = {.first = NO_WORD, .agree = true};
    struct context_slot *slots[CONTEXTS];

    find_slots(prediction, slots);
    expected->mixer = choose_mixer(prediction);
    FOR_EACH_VOICE
    for (int voice = 0; voice < CONTEXTS; voice++) {
        unsigned count = slots[voice]->count;
        int word = count && slots[voice]->word != excluded ? slots[voice]->word : NO_WORD;

        hear(prediction, expected, voice, word, &prediction->trust[voice][prediction_trust_of_count[count]],
             &hearing);
    }
    expected->familiarity = familiarities[hearing.heard];
    expected->word = hearing.first;
    if (UNLIKELY(!hearing.agree)) {
        elect(prediction, expected);
        hearing.sum = take_sides(prediction, expected);
    }
    weigh(prediction, expected, hearing.sum);
}

/* The words that are tried behind the elected one: what other voices say, then what followed the contexts
 * before. */
STEP_INLINE int list_choices(const struct prediction *prediction, const struct expectation *expected,
                             int excluded, int choices[CHOICES])
{
    int count = 0;

    for (int i = 0; i < 2 * CONTEXTS && count < CHOICES; i++) {
        const struct context_slot *slot = i < CONTEXTS ? NULL : prediction->tables[i - CONTEXTS].slot;
        int word = !slot ? expected->words[voice_order[i]] : slot->count ? slot->other : NO_WORD;
        bool fresh = word != NO_WORD && word != expected->word && word != excluded;

        for (int j = 0; j < count; j++)
            fresh &= choices[j] != word;
        if (fresh)
            choices[count++] = word;
    }
    return count;
}

/* ------------------------------------------------------------------------------------ what is learned */

STEP_INLINE void learn_hit(struct prediction *prediction, const struct expectation *expected, bool hit)
{
    uint32_t place = (uint32_t)(expected->logistic + 2048);
    struct adaptive_bit *step = &prediction->steps[expected->mixer][place / 128];
    int error = ((hit ? 65535 : 0) - prediction_squash[place]) * MIXER_RATE;

    FOR_EACH_VOICE
    for (int voice = 0; voice < CONTEXTS; voice++) /* |evidence| < 2^12, |error| < 2^18 */
        prediction->weights[expected->mixer][voice] += expected->evidence[voice] * error / 65536;
    adaptive_learn(step + (place % 128 >= 64), hit, STEP_LIMIT);
    if (hit)
        prediction->surprise -= prediction->surprise > 0;
    else
        prediction->surprise += prediction->surprise + SURPRISE_MISS < SURPRISE_MAX
                                    ? SURPRISE_MISS
                                    : SURPRISE_MAX - prediction->surprise;
}

/* Most words are those that most contexts foresaw. */
STEP_INLINE void learn_slot(struct context_slot *slot, struct adaptive_bit *trust, uint16_t word)
{
    uint16_t count = slot->count;

    if (UNLIKELY(!count)) {
        slot->word = slot->other = word;
        slot->count = 1;
    } else if (LIKELY(slot->word == word)) {
        adaptive_learn(trust, true, TRUST_LIMIT);
        slot->count = (uint16_t)(count + (count < CONTEXT_COUNT_MAX));
    } else {
        adaptive_learn(trust, false, TRUST_LIMIT);
        slot->other = count > 3 ? word : slot->word;
        slot->word = count > 3 ? slot->word : word;
        slot->count = count > 3 ? count / 4 : 1;
    }
}

STEP_INLINE void learn_slots(struct prediction *prediction, const struct expectation *expected, uint16_t word)
{
    FOR_EACH_VOICE
    for (int i = 0; i < CONTEXTS; i++)
        learn_slot(prediction->tables[i].slot, expected->trusts[i], word);
}

/* Whether the words before `position` are the last ones; how many, up to MATCH_VERIFY. */
STEP_INLINE uint32_t agreement(const struct prediction *prediction, uint32_t position)
{
    uint32_t length = 0;

    while (length < MATCH_VERIFY && position > length &&
           prediction->position - position + length <= prediction->words_mask &&
           prediction->words[(position - 1 - length) & prediction->words_mask] ==
               word_before(prediction, 1 + length))
        length++;
    return length;
}

/* The last place with this hash, 0: there is none; now it is here. */
STEP_INLINE uint32_t note_place(struct prediction *prediction, struct match_table *heads, uint64_t hash)
{
    uint32_t *head = &heads->positions[hash >> 40 & heads->size.mask], place = *head;

    if (UNLIKELY(!place))
        prediction->crowded |= ++heads->size.used > heads->size.limit;
    *head = prediction->position;
    return place;
}

STEP_INLINE void try_match(struct prediction *prediction, uint32_t place, uint32_t least)
{
    uint32_t length = place ? agreement(prediction, place) : 0;

    if (length >= least) {
        prediction->match_at = place;
        prediction->match_length = length;
    }
}

/* After a word that was not believed: the place is noted, and a match begins where there is one. */
STEP_INLINE void find_match(struct prediction *prediction)
{
    uint32_t near = note_place(prediction, &prediction->heads, prediction->match_hash);
    uint32_t far = note_place(prediction, &prediction->far_heads, prediction->far_hash);

    prediction->match_length = 0;
    try_match(prediction, far, FAR_LEAST);
    if (!prediction->match_length)
        try_match(prediction, near, MATCH_LEAST);
}

STEP_INLINE void learn_word(struct prediction *prediction, const struct expectation *expected, uint16_t word)
{
    learn_slots(prediction, expected, word);
    follow_word(prediction, word);
    hash_word(prediction, word);
    find_match(prediction);
}

/* ------------------------------------------------------------------------------------ coding */

/* A leaf's bits, the highest first: by what was said in this function, or where that is little, anywhere. */
STEP_INLINE int code_tree_bit(struct prediction *prediction, struct range_coder *coder, uint32_t node,
                              int bit, bool decoding)
{
    struct word_tree *tree = &prediction->tree;
    uint32_t function = current_frame(prediction)->function + 1;
    uint64_t here_hash = ((uint64_t)function << 32 | node) * HASH_MULTIPLIER,
             any_hash = node * HASH_MULTIPLIER;
    struct adaptive_bit *here = &tree->bits[here_hash >> 40 & tree->size.mask];
    struct adaptive_bit *any = &tree->bits[any_hash >> 40 & tree->size.mask];

    tree->size.used += !adaptive_seen(*here);
    prediction->crowded |= tree->size.used > tree->size.limit;
    return range_coder_in_context(coder, any, TREE_ROOT_LIMIT, here, TREE_LIMIT, bit, decoding);
}

/* A word that nothing announced. Decoding, a word at or above `known` is damage. */
STEP_INLINE uint32_t code_rare_word(struct prediction *prediction, struct range_coder *coder, uint32_t word,
                                    unsigned familiarity, bool decoding)
{
    struct adaptive_bit *novel = &prediction->novel[familiarity][prediction->was_novel];
    uint32_t value = 0;
    int digits = 0;

    prediction->was_novel =
        range_coder_adaptive(coder, novel, !decoding && word >= prediction->known, FLAG_LIMIT, decoding);
    if (prediction->was_novel) {
        value = prediction->known +
                range_coder_number(coder, &prediction->jump, word - prediction->known, decoding);
        prediction->known = value < UINT16_MAX ? value + 1 : UINT16_MAX + 1;
        return value;
    }
    while ((prediction->known - 1) >> digits)
        digits++;
    while (digits--) {
        uint32_t node = (uint32_t)digits << 16 | value;

        value = 2 * value + (uint32_t)code_tree_bit(prediction, coder, node, word >> digits & 1, decoding);
    }
    return value;
}

/* A word by the votes, likewise; `expected` is set. */
STEP_INLINE uint32_t code_open_word(struct prediction *prediction, struct range_coder *coder, uint16_t word,
                                    int excluded, bool decoding, struct expectation *expected)
{
    int choices[CHOICES], count;

    expect(prediction, excluded, expected);
    if (expected->word != NO_WORD) {
        bool hit = range_coder_bit(coder, word == expected->word, expected->p, decoding);

        learn_hit(prediction, expected, hit);
        if (hit)
            return (uint32_t)expected->word;
        count = list_choices(prediction, expected, excluded, choices);
        for (int i = 0; i < count; i++)
            if (range_coder_adaptive(coder, &prediction->choice[expected->familiarity][i], word == choices[i],
                                     FLAG_LIMIT, decoding))
                return (uint32_t)choices[i];
    }
    return code_rare_word(prediction, coder, word, expected->familiarity, decoding);
}

#endif
