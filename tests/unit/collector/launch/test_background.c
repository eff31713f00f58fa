/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "collector/launch/background.h"
#include "collector/launch/privileges.h"

/* Where it could not come forward again it does not stand back. */
static int behind(void)
{
    return privileges_missing(PRIVILEGE_SCHEDULE) ? SCHED_OTHER : SCHED_IDLE;
}

static void pause_for(long ms)
{
    const struct timespec pause = {0, ms * 1000000};

    nanosleep(&pause, NULL);
}

Test(background, stands_back_and_comes_forward)
{
    struct background *background = background_begin(0.01);

    cr_assert_eq(sched_getscheduler(0), behind());
    background_end(background);
    cr_assert_eq(sched_getscheduler(0), SCHED_OTHER);
}

Test(background, not_for_half_of_a_processor_or_without_a_budget)
{
    cr_assert_null(background_begin(0.5));
    cr_assert_null(background_begin(0));
    cr_assert_eq(sched_getscheduler(0), SCHED_OTHER);
    background_end(NULL);
}

/* One that has not had its part comes forward, and one that has had it stands back again. The part is small:
 * on a machine that others fill a larger one would never be had. */
Test(background, has_its_part)
{
    struct background *background = background_begin(0.05);

    if (!background)
        cr_skip("not allowed to");
    while (sched_getscheduler(0) != SCHED_OTHER)
        pause_for(1);
    while (sched_getscheduler(0) != SCHED_IDLE)
        ;
    background_end(background);
    cr_assert_eq(sched_getscheduler(0), SCHED_OTHER);
}

static pthread_barrier_t barrier;

static void *look_later(void *ret_policy)
{
    pthread_barrier_wait(&barrier);
    *(int *)ret_policy = sched_getscheduler(0);
    return NULL;
}

Test(background, other_threads_are_not_changed)
{
    struct background *background;
    pthread_t other;
    int policy;

    cr_assert_eq(pthread_barrier_init(&barrier, NULL, 2), 0);
    cr_assert_eq(pthread_create(&other, NULL, look_later, &policy), 0);
    background = background_begin(0.01);
    pthread_barrier_wait(&barrier);
    cr_assert_eq(pthread_join(other, NULL), 0);
    cr_assert_eq(policy, SCHED_OTHER);
    background_end(background);
}

Test(background, who_stands_further_back_stays_there)
{
    const struct sched_param none = {0};

    cr_assert_eq(sched_setscheduler(0, SCHED_BATCH, &none), 0);
    cr_assert_null(background_begin(0.01));
    cr_assert_eq(sched_getscheduler(0), SCHED_BATCH);
}
