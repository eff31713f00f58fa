/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Puts patches into a process and takes them out again, while all its threads stand still.
 *
 * Threads that stand between two displaced instructions continue in the stub, at the same instruction, and on
 * the way back from there in the function. Only what is as it was left is touched: bytes that differ from the
 * program's file are another program's breakpoints, and none of the patches is put in then.
 *
 * The area stays mapped when the patches are taken out while a thread may be inside a stub, or be about to
 * return there from a signal handler (stale_patches.h).
 *
 * A library may be unmapped at any time, and something else be mapped in its place. So whether its file still
 * lies where the patches are is looked up in the session, before anything is written there.
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

/* Which file has to lie at the patches: by its numbers, and how far it is from its offsets to addresses. */
struct live_file {
    dev_t device;
    ino_t inode;
    uint64_t delta;
};

struct live_patch {
    struct agent_area *area;
    bool waits;            /* threads may wait for the collector */
    int filtered;          /* then the file of the kernel side's marks */
    int agent;             /* agent_file_new() */
    int stubs;             /* their file */
    size_t near_bytes;     /* agent_near_bytes() of them */
    uint64_t head;         /* where the area's head is in the process, for this code */
    struct live_file file; /* inode 0: the program's, which stays */
    const struct inline_patch *patches;
    size_t count;
    const bool *out;    /* of each: live_patch_apply() leaves it out; NULL: none */
    const bool *varies; /* of each: it may be in or out at present (live_patch_change); NULL: all are in */
};

/* Maps the area and writes all patches that are not out, or nothing. -EEXIST: there is something at `head` by
 * now. -EBUSY: its code is not as in the file, or a thread stands where it must not, or has no thread control
 * block of glibc's. -ESTALE: the library is not there any more. Errors of remote_session(). */
int live_patch_apply(pid_t pid, const struct live_patch *patch, struct error *err);

/* The same in a process that has the area already, for other code of it. */
int live_patch_join(pid_t pid, const struct live_patch *patch, struct error *err);

/* Takes some of the patches out, or puts them in again: `some` has those alone, which vary. A place that is
 * as wanted already stays. The area stays mapped. Pages that have no patch any more are the file's again.
 * -EBUSY: a place has something else, or a thread stands where it must not; nothing has been put in then, but
 * all else taken out. A library that is not there any more stays as it is: -ESTALE. */
int live_patch_change(pid_t pid, const struct live_patch *some, bool in, struct error *err);

/* All that a process has of one area. */
struct live_patches {
    const struct live_patch **items;
    size_t count; /* not 0 */
};

/* As live_patch_restore(), and whatever of the area's data the process has mapped is memory of its own from
 * now on. -EAGAIN: the stubs stay mapped, with all else of the area near them; a thread may be in one. */
int live_patch_part(pid_t pid, const struct live_patches *patches, struct error *err);

/* Writes back what was there, and unmaps the area if no thread could come back to it. -EBUSY: some of it is
 * not what was written, or a copy of a library's code is; all else is restored. */
int live_patch_restore(pid_t pid, const struct live_patches *patches, struct error *err);

/* Whether the patches' library lies there now, by the process's list of mappings: true of the program. */
bool live_patch_is_there(pid_t pid, const struct live_patch *patch);

#endif
