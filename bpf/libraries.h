/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The dynamic linker calls _dl_debug_state() when it has mapped or unmapped libraries, and before it runs any
 * of their code: it is there for debuggers, and so for us.
 *
 * A process whose new libraries are to be probed waits there, and so does every program when it starts. One
 * that has a single thread is stopped, as at
 * its exec. In others all threads would see the stop (epoll_wait and others return EINTR after one): there
 * only the thread that loads the library waits, here, for at most LIBRARY_WAIT_NS. A tracer that stops all threads
 * to put inline probes into the library ends the wait: the thread stops before it runs any code of the library, and
 * continues when the tracer detaches.
 *
 * Another process does not wait: until the collector has looked at them, calls out
 * of them are taken for callbacks out of code that can throw (bpf/callers.h).
 */
#ifndef TRACECTL_BPF_LIBRARIES_H
#define TRACECTL_BPF_LIBRARIES_H

#include "bpf/arch.h"
#include "bpf/lifecycle.h"
#include "bpf/probe_cookie.h"

/* The collector deletes the entry to let the thread go; a thread that has waited too long deletes it itself,
 * so that the collector sees that it came too late. The value is a wait_state. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, MAX_WAITING);
    __type(key, __u32); /* tid */
    __type(value, __u32);
} waiting SEC(".maps");

struct wait {
    __u64 until;
    __u32 tid;
    bool ends_by_stop;
};

/* JOBCTL_TRAP_STOP of include/linux/sched/jobctl.h: PTRACE_INTERRUPT was asked for. */
#define STOP_ASKED_FOR (1ul << 19)

static __always_inline bool is_to_stop(void)
{
    struct task_struct *task = bpf_get_current_task_btf();

    return task->jobctl & STOP_ASKED_FOR;
}

static long wait_a_little(__u64 turn, void *context)
{
    struct wait *wait = context;

    return !bpf_map_lookup_elem(&waiting, &wait->tid) || bpf_ktime_get_ns() > wait->until ||
           (wait->ends_by_stop && is_to_stop());
}

#define TURNS (1u << 23) /* the most that bpf_loop takes; each takes some 50 ns */

/* `ends_by_stop`: a stop by a tracer ends the wait. */
static __always_inline void wait_until_let_go(__u32 tid, bool ends_by_stop)
{
    struct wait wait = {
        .until = bpf_ktime_get_ns() + LIBRARY_WAIT_NS, .tid = tid, .ends_by_stop = ends_by_stop};
    __u32 stopped = WAIT_STOPPED;

    bpf_loop(TURNS, wait_a_little, &wait, 0);
    if (ends_by_stop && is_to_stop())
        bpf_map_update_elem(&waiting, &tid, &stopped, BPF_EXIST);
    else
        bpf_map_delete_elem(&waiting, &tid);
}

#define RT_CONSISTENT 0 /* of struct r_debug, which <link.h> describes */
#define R_STATE_OFFSET 24

/* The linker calls before and after it changes its list; `cookie` is where its struct r_debug lies from the
 * probe on, 0 when that is not known. */
static __always_inline bool is_before_change(const struct pt_regs *ctx, __u64 cookie)
{
    int state;

    return cookie &&
           !bpf_probe_read_user(&state, sizeof(state),
                                (const void *)(instruction_pointer(ctx) + cookie + R_STATE_OFFSET)) &&
           state != RT_CONSISTENT;
}

/* How the process waits, as a flag of the record; 0: it does not. */
static __always_inline __u8 begin_wait(struct task_struct *task, const struct process_state *state)
{
    __u32 tid = (__u32)task->pid, waits = WAIT_GOES_ON;

    if (phase != PHASE_RECORDING || !(state->flags & (PROCESS_WATCHED | PROCESS_STARTING)))
        return 0;
    if (task_to_read(task)->signal->nr_threads == 1 && hold(task))
        return WIRE_HELD;
    return bpf_map_update_elem(&waiting, &tid, &waits, BPF_ANY) ? 0 : WIRE_WAITING;
}

SEC("uprobe.multi")
int on_libraries(struct pt_regs *ctx)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct process_state *state = process_of(task);
    struct wire_libraries *record;
    __u32 tid = (__u32)task->pid;
    __u8 how;

    if (phase == PHASE_CLOSED || !state || !(state->flags & PROCESS_CAN_LOAD) ||
        is_before_change(ctx, probe_cookie(ctx)))
        return 0;
    how = begin_wait(task, state);
    if (!how) {
        state->flags |= PROCESS_CHECK_CALLERS;
        processes_changed();
    }
    flush_current(task);
    record = reserve_life_cycle(sizeof(*record), WIRE_LIBRARIES, tid);
    if (!record) {
        bpf_map_delete_elem(&waiting, &tid);
        return 0;
    }
    record->header.flags = how;
    record->tgid = (__u32)task->tgid;
    record->starting = (state->flags & PROCESS_STARTING) != 0;
    bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
    if (how == WIRE_WAITING)
        wait_until_let_go(tid, true);
    return 0;
}

#endif
