/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Processes whose rights are not those of the others that have their area: they are parted from it. */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "collector/inline/inline_state.h"
#include "collector/process/process.h"

/* Hands on the rest of what a process has recorded, and puts its chunks back: it cannot write there any more.
 */
static int end_threads(struct inline_backend *backend, pid_t pid)
{
    AUTO_FREE pid_t *tids = NULL;
    size_t count = 0;
    int r = process_threads(pid, &tids, &count, NULL);

    for (size_t i = 0; !r && i < count; i++)
        r = inline_end_thread(backend, pid, (uint32_t)tids[i]);
    return r == -ESRCH ? 0 : r; /* its end is reported later */
}

/* -EAGAIN: as live_patch_part(). */
static int part(struct inline_backend *backend, const struct member *member, struct error *err)
{
    AUTO_FREE const struct live_patch **items = inline_patches_of(member);
    int r;

    if (!items)
        return error_no_memory(err);
    if (!member->image_count)
        return 0; /* it has ended */
    pulse_hold(backend->pulse);
    r = live_patch_part(member->pid, &(struct live_patches){items, member->image_count}, err);
    pulse_resume(backend->pulse);
    if (!r || r == -EAGAIN)
        inline_set_area(backend, member->pid, 0);
    return r;
}

/* A child that is not followed has its parent's area all the same. */
static int part_stranger(struct inline_backend *backend, pid_t pid, struct error *err)
{
    struct member stranger = {.pid = pid, .family = inline_family_of(backend, pid)};
    int r = stranger.family ? inline_inherit_images(&stranger) : 0;

    if (!r && stranger.family)
        r = part(backend, &stranger, err);
    free(stranger.images);
    return r == -EAGAIN ? 0 : r;
}

int inline_separate(struct backend *base, pid_t pid, struct error *err)
{
    struct inline_backend *backend = inline_of(base);
    struct member *member = inline_find_member(backend, pid);
    int parted, r;

    if (!member)
        return part_stranger(backend, pid, err);
    if (member->shares || member->family->members == 1)
        return 0;
    parted = part(backend, member, err);
    if (parted && parted != -EAGAIN)
        return parted;
    r = end_threads(backend, pid);
    if (r)
        return error_set(err, r, NULL, "cannot read the buffers of process %d", (int)pid);
    inline_remove_member(backend, member);
    return parted ? -EBUSY : 1;
}

/* One that has ended is reported soon; one that shares its parent's memory itself cannot be parted. */
static bool has_changed(const struct member *member)
{
    struct credentials now;

    return !member->shares && !member->restored && member->family->members > 1 &&
           !process_credentials(member->pid, &now) && !credentials_equal(&now, &member->family->credentials);
}

int inline_changed(struct backend *base, struct changed_process **ret, size_t *ret_count)
{
    struct inline_backend *backend = inline_of(base);
    size_t capacity = HASH_COUNT(backend->members), count = 0;
    struct changed_process *list = calloc(capacity + 1, sizeof(*list));
    struct member *member = NULL, *next = NULL;

    if (!list)
        return -ENOMEM;
    HASH_ITER (hh, backend->members, member, next) {
        if (!has_changed(member))
            continue;
        list[count++] = (struct changed_process){member->pid, member->changed};
        member->changed = true;
    }
    *ret = list;
    *ret_count = count;
    return 0;
}
