/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <string.h>

#include "analyzer/order/sample.h"

static uint32_t text(struct sample_set *set, const char *bytes)
{
    uint32_t number = UINT32_MAX;

    cr_assert_eq(sample_set_text(set, bytes, &number), 0);
    return number;
}

Test(sample, texts_are_kept_once)
{
    AUTO_SAMPLE_SET struct sample_set *set = NULL;

    cr_assert_eq(sample_set_new(&set), 0);
    cr_assert_eq(text(set, NULL), 0);
    cr_assert_eq(text(set, ""), 0);
    cr_assert_eq(text(set, "main"), text(set, "main"));
    cr_assert_neq(text(set, "main"), text(set, "mai"));
    cr_assert_str_eq(sample_text(set, text(set, "mai")), "mai");
    cr_assert_str_eq(sample_text(set, 0), "");
}

Test(sample, images_are_known_by_build_id_then_path)
{
    AUTO_SAMPLE_SET struct sample_set *set = NULL;
    uint32_t first, same, other, path, same_path;

    cr_assert_eq(sample_set_new(&set), 0);
    cr_assert_eq(sample_set_image(set, "/a", "/proc/1/root/a", "0123", &first), 0);
    cr_assert_eq(sample_set_image(set, "/b", "/proc/2/root/b", "0123", &same), 0);
    cr_assert_eq(sample_set_image(set, "/a", "/proc/1/root/a", "4567", &other), 0);
    cr_assert_eq(sample_set_image(set, "/a", "/a", NULL, &path), 0);
    cr_assert_eq(sample_set_image(set, "/a", "/a", "", &same_path), 0);
    cr_assert_eq(first, same);
    cr_assert_eq(path, same_path);
    cr_assert(first != other && first != path && other != path);
    cr_assert_str_eq(sample_text(set, set->images[first].file), "/proc/1/root/a");
}

Test(sample, places_and_stacks)
{
    AUTO_SAMPLE_SET struct sample_set *set = NULL;
    struct sample_place place = {.image = 0, .address = 0x1000, .entry = 0xf00};
    struct sample_thread thread = {.rank = 3};
    uint32_t row[3], again;

    cr_assert_eq(sample_set_new(&set), 0);
    place.function = text(set, "main");
    cr_assert_eq(sample_set_place(set, &place, &row[0]), 0);
    place.address++;
    cr_assert_eq(sample_set_place(set, &place, &row[1]), 0);
    place.flags = SAMPLE_INLINED;
    cr_assert_eq(sample_set_place(set, &place, &row[2]), 0);
    cr_assert_eq(sample_set_place(set, &place, &again), 0);
    cr_assert_eq(again, row[2]);
    cr_assert_eq(set->place_count, 3);

    cr_assert_eq(sample_set_thread(set, &thread, row, 0), 0);
    thread.rank = 4;
    cr_assert_eq(sample_set_thread(set, &thread, row, 3), 0);
    cr_assert_eq(sample_set_thread(set, &thread, row + 1, 2), 0);
    cr_assert_eq(set->threads[0].count, 0);
    cr_assert_eq(set->threads[0].rank, 3);
    cr_assert_eq(sample_place_of(set, 1, 0)->address, 0x1000);
    cr_assert_eq(sample_place_of(set, 1, 2)->flags, SAMPLE_INLINED);
    cr_assert_eq(sample_place_of(set, 2, 0)->address, 0x1001);
}
