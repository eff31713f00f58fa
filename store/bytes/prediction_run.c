/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a run of words leaves behind is little: of the calls in it, those that are still open at its end, and
 * the calls that these have made. Read from its end, a run shows them as it goes: a call that comes from no
 * deeper than all behind it. All others have returned, and nobody asks for them again.
 */
#include "store/bytes/prediction_run.h"

#include <string.h>

#include "store/bytes/prediction_step.h"

#define PIECE_WORDS 1024u

/* A call whose caller is open at the end of the piece. */
struct lasting_call {
    uint16_t word;
    bool is_open; /* at the end of the piece, too */
};

/* The lasting calls of a piece, the last one first, and how deep it went: relative to its end. */
struct piece_calls {
    size_t count;
    int32_t start, low, high;
    struct lasting_call calls[PIECE_WORDS];
};

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* How many of the words are the same. */
static size_t count_same(const uint16_t *a, const uint16_t *b, size_t count)
{
    size_t same = 0;

    for (; count - same >= 16; same += 16)
        if (memcmp(&a[same], &b[same], 16 * sizeof(*a)) != 0)
            break;
    while (same < count && a[same] == b[same])
        same++;
    return same;
}

/* How many of the words are those of the match. Behind the last word that has happened the match continues with
 * the words themselves. */
static size_t count_believed(const struct prediction *prediction, const uint16_t *words, size_t count)
{
    const uint16_t *ring = prediction->words;
    uint32_t distance = prediction->position - prediction->match_at;
    size_t from = prediction->match_at & prediction->words_mask, in_ring = smaller(count, distance);
    size_t to_end = smaller(in_ring, prediction->words_mask + (size_t)1 - from);
    size_t same = count_same(words, &ring[from], to_end);

    if (same == to_end)
        same += count_same(&words[to_end], ring, in_ring - to_end);
    if (same == in_ring)
        same += count_same(&words[in_ring], words, count - in_ring);
    return same;
}

static void find_lasting_calls(const uint16_t *words, size_t count, struct piece_calls *piece)
{
    int32_t depth = 0, low = 0, high = 0;

    piece->count = 0;
    while (count--) {
        uint16_t word = words[count];

        high = depth > high ? depth : high;
        depth += word ? -1 : 1;
        if (depth > low)
            continue;
        piece->calls[piece->count++] = (struct lasting_call){.word = word, .is_open = depth < low};
        low = depth;
    }
    piece->start = depth;
    piece->low = low;
    piece->high = depth > high ? depth : high;
}

/* The calls that are open follow a piece. Returns false when that has to be done word by word: calls from
 * before the code began return, or calls lie deeper than are remembered. */
static bool follow_piece(struct prediction *prediction, const uint16_t *words, size_t count)
{
    uint32_t deepest = prediction->frames_limit < prediction->frames_mask ? prediction->frames_limit
                                                                          : prediction->frames_mask;
    int64_t end, depth;
    struct piece_calls piece;

    find_lasting_calls(words, count, &piece);
    end = (int64_t)prediction->depth - piece.start;
    depth = end + piece.low;
    if (depth < 0 || end + piece.high > deepest)
        return false;
    while (piece.count--) {
        const struct lasting_call *call = &piece.calls[piece.count];

        follow_frames(prediction, (uint32_t)depth, call->word);
        depth += call->is_open;
    }
    prediction->depth = (uint32_t)depth;
    return true;
}

/* The same word by word, up to one that makes memory crowded. */
static size_t follow_words(struct prediction *prediction, const uint16_t *words, size_t count)
{
    size_t done = 0;

    while (done < count && prediction->depth <= prediction->frames_limit)
        prediction->depth = follow_frames(prediction, prediction->depth, words[done++]);
    return done;
}

static void keep_words(struct prediction *prediction, const uint16_t *words, size_t count)
{
    size_t at = prediction->position & prediction->words_mask;
    size_t to_end = smaller(count, prediction->words_mask + (size_t)1 - at);

    memcpy(&prediction->words[at], words, to_end * sizeof(*words));
    memcpy(prediction->words, &words[to_end], (count - to_end) * sizeof(*words));
    prediction->position += (uint32_t)count;
    prediction->match_at += (uint32_t)count;
    prediction->match_length += (uint32_t)count;
    prediction->crowded =
        prediction->position > prediction->words_limit || prediction->depth > prediction->frames_limit;
}

size_t prediction_follow_run(struct prediction *prediction, const uint16_t *words, size_t count)
{
    size_t done = 0, believed, taken;

    count = smaller(count, (size_t)(prediction->words_limit - prediction->position) + 1);
    do {
        size_t piece = smaller(smaller(count - done, PIECE_WORDS), prediction->words_mask);

        believed = count_believed(prediction, &words[done], piece);
        count = believed < piece ? done + believed : count;
        taken = follow_piece(prediction, &words[done], believed)
                    ? believed
                    : follow_words(prediction, &words[done], believed);
        keep_words(prediction, &words[done], taken);
        done += taken;
    } while (done < count && taken == believed && !prediction->crowded);
    return done;
}
