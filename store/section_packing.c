/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/section_packing.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "store/range_coder.h"

#define GROUP_MAX 3  /* numbers in a group */
#define PLACES_MAX 4 /* bytes of a number that are told apart */
#define BYTE_LIMIT 60
#define FOLLOWER_LIMIT 30
#define FOLLOWER_DIGITS 14
#define BYTE_BYTES (8 * RANGE_CODER_BIT_BYTES) /* that one byte puts out at most */

/* How many numbers make up one thing, as docs/trace-format.md lists them. */
static const uint8_t group_of[SECTION_COUNT] = {
    [SECTION_STACK] = 3,
    [SECTION_DICTIONARY] = 1,
    [SECTION_TIME] = 2,
    [SECTION_CODE] = 1,
    [SECTION_ASSUMED] = 1,
    [SECTION_SITE_STACK] = 1,
    [SECTION_SITE_DICTIONARY] = 1,
    [SECTION_SITE_CODE] = 1,
};

struct packing {
    struct range_coder coder;
    struct adaptive_bit bits[GROUP_MAX][PLACES_MAX][256]; /* by the place alone */
    struct adaptive_bit followers[1u << FOLLOWER_DIGITS]; /* by the byte that stood there before, too */
};

/* Where in a group of numbers, and in a number, the next byte stands. */
struct place {
    unsigned number, byte, group;
    uint8_t before[GROUP_MAX][PLACES_MAX]; /* what stood at each place last */
};

static void begin_section(struct packing *packing, int section, struct place *place)
{
    *place = (struct place){.group = group_of[section]};
    for (int i = 0; i < GROUP_MAX; i++)
        for (int j = 0; j < PLACES_MAX; j++)
            for (int k = 0; k < 256; k++)
                packing->bits[i][j][k] = adaptive_start(32768, 0);
    for (size_t i = 0; i < ARRAY_SIZE(packing->followers); i++)
        packing->followers[i] = adaptive_start(32768, 0);
}

/* By what has followed the byte that stood there before, as far as that was seen, and by the place. */
static inline __attribute__((always_inline)) int code_bit(struct packing *packing, struct adaptive_bit *any,
                                                          struct adaptive_bit *follower, int bit,
                                                          bool decoding)
{
    uint32_t p_any = adaptive_p(*any), p_follower = adaptive_p(*follower), seen = adaptive_seen(*follower);
    uint32_t p = !seen ? p_any : seen < 3 ? (p_any + p_follower) / 2 : (p_any + 3 * p_follower) / 4;

    bit = range_coder_bit(&packing->coder, bit, p, decoding);
    adaptive_learn(any, bit, BYTE_LIMIT);
    adaptive_learn(follower, bit, FOLLOWER_LIMIT);
    return bit;
}

static inline __attribute__((always_inline)) uint8_t code_byte(struct packing *packing, struct place *place,
                                                               uint8_t byte, bool decoding)
{
    struct adaptive_bit *bits = packing->bits[place->number][place->byte];
    uint8_t *before = &place->before[place->number][place->byte];
    uint32_t context = (place->number * PLACES_MAX + place->byte) << 16 | (uint32_t)*before << 8;
    unsigned node = 1;

    for (int i = 7; i >= 0; i--) {
        uint32_t slot = ((context | node) * 0x9e3779b1u) >> (32 - FOLLOWER_DIGITS);

        node = 2 * node +
               (unsigned)code_bit(packing, &bits[node], &packing->followers[slot], byte >> i & 1, decoding);
    }
    *before = (uint8_t)node;
    if (node & 0x80) {
        place->byte += place->byte < PLACES_MAX - 1;
    } else {
        place->byte = 0;
        place->number = (place->number + 1) % place->group;
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
    AUTO_FREE struct packing *packing = malloc(sizeof(*packing));
    struct place place;

    if (packed_bytes(parts) > PACKED_MAX)
        return -E2BIG;
    if (!packing)
        return -ENOMEM;
    range_encoder_init(&packing->coder);
    for (int i = 0; i < SECTION_COUNT; i++) {
        if (!section_is_packed(i) || !parts->sections[i].size)
            continue;
        begin_section(packing, i, &place);
        for (size_t at = 0; at < parts->sections[i].size; at++) {
            if (bytes_reserve(packed, BYTE_BYTES))
                return -ENOMEM;
            packing->coder.out = packed->data + packed->size;
            code_byte(packing, &place, parts->sections[i].data[at], false);
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
    AUTO_FREE struct packing *packing = malloc(sizeof(*packing));
    uint8_t *to;

    if (packed_bytes(parts) > PACKED_MAX)
        return -EBADMSG;
    if (!packing || bytes_reserve(room, packed_bytes(parts)))
        return -ENOMEM;
    range_decoder_init(&packing->coder, packed, size);
    to = room->data + room->size;
    for (int i = 0; i < SECTION_COUNT; i++) {
        struct place place;

        if (!section_is_packed(i) || !parts->sections[i].size)
            continue;
        begin_section(packing, i, &place);
        parts->sections[i].data = to;
        for (size_t at = 0; at < parts->sections[i].size && packing->coder.shifted <= size; at++)
            *to++ = code_byte(packing, &place, 0, true);
    }
    room->size = (size_t)(to - room->data);
    return range_coder_at_end(&packing->coder, size) ? 0 : -EBADMSG;
}
