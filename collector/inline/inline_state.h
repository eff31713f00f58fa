/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to the inline backend: what its parts share. */
#ifndef TRACECTL_COLLECTOR_INLINE_INLINE_STATE_H
#define TRACECTL_COLLECTOR_INLINE_INLINE_STATE_H

#include <uthash.h>

#include "collector/inline/inline.h"
#include "collector/inline/inline_code.h"
#include "collector/inline/inline_guard.h"
#include "collector/inline/live_patch.h"

#define TICKS 65536u

/* A patched program and the children that it has forked. */
struct family {
    struct live_patch patch;
    struct agent_reader *reader;
    const struct inline_image *inlined;
    struct inline_code *code; /* with the patches; other families may have it, too */
    bool *out, *varies;       /* of each patch: it is out; it has been */
    uint64_t changed_ns;      /* when patches were taken out or put in last; 0: never */
    uint64_t inode;           /* of the area's memory file */
    uint32_t number;          /* of the area, in its head */
    uint32_t strangers;       /* threads that were looked up, of processes that are no members */
    bool distrusted;          /* what is in its area is not believed any more */
    size_t members;
};

struct member {
    pid_t pid;
    pid_t shares;      /* whose memory it has (vfork): that one's code is restored; 0: its own */
    bool restored;     /* its code is as it was */
    uint64_t used_ns;  /* processor time, when the busiest was asked for */
    uint64_t ran_ns;   /* the same, at inline_backend_ran() */
    uint64_t since_ns; /* when it had been patched, CLOCK_MONOTONIC; 0: it was born like that */
    struct family *family;
    UT_hash_handle hh;
};

/* A child that works on the slots of thread `owner`. */
struct shared_slots {
    uint32_t borrower, owner;
    uint32_t before;  /* whose calls they were before: the owner's, or another borrower's */
    bool owner_ended; /* it was killed while it waited for its child */
    struct family *family;
    UT_hash_handle hh;
};

/* A thread control block that several threads have. */
struct shared_block {
    uint64_t address;
    uint32_t maker; /* who had it first, and made others on it */
    uint32_t *tids;
    size_t count, capacity;
    bool marked;
    struct shared_block *next;
};

struct inline_backend {
    size_t ring_bytes;
    struct inline_sink sink;
    struct member *members;
    struct shared_slots *shared_slots;
    struct shared_block *shared_blocks;
    struct inline_guard guard;
    uint64_t unplaced, shared; /* of families that are gone */
    uint32_t families;         /* so many have been made */
    int agent;                 /* agent_file_new() */
    bool timed;
    uint64_t times[TICKS];  /* when each tick began, CLOCK_MONOTONIC */
    uint64_t stamps[TICKS]; /* the time stamp counter then */
    uint32_t tick;
};

/* NULL: the process is not patched. */
struct member *inline_find_member(const struct inline_backend *backend, pid_t pid);

/* A process that has the family's area; `shares`, `since_ns`: see struct member. -ENOMEM. */
int inline_add_member(struct inline_backend *backend, struct family *family, pid_t pid, pid_t shares,
                      uint64_t since_ns);

/* The family goes with its last member. */
void inline_remove_member(struct inline_backend *backend, struct member *member);

/* Something has been done with a family's reader, with this result, which is returned. Says so if what is in
 * the area is not believed from now on: for all that have it, who wrote there is not known. */
int inline_was_read(struct inline_backend *backend, struct family *family, int result);

/* Whose slots a thread works on. */
uint32_t inline_owner_of(const struct inline_backend *backend, uint32_t tid);

/* Hands on the rest of an owner's calls once nobody works on its slots any more. */
int inline_end_owner(struct inline_backend *backend, struct family *family, uint32_t owner);

void inline_remove_shared_slots(struct inline_backend *backend, const struct family *family);

/* The thread has ended: who shared its thread control block with it may have that alone now. */
void inline_leave_blocks(struct inline_backend *backend, uint32_t tid);

/* At the end: marks stay, the next recording of a process takes them away with its slots. */
void inline_forget_blocks(struct inline_backend *backend);

/* Gives a child that was forked before patches were changed, and so has its parent's as they were, those that
 * its parent has now. -ENOMEM, or why some could not be put in. */
int inline_catch_up(const struct member *member, struct error *err);

#endif
