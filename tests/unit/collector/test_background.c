/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include "collector/background.h"
#include "collector/privileges.h"

/* Where it could not come forward again it does not stand back. */
static bool may_return(void)
{
    return !privileges_missing(PRIVILEGE_SCHEDULE);
}

static int own_nice(void)
{
    return getpriority(PRIO_PROCESS, 0);
}

/* Where `nice` is what the budget asks for; the tests may have been started further back. */
static int expected(int nice)
{
    return may_return() && nice > own_nice() ? nice : own_nice();
}

static double of_one(double share)
{
    return share / (double)sysconf(_SC_NPROCESSORS_ONLN);
}

Test(background, stands_back_and_comes_forward)
{
    int before = own_nice(), behind = expected(13);
    struct background background = background_begin(of_one(0.05));

    cr_assert_eq(own_nice(), behind);
    background_end(&background);
    cr_assert_eq(own_nice(), before);
}

Test(background, the_larger_the_share_the_less)
{
    int most = expected(19), some = expected(6);
    struct background background = background_begin(of_one(0.0001));

    cr_assert_eq(own_nice(), most);
    background_end(&background);
    background = background_begin(of_one(0.2));
    cr_assert_eq(own_nice(), some);
    background_end(&background);
}

Test(background, not_for_half_of_a_processor_or_without_a_budget)
{
    int before = own_nice();
    struct background background = background_begin(of_one(0.5));

    cr_assert_eq(own_nice(), before);
    background_end(&background);
    background = background_begin(0);
    cr_assert_eq(own_nice(), before);
    background_end(&background);
}

static pthread_barrier_t barrier;

static void *look_later(void *ret_nice)
{
    pthread_barrier_wait(&barrier);
    *(int *)ret_nice = own_nice();
    return NULL;
}

Test(background, other_threads_are_not_changed)
{
    int before = own_nice(), nice;
    struct background background;
    pthread_t other;

    cr_assert_eq(pthread_barrier_init(&barrier, NULL, 2), 0);
    cr_assert_eq(pthread_create(&other, NULL, look_later, &nice), 0);
    background = background_begin(of_one(0.05));
    pthread_barrier_wait(&barrier);
    cr_assert_eq(pthread_join(other, NULL), 0);
    cr_assert_eq(nice, before);
    background_end(&background);
}

Test(background, who_stands_further_back_stays_there)
{
    struct background background;

    cr_assert_eq(setpriority(PRIO_PROCESS, 0, 19), 0);
    background = background_begin(of_one(0.05));
    cr_assert_eq(own_nice(), 19);
    background_end(&background);
    cr_assert_eq(own_nice(), 19);
}
