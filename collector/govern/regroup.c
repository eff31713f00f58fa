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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "collector/govern/budget_state.h"

/* More groups than that, and the small ones become one. */
#define GROUPS_MAX 48
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
    char path[32];
    int r;

    if (!offsets || !cookies || !refused)
        return error_no_memory(err);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", budget->images[group->image].file);
    for (size_t i = 0; i < group->count; i++) {
        uint64_t cookie = image->cookies[group->sites[i]];
        uint8_t tag = (uint8_t)(budget->slots[(uint32_t)cookie].tag + 1);

        offsets[i] = image->offsets[group->sites[i]];
        cookies[i] = cookie | (uint64_t)tag << COOKIE_TAG_SHIFT;
    }
    const struct uprobe_sites sites = {path, offsets, cookies, group->count, refused};

    r = uprobe_backend_attach_part(budget->options.backend, &sites, group->part, err);
    for (size_t i = 0; !r && i < group->count; i++)
        image->refused_by_kernel[group->sites[i]] |= refused[i];
    return r;
}

int budget_add_group(struct budget *budget, size_t image, size_t *sites, size_t count, struct error *err)
{
    struct budget_group group = {
        .image = image, .part = UPROBE_PARTS + budget->parts++, .sites = sites, .count = count};
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

static bool goes(const struct budget *budget, uint32_t function)
{
    uint32_t unit = budget->functions[function].unit;

    return budget->units[unit].out && !budget->applied[unit];
}

static bool comes(const struct budget *budget, uint32_t function)
{
    uint32_t unit = budget->functions[function].unit;

    return !budget->units[unit].out && budget->applied[unit];
}

static bool is_small(const struct budget *budget, const struct budget_group *group)
{
    return group->count < budget->images[group->image].group_size / 2;
}

/* Whether the group gets another link: somebody goes, or it is one of too many. */
static bool is_affected(const struct budget *budget, const struct budget_group *group, bool merge)
{
    if (merge && is_small(budget, group))
        return true;
    for (size_t i = 0; i < group->count; i++)
        if (goes(budget, function_at(budget, group, i)))
            return true;
    return false;
}

/* Makes a link of those of the group that stay; with what `collected` has, if that is given. */
static int renew(struct budget *budget, const struct budget_group *group, struct error *err)
{
    size_t *sites = calloc(group->count + 1, sizeof(*sites)), count = 0;

    if (!sites)
        return error_no_memory(err);
    for (size_t i = 0; i < group->count; i++)
        if (!goes(budget, function_at(budget, group, i)))
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
        if (comes(budget, budget->probes[(uint32_t)traced->cookies[i]].function))
            sites[count++] = i;
    for (size_t g = 0; merge && g < old_groups; g++) {
        const struct budget_group *group = &budget->groups[g];

        for (size_t i = 0; group->image == image && is_small(budget, group) && i < group->count; i++)
            if (!goes(budget, function_at(budget, group, i)))
                sites[count++] = group->sites[i];
    }
    return budget_add_group(budget, image, sites, count, err);
}

/* ------------------------------------------------------------------------------------ the streams */

/* Functions whose probes change links, or that are not seen from now on, are marked; returns that hang on the
 * old links will not be seen. */
static int tell_streams(struct budget *budget, const bool *affected, size_t old_groups, struct error *err)
{
    int r = 0;

    for (unsigned round = 0; r >= 0 && round < DRAIN_ROUNDS; round++)
        if ((r = budget->options.consume(budget->options.context, err)) == 0)
            break;
    if (r < 0)
        return r;
    memset(budget->marked, 0, budget->function_count);
    for (size_t g = 0; g < old_groups; g++)
        for (size_t i = 0; affected[g] && i < budget->groups[g].count; i++)
            budget->marked[function_at(budget, &budget->groups[g], i)] = true;
    r = 0;
    for (uint32_t i = 0; !r && i < budget->function_count; i++)
        if (budget->functions[i].probed && goes(budget, i))
            r = streams_function_missed(budget->options.streams, i);
    return r ? error_no_memory(err)
             : streams_returns_unseen(budget->options.streams, budget->marked, budget->function_count, err);
}

/* Rows of `blind`: those that go are blind before their probe is taken away, those that come see when it is
 * there. */
static int tell_store(struct budget *budget, struct error *err)
{
    uint64_t now = clock_ns(CLOCK_REALTIME);
    int r = 0;

    for (uint32_t i = 0; !r && i < budget->function_count; i++) {
        if (!budget->functions[i].probed)
            continue;
        if (goes(budget, i) || comes(budget, i))
            r = budget_blind_end(budget, i, now, err);
        if (!r && goes(budget, i))
            r = budget_blind_begin(budget, i, GOVERN_OUT, now, err);
    }
    return r;
}

static void drop_groups(struct budget *budget, const bool *affected, size_t old_groups)
{
    size_t kept = 0;

    for (size_t g = 0; g < budget->group_count; g++) {
        struct budget_group *group = &budget->groups[g];

        if (g < old_groups && affected[g]) {
            uprobe_backend_detach_part(budget->options.backend, group->part);
            free(group->sites);
        } else {
            budget->groups[kept++] = *group;
        }
    }
    budget->group_count = kept;
}

int budget_regroup(struct budget *budget, uint64_t now_ns, struct error *err)
{
    size_t old_groups = budget->group_count;
    bool merge = old_groups > GROUPS_MAX;
    AUTO_FREE bool *affected = calloc(old_groups + 1, sizeof(*affected));
    int r = 0;

    if (!affected)
        return error_no_memory(err);
    budget->regrouping = true;
    uprobe_backend_regrouping(budget->options.backend, true);
    for (size_t g = 0; !r && g < old_groups; g++) {
        const struct budget_group group = budget->groups[g];

        affected[g] = is_affected(budget, &group, merge);
        if (affected[g] && !(merge && is_small(budget, &group)))
            r = renew(budget, &group, err);
    }
    for (size_t i = 0; !r && i < budget->image_count; i++)
        if (budget->images[i].file >= 0)
            r = renew_small(budget, i, old_groups, merge, err);
    if (!r)
        r = tell_streams(budget, affected, old_groups, err);
    if (!r)
        r = tell_store(budget, err);
    if (r)
        return r;
    drop_groups(budget, affected, old_groups);
    for (size_t i = 0; i < budget->function_count; i++)
        budget->applied[i] = budget->units[i].out;
    return 0;
}
