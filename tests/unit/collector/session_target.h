/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A process that notices when something of it is not as it was: for tests of remote sessions. */
#ifndef TRACECTL_TESTS_UNIT_COLLECTOR_SESSION_TARGET_H
#define TRACECTL_TESTS_UNIT_COLLECTOR_SESSION_TARGET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "image/functions/functions.h"

#define SESSION_WATCHED "probed_" /* begins the names of the functions that its threads call */

enum session_kind {
    SESSION_COMPUTES, /* its main thread computes, others wait in system calls and call functions */
    SESSION_WAITS,    /* its main thread waits in a system call, too */
    SESSION_GO        /* a Go program, with goroutines that compute */
};

extern struct session_target {
    pid_t pid;
} session_target;

/* Starts it, and returns when all its threads have begun. */
void session_target_begin(enum session_kind kind);

/* Fails the test if a thread of it does not get on, has had a register or a signal mask of somebody else's,
 * or if it has other descriptors than before. `at` is for the message. */
void session_target_expect_whole(size_t at);

void session_target_read(uint64_t address, void *bytes, size_t size);

/* The index of the first watched function. */
size_t session_watched(const struct image_function *functions, size_t count);

void session_target_end(void);

#endif
