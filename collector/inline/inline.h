/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The inline backend: patches programs (live_patch.h) and hands out the calls that their stubs record
 * (agent/reader.h).
 *
 * A patched process and the children that it forks share one area. What happens to processes and threads is
 * known from the kernel side (bpf/lifecycle.h), and so are calls of functions that have uprobes instead; each
 * of those records says, by the cursor that its thread had, which inline calls come before it.
 *
 * One round of reading, so that calls of a thread keep their order: inline_backend_sample(), then everything
 * that the kernel side has, with inline_backend_read_to() before each record that has a place among inline
 * calls, then inline_backend_read(). Whatever a thread did with the kernel side before an inline call that
 * was looked at is in the ring by then.
 */
#ifndef TRACECTL_COLLECTOR_INLINE_INLINE_H
#define TRACECTL_COLLECTOR_INLINE_INLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "collector/inline/inline_image.h"
#include "collector/inline/reader.h"

struct inline_backend;

struct inline_options {
    size_t ring_bytes; /* of each patched process together with its children; 0: 32 MiB */
    bool timed;        /* each call comes with the time stamp counter, see inline_backend_moment() */
};

/* Who takes what is read. */
struct inline_sink {
    struct agent_sink calls;
    /* From here on nothing is read of the inline probes of this process: `why`, a clause, was found where
     * they write. With the context of `calls`. */
    int (*distrusted)(void *context, pid_t pid, const char *why);
};

int inline_backend_new(const struct inline_options *options, const struct inline_sink *sink,
                       struct inline_backend **ret_backend, struct error *err);

/* Whether the processors' time stamp counters go alike and for ever, as the kernel says. */
bool inline_backend_has_clock(void);

/* Processes that are patched stay so: inline_backend_detach() comes before. Accepts NULL. */
void inline_backend_free(struct inline_backend *backend);

/* Why the process, which runs the image, may not be patched: in `ret_reason` if there is a reason, which
 * lives as long as the program. -ESRCH. */
int inline_backend_refusal(pid_t pid, const struct inline_image *inlined, const char **ret_reason,
                           struct error *err);

/* The part of it that is for limits of memory, which a command has from the process that launches it; NULL:
 * none. */
const char *inline_backend_memory_refusal(pid_t pid, const struct inline_image *inlined);

struct inline_target {
    pid_t pid;
    const struct inline_image *inlined;
    const struct image_function *functions;
    uint32_t first_function; /* the number of function 0; records say one more */
    uint64_t load_bias;
    const bool *out; /* of each function: it begins outside, as after inline_backend_choose(); NULL: none */
};
/* Patches a process, which stands still meanwhile. Fails without having changed anything that runs. */
int inline_backend_attach(struct inline_backend *backend, const struct inline_target *target,
                          struct error *err);

bool inline_backend_has(const struct inline_backend *backend, pid_t pid);

/* A patched process has had a child since `ns` (CLOCK_MONOTONIC). -ENOMEM. */
struct inline_birth {
    pid_t parent, child;
    uint64_t ns;
    bool shares_memory; /* with its parent */
};
int inline_backend_fork(struct inline_backend *backend, const struct inline_birth *birth);

/* A thread of process `pid` says that it has taken its slots with a ticket of the area with that number
 * (struct agent_head); it is not believed if the process has another area. -ENOMEM. */
int inline_backend_claim(struct inline_backend *backend, pid_t pid, uint32_t tid, uint32_t ticket,
                         uint32_t area);

/* The file of the agent, which a uprobe is to be placed in at AGENT_CLAIM. */
int inline_backend_agent(const struct inline_backend *backend);

/* Thread `maker` of a patched process has made another one on its own thread control block, `block`: until
 * one of them is left their calls are counted, not recorded. Returns 1 when that was so before this one was
 * made; -ENOMEM; -ESRCH: the block cannot be marked. */
int inline_backend_share_block(struct inline_backend *backend, uint32_t maker, uint32_t made, uint64_t block);

struct inline_choice {
    const bool *out;       /* of each of the image's functions: it is to be out */
    pid_t ahead;           /* a process that is to have others out, with those that share its area; 0: none */
    const bool *out_ahead; /* these */
};
/* Takes functions of an image out of all processes that are patched, or puts them in again, while each stands
 * still for a moment. -EBUSY and the like: those that were to come in are still out in some process; all that
 * were to go are gone, as far as nobody else has changed them. -ENOMEM: nothing has changed. */
int inline_backend_choose(struct inline_backend *backend, const struct inline_image *inlined,
                          const struct inline_choice *choice, struct error *err);

/* Which functions of a patched process have lost their jumps: something else is there. `*ret_lost` has one
 * answer for each function of `*ret_inlined`, and the caller frees it; neither is set when the process has no
 * patches of its own. -ENOMEM. */
int inline_backend_overwritten(const struct inline_backend *backend, pid_t pid,
                               const struct inline_image **ret_inlined, bool **ret_lost);

/* Of the processes with patches of the image that which has run most since this was asked last; 0: all of
 * them share one area. */
pid_t inline_backend_busiest(struct inline_backend *backend, const struct inline_image *inlined);

/* How long all processes with patches have run since this was asked last, children that are known among them:
 * nanoseconds of processor time. What a process that has ended had used by then is not in it. */
uint64_t inline_backend_ran(struct inline_backend *backend);

/* A child begins that works on the slots of its parent's thread `lender` until inline_backend_end_sharing();
 * it comes before inline_backend_fork(). -ENOMEM. */
struct inline_slot_sharing {
    pid_t pid;       /* the parent */
    uint32_t lender; /* one of its threads */
    uint32_t borrower;
    uint32_t offset; /* how far the lender had come, as in inline_backend_read_to() */
    bool wanted;     /* false: the child's calls are handed on as those of thread 0 */
};
int inline_backend_share_slots(struct inline_backend *backend, const struct inline_slot_sharing *shared);
int inline_backend_end_sharing(struct inline_backend *backend, uint32_t borrower, uint32_t offset);

/* A process is to share the area of its parent, or of its children, no more: takes its inline probes out,
 * puts other memory where it has the area's, and hands on the rest of its calls. It may be patched anew
 * afterwards. Returns 1, 0 when nobody else has its area; -EBUSY when its stubs have to stay, and with them
 * what they write to, which is its own memory now; -ENOMEM, and errors of remote_session(): it has the area
 * still. */
int inline_backend_part(struct inline_backend *backend, pid_t pid, struct error *err);

/* As agent_reader_sample() and agent_reader_read(), for all processes. Counts the tick. */
int inline_backend_sample(struct inline_backend *backend);
int inline_backend_read(struct inline_backend *backend);

/* As agent_reader_freeze(): the recording ends at this moment, whatever the stubs write until they are gone.
 */
int inline_backend_freeze(struct inline_backend *backend);

/* As agent_reader_read_to(). */
int inline_backend_read_to(struct inline_backend *backend, pid_t pid, uint32_t tid, uint32_t offset);

/* A thread has ended: hands on the rest of its calls. */
int inline_backend_end_thread(struct inline_backend *backend, pid_t pid, uint32_t tid);

/* A process has ended, or runs another program. */
void inline_backend_end_process(struct inline_backend *backend, pid_t pid);

/* When a tick began, in CLOCK_MONOTONIC; 0: not known. */
uint64_t inline_backend_time(const struct inline_backend *backend, uint16_t tick);

/* When the time stamp counter was `stamp`, in a call of that tick; in CLOCK_MONOTONIC, to the microsecond. */
uint64_t inline_backend_moment(const struct inline_backend *backend, uint16_t tick, uint64_t stamp);

/* Lets nobody take another chunk, and restores the code of all processes. `err` tells of the first one whose
 * code could not be restored: it runs on, its stubs quiet. */
int inline_backend_detach(struct inline_backend *backend, struct error *err);

/* Hands on all that is left, behind inline_backend_detach(). */
int inline_backend_finish(struct inline_backend *backend);

/* At the end: calls of threads that never had a chunk, and of those that share a control block. */
uint64_t inline_backend_unplaced(struct inline_backend *backend);
uint64_t inline_backend_shared(struct inline_backend *backend);

#endif
