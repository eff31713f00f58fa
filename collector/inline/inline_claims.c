/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where no kernel side tells which thread has taken slots with which ticket: by the word that agents leave in the area
 * (struct agent_claim_note). The name in it is the thread's id as its control block has it, which is its parent's in a
 * child that a program has made by a system call of its own, and the key of the process, which tells it from the parent.
 */
#include <errno.h>

#include "base/array.h"
#include "collector/inline/inline_state.h"
#include "collector/process/target_memory.h"

#define IDS ((1u << AGENT_KEY_SHIFT) - 1)
#define TRIES 100 /* a thread that is not told of after so many rounds is of a child that is not followed */
#define HOLES_FOR \
    64 /* so many tickets later a word that is missing will not come any more: its thread was killed */

/* False: the process has another key, or none yet. True as well when it has ended: its key is not known. */
static bool has_key(const struct family *family, pid_t pid, uint32_t name)
{
    struct agent_key key;

    return target_memory_read(pid, family->patch.head + AGENT_KEY_OFFSET, &key, sizeof(key)) != sizeof(key) ||
           key.key == (name & ~IDS);
}

/* The process of a family whose main thread the name stands for, though it has another id. 0: none. */
static pid_t find_by_key(const struct inline_backend *backend, const struct family *family, uint32_t name)
{
    struct member *member = NULL, *next = NULL;
    struct agent_key key;

    HASH_ITER (hh, backend->members, member, next)
        if (member->family == family && !member->shares &&
            target_memory_read(member->pid, family->patch.head + AGENT_KEY_OFFSET, &key, sizeof(key)) ==
                sizeof(key) &&
            key.key == (name & ~IDS))
            return member->pid;
    return 0;
}

/* Hands on whose ticket it is. Returns 1 when that is not known yet. -ENOMEM. */
static int resolve(struct inline_backend *backend, const struct family *family,
                   const struct noted_claim *claim)
{
    uint32_t tid = claim->name & IDS;
    pid_t pid = backend->sink.process_of(backend->sink.context, tid), other = 0;

    if (!pid && claim->tries < TRIES)
        return 1;
    if (pid && family->members > 1 && !has_key(family, pid, claim->name))
        other = find_by_key(backend, family, claim->name);
    return other ? inline_claim(backend, other, (uint32_t)other, claim->ticket, family->number)
                 : inline_claim(backend, pid, tid, claim->ticket, family->number);
}

static int add_open(struct family *family, uint32_t ticket, uint32_t name)
{
    if (array_reserve(&family->open_claims, &family->open_capacity, family->open_count + 1))
        return -ENOMEM;
    family->open_claims[family->open_count++] = (struct noted_claim){.ticket = ticket, .name = name};
    return 0;
}

/* Takes up words that are new. What agents write is theirs to destroy: the worst is that chunks find no thread. */
static int take_new(struct family *family)
{
    const struct agent_counts *counts = family->patch.area->counts;
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
