/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pages of code that a process has of its own.
 *
 * The first byte that is written into a page of code makes the kernel copy it for that process, and the copy
 * stays when the byte is put back: memory that every process pays for itself, and code that the processor
 * has to fetch from another place for each of them. Nobody needs a copy that is as in the file. The kernel
 * gives back those that its own breakpoints have made ("uprobe: use original page when all uprobes are
 * removed", Linux 5.4).
 */
#ifndef TRACECTL_COLLECTOR_INLINE_TEXT_PAGES_H
#define TRACECTL_COLLECTOR_INLINE_TEXT_PAGES_H

#include "collector/process/maps.h"
#include "collector/ptrace/remote.h"

/* Gives the copies back that are as in the file, so that the process has the file's own pages there again. In
 * a session of it. `changed`: of each page, whether it may have become so; NULL: any may. A page that has
 * anything else, another program's breakpoint, stays a copy; so does all that cannot be looked at, and memory
 * that is locked. */
void text_pages_give_back(struct remote *remote, const struct code_mapping *mapping, const bool *changed);

#endif
