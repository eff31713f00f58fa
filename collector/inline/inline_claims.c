/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where no kernel side tells which thread has taken slots with which ticket: by the word that agents leave in the area
 * (struct agent_claim_note). The name in it is the thread's id as its control block has it, and the key of the process.
 * The id is that of the thread's own pid namespace; in a child that a program has made by a system call of its own it is
 * its parent's. The tracer has seen it when the thread was made.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "collector/inline/inline_state.h"
#include "collector/process/pid_namespace.h"
#include "collector/process/process.h"
#include "collector/process/target_memory.h"

#define IDS ((1u << AGENT_KEY_SHIFT) - 1)
#define TRIES 100 /* a thread that is not told of after so many rounds is of a child that is not followed */
#define HOLES_FOR \
    64 /* so many tickets later a word that is missing will not come any more: its thread was killed */

/* ------------------------------------------------------------------------------------ own ids */

static struct own_id *find_own_id(const struct inline_backend *backend, uint32_t tid)
{
    struct own_id *found;

    HASH_FIND(hh, backend->own_ids, &tid, sizeof(tid), found);
    return found;
}

int inline_note_own_id(struct inline_backend *backend, pid_t pid, uint32_t tid, uint32_t own_tid)
{
    struct own_id *own;

    inline_forget_own_id(backend, tid);
    if (!own_tid || own_tid == tid)
        return 0;
    own = calloc(1, sizeof(*own));
    if (!own)
        return -ENOMEM;
    *own = (struct own_id){.tid = tid, .own = own_tid, .pid = pid};
    HASH_ADD(hh, backend->own_ids, tid, sizeof(own->tid), own);
    return 0;
}

int inline_note_own_ids(struct inline_backend *backend, pid_t pid)
{
    AUTO_FREE pid_t *tids = NULL;
    size_t count = 0;
    int r = process_threads(pid, &tids, &count, NULL);

    for (size_t i = 0; !r && i < count; i++)
        r = inline_note_own_id(backend, pid, (uint32_t)tids[i], (uint32_t)pid_namespace_innermost(tids[i]));
    return r == -ENOMEM ? r : 0; /* the end of a process is reported later */
}

void inline_forget_own_id(struct inline_backend *backend, uint32_t tid)
{
    struct own_id *own = find_own_id(backend, tid);

    if (!own)
        return;
    HASH_DEL(backend->own_ids, own);
    free(own);
}

/* The thread of a process that has, or had, that id in its control block: of several with one block its owner, which was
 * there first. 0: none. */
static uint32_t thread_named(const struct inline_backend *backend, pid_t pid, uint32_t id)
{
    struct own_id *own = NULL, *next = NULL;

    if (backend->sink.process_of(backend->sink.context, id) == pid && !find_own_id(backend, id))
        return id;
    HASH_ITER (hh, backend->own_ids, own, next)
        if (own->pid == pid && own->own == id)
            return own->tid;
    return 0;
}

/* ------------------------------------------------------------------------------------ whose */

enum ownership {
    ANOTHER, /* the process has another key, or none yet */
    UNKNOWN, /* it has ended, or runs another program, before its key was seen */
    ITS_OWN,
};

static enum ownership ownership_of(struct member *member, uint32_t name)
{
    struct agent_key key;

    if (member->shares)
        return ANOTHER;
    if (!member->key && target_memory_read(member->pid, member->family->area->head->first_key, &key,
                                           sizeof(key)) != sizeof(key))
        return UNKNOWN;
    if (!member->key)
        member->key = key.key;
    return member->key == (name & ~IDS) ? ITS_OWN : ANOTHER;
}

/* The process of a family that has the key of a name; or the only one that may have had it, and had a thread of that
 * name. NULL: that is not known. */
static struct member *find_process(const struct inline_backend *backend, const struct family *family,
                                   uint32_t name)
{
    struct member *member = NULL, *next = NULL, *ended = NULL;
    bool several = false;

    HASH_ITER (hh, backend->members, member, next) {
        enum ownership ownership = member->family == family ? ownership_of(member, name) : ANOTHER;

        if (ownership == ITS_OWN)
            return member;
        if (ownership == ANOTHER || !thread_named(backend, member->pid, name & IDS))
            continue;
        several |= ended != NULL;
        ended = member;
    }
    return several ? NULL : ended;
}

/* Hands on whose ticket it is, if that can be found out. Returns 1 when it is not known yet. -ENOMEM. */
static int resolve(struct inline_backend *backend, const struct family *family,
                   const struct noted_claim *claim)
{
    uint32_t id = claim->name & IDS, tid;
    pid_t here = backend->sink.process_of(backend->sink.context, id);
    struct member *member = here ? inline_find_member(backend, here) : NULL;

    if (!member || member->family != family || ownership_of(member, claim->name) != ITS_OWN)
        member = find_process(backend, family, claim->name); /* few: most are in no namespace */
    tid = member ? thread_named(backend, member->pid, id) : 0;
    if (tid) {
        member->key = claim->name & ~IDS;
        return inline_claim(backend, member->pid, tid, claim->ticket, family->number);
    }
    if (claim->tries < TRIES)
        return 1;
    return here ? 0 : inline_claim(backend, 0, id, claim->ticket, family->number);
}

static int add_open(struct family *family, uint32_t ticket, uint32_t name)
{
    if (array_reserve(&family->open_claims, &family->open_capacity, family->open_count + 1))
        return -ENOMEM;
    family->open_claims[family->open_count++] = (struct noted_claim){.ticket = ticket, .name = name};
    return 0;
}

/* ------------------------------------------------------------------------------------ notes */

/* Takes up words that are new. What agents write is theirs to destroy: the worst is that chunks find no thread. */
static int take_new(struct family *family)
{
    const struct agent_counts *counts = family->area->counts;
    uint32_t last = __atomic_load_n(&counts->tickets, __ATOMIC_ACQUIRE);
    int r = 0;

    if (last - family->claims_seen > AGENT_CLAIMS)
        family->claims_seen = last - AGENT_CLAIMS;
    while (!r && family->claims_seen != last) {
        uint32_t ticket = family->claims_seen + 1;
        const struct agent_claim_note *note = &counts->claims[ticket % AGENT_CLAIMS];
        bool there = __atomic_load_n(&note->ticket, __ATOMIC_ACQUIRE) == ticket;

        if (!there && last - ticket < HOLES_FOR)
            return 0; /* it is about to be written */
        if (there && family->open_count < AGENT_CLAIMS)
            r = add_open(family, ticket, note->name);
        family->claims_seen = ticket;
    }
    return r;
}

int inline_take_claims(struct inline_backend *backend, struct family *family, bool new_round)
{
    size_t left = 0;
    int r = backend->by_notes ? take_new(family) : 0;

    for (size_t i = 0; i < family->open_count; i++) {
        struct noted_claim claim = family->open_claims[i];
        int known = r ? r : resolve(backend, family, &claim);

        if (known < 0)
            r = known;
        claim.tries += new_round;
        if (known > 0)
            family->open_claims[left++] = claim;
    }
    family->open_count = left;
    return r;
}

int inline_take_claims_of(struct inline_backend *backend, pid_t pid)
{
    struct member *member = backend->by_notes ? inline_find_member(backend, pid) : NULL;

    return member ? inline_take_claims(backend, member->family, false) : 0;
}
