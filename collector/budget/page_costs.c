/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/budget/page_costs.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define PAGE_BYTES 4096.0
/* The cost of a page that the caches do not have after a switch: 11 to 14 ns with all pages of PostgreSQL's
 * copied (pages.h), 17 with half of them; some have to go before it helps. */
#define SWITCH_NS 20.0

/* How often a second its copy is run into by another process than the one before. */
static double runs_into(const struct probed_page *page, const struct switch_rates *rates)
{
    return page->calls < rates->changes ? page->calls : rates->changes;
}

/* Whether the copies of what is run between two switches are more than the processors' own caches hold. */
static bool are_too_many(const struct probed_page *pages, size_t count, const struct switch_rates *rates,
                         double processors, double cache_bytes)
{
    double bytes = 0;

    for (size_t i = 0; i < count; i++)
        if (rates->changes > 0)
            bytes += PAGE_BYTES * runs_into(&pages[i], rates) / rates->changes;
    return bytes * rates->busy / processors > cache_bytes;
}

double page_costs_estimate(struct probed_page *pages, size_t count, const struct switch_rates *rates,
                           double processors, double cache_bytes)
{
    bool costs =
        rates->cpu_ns > 0 && rates->busy > 1 && are_too_many(pages, count, rates, processors, cache_bytes);
    double sum = 0;

    for (size_t i = 0; i < count; i++) {
        pages[i].cost =
            costs && pages[i].functions ? SWITCH_NS * runs_into(&pages[i], rates) / rates->cpu_ns : 0;
        sum += pages[i].cost;
    }
    return sum;
}

static int dearest_first(const void *left, const void *right)
{
    const struct probed_page *a = *(struct probed_page *const *)left,
                             *b = *(struct probed_page *const *)right;
    double one = a->cost * b->functions, other = b->cost * a->functions;

    return (one < other) - (one > other);
}

double page_costs_exclude(struct probed_page *pages, size_t count, double affordable)
{
    AUTO_FREE struct probed_page **order = calloc(count + 1, sizeof(*order));
    double sum = 0;
    size_t dear = 0;

    if (!order)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        pages[i].page_excluded = false;
        if (!(pages[i].cost > 0))
            continue;
        sum += pages[i].cost;
        order[dear++] = &pages[i];
    }
    qsort(order, dear, sizeof(*order), dearest_first);
    for (size_t i = 0; i < dear && sum > affordable; i++) {
        order[i]->page_excluded = true;
        sum -= order[i]->cost;
    }
    return sum > 0 ? sum : 0;
}
