/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A session's own notes: private to remote.c and remote_call.c. */
#ifndef TRACECTL_COLLECTOR_PTRACE_REMOTE_STATE_H
#define TRACECTL_COLLECTOR_PTRACE_REMOTE_STATE_H

#include "collector/arch/signal_frame.h"
#include "collector/arch/thread_registers.h"
#include "collector/process/tracee.h"
#include "collector/ptrace/remote.h"
#include "collector/ptrace/remote_place.h"

struct remote_thread {
    struct tracee tracee;
    struct user_regs_struct registers; /* with which it continues */
};

#define REMOTE_SLOTS (REMOTE_UNDO_MOST + 1) /* the last one takes the thread back to where it was */
#define REMOTE_STATE_BYTES 12288u           /* the largest state of today's processors has 11,008 */

/* Memory of the process that calls are prepared in. A frame leads to the next one in memory; a thread that is
 * not stopped any more goes through all of them from the one that its stack pointer is at. */
struct remote_memory {
    union {
        struct signal_frame frame;
        uint8_t bytes[320];
    } slots[REMOTE_SLOTS];
    uint8_t scratch[REMOTE_SCRATCH_BYTES];
    uint8_t state[REMOTE_STATE_BYTES] __attribute__((aligned(64)));
};

/* The thread that calls the kernel for us. */
struct remote_caller {
    bool ready, refused;
    struct error why;             /* refused: it cannot be had */
    struct remote_thread *thread; /* of the session's */
    struct remote_code code;
    struct signal_frames frames;
    uint64_t memory;             /* address of a struct remote_memory in the process */
    struct remote_memory before; /* what stood there */
    size_t written;              /* so many bytes of it have been changed */
    uint64_t blocked;            /* its signals */
    size_t undo;                 /* so many calls are prepared that undo something */
    bool parked;                 /* it stands before the first frame, not where it was */
};

struct remote {
    pid_t pid;
    int memory; /* /proc/PID/mem */
    struct remote_thread *threads;
    size_t count, capacity;
    struct remote_caller caller;
};

int remote_get_registers(pid_t tid, struct user_regs_struct *ret_registers);
int remote_set_registers(pid_t tid, const struct user_regs_struct *registers);

/* Takes the calling thread back to where it was. If it does not stop for that, it will go back on its own
 * once it is let go. */
void remote_unpark(struct remote *remote);

#endif
