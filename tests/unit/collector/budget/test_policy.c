/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The policy against a made-up program: it needs some CPU time itself and calls its functions at certain
 * rates. */
#include <criterion/criterion.h>
#include <string.h>

#include "collector/budget/policy.h"

#define TICK_NS 20000000u
#define HIT_NS 1000u
#define FUNCTIONS 100

struct program {
    struct budget_policy policy;
    struct probe_unit units[FUNCTIONS];
    uint64_t now_ns, cpu_ns, own_ns, paid_ns;
    unsigned hits[FUNCTIONS]; /* a tick */
    unsigned own_percent;     /* of a CPU */
    bool all_awake;           /* the policy is given units that sleep, too */
    size_t active;            /* how many it was given last */
    unsigned overestimated;   /* so many times: what a hit is counted for, to what it takes */
};

/* Those that sleep are left out, as a caller may. */
static int decide(struct program *program)
{
    struct probe_unit *active[FUNCTIONS];
    size_t count = 0;

    for (unsigned i = 0; i < FUNCTIONS; i++)
        if (program->all_awake || !policy_is_quiet(&program->units[i]))
            active[count++] = &program->units[i];
    program->active = count;
    return policy_decide(&program->policy, active, count, program->now_ns, program->cpu_ns);
}

/* Function 0 is called 5,000 times a tick, 1 to 9 a hundred times, the others once. */
static void start(struct program *program, double share)
{
    memset(program, 0, sizeof(*program));
    for (unsigned i = 0; i < FUNCTIONS; i++)
        program->hits[i] = i < 1 ? 5000 : i < 10 ? 100 : 1;
    program->own_percent = 100;
    program->overestimated = 1;
    program->now_ns = program->cpu_ns = 1000000000;
    policy_start(&program->policy, share);
    decide(program);
}

static void tick(struct program *program)
{
    uint64_t own = (uint64_t)TICK_NS * program->own_percent / 100, paid = 0;

    for (unsigned i = 0; i < FUNCTIONS; i++)
        if (!program->units[i].excluded) {
            program->units[i].cost_ns += (uint64_t)program->hits[i] * HIT_NS;
            paid += (uint64_t)program->hits[i] * HIT_NS;
        }
    program->now_ns += TICK_NS;
    program->cpu_ns += own + paid / program->overestimated;
    program->own_ns += own;
    program->paid_ns += paid;
    cr_assert_geq(decide(program), 0);
}

static void run(struct program *program, double seconds)
{
    for (unsigned i = 0; i < seconds * 1e9 / TICK_NS; i++)
        tick(program);
}

static unsigned out(const struct program *program)
{
    unsigned count = 0;

    for (unsigned i = 0; i < FUNCTIONS; i++)
        count += program->units[i].excluded;
    return count;
}

static double paid_share(const struct program *program)
{
    return (double)program->paid_ns / (double)program->own_ns;
}

Test(policy, everything_stays_in_where_it_is_cheap)
{
    struct program program;

    start(&program, 0.5);
    run(&program, 20);
    cr_expect_eq(out(&program), 0);
}

Test(policy, the_hottest_go_at_once_and_the_rare_ones_never)
{
    struct program program;

    start(&program, 0.05);
    run(&program, 0.2);
    cr_expect(program.units[0].excluded);
    for (unsigned second = 0; second < 60; second++) {
        run(&program, 1);
        for (unsigned i = 10; i < FUNCTIONS; i++)
            cr_assert_not(program.units[i].excluded, "function %u in second %u", i, second);
    }
}

Test(policy, the_share_is_kept_over_time)
{
    const double shares[] = {0.01, 0.05, 0.2};

    for (unsigned i = 0; i < 3; i++) {
        struct program program;

        start(&program, shares[i]);
        run(&program, 60);
        cr_expect_leq(paid_share(&program), shares[i] + 0.01, "%f of %f", paid_share(&program), shares[i]);
        cr_expect_float_eq((double)program.policy.paid_ns, (double)program.paid_ns, 1);
        cr_expect_gt(program.policy.worst_share, 0);
    }
}

Test(policy, a_function_comes_back_when_it_has_cooled_down)
{
    struct program program;

    start(&program, 0.05);
    run(&program, 5);
    cr_assert(program.units[0].excluded || program.units[0].trial);
    program.hits[0] = 1;
    run(&program, 70);
    cr_expect_not(program.units[0].excluded);
    cr_expect_eq(out(&program), 0);
}

/* Seconds that function 0 is in without being on trial when, once it is out, `hits` of it are seen in a tick.
 */
static double passes_for(struct program *program, unsigned hits, double scale)
{
    unsigned in = 0;

    start(program, 0.05);
    run(program, 0.2);
    cr_assert(program->units[0].excluded);
    program->hits[0] = hits;
    program->units[0].scale = scale;
    for (unsigned i = 0; i < 60 * 50; i++) {
        tick(program);
        in += !program->units[0].excluded && !program->units[0].trial;
    }
    cr_expect_float_eq((double)program->policy.paid_ns, (double)program->paid_ns, 1);
    return in / 50.0;
}

Test(policy, what_is_tried_in_a_part_counts_for_the_whole)
{
    struct program program;

    cr_expect_gt(passes_for(&program, 250, 0), 50);
    cr_expect_eq(passes_for(&program, 250, 20), 0);
    cr_expect_leq(paid_share(&program), 0.06);
    cr_expect_gt(passes_for(&program, 5, 20), 50);
}

Test(policy, pauses_between_trials_grow)
{
    struct program program;
    unsigned trials = 0;
    bool was_out = false;

    start(&program, 0.05);
    for (unsigned i = 0; i < 130 * 50; i++) {
        tick(&program);
        trials += was_out && !program.units[0].excluded;
        was_out = program.units[0].excluded;
    }
    cr_expect_geq(trials, 4, "%u", trials);
    cr_expect_leq(trials, 9, "%u", trials); /* 1, 2, 4, ... seconds */
}

Test(policy, what_may_not_go_stays)
{
    struct program program;

    start(&program, 0.01);
    program.units[0].fixed = true;
    run(&program, 2);
    cr_expect_not(program.units[0].excluded);
    cr_expect(program.units[1].excluded);
}

Test(policy, a_function_that_was_hot_yesterday_begins_outside)
{
    struct program program;

    start(&program, 0.1);
    policy_expect_hot(&program.units[0], 0.25, program.now_ns);
    run(&program, 5);
    cr_expect(program.units[0].excluded);
    cr_expect_leq(program.policy.worst_share, 0.1, "%f", program.policy.worst_share);
    program.hits[0] = 1;
    run(&program, 5);
    cr_expect_not(program.units[0].excluded);
}

Test(policy, a_rare_function_on_trial_does_not_go_for_what_another_takes)
{
    struct program program;

    start(&program, 0.05);
    memset(program.hits, 0, sizeof(program.hits));
    program.hits[50] = 1;
    policy_expect_hot(&program.units[50], 0, program.now_ns);
    while (program.units[50].excluded)
        tick(&program);
    cr_assert(program.units[50].trial);
    program.hits[0] = 5000;
    for (unsigned i = 0; i < 100; i++) {
        tick(&program);
        cr_assert_not(program.units[50].excluded, "in tick %u", i);
    }
    cr_expect(program.units[0].excluded);
}

Test(policy, a_barred_one_stays_out_until_it_is_not)
{
    struct program program;

    start(&program, 0.05);
    run(&program, 1);
    cr_expect(policy_exclude_page(&program.units[50], true, program.now_ns));
    cr_expect_not(policy_exclude_page(&program.units[50], true, program.now_ns));
    for (unsigned i = 0; i < 100; i++) {
        run(&program, 1);
        cr_assert(program.units[50].excluded);
    }
    cr_expect_not(policy_exclude_page(&program.units[50], false, program.now_ns));
    run(&program, 3);
    cr_expect_not(program.units[50].excluded);
}

Test(policy, what_stands_is_paid_from_the_share)
{
    struct program program;

    start(&program, 0.05);
    program.policy.standing = 0.03;
    run(&program, 60);
    cr_expect_geq((double)program.policy.paid_ns, (double)program.paid_ns + 0.025 * (double)program.own_ns);
    cr_expect_leq(paid_share(&program), 0.03, "%f", paid_share(&program));
}

/* With a hot one in, what is counted is more than the target has used: nothing is known of its own time. */
Test(policy, cooler_ones_do_not_go_for_an_overestimate)
{
    struct program program;

    start(&program, 0.05);
    program.overestimated = 20;
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        program.hits[i] = i < 1 ? 40000 : i < 10 ? 5 : 1;
        program.units[i].cheap = true;
    }
    for (unsigned i = 0; i < 3000; i++) {
        tick(&program);
        for (unsigned k = 1; k < FUNCTIONS; k++)
            cr_assert_not(program.units[k].excluded, "function %u in tick %u", k, i);
    }
    cr_expect_gt(program.units[0].pause_ns, 0);
}

Test(policy, an_ended_process_only_begins_the_sum_anew)
{
    struct program program;

    start(&program, 0.5);
    run(&program, 1);
    program.cpu_ns = 5;
    run(&program, 1);
    cr_expect_eq(out(&program), 0);
    cr_expect_leq(program.policy.used_ns, 3000000000u);
}

/* Functions 0 to 19 are called 200 times a tick (each alone takes as much as a share of 0.01), the others
 * once. */
static void start_busy(struct program *program, double share)
{
    start(program, share);
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        program->hits[i] = i < 20 ? 200 : 1;
        policy_let_wait(&program->units[i], i < 20 ? 100 - i : 1, program->now_ns);
    }
}

Test(policy, those_that_wait_come_in_the_coolest_first)
{
    struct program program;
    unsigned hot_in = 0;

    start_busy(&program, 0.05);
    for (unsigned i = 0; i < 500; i++) {
        unsigned cool_out = 0;

        tick(&program);
        for (unsigned k = 20; k < FUNCTIONS; k++)
            cool_out += program.units[k].excluded;
        for (unsigned k = 0; k < 20; k++)
            cr_assert(!cool_out || program.units[k].excluded, "%u before %u cool ones", k, cool_out);
    }
    run(&program, 20);
    for (unsigned k = 20; k < FUNCTIONS; k++)
        cr_expect_not(program.units[k].excluded, "%u", k);
    for (unsigned k = 0; k < 20; k++)
        hot_in += !program.units[k].excluded;
    cr_expect_geq(hot_in, 1, "%u", hot_in);
    cr_expect_leq(hot_in, 5, "%u", hot_in);
}

Test(policy, no_second_of_a_slow_start_takes_much_more_than_the_share)
{
    const double shares[] = {0.01, 0.05, 0.2};

    for (unsigned i = 0; i < 3; i++) {
        struct program program;

        start_busy(&program, shares[i]);
        run(&program, 30);
        cr_expect_leq(program.policy.worst_share, 1.5 * shares[i] + 0.01, "%f of %f",
                      program.policy.worst_share, shares[i]);
        cr_expect_leq(paid_share(&program), shares[i] + 0.01);
    }
}

Test(policy, a_trial_has_as_many_as_the_bucket_has_room_for)
{
    struct program program;
    unsigned most = 0;

    start(&program, 0.05);
    for (unsigned i = 0; i < 20; i++) {
        program.hits[i] = 2000;
        policy_expect_hot(&program.units[i], 0.1, program.now_ns);
    }
    for (unsigned i = 0; i < 1500; i++) {
        unsigned in = 0;

        tick(&program);
        for (unsigned k = 0; k < 20; k++)
            in += !program.units[k].excluded;
        most = in > most ? in : most;
    }
    cr_expect_geq(most, 1);
    cr_expect_leq(most, 5, "%u", most); /* 0.05 of half a second holds five times 0.1 of 50 ms */
    for (unsigned k = 0; k < 20; k++)
        cr_expect_gt(program.units[k].cost_ns, 0, "%u was never tried", k);
}

/* Who is not called need not be looked at, and whether it is makes no difference. */
Test(policy, units_that_take_nothing_sleep)
{
    struct program sleepers, all;

    start(&sleepers, 0.05);
    start(&all, 0.05);
    all.all_awake = true;
    for (unsigned i = 0; i < 2000; i++) {
        bool pause = i / 400 % 2;

        for (unsigned f = 10; f < FUNCTIONS; f++)
            sleepers.hits[f] = all.hits[f] = pause ? 0 : 1;
        sleepers.hits[3] = all.hits[3] = pause ? 5000 : 100;
        tick(&sleepers);
        tick(&all);
        cr_assert_eq(out(&sleepers), out(&all), "after %u looks %u instead of %u are out", i, out(&sleepers),
                     out(&all));
        if (i % 400 == 399)
            cr_expect(pause ? sleepers.active <= 10 : sleepers.active == FUNCTIONS, "%zu are active",
                      sleepers.active);
    }
}

/* Those that wait come in later, and nobody has to go for it. */
Test(policy, what_is_owed_is_made_up_for_first)
{
    struct program program;
    unsigned before;

    start_busy(&program, 0.05);
    policy_owe(&program.policy, 0.1e9); /* what the program has for it in two seconds */
    before = out(&program);
    run(&program, 1.5);
    cr_expect_eq(out(&program), before);
    run(&program, 5);
    cr_expect_lt(out(&program), before);
}
