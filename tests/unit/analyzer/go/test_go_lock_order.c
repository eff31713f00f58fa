/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Potential deadlocks: orders of locks that do not fit together, and what excuses them. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "analyzer/go/lock_order.h"
#include "tests/unit/analyzer/go_script.h"

static int on_action(void *context, const struct go_goroutine *goroutine, const struct go_action *action)
{
    return go_lock_order_action(context, goroutine, action);
}

/* The cycles of a script, behind the making of g2 and g3. */
static size_t cycles_of(const char *text, struct lock_cycle *ret_first)
{
    struct go_replay_options options = go_script_options();
    struct lock_cycle *cycles = NULL;
    struct go_script script = go_script_read(text);
    struct lock_order *order;
    struct go_replay *replay;
    size_t count;

    cr_assert_eq(lock_order_new(&order), 0);
    options.on_action = on_action;
    options.context = order;
    cr_assert_eq(go_replay_new(&options, &replay), 0);
    for (size_t i = 0; i < script.count; i++) {
        cr_assert_eq(go_replay_event(replay, &script.events[i]), 0);
        cr_assert_eq(go_lock_order_event(order, &script.events[i]), 0);
    }
    cr_assert_eq(go_replay_end(replay), 0);
    cr_assert_eq(lock_order_cycles(order, &cycles, &count), 0);
    cr_assert(lock_order_complete(order));
    if (count && ret_first)
        *ret_first = cycles[0];
    free(cycles);
    free(script.events);
    go_replay_free(replay);
    lock_order_free(order);
    return count;
}

#define MADE "g1 run t1; g1 go g2 s12; g1 go g3 s13\n"
#define A_B(g, lock_a, lock_b) \
    g " " lock_a " s20 done; " g " " lock_b " s21 done; " g " unlock m2 s22; " g " unlock m1 s23\n"
#define B_A(g, lock_a, lock_b) \
    g " " lock_b " s30 done; " g " " lock_a " s31 done; " g " unlock m1 s32; " g " unlock m2 s33\n"

Test(go_lock_order, two_orders_of_two_locks)
{
    struct lock_cycle cycle = {.count = 0};

    cr_expect_eq(cycles_of(MADE A_B("g2", "lock m1", "lock m2") B_A("g3", "lock m1", "lock m2"), &cycle), 1);
    cr_expect_eq(cycle.count, 2);
    cr_expect_eq(cycle.steps[0].agent, 2);
    cr_expect_eq(cycle.steps[0].held, go_script_object("m1"));
    cr_expect_eq(cycle.steps[0].held_site, 20);
    cr_expect_eq(cycle.steps[0].wanted_site, 21);
    cr_expect_eq(cycle.steps[1].agent, 3);
    cr_expect_eq(cycle.steps[1].held_site, 30);
}

Test(go_lock_order, the_same_order_is_none)
{
    cr_expect_eq(cycles_of(MADE A_B("g2", "lock m1", "lock m2") A_B("g3", "lock m1", "lock m2"), NULL), 0);
}

Test(go_lock_order, one_goroutine_does_not_wait_for_itself)
{
    cr_expect_eq(cycles_of(MADE A_B("g2", "lock m1", "lock m2") B_A("g2", "lock m1", "lock m2"), NULL), 0);
}

Test(go_lock_order, a_gate_keeps_them_apart)
{
    cr_expect_eq(
        cycles_of(MADE "g2 lock m9 s18 done\n" A_B(
                      "g2", "lock m1",
                      "lock m2") "g2 unlock m9 s19; g3 lock m9 s28 done\n" B_A("g3", "lock m1", "lock m2"),
                  NULL),
        0);
    cr_expect_eq(
        cycles_of(MADE "g2 rlock r9 s18 done\n" A_B(
                      "g2", "lock m1",
                      "lock m2") "g2 runlock r9 s19; g3 rlock r9 s28 done\n" B_A("g3", "lock m1", "lock m2"),
                  NULL),
        1, "readers do not keep each other out");
}

Test(go_lock_order, readers_do_not_wait_for_readers)
{
    static const char reads[] = MADE
        "g2 rlock m1 s20 done; g2 lock m2 s21 done; g2 unlock m2 s22; g2 runlock m1 s23\n"
        "g3 lock m2 s30 done; g3 rlock m1 s31 done; g3 runlock m1 s32";
    static const char writes[] = MADE
        "g2 rlock m1 s20 done; g2 lock m2 s21 done; g2 unlock m2 s22; g2 runlock m1 s23\n"
        "g3 lock m2 s30 done; g3 wlock m1 s31 done; g3 wunlock m1 s32";

    cr_expect_eq(cycles_of(reads, NULL), 0);
    cr_expect_eq(cycles_of(writes, NULL), 1);
}

Test(go_lock_order, one_that_had_ended_is_no_danger)
{
    cr_expect_eq(
        cycles_of("g1 run t1; g1 go g2 s12\n" A_B("g2", "lock m1", "lock m2") "g2 end; g1 go g3 s13\n" B_A(
                      "g3", "lock m1", "lock m2"),
                  NULL),
        0);
}

Test(go_lock_order, a_try_never_waits)
{
    cr_expect_eq(cycles_of(MADE A_B("g2", "lock m1", "lock m2") B_A("g3", "trylock m1", "lock m2"), NULL), 0);
}

Test(go_lock_order, three_in_a_ring_and_repetition_folds)
{
    cr_expect_eq(cycles_of("g1 run t1; g1 go g2 s12; g1 go g3 s13; g1 go g4 s14; g1 go g5 s13\n"
                           "g2 lock m1 s20 done; g2 lock m2 s21 done; g2 unlock m2 s22; g2 unlock m1 s23\n"
                           "g3 lock m2 s30 done; g3 lock m3 s31 done; g3 unlock m3 s32; g3 unlock m2 s33\n"
                           "g5 lock m2 s30 done; g5 lock m3 s31 done; g5 unlock m3 s32; g5 unlock m2 s33\n"
                           "g4 lock m3 s40 done; g4 lock m1 s41 done; g4 unlock m1 s42; g4 unlock m3 s43",
                           NULL),
                 1);
}

Test(go_lock_order, what_was_over_before_the_other_was_made_is_no_danger)
{
    cr_expect_eq(cycles_of("g1 run t1\n" A_B("g1", "lock m1", "lock m2") "g1 go g3 s13\n" B_A("g3", "lock m1",
                                                                                              "lock m2"),
                           NULL),
                 0);
}

/* g2 reads r1, and reads it again. */
#define READ_AGAIN "g2 rlock r1 s20 done; g2 rlock r1 s21 done; g2 runlock r1 s22; g2 runlock r1 s23\n"

Test(go_lock_order, reading_again_is_a_danger_where_somebody_writes)
{
    struct lock_cycle cycle = {.count = 0};

    cr_expect_eq(cycles_of(MADE READ_AGAIN "g3 wlock r1 s30 done; g3 wunlock r1 s31", &cycle), 1);
    cr_expect_eq(cycle.danger, LOCK_READ_AGAIN);
    cr_expect_eq(cycle.steps[0].held_site, 20);
    cr_expect_eq(cycle.steps[0].wanted_site, 21);
    cr_expect_eq(cycle.steps[1].wanted_site, 30);
    cr_expect(!cycle.happened);
    cr_expect_eq(cycles_of(MADE READ_AGAIN "g3 rlock r1 s30 done; g3 runlock r1 s31", NULL), 0);
    cr_expect_eq(cycles_of(MADE READ_AGAIN "g3 wlock r2 s30 done; g3 wunlock r2 s31", NULL), 0);
    cr_expect_eq(cycles_of(MADE READ_AGAIN "g2 wlock r1 s30 done; g2 wunlock r1 s31", NULL), 0,
                 "one goroutine");
}

Test(go_lock_order, reading_again_is_none_where_the_writer_cannot_come)
{
    cr_expect_eq(
        cycles_of("g1 run t1; g1 wlock r1 s30 done; g1 wunlock r1 s31; g1 go g2 s12\n" READ_AGAIN, NULL), 0,
        "it has written before");
    cr_expect_eq(cycles_of(MADE
                           "g2 lock m9 s18 done\n" READ_AGAIN "g2 unlock m9 s19\n"
                           "g3 lock m9 s28 done; g3 wlock r1 s30 done; g3 wunlock r1 s31; g3 unlock m9 s32",
                           NULL),
                 0, "a gate");
}

Test(go_lock_order, what_happened_is_marked)
{
    struct lock_cycle cycle = {.count = 0};

    cr_expect_eq(cycles_of(MADE "g2 run t2; g2 lock m1 s20 done; g3 run t3; g3 lock m2 s30 done\n"
                                "g2 lock m2 s21; g2 block lock; g3 lock m1 s31; g3 block lock",
                           &cycle),
                 1);
    cr_expect(cycle.happened);
    cr_expect_eq(cycles_of(MADE
                           "g2 run t2; g2 rlock r1 s20 done; g3 run t3; g3 wlock r1 s30; g3 block wlock\n"
                           "g2 rlock r1 s21; g2 block rlock",
                           &cycle),
                 1);
    cr_expect(cycle.happened);
}
