/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Leaves pages of code alone that processes share and are busy with, where copies cost more than the budget
 * has. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "collector/govern/budget_state.h"
#include "collector/govern/pages.h"

#define PAGE_SHIFT 12
#define PART 0.5             /* of the budget: what pages may cost */
#define CHANGED 2.0          /* times as much or as little, before they are chosen anew */
#define CALM_NS 60000000000u /* the latter not before */
#define CACHE_BYTES 1e6      /* where the system does not say */

/* The pages that an image's probes are on. */
struct page_range {
    uint64_t first;
    size_t count;
    struct probed_page *pages;
};

/* -ENOMEM. */
static int find_range(const struct traced_image *image, struct page_range *ret_range)
{
    uint64_t last = 0;

    ret_range->first = UINT64_MAX;
    for (size_t i = 0; i < image->site_count; i++) {
        uint64_t page = image->offsets[i] >> PAGE_SHIFT;

        ret_range->first = page < ret_range->first ? page : ret_range->first;
        last = page > last ? page : last;
    }
    ret_range->count = image->site_count ? (size_t)(last - ret_range->first + 1) : 0;
    ret_range->pages = calloc(ret_range->count + 1, sizeof(*ret_range->pages));
    return ret_range->pages ? 0 : -ENOMEM;
}

static struct probed_page *page_at(const struct page_range *range, uint64_t offset)
{
    uint64_t page = offset >> PAGE_SHIFT;

    return page < range->first || page - range->first >= range->count ? NULL
                                                                      : &range->pages[page - range->first];
}

static struct probed_page *page_of_site(const struct page_range *range, const struct traced_image *image,
                                        size_t i)
{
    return &range->pages[(image->offsets[i] >> PAGE_SHIFT) - range->first];
}

/* Of one that has never had a probe it is known only that it was met. */
static double calls_of(const struct budget *budget, uint32_t function)
{
    return budget_unit(budget, function)->waits ? INFINITY
                                                : budget_calls_per_second(&budget->functions[function]);
}

/* Fills in what is known of the range's pages. */
static void describe_pages(const struct budget *budget, const struct traced_image *image,
                           const struct page_range *range)
{
    const struct probed_page *counted = NULL;
    uint32_t last = NO_FUNCTION;

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
    for (size_t i = 0; i < image->site_count; i++) {
        uint32_t function = budget->probes[(uint32_t)image->cookies[i]].function;
        const struct govern_unit *unit = budget_unit(budget, function);
        struct probed_page *page = page_of_site(range, image, i);

        if ((unit->out && !unit->barred) || (page == counted && function == last))
            continue;
        page->functions++;
        counted = page;
        last = function;
    }
}

/* Has the units of the image barred that have a probe on a barred page, and the others not. Returns whether
 * any has to go. */
static int bar(struct budget *budget, const struct traced_image *image, const struct page_range *range,
               uint64_t now_ns)
{
    bool goes = false;

    memset(budget->marked, 0, budget->function_count);
    for (size_t i = 0; i < image->site_count; i++)
        if (page_of_site(range, image, i)->barred)
            budget->marked[budget->functions[budget->probes[(uint32_t)image->cookies[i]].function].unit] =
                true;
    for (uint32_t i = 0; i < image->function_count; i++) {
        uint32_t unit = budget->functions[image->first_function + i].unit;

        goes |= governor_bar(&budget->units[unit], budget->marked[unit], now_ns);
    }
    return goes;
}

/* -ENOMEM, or whether anybody has to go. */
static int choose(struct budget *budget, struct budget_image *image, const struct turns *turns,
                  uint64_t now_ns)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN), cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
    struct page_range range;
    int r = find_range(image->image, &range);
    AUTO_FREE struct probed_page *pages = range.pages;
    double all;

    if (r)
        return r;
    describe_pages(budget, image->image, &range);
    all = pages_price(pages, range.count, turns, processors > 0 ? (double)processors : 1,
                      cache > 0 ? (double)cache : CACHE_BYTES);
    if (all < CHANGED * image->pages_cost &&
        (CHANGED * all > image->pages_cost || now_ns - image->chosen_ns < CALM_NS))
        return 0;
    image->chosen_ns = now_ns;
    image->pages_cost = all;
    image->kept_cost = pages_choose(pages, range.count, PART * budget->options.share);
    return image->kept_cost < 0 ? -ENOMEM : bar(budget, image->image, &range, now_ns);
}

int budget_pages_look(struct budget *budget, struct budget_image *image, uint64_t now_ns)
{
    double seconds = (double)(now_ns - image->turns_ns) / 1e9;
    AUTO_FREE struct turn_taker *takers = NULL;
    struct turns turns = {0};
    size_t count = 0;
    int r = turns_read(image->image->file.st_dev, image->image->file.st_ino, &takers, &count);

    if (r)
        return r;
    if (image->takers && seconds > 0)
        turns_between(image->takers, image->taker_count, takers, count, seconds, &turns);
    free(image->takers);
    image->takers = take_pointer(takers);
    image->taker_count = count;
    image->turns_ns = now_ns;
    r = turns.seconds > 0 ? choose(budget, image, &turns, now_ns) : 0;
    budget->governor.standing = 0;
    for (size_t i = 0; i < budget->image_count; i++)
        budget->governor.standing += budget->images[i].kept_cost;
    return r;
}
