/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The elements of nested loop recognition, and the table of all loop bodies.
 *
 * One table serves all threads of all runs that are compared, so that a body has one id wherever it occurs
 * ("we store all distinct loop bodies in a hash-table", DiffTrace, section 3.3.1). Bodies are never removed.
 * Functions return 0 or a negative errno; there is nothing more to say than that memory ran out.
 */
#ifndef TRACECTL_ANALYZER_LOOPS_LOOP_TABLE_H
#define TRACECTL_ANALYZER_LOOPS_LOOP_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/hash_index.h"

enum nlr_kind {
    NLR_SYMBOL = 0, /* a function call or a return: id is a symbol, count is 1 */
    NLR_LOOP = 1,   /* a loop: id is a body in the loop table, count its iterations (two or more) */
    NLR_LOST = 2,   /* a place where events are missing: id is 0, count a serial number that no other has */
};

/* Two elements are isomorphic when all three fields are equal; the struct has no padding, so memcmp tells. */
struct nlr_element {
    uint32_t kind; /* enum nlr_kind */
    uint32_t id;
    uint64_t count;
};
_Static_assert(sizeof(struct nlr_element) == 16, "elements are compared with memcmp");

/* A thread's summary: what nested loop recognition makes of its events. The owner frees `elements`. */
struct nlr_sequence {
    struct nlr_element *elements;
    size_t count;
};

static inline struct nlr_element nlr_symbol(uint32_t symbol)
{
    return (struct nlr_element){NLR_SYMBOL, symbol, 1};
}

static inline bool nlr_same(const struct nlr_element *a, const struct nlr_element *b, size_t count)
{
    return !memcmp(a, b, count * sizeof(*a));
}

/* The hash of a block e1 ... en is the polynomial sum of hash(ei) * BASE^(n-i), modulo 2^64. Equal hashes are
 * a reason to compare, never an answer. */
#define NLR_HASH_BASE 0x9e3779b97f4a7c15u

static inline uint64_t nlr_hash_element(struct nlr_element element)
{
    uint64_t x = ((uint64_t)element.kind << 32 | element.id) + element.count * 0xbf58476d1ce4e5b9u;

    x = (x ^ x >> 29) * 0x94d049bb133111ebu;
    return x ^ x >> 32;
}

uint64_t nlr_hash_block(const struct nlr_element *elements, size_t count);

struct loop_body {
    uint64_t hash;   /* nlr_hash_block of the body */
    uint64_t events; /* symbols in one iteration, inner loops expanded; stays at UINT64_MAX when it would pass
                        it */
    size_t first;    /* in loop_table.elements */
    uint32_t length;
};

#define LOOP_UNNUMBERED UINT32_MAX

/* Read freely, change through the functions below. */
struct loop_table {
    struct loop_body *bodies; /* by id */
    size_t count, capacity;
    struct nlr_element *elements; /* all bodies, one behind the other */
    size_t element_count, element_capacity;
    struct hash_index index;
    uint64_t lost; /* serial numbers given to lost elements */

    uint32_t *numbers;  /* by id: the N of "LN", or LOOP_UNNUMBERED (see loop_table_number) */
    uint32_t *numbered; /* by N: the id */
    size_t number_count, number_capacity, numbered_capacity, number_known;
};

/* A table of zeros is an empty table. Release gives its memory back and leaves it empty. */
void loop_table_release(struct loop_table *table);

static inline const struct nlr_element *loop_table_elements(const struct loop_table *table, uint32_t id)
{
    return table->elements + table->bodies[id].first;
}

/* Returns true and the id of the body `elements`; `hash` is its nlr_hash_block. */
bool loop_table_find(const struct loop_table *table, const struct nlr_element *elements, uint32_t length,
                     uint64_t hash, uint32_t *ret_id);

/* Finds the body or adds it. `elements` must not lie in the table. */
int loop_table_add(struct loop_table *table, const struct nlr_element *elements, uint32_t length,
                   uint64_t hash, uint32_t *ret_id);

/* Adds all bodies of another table, and says which id here each of its ids is. */
int loop_table_merge(struct loop_table *table, const struct loop_table *from, uint32_t *ret_ids);

/* An element that is equal to no other, for a place where events are missing. */
struct nlr_element loop_table_lost(struct loop_table *table);

/* Numbers the loops of a sequence that have no number yet, in order of their first appearance, inner loops
 * before the loops around them. Called for one sequence after the other: the numbers that people see, L0, L1,
 * ... */
int loop_table_number(struct loop_table *table, const struct nlr_element *elements, size_t count);

/* Symbols in the expanded sequence, lost places not counted; UINT64_MAX when there are more than that. */
uint64_t nlr_events(const struct loop_table *table, const struct nlr_element *elements, size_t count);

/* Calls `emit` for each symbol and each lost place of the expanded sequence, in order, until it returns other
 * than 0, and returns that. */
int nlr_expand(const struct loop_table *table, const struct nlr_element *elements, size_t count,
               int (*emit)(void *context, const struct nlr_element *element), void *context);

#endif
