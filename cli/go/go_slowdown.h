/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How much longer a program takes under probes than without, for `go explore`: schedules that need operations
 * to be as quick as they are otherwise may not show then.
 */
#ifndef TRACECTL_CLI_GO_GO_SLOWDOWN_H
#define TRACECTL_CLI_GO_GO_SLOWDOWN_H

#include <stdint.h>

/* All zero is no execution. */
struct go_slowdown {
    uint64_t hits, took_ns;
    uint32_t executions;
};

/* An execution with a number of probe hits took a time; time in which its goroutines were held by intent
 * should be small. */
void go_slowdown_add(struct go_slowdown *slowdown, uint64_t hits, uint64_t took_ns);

/* Where executions had many hits, runs the command once more, without output, and returns how many times as
 * long an execution has taken. No probe must be there any more. 0: there were few hits, or it was not
 * measured. At least 1 otherwise: a command that takes as long as an execution is ended. */
double go_slowdown_measure(const struct go_slowdown *slowdown, char *const *command);

#endif
