/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/go/verdict.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "tests/unit/analyzer/go_script.h"

DEFINE_CLEANUP(cleanup_replay, struct go_replay *, go_replay_free)
#define AUTO_REPLAY CLEANUP(cleanup_replay)
#define AUTO_VERDICT CLEANUP(go_verdict_release)

/* Functions and sites of scripts: 50 is package testing's, 51 its alarm's, 52 of package time, 53 of
 * os/signal. */
enum { TESTING = 50, ALARM, TIMERS };

static enum go_role role(void *context, uint32_t function)
{
    (void)context;
    switch (function) {
    case TESTING:
        return GO_ROLE_TESTING;
    case ALARM:
        return GO_ROLE_ALARM;
    case TIMERS:
        return GO_ROLE_TIMERS;
    default:
        return GO_ROLE_PROGRAM;
    }
}

static const struct go_verdict_options usual = {.role = role, .operations = true};

static struct go_verdict judge_with(struct go_replay *replay, const struct go_verdict_options *options)
{
    struct go_verdict verdict = {0};

    cr_assert_eq(go_verdict_of(replay, options, &verdict), 0);
    return verdict;
}

static void expect_kind(const struct go_verdict *verdict, enum go_verdict_kind kind)
{
    cr_assert_eq(verdict->kind, kind, "%s, not %s", go_verdict_name(verdict->kind), go_verdict_name(kind));
}

static void expect_counts(const struct go_verdict *verdict, size_t stuck, size_t unfinished, size_t unknown)
{
    cr_assert_eq(verdict->stuck, stuck, "%zu stuck", verdict->stuck);
    cr_assert_eq(verdict->unfinished, unfinished, "%zu unfinished", verdict->unfinished);
    cr_assert_eq(verdict->unknown, unknown, "%zu unknown", verdict->unknown);
    cr_assert_eq(verdict->outcome_count, stuck + unfinished + unknown);
}

static const struct go_outcome *outcome_of(const struct go_verdict *verdict, uint64_t goroutine)
{
    for (size_t i = 0; i < verdict->outcome_count; i++)
        if (verdict->outcomes[i].goroutine == goroutine)
            return &verdict->outcomes[i];
    cr_assert_fail("g%d is not in the verdict", (int)goroutine);
    return NULL;
}

/* The verdict on a script. */
static void expect(const char *text, enum go_verdict_kind kind, size_t stuck, size_t unfinished)
{
    AUTO_REPLAY struct go_replay *replay = go_script_replay(text, NULL);
    AUTO_VERDICT struct go_verdict verdict = judge_with(replay, &usual);

    expect_kind(&verdict, kind);
    expect_counts(&verdict, stuck, unfinished, 0);
}

static void expect_unblock(const char *text, uint64_t goroutine, enum go_unblock unblock, uint64_t by)
{
    AUTO_REPLAY struct go_replay *replay = go_script_replay(text, NULL);
    AUTO_VERDICT struct go_verdict verdict = judge_with(replay, &usual);
    const struct go_outcome *outcome = outcome_of(&verdict, goroutine);

    cr_assert_eq(outcome->unblock, unblock, "g%d has unblock %d", (int)goroutine, (int)outcome->unblock);
    cr_assert_eq(outcome->by, by);
    cr_assert_eq(outcome->kind == GO_OUTCOME_STUCK, unblock == GO_UNBLOCK_NONE);
}

/* The goroutines of the cycle, each waiting for the next, the last for the first. */
static void expect_cycle(const char *text, const uint64_t *goroutines, size_t count)
{
    AUTO_REPLAY struct go_replay *replay = go_script_replay(text, NULL);
    AUTO_VERDICT struct go_verdict verdict = judge_with(replay, &usual);

    cr_assert_eq(verdict.cycle_count, count, "a cycle of %zu", verdict.cycle_count);
    for (size_t i = 0; i < count; i++) {
        cr_assert_eq(verdict.cycle[i].goroutine, goroutines[i]);
        cr_assert_eq(verdict.cycle[i].on, goroutines[(i + 1) % count]);
    }
}
#define CYCLE(text, ...) \
    expect_cycle(text, (const uint64_t[]){__VA_ARGS__}, ARRAY_SIZE(((const uint64_t[]){__VA_ARGS__})))

/* ------------------------------------------------------------------------------------------ listing 1 */

#define LISTING_1 "g1 run t1; g1 make c1 s10; g1 go g2 s12; g1 go g3 s13; g1 sleep s14 n1000; g1 block sleep;"

/* The paper's listing 1: the interleaving that ends well. */
Test(go_verdict, listing_1_ends_well)
{
    expect(LISTING_1
           "g2 run t1; g2 select s17 n1 try; g2 case 0 recv c1; g2 result -1;"
           "g2 lock m1 s21 done; g2 unlock m1 s22 done; g2 select s17 n1 try; g2 case 0 recv c1;"
           "g2 result -1; g2 yield; g3 run t1; g3 lock m1 s25 done; g3 send c1 s27; g3 block send;"
           "g2 run t1; g2 select s17 n1 try; g2 case 0 recv c1; g2 wake g3; g2 result 0; g2 end;"
           "g3 run t1; g3 unlock m1 s26 done; g3 end; g0 wake g1; g1 run t1; g1 exit 0",
           GO_VERDICT_PASS, 0, 0);
}

/* The other one: Monitor waits for the lock that StatusChange holds, who waits for Monitor to receive. */
#define LISTING_1_LEAK \
    LISTING_1 \
    "g2 run t1; g2 select s17 n1 try; g2 case 0 recv c1; g2 result -1; g2 yield;" \
    "g3 run t1; g3 lock m1 s25 done; g3 send c1 s27; g3 block send;" \
    "g2 run t1; g2 lock m1 s21; g2 block lock; g0 wake g1; g1 run t1; g1 exit 0"

Test(go_verdict, listing_1_leaks)
{
    AUTO_REPLAY struct go_replay *replay = go_script_replay(LISTING_1_LEAK, NULL);
    AUTO_VERDICT struct go_verdict verdict = judge_with(replay, &usual);

    expect_kind(&verdict, GO_VERDICT_LEAK);
    expect_counts(&verdict, 2, 0, 0);
    cr_assert_eq(verdict.cycle_count, 2);
    cr_assert_eq(verdict.cycle[0].goroutine, 2);
    cr_assert_eq(verdict.cycle[0].reason, GO_WAIT_FOR_HOLDS);
    cr_assert_eq(verdict.cycle[0].object, go_script_object("m1"));
    cr_assert_eq(verdict.cycle[0].site, 25);
    cr_assert_eq(verdict.cycle[1].goroutine, 3);
    cr_assert_eq(verdict.cycle[1].reason, GO_WAIT_FOR_PEER);
    cr_assert_eq(verdict.cycle[1].object, go_script_object("c1"));
    cr_assert_eq(go_waiting_in(go_replay_goroutine(replay, 3))->site, 27);
}

/* ------------------------------------------------------------------------------------------ kinds */

Test(go_verdict, nobody_left_is_a_pass)
{
    expect("g1 run t1; g1 go g2; g2 run t2; g2 end; g1 exit 0", GO_VERDICT_PASS, 0, 0);
    expect("g1 run t1; g1 go g2 f5; g1 exit 0", GO_VERDICT_PASS, 0, 0); /* the runtime's */
}

Test(go_verdict, what_the_runtime_says_is_a_global_deadlock)
{
    expect("g1 run t1; g1 recv c1; g1 block recv; g1 fatal deadlock; g0 exit 2", GO_VERDICT_GLOBAL_DEADLOCK,
           1, 0);
}

Test(go_verdict, so_is_an_end_without_an_exit_where_nobody_could_go_on)
{
    expect("g1 run t1; g1 make c1; g1 go g2; g2 run t2; g2 recv c1; g2 block recv; g1 recv c1; g1 block recv",
           GO_VERDICT_GLOBAL_DEADLOCK, 2, 0);
    /* Not while a timer may let somebody go on, */
    expect("g1 run t1; g1 make c1; g1 timer x1 due 100000; g1 case timer c1; g1 recv c1; g1 block recv",
           GO_VERDICT_PASS, 0, 1);
    /* not while somebody sleeps or waits for the network who may release the main goroutine, */
    expect("g1 run t1; g1 go g2; g2 run t2; g2 block io; g1 recv c1; g1 block recv", GO_VERDICT_PASS, 0, 2);
    expect("g1 run t1; g1 go g2; g2 run t2; g2 block io; g1 lock m1 done; g1 lock m1; g1 block lock",
           GO_VERDICT_GLOBAL_DEADLOCK, 1, 1);
    /* and not if the main goroutine is not among them. */
    expect("g2 run t2; g2 make c1; g2 recv c1; g2 block recv", GO_VERDICT_LEAK, 1, 0);
}

Test(go_verdict, a_panic_a_fatal_error_and_a_signal_are_crashes)
{
    const struct go_verdict_options killed = {.has_exit_status = true, .exit_status = 128 + 9};
    AUTO_REPLAY struct go_replay *replay =
        go_script_replay("g1 run t1; g1 go g2; g2 run t2; g2 panic; g2 fatal panic; g0 exit 2", NULL);
    AUTO_REPLAY struct go_replay *alive = go_script_replay("g1 run t1", NULL);
    AUTO_REPLAY struct go_replay *exits = go_script_replay("g1 run t1; g1 exit 137", NULL);
    AUTO_VERDICT struct go_verdict panicked = judge_with(replay, &usual);
    AUTO_VERDICT struct go_verdict signalled = judge_with(alive, &killed);
    AUTO_VERDICT struct go_verdict exited = judge_with(exits, &killed);

    expect_kind(&panicked, GO_VERDICT_CRASH);
    cr_assert_eq(panicked.crashed, 2);
    expect_kind(&signalled, GO_VERDICT_CRASH);
    cr_assert_eq(signalled.signal, 9);
    expect_kind(&exited, GO_VERDICT_PASS);
    expect("g1 run t1; g1 fatal other; g0 exit 2", GO_VERDICT_CRASH, 0, 0);
    /* It was recovered. */
    expect("g1 run t1; g1 panic; g1 send c1; g1 exit 0", GO_VERDICT_PASS, 0, 0);
}

Test(go_verdict, a_run_that_was_ended_by_a_limit)
{
    struct go_verdict_options limited = usual;
    AUTO_REPLAY struct go_replay *busy = go_script_replay("g1 run t1; g1 sleep n5; g1 block sleep", NULL);
    AUTO_REPLAY struct go_replay *stuck = go_script_replay("g1 run t1; g1 recv c1; g1 block recv", NULL);

    limited.timed_out = true;
    limited.has_exit_status = true;
    limited.exit_status = 128 + 9;
    AUTO_VERDICT struct go_verdict timeout = judge_with(busy, &limited);
    AUTO_VERDICT struct go_verdict deadlock = judge_with(stuck, &limited);

    expect_kind(&timeout, GO_VERDICT_TIMEOUT);
    expect_counts(&timeout, 0, 1, 0);
    expect_kind(&deadlock, GO_VERDICT_GLOBAL_DEADLOCK);
}

/* ------------------------------------------------------------------------------------------ who may go on */

Test(go_verdict, one_that_may_go_on_is_no_leak)
{
    expect_unblock("g1 run t1; g1 go g2; g2 run t2; g1 exit 0", 2, GO_UNBLOCK_RUNS, 0);
    expect_unblock("g1 run t1; g1 go g2; g1 exit 0", 2, GO_UNBLOCK_RUNS, 0);
    expect_unblock("g1 run t1; g1 go g2; g2 run t2; g2 sleep n5; g2 block sleep; g1 exit 0", 2,
                   GO_UNBLOCK_SLEEPS, 0);
    expect_unblock("g1 run t1; g1 go g2; g2 run t2; g2 block io; g1 exit 0", 2, GO_UNBLOCK_NETWORK, 0);
    expect_unblock("g1 run t1; g1 go g2; g2 run t2; g2 block gc; g1 exit 0", 2, GO_UNBLOCK_RUNTIME, 0);
    /* A semaphore of the standard library's. */
    expect_unblock("g1 run t1; g1 go g2; g2 run t2; g2 block sema; g1 exit 0", 2, GO_UNBLOCK_RUNTIME, 0);
    expect_unblock("g1 run t1; g1 go g2; g2 run t2; g2 forever; g2 block forever; g1 exit 0", 2,
                   GO_UNBLOCK_NONE, 0);
    expect_unblock("g1 run t1; g1 go g2; g2 run t2; g2 recv; g2 block nil; g1 exit 0", 2, GO_UNBLOCK_NONE, 0);
}

#define TWO "g1 run t1; g1 go g2; g1 go g3; g2 run t2; g3 run t3;"

Test(go_verdict, a_holder_that_may_go_on_releases_those_that_wait)
{
    expect_unblock(TWO "g2 lock m1 done; g3 lock m1; g3 block lock; g2 sleep; g2 block sleep; g1 exit 0", 3,
                   GO_UNBLOCK_RELEASE, 2);
    expect_unblock(TWO "g2 lock m1 done; g3 lock m1; g3 block lock; g2 forever; g2 block forever; g1 exit 0",
                   3, GO_UNBLOCK_NONE, 0);
    expect_unblock(TWO "g2 lock m1 done; g2 end; g3 lock m1; g3 block lock; g1 exit 0", 3, GO_UNBLOCK_NONE,
                   0);
    /* Whoever has used the lock but does not hold it releases nobody. */
    expect_unblock("g1 go g4; g4 run t4; g4 lock m1 done; g4 unlock m1 done;" TWO
                   "g2 lock m1 done; g3 lock m1; g3 block lock; g2 forever; g2 block forever; g1 exit 0",
                   3, GO_UNBLOCK_NONE, 0);
}

Test(go_verdict, so_does_one_that_has_used_the_channel)
{
    expect_unblock(TWO "g2 recv c1; g2 sleep; g2 block sleep; g3 send c1; g3 block send; g1 exit 0", 3,
                   GO_UNBLOCK_RELEASE, 2);
    expect_unblock(TWO "g2 recv c1; g2 forever; g2 block forever; g3 send c1; g3 block send; g1 exit 0", 3,
                   GO_UNBLOCK_NONE, 0);
    /* The one that ends the process does not. */
    expect_unblock(TWO "g1 recv c1; g2 end; g3 send c1; g3 block send; g1 exit 0", 3, GO_UNBLOCK_NONE, 0);
    expect_unblock(TWO
                   "g2 recv c1; g2 sleep; g2 block sleep; g3 select n1; g3 case 1 send c1; g3 block select;"
                   "g1 exit 0",
                   3, GO_UNBLOCK_RELEASE, 2);
}

Test(go_verdict, and_all_that_those_release)
{
    expect_unblock(
        "g1 go g4; g4 run t4; g4 recv c1;" TWO
        "g2 lock m1 done; g2 send c1; g2 block send; g3 lock m1; g3 block lock; g4 sleep; g4 block sleep;"
        "g1 exit 0",
        3, GO_UNBLOCK_RELEASE, 2);
}

Test(go_verdict, nobody_came_to_the_other_side_yet)
{
    /* A sibling that sleeps may be about to; */
    expect_unblock(TWO "g1 make c1; g2 recv c1; g2 block recv; g3 sleep; g3 block sleep; g1 exit 0", 2,
                   GO_UNBLOCK_RELEASE, 3);
    /* even if another one has been there, which was like it or not; */
    expect_unblock(TWO
                   "g1 make c1; g1 send c1; g2 recv c1; g2 block recv; g3 sleep; g3 block sleep; g1 exit 0",
                   2, GO_UNBLOCK_RELEASE, 3);
    /* and one that is no relative: those between them have ended. */
    expect_unblock(
        TWO
        "g1 make c1; g3 go g4; g4 run t3; g4 go g5; g3 run t3; g3 end; g4 run t4; g4 end; g2 recv c1;"
        "g2 block recv; g5 run t5; g5 sleep; g5 block sleep; g1 exit 0",
        2, GO_UNBLOCK_RELEASE, 5);
    /* But not one of package context. */
    expect_unblock(
        "g1 run t1; g1 go g2; g2 run t2; g1 go g3 f52; g3 run t3; g1 make c1; g2 recv c1; g2 block recv;"
        "g1 exit 0",
        2, GO_UNBLOCK_NONE, 0);
}

Test(go_verdict, a_worker_may_be_about_to_leave_the_wait_group)
{
    expect_unblock(
        "g1 run t1; g1 add w1 n1; g1 go g2; g2 run t2; g2 go g3; g3 run t3; g1 wait w1; g1 block sema", 1,
        GO_UNBLOCK_RELEASE, 2);
    expect_unblock(
        "g1 run t1; g1 add w1 n2; g1 go g2; g2 run t2; g2 done w1; g2 end; g1 wait w1; g1 block sema", 1,
        GO_UNBLOCK_NONE, 0);
}

Test(go_verdict, a_condition_waits_for_who_signals_it)
{
    expect_unblock(TWO "g2 signal d1; g2 sleep; g2 block sleep; g3 condwait d1; g3 block cond; g1 exit 0", 3,
                   GO_UNBLOCK_RELEASE, 2);
    expect_unblock(TWO "g2 signal d1; g2 end; g3 condwait d1; g3 block cond; g1 exit 0", 3, GO_UNBLOCK_NONE,
                   0);
}

/* A goroutine that waits in the last operation of `text`, with a timer set before. */
#define TIMED(timer, wait) \
    "g1 run t1; g1 go g2; g2 run t2; g2 make c1 s9; g2 timer x1 due 90000 " timer "; " wait "; g1 exit 0"

Test(go_verdict, a_timer_sends_on_its_own_channel_only)
{
    expect_unblock(TIMED("; g2 case timer c1", "g2 recv c1; g2 block recv"), 2, GO_UNBLOCK_TIMER, 0);
    expect_unblock(TIMED("; g2 case timer c1", "g2 select 2; g2 case 0 c2; g2 case 1 c1; g2 block select"), 2,
                   GO_UNBLOCK_TIMER, 0);
    expect_unblock(TIMED("; g2 case timer c3", "g2 recv c1; g2 block recv"), 2, GO_UNBLOCK_NONE, 0);
    /* It receives nothing, and one that was stopped does nothing. */
    expect_unblock(TIMED("; g2 case timer c1", "g2 send c1; g2 block send"), 2, GO_UNBLOCK_NONE, 0);
    expect_unblock(TIMED("; g2 case timer c1", "g2 stop x1; g2 recv c1; g2 block recv"), 2, GO_UNBLOCK_NONE,
                   0);
    /* Set again, it is still the same timer. */
    expect_unblock(TIMED("; g2 case timer c1; g2 timer x1 due 95000", "g2 recv c1; g2 block recv"), 2,
                   GO_UNBLOCK_TIMER, 0);
    /* Nobody waits for one that is due in a minute. */
    expect_unblock(
        "g1 run t1; g1 go g2; g2 run t2; g2 timer x1 due 60000000000; g2 case timer c1; g2 recv c1;"
        "g2 block recv; g1 exit 0",
        2, GO_UNBLOCK_NONE, 0);
}

Test(go_verdict, a_timer_that_is_due_may_still_fire)
{
    /* However late it is, and however short its time. */
    expect_unblock(TIMED("; g2 case timer c1", "g2 recv c1; at 200000; g2 block recv"), 2, GO_UNBLOCK_TIMER,
                   0);
    expect_unblock(TIMED("every 10; g2 case timer c1", "g2 recv c1; at 200000; g2 block recv"), 2,
                   GO_UNBLOCK_TIMER, 0);
    /* It has been run, but what it does there is still to come. */
    expect_unblock(TIMED("; g2 case timer c1", "g2 recv c1; g2 block recv; at 90001; g0 fire x1 t3"), 2,
                   GO_UNBLOCK_TIMER, 0);
    /* What it sent has been received already. */
    expect_unblock(
        TIMED("; g2 case timer c1", "at 90001; g0 fire x1 t3; g2 recv c1; g2 recv c1; g2 block recv"), 2,
        GO_UNBLOCK_NONE, 0);
    expect_unblock(TIMED("; g2 case timer c1",
                         "g2 recv c1; g2 block recv; at 90001; g0 fire x1 t3; g0 wake g2 t3;"
                         "g2 run t3; g2 recv c1; g2 block recv"),
                   2, GO_UNBLOCK_NONE, 0);
}

/* The next receive ends the last one, which had got what the timer sent when it ran before. */
Test(go_verdict, a_timer_that_was_set_again_and_runs_has_not_sent_what_was_received_before)
{
    expect_unblock(TIMED("; g2 case timer c1",
                         "at 90001; g0 fire x1 t3; g2 recv c1; g2 timer x1 due 90002;"
                         " g0 fire x1 t3; g2 recv c1; g2 block recv"),
                   2, GO_UNBLOCK_TIMER, 0);
    expect_unblock(TIMED("; g2 case timer c1",
                         "at 90001; g0 fire x1 t3; g2 recv c1; g2 timer x1 due 90002;"
                         " g0 fire x1 t3; g2 recv c1; g2 recv c1; g2 block recv"),
                   2, GO_UNBLOCK_NONE, 0);
}

Test(go_verdict, a_goroutine_that_a_timer_has_made_may_do_what_the_timer_is_there_for)
{
    /* One of the program's functions, of package context, and one that package context did not set. */
    expect_unblock(TIMED("runs s9", "g2 send c1; g2 block send; at 90001; g0 fire x1 t3; g0 go g3 t3"), 2,
                   GO_UNBLOCK_RELEASE, 3);
    expect_unblock(TIMED("runs s52", "g2 recv c7; g2 block recv; at 90001; g0 fire x1 t3; g0 go g3 f52 t3"),
                   2, GO_UNBLOCK_RELEASE, 3);
    expect_unblock(TIMED("runs s52", "g2 recv c1; g2 block recv; at 90001; g0 fire x1 t3; g0 go g3 f52 t3"),
                   2, GO_UNBLOCK_NONE, 0);
    expect_unblock(
        TIMED("runs s9",
              "g2 send c1; g2 block send; at 90001; g0 fire x1 t3; g0 go g3 t3; g3 run t3; g3 end"),
        2, GO_UNBLOCK_NONE, 0);
}

Test(go_verdict, a_signal_may_come_where_one_was_asked_for)
{
    expect_unblock("g1 run t1; g1 make c1; g1 signals c1; g1 recv c1; g1 block recv", 1, GO_UNBLOCK_SIGNAL,
                   0);
    expect_unblock(
        "g1 run t1; g1 make c1; g1 signals c1; g1 select n2; g1 case 0 recv c2; g1 case 1 recv c1;"
        "g1 block select",
        1, GO_UNBLOCK_SIGNAL, 0);
    expect_unblock("g1 run t1; g1 make c1; g1 make c2; g1 signals c1; g1 recv c2; g1 block recv", 1,
                   GO_UNBLOCK_NONE, 0);
    expect_unblock("g1 run t1; g1 make c1; g1 signals c1; g1 send c1; g1 block send", 1, GO_UNBLOCK_NONE, 0);
}

Test(go_verdict, another_goroutine_that_ends_the_process_breaks_off_what_all_were_about_to_do)
{
    expect("g1 run t1; g1 make c1; g1 go g2; g1 recv c1; g1 block recv; g2 run t2; g2 exit 0",
           GO_VERDICT_PASS, 0, 2);
    expect("g1 run t1; g1 make c1; g1 go g2; g2 run t2; g2 recv c1; g2 block recv; g1 exit 0",
           GO_VERDICT_LEAK, 1, 0);
}

Test(go_verdict, all_that_the_runtime_finds_asleep_are_stuck)
{
    const char *text =
        "g1 run t1; g1 go g2; g2 run t2; g2 select n3; g2 case 0 recv c1; g2 block select;"
        "g1 recv c2; g1 block recv";
    char deadlock[256];

    expect(text, GO_VERDICT_PASS, 0, 2);
    snprintf(deadlock, sizeof(deadlock), "%s; g0 fatal deadlock", text);
    expect(deadlock, GO_VERDICT_GLOBAL_DEADLOCK, 2, 0);
}

Test(go_verdict, a_select_whose_channels_are_not_all_known_may_go_on)
{
    expect_unblock(
        "g1 run t1; g1 go g2; g2 run t2; g2 make c1 s9; g2 select 3; g2 case 0 c1; g2 block select; g1 exit "
        "0",
        2, GO_UNBLOCK_RUNTIME, 0);
    expect_unblock(
        "g1 run t1; g1 go g2; g2 run t2; g2 make c1 s9; g2 select 1; g2 case 0 c1; g2 block select; g1 exit "
        "0",
        2, GO_UNBLOCK_NONE, 0);
}

Test(go_verdict, a_timers_function_may_do_what_it_is_there_for)
{
    /* One of the program's: anything. */
    expect_unblock(TIMED("runs s9", "g2 send c1; g2 block send"), 2, GO_UNBLOCK_TIMER, 0);
    /* One of package context: it closes a channel of its own. */
    expect_unblock(TIMED("runs s52", "g2 recv c1; g2 block recv"), 2, GO_UNBLOCK_NONE, 0);
    expect_unblock(TIMED("runs s52", "g2 recv c7; g2 block recv"), 2, GO_UNBLOCK_TIMER, 0);
    expect_unblock(TIMED("runs s52", "g2 send c7; g2 block send"), 2, GO_UNBLOCK_NONE, 0);
}

Test(go_verdict, what_is_not_known_is_not_called_a_leak)
{
    AUTO_REPLAY struct go_replay *lost = go_script_replay(
        "g1 run t1; g1 go g2; g2 run t2; g2 recv c1; g2 block recv; g0 lost 3; g1 exit 0", NULL);
    AUTO_REPLAY struct go_replay *older =
        go_script_replay("g7 run t1; g7 block recv; g1 run t1; g1 exit 0", NULL);
    AUTO_VERDICT struct go_verdict after_loss = judge_with(lost, &usual);
    AUTO_VERDICT struct go_verdict before_start = judge_with(older, &usual);

    expect_kind(&after_loss, GO_VERDICT_PASS);
    cr_assert_eq(outcome_of(&after_loss, 2)->kind, GO_OUTCOME_UNKNOWN);
    expect_kind(&before_start, GO_VERDICT_PASS);
    expect_counts(&before_start, 0, 0, 1);
}

/* ------------------------------------------------------------------------------------------ cycles */

#define DEADLOCK "; g1 forever; g1 block forever"

Test(go_verdict, a_goroutine_can_wait_for_itself)
{
    CYCLE("g1 run t1; g1 lock m1 s5 done; g1 lock m1 s6; g1 block lock", 1);
}

Test(go_verdict, two_locks_taken_in_two_orders)
{
    CYCLE(TWO
          "g2 lock m1 done; g3 lock m2 done; g2 lock m2; g2 block lock; g3 lock m1; g3 block lock" DEADLOCK,
          2, 3);
}

/* A reader waits behind a writer, who waits for the reader's first read lock. */
Test(go_verdict, read_write_read)
{
    CYCLE(TWO "g2 rlock r1 done; g3 wlock r1; g3 block wlock; g2 rlock r1; g2 block rlock" DEADLOCK, 2, 3);
}

Test(go_verdict, the_shortest_cycle_is_shown)
{
    CYCLE(
        "g1 run t1; g1 go g2; g1 go g3; g1 go g4; g1 go g5; g1 go g6;"
        "g2 run t2; g3 run t3; g4 run t4; g5 run t5; g6 run t6;"
        "g2 lock m2 done; g3 lock m3 done; g4 lock m4 done; g5 lock m5 done; g6 lock m6 done;"
        "g2 lock m3; g2 block lock; g3 lock m4; g3 block lock; g4 lock m2; g4 block lock;"
        "g5 lock m6; g5 block lock; g6 lock m5; g6 block lock" DEADLOCK,
        5, 6);
}

Test(go_verdict, those_that_only_wait_for_the_cycle_are_not_in_it)
{
    CYCLE(TWO
          "g1 go g4; g4 run t4; g1 go g5; g5 run t5; g4 lock m4 done; g2 lock m1 done; g3 lock m2 done;"
          "g2 lock m2; g2 block lock; g3 lock m1; g3 block lock; g4 lock m1; g4 block lock; g5 lock m4;"
          "g5 block lock" DEADLOCK,
          2, 3);
}

Test(go_verdict, no_edge_is_invented)
{
    /* Nobody has been on the other side of the channel. */
    expect_cycle(TWO "g2 lock m1 done; g2 send c1; g2 block send; g3 lock m1; g3 block lock" DEADLOCK, NULL,
                 0);
    /* Two have. */
    expect_cycle("g1 go g4; g4 run t4; g4 recv c1; g4 forever; g4 block forever;" TWO
                 "g3 recv c1; g2 lock m1 done; g2 send c1; g2 block send; g3 lock m1; g3 block lock" DEADLOCK,
                 NULL, 0);
    CYCLE(TWO "g3 recv c1; g2 lock m1 done; g2 send c1; g2 block send; g3 lock m1; g3 block lock" DEADLOCK, 2,
          3);
    /* A select goes on with any of its cases. */
    expect_cycle(TWO
                 "g3 recv c1; g2 lock m1 done; g2 select n2; g2 case 0 send c1; g2 case 1 recv c2;"
                 "g2 block select; g3 lock m1; g3 block lock" DEADLOCK,
                 NULL, 0);
    CYCLE(TWO
          "g3 recv c1; g2 lock m1 done; g2 select n2; g2 case 0 send c1; g2 case 1 recv;"
          "g2 block select; g3 lock m1; g3 block lock" DEADLOCK,
          2, 3);
}

Test(go_verdict, a_wait_group_waits_for_who_has_joined_it)
{
    CYCLE(TWO "g3 add w1 n1; g2 lock m1 done; g2 wait w1; g2 block sema; g3 lock m1; g3 block lock" DEADLOCK,
          2, 3);
}

/* ------------------------------------------------------------------------------------------ tests */

#define TEST_BINARY "g1 run t1; g1 go g2 f60; g2 run t2; g2 test f70; g1 recv c9 s50; g1 block recv;"

static void expect_tests(const char *text, enum go_verdict_kind whole, const enum go_verdict_kind *each,
                         size_t count)
{
    AUTO_REPLAY struct go_replay *replay = go_script_replay(text, NULL);
    AUTO_VERDICT struct go_verdict verdict = judge_with(replay, &usual);

    expect_kind(&verdict, whole);
    cr_assert_eq(verdict.test_count, count);
    for (size_t i = 0; i < count; i++)
        cr_assert_eq(verdict.tests[i].kind, each[i], "test %zu: %s", i,
                     go_verdict_name(verdict.tests[i].kind));
}
#define TESTS(text, whole, ...) \
    expect_tests(text, whole, (const enum go_verdict_kind[]){__VA_ARGS__}, \
                 ARRAY_SIZE(((const enum go_verdict_kind[]){__VA_ARGS__})))

Test(go_verdict, each_test_has_its_own)
{
    /* g3 leaks; the second test does not. */
    TESTS(TEST_BINARY
          "g2 go g3; g3 run t3; g3 send c1; g3 block send; g2 send c9 s50; g2 wake g1; g2 end;"
          "g1 run t1; g1 go g4; g4 run t2; g4 test f71; g4 end; g1 exit 0",
          GO_VERDICT_LEAK, GO_VERDICT_LEAK, GO_VERDICT_PASS);
}

Test(go_verdict, a_test_that_stands_still)
{
    TESTS(TEST_BINARY "g2 make c1; g2 recv c1; g2 block recv", GO_VERDICT_GLOBAL_DEADLOCK,
          GO_VERDICT_GLOBAL_DEADLOCK);
    /* The parent waits for it in package testing; the alarm rings. */
    TESTS(TEST_BINARY
          "g2 go g3; g2 recv c8 s50; g2 block recv; g3 run t3; g3 test f71; g3 make c1; g3 recv c1;"
          "g3 block recv; g0 go g9 f51; g9 run t1; g9 panic; g9 fatal panic; g9 exit 2",
          GO_VERDICT_GLOBAL_DEADLOCK, GO_VERDICT_PASS, GO_VERDICT_GLOBAL_DEADLOCK);
    TESTS(TEST_BINARY
          "g2 sleep; g2 block sleep; g0 go g9 f51; g9 run t1; g9 panic; g9 fatal panic; g9 exit 2",
          GO_VERDICT_TIMEOUT, GO_VERDICT_TIMEOUT);
}

Test(go_verdict, a_test_that_crashes)
{
    TESTS(TEST_BINARY
          "g2 end; g1 run t1; g1 go g4; g4 run t2; g4 test f71; g4 go g5; g5 run t3; g5 panic;"
          "g5 fatal panic; g0 exit 2",
          GO_VERDICT_CRASH, GO_VERDICT_PASS, GO_VERDICT_CRASH);
}

Test(go_verdict, roles_are_known_by_name)
{
    cr_assert_eq(go_role_of("testing.tRunner"), GO_ROLE_PROGRAM);
    cr_assert_eq(go_role_of("testing.tRunner.func1:chan send"), GO_ROLE_TESTING);
    cr_assert_eq(go_role_of("testing.(*M).startAlarm.func1"), GO_ROLE_ALARM);
    cr_assert_eq(go_role_of("time.NewTimer:chan make"), GO_ROLE_TIMERS);
    cr_assert_eq(go_role_of("timelines.Run"), GO_ROLE_PROGRAM);
    cr_assert(go_is_runtime("runtime.bgsweep"));
    cr_assert(!go_is_runtime("runtime.main"));
    cr_assert(!go_is_runtime("main.main"));
}
