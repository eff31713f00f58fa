/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The policy against a made-up program: each tick it uses some CPU time and its probes are hit. */
#include <criterion/criterion.h>

#include "collector/go/detail_policy.h"

#define TICK_NS 20000000u
#define HIT_NS 1000u

struct program {
    struct go_detail_policy policy;
    uint64_t now_ns, cpu_ns, own_ns, paid_ns;
    unsigned hits[GO_DETAILS]; /* a tick */
    unsigned own_percent;      /* of a CPU */
};

static void start(struct program *program, double share)
{
    const struct go_budget budget = {.share = share, .emulated_ns = HIT_NS, .single_stepped_ns = 10 * HIT_NS};

    go_detail_policy_start(&program->policy, &budget, GO_DETAIL_WAITING);
    program->now_ns = program->cpu_ns = 1000000000;
}

static void tick(struct program *program)
{
    uint64_t own = (uint64_t)TICK_NS * program->own_percent / 100, paid = 0;

    for (enum go_detail i = GO_DETAIL_LIVES; i <= program->policy.detail; i++)
        for (unsigned k = 0; k < program->hits[i]; k++, paid += HIT_NS)
            go_detail_policy_hit(&program->policy, i, false);
    program->now_ns += TICK_NS;
    program->cpu_ns += own + paid;
    program->own_ns += own;
    program->paid_ns += paid;
    go_detail_policy_decide(&program->policy, program->now_ns, program->cpu_ns);
}

static void run(struct program *program, unsigned seconds)
{
    for (unsigned i = 0; i < seconds * (1000000000u / TICK_NS); i++)
        tick(program);
}

static double paid_share(const struct program *program)
{
    return (double)program->paid_ns / (double)program->own_ns;
}

Test(go_detail_policy, everything_is_recorded_where_it_is_cheap)
{
    struct program program = {.hits = {0, 10, 100, 100}, .own_percent = 100};

    start(&program, 0.05);
    run(&program, 20);
    cr_expect_eq(program.policy.detail, GO_DETAIL_WAITING);
}

Test(go_detail_policy, the_share_is_kept_over_time_and_lives_stay_where_they_can)
{
    const double shares[] = {0.01, 0.05, 0.2};

    for (unsigned i = 0; i < 3; i++) {
        struct program program = {.hits = {0, 100, 3000, 8000}, .own_percent = 100};

        start(&program, shares[i]);
        run(&program, 60);
        cr_expect_leq(paid_share(&program), shares[i] + 0.01, "%f of %f", paid_share(&program), shares[i]);
        cr_expect_geq(program.policy.detail, GO_DETAIL_LIVES);
        cr_expect_leq(program.policy.detail, GO_DETAIL_SCHEDULE); /* it may just be trying again */
    }
}

Test(go_detail_policy, nothing_is_recorded_where_even_that_is_too_much)
{
    struct program program = {.hits = {0, 8000, 0, 0}, .own_percent = 100};

    start(&program, 0.05);
    run(&program, 60);
    cr_expect_leq(paid_share(&program), 0.06, "%f", paid_share(&program));
    cr_expect_gt(program.paid_ns, 0u);
}

Test(go_detail_policy, detail_comes_back_when_the_program_calms_down)
{
    struct program program = {.hits = {0, 100, 3000, 8000}, .own_percent = 100};

    start(&program, 0.05);
    run(&program, 5);
    cr_assert_lt(program.policy.detail, GO_DETAIL_WAITING);
    program.hits[GO_DETAIL_SCHEDULE] = program.hits[GO_DETAIL_WAITING] = 50;
    run(&program, 150);
    cr_expect_eq(program.policy.detail, GO_DETAIL_WAITING);
}

Test(go_detail_policy, a_program_that_hardly_runs_is_recorded)
{
    struct program program = {.hits = {0, 2, 60, 60}, .own_percent = 1};

    start(&program, 0.05);
    run(&program, 30);
    cr_expect_eq(program.policy.detail, GO_DETAIL_WAITING);
}

Test(go_detail_policy, records_that_were_lost_have_cost_as_much)
{
    struct program program = {.hits = {0, 0, 0, 0}, .own_percent = 100};

    start(&program, 0.05);
    run(&program, 1);
    for (unsigned i = 0; i < 50; i++) {
        go_detail_policy_lost(&program.policy, 10000);
        tick(&program);
    }
    cr_expect_lt(program.policy.detail, GO_DETAIL_WAITING);
}

Test(go_detail_policy, without_a_budget_nothing_changes)
{
    struct program program = {.hits = {0, 100000, 100000, 100000}, .own_percent = 100};

    start(&program, 0);
    run(&program, 3);
    cr_expect_eq(program.policy.detail, GO_DETAIL_WAITING);
}
