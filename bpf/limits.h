/* SPDX-License-Identifier: GPL-2.0-only */
/* Sizes of the kernel side's maps, which the collector need not know. */
#ifndef TRACECTL_BPF_LIMITS_H
#define TRACECTL_BPF_LIMITS_H

#define MAX_PROCESSES 65536
#define MAX_LOSING_THREADS 65536 /* threads with uncollected losses at one moment */
#define MAX_THREAD_STACKS 65536  /* remembered; a thread that is forgotten is looked up again */

#define PACKED_SLOTS 512 /* threads whose calls are packed, at one moment; 26 KiB each */

#define MAX_CALLBACKS 65536          /* threads inside a callback out of code that can throw */
#define MAX_WAITING 4096             /* threads that wait for probes on new libraries */
#define LIBRARY_WAIT_NS 250000000ull /* at most so long each */

#endif
