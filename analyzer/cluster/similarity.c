/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The direct way. Attributes that many sets have are bits, counted a machine word at a time; of the others
 * each has a list of the sets that have it, so that a set meets only those it shares something with. An
 * attribute that a share s of n sets have costs (s n)^2 steps as a list and n^2 / 64 as a bit.
 */
#include "analyzer/cluster/similarity.h"

#include <errno.h>
#include <stdlib.h>

#include "analyzer/cluster/similarity_rows.h"
#include "base/cleanup.h"
#include "base/hash_index.h"

#define DENSE_SHARE 8u /* an attribute that one set in eight has is a bit */
#define NOWHERE UINT32_MAX

void similarity_release(struct similarity *similarity)
{
    free(similarity->values);
    *similarity = (struct similarity){0};
}

/* ------------------------------------------------------------------------------------------ classes */

/* The distinct sets, numbered in the order of their first objects. */
struct classes {
    size_t count;
    uint32_t *of;                      /* by object */
    const struct attribute_set **sets; /* by class */
    size_t *sizes;                     /* by class */
};

static void classes_release(struct classes *classes)
{
    free(classes->of);
    free(classes->sets);
    free(classes->sizes);
}

static bool same_set(const struct attribute_set *a, const struct attribute_set *b)
{
    return a->count == b->count && (!a->count || !memcmp(a->ids, b->ids, a->count * sizeof(*a->ids)));
}

static uint64_t hash_set(const struct attribute_set *set)
{
    uint64_t hash = set->count;

    for (size_t i = 0; i < set->count; i++)
        hash = (hash ^ set->ids[i]) * 0x9e3779b97f4a7c15u, hash ^= hash >> 32;
    return hash;
}

/* Gives the set number i its class. */
static int classify(struct classes *classes, struct hash_index *index, const struct attribute_set *set,
                    size_t i)
{
    struct hash_walk walk = hash_index_walk(index, hash_set(set));

    while (hash_walk_next(&walk, &classes->of[i]))
        if (same_set(classes->sets[classes->of[i]], set))
            return 0;
    classes->of[i] = (uint32_t)classes->count++;
    classes->sets[classes->of[i]] = set;
    classes->sizes[classes->of[i]] = set->count;
    return hash_index_add(index, hash_set(set), classes->of[i]);
}

static int classes_of(const struct attribute_set *sets, size_t count, struct classes *classes)
{
    CLEANUP(hash_index_release) struct hash_index index = {0};
    int r = 0;

    classes->of = malloc((count + 1) * sizeof(*classes->of));
    classes->sets = malloc((count + 1) * sizeof(*classes->sets));
    classes->sizes = malloc((count + 1) * sizeof(*classes->sizes));
    if (!classes->of || !classes->sets || !classes->sizes)
        return -ENOMEM;
    for (size_t i = 0; i < count && !r; i++)
        r = classify(classes, &index, &sets[i], i);
    return r;
}

/* ------------------------------------------------------------------------------------------ bits and lists
 */

struct index {
    const struct classes *classes;
    size_t attributes;
    uint32_t *holders; /* by attribute: how many classes have it */
    uint32_t *place;   /* by attribute: its bit, or its list */

    size_t words; /* of 64 bits, for each class */
    uint64_t *bits;

    size_t *first;    /* by list, and one more: in `listed` */
    uint32_t *listed; /* classes */
};

static void index_release(struct index *index)
{
    free(index->holders);
    free(index->place);
    free(index->bits);
    free(index->first);
    free(index->listed);
}

static bool is_dense(const struct index *index, uint32_t attribute)
{
    return (size_t)index->holders[attribute] * DENSE_SHARE >= index->classes->count;
}

static int count_holders(struct index *index)
{
    const struct classes *classes = index->classes;

    for (size_t class = 0; class < classes->count; class ++) {
        const struct attribute_set *set = classes->sets[class];

        if (set->count && (size_t)set->ids[set->count - 1] + 1 > index->attributes)
            index->attributes = (size_t)set->ids[set->count - 1] + 1;
    }
    index->holders = calloc(index->attributes + 1, sizeof(*index->holders));
    if (!index->holders)
        return -ENOMEM;
    for (size_t class = 0; class < classes->count; class ++)
        for (size_t i = 0; i < classes->sets[class]->count; i++)
            index->holders[classes->sets[class]->ids[i]]++;
    return 0;
}

/* Gives every attribute that two classes share its bit or list. */
static int give_places(struct index *index)
{
    size_t bits = 0, lists = 0, total = 0;

    index->place = malloc((index->attributes + 1) * sizeof(*index->place));
    index->first = calloc(index->attributes + 2, sizeof(*index->first));
    if (!index->place || !index->first)
        return -ENOMEM;
    for (size_t attribute = 0; attribute < index->attributes; attribute++) {
        index->place[attribute] = NOWHERE;
        if (index->holders[attribute] < 2)
            continue;
        if (is_dense(index, (uint32_t)attribute)) {
            index->place[attribute] = (uint32_t)bits++;
            continue;
        }
        index->place[attribute] = (uint32_t)lists;
        total += index->holders[attribute];
        index->first[++lists + 1] = total; /* moves to its place while the list is filled */
    }
    index->words = (bits + 63) / 64;
    index->bits = calloc(index->classes->count * index->words + 1, sizeof(*index->bits));
    index->listed = malloc((total + 1) * sizeof(*index->listed));
    return index->bits && index->listed ? 0 : -ENOMEM;
}

static int build_index(struct index *index)
{
    const struct classes *classes = index->classes;
    int r = count_holders(index);

    if (r < 0)
        return r;
    r = give_places(index);
    if (r < 0)
        return r;
    for (size_t class = 0; class < classes->count; class ++) {
        const struct attribute_set *set = classes->sets[class];

        for (size_t i = 0; i < set->count; i++) {
            uint32_t place = index->place[set->ids[i]];

            if (place == NOWHERE)
                continue;
            if (is_dense(index, set->ids[i]))
                index->bits[class * index->words + place / 64] |= (uint64_t)1 << place % 64;
            else
                index->listed[index->first[place + 1]++] = (uint32_t) class;
        }
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------ rows */

static inline __attribute__((always_inline)) void count_bits(const struct index *index, uint32_t class,
                                                             uint32_t *shared)
{
    const uint64_t *own = index->bits + class * index->words, *other = index->bits;

    for (size_t i = 0; i < index->classes->count; i++, other += index->words) {
        unsigned count = 0;

        for (size_t word = 0; word < index->words; word++)
            count += (unsigned)__builtin_popcountll(own[word] & other[word]);
        shared[i] = count;
    }
}

#ifdef __x86_64__
/* The same with the instruction that every processor since 2008 has, and the compiler does not assume. */
__attribute__((target("popcnt"))) static void count_bits_popcnt(const struct index *index, uint32_t class,
                                                                uint32_t *shared)
{
    count_bits(index, class, shared);
}
#endif

static void count_row_of_bits(const struct index *index, uint32_t class, uint32_t *shared)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("popcnt")) {
        count_bits_popcnt(index, class, shared);
        return;
    }
#endif
    count_bits(index, class, shared);
}

static void share(const void *context, uint32_t class, void *room, uint32_t *shared)
{
    const struct index *index = context;
    const struct attribute_set *set = index->classes->sets[class];

    count_row_of_bits(index, class, shared);
    for (size_t i = 0; i < set->count; i++) {
        uint32_t list = index->place[set->ids[i]];

        if (list == NOWHERE || is_dense(index, set->ids[i]))
            continue;
        for (size_t holder = index->first[list]; holder < index->first[list + 1]; holder++)
            shared[index->listed[holder]]++;
    }
}

int similarity_of_sets(const struct attribute_set *sets, size_t count, struct similarity *ret_similarity)
{
    CLEANUP(classes_release) struct classes classes = {0};
    CLEANUP(index_release) struct index index = {.classes = &classes};
    struct similarity_rows rows = {.share = share, .context = &index};
    int r = classes_of(sets, count, &classes);

    if (r < 0)
        return r;
    r = build_index(&index);
    if (r < 0)
        return r;
    rows.objects = count;
    rows.classes = classes.count;
    rows.class_of = classes.of;
    rows.sizes = classes.sizes;
    return similarity_from_rows(&rows, ret_similarity);
}
