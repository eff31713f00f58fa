/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is compared of threads: the attributes that nested loop recognition's summary of a thread has.
 *
 * Table 3.8 of Taheri's dissertation: an attribute is an entry of the summary, or a pair of consecutive
 * entries, together with its frequency, the order of magnitude of that, or nothing. docs/analysis.md says
 * exactly what is counted. Attributes have dense ids, so that sets of them are sets of small numbers.
 *
 * Functions return 0 or a negative errno; where nothing else is said, -ENOMEM is the only one.
 */
#ifndef TRACECTL_ANALYZER_CLUSTER_ATTRIBUTES_H
#define TRACECTL_ANALYZER_CLUSTER_ATTRIBUTES_H

#include "analyzer/loops/loop_table.h"
#include "base/hash_index.h"

enum attribute_unit {
    ATTRIBUTE_SINGLE, /* each entry */
    ATTRIBUTE_DOUBLE, /* each pair of consecutive entries */
};

enum attribute_frequency {
    FREQUENCY_ACTUAL, /* how often */
    FREQUENCY_LOG10,  /* the whole part of that number's logarithm */
    FREQUENCY_NONE,   /* there or not */
};

struct attribute_kind {
    enum attribute_unit unit;
    enum attribute_frequency frequency;
};

/* The papers' names: "sing.actual", "sing.log10", "sing.noFreq", "doub.actual", ... */
const char *attribute_kind_name(struct attribute_kind kind);

/* Upper and lower case alike; "single", "double" and "none" are understood, too. -EINVAL: not a kind. */
int attribute_kind_parse(const char *text, struct attribute_kind *ret_kind);

/* A symbol, whatever its place, or a loop body, whatever its iterations. */
struct attribute_entry {
    uint32_t kind; /* NLR_SYMBOL or NLR_LOOP */
    uint32_t id;   /* the symbol, or the body in the loop table */
};

struct attribute {
    struct attribute_kind kind;
    struct attribute_entry entries[2]; /* of a single the first; the second is zeros */
    uint64_t frequency;                /* as the kind says; FREQUENCY_NONE: 0 */
};

/* All attributes of the runs that are compared, numbered in the order in which they are met. The ids in it
 * are those of one loop table and one table of symbols. A table of zeros is an empty table. */
struct attribute_table {
    struct attribute *attributes; /* by id */
    size_t count, capacity;
    struct hash_index index;
};

void attribute_table_release(struct attribute_table *table);

/* Finds the attribute or adds it. -EOVERFLOW: more than 2^32 - 2 of them. */
int attribute_table_add(struct attribute_table *table, const struct attribute *attribute, uint32_t *ret_id);

/* Ids in ascending order, each once. A set of zeros is an empty set. */
struct attribute_set {
    uint32_t *ids;
    size_t count;
};

void attribute_set_release(struct attribute_set *set);

/* The attributes of one thread. Time is linear in the sequence, memory in its distinct entries or pairs. */
int attribute_set_of(struct attribute_table *table, struct attribute_kind kind,
                     const struct nlr_sequence *sequence, struct attribute_set *ret_set);

/* The attributes that at least one of the sets has: those of a process, from its threads'. */
int attribute_set_union(const struct attribute_set *sets, size_t count, struct attribute_set *ret_set);

#endif
