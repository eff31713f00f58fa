/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Excludes functions on pages of code that processes share and are busy with, where copies cost more than the
 * budget has. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "collector/budget/budget_state.h"
#include "collector/budget/page_costs.h"

#define PAGE_SHIFT 12
#define PART 0.5             /* of the budget: what pages may cost */
#define CHANGED 2.0          /* times as much or as little, before they are chosen anew */
#define CALM_NS 60000000000u /* the latter not before */
#define CACHE_BYTES 1e6      /* where the system does not say */

/* The pages that an image's probes are on, inline probes too. */
struct page_range {
    uint64_t first;
    size_t count;
    struct probed_page *pages;
};

/* A probe of the image's: the number of its function, and its page. */
struct place {
    uint32_t number;
    uint64_t page;
};

/* Places in the file, and behind them its functions, those that have inline probes. */
static size_t place_count(const struct traced_image *image)
{
    return image->site_count + (image->inlined ? image->function_count : 0);
}

/* False: there is none. */
static bool get_place(const struct budget *budget, const struct traced_image *image, size_t i,
                      struct place *ret_place)
{
    size_t function = i - image->site_count;

    if (i < image->site_count)
        *ret_place = (struct place){.number = budget->accounts.probes[(uint32_t)image->cookies[i]].function,
                                    .page = image->offsets[i] >> PAGE_SHIFT};
    else
        *ret_place = (struct place){.number = image->first_function + (uint32_t)function,
                                    .page = image->functions[function].file_offset >> PAGE_SHIFT};
    return i < image->site_count || image->inlined->chosen[function];
}

/* -ENOMEM. */
static int find_range(const struct budget *budget, const struct traced_image *image,
                      struct page_range *ret_range)
{
    uint64_t first = UINT64_MAX, end = 0;
    struct place place;

    for (size_t i = 0; i < place_count(image); i++) {
        if (!get_place(budget, image, i, &place))
            continue;
        first = place.page < first ? place.page : first;
        end = place.page >= end ? place.page + 1 : end;
    }
    *ret_range = (struct page_range){.first = first, .count = end > first ? (size_t)(end - first) : 0};
    ret_range->pages = calloc(ret_range->count + 1, sizeof(*ret_range->pages));
    return ret_range->pages ? 0 : -ENOMEM;
}

static struct probed_page *page_at(const struct page_range *range, uint64_t offset)
{
    uint64_t page = offset >> PAGE_SHIFT;

    return page < range->first || page - range->first >= range->count ? NULL
                                                                      : &range->pages[page - range->first];
}

/* Of a function that has never been counted it is known only that it was sampled. */
static double calls_of(const struct budget *budget, uint32_t number)
{
    const struct budget_function *function = &budget->accounts.functions[number];

    return budget_unit(budget, number)->waits ||
                   (function->inlined && function->profiled && !function->recorded)
               ? INFINITY
               : budget_calls_per_second(function);
}

static bool is_excluded_anyway(const struct probe_unit *unit)
{
    return unit->excluded && !unit->page_excluded;
}

/* Fills in what is known of the range's pages. */
static void describe_pages(const struct budget *budget, const struct traced_image *image,
                           const struct page_range *range)
{
    struct place last = {.number = NO_FUNCTION};

    for (uint32_t i = 0; i < image->function_count; i++) {
        const struct image_function *function = &image->functions[i];
        double calls = calls_of(budget, image->first_function + i);

        for (uint64_t at = function->file_offset >> PAGE_SHIFT << PAGE_SHIFT;
             calls > 0 && at < function->file_offset + function->size; at += 1u << PAGE_SHIFT) {
            struct probed_page *page = page_at(range, at);

            if (page && calls > page->calls)
                page->calls = calls;
        }
    }
    for (size_t i = 0; i < place_count(image); i++) {
        struct place place;

        if (!get_place(budget, image, i, &place) || is_excluded_anyway(budget_unit(budget, place.number)) ||
            (place.page == last.page && place.number == last.number))
            continue;
        range->pages[place.page - range->first].functions++;
        last = place;
    }
}

/* Has the units of the image page_excluded that have a probe on a page_excluded page, and the others not.
 * Returns whether any has to go. */
static int exclude_functions(struct budget *budget, const struct traced_image *image,
                             const struct page_range *range, uint64_t now_ns)
{
    bool goes = false;
    struct place place;

    memset(budget->marked, 0, budget->accounts.function_count);
    for (size_t i = 0; i < place_count(image); i++)
        if (get_place(budget, image, i, &place) && range->pages[place.page - range->first].page_excluded)
            budget->marked[budget->accounts.functions[place.number].unit] = true;
    for (uint32_t i = 0; i < image->function_count; i++) {
        uint32_t unit = budget->accounts.functions[image->first_function + i].unit;

        goes |= policy_exclude_page(&budget->accounts.units[unit], budget->marked[unit], now_ns);
    }
    return goes;
}

int budget_exclude_pages(struct budget *budget, struct budget_image *image, const struct switch_rates *rates,
                         uint64_t now_ns)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN), cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
    struct page_range range;
    int r = find_range(budget, image->image, &range);
    AUTO_FREE struct probed_page *pages = range.pages;
    double all;

    if (r)
        return r;
    describe_pages(budget, image->image, &range);
    all = page_costs_estimate(pages, range.count, rates, processors > 0 ? (double)processors : 1,
                              cache > 0 ? (double)cache : CACHE_BYTES);
    if (all < CHANGED * image->pages_cost &&
        (CHANGED * all > image->pages_cost || now_ns - image->chosen_ns < CALM_NS))
        return 0;
    image->chosen_ns = now_ns;
    image->pages_cost = all;
    image->kept_cost = page_costs_exclude(pages, range.count, PART * budget->options.share);
    return image->kept_cost < 0 ? -ENOMEM : exclude_functions(budget, image->image, &range, now_ns);
}

int budget_sample_pages(struct budget *budget, struct budget_image *image, uint64_t now_ns)
{
    double seconds = (double)(now_ns - image->switches_ns) / 1e9;
    AUTO_FREE struct process_switches *switches = NULL;
    struct switch_rates rates = {0};
    size_t count = 0;
    int r = context_switches_read(image->image->file.st_dev, image->image->file.st_ino, &switches, &count);

    if (r)
        return r;
    if (image->switches && seconds > 0)
        context_switches_between(image->switches, image->switches_count, switches, count, seconds, &rates);
    free(image->switches);
    image->switches = take_pointer(switches);
    image->switches_count = count;
    image->switches_ns = now_ns;
    r = rates.seconds > 0 ? budget_exclude_pages(budget, image, &rates, now_ns) : 0;
    budget->pages_share = 0;
    for (size_t i = 0; i < budget->image_count; i++)
        budget->pages_share += budget->images[i].kept_cost;
    return r;
}
