/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds elements of an array by what they hold: a hash table of their numbers. The array is the caller's, and
 * so is the comparison:
 *
 *     struct hash_walk walk = hash_index_walk(&index, hash);
 *     uint32_t number;
 *
 *     while (hash_walk_next(&walk, &number))
 *         if (same(&elements[number], wanted))
 *             return number;
 *
 * Elements that have keys of their own and come and go are better kept in uthash.
 */
#ifndef TRACECTL_BASE_HASH_INDEX_H
#define TRACECTL_BASE_HASH_INDEX_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct hash_slot {
    uint32_t hash, number; /* number + 1; 0: free */
};

/* Zeros: empty, without memory. */
struct hash_index {
    struct hash_slot *slots;
    size_t size, count; /* size is a power of two, or 0; at most half of the slots are taken */
};

struct hash_walk {
    const struct hash_index *index;
    size_t at;
    uint32_t hash;
};

/* Begins a walk over the numbers that were added with this hash, in no order. Adding to the index ends it. */
static inline struct hash_walk hash_index_walk(const struct hash_index *index, uint64_t hash)
{
    uint32_t mixed = (uint32_t)((hash ^ hash >> 32) * 0x9e3779b97f4a7c15u >> 32);

    return (struct hash_walk){index, mixed, mixed};
}

/* The next number; other hashes are seldom among them. False: there is none. */
static inline bool hash_walk_next(struct hash_walk *walk, uint32_t *ret_number)
{
    const struct hash_index *index = walk->index;

    if (!index->size)
        return false;
    for (;;) {
        const struct hash_slot *slot = &index->slots[walk->at++ & (index->size - 1)];

        if (!slot->number)
            return false;
        if (slot->hash == walk->hash) {
            *ret_number = slot->number - 1;
            return true;
        }
    }
}

static inline void hash_index_put(struct hash_index *index, struct hash_slot added)
{
    size_t at = added.hash;

    while (index->slots[at & (index->size - 1)].number)
        at++;
    index->slots[at & (index->size - 1)] = added;
}

/* Makes sure that `count` numbers fit. -ENOMEM: nothing has changed. */
static inline int hash_index_reserve(struct hash_index *index, size_t count)
{
    struct hash_index larger = {.size = index->size ? index->size : 64, .count = index->count};

    if (2 * count <= index->size)
        return 0;
    while (larger.size < 2 * count)
        larger.size *= 2;
    larger.slots = calloc(larger.size, sizeof(*larger.slots));
    if (!larger.slots)
        return -ENOMEM;
    for (size_t i = 0; i < index->size; i++)
        if (index->slots[i].number)
            hash_index_put(&larger, index->slots[i]);
    free(index->slots);
    *index = larger;
    return 0;
}

/* Adds a number below UINT32_MAX; it does not look whether it is there already. -ENOMEM: nothing has changed,
 * and cannot be after hash_index_reserve(). */
static inline int hash_index_add(struct hash_index *index, uint64_t hash, uint32_t number)
{
    if (hash_index_reserve(index, index->count + 1))
        return -ENOMEM;
    hash_index_put(index, (struct hash_slot){hash_index_walk(index, hash).hash, number + 1});
    index->count++;
    return 0;
}

/* Empties it; keeps the memory. */
static inline void hash_index_clear(struct hash_index *index)
{
    if (index->count)
        memset(index->slots, 0, index->size * sizeof(*index->slots));
    index->count = 0;
}

static inline void hash_index_release(struct hash_index *index)
{
    free(index->slots);
    *index = (struct hash_index){0};
}

#endif
