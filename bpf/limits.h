/* SPDX-License-Identifier: GPL-2.0-only */
/* Sizes that both sides of the ring buffer agree on. */
#ifndef TRACECTL_BPF_LIMITS_H
#define TRACECTL_BPF_LIMITS_H

#define MAX_PROCESSES 65536
#define MAX_LOSING_THREADS 65536 /* threads with uncollected losses at one moment */
#define MAX_THREAD_STACKS 65536  /* remembered; a thread that is forgotten is looked up again */

#endif
