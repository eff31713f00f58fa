/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The packed lists of functions: what goes in comes out, and damage is seen. */
#include <criterion/criterion.h>
#include <zlib.h>

#include "store/segment/call_list.h"
#include "tests/unit/store/fixture.h"

#define FUNCTIONS_MAX 200

struct model_list {
    struct function_calls functions[FUNCTIONS_MAX]; /* in ascending order */
    size_t count;
};

/* Runs of neighbours, gaps of all sizes, and now and then losses; calls of all sizes, 0 included. */
static void draw(struct model_list *list, struct generator *generator)
{
    uint32_t function = 0;

    list->count = 0;
    while (list->count < FUNCTIONS_MAX - 1 && generator_below(generator, 60)) {
        uint32_t step =
            generator_below(generator, 3)
                ? 1
                : 1 + (uint32_t)(generator_next(generator) >> (36 + generator_below(generator, 28)));

        if (step >= TRACESTORE_LOST_FUNCTION - function)
            break;
        function += step;
        list->functions[list->count++] = (struct function_calls){
            function, generator_next(generator) >> (1 + generator_below(generator, 63))};
    }
    if (!generator_below(generator, 3))
        list->functions[list->count++] = (struct function_calls){TRACESTORE_LOST_FUNCTION, 0};
}

static void shuffle(struct model_list *list, struct generator *generator)
{
    for (size_t i = list->count; i > 1; i--) {
        size_t other = generator_below(generator, (uint32_t)i);
        struct function_calls last = list->functions[i - 1];

        list->functions[i - 1] = list->functions[other];
        list->functions[other] = last;
    }
}

static bool may_name(const struct bytes *packed, uint32_t function)
{
    const struct function_set set = {.ids = &function, .count = 1};

    return call_list_may_name(packed->data, packed->size, &set);
}

static void expect_list(const struct bytes *packed, const struct model_list *expected)
{
    struct call_list_reader list;
    struct function_calls function;

    cr_assert_eq(call_list_open(packed->data, packed->size, &list), 0);
    for (size_t i = 0; i < expected->count; i++) {
        cr_assert_eq(call_list_next(&list, &function), 0);
        cr_assert_eq(function.function, expected->functions[i].function);
        cr_assert_eq(function.calls, expected->functions[i].calls);
        cr_assert(may_name(packed, function.function));
    }
    cr_assert_eq(call_list_next(&list, &function), 1);
    cr_assert_eq(call_list_next(&list, &function), 1);
}

static void expect_names(const struct bytes *packed, const struct model_list *expected, uint32_t function)
{
    bool named = false;

    for (size_t i = 0; i < expected->count; i++)
        named |= expected->functions[i].function == function;
    cr_assert_eq(may_name(packed, function), named);
}

Test(call_list, gives_back_what_was_packed)
{
    struct generator generator = {5};

    for (int round = 0; round < 2000; round++) {
        AUTO_BYTES packed = {0};
        struct model_list list, shuffled;

        draw(&list, &generator);
        shuffled = list;
        shuffle(&shuffled, &generator);
        cr_assert_eq(call_list_pack(shuffled.functions, shuffled.count, &packed), 0);
        expect_list(&packed, &list);
        for (int i = 0; i < 10; i++)
            expect_names(&packed, &list, 1 + generator_below(&generator, 300));
    }
}

Test(call_list, has_the_bytes_of_the_format)
{
    /* 203 comes 200 behind 3: 600 for its 300 calls and 1 for the gap, then 198. */
    static const uint8_t expected[] = {6, 10, 0, 0xd9, 0x04, 0xc6, 0x01, 0x84, 0x01, 3, 1};
    struct function_calls functions[] = {{207, 1}, {1, 3}, {2, 5}, {3, 0}, {203, 300}, {204, 66}};
    AUTO_BYTES packed = {0};
    uint32_t checksum;

    cr_assert_eq(call_list_pack(functions, 6, &packed), 0);
    cr_assert_eq(packed.size, sizeof(expected) + 4);
    cr_assert_arr_eq(packed.data, expected, sizeof(expected));
    checksum = (uint32_t)crc32(0, expected, sizeof(expected));
    for (size_t i = 0; i < 4; i++)
        cr_assert_eq(packed.data[sizeof(expected) + i], checksum >> 8 * i & 0xff);
}

Test(call_list, damage_is_seen)
{
    struct generator generator = {6};
    struct model_list list;
    AUTO_BYTES packed = {0};
    struct call_list_reader reader;

    do
        draw(&list, &generator);
    while (list.count < 50);
    cr_assert_eq(call_list_pack(list.functions, list.count, &packed), 0);
    for (size_t at = 0; at < packed.size; at++) {
        uint8_t bit = (uint8_t)(1u << generator_below(&generator, 8));

        packed.data[at] ^= bit;
        cr_assert_eq(call_list_open(packed.data, packed.size, &reader), -EBADMSG);
        cr_assert(may_name(&packed, 5), "nobody knows");
        packed.data[at] ^= bit;
        cr_assert_eq(call_list_open(packed.data, at, &reader), -EBADMSG);
    }
    expect_list(&packed, &list);
}

/* The checksum of `size` bytes, behind them. */
static void put_checksum(uint8_t *data, size_t size)
{
    uint32_t checksum = (uint32_t)crc32(0, data, (uInt)size);

    for (int i = 0; i < 4; i++)
        data[size + (size_t)i] = (uint8_t)(checksum >> 8 * i);
}

/* Whatever the bytes, functions come in ascending order, and the list ends. */
Test(call_list, right_checksums_do_not_make_it_trusted)
{
    struct generator generator = {7};
    int refused = 0;

    for (int round = 0; round < 20000; round++) {
        uint8_t data[24];
        size_t size = generator_below(&generator, 20);
        struct call_list_reader list;
        struct function_calls function;
        uint32_t previous = 0;
        int code;

        for (size_t i = 0; i < size; i++)
            data[i] = (uint8_t)generator_next(&generator) | (generator_below(&generator, 2) ? 0x80 : 0);
        put_checksum(data, size);
        cr_assert_eq(call_list_open(data, size + 4, &list), 0);
        for (size_t i = 0; (code = call_list_next(&list, &function)) == 0; i++) {
            cr_assert_lt(i, size);
            cr_assert_gt(function.function, previous);
            previous = function.function;
        }
        refused += code == -EBADMSG;
        cr_assert_eq(call_list_next(&list, &function), code);
    }
    cr_assert_gt(refused, 2000);
}

Test(call_list, what_does_not_fit_is_refused)
{
    /* A gap that goes past the greatest id; one of 2^64-1; a number that is cut off; a gap that is missing.
     */
    static const uint8_t lists[][14] = {
        {1, 0xfe, 0xff, 0xff, 0xff, 0x0f},
        {1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
        {2, 0x80},
        {3},
    };
    static const size_t sizes[] = {6, 11, 2, 1};
    uint8_t largest[] = {1, 0xfd, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0, 0};
    struct call_list_reader list;
    struct function_calls function = {0};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint8_t data[18];
        int code = 0;

        memcpy(data, lists[i], sizes[i]);
        put_checksum(data, sizes[i]);
        cr_assert_eq(call_list_open(data, sizes[i] + 4, &list), 0);
        while (!code)
            code = call_list_next(&list, &function);
        cr_assert_eq(code, -EBADMSG, "list %zu", i);
    }
    put_checksum(largest, 6);
    cr_assert_eq(call_list_open(largest, sizeof(largest), &list), 0);
    cr_assert_eq(call_list_next(&list, &function), 0);
    cr_assert_eq(function.function, UINT32_MAX);
}
