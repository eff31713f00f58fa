/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What copies of pages cost, and which pages are left alone. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "collector/budget/page_costs.h"

#define PAGES 400
#define CACHE 1e6

static struct probed_page pages[PAGES];

/* Four processes on two processors, 40,000 turns a second; half of the pages are run in each turn. */
static const struct switch_rates four = {.seconds = 1, .cpu_ns = 1.3e9, .changes = 40000, .busy = 4};

static void describe(void)
{
    for (unsigned i = 0; i < PAGES; i++)
        pages[i] = (struct probed_page){.calls = i % 2 ? 100000 : 10, .functions = 1 + i % 20};
}

Test(pages, those_cost_that_processes_share_and_run)
{
    double all;

    describe();
    all = page_costs_estimate(pages, PAGES, &four, 2, CACHE);
    cr_expect_gt(all, 0.05);
    cr_expect_lt(all, 0.3);
    cr_expect_gt(pages[1].cost, 100 * pages[0].cost);
    cr_expect_float_eq(pages[1].cost, pages[3].cost, 1e-12);
}

Test(pages, nothing_costs_that_has_no_probes)
{
    describe();
    pages[1].functions = 0;
    page_costs_estimate(pages, PAGES, &four, 2, CACHE);
    cr_expect_eq(pages[1].cost, 0);
    cr_expect_gt(pages[3].cost, 0);
}

Test(pages, one_process_alone_pays_nothing)
{
    const struct switch_rates alone = {.seconds = 1, .cpu_ns = 1e9, .changes = 0, .busy = 1};

    describe();
    cr_expect_eq(page_costs_estimate(pages, PAGES, &alone, 2, CACHE), 0);
}

Test(pages, what_the_caches_hold_costs_nothing)
{
    describe();
    cr_expect_eq(page_costs_estimate(pages, 60, &four, 2, CACHE), 0);
    cr_expect_gt(page_costs_estimate(pages, PAGES, &four, 2, CACHE), 0);
    cr_expect_eq(page_costs_estimate(pages, PAGES, &four, 2, 32 * CACHE), 0);
}

Test(pages, one_that_was_met_counts_as_run_in_each_turn)
{
    describe();
    pages[0].calls = INFINITY;
    cr_expect(isfinite(page_costs_estimate(pages, PAGES, &four, 2, CACHE)));
    cr_expect_float_eq(pages[0].cost, pages[1].cost, 1e-12);
}

Test(pages, those_go_first_with_which_few_functions_go)
{
    double all, kept, sum = 0, dearest_kept = 0, cheapest_barred = INFINITY;

    describe();
    all = page_costs_estimate(pages, PAGES, &four, 2, CACHE);
    kept = page_costs_exclude(pages, PAGES, all / 3);
    cr_expect_leq(kept, all / 3);
    cr_expect_geq(kept, all / 3 - pages[1].cost);
    for (unsigned i = 0; i < PAGES; i++) {
        double each = pages[i].cost / pages[i].functions;

        if (pages[i].page_excluded)
            cheapest_barred = each < cheapest_barred ? each : cheapest_barred;
        else
            dearest_kept = each > dearest_kept ? each : dearest_kept;
        sum += pages[i].page_excluded ? 0 : pages[i].cost;
    }
    cr_expect_leq(dearest_kept, cheapest_barred);
    cr_expect_float_eq(sum, kept, 1e-9);
    cr_expect_float_eq(page_costs_exclude(pages, PAGES, 1), all,
                       1e-9); /* and all may stay where there is room */
    for (unsigned i = 0; i < PAGES; i++)
        cr_expect_not(pages[i].page_excluded);
}

/* ------------------------------------------------------------------------------------ turns */

Test(context_switches, processes_that_alternate_change_at_each_turn)
{
    const struct process_switches before[] = {{3, 0, 0}, {5, 0, 0}, {9, 7, 7}};
    const struct process_switches after[] = {{3, 500, 100}, {5, 500, 100}, {9, 7, 7}};
    struct switch_rates rates;

    context_switches_between(before, ARRAY_SIZE(before), after, ARRAY_SIZE(after), 2, &rates);
    cr_expect_float_eq(rates.changes, 100, 1e-9);
    cr_expect_float_eq(rates.cpu_ns, 500, 1e-9);
    cr_expect_eq(rates.busy, 2);
}

Test(context_switches, one_that_waits_and_goes_on_does_not_change)
{
    const struct process_switches before[] = {{3, 0, 0}, {5, 0, 0}};
    const struct process_switches after[] = {{3, 5000, 1000}, {5, 50, 3}};
    struct switch_rates rates;

    context_switches_between(before, ARRAY_SIZE(before), after, ARRAY_SIZE(after), 1, &rates);
    cr_expect_float_eq(rates.changes, 6, 1e-9);
    cr_expect_eq(rates.busy, 1);
}

Test(context_switches, those_that_come_go_or_begin_anew_do_not_count)
{
    const struct process_switches before[] = {{3, 9000, 900}, {4, 0, 0}, {5, 0, 0}};
    const struct process_switches after[] = {{2, 700, 70}, {3, 10, 1}, {5, 40, 4}, {8, 6000, 600}};
    struct switch_rates rates;

    context_switches_between(before, ARRAY_SIZE(before), after, ARRAY_SIZE(after), 1, &rates);
    cr_expect_float_eq(rates.cpu_ns, 40, 1e-9);
    cr_expect_eq(rates.changes, 0);
    cr_expect_eq(rates.busy, 1);
}

Test(context_switches, what_a_program_runs_is_read)
{
    struct process_switches *switches = NULL;
    size_t count = 0, found = 0;
    struct stat file;
    pid_t child;

    cr_assert_eq(stat("/proc/self/exe", &file), 0);
    child = fork();
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            usleep(100);
    }
    usleep(50000);
    cr_assert_eq(context_switches_read(file.st_dev, file.st_ino, &switches, &count), 0);
    for (size_t i = 0; i < count; i++) {
        cr_expect(!i || switches[i - 1].pid < switches[i].pid);
        found += switches[i].pid == getpid() || (switches[i].pid == child && switches[i].switches > 10);
    }
    cr_expect_eq(found, 2);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    free(switches);
}
