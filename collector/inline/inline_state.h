/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to the inline backend: what its parts share. */
#ifndef TRACECTL_COLLECTOR_INLINE_INLINE_STATE_H
#define TRACECTL_COLLECTOR_INLINE_INLINE_STATE_H

#include <stddef.h>
#include <uthash.h>

#include "collector/inline/inline.h"
#include "collector/inline/inline_code.h"
#include "collector/inline/inline_guard.h"
#include "collector/inline/live_patch.h"
#include "collector/inline/pulse.h"
#include "collector/inline/reader.h"
#include "collector/process/credentials.h"

#define TICKS 65536u

/* A ticket, and the name of the thread that says to have taken slots with it. */
struct noted_claim {
    uint32_t ticket, name;
    unsigned tries;
};

/* An image at one place in memory, of some or all processes of a family: a program, or a library. */
struct patched_image {
    struct live_patch patch;
    const struct inline_image *inlined;
    struct inline_code *code; /* with the patches; other families may have it, too */
    bool *out, *varies;       /* of each patch: it is out; it has been */
    uint64_t changed_ns;      /* when patches were taken out or put in last; 0: never */
    struct patched_image *next;
};

/* A patched program and the children that it has forked. */
struct family {
    struct agent_area *area;
    struct agent_reader *reader;
    struct patched_image *images; /* the first is the one that the area was made for; then the youngest */
    size_t image_count;
    bool waits;                     /* threads may wait for the collector */
    uint64_t inode;                 /* of the area's head file */
    struct credentials credentials; /* of the process that it was made for */
    uint32_t number;                /* of the area, in its head */
    uint32_t strangers;             /* threads that were looked up, of processes that are no members */
    bool distrusted;                /* what is in its area is not believed any more */
    size_t members;
    uint32_t claims_seen;            /* the last ticket whose word was taken up */
    struct noted_claim *open_claims; /* of threads that are not known yet */
    size_t open_count, open_capacity;
};

struct member {
    pid_t pid;
    pid_t shares;      /* whose memory it has (vfork): that one's code is restored; 0: its own */
    bool restored;     /* its code is as it was */
    bool changed;      /* its rights were seen to be others than the family's */
    uint64_t used_ns;  /* processor time, when the busiest was asked for */
    uint64_t ran_ns;   /* the same, at inline_backend_ran() */
    uint32_t key;      /* by notes: of the process, in its threads' names; 0: not seen yet */
    uint64_t since_ns; /* when it had been patched, CLOCK_MONOTONIC; 0: it was born like that */
    struct family *family;
    struct patched_image **images; /* those of the family that it has; none of its own if it `shares` */
    size_t image_count, image_capacity;
    UT_hash_handle hh;
};

/* A child that works on the slots of thread `owner`. */
struct shared_slots {
    uint32_t child, owner;
    uint32_t before;  /* whose calls they were before: the owner's, or another child's */
    bool owner_ended; /* it was killed while it waited for its child */
    struct family *family;
    UT_hash_handle hh;
};

/* A thread whose control block has another id than the kernel: it is in a pid namespace, or has its maker's. */
struct own_id {
    uint32_t tid, own;
    pid_t pid; /* its process */
    UT_hash_handle hh;
};

/* A thread control block that several threads have. */
struct shared_block {
    uint64_t address;
    uint32_t maker; /* the thread that had it first, and made others on it */
    uint32_t *tids;
    size_t count, capacity;
    bool marked;
    struct shared_block *next;
};

struct inline_backend {
    struct backend backend;
    size_t ring_bytes;
    struct backend_sink sink;
    struct member *members;
    struct shared_slots *shared_slots;
    struct shared_block *shared_blocks;
    struct inline_guard guard;
    uint64_t unplaced, shared; /* of families that are gone */
    uint32_t unnumbered;       /* so many areas have been made that have no number of the source's */
    int agent;                 /* agent_file_new() */
    bool timed;
    bool waits;                                               /* as in the options */
    bool first_only;                                          /* the same */
    int filtered;                                             /* the same */
    int (*number_area)(void *context, uint32_t *ret_area);    /* the same */
    int (*set_area)(void *context, pid_t pid, uint32_t area); /* the same */
    struct own_id *own_ids; /* by notes: of threads that know themselves by others */
    bool by_notes;          /* threads' tickets are told by their agents, not by a kernel side */
    bool awaited;           /* a thread waited for the collector when the areas were read last */
    struct pulse *pulse;    /* NULL: nothing is patched yet, or nothing waits */
    uint64_t times[TICKS];  /* when each tick began, CLOCK_MONOTONIC */
    uint64_t stamps[TICKS]; /* the time stamp counter then */
    uint32_t tick;
};

static inline struct inline_backend *inline_of(const struct backend *backend)
{
    return (struct inline_backend *)((const char *)backend - offsetof(struct inline_backend, backend));
}

/* ---- images (inline_images.c) */

/* Makes stubs and patches for the target's image where the process has an address gap, for what it has of the
 * family. -ENOMEM; -ERANGE, -ENOSPC: no free addresses near. */
int inline_make_image(struct inline_backend *backend, struct family *family,
                      const struct backend_target *target, struct patched_image **ret_image,
                      struct error *err);
void inline_free_image(struct patched_image *image);

/* Finds another place near the code for the stubs of an image that no process has. As above. */
int inline_place_image(struct inline_backend *backend, const struct backend_target *target,
                       struct patched_image *image, struct error *err);

/* Puts it behind the first one. */
void inline_add_image(struct family *family, struct patched_image *image);

/* The process has it from now on. -ENOMEM. */
int inline_note_image(struct member *member, struct patched_image *image);

bool inline_has_place(const struct member *member, const struct patched_image *image);

/* A process that was forked has those of its family that it has mapped. -ENOMEM. */
int inline_inherit_images(struct member *member);

/* Whether a process has some place of the image. */
bool inline_has_image(const struct backend *backend, pid_t pid, const struct inline_image *inlined);

/* Patches an image in a process that has others. As backend_operations.attach_process. */
int inline_join(struct inline_backend *backend, struct member *member, const struct backend_target *target,
                struct error *err);

/* All that a process has, for live_patch_restore(). NULL: no memory; the caller frees it. */
const struct live_patch **inline_patches_of(const struct member *member);

/* NULL: the process is not patched. */
struct member *inline_find_member(const struct inline_backend *backend, pid_t pid);

/* A process that has the family's area; `shares`, `since_ns`: see struct member. -ENOMEM. */
int inline_add_member(struct inline_backend *backend, struct family *family, pid_t pid, pid_t shares,
                      uint64_t since_ns);

/* Says whose area a process has, or (0) that it has none: as the options' function. */
int inline_set_area(const struct inline_backend *backend, pid_t pid, uint32_t area);

/* The family whose area a process has, whether it is known or not; NULL: none. */
struct family *inline_family_of(const struct inline_backend *backend, pid_t pid);

/* The family goes with its last member. */
void inline_remove_member(struct inline_backend *backend, struct member *member);

/* Something has been done with a family's reader, with this result, which is returned. Says so if what is in
 * the area is not believed from now on: for all that have it, the writer is not known. */
int inline_was_read(struct inline_backend *backend, struct family *family, int result);

/* Whose slots a thread works on. */
uint32_t inline_owner_of(const struct inline_backend *backend, uint32_t tid);

/* Hands on the rest of an owner's calls once no thread works on its slots any more. */
int inline_end_owner(struct inline_backend *backend, struct family *family, uint32_t owner);

void inline_remove_shared_slots(struct inline_backend *backend, const struct family *family);

/* The thread has ended: who shared its thread control block with it may have that alone now. */
void inline_leave_blocks(struct inline_backend *backend, uint32_t tid);

/* At the end: marks stay, the next recording of a process takes them away with its slots. */
void inline_forget_blocks(struct inline_backend *backend);

/* Gives a child that was forked before patches of an image were changed, and so has its parent's as they were,
 * those that its parent has now. -ENOMEM, or why some could not be put in. */
int inline_catch_up(const struct member *member, const struct patched_image *image, struct error *err);

/* Puts all patches of a library that are not out into a process again, which has loaded it anew at the same
 * place. As live_patch_change(). */
int inline_put_in_again(const struct member *member, const struct patched_image *image, struct error *err);

/* Takes all that are in out of a process, as far as that can be done. */
void inline_take_out_all(const struct member *member, const struct patched_image *image);

/* ---- what the life-cycle source tells (inline_read.c) */

/* A patched process has had a child since `ns` (CLOCK_MONOTONIC). -ENOMEM. */
struct inline_birth {
    pid_t parent, child;
    uint64_t ns;
    bool shares_memory; /* with its parent */
};
int inline_fork(struct inline_backend *backend, const struct inline_birth *birth);

/* A thread of process `pid` says that it has taken its slots with a ticket of the area with that number
 * (struct agent_head); it is not believed if the process has another area. -ENOMEM. */
int inline_claim(struct inline_backend *backend, pid_t pid, uint32_t tid, uint32_t ticket, uint32_t area);

/* Takes up what agents say of tickets; what it does not know yet stays for the next time, but not for many rounds of
 * reading. -ENOMEM. The second: of the family of a process, within a round. */
int inline_take_claims(struct inline_backend *backend, struct family *family, bool new_round);
int inline_take_claims_of(struct inline_backend *backend, pid_t pid);

/* Takes note of the id that a thread's control block has; 0: it is not known. The second: of all threads that the process has
 * now. -ENOMEM. */
int inline_note_own_id(struct inline_backend *backend, pid_t pid, uint32_t tid, uint32_t own_tid);
int inline_note_own_ids(struct inline_backend *backend, pid_t pid);

/* The thread has ended, and its claims have been taken. */
void inline_forget_own_id(struct inline_backend *backend, uint32_t tid);

/* A child begins that works on the slots of its parent's thread `parent` until inline_end_sharing(); it comes
 * before inline_fork(). -ENOMEM. */
struct inline_slot_sharing {
    pid_t pid;       /* the parent */
    uint32_t parent; /* one of its threads */
    uint32_t child;
    uint32_t offset; /* how far the parent had come, as in inline_read_to() */
    bool wanted;     /* false: the child's calls are handed on as those of thread 0 */
};
int inline_share_slots(struct inline_backend *backend, const struct inline_slot_sharing *sharing);
int inline_end_sharing(struct inline_backend *backend, uint32_t child, uint32_t offset);

/* As agent_reader_read_to(). */
int inline_read_to(struct inline_backend *backend, pid_t pid, uint32_t tid, uint32_t offset);

/* A thread has ended: hands on the rest of its calls. */
int inline_end_thread(struct inline_backend *backend, pid_t pid, uint32_t tid);

/* A process has ended, or runs another program. */
void inline_end_process(struct inline_backend *backend, pid_t pid);

/* ---- operations of the table (backend.h), each in the file of its subject */

int inline_note(struct backend *backend, const void *record);
int inline_choose(struct backend *backend, const struct inline_image *inlined,
                  const struct backend_choice *choice, struct error *err);
int inline_overwritten(const struct backend *backend, pid_t pid, size_t index,
                       const struct inline_image **ret_inlined, bool **ret_lost);
int inline_separate(struct backend *backend, pid_t pid, struct error *err);
int inline_changed(struct backend *backend, struct changed_process **ret, size_t *ret_count);
int inline_share_block(struct backend *backend, const struct wire_fork *record);
pid_t inline_busiest(struct backend *backend, const struct inline_image *inlined);
uint64_t inline_ran(struct backend *backend);
int inline_sample(struct backend *backend);
int inline_read(struct backend *backend);
bool inline_awaited(const struct backend *backend);
int inline_freeze(struct backend *backend);
int inline_detach(struct backend *backend, struct error *err);
int inline_finish(struct backend *backend);

/* ---- reading (inline_read.c) */

/* What both clocks say at the beginning of the tick. */
void inline_begin_tick(struct inline_backend *backend, uint32_t tick);

/* Where the readers of all areas hand on calls; `context` is the backend. */
struct agent_sink inline_reader_sink(struct inline_backend *backend);

/* Does something once for each family. */
int inline_for_each_family(struct inline_backend *backend,
                           int (*function)(struct inline_backend *backend, struct family *family));

#endif
