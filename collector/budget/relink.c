/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Moves probes between links.
 *
 * The places that stay have a new link before the old one is closed, and take turns as bpf/budget.h says, so
 * that none of their calls is missed or recorded twice. What does get lost is the return probe of a call that
 * is open meanwhile, since it hangs on the old link: such a return is inferred, and the streams are told
 * before the old link goes.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "collector/budget/budget_state.h"

/* More groups than that, and the small ones become one. */
#define GROUPS_MAX 96
#define DRAIN_ROUNDS 16

static uint32_t function_at(const struct budget *budget, const struct budget_group *group, size_t i)
{
    const struct traced_image *image = budget->images[group->image].image;

    return budget->probes[(uint32_t)image->cookies[group->sites[i]]].function;
}

/* ------------------------------------------------------------------------------------ links */

/* From here on the hits of the group's newest link count. */
static void take_turn(struct budget *budget, const struct budget_group *group)
{
    const struct traced_image *image = budget->images[group->image].image;

    for (size_t i = 0; i < group->count; i++) {
        struct budget_slot *slot = &budget->slots[(uint32_t)image->cookies[group->sites[i]]];

        __atomic_store_n(&slot->tag, (uint8_t)(slot->tag + 1), __ATOMIC_SEQ_CST);
    }
}

static int attach_group(struct budget *budget, const struct budget_group *group, struct error *err)
{
    const struct traced_image *image = budget->images[group->image].image;
    AUTO_FREE unsigned long *offsets = calloc(group->count + 1, sizeof(*offsets));
    AUTO_FREE uint64_t *cookies = calloc(group->count + 1, sizeof(*cookies));
    AUTO_FREE bool *refused = calloc(group->count + 1, sizeof(*refused));
    int r;

    if (!offsets || !cookies || !refused)
        return error_no_memory(err);
    for (size_t i = 0; i < group->count; i++) {
        uint64_t cookie = image->cookies[group->sites[i]];
        uint8_t tag = (uint8_t)(budget->slots[(uint32_t)cookie].tag + 1);

        offsets[i] = image->offsets[group->sites[i]];
        cookies[i] = cookie | (uint64_t)tag << COOKIE_TAG_SHIFT;
    }
    const struct probe_sites sites = {
        .file = elf_image_fd(image->elf),
        .name = image->path,
        .offsets = offsets,
        .cookies = cookies,
        .count = group->count,
        .part = group->part,
        .refused = refused,
    };

    r = budget->options.backend->of->attach_sites(budget->options.backend, &sites, 0, err);
    for (size_t i = 0; !r && i < group->count; i++)
        image->refused_by_kernel[group->sites[i]] |= refused[i];
    return r;
}

int budget_add_group(struct budget *budget, size_t image, size_t *sites, size_t count, struct error *err)
{
    struct budget_group group = {
        .image = image, .part = PROBE_PARTS + budget->parts++, .sites = sites, .count = count};
    int r;

    if (!count) {
        free(sites);
        return 0;
    }
    r = array_reserve(&budget->groups, &budget->group_capacity, budget->group_count + 1)
            ? error_no_memory(err)
            : attach_group(budget, &group, err);
    if (r) {
        free(sites);
        return r;
    }
    budget->groups[budget->group_count++] = group;
    take_turn(budget, &group);
    return 0;
}

/* ------------------------------------------------------------------------------------ who moves */

static bool is_small(const struct budget *budget, const struct budget_group *group)
{
    return group->count < budget->images[group->image].group_size / 2;
}

/* How much the hottest function takes that goes from the group; negative: none goes. */
static double heat_of(const struct budget *budget, const struct budget_group *group)
{
    double heat = -1;

    for (size_t i = 0; i < group->count; i++) {
        const struct probe_unit *unit = budget_unit(budget, function_at(budget, group, i));

        if (budget_goes(budget, function_at(budget, group, i)) && unit->recent_ns > heat)
            heat = unit->recent_ns;
    }
    return heat;
}

/* Makes a link of those of the group that stay. */
static int renew(struct budget *budget, const struct budget_group *group, struct error *err)
{
    size_t *sites = calloc(group->count + 1, sizeof(*sites)), count = 0;

    if (!sites)
        return error_no_memory(err);
    for (size_t i = 0; i < group->count; i++)
        if (!budget_goes(budget, function_at(budget, group, i)))
            sites[count++] = group->sites[i];
    return budget_add_group(budget, group->image, sites, count, err);
}

/* All small groups of an image as one, those that come among them. */
static int renew_small(struct budget *budget, size_t image, size_t old_groups, bool merge, struct error *err)
{
    const struct traced_image *traced = budget->images[image].image;
    size_t *sites = calloc(traced->site_count + 1, sizeof(*sites)), count = 0;

    if (!sites)
        return error_no_memory(err);
    for (size_t i = 0; i < traced->site_count; i++)
        if (!traced->left_ns && budget_comes(budget, budget->probes[(uint32_t)traced->cookies[i]].function))
            sites[count++] = i;
    for (size_t g = 0; merge && g < old_groups; g++) {
        const struct budget_group *group = &budget->groups[g];

        for (size_t i = 0;
             group->image == image && !group->dropped && is_small(budget, group) && i < group->count; i++)
            if (!budget_goes(budget, function_at(budget, group, i)))
                sites[count++] = group->sites[i];
    }
    return budget_add_group(budget, image, sites, count, err);
}

/* ------------------------------------------------------------------------------------ the old links */

/* Functions of a group whose link is about to be closed: returns that hang on it will not be seen. */
static int lose_returns(struct budget *budget, const struct budget_group *group, struct error *err)
{
    int r = 0;

    for (unsigned round = 0; round < DRAIN_ROUNDS; round++)
        if ((r = budget->options.consume(budget->options.context, err)) <= 0)
            break;
    if (r < 0)
        return r;
    memset(budget->marked, 0, budget->function_count);
    for (size_t i = 0; i < group->count; i++)
        budget->marked[function_at(budget, group, i)] = true;
    return streams_returns_unseen(budget->options.streams, budget->marked, budget->function_count, err);
}

static int drop(struct budget *budget, size_t index, struct error *err)
{
    const struct budget_group group = budget->groups[index]; /* the list may grow while records are read */
    int r = lose_returns(budget, &group, err);

    if (r)
        return r;
    budget->options.backend->of->detach_part(budget->options.backend, group.part);
    free(group.sites);
    budget->groups[index].sites = NULL;
    budget->groups[index].dropped = true;
    return 0;
}

static void forget_dropped(struct budget *budget)
{
    size_t kept = 0;

    for (size_t g = 0; g < budget->group_count; g++)
        if (!budget->groups[g].dropped)
            budget->groups[kept++] = budget->groups[g];
    budget->group_count = kept;
}

void budget_leave(struct budget *budget, const struct traced_image *image)
{
    for (size_t g = 0; g < budget->group_count; g++) {
        struct budget_group *group = &budget->groups[g];

        if (budget->images[group->image].image != image || group->dropped)
            continue;
        budget->options.backend->of->detach_part(budget->options.backend, group->part);
        group->count = 0;
        group->dropped = true;
    }
}

int budget_join_groups(struct budget *budget, size_t first, struct error *err)
{
    const struct budget_group oldest = budget->groups[first];
    size_t old_groups = budget->group_count, kept = first, count = 0;
    size_t *sites = calloc(budget->images[oldest.image].image->site_count + 1, sizeof(*sites));
    int r;

    if (!sites)
        return error_no_memory(err);
    for (size_t g = first; g < old_groups; g++)
        for (size_t i = 0; i < budget->groups[g].count; i++)
            if (!budget_unit(budget, function_at(budget, &budget->groups[g], i))->out)
                sites[count++] = budget->groups[g].sites[i];
    budget->relinking = true;
    budget->options.backend->of->relinking(budget->options.backend, true);
    r = budget_add_group(budget, oldest.image, sites, count, err);
    if (r)
        return r;
    for (size_t g = first; g < old_groups; g++) {
        budget->options.backend->of->detach_part(budget->options.backend, budget->groups[g].part);
        free(budget->groups[g].sites);
    }
    for (size_t g = old_groups; g < budget->group_count; g++) {
        budget->groups[kept] = budget->groups[g];
        budget->groups[kept].complete_ns = oldest.complete_ns;
        budget->groups[kept++].cpu_ns = oldest.cpu_ns;
    }
    budget->group_count = kept;
    return 0;
}

/* ------------------------------------------------------------------------------------ the moves */

/* Those that go are blind before their probes are taken away. */
static int begin_blind(struct budget *budget, struct error *err)
{
    uint64_t now = clock_ns(CLOCK_REALTIME);
    int r = 0;

    for (uint32_t i = 0; !r && i < budget->function_count; i++) {
        if (!budget->functions[i].probed || !budget_goes(budget, i))
            continue;
        if (streams_function_missed(budget->options.streams, i))
            return error_no_memory(err);
        r = budget_blind_end(budget, i, now, err);
        if (!r)
            r = budget_blind_begin(budget, i, FUNCTION_EXCLUDED, now, err);
    }
    return r;
}

/* Those that come see again once their probes are there. */
static int end_blind(struct budget *budget, struct error *err)
{
    uint64_t now = clock_ns(CLOCK_REALTIME);
    int r = 0;

    for (uint32_t i = 0; !r && i < budget->function_count; i++)
        if (budget->functions[i].probed && budget_comes(budget, i))
            r = budget_blind_end(budget, i, now, err);
    return r;
}

/* The hottest first: each makes the target faster, and with it what comes next. */
static int cool_groups(struct budget *budget, size_t old_groups, struct error *err)
{
    for (;;) {
        size_t hottest = old_groups;
        double most = -1;
        int r;

        for (size_t g = 0; g < old_groups; g++) {
            double heat = budget->groups[g].dropped ? -1 : heat_of(budget, &budget->groups[g]);

            if (heat > most) {
                most = heat;
                hottest = g;
            }
        }
        if (hottest == old_groups)
            return 0;
        const struct budget_group group = budget->groups[hottest];

        r = renew(budget, &group, err);
        if (!r)
            r = drop(budget, hottest, err);
        if (r)
            return r;
    }
}

static int join_small(struct budget *budget, size_t old_groups, bool merge, struct error *err)
{
    int r = 0;

    for (size_t i = 0; !r && i < budget->image_count; i++)
        if (!budget->images[i].apart)
            r = renew_small(budget, i, old_groups, merge, err);
    for (size_t g = 0; !r && merge && g < old_groups; g++)
        if (!budget->groups[g].dropped && is_small(budget, &budget->groups[g]))
            r = drop(budget, g, err);
    return r;
}

/* While the target pays for what is on its way out, this thread goes before it (see backend/proxy.h). */
static bool go_first(void)
{
    const struct sched_param first = {.sched_priority = 1};

    return sched_getscheduler(0) == SCHED_OTHER && !sched_setscheduler(0, SCHED_FIFO, &first);
}

static void take_turns(void)
{
    const struct sched_param none = {0};

    sched_setscheduler(0, SCHED_OTHER, &none);
}

int budget_relink(struct budget *budget, struct error *err)
{
    size_t old_groups = budget->group_count;
    bool first;
    int r;

    budget->relinking = true;
    budget->options.backend->of->relinking(budget->options.backend, true);
    r = begin_blind(budget, err);
    first = go_first();
    if (!r)
        r = cool_groups(budget, old_groups, err);
    if (first)
        take_turns();
    if (!r)
        r = join_small(budget, old_groups, old_groups > GROUPS_MAX, err);
    if (!r)
        r = budget_move_inline(budget, err);
    if (!r)
        r = end_blind(budget, err);
    forget_dropped(budget);
    for (size_t i = 0; !r && i < budget->function_count; i++)
        budget->applied[i] = budget->units[i].out || budget_is_ahead(budget, (uint32_t)i);
    return r;
}
