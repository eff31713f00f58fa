/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walks the stack of a thread from copies: its registers and the memory of its stack. elfutils' libdwfl does
 * it by call frame information (.eh_frame, .debug_frame; DWARF 5, 6.4) alone. Where there is none libdwfl
 * would continue by frame pointers, which is a guess where code was compiled without them: the walk ends before
 * that.
 */
#ifndef TRACECTL_COLLECTOR_STACKS_LIVE_UNWIND_H
#define TRACECTL_COLLECTOR_STACKS_LIVE_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collector/stacks/live_copy.h"
#include "collector/stacks/live_maps.h"
#include "collector/stacks/live_threads.h"

/* One activation of a function. */
struct live_frame {
    uint64_t pc;  /* lies in the function: in a caller, inside its call instruction */
    uint64_t cfa; /* the stack pointer before the call that made it: at its entry + 8; 0: not known */
    uint64_t return_address; /* 0: not known */
    uint64_t callee;         /* what the call before the return address calls; 0: not known, or indirect */
};

/* The frames of a thread, or as many of them as could be found. All zero: nothing is known. */
struct live_stack {
    struct live_frame *frames; /* innermost first, by ascending cfa; only the last one may be without */
    size_t count;
    /* The answer is complete from `low`, where the stack begins, up to `complete_to`: whatever call had its
     * stack pointer there at its entry is one of the frames, or is over. */
    uint64_t low, complete_to;
    bool whole; /* the last frame is the outermost of the stack */
};

void live_stack_release(struct live_stack *stack);

struct live_unwinder; /* of one process */

/* The maps must live as long as the unwinder. Files are opened when the first frame lies in them: as long as
 * the process lives. -ENOMEM. */
int live_unwinder_new(pid_t pid, const struct live_maps *maps, struct live_unwinder **ret_unwinder);

/* Accepts NULL. */
void live_unwinder_free(struct live_unwinder *unwinder);

/* The caller releases the stack. What cannot be found out is not an error, but an answer that is not whole.
 * -ENOMEM. */
int live_unwind(struct live_unwinder *unwinder, const struct live_thread *thread,
                const struct live_copy *copy, struct live_stack *ret_stack);

/* One activation with its registers as they were when it made its call, for readers of its variables. */
struct live_activation {
    uint64_t pc; /* the next instruction: in a caller, the return address */
    uint64_t registers[LIVE_REGISTERS];
    uint32_t known;   /* bit N: registers[N] could be restored */
    bool interrupted; /* it made no call: a signal came before the instruction at `pc`, or it is the innermost
                       */
    bool signal_frame; /* it was not called: the kernel made it, for the handler that it calls */
    bool guessed;      /* no call frame information led here but a frame pointer, and that may be wrong */
};

/* Walks the stack as well, innermost first, with no demand on where the stack lies: `copies` are all the
 * memory that is known, signal handlers' stacks and the ones below them may each have one. Where there is no
 * call frame information the walk continues by frame pointers and says so. `visit` returns false to end it.
 * Returns whether it came to the outermost activation. */
bool live_unwind_activations(struct live_unwinder *unwinder, const struct live_thread *thread,
                             const struct live_copy *copies, size_t copy_count,
                             bool (*visit)(void *context, const struct live_activation *activation),
                             void *context);

#endif
