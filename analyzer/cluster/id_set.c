/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/cluster/id_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void id_set_release(struct id_set *set)
{
    free(set->words);
    *set = (struct id_set){0};
}

int id_set_of(const uint32_t *ids, size_t count, struct id_set *ret_set)
{
    struct id_set set = {0};
    size_t words = 0;

    for (size_t i = 0; i < count; i++)
        words += !i || ids[i] / 64 != ids[i - 1] / 64;
    set.words = calloc(words + 1, sizeof(*set.words));
    if (!set.words)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        if (!i || ids[i] / 64 != ids[i - 1] / 64)
            set.words[set.word_count++].index = ids[i] / 64;
        set.words[set.word_count - 1].bits |= (uint64_t)1 << ids[i] % 64;
    }
    *ret_set = set;
    return 0;
}

int id_set_copy(const struct id_set *set, struct id_set *ret_set)
{
    struct id_word *words = calloc(set->word_count + 1, sizeof(*words));

    if (!words)
        return -ENOMEM;
    if (set->word_count)
        memcpy(words, set->words, set->word_count * sizeof(*words));
    *ret_set = (struct id_set){words, set->word_count};
    return 0;
}

size_t id_set_count(const struct id_set *set)
{
    size_t count = 0;

    for (size_t i = 0; i < set->word_count; i++)
        count += (size_t)__builtin_popcountll(set->words[i].bits);
    return count;
}

size_t id_set_ids(const struct id_set *set, uint32_t *ids)
{
    size_t count = 0;

    for (size_t i = 0; i < set->word_count; i++)
        for (uint64_t bits = set->words[i].bits; bits; bits &= bits - 1)
            ids[count++] = (uint32_t)(set->words[i].index * 64 + (uint64_t)__builtin_ctzll(bits));
    return count;
}

bool id_set_equal(const struct id_set *a, const struct id_set *b)
{
    return a->word_count == b->word_count &&
           (!a->word_count || !memcmp(a->words, b->words, a->word_count * sizeof(*a->words)));
}

/* From the end, where what few sets have is more likely to be: ids are given in the order of appearance. */
bool id_set_within(const struct id_set *a, const struct id_set *b)
{
    size_t at = b->word_count;

    for (size_t i = a->word_count; i-- > 0;) {
        while (at > 0 && b->words[at - 1].index > a->words[i].index)
            at--;
        if (!at-- || b->words[at].index != a->words[i].index || a->words[i].bits & ~b->words[at].bits)
            return false;
    }
    return true;
}

/* The bits of a word, 0 when the set has none there. */
static uint64_t bits_at(const struct id_set *set, uint64_t index)
{
    size_t low = 0, high = set->word_count;

    if (index < set->word_count && set->words[index].index == index)
        return set->words[index].bits;
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (set->words[middle].index < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low < set->word_count && set->words[low].index == index ? set->words[low].bits : 0;
}

bool id_set_disjoint(const struct id_set *few, const struct id_set *many)
{
    for (size_t i = few->word_count; i-- > 0;)
        if (few->words[i].bits & bits_at(many, few->words[i].index))
            return false;
    return true;
}

uint64_t id_set_hash(const struct id_set *set)
{
    uint64_t hash = set->word_count;

    for (size_t i = 0; i < set->word_count; i++) {
        hash = (hash ^ set->words[i].index) * 0x9e3779b97f4a7c15u;
        hash = ((hash ^ hash >> 32) + set->words[i].bits) * 0xbf58476d1ce4e5b9u;
    }
    return hash ^ hash >> 29;
}

void id_set_intersect(const struct id_set *a, const struct id_set *b, struct id_set *result)
{
    size_t i = 0, j = 0, count = 0;

    while (i < a->word_count && j < b->word_count) {
        const struct id_word *left = &a->words[i], *right = &b->words[j];

        if (left->index == right->index && left->bits & right->bits)
            result->words[count++] = (struct id_word){left->index, left->bits & right->bits};
        i += left->index <= right->index;
        j += right->index <= left->index;
    }
    result->word_count = count;
}

void id_set_unite(const struct id_set *a, const struct id_set *b, struct id_set *result)
{
    size_t i = 0, j = 0, count = 0;

    while (i < a->word_count || j < b->word_count) {
        uint64_t left = i < a->word_count ? a->words[i].index : UINT64_MAX;
        uint64_t right = j < b->word_count ? b->words[j].index : UINT64_MAX;
        struct id_word word = {left < right ? left : right, 0};

        if (left == word.index)
            word.bits |= a->words[i++].bits;
        if (right == word.index)
            word.bits |= b->words[j++].bits;
        result->words[count++] = word;
    }
    result->word_count = count;
}

void id_set_subtract(struct id_set *a, const struct id_set *b)
{
    size_t j = 0, count = 0;

    for (size_t i = 0; i < a->word_count; i++) {
        struct id_word word = a->words[i];

        while (j < b->word_count && b->words[j].index < word.index)
            j++;
        if (j < b->word_count && b->words[j].index == word.index)
            word.bits &= ~b->words[j].bits;
        if (word.bits)
            a->words[count++] = word;
    }
    a->word_count = count;
}
