/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which of the calls that a recording thinks open are open, by the thread's stack.
 *
 * A call is known by its stack pointer at its entry. What follows, on the part of the stack that is known:
 *
 *   1. No frame has that pointer + 8 as its CFA: the call has returned.
 *   2. One has, and it is the function's (its pc lies in it), or it was made by a call of the function: open.
 *      The latter holds for a PLT stub, which jumps to where it leads, and for the cold part of a function.
 *   3. One has, but goes back to another place than the call came from: the caller is in another function by
 *      now, which stands at the same place, and the call has returned.
 *   4. Otherwise it is not known: an untraced function called by pointer from the same place looks the same.
 *
 * The CFA alone would not do: `f(); pause();` calls both with the same stack pointer.
 *
 * Pure: nothing here knows about processes.
 */
#ifndef TRACECTL_COLLECTOR_STACKS_LIVE_RESOLVE_H
#define TRACECTL_COLLECTOR_STACKS_LIVE_RESOLVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/stacks/live_unwind.h"

/* A call without a known return. Addresses are those of the process. */
struct live_call {
    uint64_t sp;             /* at its entry */
    uint64_t start, end;     /* of the function; end: the first byte behind it */
    uint64_t return_address; /* as found in its slot at its entry, before any return probe replaced it; 0: not
                                known */
};

enum live_verdict { LIVE_UNKNOWN, LIVE_OPEN, LIVE_RETURNED };

enum live_verdict live_call_verdict(const struct live_stack *stack, const struct live_call *call);

struct live_resolution {
    size_t open;  /* so many of the outermost calls are, or may be, open; the ones inside have returned */
    bool certain; /* they all are */
};

/* The calls outermost first, as call_stack.h keeps them. An all-zero stack resolves nothing. */
struct live_resolution live_resolve(const struct live_stack *stack, const struct live_call *calls,
                                    size_t count);

#endif
