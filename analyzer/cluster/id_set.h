/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sets of ids as bits, without the words in which no bit is set: small for a few ids far apart, fast for many
 * that are close. A set of zeros is an empty set. Where nothing else is said, functions return 0 or -ENOMEM.
 */
#ifndef TRACECTL_ANALYZER_CLUSTER_ID_SET_H
#define TRACECTL_ANALYZER_CLUSTER_ID_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct id_word {
    uint64_t index; /* of the word: its ids are index * 64 to index * 64 + 63 */
    uint64_t bits;  /* not 0 */
};

struct id_set {
    struct id_word *words; /* ascending */
    size_t word_count;
};

void id_set_release(struct id_set *set);

/* `ids` ascend. */
int id_set_of(const uint32_t *ids, size_t count, struct id_set *ret_set);
int id_set_copy(const struct id_set *set, struct id_set *ret_set);

/* Ids in the set; id_set_ids writes them, ascending, and returns how many they are. */
size_t id_set_count(const struct id_set *set);
size_t id_set_ids(const struct id_set *set, uint32_t *ids);

bool id_set_equal(const struct id_set *a, const struct id_set *b);
/* Whether all ids of `a` are in `b`. */
bool id_set_within(const struct id_set *a, const struct id_set *b);
/* Whether no id is in both; fast when the first has few words. */
bool id_set_disjoint(const struct id_set *few, const struct id_set *many);
uint64_t id_set_hash(const struct id_set *set);

/* Into `result`, which has room for as many words as the smaller of both. */
void id_set_intersect(const struct id_set *a, const struct id_set *b, struct id_set *result);
/* Into `result`, which has room for as many words as both together. */
void id_set_unite(const struct id_set *a, const struct id_set *b, struct id_set *result);
/* Takes the ids of `b` out of `a`. */
void id_set_subtract(struct id_set *a, const struct id_set *b);

#endif
