/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The frame that Linux puts on the stack for a signal handler on x86-64, and takes all registers, flags, the
 * state of the floating-point unit and the blocked signals from when the handler returns (rt_sigreturn). Made
 * here by hand, it takes a thread to any state in one step of the kernel's.
 */
#ifndef TRACECTL_COLLECTOR_ARCH_SIGNAL_FRAME_H
#define TRACECTL_COLLECTOR_ARCH_SIGNAL_FRAME_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#define REMOTE_REGISTERS 23 /* NGREG of <sys/ucontext.h> */

struct signal_frame {
    uint64_t return_address; /* where the handler returns to: code that calls rt_sigreturn */
    uint64_t flags, link;    /* a struct ucontext of the kernel's */
    uint64_t stack[3];
    uint64_t registers[REMOTE_REGISTERS];
    uint64_t state; /* address of the floating-point unit's, a multiple of 64 */
    uint64_t reserved[8];
    uint64_t blocked; /* signals */
};

/* What all frames of a session have in common. */
struct signal_frames {
    uint64_t sigreturn; /* address of code that calls rt_sigreturn */
    uint64_t state;
};

void signal_frame_fill(struct signal_frame *frame, const struct signal_frames *all,
                       const struct user_regs_struct *registers, uint64_t blocked);

/* The state of the floating-point unit of a stopped thread, in the form that frames refer to. -EIO: it cannot
 * be had; -ENOSPC: `room` is too small. */
int signal_frame_state(pid_t tid, uint8_t *bytes, size_t room, size_t *ret_size);

/* The registers with which a thread that was interrupted in a system call makes that anew. What the kernel
 * would do by itself, but for calls with a timeout, which begins anew, too. Others are as they were. */
void signal_frame_restart(struct user_regs_struct *registers);

#endif
