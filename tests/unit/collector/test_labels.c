/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>

#include "collector/stream/labels.h"

static unsigned assign(struct labels *labels, int64_t process_id, int rank, int64_t *moved,
                       unsigned *moved_to)
{
    unsigned number;

    cr_assert_eq(labels_assign(labels, process_id, rank, &number, moved, moved_to), 0);
    return number;
}

Test(labels, processes_without_rank_count_up)
{
    struct labels labels = {0};
    unsigned moved_to;
    int64_t moved;

    for (unsigned i = 0; i < 100; i++)
        cr_assert_eq(assign(&labels, 10 + i, -1, &moved, &moved_to), i);
    labels_release(&labels);
}

Test(labels, ranks_keep_their_numbers_in_any_order)
{
    struct labels labels = {0};
    unsigned moved_to;
    int64_t moved;

    cr_assert_eq(assign(&labels, 1, 15, &moved, &moved_to), 15);
    cr_assert_eq(assign(&labels, 2, 0, &moved, &moved_to), 0);
    cr_assert_eq(assign(&labels, 3, -1, &moved, &moved_to), 1);
    cr_assert_eq(moved, 0);
    labels_release(&labels);
}

Test(labels, a_process_without_rank_gives_way)
{
    struct labels labels = {0};
    unsigned moved_to;
    int64_t moved;

    cr_assert_eq(assign(&labels, 1, -1, &moved, &moved_to), 0);
    cr_assert_eq(assign(&labels, 2, 0, &moved, &moved_to), 0);
    cr_assert_eq(moved, 1);
    cr_assert_eq(moved_to, 1);
    cr_assert_eq(assign(&labels, 3, 1, &moved, &moved_to), 1);
    cr_assert_eq(moved, 1);
    cr_assert_eq(moved_to, 2);
    labels_release(&labels);
}

Test(labels, a_second_process_of_a_rank_takes_a_free_number)
{
    struct labels labels = {0};
    unsigned moved_to;
    int64_t moved;

    assign(&labels, 1, 0, &moved, &moved_to);
    cr_assert_eq(assign(&labels, 2, 0, &moved, &moved_to), 1);
    cr_assert_eq(moved, 0);
    labels_release(&labels);
}

Test(labels, a_senseless_rank_is_no_rank)
{
    struct labels labels = {0};
    unsigned moved_to;
    int64_t moved;

    cr_assert_eq(assign(&labels, 1, 2000000000, &moved, &moved_to), 0);
    labels_release(&labels);
}

Test(labels, a_number_given_back_is_taken_again)
{
    struct labels labels = {0};
    unsigned moved_to;
    int64_t moved;

    for (unsigned i = 0; i < 5; i++)
        assign(&labels, 10 + i, -1, &moved, &moved_to);
    labels_free(&labels, 2);
    cr_assert_eq(assign(&labels, 20, -1, &moved, &moved_to), 2);
    cr_assert_eq(assign(&labels, 21, -1, &moved, &moved_to), 5);
    labels_release(&labels);
}
