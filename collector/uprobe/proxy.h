/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Work in the kernel that must not be cut short by a SIGKILL for the collector.
 *
 * Probes come and go one place after the other. When the process that the kernel works for has a SIGKILL
 * pending, it cannot touch the target's pages any more: it gives up in the middle and leaves the breakpoints
 * that are there
 * ("failed to unregister, leaking uprobe", kernel/events/uprobes.c). So somebody else does it: a process that
 * lives as long as the work, shares the collector's descriptors and memory, and continues when the collector is
 * killed. The last descriptors are closed by its end then. (With a copy of the memory, to make that copy was
 * half of what a recorder with a budget did. So when the kernel is out of memory and kills the collector, it
 * kills this one, too, and breakpoints may stay: they cost time, but lead nowhere else.)
 *
 * It goes before everybody else. For each place the kernel takes a lock that it has to wait for, and each
 * time it would wait for a processor, too: thousands of times, while a busy program pays for every probe that
 * is on its way out. (PostgreSQL under pgbench -S on two processors, 1,000 of its 14,000 functions hot: eight
 * seconds, and two like this.)
 */
#ifndef TRACECTL_COLLECTOR_UPROBE_PROXY_H
#define TRACECTL_COLLECTOR_UPROBE_PROXY_H

/* Does `work` in such a process, or right here if there can be none, and returns what it returns. It may make
 * system calls and nothing else: it runs beside the collector's other threads, with the thread-local memory
 * of this one, which waits. */
int proxy_do(int (*work)(void *context), void *context);

#endif
