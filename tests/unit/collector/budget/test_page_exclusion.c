/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which functions of a program lose their probes since they are on pages that processes share. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

#include "collector/budget/budget_state.h"

#define PAGES 3000u
#define FUNCTIONS (2 * PAGES) /* two on each page: the first has a uprobe, the second an inline probe */
#define FIRST 10u             /* the number of function 0 */
#define SECOND_NS 1000000000u

static struct image_function functions[FUNCTIONS];
static struct inline_image inlined;
static struct traced_image image;
static struct budget_image budget_image = {.image = &image};
static struct budget budget;

/* More processes than processors, which turn from one to another all the time. */
static struct switch_rates busy = {.seconds = 1, .cpu_ns = 1.3e9, .changes = 40000};

static bool is_hot(unsigned function)
{
    return function / 2 % 2;
}

static bool is_inlined(unsigned function)
{
    return function % 2;
}

static void *zeros(size_t count, size_t size)
{
    void *room = calloc(count, size);

    cr_assert(room);
    return room;
}

/* Every second page has functions that are called often; `counted`: that is known from counts, not from
 * stacks. */
static void describe(bool counted)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    busy.busy = 4 * (unsigned)(processors > 0 ? processors : 1);
    inlined = (struct inline_image){.chosen = zeros(FUNCTIONS, sizeof(bool)), .count = FUNCTIONS};
    image = (struct traced_image){.functions = functions,
                                  .function_count = FUNCTIONS,
                                  .first_function = FIRST,
                                  .offsets = zeros(FUNCTIONS, sizeof(*image.offsets)),
                                  .cookies = zeros(FUNCTIONS, sizeof(*image.cookies)),
                                  .inlined = &inlined};
    budget =
        (struct budget){.options.share = 0.05,
                        .accounts.function_count = FIRST + FUNCTIONS,
                        .accounts.functions = zeros(FIRST + FUNCTIONS, sizeof(*budget.accounts.functions)),
                        .accounts.units = zeros(FIRST + FUNCTIONS, sizeof(*budget.accounts.units)),
                        .marked = zeros(FIRST + FUNCTIONS, sizeof(*budget.marked)),
                        .accounts.probes = zeros(FUNCTIONS, sizeof(*budget.accounts.probes))};
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        struct budget_function *function = &budget.accounts.functions[FIRST + i];

        functions[i] = (struct image_function){.file_offset = (7 + i / 2) * 4096 + i % 2 * 64, .size = 32};
        *function = (struct budget_function){.probed = true, .inlined = is_inlined(i), .unit = FIRST + i};
        inlined.chosen[i] = is_inlined(i);
        if (counted) {
            function->recorded = 1;
            function->recent_calls = is_hot(i) ? 100000 : 0;
            function->recent_span_ns = 1e9;
        } else {
            function->profiled = is_hot(i);
            budget.accounts.units[FIRST + i].waits = budget.accounts.units[FIRST + i].excluded =
                is_hot(i) && !is_inlined(i);
        }
        if (is_inlined(i))
            continue;
        budget.accounts.probes[image.site_count].function = FIRST + i;
        image.offsets[image.site_count] = functions[i].file_offset;
        image.cookies[image.site_count] = image.site_count;
        image.site_count++;
    }
}

static void release(void)
{
    free(inlined.chosen);
    free(image.offsets);
    free(image.cookies);
    free(budget.accounts.functions);
    free(budget.accounts.units);
    free(budget.marked);
    free(budget.accounts.probes);
}

static unsigned count_barred(bool hot, bool with_inline)
{
    unsigned page_excluded = 0;

    for (unsigned i = 0; i < FUNCTIONS; i++) {
        const struct probe_unit *unit = &budget.accounts.units[FIRST + i];

        if (is_hot(i) != hot || is_inlined(i) != with_inline)
            continue;
        page_excluded += unit->page_excluded;
        cr_expect(!unit->page_excluded || unit->excluded);
    }
    return page_excluded;
}

/* All of a kind are on hot pages, or none. Some may stay: for half of the budget. */
static void expect_barred(bool page_excluded)
{
    cr_expect_eq(count_barred(false, false), 0);
    cr_expect_eq(count_barred(false, true), 0);
    cr_expect_eq(count_barred(true, false), count_barred(true, true));
    if (page_excluded) {
        cr_expect_gt(count_barred(true, true), PAGES / 2 * 9 / 10);
        cr_expect_lt(count_barred(true, true), PAGES / 2);
    } else {
        cr_expect_eq(count_barred(true, true), 0);
    }
}

Test(page_exclusion, uprobes_and_inline_probes_go_from_hot_pages)
{
    describe(true);
    cr_assert_eq(budget_exclude_pages(&budget, &budget_image, &busy, SECOND_NS), 1);
    expect_barred(true);
    cr_expect_leq(budget_image.kept_cost, 0.025);
    cr_assert_eq(budget_exclude_pages(&budget, &budget_image, &busy, 2 * SECOND_NS), 0);
    expect_barred(true);
    release();
}

Test(page_exclusion, what_was_met_on_stacks_is_hot)
{
    describe(false);
    cr_assert_eq(budget_exclude_pages(&budget, &budget_image, &busy, SECOND_NS), 1);
    expect_barred(true);
    release();
}

Test(page_exclusion, they_come_back_after_a_quiet_minute)
{
    struct switch_rates quiet = busy;

    describe(true);
    quiet.changes = 1;
    cr_assert_eq(budget_exclude_pages(&budget, &budget_image, &busy, SECOND_NS), 1);
    cr_assert_eq(budget_exclude_pages(&budget, &budget_image, &quiet, 30ull * SECOND_NS), 0);
    expect_barred(true);
    cr_assert_eq(budget_exclude_pages(&budget, &budget_image, &quiet, 62ull * SECOND_NS), 0);
    expect_barred(false);
    release();
}

Test(page_exclusion, one_process_keeps_all)
{
    struct switch_rates alone = busy;

    describe(true);
    alone.busy = 1;
    cr_assert_eq(budget_exclude_pages(&budget, &budget_image, &alone, SECOND_NS), 0);
    expect_barred(false);
    release();
}
