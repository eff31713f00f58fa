/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>

#include "store/segment/section_packing.h"
#include "tests/unit/store/fixture.h"

/* Sections of up to `most` random numbers less than 2^digits; small ones are the rule. */
static void draw_sections(struct generator *generator, size_t most, unsigned digits,
                          struct bytes sections[SECTION_COUNT], struct segment_parts *parts)
{
    for (int i = 0; i < SECTION_COUNT; i++) {
        size_t count = generator_next(generator) % (most + 1);

        sections[i].size = 0;
        for (size_t at = 0; at < count; at++)
            bytes_add_varint(&sections[i],
                             generator_next(generator) >> (64 - digits + generator_next(generator) % digits));
        parts->sections[i] = (struct section){sections[i].data, sections[i].size};
    }
}

static void expect_same(const struct segment_parts *left, const struct segment_parts *right)
{
    cr_assert_eq(left->codec, right->codec);
    cr_assert_eq(left->flags, right->flags);
    for (int i = 0; i < SECTION_COUNT; i++) {
        cr_assert_eq(left->sections[i].size, right->sections[i].size);
        if (left->sections[i].size)
            cr_assert_arr_eq(left->sections[i].data, right->sections[i].data, left->sections[i].size);
    }
}

Test(section_packing, what_is_sealed_is_read_as_it_was)
{
    struct generator generator = {5};
    struct bytes sections[SECTION_COUNT] = {0}, payload = {0}, room = {0};

    for (int round = 0; round < 300; round++) {
        struct segment_parts parts = {.codec = 2, .flags = SEGMENT_CALL_SITES | SEGMENT_ASSUMED}, read;

        draw_sections(&generator, (size_t)round, 64, sections, &parts);
        payload.size = 0;
        cr_assert_eq(segment_seal(&parts, &payload), 0);
        cr_assert_eq(segment_parse(payload.data, payload.size, &room, &read), 0);
        expect_same(&parts, &read);
    }
    for (int i = 0; i < SECTION_COUNT; i++)
        bytes_release(&sections[i]);
    bytes_release(&payload);
    bytes_release(&room);
}

/* A thousand functions in their order are one byte each where they are not packed. */
Test(section_packing, repetition_costs_little)
{
    struct segment_parts parts = {.codec = 2};
    struct bytes payload = {0};
    uint8_t dictionary[1000] = {0};

    parts.sections[SECTION_DICTIONARY] = (struct section){dictionary, sizeof(dictionary)};
    cr_assert_eq(segment_seal(&parts, &payload), 0);
    cr_assert_lt(payload.size, 80, "%zu bytes", payload.size);
    bytes_release(&payload);
}

/* What would get longer stays as it is. */
Test(section_packing, noise_is_not_packed)
{
    struct generator generator = {7};
    struct segment_parts parts = {.codec = 2};
    struct bytes sealed = {0}, plain = {0};
    uint8_t noise[200];

    for (size_t i = 0; i < sizeof(noise); i++)
        noise[i] = (uint8_t)generator_next(&generator);
    parts.sections[SECTION_TIME] = (struct section){noise, sizeof(noise)};
    cr_assert_eq(segment_seal(&parts, &sealed), 0);
    cr_assert_eq(segment_assemble(&parts, &plain), 0);
    cr_assert_eq(sealed.size, plain.size);
    cr_assert_arr_eq(sealed.data, plain.data, plain.size);
    bytes_release(&sealed);
    bytes_release(&plain);
}

/* An error or sections, never more than the sizes say. */
Test(section_packing, damage_is_an_error_or_sections)
{
    struct generator generator = {6};
    struct bytes sections[SECTION_COUNT] = {0}, payload = {0}, room = {0};
    struct segment_parts parts = {.codec = 2, .flags = SEGMENT_CALL_SITES}, read;
    size_t refused = 0;

    draw_sections(&generator, 60, 3, sections, &parts);
    cr_assert_eq(segment_seal(&parts, &payload), 0);
    cr_assert(payload.data[2] & SEGMENT_PACKED);
    for (size_t bit = 0; bit < 8 * payload.size; bit++) {
        payload.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        refused += segment_parse(payload.data, payload.size, &room, &read) != 0;
        payload.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    cr_assert_gt(refused, payload.size);
    for (size_t size = 0; size < payload.size; size++)
        cr_assert_neq(segment_parse(payload.data, size, &room, &read), 0, "%zu bytes", size);
    for (int i = 0; i < SECTION_COUNT; i++)
        bytes_release(&sections[i]);
    bytes_release(&payload);
    bytes_release(&room);
}
