/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What inline probes leave in a process: areas that are mapped, and jumps into them where a recording was
 * killed before it could take them out.
 *
 * An area may only be unmapped when no thread comes back to it: no thread stands in it, and no word of any
 * thread's stack could be an address in it, which a signal handler that interrupted a stub would return to.
 */
#ifndef TRACECTL_COLLECTOR_INLINE_STALE_PATCHES_H
#define TRACECTL_COLLECTOR_INLINE_STALE_PATCHES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "collector/ptrace/remote.h"

struct code_mapping;
struct error;

/* Takes jumps out and unmaps areas, as far as no thread is inside; what the calling process itself has put
 * there stays. -EBUSY: another recording has inline probes in the process now. Any failure means that no
 * probe of another kind may be put into its program: the kernel would write it over a jump. A process without
 * areas is not stopped. */
int stale_patches_clean(pid_t pid, struct error *err);

/* The same for every process that has areas and maps the file: before uprobes are put into all processes that
 * run it. */
int stale_patches_clean_all(dev_t device, ino_t inode, struct error *err);

/* Whether what is mapped there is a recorder's: stubs, or the agent that they call. */
bool stale_patches_has_probe_code(pid_t pid, const struct code_mapping *mapping);

/* The inode of the head file of an area that `collector` has put into the process, 0: there is none. A child that has just
 * been forked has those of its parent. */
uint64_t stale_patches_area_of(pid_t pid, pid_t collector);

/* Takes out what `collector` has put into any process, children that it never heard of too. For that
 * collector at the end of its recording, and for its guard. Processes that cannot be cleaned are passed over.
 */
void stale_patches_remove_all(pid_t collector);

/* Whether the process runs on its parent's memory (a child by vfork): its threads are not all that may be in
 * the code. In a session of it. */
bool stale_patches_on_parents_memory(const struct remote *remote);

/* -EBUSY: a child runs on the memory of the process, and does not stop with it (a child by vfork has a parent
 * that stands still, and which cannot be stopped itself). In a session of the process. */
int stale_patches_check_vfork_children(const struct remote *remote, struct error *err);

/* Unmaps what belongs to one area, all of it or nothing: that is left if a thread is inside. Addresses in the
 * target; in a session of it. Returns whether it has. */
struct stale_area {
    uint64_t near_start, near_end;   /* head, agent and stubs of one place */
    uint64_t apart_start, apart_end; /* counts and chunks, which all places have in common; 0: not known */
};
bool stale_patches_unmap(struct remote *remote, const struct stale_area *areas, size_t count);

/* Where a process has a data file mapped, by its inode number: the first place if there are more. False:
 * nowhere.
 */
bool stale_patches_find_rings(pid_t pid, uint64_t file, struct stale_area *ret_area);

#endif
