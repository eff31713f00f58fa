/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>

#include "collector/process/labels.h"

static unsigned assign(struct labels *labels, uint64_t serial, int rank, struct label_move *moved)
{
    unsigned number;

    cr_assert_eq(labels_assign(labels, serial, rank, &number, moved), 0);
    return number;
}

Test(labels, processes_without_rank_count_up)
{
    struct labels labels = {0};
    struct label_move moved;

    for (unsigned i = 0; i < 100; i++)
        cr_assert_eq(assign(&labels, 10 + i, -1, &moved), i);
    labels_release(&labels);
}

Test(labels, ranks_keep_their_numbers_in_any_order)
{
    struct labels labels = {0};
    struct label_move moved;

    cr_assert_eq(assign(&labels, 1, 15, &moved), 15);
    cr_assert_eq(assign(&labels, 2, 0, &moved), 0);
    cr_assert_eq(assign(&labels, 3, -1, &moved), 1);
    cr_assert_eq(moved.serial, 0);
    labels_release(&labels);
}

Test(labels, a_process_without_rank_gives_way)
{
    struct labels labels = {0};
    struct label_move moved;

    cr_assert_eq(assign(&labels, 1, -1, &moved), 0);
    cr_assert_eq(assign(&labels, 2, 0, &moved), 0);
    cr_assert_eq(moved.serial, 1);
    cr_assert_eq(moved.number, 1);
    cr_assert_eq(assign(&labels, 3, 1, &moved), 1);
    cr_assert_eq(moved.serial, 1);
    cr_assert_eq(moved.number, 2);
    labels_release(&labels);
}

Test(labels, a_second_process_of_a_rank_takes_a_free_number)
{
    struct labels labels = {0};
    struct label_move moved;

    assign(&labels, 1, 0, &moved);
    cr_assert_eq(assign(&labels, 2, 0, &moved), 1);
    cr_assert_eq(moved.serial, 0);
    labels_release(&labels);
}

Test(labels, a_senseless_rank_is_no_rank)
{
    struct labels labels = {0};
    struct label_move moved;

    cr_assert_eq(assign(&labels, 1, 2000000000, &moved), 0);
    labels_release(&labels);
}

Test(labels, a_rank_that_is_known_late_leaves_its_number_to_the_next)
{
    struct labels labels = {0};
    struct label_move moved;
    unsigned number = 2;

    for (unsigned i = 0; i < 5; i++)
        assign(&labels, 10 + i, -1, &moved);
    labels_stored(&labels, 1, 77);
    cr_assert_eq(labels_rank(&labels, &number, 1, &moved), 0);
    cr_assert_eq(number, 1);
    cr_assert_eq(moved.serial, 11);
    cr_assert_eq(moved.process_id, 77);
    cr_assert_eq(moved.number, 2);
    cr_assert_eq(assign(&labels, 21, -1, &moved), 5);
    labels_release(&labels);
}

Test(labels, a_second_process_of_a_rank_stays_where_it_is)
{
    struct labels labels = {0};
    struct label_move moved;
    unsigned number;

    assign(&labels, 1, 0, &moved);
    assign(&labels, 2, -1, &moved);
    number = assign(&labels, 3, 0, &moved);
    cr_assert_eq(number, 2);
    cr_assert_eq(labels_rank(&labels, &number, 0, &moved), 0);
    cr_assert_eq(number, 2);
    cr_assert_eq(moved.serial, 0);
    labels_release(&labels);
}

Test(labels, a_process_whose_rank_is_its_number_keeps_it_for_good)
{
    struct labels labels = {0};
    struct label_move moved;
    unsigned number;

    number = assign(&labels, 1, -1, &moved);
    cr_assert_eq(labels_rank(&labels, &number, 0, &moved), 0);
    cr_assert_eq(number, 0);
    cr_assert_eq(assign(&labels, 2, 0, &moved), 1);
    cr_assert_eq(moved.serial, 0);
    labels_release(&labels);
}
