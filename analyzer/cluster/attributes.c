/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/cluster/attributes.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>

#include "base/array.h"
#include "base/cleanup.h"

/* ------------------------------------------------------------------------------------------ kinds */

const char *attribute_kind_name(struct attribute_kind kind)
{
    static const char *const names[][3] = {{"sing.actual", "sing.log10", "sing.noFreq"},
                                           {"doub.actual", "doub.log10", "doub.noFreq"}};

    return names[kind.unit][kind.frequency];
}

struct word {
    const char *text;
    unsigned value;
};

static const struct word units[] = {{"sing", ATTRIBUTE_SINGLE},
                                    {"single", ATTRIBUTE_SINGLE},
                                    {"doub", ATTRIBUTE_DOUBLE},
                                    {"double", ATTRIBUTE_DOUBLE}};
static const struct word frequencies[] = {{"actual", FREQUENCY_ACTUAL},
                                          {"log10", FREQUENCY_LOG10},
                                          {"noFreq", FREQUENCY_NONE},
                                          {"none", FREQUENCY_NONE}};

static const struct word *find_word(const struct word *words, size_t count, const char *text, size_t length)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(words[i].text) == length && !strncasecmp(words[i].text, text, length))
            return &words[i];
    return NULL;
}

int attribute_kind_parse(const char *text, struct attribute_kind *ret_kind)
{
    const char *dot = strchr(text, '.');
    const struct word *unit, *frequency;

    if (!dot)
        return -EINVAL;
    unit = find_word(units, ARRAY_SIZE(units), text, (size_t)(dot - text));
    frequency = find_word(frequencies, ARRAY_SIZE(frequencies), dot + 1, strlen(dot + 1));
    if (!unit || !frequency)
        return -EINVAL;
    *ret_kind =
        (struct attribute_kind){(enum attribute_unit)unit->value, (enum attribute_frequency)frequency->value};
    return 0;
}

/* ------------------------------------------------------------------------------------------ the table */

void attribute_table_release(struct attribute_table *table)
{
    free(table->attributes);
    hash_index_release(&table->index);
    *table = (struct attribute_table){0};
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint64_t hash_of(const struct attribute *attribute)
{
    uint64_t hash = (uint64_t)attribute->kind.unit << 8 | attribute->kind.frequency;

    for (int i = 0; i < 2; i++)
        hash = mix(hash + ((uint64_t)attribute->entries[i].kind << 32 | attribute->entries[i].id));
    return mix(hash + attribute->frequency);
}

static bool same_entry(const struct attribute_entry *a, const struct attribute_entry *b)
{
    return a->kind == b->kind && a->id == b->id;
}

static bool same_attribute(const struct attribute *a, const struct attribute *b)
{
    return a->kind.unit == b->kind.unit && a->kind.frequency == b->kind.frequency &&
           same_entry(&a->entries[0], &b->entries[0]) && same_entry(&a->entries[1], &b->entries[1]) &&
           a->frequency == b->frequency;
}

int attribute_table_add(struct attribute_table *table, const struct attribute *attribute, uint32_t *ret_id)
{
    struct hash_walk walk = hash_index_walk(&table->index, hash_of(attribute));

    while (hash_walk_next(&walk, ret_id))
        if (same_attribute(&table->attributes[*ret_id], attribute))
            return 0;
    if (table->count >= UINT32_MAX - 1)
        return -EOVERFLOW;
    if (array_reserve(&table->attributes, &table->capacity, table->count + 1) ||
        hash_index_add(&table->index, hash_of(attribute), (uint32_t)table->count))
        return -ENOMEM;
    table->attributes[table->count] = *attribute;
    *ret_id = (uint32_t)table->count++;
    return 0;
}

/* ------------------------------------------------------------------------------------------ counting */

/* The distinct entries or pairs of one sequence, and how often each is there. */
struct tally {
    struct attribute_table found; /* with frequency 0 */
    uint64_t *weights;            /* by id in `found`; stay at UINT64_MAX when they would pass it */
    size_t capacity;
};

static void tally_release(struct tally *tally)
{
    attribute_table_release(&tally->found);
    free(tally->weights);
}

static int tally_add(struct tally *tally, const struct attribute *attribute, uint64_t weight)
{
    size_t known = tally->found.count;
    uint32_t id;
    int r = attribute_table_add(&tally->found, attribute, &id);

    if (r < 0)
        return r;
    if (array_reserve(&tally->weights, &tally->capacity, (size_t)id + 1))
        return -ENOMEM;
    if (id == known)
        tally->weights[id] = 0;
    if (__builtin_add_overflow(tally->weights[id], weight, &tally->weights[id]))
        tally->weights[id] = UINT64_MAX;
    return 0;
}

static struct attribute_entry entry_of(const struct nlr_element *element)
{
    return (struct attribute_entry){element->kind, element->id};
}

/* A loop counts as often as it ran. A pair counts once for each place where it is: from the last iteration of
 * the first entry to the first iteration of the second is one step, however often they ran. */
static int tally_sequence(struct tally *tally, struct attribute_kind kind,
                          const struct nlr_sequence *sequence)
{
    size_t reach = kind.unit == ATTRIBUTE_DOUBLE ? 2 : 1;

    for (size_t i = 0; i + reach <= sequence->count; i++) {
        const struct nlr_element *element = &sequence->elements[i];
        struct attribute attribute = {.kind = kind, .entries = {entry_of(element)}};
        int r;

        if (element->kind == NLR_LOST || element[reach - 1].kind == NLR_LOST)
            continue;
        if (reach == 2)
            attribute.entries[1] = entry_of(&element[1]);
        r = tally_add(tally, &attribute, reach == 2 ? 1 : element->count);
        if (r < 0)
            return r;
    }
    return 0;
}

static uint64_t frequency_class(enum attribute_frequency frequency, uint64_t weight)
{
    uint64_t log10 = 0;

    if (frequency == FREQUENCY_ACTUAL)
        return weight;
    if (frequency == FREQUENCY_NONE)
        return 0;
    for (; weight >= 10; weight /= 10)
        log10++;
    return log10;
}

/* ------------------------------------------------------------------------------------------ sets */

void attribute_set_release(struct attribute_set *set)
{
    free(set->ids);
    *set = (struct attribute_set){0};
}

static int compare_ids(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

    return (left > right) - (left < right);
}

int attribute_set_of(struct attribute_table *table, struct attribute_kind kind,
                     const struct nlr_sequence *sequence, struct attribute_set *ret_set)
{
    CLEANUP(tally_release) struct tally tally = {0};
    AUTO_FREE uint32_t *ids = NULL;
    int r = tally_sequence(&tally, kind, sequence);

    if (r < 0)
        return r;
    ids = malloc((tally.found.count + 1) * sizeof(*ids));
    if (!ids)
        return -ENOMEM;
    for (size_t i = 0; i < tally.found.count; i++) {
        struct attribute attribute = tally.found.attributes[i];

        attribute.frequency = frequency_class(kind.frequency, tally.weights[i]);
        r = attribute_table_add(table, &attribute, &ids[i]);
        if (r < 0)
            return r;
    }
    qsort(ids, tally.found.count, sizeof(*ids), compare_ids);
    *ret_set = (struct attribute_set){take_pointer(ids), tally.found.count};
    return 0;
}

int attribute_set_union(const struct attribute_set *sets, size_t count, struct attribute_set *ret_set)
{
    AUTO_FREE uint32_t *ids = NULL;
    size_t total = 0, distinct = 0;

    for (size_t i = 0; i < count; i++)
        total += sets[i].count;
    ids = malloc((total + 1) * sizeof(*ids));
    if (!ids)
        return -ENOMEM;
    total = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < sets[i].count; j++)
            ids[total++] = sets[i].ids[j];
    qsort(ids, total, sizeof(*ids), compare_ids);
    for (size_t i = 0; i < total; i++)
        if (!distinct || ids[distinct - 1] != ids[i])
            ids[distinct++] = ids[i];
    *ret_set = (struct attribute_set){take_pointer(ids), distinct};
    return 0;
}
