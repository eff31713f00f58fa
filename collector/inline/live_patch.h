/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Puts patches into a process and takes them out again, while all its threads stand still.
 *
 * Threads that stand between two displaced instructions go on in the stub, at the same instruction, and on
 * the way back from there in the function. Only what is as it was left is touched: bytes that differ from the
 * program's file are another program's breakpoints, and none of the patches is put in then.
 *
 * The area stays mapped when the patches are taken out while a thread may be inside a stub, or be about to
 * return there from a signal handler (stale_patches.h).
 */
#ifndef TRACECTL_COLLECTOR_INLINE_LIVE_PATCH_H
#define TRACECTL_COLLECTOR_INLINE_LIVE_PATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collector/inline/area.h"
#include "collector/inline/inline_image.h"

struct error;

struct live_patch {
    struct agent_area *area;
    bool waits;    /* threads may wait for the collector */
    int filtered;  /* then the file of the kernel side's marks */
    int agent;     /* agent_file_new() */
    uint64_t head; /* where the area's head is in the process */
    const struct inline_patch *patches;
    size_t count;
    const bool *out;    /* of each: live_patch_apply() leaves it out; NULL: none */
    const bool *varies; /* of each: it may be in or out at present (live_patch_change); NULL: all are in */
};

/* Maps the area and writes all patches that are not out, or nothing. -EEXIST: there is something at `head` by
 * now. -EBUSY: its code is not as in the file, or a thread stands where it must not, or has no thread control
 * block of glibc's. Errors of remote_session(). */
int live_patch_apply(pid_t pid, const struct live_patch *patch, struct error *err);

/* Takes some of the patches out, or puts them in again: `some` has those alone, which vary. A place that is
 * as wanted already stays. The area stays mapped. Pages that have no patch any more are the file's again.
 * -EBUSY: a place has something else, or a thread stands where it must not; nothing has been put in then, but
 * all else taken out. */
int live_patch_change(pid_t pid, const struct live_patch *some, bool in, struct error *err);

/* As live_patch_restore(), and whatever of the area's data the process has mapped is memory of its own from
 * now on. -EAGAIN: the stubs stay mapped, with all else of the area near them; a thread may be in one. */
int live_patch_part(pid_t pid, const struct live_patch *patch, struct error *err);

/* Writes back what was there, and unmaps the area if no thread could come back to it. -EBUSY: some of it is
 * not what was written; all else is restored. */
int live_patch_restore(pid_t pid, const struct live_patch *patch, struct error *err);

#endif
