/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "tests/unit/analyzer/go_script.h"

DEFINE_CLEANUP(cleanup_replay, struct go_replay *, go_replay_free)
#define AUTO_REPLAY CLEANUP(cleanup_replay)

static const struct go_goroutine *find(const struct go_replay *replay, uint64_t goroutine)
{
    const struct go_goroutine *found = go_replay_goroutine(replay, goroutine);

    cr_assert_not_null(found);
    return found;
}

static void expect_state(const struct go_replay *replay, uint64_t goroutine, enum go_state state)
{
    cr_assert_eq(find(replay, goroutine)->state, state, "g%d is %d, not %d", (int)goroutine,
                 (int)find(replay, goroutine)->state, (int)state);
}

/* Whether exactly these hold the lock. */
static void expect_holders(const struct go_replay *replay, const char *object, const uint64_t *expected,
                           size_t expected_count)
{
    uint64_t holders[8];
    size_t count = go_replay_holders(replay, go_script_object(object), holders, ARRAY_SIZE(holders));

    cr_assert_eq(count, expected_count, "%s has %zu holders", object, count);
    for (size_t i = 0; i < count; i++)
        cr_assert_eq(holders[i], expected[i]);
}
#define HOLDERS(replay, object, ...) \
    expect_holders(replay, object, (const uint64_t[]){__VA_ARGS__}, \
                   ARRAY_SIZE(((const uint64_t[]){__VA_ARGS__})))
#define FREE(replay, object) expect_holders(replay, object, NULL, 0)

/* ------------------------------------------------------------------------------------------ states */

Test(go_replay, knows_the_state_of_each)
{
    AUTO_REPLAY struct go_replay *replay =
        go_script_replay("g1 run t1; g1 go g2 s12; g1 go g3 s13 f7; g2 run t2; g2 recv c1 s20", NULL);

    expect_state(replay, 1, GO_STATE_RUNNING);
    expect_state(replay, 2, GO_STATE_RUNNING);
    expect_state(replay, 3, GO_STATE_RUNNABLE);
    cr_assert_eq(find(replay, 2)->parent, 1);
    cr_assert_eq(find(replay, 2)->created_at, 12);
    cr_assert_eq(find(replay, 2)->function, 102);
    cr_assert(find(replay, 3)->system);
    go_script_feed(replay, "at 500; g2 block recv");
    expect_state(replay, 2, GO_STATE_BLOCKED);
    cr_assert_eq(find(replay, 2)->since_ns, 500);
    cr_assert_eq(find(replay, 2)->wait, GO_WAIT_CHAN);
    go_script_feed(replay, "at 600; g1 send c1 s30; g1 wake g2");
    expect_state(replay, 2, GO_STATE_RUNNABLE);
    go_script_feed(replay, "at 700; g2 run t2; g2 end");
    expect_state(replay, 2, GO_STATE_ENDED);
    cr_assert_null(go_replay_goroutine(replay, 9));
}

Test(go_replay, a_thread_runs_one_goroutine_at_a_time)
{
    AUTO_REPLAY struct go_replay *replay = go_script_replay("g1 run t1; g1 go g2; g2 run t1", NULL);

    expect_state(replay, 1, GO_STATE_RUNNABLE);
    go_script_feed(replay, "at 100; g1 run t2");
    expect_state(replay, 1, GO_STATE_RUNNING);
    expect_state(replay, 2, GO_STATE_RUNNING);
    go_script_feed(replay, "at 200; g2 yield");
    expect_state(replay, 2, GO_STATE_RUNNABLE);
}

Test(go_replay, totals_tell_when_nobody_can_run)
{
    AUTO_REPLAY struct go_replay *replay = go_script_replay(
        "g1 run t1; g1 go g2; g1 go g3 f5; at 100; g1 recv c1; g1 block recv; g2 run t1; g3 run t2", NULL);
    struct go_replay_totals totals = go_replay_totals(replay);

    cr_assert_eq(totals.application, 2);
    cr_assert_eq(totals.runnable, 1);
    cr_assert_eq(totals.idle_since_ns, 0);
    go_script_feed(replay, "at 900; g2 block io");
    totals = go_replay_totals(replay);
    cr_assert_eq(totals.runnable, 0);
    cr_assert_eq(totals.outside, 1);
    cr_assert_eq(totals.idle_since_ns, 900);
    go_script_feed(replay, "at 1000; g2 run t1; g2 end; g0 exit 3");
    totals = go_replay_totals(replay);
    cr_assert_eq(totals.application, 1);
    cr_assert_eq(totals.ended, 1);
    cr_assert(totals.exited);
    cr_assert_eq(totals.exit_status, 3);
    cr_assert_eq(totals.idle_since_ns, 1010);
}

Test(go_replay, the_runtimes_own_are_known_by_what_they_wait_for)
{
    AUTO_REPLAY struct go_replay *replay = go_script_replay("g1 run t1; g4 run t2; g4 block finalizer", NULL);

    cr_assert(find(replay, 4)->system);
    cr_assert_eq(go_replay_totals(replay).application, 1);
}

Test(go_replay, a_loss_makes_states_unknown_until_the_next_event)
{
    AUTO_REPLAY struct go_replay *replay = go_script_replay(
        "g1 run t1; g1 go g2; g1 go g3; g2 run t2; g2 lock m1 done; g2 recv c1 s7;"
        "g2 block recv; g3 run t3; g3 end; g0 lost 5",
        NULL);

    expect_state(replay, 1, GO_STATE_UNKNOWN);
    expect_state(replay, 2, GO_STATE_UNKNOWN);
    expect_state(replay, 3, GO_STATE_ENDED);
    FREE(replay, "m1");
    cr_assert_eq(find(replay, 2)->held_count, 0);
    cr_assert_eq(find(replay, 2)->actions[0].site, 7);
    cr_assert_eq(go_replay_totals(replay).lost, 5);
    go_script_feed(replay, "at 900; g1 recv c1; g1 block recv");
    expect_state(replay, 1, GO_STATE_BLOCKED);
    expect_state(replay, 2, GO_STATE_UNKNOWN);
}

Test(go_replay, with_less_detail_only_those_that_wait_are_in_an_operation)
{
    AUTO_REPLAY struct go_replay *replay = go_script_replay(
        "g1 run t1; g1 go g2; g2 run t2; g2 lock m1 done; g2 recv c1 s7; g2 block recv; g1 send c2 s8;"
        "g0 detail 2",
        NULL);

    expect_state(replay, 2, GO_STATE_BLOCKED);
    FREE(replay, "m1");
    cr_assert_eq(find(replay, 2)->action_count, 1);
    cr_assert_eq(find(replay, 1)->action_count, 0);
    /* Where it waits next is not known. */
    go_script_feed(replay, "g1 wake g2; g2 run t2; g2 block recv");
    expect_state(replay, 2, GO_STATE_BLOCKED);
    cr_assert_eq(find(replay, 2)->action_count, 0);
}

Test(go_replay, with_lives_alone_no_state_is_known)
{
    AUTO_REPLAY struct go_replay *replay =
        go_script_replay("g1 run t1; g1 go g2; g2 run t2; g2 recv c1 s7; g2 block recv; g0 detail 1", NULL);

    expect_state(replay, 1, GO_STATE_UNKNOWN);
    expect_state(replay, 2, GO_STATE_UNKNOWN);
    go_script_feed(replay, "g2 go g3 s9; g3 end");
    expect_state(replay, 3, GO_STATE_ENDED);
    go_script_feed(replay, "g2 go g4 s9; g0 detail 3");
    expect_state(replay, 4, GO_STATE_UNKNOWN);
    go_script_feed(replay, "g4 run t3");
    expect_state(replay, 4, GO_STATE_RUNNING);
    cr_assert_eq(go_replay_totals(replay).lost, 0);
}

/* ------------------------------------------------------------------------------------------ operations */

struct log {
    char text[1024];
};

/* "g1 send s5 blocked<g2 woke1 =0;" for each operation that is over. */
static int write_action(void *context, const struct go_goroutine *goroutine, const struct go_action *action)
{
    struct log *log = context;
    size_t length = strlen(log->text);
    char by[32] = "", result[32] = "", woke[32] = "";

    cr_assert_eq(goroutine->goroutine, action->goroutine);
    if (action->woken_by)
        snprintf(by, sizeof(by), "<g%d", (int)action->woken_by);
    if (action->woken)
        snprintf(woke, sizeof(woke), " woke%u", action->woken);
    if (action->has_result)
        snprintf(result, sizeof(result), " =%d", (int)action->result);
    snprintf(log->text + length, sizeof(log->text) - length, "g%d s%u%s%s%s%s%s;", (int)action->goroutine,
             action->site, action->blocked ? " blocked" : "", by, woke, result,
             action->finished ? "" : " open");
    return 0;
}

static void expect_log(const char *script, const char *expected)
{
    struct go_replay_options options = go_script_options();
    AUTO_REPLAY struct go_replay *replay = NULL;
    struct log log = {""};

    options.on_action = write_action;
    options.context = &log;
    replay = go_script_replay(script, &options);
    cr_assert_eq(go_replay_end(replay), 0);
    cr_assert_str_eq(log.text, expected);
}

Test(go_replay, an_operation_is_over_when_the_next_begins)
{
    expect_log("g1 run t1; g1 send c1 s1; g1 close c1 s2; g1 recv c2 s3", "g1 s1;g1 s2;g1 s3 open;");
}

Test(go_replay, operations_tell_who_waited_and_who_let_go_on)
{
    expect_log(
        "g2 run t2; g2 recv c1 s1; g2 block recv; g1 run t1; g1 send c1 s2; g1 wake g2; g1 end;"
        "g2 run t1; g2 end",
        "g1 s2 woke1;g2 s1 blocked<g1;");
}

Test(go_replay, a_wake_that_an_operation_does_not_explain_is_not_its_own)
{
    expect_log("g2 run t2; g2 recv c1 s1; g2 block recv; g1 run t1; g1 send c2 s2; g1 wake g2; g1 end",
               "g1 s2;g2 s1 blocked<g1 open;");
}

Test(go_replay, what_was_let_go_on_is_over_once_it_has_run)
{
    expect_log("g2 run t2; g2 recv c1 s1; g2 block recv; g0 wake g2", "g2 s1 blocked open;");
    expect_log("g2 run t2; g2 recv c1 s1; g2 block recv; g0 wake g2; g2 run t1", "g2 s1 blocked;");
    /* The network poller, or a stop that came to nothing: no event tells. */
    expect_log("g2 run t2; g2 recv c1 s1; g2 block recv; g2 run t1", "g2 s1 blocked;");
    /* Another one was faster to the lock. */
    expect_log("g2 run t2; g2 lock m1 s1; g2 block lock; g1 wake g2; g2 run t1; g2 block lock",
               "g2 s1 blocked<g1 open;");
}

Test(go_replay, selects_have_their_cases_and_results)
{
    AUTO_REPLAY struct go_replay *replay = go_script_replay(
        "g1 run t1; g1 select s1 n3; g1 case 2 recv c2; g1 case 0 send c1; g1 block select", NULL);
    const struct go_action *action = find(replay, 1)->actions;

    cr_assert_eq(action->case_count, 3);
    cr_assert_eq(action->cases[0].object, go_script_object("c1"));
    cr_assert(action->cases[0].send);
    cr_assert_eq(action->cases[1].object, 0); /* a nil channel */
    cr_assert_eq(action->cases[2].object, go_script_object("c2"));
    expect_log(
        "g1 run t1; g1 select s1 try n1; g1 case 0 recv c1; g1 result -1; g1 trylock m1 s2; g1 result 1",
        "g1 s1 =-1;g1 s2 =1;");
    expect_log(
        "g2 run t2; g2 recv c1 s1; g2 block recv; g1 run t1; g1 select s2 n1; g1 case 0 send c1;"
        "g1 wake g2; g1 result 0",
        "g1 s2 woke1 =0;g2 s1 blocked<g1 open;");
}

Test(go_replay, parts_of_an_operation_do_not_end_it)
{
    AUTO_REPLAY struct go_replay *replay =
        go_script_replay("g1 run t1; g1 lock m1 s1 done; g1 condwait d1 s2; g1 unlock m1 s3 inner", NULL);
    const struct go_goroutine *waiter = find(replay, 1);

    FREE(replay, "m1");
    cr_assert_eq(waiter->action_count, 2);
    go_script_feed(replay, "at 500; g1 block cond");
    cr_assert_eq(waiter->action_count, 1);
    cr_assert(waiter->actions[0].blocked);
    go_script_feed(replay,
                   "at 600; g2 run t2; g2 lock m1 done; g2 signal d1; g2 wake g1; g1 run t1;"
                   "g1 lock m1 inner s4; g1 block lock");
    cr_assert_eq(waiter->action_count, 2);
    cr_assert_eq(waiter->actions[0].site, 2);
    cr_assert_eq(waiter->actions[1].site, 4);
    cr_assert(!waiter->actions[0].finished);
    HOLDERS(replay, "m1", 2);
    go_script_feed(replay, "at 700; g2 unlock m1; g2 wake g1; g1 run t1");
    HOLDERS(replay, "m1", 1);
}

Test(go_replay, a_stop_for_something_else_ends_the_operation)
{
    expect_log("g1 run t1; g1 lock m1 s1; g1 block io", "g1 s1;");
    /* The collector of garbage stops goroutines anywhere. */
    expect_log("g1 run t1; g1 recv c1 s1; g1 block gc", "g1 s1 open;");
}

Test(go_replay, a_panic_may_leave_the_operation_undone)
{
    expect_log("g1 run t1; g1 send c1 s1; g1 panic; g1 unlock m1 s2", "g1 s1 open;g1 s2;");
    expect_log("g1 run t1; g1 lock m1 s1; g1 panic", "g1 s1;");
}

/* ------------------------------------------------------------------------------------------ locks */

Test(go_replay, a_lock_is_held_until_it_is_unlocked)
{
    AUTO_REPLAY struct go_replay *replay = go_script_replay("g1 run t1; g1 lock m1 s5 done", NULL);

    HOLDERS(replay, "m1", 1);
    cr_assert_eq(find(replay, 1)->held_count, 1);
    cr_assert_eq(find(replay, 1)->held[0].site, 5);
    go_script_feed(replay, "at 100; g2 run t2; g2 lock m1; g2 block lock");
    HOLDERS(replay, "m1", 1);
    go_script_feed(replay, "at 200; g1 unlock m1; g1 wake g2");
    FREE(replay, "m1");
    cr_assert_eq(find(replay, 1)->held_count, 0);
    go_script_feed(replay, "at 300; g2 run t2");
    HOLDERS(replay, "m1", 2);
    /* It was not there first, after all. */
    go_script_feed(replay, "at 400; g1 lock m1 done; g2 block lock");
    HOLDERS(replay, "m1", 1);
    cr_assert_eq(find(replay, 2)->held_count, 0);
}

Test(go_replay, one_that_waits_without_stopping_gets_the_lock)
{
    AUTO_REPLAY struct go_replay *replay =
        go_script_replay("g1 run t1; g2 run t2; g1 lock m1 done; g2 lock m1", NULL);

    HOLDERS(replay, "m1", 1);
    go_script_feed(replay, "at 100; g1 unlock m1 done");
    HOLDERS(replay, "m1", 2);
    cr_assert(find(replay, 2)->actions[0].acquired);
}

Test(go_replay, whoever_unlocks_takes_the_lock_from_its_holder)
{
    AUTO_REPLAY struct go_replay *replay =
        go_script_replay("g1 run t1; g2 run t2; g1 lock m1 done; g2 unlock m1 done", NULL);

    FREE(replay, "m1");
    cr_assert_eq(find(replay, 1)->held_count, 0);
    /* The events of two processors may come the other way round: the new holder's first. */
    go_script_feed(replay, "at 100; g1 lock m2 done; g2 lock m2 done; g1 unlock m2 done");
    HOLDERS(replay, "m2", 2);
}

Test(go_replay, a_lock_that_was_only_tried_is_held_if_the_result_says_so)
{
    AUTO_REPLAY struct go_replay *replay = go_script_replay(
        "g1 run t1; g1 trylock m1; g1 trylock m2; g1 result 0; g1 trylock m3; g1 result 1;"
        "g1 trylock m4 done; g1 send c1",
        NULL);

    FREE(replay, "m1");
    FREE(replay, "m2");
    HOLDERS(replay, "m3", 1);
    HOLDERS(replay, "m4", 1);
}

Test(go_replay, readers_share_a_lock)
{
    AUTO_REPLAY struct go_replay *replay = go_script_replay(
        "g1 run t1; g2 run t2; g3 run t3; g1 rlock r1 done; g2 rlock r1 done;"
        "g3 wlock r1 s5; g3 lock r1 inner done; g3 block wlock",
        NULL);

    HOLDERS(replay, "r1", 1, 2);
    cr_assert(find(replay, 1)->held[0].shared);
    go_script_feed(replay, "at 500; g1 runlock r1; g2 runlock r1; g2 wake g3; g3 run t3");
    HOLDERS(replay, "r1", 3);
    cr_assert_eq(find(replay, 3)->held_count, 1);
    cr_assert(!find(replay, 3)->held[0].shared);
    go_script_feed(replay, "at 600; g3 wunlock r1; g3 unlock r1 inner; g3 send c1");
    FREE(replay, "r1");
    cr_assert_eq(find(replay, 3)->held_count, 0);
}

Test(go_replay, one_that_ends_keeps_its_locks)
{
    AUTO_REPLAY struct go_replay *replay =
        go_script_replay("g1 run t1; g1 go g2; g2 run t2; g2 lock m1 done; g2 end", NULL);

    HOLDERS(replay, "m1", 2);
    cr_assert_eq(find(replay, 2)->held_count, 1);
}

/* ------------------------------------------------------------------------------------------ users */

Test(go_replay, objects_know_who_used_them)
{
    AUTO_REPLAY struct go_replay *replay = go_script_replay(
        "g1 run t1; g1 make c1 s1; g1 go g2; g1 go g3; g2 run t2; g2 send c1 s2;"
        "g3 run t3; g3 select s3 n1; g3 case 0 recv c1; g3 result 0; g2 close c1 s4; g2 end",
        NULL);
    const struct go_object *object = go_replay_object(replay, go_script_object("c1"));

    cr_assert(object->closed && object->from_start && !object->more_users);
    cr_assert_eq(object->user_count, 3);
    cr_assert_eq(object->users[0].goroutine, 2);
    cr_assert_eq(object->users[0].site, 4);
    cr_assert_eq(object->users[0].operations, 1u << GO_OP_CHAN_SEND | 1u << GO_OP_CHAN_CLOSE);
    cr_assert_eq(object->users[1].operations, 1u << GO_OP_CHAN_RECV);
    cr_assert_null(go_replay_object(replay, go_script_object("c9")));
}

Test(go_replay, an_object_remembers_its_last_users)
{
    AUTO_REPLAY struct go_replay *replay = go_script_replay("g1 run t1; g1 make c1", NULL);
    const struct go_object *object;

    for (int i = 2; i < 12; i++) {
        char text[64];

        snprintf(text, sizeof(text), "at %d; g%d run t%d; g%d send c1", i * 100, i, i, i);
        go_script_feed(replay, text);
    }
    object = go_replay_object(replay, go_script_object("c1"));
    cr_assert_eq(object->user_count, GO_OBJECT_USERS);
    cr_assert(object->more_users);
    cr_assert_eq(object->users[0].goroutine, 11);
    cr_assert_eq(object->users[GO_OBJECT_USERS - 1].goroutine, 12 - GO_OBJECT_USERS);
}

Test(go_replay, wait_groups_are_counted)
{
    AUTO_REPLAY struct go_replay *replay =
        go_script_replay("g1 run t1; g1 add w1 n3; g2 run t2; g2 done w1; g1 wait w1; g1 block sema", NULL);
    const struct go_object *object = go_replay_object(replay, go_script_object("w1"));

    cr_assert(object->counter_known);
    cr_assert_eq(object->counter, 2);
    cr_assert_eq(object->users[0].goroutine, 1);
    cr_assert_eq(object->users[0].added, 3);
    cr_assert_eq(object->users[1].added, -1);
}

/* ------------------------------------------------------------------------------------------ timers */

static bool ignores(void *context, uint32_t site)
{
    (void)context;
    return site == 9;
}

Test(go_replay, timers_count_until_they_run_or_are_stopped)
{
    struct go_replay_options options = go_script_options();
    AUTO_REPLAY struct go_replay *replay = NULL;

    options.ignores_timer = ignores;
    replay = go_script_replay("g1 run t1; g1 timer x1 due 5000; g1 timer x2 due 3000; g1 timer x3 due 50 s9",
                              &options);
    cr_assert_eq(go_replay_next_timer(replay), 3000);
    go_script_feed(replay, "at 4000; g1 yield"); /* it is late, which means nothing */
    cr_assert_eq(go_replay_next_timer(replay), 3000);
    go_script_feed(replay, "g0 fire x2 t2");
    cr_assert_eq(go_replay_next_timer(replay), 3000); /* what it does is still to come */
    go_script_feed(replay, "g1 run t1");
    cr_assert_eq(go_replay_next_timer(replay), 3000);
    go_script_feed(replay, "g2 run t2");
    cr_assert_eq(go_replay_next_timer(replay), 5000);
    go_script_feed(replay, "at 100; g1 stop x1");
    cr_assert_eq(go_replay_next_timer(replay), 0);
}

Test(go_replay, a_timer_that_is_set_again_while_it_runs_is_pending)
{
    AUTO_REPLAY struct go_replay *replay = go_script_replay(
        "g1 run t1; g1 timer x1 due 100; at 200; g1 timer x1 due 900; g0 fire x1 t2; g0 wake g1 t2", NULL);

    cr_assert_eq(go_replay_next_timer(replay), 900);
    go_script_feed(replay, "at 901; g0 fire x1 t2; g0 wake g1 t2");
    cr_assert_eq(go_replay_next_timer(replay), 0);
}

Test(go_replay, a_timer_whose_end_was_missed_does_not_count_for_ever)
{
    AUTO_REPLAY struct go_replay *replay = go_script_replay("g1 run t1; g1 timer x1 due 100", NULL);

    go_script_feed(replay, "at 29000000000; g1 yield");
    cr_assert_eq(go_replay_next_timer(replay), 100);
    go_script_feed(replay, "at 31000000000; g1 yield");
    cr_assert_eq(go_replay_next_timer(replay), 0);
}

Test(go_replay, a_ticker_is_waited_for_where_somebody_listens)
{
    AUTO_REPLAY struct go_replay *replay =
        go_script_replay("g1 run t1; g1 timer x1 due 1000 every 100; g1 case timer c1", NULL);

    cr_assert_eq(go_replay_next_timer(replay), 0);
    go_script_feed(replay, "g1 recv c1; g1 block recv");
    cr_assert_eq(go_replay_next_timer(replay), 1000);
    go_script_feed(replay, "at 1250; g0 fire x1 t2; g0 wake g1 t2; g1 run t2; g1 recv c1; g1 block recv");
    cr_assert_eq(go_replay_next_timer(replay), 1300);
}

/* Otherwise a loop would hold up the end of the process for as long as that may be. */
Test(go_replay, the_end_waits_for_a_timer_once)
{
    AUTO_REPLAY struct go_replay *replay = go_script_replay(
        "g2 run t2; g2 timer x1 due 1000; g2 case timer c1; g2 timer x2 due 1000 every 500;"
        "g2 case timer c2; g2 select n2; g2 case 0 recv c1; g2 case 1 recv c2; g2 block select;"
        "g1 run t1; g1 exit 0",
        NULL);

    cr_assert_eq(go_replay_next_timer(replay), 1000);
    go_script_feed(replay, "at 1001; g0 fire x2 t2; g0 fire x1 t2; g0 wake g2 t2");
    cr_assert_eq(go_replay_next_timer(replay), 0);
    go_script_feed(replay, "g2 run t2; g2 timer x1 due 2000; g2 case timer c1; g2 recv c1; g2 block recv");
    cr_assert_eq(go_replay_next_timer(replay), 0);
}

/* ------------------------------------------------------------------------------------------ memory */

static int count_one(void *context, const struct go_goroutine *goroutine)
{
    size_t *count = context;

    ++*count;
    return goroutine->goroutine == 0;
}

static void feed(struct go_replay *replay, struct process_event event)
{
    cr_assert_eq(go_replay_event(replay, &event), 0);
}

/* `count` goroutines, of g1 or each of the one before, that begin and end. */
static size_t left_over(uint64_t count, bool chain)
{
    struct go_replay_options options = go_script_options();
    AUTO_REPLAY struct go_replay *replay = NULL;
    size_t left = 0;

    options.forget_ended = true;
    cr_assert_eq(go_replay_new(&options, &replay), 0);
    for (uint64_t i = 2; i < count + 2; i++) {
        uint64_t parent = chain ? i - 1 : 1;

        feed(replay,
             (struct process_event){.kind = GO_EVENT_CREATE, .goroutine = parent, .other = i, .value = 99});
        if (chain)
            feed(replay, (struct process_event){.kind = GO_EVENT_END, .goroutine = parent});
        feed(replay, (struct process_event){.kind = GO_EVENT_RUN, .goroutine = i, .tid = 5});
        if (!chain)
            feed(replay, (struct process_event){.kind = GO_EVENT_END, .goroutine = i});
    }
    cr_assert_eq(go_replay_each(replay, count_one, &left), 0);
    cr_assert_eq(go_replay_totals(replay).ended, count);
    return left;
}

Test(go_replay, forgets_those_that_have_ended_when_asked)
{
    cr_assert_eq(left_over(50000, false), 1);
    cr_assert_leq(left_over(50000, true), 64);
}

Test(go_replay, forgets_objects_that_nobody_holds_or_waits_for)
{
    AUTO_REPLAY struct go_replay *replay =
        go_script_replay("g1 run t1; g1 lock m1 done; g2 run t2; g2 recv c1; g2 block recv", NULL);
    size_t left = 0;
    uint64_t first = 0x100000;

    for (uint64_t i = 0; i < 400000; i++)
        feed(replay, (struct process_event){.kind = GO_EVENT_OPERATE,
                                            .operation = GO_OP_CHAN_SEND,
                                            .goroutine = 1,
                                            .object = first + i * 8});
    for (uint64_t i = 0; i < 400000; i++)
        left += go_replay_object(replay, first + i * 8) != NULL;
    cr_assert_leq(left, 200000);
    cr_assert_geq(left, 50000);
    cr_assert_not_null(go_replay_object(replay, first + 399999 * 8));
    cr_assert_not_null(go_replay_object(replay, go_script_object("c1")));
    HOLDERS(replay, "m1", 1);
}

/* ------------------------------------------------------------------------------------------ parents */

/* How many there are above it; going up ends, or the test runs into its time limit. */
static int ancestors(const struct go_replay *replay, uint64_t goroutine)
{
    const struct go_goroutine *at = find(replay, goroutine);
    int count = -1;

    for (; at; at = go_replay_parent(replay, at))
        count++;
    return count;
}

/* What a store that was changed may claim. */
Test(go_replay, goroutines_that_made_each_other_have_no_common_line, .timeout = 60)
{
    AUTO_REPLAY struct go_replay *replay = go_script_replay(
        "g1 run t1; g1 go g1 s3; g1 go g2 s12; g2 go g3 s13; g3 go g2 s14; g3 go g4 s15; g4 go g1 s16", NULL);

    for (uint64_t i = 1; i <= 4; i++)
        cr_assert_leq(ancestors(replay, i), 3);
    cr_assert_eq(ancestors(replay, 2), 1, "it was made by 3 at last");
}

/* Ended ones are forgotten, whoever is said to have made them. */
Test(go_replay, a_ring_of_ended_goroutines_is_forgotten, .timeout = 60)
{
    struct go_replay_options options = go_script_options();
    AUTO_REPLAY struct go_replay *replay = NULL;

    options.forget_ended = true;
    replay = go_script_replay(
        "g2 go g3 s1; g3 go g4 s2; g4 go g2 s3; g2 go g5 s4; g3 go g6 s5; g4 go g7 s6;"
        "g2 end; g3 end; g4 end; g5 end; g6 end; g7 end",
        &options);
    cr_assert_null(go_replay_goroutine(replay, 7));
}
