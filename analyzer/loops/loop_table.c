/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The table of loop bodies: an arena of elements, an array of bodies, and an index by hash. */
#include "analyzer/loops/loop_table.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"

uint64_t nlr_hash_block(const struct nlr_element *elements, size_t count)
{
    uint64_t hash = 0;

    for (size_t i = 0; i < count; i++)
        hash = hash * NLR_HASH_BASE + nlr_hash_element(elements[i]);
    return hash;
}

void loop_table_release(struct loop_table *table)
{
    free(table->bodies);
    free(table->elements);
    hash_index_release(&table->index);
    free(table->numbers);
    free(table->numbered);
    *table = (struct loop_table){0};
}

bool loop_table_find(const struct loop_table *table, const struct nlr_element *elements, uint32_t length,
                     uint64_t hash, uint32_t *ret_id)
{
    struct hash_walk walk = hash_index_walk(&table->index, hash ^ length);

    while (hash_walk_next(&walk, ret_id)) {
        const struct loop_body *body = &table->bodies[*ret_id];

        if (body->hash == hash && body->length == length &&
            nlr_same(loop_table_elements(table, *ret_id), elements, length))
            return true;
    }
    return false;
}

int loop_table_add(struct loop_table *table, const struct nlr_element *elements, uint32_t length,
                   uint64_t hash, uint32_t *ret_id)
{
    struct loop_body *body;

    if (loop_table_find(table, elements, length, hash, ret_id))
        return 0;
    if (table->count >= UINT32_MAX - 2)
        return -EOVERFLOW;
    if (array_reserve(&table->bodies, &table->capacity, table->count + 1) ||
        array_reserve(&table->elements, &table->element_capacity, table->element_count + length) ||
        hash_index_add(&table->index, hash ^ length, (uint32_t)table->count))
        return -ENOMEM;
    body = &table->bodies[table->count];
    *body = (struct loop_body){.hash = hash, .first = table->element_count, .length = length};
    body->events = nlr_events(table, elements, length);
    memcpy(table->elements + table->element_count, elements, length * sizeof(*elements));
    table->element_count += length;
    *ret_id = (uint32_t)table->count++;
    return 0;
}

int loop_table_merge(struct loop_table *table, const struct loop_table *from, uint32_t *ret_ids)
{
    AUTO_FREE struct nlr_element *body = NULL;
    size_t capacity = 0;

    /* A body is added after those that it has in it: their ids are known. */
    for (size_t id = 0; id < from->count; id++) {
        uint32_t length = from->bodies[id].length;
        int r = array_reserve(&body, &capacity, length);

        if (r < 0)
            return r;
        memcpy(body, loop_table_elements(from, (uint32_t)id), length * sizeof(*body));
        for (uint32_t i = 0; i < length; i++)
            if (body[i].kind == NLR_LOOP)
                body[i].id = ret_ids[body[i].id];
        r = loop_table_add(table, body, length, nlr_hash_block(body, length), &ret_ids[id]);
        if (r < 0)
            return r;
    }
    return 0;
}

struct nlr_element loop_table_lost(struct loop_table *table)
{
    return (struct nlr_element){NLR_LOST, 0, table->lost++};
}

/* Bodies nest as deep as the logarithm of the events at most, because a loop has two iterations or more: the
 * recursions of this file end soon. */
static int number_elements(struct loop_table *table, const struct nlr_element *elements, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t id = elements[i].id;
        int r;

        if (elements[i].kind != NLR_LOOP || table->numbers[id] != LOOP_UNNUMBERED)
            continue;
        r = number_elements(table, loop_table_elements(table, id), table->bodies[id].length);
        if (r < 0)
            return r;
        r = array_reserve(&table->numbered, &table->numbered_capacity, table->number_count + 1);
        if (r < 0)
            return r;
        table->numbered[table->number_count] = id;
        table->numbers[id] = (uint32_t)table->number_count++;
    }
    return 0;
}

int loop_table_number(struct loop_table *table, const struct nlr_element *elements, size_t count)
{
    if (array_reserve(&table->numbers, &table->number_capacity, table->count))
        return -ENOMEM;
    for (; table->number_known < table->count; table->number_known++)
        table->numbers[table->number_known] = LOOP_UNNUMBERED;
    return number_elements(table, elements, count);
}

uint64_t nlr_events(const struct loop_table *table, const struct nlr_element *elements, size_t count)
{
    uint64_t events = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t more = elements[i].kind == NLR_SYMBOL;

        if (elements[i].kind == NLR_LOOP &&
            __builtin_mul_overflow(table->bodies[elements[i].id].events, elements[i].count, &more))
            return UINT64_MAX;
        if (__builtin_add_overflow(events, more, &events))
            return UINT64_MAX;
    }
    return events;
}

int nlr_expand(const struct loop_table *table, const struct nlr_element *elements, size_t count,
               int (*emit)(void *context, const struct nlr_element *element), void *context)
{
    int r = 0;

    for (size_t i = 0; i < count && !r; i++) {
        if (elements[i].kind != NLR_LOOP) {
            r = emit(context, &elements[i]);
            continue;
        }
        for (uint64_t n = 0; n < elements[i].count && !r; n++)
            r = nlr_expand(table, loop_table_elements(table, elements[i].id),
                           table->bodies[elements[i].id].length, emit, context);
    }
    return r;
}
