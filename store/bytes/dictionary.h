/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The dictionary of a segment: ids of the store (functions, or call sites) to local ids 1, 2, ... in the
 * order in which they first come. A local id fits the 16-bit words of a codec.
 */
#ifndef TRACESTORE_DICTIONARY_H
#define TRACESTORE_DICTIONARY_H

#include <stddef.h>
#include <stdint.h>

#include "store/bytes/bytes.h"

#define DICTIONARY_MAX 65535u /* entries: local ids 1..65535 */

/* A slot of the table from ids to local ids; local 0: free. */
struct local_id {
    uint32_t id;
    uint32_t local;
};

/* Zero-initialised: empty, without memory. */
struct dictionary {
    uint32_t *ids; /* of local id i + 1 */
    size_t count, capacity;
    struct local_id *table; /* open addressing */
    size_t table_size;      /* a power of two, or 0 */
    struct bytes section;   /* as it stands in the segment */
};

/* The slot of `id`, or the free one where it belongs. The table is not empty. */
static inline struct local_id *dictionary_slot(const struct dictionary *dictionary, uint32_t id)
{
    size_t mask = dictionary->table_size - 1;
    size_t at = (uint32_t)(id * 2654435769u) >> 7 & mask;

    while (dictionary->table[at].local && dictionary->table[at].id != id)
        at = (at + 1) & mask;
    return &dictionary->table[at];
}

/* 0: it has none yet. */
static inline uint16_t dictionary_local(const struct dictionary *dictionary, uint32_t id)
{
    return dictionary->table_size ? (uint16_t)dictionary_slot(dictionary, id)->local : 0;
}

/* Gives `id`, which has none, the next local id. -E2BIG: the dictionary is full; -ENOMEM. */
int dictionary_add(struct dictionary *dictionary, uint32_t id, uint16_t *ret_local);

/* Empties it; keeps the memory. */
void dictionary_clear(struct dictionary *dictionary);
void dictionary_release(struct dictionary *dictionary);

/* Appends `count` ids as a section to `out`. -ENOMEM. */
int dictionary_write(const uint32_t *ids, size_t count, struct bytes *out);

/* Reads a section. An id less than `least` is refused. -EBADMSG, -ENOMEM. Free *ret_ids with free(). */
int dictionary_read(const uint8_t *data, size_t size, uint32_t least, uint32_t **ret_ids, size_t *ret_count);

#endif
