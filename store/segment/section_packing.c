/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/segment/section_packing.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "store/bytes/range_coder.h"

#define COLUMNS 9    /* of numbers, in all sections */
#define PLACES_MAX 4 /* bytes of a number that are told apart */
#define PLACE_LIMIT 60
#define FOLLOWER_LIMIT 30
#define FOLLOWER_DIGITS 14
#define BYTE_BYTES (8 * RANGE_CODER_BIT_BYTES) /* that one byte puts out at most */

/* The numbers that make up one thing (docs/trace-format.md lists them) are columns; numbered through all
 * sections. */
static const struct {
    uint8_t first, count;
} columns[SECTION_COUNT] = {
    [SECTION_STACK] = {0, 3},      [SECTION_DICTIONARY] = {3, 1},      [SECTION_TIME] = {4, 2},
    [SECTION_SITE_STACK] = {6, 1}, [SECTION_SITE_DICTIONARY] = {7, 1}, [SECTION_ASSUMED] = {8, 1},
};

struct packing {
    struct range_coder coder;
    struct adaptive_bit bits[COLUMNS][PLACES_MAX][256];   /* by the place alone */
    struct adaptive_bit followers[1u << FOLLOWER_DIGITS]; /* by the byte that stood there before, too */
    uint8_t before[COLUMNS][PLACES_MAX];                  /* what stood at each place last */
};

/* Where the next byte of a section stands. */
struct place {
    unsigned number, byte;
};

static struct packing *packing_new(void)
{
    struct packing *packing = calloc(1, sizeof(*packing));

    if (!packing)
        return NULL;
    adaptive_forget(packing->bits[0][0], sizeof(packing->bits) / sizeof(struct adaptive_bit));
    adaptive_forget(packing->followers, ARRAY_SIZE(packing->followers));
    return packing;
}

static inline __attribute__((always_inline)) uint8_t
code_byte(struct packing *packing, int section, struct place *place, uint8_t byte, bool decoding)
{
    unsigned column = columns[section].first + place->number;
    struct adaptive_bit *bits = packing->bits[column][place->byte];
    uint8_t *before = &packing->before[column][place->byte];
    uint32_t context = (column * PLACES_MAX + place->byte) << 16 | (uint32_t)*before << 8;
    unsigned node = 1;

    for (int i = 7; i >= 0; i--) {
        uint32_t slot = ((context | node) * 0x9e3779b1u) >> (32 - FOLLOWER_DIGITS);

        node = 2 * node + (unsigned)range_coder_in_context(&packing->coder, &bits[node], PLACE_LIMIT,
                                                           &packing->followers[slot], FOLLOWER_LIMIT,
                                                           byte >> i & 1, decoding);
    }
    *before = (uint8_t)node;
    if (node & 0x80) {
        place->byte += place->byte < PLACES_MAX - 1;
    } else {
        place->byte = 0;
        place->number = (place->number + 1) % columns[section].count;
    }
    return (uint8_t)node;
}

static size_t packed_bytes(const struct segment_parts *parts)
{
    size_t size = 0;

    for (int i = 0; i < SECTION_COUNT; i++)
        size += section_is_packed(i) ? parts->sections[i].size : 0;
    return size;
}

int sections_pack(const struct segment_parts *parts, struct bytes *packed)
{
    AUTO_FREE struct packing *packing = NULL;

    if (packed_bytes(parts) > PACKED_MAX)
        return -E2BIG;
    packing = packing_new();
    if (!packing)
        return -ENOMEM;
    range_encoder_init(&packing->coder);
    for (int i = 0; i < SECTION_COUNT; i++) {
        struct place place = {0};

        for (size_t at = 0; section_is_packed(i) && at < parts->sections[i].size; at++) {
            if (bytes_reserve(packed, BYTE_BYTES))
                return -ENOMEM;
            packing->coder.out = packed->data + packed->size;
            code_byte(packing, i, &place, parts->sections[i].data[at], false);
            packed->size = (size_t)(packing->coder.out - packed->data);
        }
    }
    if (bytes_reserve(packed, RANGE_CODER_FLUSH_BYTES))
        return -ENOMEM;
    packed->size += range_coder_ending(&packing->coder, packed->data + packed->size);
    return 0;
}

int sections_unpack(const uint8_t *packed, size_t size, struct bytes *room, struct segment_parts *parts)
{
    AUTO_FREE struct packing *packing = NULL;
    uint8_t *to;

    if (packed_bytes(parts) > PACKED_MAX)
        return -EBADMSG;
    packing = packing_new();
    if (!packing || bytes_reserve(room, packed_bytes(parts)))
        return -ENOMEM;
    range_decoder_init(&packing->coder, packed, size);
    to = room->data;
    for (int i = 0; i < SECTION_COUNT; i++) {
        struct place place = {0};

        if (!section_is_packed(i))
            continue;
        parts->sections[i].data = to;
        for (size_t at = 0; at < parts->sections[i].size && packing->coder.shifted <= size; at++)
            *to++ = code_byte(packing, i, &place, 0, true);
    }
    room->size = (size_t)(to - room->data);
    return range_coder_at_end(&packing->coder, size) ? 0 : -EBADMSG;
}
