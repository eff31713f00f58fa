/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which functions of a running program seem to be called often, before any of them has a probe.
 *
 * A second long, at most, a timer of the kernel's interrupts each processor a thousand times, and where it
 * runs the program copies its stack around the stack pointer. Above that are the return addresses of the
 * calls that are open, and below it those of calls that returned a moment ago, since nothing wipes them away.
 * Each stands behind a call instruction, which tells the caller, and mostly the callee.
 *
 * It is a guess, good for the order in which functions get their probes: an old address may have stayed on
 * the stack, and a function that is only called by pointer and calls nothing may hide. It costs the target
 * the interrupts, some percent of its time meanwhile.
 */
#ifndef TRACECTL_COLLECTOR_BUDGET_STACK_PROFILE_H
#define TRACECTL_COLLECTOR_BUDGET_STACK_PROFILE_H

#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/images/image_table.h"

struct error;

/* Adds to `samples`, which has an entry for each of the image's functions, in how many samples it occurs, of
 * all processes that run the image as their program. Returns the number of samples; 0 too where the kernel
 * gives none. -ENOMEM. */
int stack_profile_sample(const struct traced_image *image, uint32_t *samples, struct error *err);

/* The part that needs no process: marks the functions that `words`, from a stack in a process where the image
 * lies `bias` higher, speak of. `marks`: an entry for each function. */
void stack_profile_read_stack(const struct traced_image *image, uint64_t bias, const __u64 *words,
                              size_t count, bool *marks);

#endif
