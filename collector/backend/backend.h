/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A backend: one way of recording calls. The recorder, the loader and the budget know this table only.
 *
 * There are two kinds. One puts probes into files: every process that maps a file has them, from the moment
 * when they are attached (`attach_sites`). The other puts them into one process after the other, whose
 * children inherit them (`attach_process`). A recording has one backend of the first kind, and may have one
 * of the second, which then takes the functions of programs that it can take (struct traced_image has the two
 * lists: `offsets`, and `inlined->chosen`).
 *
 * Reading goes in rounds, in which the calls of a thread keep their order:
 *
 *     sample       of each backend: how far its threads have come
 *     consume    of the life-cycle source: all records that there are, each first to `note` of every backend,
 *                which hands on the calls that come before it
 *     read       of each backend: what is left up to where it looked
 *
 * The end of a recording is `freeze`, `detach`, rounds until nothing comes, `finish`, `losses`.
 *
 * Implementations: uprobe_calls() (collector/uprobe/uprobe.h), whose calls come as records of the life-cycle
 * source, and inline_backend_new() (collector/inline/inline.h). What a backend has nothing to do for is NULL.
 */
#ifndef TRACECTL_COLLECTOR_BACKEND_BACKEND_H
#define TRACECTL_COLLECTOR_BACKEND_BACKEND_H

#include <sys/types.h>

#include "bpf/wire.h"
#include "collector/backend/probe_sites.h"

struct error;

struct agent_record;
struct image_function;
struct inline_image;

struct backend {
    const struct backend_operations *of;
};

/* Where a backend hands on what it has read, and asks what it does not know; below 0: a failure. */
struct backend_sink {
    /* Calls of a thread, in order; they came after `ns` (CLOCK_MONOTONIC; 0: not known). `tid` 0: of a child
     * that is not followed. */
    int (*calls)(void *context, uint32_t tid, const struct agent_record *records, size_t count, uint64_t ns);
    /* Calls of the thread that did not fit into its buffer, at this place. */
    int (*lost)(void *context, uint32_t tid, uint64_t calls);
    /* The thread, which has ended or is not read any more, has waited so many nanoseconds for the reader. */
    int (*waited)(void *context, uint32_t tid, uint64_t ns);
    /* From here on nothing is read of the probes of this process: `why`, a clause, was found where they
     * write. */
    int (*distrusted)(void *context, pid_t pid, const char *why);
    /* The process that a thread belongs to; 0: not known. */
    pid_t (*process_of)(void *context, uint32_t tid);
    void *context;
};

/* What a process that is to get probes runs. */
struct backend_target {
    pid_t pid;
    const struct inline_image *inlined;
    const struct image_function *functions;
    uint32_t first_function; /* the number of function 0; records say one more */
    uint64_t load_bias;
    /* A library's file, and what its addresses are more than its offsets; inode 0: it is the program. */
    dev_t device;
    ino_t inode;
    uint64_t delta;
    const bool *out; /* of each function: it begins outside, as after `choose`; NULL: none */
};

/* Which functions of an image have no probe at present. */
struct backend_choice {
    const bool *out; /* of each of the image's functions: it is to be out */
    pid_t ahead;     /* a process that is to have others out, with those that share its memory; 0: none */
    const bool *out_ahead; /* these */
};

/* A process whose rights are others than those that its probes' memory was made for. */
struct changed_process {
    pid_t pid;
    bool again; /* it was listed before */
};

/* Probes in one file. */
struct placed_probes {
    dev_t device;
    ino_t inode;
    pid_t pid; /* in this process; 0: in all that map the file */
    enum probe_purpose purpose;
    unsigned long *offsets; /* in the file, ascending */
    size_t count;
};
typedef int (*placed_handler)(void *context, const struct placed_probes *placed);

/* Failures are negative errnos; `err`, where there is one, has the reason. */
struct backend_operations {
    const char *name; /* as `record --backend` has it */

    /* ---- probes in files */

    /* Probes the sites in every process that maps the file (`pid` 0), or in one process and its threads, not
     * its children: then all cookies must say COOKIE_ENTRY_ONLY. Sites that cannot be probed are marked and
     * left out; all others are attached, or none. */
    int (*attach_sites)(struct backend *backend, const struct probe_sites *sites, pid_t pid,
                        struct error *err);
    /* Takes one part away again, in all processes, or the probes of one process that has ended. Some 40 ms a
     * part, behind the caller's back; `closing`: how many removals are under way. */
    void (*detach_part)(struct backend *backend, unsigned part);
    void (*detach_process)(struct backend *backend, pid_t pid);
    unsigned (*closing)(const struct backend *backend);

    /* With a budget or a trigger: what is counted of each probe, by its index; MAX_BUDGET_PROBES of them,
     * shared with the probes. NULL without. */
    struct budget_slot *(*counts)(const struct backend *backend);
    /* Some places have probes of two parts for a while, of which one counts; or none has any more. */
    void (*relinking)(struct backend *backend, bool relinking);

    /* Hands all probes that are in place to `handle`, until that returns another value than 0, which is
     * returned. */
    int (*placed)(const struct backend *backend, placed_handler handle, void *context);
    /* The same for all that were in place at any time: each file once, without `pid` and `purpose`. */
    int (*former)(const struct backend *backend, placed_handler handle, void *context);
    bool (*had_probes)(const struct backend *backend);
    void (*forget_former)(struct backend *backend);
    /* After `detach`: places probes in a process and takes them away, so that what has stayed there is
     * restored. As far as that is possible: the caller looks again. */
    void (*touch)(struct backend *backend, int file, pid_t pid, const unsigned long *offsets, size_t count);

    /* ---- probes in processes */

    /* Why a process that runs the image may not get probes: in `ret_reason` if there is a reason, which lives
     * as long as the program. -ESRCH. */
    int (*refusal)(pid_t pid, const struct inline_image *inlined, const char **ret_reason, struct error *err);
    /* Puts probes of an image into a process, which stands still meanwhile. Fails without having changed
     * anything that runs; -ESTALE: a library that is not there any more. Returns 1 if it has them already; a
     * library that was unloaded and has come back gets them again. */
    int (*attach_process)(struct backend *backend, const struct backend_target *target, struct error *err);
    /* Whether the process has any; and of this image, wherever it is or was loaded. */
    bool (*has)(const struct backend *backend, pid_t pid);
    bool (*has_image)(const struct backend *backend, pid_t pid, const struct inline_image *inlined);

    /* Takes functions of an image out of all processes that have probes, or puts them in again, while each
     * stands still for a moment. -EBUSY and the like: those that were to come in are still out in some
     * process; all that were to go are gone, as far as nothing else has changed them. -ENOMEM: nothing has
     * changed. */
    int (*choose)(struct backend *backend, const struct inline_image *inlined,
                  const struct backend_choice *choice, struct error *err);
    /* Which functions of a process have lost their probes: something else is there. `*ret_lost` has one
     * answer for each function of `*ret_inlined`, the image number `index` that has probes there, and the
     * caller frees it; neither is set when the process has no more of its own. -ENOMEM. */
    int (*overwritten)(const struct backend *backend, pid_t pid, size_t index,
                       const struct inline_image **ret_inlined, bool **ret_lost);

    /* The process is to share memory with its parent, or its children, no more: takes its probes out, gives
     * it memory of its own, and hands on the rest of its calls. It may get probes anew afterwards. Returns 1,
     * 0 when it shares none; -EBUSY when its probes have to stay, and write to memory of its own now; -ENOMEM
     * and others: it shares still. A child that is not followed is parted as well, and returns 0. */
    int (*separate)(struct backend *backend, pid_t pid, struct error *err);
    /* Lists the processes that share memory with others and have other rights by now; the caller frees the
     * list. -ENOMEM. */
    int (*changed)(struct backend *backend, struct changed_process **ret, size_t *ret_count);
    /* A thread has made another one on its own thread control block, which is where calls are written: until
     * one of them is left they are counted, not recorded. Returns 1 when that was so before this one was
     * made; -ENOMEM; -ESRCH: the block cannot be marked. */
    int (*share_block)(struct backend *backend, const struct wire_fork *record);

    /* Of the processes with probes of the image the one that has run most since this was asked last; 0: all
     * of them share one memory. */
    pid_t (*busiest)(struct backend *backend, const struct inline_image *inlined);
    /* How long all processes with probes have run since this was asked last, children that are known among
     * them: nanoseconds of processor time. What a process that has ended had used by then is not in it. */
    uint64_t (*ran)(struct backend *backend);

    /* ---- a round of reading */

    int (*sample)(struct backend *backend);
    /* A record of the life-cycle source: whole, and not yet seen by anything else. */
    int (*note)(struct backend *backend, const void *record);
    int (*read)(struct backend *backend);
    /* Whether a thread waited for the last `read`: then the next round comes soon. */
    bool (*awaited)(const struct backend *backend);

    /* ---- the end */

    /* The recording ends at this moment, whatever the probes write until they are gone. */
    int (*freeze)(struct backend *backend);
    /* Removes every probe, and waits until they are gone; what was recorded can still be read. `err` tells of
     * the first process whose code could not be restored: it runs on, and its probes do nothing. */
    int (*detach)(struct backend *backend, struct error *err);
    /* Hands on all that is left, behind `detach`. */
    int (*finish)(struct backend *backend);
    /* Tells of calls that were lost and belong to no thread's stream, until `handle` returns another value
     * than 0, which is returned. `cause` as in the store's table of losses. */
    int (*losses)(struct backend *backend, int (*handle)(void *context, uint64_t calls, const char *cause),
                  void *context);
    void (*free)(struct backend *backend);
};

static inline bool backend_has(const struct backend *backend, pid_t pid)
{
    return backend && backend->of->has(backend, pid);
}

#endif
