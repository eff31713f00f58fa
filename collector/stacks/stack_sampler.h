/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where all threads of live processes are: their stacks, taken once or several times, as a sample for the
 * analysis of order, which may ask back for values in frames.
 *
 *     stack_sampler_new     names the processes
 *     stack_sampler_sample    once, or several times with pauses between
 *     stack_sampler_fill    the threads of the last time, with names and lines, and which have moved
 * meanwhile stack_sampler_source  what the analysis reads values by
 *
 * How the processes come through it unharmed: thread_catch.h. Stacks are unwound from copies, by call frame
 * information, and where there is none by frame pointers, which is then said (SAMPLE_AFTER_GAP).
 *
 * Of a process whose program is written in Go the threads are its goroutines, all of them (goroutines.h).
 */
#ifndef TRACECTL_COLLECTOR_STACKS_STACK_SAMPLER_H
#define TRACECTL_COLLECTOR_STACKS_STACK_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "analyzer/order/sample.h"

struct error;

struct stack_sampler;

struct stack_sampler_options {
    const pid_t *pids; /* each once */
    size_t count;
    bool system; /* also the goroutines that the runtime begins for itself */
};

/* -ESRCH: one of the processes is not there. Needs what recording needs. */
int stack_sampler_new(const struct stack_sampler_options *options, struct stack_sampler **ret_sampler,
                      struct error *err);

/* Accepts NULL. */
void stack_sampler_free(struct stack_sampler *sampler);

/* Takes the stacks of all threads that there are now. -ESRCH: all processes are gone. */
int stack_sampler_sample(struct stack_sampler *sampler, struct error *err);

/* Adds the threads of the last time to the empty `set`, once. A thread has moved when the calls in which it
 * stands in its own program are others than at another time; a library's inner calls do not count: one that
 * looks again and again whether a message has come does not get on. */
int stack_sampler_fill(struct stack_sampler *sampler, struct sample_set *set, struct error *err);

/* What reads values for the set that was filled; it lives as long as both. Registers and stacks are those of
 * the sample; other memory is read when it is asked for (-ESTALE when the thread has run since). */
struct frame_source stack_sampler_source(struct stack_sampler *sampler);

struct stack_sampler_counts {
    size_t threads;           /* of the last time, goroutines included */
    size_t uncertain;         /* so many of them have no stack: they would not hold still, or are gone */
    size_t system;            /* goroutines of the runtime's own that were left out */
    size_t stopped;           /* threads that were stopped, all times together */
    uint64_t longest_stop_ns; /* how long the one that stood still longest did */
};
struct stack_sampler_counts stack_sampler_count(const struct stack_sampler *sampler);

/* Calls `say` for each process that is a Go program but whose goroutines are not known, with the reason; its
 * threads are shown instead. */
void stack_sampler_refusals(const struct stack_sampler *sampler,
                            void (*say)(void *context, pid_t pid, const char *reason), void *context);

#endif
