/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory of BPF maps that this process has mapped.
 *
 * fork() copies the page tables of such memory, unlike those of other shared memory, since the kernel could
 * not fill them again at a fault (vma_needs_copy() in mm/memory.c): 64 MiB of a ring that is mapped twice are
 * 16,384 entries, more than all the rest that a recorder has.
 */
#ifndef TRACECTL_COLLECTOR_UPROBE_BPF_MAPPINGS_H
#define TRACECTL_COLLECTOR_UPROBE_BPF_MAPPINGS_H

/* Children that this process forks from now on do not have what it has mapped of BPF maps so far. */
void bpf_mappings_keep(void);

#endif
