/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/budget/attachment.h"

#include <sched.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"

/* More groups than that, and the small ones become one. */
#define GROUPS_MAX 96

void attachment_release(struct attachment *attachment)
{
    for (size_t i = 0; i < attachment->group_count; i++)
        free(attachment->groups[i].sites);
    free(attachment->groups);
}

/* ------------------------------------------------------------------------------------ links */

/* From here on the hits of the group's newest link count. */
static void count_newest_link(struct attachment *attachment, const struct probe_group *group)
{
    for (size_t i = 0; i < group->count; i++) {
        struct budget_slot *slot = &attachment->slots[(uint32_t)group->image->cookies[group->sites[i]]];

        __atomic_store_n(&slot->tag, (uint8_t)(slot->tag + 1), __ATOMIC_SEQ_CST);
    }
}

static int attach_group(struct attachment *attachment, const struct probe_group *group, struct error *err)
{
    const struct traced_image *image = group->image;
    AUTO_FREE unsigned long *offsets = calloc(group->count + 1, sizeof(*offsets));
    AUTO_FREE uint64_t *cookies = calloc(group->count + 1, sizeof(*cookies));
    AUTO_FREE bool *refused = calloc(group->count + 1, sizeof(*refused));
    int r;

    if (!offsets || !cookies || !refused)
        return error_no_memory(err);
    for (size_t i = 0; i < group->count; i++) {
        uint64_t cookie = image->cookies[group->sites[i]];
        uint8_t tag = (uint8_t)(attachment->slots[(uint32_t)cookie].tag + 1);

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

    r = attachment->backend->of->attach_sites(attachment->backend, &sites, 0, err);
    for (size_t i = 0; !r && i < group->count; i++)
        image->refused_by_kernel[group->sites[i]] |= refused[i];
    return r;
}

int attachment_add(struct attachment *attachment, const struct traced_image *image, size_t whole,
                   size_t *sites, size_t count, struct error *err)
{
    struct probe_group group = {.image = image,
                                .whole = whole,
                                .part = PROBE_PARTS + attachment->parts++,
                                .sites = sites,
                                .count = count};
    int r;

    if (!count) {
        free(sites);
        return 0;
    }
    r = array_reserve(&attachment->groups, &attachment->group_capacity, attachment->group_count + 1)
            ? error_no_memory(err)
            : attach_group(attachment, &group, err);
    if (r) {
        free(sites);
        return r;
    }
    attachment->groups[attachment->group_count++] = group;
    count_newest_link(attachment, &group);
    return 0;
}

static void begin_relinking(struct attachment *attachment)
{
    attachment->relinking = true;
    attachment->backend->of->relinking(attachment->backend, true);
}

void attachment_poll(struct attachment *attachment)
{
    if (!attachment->relinking || attachment->backend->of->closing(attachment->backend))
        return;
    attachment->relinking = false;
    attachment->backend->of->relinking(attachment->backend, false);
}

/* ------------------------------------------------------------------------------------ old links */

/* The list of groups may grow while `before_close` reads records. */
static int drop(struct attachment *attachment, size_t index, struct error *err)
{
    const struct probe_group group = attachment->groups[index];
    int r = attachment->before_close(attachment->context, &group, err);

    if (r)
        return r;
    attachment->backend->of->detach_part(attachment->backend, group.part);
    free(group.sites);
    attachment->groups[index].sites = NULL;
    attachment->groups[index].dropped = true;
    return 0;
}

static void forget_dropped(struct attachment *attachment)
{
    size_t kept = 0;

    for (size_t g = 0; g < attachment->group_count; g++)
        if (attachment->groups[g].dropped)
            free(attachment->groups[g].sites);
        else
            attachment->groups[kept++] = attachment->groups[g];
    attachment->group_count = kept;
}

void attachment_close_image(struct attachment *attachment, const struct traced_image *image)
{
    for (size_t g = 0; g < attachment->group_count; g++) {
        struct probe_group *group = &attachment->groups[g];

        if (group->image != image || group->dropped)
            continue;
        attachment->backend->of->detach_part(attachment->backend, group->part);
        group->count = 0;
        group->dropped = true;
    }
}

int attachment_join(struct attachment *attachment, size_t first,
                    bool (*keep)(const void *context, uint32_t function), const void *context,
                    struct error *err)
{
    const struct probe_group oldest = attachment->groups[first];
    size_t old_groups = attachment->group_count, kept = first, count = 0;
    size_t *sites = calloc(oldest.image->site_count + 1, sizeof(*sites));
    int r;

    if (!sites)
        return error_no_memory(err);
    for (size_t g = first; g < old_groups; g++)
        for (size_t i = 0; i < attachment->groups[g].count; i++)
            if (keep(context, attachment_function(oldest.image, attachment->groups[g].sites[i])))
                sites[count++] = attachment->groups[g].sites[i];
    begin_relinking(attachment);
    r = attachment_add(attachment, oldest.image, oldest.whole, sites, count, err);
    if (r)
        return r;
    for (size_t g = first; g < old_groups; g++) {
        attachment->backend->of->detach_part(attachment->backend, attachment->groups[g].part);
        free(attachment->groups[g].sites);
    }
    for (size_t g = old_groups; g < attachment->group_count; g++) {
        attachment->groups[kept] = attachment->groups[g];
        attachment->groups[kept].complete_ns = oldest.complete_ns;
        attachment->groups[kept++].cpu_ns = oldest.cpu_ns;
    }
    attachment->group_count = kept;
    return 0;
}

/* ------------------------------------------------------------------------------------ moves */

static enum probe_move move_of(const struct probe_moves *moves, uint32_t function)
{
    return function < moves->count ? moves->moves[function] : PROBE_STAYS;
}

static bool is_small(const struct probe_group *group)
{
    return group->count < group->whole / 2;
}

/* The cost of the dearest function that goes from the group; negative: none goes. */
static double dearest_of(const struct probe_group *group, const struct probe_moves *moves)
{
    double dearest = -1;

    for (size_t i = 0; !group->dropped && i < group->count; i++) {
        uint32_t function = attachment_function(group->image, group->sites[i]);

        if (move_of(moves, function) == PROBE_GOES && moves->rates[function] > dearest)
            dearest = moves->rates[function];
    }
    return dearest;
}

/* Appends the places of the group that do not go. */
static size_t list_staying(const struct probe_group *group, const struct probe_moves *moves, size_t *sites,
                           size_t count)
{
    for (size_t i = 0; i < group->count; i++)
        if (move_of(moves, attachment_function(group->image, group->sites[i])) != PROBE_GOES)
            sites[count++] = group->sites[i];
    return count;
}

/* Makes a link of those of the group that stay, and closes the old one. */
static int renew(struct attachment *attachment, size_t index, const struct probe_moves *moves,
                 struct error *err)
{
    const struct probe_group group = attachment->groups[index];
    size_t *sites = calloc(group.count + 1, sizeof(*sites));
    int r;

    if (!sites)
        return error_no_memory(err);
    r = attachment_add(attachment, group.image, group.whole, sites, list_staying(&group, moves, sites, 0),
                       err);
    return r ? r : drop(attachment, index, err);
}

/* The groups that lose the dearest functions first: each makes the target faster, and with it what comes
 * next. */
static int remove_going(struct attachment *attachment, size_t old_groups, const struct probe_moves *moves,
                        struct error *err)
{
    for (;;) {
        size_t dearest = old_groups;
        double most = -1;
        int r;

        for (size_t g = 0; g < old_groups; g++) {
            double rate = dearest_of(&attachment->groups[g], moves);

            if (rate > most) {
                most = rate;
                dearest = g;
            }
        }
        if (dearest == old_groups)
            return 0;
        r = renew(attachment, dearest, moves, err);
        if (r)
            return r;
    }
}

/* Makes one group of the functions of an image that come, with all small groups of it if these are to
 * `merge`. */
static int bring(struct attachment *attachment, size_t n, size_t old_groups, const struct probe_moves *moves,
                 bool merge, struct error *err)
{
    const struct traced_image *image = moves->images[n];
    size_t *sites = calloc(image->site_count + 1, sizeof(*sites)), count = 0;

    if (!sites)
        return error_no_memory(err);
    for (size_t i = 0; i < image->site_count; i++)
        if (!image->left_ns && move_of(moves, attachment_function(image, i)) == PROBE_COMES)
            sites[count++] = i;
    for (size_t g = 0; merge && g < old_groups; g++) {
        const struct probe_group *group = &attachment->groups[g];

        if (group->image == image && !group->dropped && is_small(group))
            count = list_staying(group, moves, sites, count);
    }
    return attachment_add(attachment, image, moves->wholes[n], sites, count, err);
}

static int bring_coming(struct attachment *attachment, size_t old_groups, const struct probe_moves *moves,
                        bool merge, struct error *err)
{
    int r = 0;

    for (size_t i = 0; !r && i < moves->image_count; i++)
        r = bring(attachment, i, old_groups, moves, merge, err);
    for (size_t g = 0; !r && merge && g < old_groups; g++)
        if (!attachment->groups[g].dropped && is_small(&attachment->groups[g]))
            r = drop(attachment, g, err);
    return r;
}

/* While the target pays for probes that are being removed, this thread runs before it (see uprobe/proxy.h).
 */
static bool run_first(void)
{
    const struct sched_param first = {.sched_priority = 1};

    return sched_getscheduler(0) == SCHED_OTHER && !sched_setscheduler(0, SCHED_FIFO, &first);
}

static void run_as_others(void)
{
    const struct sched_param none = {0};

    sched_setscheduler(0, SCHED_OTHER, &none);
}

int attachment_move(struct attachment *attachment, const struct probe_moves *moves, struct error *err)
{
    size_t old_groups = attachment->group_count;
    bool first;
    int r;

    begin_relinking(attachment);
    first = run_first();
    r = remove_going(attachment, old_groups, moves, err);
    if (first)
        run_as_others();
    if (!r)
        r = bring_coming(attachment, old_groups, moves, old_groups > GROUPS_MAX, err);
    forget_dropped(attachment);
    return r;
}
