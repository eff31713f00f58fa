/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Work that may never come back, done in a process beside this one.
 *
 * A page of another process, or a file behind its root directory, may be served by a program of its user
 * (FUSE, userfaultfd) or by a server that is gone, and whoever waits for it cannot be killed. The helper is
 * that process: it has none of our descriptors, so what it holds when it is left behind is its memory. It
 * begins when there is something to do; a new one begins after one has been left behind.
 */
#ifndef TRACECTL_BASE_ASIDE_H
#define TRACECTL_BASE_ASIDE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One piece of work. It runs in a copy of this process that was made before, maybe in the middle of another
 * thread's work: it takes no memory, opens no stream, and knows nothing but the request. Returns a negative
 * errno, or how many bytes of `reply` (of `room`) it has filled. `*ret_fd`, -1 before, is handed over. */
typedef int (*aside_work)(const void *request, void *reply, size_t room, int *ret_fd);

#define ASIDE_REQUEST_MOST ((size_t)64 << 10)
#define ASIDE_REPLY_MOST ((size_t)64 << 20)

struct aside_job {
    aside_work work;
    const void *request;
    size_t request_size; /* at most ASIDE_REQUEST_MOST */
    void *reply;         /* gets the first `room` bytes of the reply; NULL: nothing */
    size_t room;
    char **ret_text;   /* gets all of the reply with a NUL behind it, the caller frees it; NULL: not wanted */
    int *ret_fd;       /* gets the descriptor, close-on-exec, -1 without one; NULL: there is none */
    uint64_t limit_ns; /* what it may take at most; 0 or more than ASIDE_LIMIT_NS: that */
    uint64_t *ret_spent_ns; /* gets what it has taken; NULL: not wanted */
};

#define ASIDE_LIMIT_NS 2000000000u

/* Does the work and returns what it returned. -ETIMEDOUT: it has not come back within its limit (a fifth of a
 * second after three such losses) and was left behind; -ENOMEM, -EMFILE. The limit is for waiting and working;
 * the time in which the helper only waits for a processor does not count, but is at most five seconds. Calls
 * of several threads take their turns. */
int aside_do(const struct aside_job *job);

/* Process `pid` shares all memory and descriptors with this one (CLONE_VM, CLONE_FILES), and so the helper; 0: none does
 * any more. */
void aside_share(pid_t pid);

/* Ends the helper, which has the rights that this process had when it began. */
void aside_stop(void);

#endif
