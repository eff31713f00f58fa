/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Runs of bits: what is written is read, in as many bytes as the runs need. */
#include <criterion/criterion.h>
#include <errno.h>

#include "store/bytes/bit_runs.h"
#include "tests/unit/store/fixture.h"

static void add(struct bit_runs *runs, bool bit)
{
    cr_assert_eq(bit_runs_reserve(runs, bit), 0);
    bit_runs_add(runs, bit);
}

static void add_run(struct bit_runs *runs, bool bit, size_t count)
{
    while (count--)
        add(runs, bit);
}

static void expect_bytes(const struct bit_runs *runs, const uint8_t *bytes, size_t size)
{
    cr_assert_eq(runs->section.size, size, "%zu bytes, not %zu", runs->section.size, size);
    for (size_t i = 0; i < size; i++)
        cr_assert_eq(runs->section.data[i], bytes[i], "byte %zu", i);
}

Test(bit_runs, are_lengths_of_all_runs_but_the_last)
{
    struct bit_runs runs = {0};

    expect_bytes(&runs, NULL, 0);
    add_run(&runs, false, 100000);
    expect_bytes(&runs, NULL, 0);
    bit_runs_release(&runs);

    runs = (struct bit_runs){0};
    add_run(&runs, true, 100000);
    expect_bytes(&runs, (uint8_t[]){0}, 1);
    add(&runs, false);
    expect_bytes(&runs, (uint8_t[]){0, 0xa0, 0x8d, 0x06}, 4); /* 100000 as a varint */
    bit_runs_release(&runs);

    runs = (struct bit_runs){0};
    add_run(&runs, false, 3);
    add_run(&runs, true, 2);
    add_run(&runs, false, 5);
    expect_bytes(&runs, (uint8_t[]){3, 2}, 2);
    bit_runs_release(&runs);
}

/* Read back at every length: what has been written by then is a prefix of the bytes. */
Test(bit_runs, are_read_as_written)
{
    for (uint32_t one_in = 1; one_in < 40; one_in += 3) {
        struct generator generator = {one_in};
        struct bit_runs runs = {0};
        bool bits[400];

        for (size_t count = 0; count < 400; count++) {
            struct bit_runs_reader reader;
            bool bit;

            cr_assert_eq(bit_runs_open(&reader, runs.section.data, runs.section.size), 0);
            for (size_t i = 0; i < count; i++) {
                cr_assert_eq(bit_runs_next(&reader, &bit), 0);
                cr_assert_eq(bit, bits[i], "bit %zu of %zu", i, count);
            }
            cr_assert(bit_runs_at_end(&reader), "%zu bits", count);
            bits[count] = generator_below(&generator, one_in) == 0;
            add(&runs, bits[count]);
        }
        bit_runs_release(&runs);
    }
}

Test(bit_runs, damage_is_refused)
{
    const uint8_t empty_run[] = {3, 0, 5}, cut_varint[] = {3, 0x80}, cut_first[] = {0x80}, two[] = {1, 1};
    struct bit_runs_reader reader;
    bool bit;

    cr_assert_eq(bit_runs_open(&reader, empty_run, sizeof(empty_run)), 0);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(bit_runs_next(&reader, &bit), 0);
    cr_assert_eq(bit_runs_next(&reader, &bit), -EBADMSG, "only the first run may be empty");

    cr_assert_eq(bit_runs_open(&reader, cut_varint, sizeof(cut_varint)), 0);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(bit_runs_next(&reader, &bit), 0);
    cr_assert_eq(bit_runs_next(&reader, &bit), -EBADMSG);
    cr_assert_eq(bit_runs_open(&reader, cut_first, sizeof(cut_first)), -EBADMSG);

    cr_assert_eq(bit_runs_open(&reader, two, sizeof(two)), 0);
    cr_assert_eq(bit_runs_next(&reader, &bit), 0);
    cr_assert_eq(bit_runs_next(&reader, &bit), 0);
    cr_assert_not(bit_runs_at_end(&reader), "a length is left: there would be a bit behind its run");
    cr_assert_eq(bit_runs_next(&reader, &bit), 0);
    cr_assert(bit_runs_at_end(&reader));
}
