/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/go/groups.h"
#include "base/cleanup.h"
#include "tests/unit/analyzer/go_script.h"

/* What is observed: twelve seconds, and something happens in each of them. */
#define SECOND 1000000000ull
enum { SECONDS = 12, RUNTIME_FUNCTIONS = 20 };

DEFINE_CLEANUP(cleanup_groups, struct go_groups *, go_groups_free)

struct script {
    char text[16384];
};

static void __attribute__((format(printf, 2, 3))) add(struct script *script, const char *format, ...)
{
    size_t length = strlen(script->text);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(script->text + length, sizeof(script->text) - length, format, arguments);
    va_end(arguments);
}

static void at(struct script *script, int second)
{
    add(script, "at %llu; ", (second + 1) * SECOND + (unsigned)strlen(script->text));
}

static bool is_runtime(void *context, uint32_t function)
{
    return function < RUNTIME_FUNCTIONS;
}

static struct go_groups *feed(const struct script *script)
{
    const struct go_groups_options options = {.from_ns = SECOND,
                                              .until_ns = (1 + SECONDS) * SECOND,
                                              .wait_reasons = go_script_reasons,
                                              .wait_reason_count = go_script_reason_count,
                                              .is_runtime = is_runtime};
    struct go_script read = go_script_read(script->text);
    struct go_groups *groups = NULL;

    cr_assert_eq(go_groups_new(&options, &groups), 0);
    for (size_t i = 0; i < read.count; i++)
        cr_assert_eq(go_groups_event(groups, &read.events[i]), 0);
    free(read.events);
    return groups;
}

/* How suspicious the first group is, how many are in it, and how many of them are abandoned. */
static void expect(const struct script *script, enum go_suspicion suspicion, size_t count, size_t abandoned)
{
    CLEANUP(cleanup_groups) struct go_groups *groups = feed(script);
    CLEANUP(go_grouping_release) struct go_grouping grouping = {0};

    cr_assert_eq(go_groups_judge(groups, &grouping), 0);
    cr_assert_gt(grouping.count, 0);
    cr_assert_eq(grouping.groups[0].suspicion, suspicion, "suspicion %d", (int)grouping.groups[0].suspicion);
    cr_assert_eq(grouping.groups[0].count, count, "%d goroutines", (int)grouping.groups[0].count);
    cr_assert_eq(grouping.groups[0].abandoned, abandoned, "%d abandoned", (int)grouping.groups[0].abandoned);
}

/* g1 makes a goroutine a second, g100..., that sends on a channel of its own, and goes on. With `due`, each
 * sets a timer first. */
static void make_senders(struct script *script, const char *due)
{
    for (int i = 0; i < SECONDS; i++) {
        at(script, i);
        add(script, "g1 go g%d s12 f99; g%d run t2; ", 100 + i, 100 + i);
        if (*due)
            add(script, "g%d timer x1 due %s; ", 100 + i, due);
        add(script, "g%d send c%d s20; g%d block send; g1 yield; ", 100 + i, i, 100 + i);
    }
}

Test(go_groups, more_and_more_that_nobody_lets_go_on_are_a_leak)
{
    struct script script = {""};

    make_senders(&script, "");
    /* Of the last fifth of the time nobody can tell yet; and the last one has not been overtaken. */
    expect(&script, GO_SUSPICION_LEAK, 12, 10);
}

Test(go_groups, a_few_are_no_leak)
{
    struct script script = {""};

    for (int i = 0; i < 4; i++) {
        at(&script, i);
        add(&script, "g1 go g%d s12 f99; g%d run t2; g%d send c%d s20; g%d block send; ", 100 + i, 100 + i,
            100 + i, i, 100 + i);
    }
    /* g1 may still take from the last one's channel. */
    expect(&script, GO_SUSPICION_STILL, 4, 3);
}

Test(go_groups, many_at_once_are_no_leak)
{
    struct script script = {""};

    at(&script, 1);
    for (int i = 0; i < 20; i++)
        add(&script, "g1 go g%d s12 f99; g%d run t2; g%d recv c1 s20; g%d block recv; ", 100 + i, 100 + i,
            100 + i, 100 + i);
    expect(&script, GO_SUSPICION_STILL, 20, 19);
}

Test(go_groups, a_pool_whose_channel_is_used_is_none)
{
    struct script script = {""};

    for (int i = 0; i < SECONDS; i++) {
        at(&script, i);
        add(&script, "g1 go g%d s12 f99; g%d run t2; g%d recv c1 s20; g%d block recv; ", 100 + i, 100 + i,
            100 + i, 100 + i);
        add(&script, "g1 send c1 s30; g1 wake g100; g100 run t2; g100 recv c1 s20; g100 block recv; ");
    }
    expect(&script, GO_SUSPICION_GROWS, 12, 0);
}

Test(go_groups, users_in_the_same_direction_help_nobody)
{
    struct script script = {""};

    for (int i = 0; i < SECONDS; i++) {
        at(&script, i);
        add(&script, "g1 go g%d s12 f99; g%d run t2; g%d send c1 s20; g%d block send; ", 100 + i, 100 + i,
            100 + i, 100 + i);
    }
    expect(&script, GO_SUSPICION_LEAK, 12, 10);
}

Test(go_groups, a_select_is_let_go_on_by_any_of_its_channels)
{
    struct script script = {""}, used = {""};

    for (int i = 0; i < SECONDS; i++) {
        at(&script, i);
        add(&script, "g1 go g%d s12 f99; g%d run t2; g%d select s20 n2; g%d case 0 send c1; ", 100 + i,
            100 + i, 100 + i, 100 + i);
        add(&script, "g%d case 1 recv c2; g%d block select; g1 yield; ", 100 + i, 100 + i);
    }
    used = script;
    add(&used, "g1 send c2 s30;");
    expect(&script, GO_SUSPICION_LEAK, 12, 10);
    expect(&used, GO_SUSPICION_GROWS, 12, 0);
    /* Sending where they send helps nobody. */
    add(&script, "g1 send c1 s30;");
    expect(&script, GO_SUSPICION_LEAK, 12, 10);
}

Test(go_groups, a_pending_timer_may_help)
{
    struct script later = {""}, past = {""};

    make_senders(&later, "99000000000");
    expect(&later, GO_SUSPICION_GROWS, 12, 0);
    make_senders(&past, "3000000000");
    expect(&past, GO_SUSPICION_LEAK, 12, 10);
}

Test(go_groups, a_timer_that_only_sends_helps_who_waits_there)
{
    struct script own = {""}, other = {""};

    for (int i = 0; i < SECONDS; i++) {
        at(&own, i);
        add(&own, "g1 go g%d s12 f99; g%d run t2; g%d timer x1 due 99000000000; ", 100 + i, 100 + i, 100 + i);
        add(&own, "g%d case timer c%d; g%d recv c%d s20; g%d block recv; g1 yield; ", 100 + i, i, 100 + i, i,
            100 + i);
    }
    expect(&own, GO_SUSPICION_GROWS, 12, 0);
    for (int i = 0; i < SECONDS; i++) {
        at(&other, i);
        add(&other, "g1 go g%d s12 f99; g%d run t2; g%d timer x1 due 99000000000; g%d case timer c%d; ",
            100 + i, 100 + i, 100 + i, 100 + i, 500 + i);
        add(&other, "g%d recv c%d s20; g%d block recv; g1 yield; ", 100 + i, i, 100 + i);
    }
    expect(&other, GO_SUSPICION_LEAK, 12, 10);
}

Test(go_groups, who_waits_there_for_long_as_a_rule_is_not_abandoned)
{
    struct script script = {""};

    at(&script, 0);
    add(&script, "g1 go g99 s12 f99; g99 run t2; g99 send c99 s20; g99 block send; ");
    make_senders(&script, "");
    at(&script, 11);
    add(&script, "g1 recv c99 s30; g1 wake g99; g99 run t2; g99 end; ");
    expect(&script, GO_SUSPICION_GROWS, 12, 0);
}

Test(go_groups, siblings_made_together_may_help)
{
    struct script script = {""};

    for (int i = 0; i < SECONDS; i++) {
        at(&script, i);
        add(&script, "g1 go g%d s12 f99; g%d run t2; g%d recv c%d s20; g%d block recv; ", 100 + i, 100 + i,
            100 + i, i, 100 + i);
        add(&script, "g1 go g%d s13 f98; g%d run t3; g%d block io; ", 200 + i, 200 + i, 200 + i);
    }
    expect(&script, GO_SUSPICION_GROWS, 12, 0);
}

Test(go_groups, makers_that_have_ended_help_nobody)
{
    struct script script = {""};

    for (int i = 0; i < SECONDS; i++) {
        at(&script, i);
        add(&script, "g1 go g%d s12 f99; g%d run t2; g%d go g%d s13 f98; ", 100 + i, 100 + i, 100 + i,
            200 + i);
        add(&script, "g%d run t3; g%d lock m1 s20; g%d block lock; g%d end; ", 200 + i, 200 + i, 200 + i,
            100 + i);
    }
    expect(&script, GO_SUSPICION_LEAK, 12, 10);
}

Test(go_groups, a_child_at_work_may_help)
{
    struct script script = {""};

    for (int i = 0; i < SECONDS; i++) {
        at(&script, i);
        add(&script, "g1 go g%d s12 f99; g%d run t2; g%d go g%d s13 f98; ", 100 + i, 100 + i, 100 + i,
            200 + i);
        add(&script, "g%d run t3; g%d sleep s21 n5; g%d block sleep; ", 200 + i, 200 + i, 200 + i);
        add(&script, "g%d wait w1 s20; g%d block group; ", 100 + i, 100 + i);
    }
    expect(&script, GO_SUSPICION_GROWS, 12, 0);
}

Test(go_groups, missing_events_leave_states_unknown)
{
    CLEANUP(cleanup_groups) struct go_groups *groups = NULL;
    CLEANUP(go_grouping_release) struct go_grouping grouping = {0};
    struct script script = {""};

    make_senders(&script, "");
    add(&script, "g0 lost 5;");
    groups = feed(&script);
    cr_assert_eq(go_groups_judge(groups, &grouping), 0);
    cr_assert_eq(grouping.totals.lost, 5);
    cr_assert_eq(grouping.totals.unknown, 12);
    for (size_t i = 0; i < grouping.count; i++)
        cr_assert_eq(grouping.groups[i].abandoned, 0);
}

Test(go_groups, what_was_waited_while_operations_were_not_seen_does_not_count)
{
    struct script script = {""};

    make_senders(&script, "");
    at(&script, 11);
    add(&script, "g0 detail 2; g0 detail 3;");
    /* A second has been seen since, a fifth of the time is more. */
    expect(&script, GO_SUSPICION_GROWS, 12, 0);
}

Test(go_groups, with_lives_alone_growth_is_seen)
{
    CLEANUP(cleanup_groups) struct go_groups *groups = NULL;
    CLEANUP(go_grouping_release) struct go_grouping grouping = {0};
    struct script script = {"g0 detail 1;"};

    for (int i = 0; i < SECONDS; i++) {
        at(&script, i);
        add(&script, "g1 go g%d s12 f99; ", 100 + i);
    }
    groups = feed(&script);
    cr_assert_eq(go_groups_judge(groups, &grouping), 0);
    cr_assert_eq(grouping.totals.created, 12);
    cr_assert_gt(grouping.totals.detail_ns[GO_DETAIL_LIVES], 11000000000u);
    cr_assert_eq(grouping.groups[0].suspicion, GO_SUSPICION_GROWS);
    cr_assert_eq(grouping.groups[0].state, GO_STATE_UNKNOWN);
    cr_assert_eq(grouping.groups[0].abandoned, 0);
}

Test(go_groups, chains_of_makers_are_told_apart_and_rings_are_not)
{
    CLEANUP(cleanup_groups) struct go_groups *groups = NULL;
    CLEANUP(go_grouping_release) struct go_grouping grouping = {0};
    struct script script = {
        "at 1000000000; g1 run t1; g1 go g2 s12 f99; g2 go g3 s13 f98; g1 go g4 s13 f98;"
        "g3 go g5 s12 f99; g5 end; g1 go g6 s14 f5;"};

    groups = feed(&script);
    cr_assert_eq(go_groups_judge(groups, &grouping), 0);
    /* Of before; g2 and g5, g3, g4, g6. */
    cr_assert_eq(grouping.origin_count, 5);
    cr_assert_eq(grouping.origins[GO_ORIGIN_BEFORE].created, 1);
    cr_assert_eq(grouping.origins[1].created, 2);
    cr_assert_eq(grouping.origins[1].ended, 1);
    cr_assert_eq(grouping.origins[1].created_in[0], 2);
    cr_assert_eq(grouping.origins[2].parent, 1);
    cr_assert_eq(grouping.origins[3].parent, GO_ORIGIN_BEFORE);
    cr_assert(grouping.origins[4].system);
    cr_assert_eq(grouping.totals.created, 4);
    cr_assert_eq(grouping.totals.ended, 1);
}

Test(go_groups, memory_goes_with_those_that_live)
{
    CLEANUP(cleanup_groups) struct go_groups *groups = NULL;
    CLEANUP(go_grouping_release) struct go_grouping grouping = {0};
    const struct go_groups_options options = {.from_ns = 1, .until_ns = 1 + SECOND};
    enum { MANY = 300000 };

    cr_assert_eq(go_groups_new(&options, &groups), 0);
    for (uint64_t i = 0; i < MANY; i++) {
        const struct process_event events[] = {
            {.kind = GO_EVENT_CREATE, .ns = i, .goroutine = 1, .other = 2 + i, .site = 12, .value = 99},
            {.kind = GO_EVENT_OPERATE,
             .ns = i,
             .goroutine = 2 + i,
             .object = 64 * (i + 1),
             .operation = GO_OP_CHAN_SEND,
             .site = 20},
            {.kind = GO_EVENT_END, .ns = i, .goroutine = 2 + i},
        };

        for (size_t j = 0; j < 3; j++)
            cr_assert_eq(go_groups_event(groups, &events[j]), 0);
    }
    cr_assert_eq(go_groups_judge(groups, &grouping), 0);
    cr_assert_eq(grouping.origins[1].ended, MANY);
    cr_assert_eq(grouping.count, 1);
    cr_assert_eq(grouping.groups[0].count, 1);
}
