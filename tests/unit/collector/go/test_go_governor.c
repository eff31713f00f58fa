/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The governor against a made-up program: each tick it uses some CPU time and its probes are hit. */
#include <criterion/criterion.h>

#include "collector/go/governor.h"

#define TICK_NS 20000000u
#define HIT_NS 1000u

struct program {
    struct go_governor governor;
    uint64_t now_ns, cpu_ns, own_ns, paid_ns;
    unsigned hits[GO_DETAILS]; /* a tick */
    unsigned own_percent;      /* of a CPU */
};

static void start(struct program *program, double share)
{
    const struct go_budget budget = {.share = share, .emulated_ns = HIT_NS, .single_stepped_ns = 10 * HIT_NS};

    go_governor_start(&program->governor, &budget, GO_DETAIL_WAITING);
    program->now_ns = program->cpu_ns = 1000000000;
}

static void tick(struct program *program)
{
    uint64_t own = (uint64_t)TICK_NS * program->own_percent / 100, paid = 0;

    for (enum go_detail i = GO_DETAIL_LIVES; i <= program->governor.detail; i++)
        for (unsigned k = 0; k < program->hits[i]; k++, paid += HIT_NS)
            go_governor_hit(&program->governor, i, false);
    program->now_ns += TICK_NS;
    program->cpu_ns += own + paid;
    program->own_ns += own;
    program->paid_ns += paid;
    go_governor_decide(&program->governor, program->now_ns, program->cpu_ns);
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

Test(go_governor, everything_is_recorded_where_it_is_cheap)
{
    struct program program = {.hits = {0, 10, 100, 100}, .own_percent = 100};

    start(&program, 0.05);
    run(&program, 20);
    cr_expect_eq(program.governor.detail, GO_DETAIL_WAITING);
}

Test(go_governor, the_share_is_kept_over_time_and_lives_stay_where_they_can)
{
    const double shares[] = {0.01, 0.05, 0.2};

    for (unsigned i = 0; i < 3; i++) {
        struct program program = {.hits = {0, 100, 3000, 8000}, .own_percent = 100};

        start(&program, shares[i]);
        run(&program, 60);
        cr_expect_leq(paid_share(&program), shares[i] + 0.01, "%f of %f", paid_share(&program), shares[i]);
        cr_expect_geq(program.governor.detail, GO_DETAIL_LIVES);
        cr_expect_leq(program.governor.detail, GO_DETAIL_SCHEDULE); /* it may just be trying again */
    }
}

Test(go_governor, nothing_is_recorded_where_even_that_is_too_much)
{
    struct program program = {.hits = {0, 8000, 0, 0}, .own_percent = 100};

    start(&program, 0.05);
    run(&program, 60);
    cr_expect_leq(paid_share(&program), 0.06, "%f", paid_share(&program));
    cr_expect_gt(program.paid_ns, 0u);
}

Test(go_governor, detail_comes_back_when_the_program_calms_down)
{
    struct program program = {.hits = {0, 100, 3000, 8000}, .own_percent = 100};

    start(&program, 0.05);
    run(&program, 5);
    cr_assert_lt(program.governor.detail, GO_DETAIL_WAITING);
    program.hits[GO_DETAIL_SCHEDULE] = program.hits[GO_DETAIL_WAITING] = 50;
    run(&program, 150);
    cr_expect_eq(program.governor.detail, GO_DETAIL_WAITING);
}

Test(go_governor, a_program_that_hardly_runs_is_recorded)
{
    struct program program = {.hits = {0, 2, 60, 60}, .own_percent = 1};

    start(&program, 0.05);
    run(&program, 30);
    cr_expect_eq(program.governor.detail, GO_DETAIL_WAITING);
}

Test(go_governor, records_that_were_lost_have_cost_as_much)
{
    struct program program = {.hits = {0, 0, 0, 0}, .own_percent = 100};

    start(&program, 0.05);
    run(&program, 1);
    for (unsigned i = 0; i < 50; i++) {
        go_governor_lost(&program.governor, 10000);
        tick(&program);
    }
    cr_expect_lt(program.governor.detail, GO_DETAIL_WAITING);
}

Test(go_governor, without_a_budget_nothing_changes)
{
    struct program program = {.hits = {0, 100000, 100000, 100000}, .own_percent = 100};

    start(&program, 0);
    run(&program, 3);
    cr_expect_eq(program.governor.detail, GO_DETAIL_WAITING);
}
