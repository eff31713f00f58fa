/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The children of patched processes: which have their parent's area, which work on its slots, which are
 * parted. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "collector/inline/inline_state.h"
#include "collector/inline/stale_patches.h"

#define STRANGERS_MAX 10000u /* threads of one family that are looked up in /proc */

static void remove_shared_slots(struct inline_backend *backend, struct shared_slots *shared)
{
    HASH_DEL(backend->shared_slots, shared);
    free(shared);
}

void inline_remove_shared_slots(struct inline_backend *backend, const struct family *family)
{
    struct shared_slots *shared = NULL, *next = NULL;

    HASH_ITER (hh, backend->shared_slots, shared, next)
        if (shared->family == family)
            remove_shared_slots(backend, shared);
}

static struct shared_slots *find_shared_slots(const struct inline_backend *backend, uint32_t child)
{
    struct shared_slots *shared;

    HASH_FIND(hh, backend->shared_slots, &child, sizeof(child), shared);
    return shared;
}

uint32_t inline_owner_of(const struct inline_backend *backend, uint32_t tid)
{
    const struct shared_slots *shared = backend->shared_slots ? find_shared_slots(backend, tid) : NULL;

    return shared ? shared->owner : tid;
}

int inline_share_slots(struct inline_backend *backend, const struct inline_slot_sharing *order)
{
    struct member *member = inline_find_member(backend, order->pid);
    struct shared_slots *shared;
    int r;

    if (!member || find_shared_slots(backend, order->child))
        return 0;
    shared = calloc(1, sizeof(*shared));
    if (!shared)
        return -ENOMEM;
    shared->child = order->child;
    shared->owner = inline_owner_of(backend, order->parent);
    shared->before = order->parent;
    shared->family = member->family;
    r = agent_reader_read_to(shared->family->reader, shared->owner, order->offset);
    HASH_ADD(hh, backend->shared_slots, child, sizeof(shared->child), shared);
    if (!r)
        r = agent_reader_share_slots(shared->family->reader, shared->owner, order->wanted ? order->child : 0);
    return inline_was_read(backend, shared->family, r);
}

int inline_end_owner(struct inline_backend *backend, struct family *family, uint32_t owner)
{
    bool is_shared = false;

    for (struct shared_slots *shared = backend->shared_slots; shared; shared = shared->hh.next) {
        shared->owner_ended |= shared->owner == owner;
        is_shared |= shared->owner == owner;
    }
    return is_shared ? 0 : inline_was_read(backend, family, agent_reader_end(family->reader, owner));
}

int inline_end_sharing(struct inline_backend *backend, uint32_t child, uint32_t offset)
{
    struct shared_slots *shared = find_shared_slots(backend, child);
    struct family *family;
    uint32_t owner, before;
    bool ended, is_last = true;
    int r;

    if (!shared)
        return 0;
    family = shared->family;
    owner = shared->owner;
    before = shared->before;
    ended = shared->owner_ended;
    r = agent_reader_read_to(family->reader, owner, offset);
    remove_shared_slots(backend, shared);
    for (shared = backend->shared_slots; shared; shared = shared->hh.next) {
        if (shared->before != child)
            continue;
        shared->before = before; /* a child that was killed while it waited for its own */
        is_last = false;
    }
    if (!r && is_last)
        r = agent_reader_share_slots(family->reader, owner, before);
    r = inline_was_read(backend, family, r);
    return !r && ended ? inline_end_owner(backend, family, owner) : r;
}

/* What has changed in the family since a child was born. -ENOMEM, or why it could not be put in. */
static int catch_up(struct inline_backend *backend, const struct member *child, uint64_t born_ns)
{
    int r = 0;

    for (size_t i = 0; r != -ENOMEM && i < child->image_count; i++) {
        if (born_ns > child->images[i]->changed_ns)
            continue;
        pulse_hold(backend->pulse);
        r = inline_catch_up(child, child->images[i], NULL);
        pulse_resume(backend->pulse);
    }
    return r;
}

int inline_fork(struct inline_backend *backend, const struct inline_birth *birth)
{
    struct member *member = inline_find_member(backend, birth->parent), *child;
    bool shares = birth->shares_memory;
    int r;

    if (!member || inline_find_member(backend, birth->child))
        return 0;
    if (!shares && birth->ns <= member->since_ns &&
        stale_patches_area_of(birth->child, getpid()) != member->family->inode)
        return 0; /* born before its parent was patched */
    r = inline_add_member(backend, member->family, birth->child, shares ? birth->parent : 0, 0);
    if (r || shares)
        return r;
    child = inline_find_member(backend, birth->child);
    r = inline_inherit_images(child);
    if (!r)
        r = catch_up(backend, child, birth->ns);
    return r == -ENOMEM ? r : 0;
}

/* The family of a thread that was not reported because its process, a child, is not followed. NULL: it has
 * none, or so many have been looked up that the numbers must be forged. */
static struct family *stranger_family(struct inline_backend *backend, uint32_t tid, uint32_t area)
{
    struct member *member = backend->members;

    while (member && member->family->number != area)
        member = member->hh.next;
    if (!member || member->family->strangers >= STRANGERS_MAX)
        return NULL;
    member->family->strangers++;
    return stale_patches_area_of((pid_t)tid, getpid()) == member->family->inode ? member->family : NULL;
}

int inline_claim(struct inline_backend *backend, pid_t pid, uint32_t tid, uint32_t ticket, uint32_t area)
{
    struct member *member = inline_find_member(backend, pid);
    struct family *family = member ? member->family : stranger_family(backend, tid, area);

    if (!family || family->number != area)
        return 0;
    return inline_was_read(backend, family,
                           agent_reader_claim(family->reader, ticket, inline_owner_of(backend, tid)));
}
