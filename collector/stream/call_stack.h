/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The open calls of one thread, kept right by stack pointers even where returns were not seen.
 *
 * Every call brings the stack pointer at its entry (it points to the return address), every probed return the
 * one just after it. The stack grows down, so what is known to have returned follows:
 *
 *   1. At a call with stack pointer s, every open call with entry pointer <= s has returned: its frame is
 *      gone. Equal means a tail call: the new function took the frame over.
 *   2. At a return to stack pointer s, every open call with entry pointer < s has returned.
 *   3. If the caller of the new call is known (its return address lies in a traced function that is open),
 *      the calls above that function's innermost frame have returned.
 *   4. If the kernel side found the return slot of an open call overwritten (bpf/tracectl.bpf.c), that call
 *      and all inside it have returned. That is later than it happened, so it says nothing where calls that
 *      the kernel side has not seen may have come in between (inline probes).
 *   5. If the depth of the caller's frame at the call is known, so is where that frame begins: the calls with
 *      entry pointers below were made by the same activation of the caller, or by one that is gone, and have
 *      returned.
 *   6. A handler on an alternate signal stack has its own range of pointers, compared only among themselves;
 *      anything that happens on the ordinary stack means that all calls on the signal stack are gone.
 *
 * What these rules leave open may have returned all the same, unseen: a call that comes next is
 * only assumed to be inside it. It certainly is inside a call whose return would have been seen, inside one
 * that never returns, and inside its caller (rule 3).
 *
 * This is ParLOT's call-stack correction (dissertation, 2.3.4) with the tail-call, caller and signal-stack
 * rules added. A call that is more than CALL_STACK_MOST bytes away from its neighbours is on another stack
 * and only assumed to be where these rules put it. Limits: coroutines that switch between stacks that lie
 * close to each other look like rule 1, see docs/architecture.md. Rule 3 takes a recursive function's
 * innermost call for the caller; where that one has returned unseen and an outer one has made its frame
 * larger since (alloca), it is wrong. A call left by longjmp() is taken to be open until rule 1 closes it.
 * The kernel counts tail calls as nested return probes, frames here do not.
 *
 * Pure bookkeeping: nothing here knows about BPF or the store.
 */
#ifndef TRACECTL_COLLECTOR_STREAM_CALL_STACK_H
#define TRACECTL_COLLECTOR_STREAM_CALL_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CALL_STACK_NO_CALLER UINT32_MAX

/* Frames further apart than that many bytes are not taken for those of one stack. */
#define CALL_STACK_MOST (64u << 20)

struct call_frame {
    uint64_t sp;
    uint64_t return_address; /* 0: not known */
    uint32_t function;
    uint32_t stack; /* number of the stack that it is the innermost frame of (inline_paths.h); 0: none */
    bool on_signal_stack;
    bool return_unseen; /* no return probe */
    uint32_t probed;    /* calls with a return probe, from the outermost one to this one */
};

/* All zero is an empty stack. */
struct call_stack {
    struct call_frame *frames; /* outermost first */
    size_t depth, capacity;
    /* Of the calls that were open when the program was replaced: */
    bool some_may_be_gone;      /* some may have returned unseen before */
    bool innermost_may_be_gone; /* the innermost, which all that follows is inside */
};

void call_stack_release(struct call_stack *stack);

/* Another program takes the process over (execve). The open calls never return, and what comes is inside
 * them; but their frames are gone, so that no stack pointer can close them: the stack is empty again. */
void call_stack_replace(struct call_stack *stack, uint32_t never_returns);

/* A call, and what came with it. */
struct call_evidence {
    uint64_t sp; /* at its entry */
    bool on_signal_stack;
    uint32_t function;
    uint32_t caller;         /* CALL_STACK_NO_CALLER: not known */
    bool return_unseen;      /* it has no return probe */
    uint64_t return_address; /* as found on the stack at its entry, 0: not known */
    uint64_t
        caller_depth; /* bytes of the caller's frame at the call (image/flow/call_depth.h); 0: not known */
    uint64_t gone;    /* calls with entry pointers up to this have returned; 0: nothing known */
};

/* Whether the call's return has been seen if there was one. */
bool call_frame_return_is_seen(const struct call_frame *frame);

/* What a call did to the stack. */
struct call_effect {
    size_t closed; /* so many calls have returned before it */
    bool assumed;  /* the call that it was put into may have returned, too */
};

/* Closes what must have returned, and opens the new call. `never_returns`: the function of which that is
 * known although its return is not probed, CALL_STACK_NO_CALLER: none. -ENOMEM leaves all as it was. */
int call_stack_call(struct call_stack *stack, const struct call_evidence *call, uint32_t never_returns,
                    struct call_effect *ret_effect);

/* A return that left the stack pointer at `sp`. Returns how many calls it closes: 0 when the call it belongs
 * to was not recorded, more than 1 when returns were missed. */
size_t call_stack_return(struct call_stack *stack, uint64_t sp, bool on_signal_stack);

/* The RET of `function`, with the stack pointer `sp` at its return address, as it was at its entry (an exit of
 * an inline probe). Returns how many calls it closes, of which the last one is that call: 0 when that is not
 * open, or something else has taken its frame; then nothing is closed. */
size_t call_stack_exit(struct call_stack *stack, uint64_t sp, uint32_t function, bool on_signal_stack);

/* Only the `depth` outermost calls are open. Returns how many calls that closes. */
size_t call_stack_cut(struct call_stack *stack, size_t depth);

/* Whether some open call but those of `never_returns` may have returned without a trace: because its return
 * is not probed, or because it lies deeper than the kernel's limit of nested return probes. Calls from before
 * call_stack_replace() included. */
bool call_stack_is_uncertain(const struct call_stack *stack, uint32_t never_returns);

#endif
