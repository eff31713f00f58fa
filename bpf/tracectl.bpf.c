// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel side: probes on calls and returns, and the life of the traced processes.
 *
 * What holds here:
 * - Probes are inode-wide (every process that maps the file meets them); only processes in `processes` are
 *   recorded. A child enters the map in the fork itself, before it can run.
 * - The records of one thread stand in the ring in program order: a thread reserves its next record only
 * after the last one. So a loss can be placed exactly: a thread whose record found no room is counted in
 * `losses`, and the next record that does find room is preceded by a WIRE_LOST.
 * - Life-cycle records must not get lost: when the ring is full they go to the small `overflow` ring; what
 * even that cannot hold is counted.
 * - A process that execs is stopped before its first instruction (SIGSTOP) and listed in `held`, so that the
 * new image can be probed; the collector lets it go. `held` is written before the record, so that a collector
 * that misses the record, or the guard of a dead collector, still finds the process.
 */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/kernel_compat.h"
#include "bpf/limits.h"
#include "bpf/wire.h"

char LICENSE[] SEC("license") = "GPL";

const volatile bool with_time = true;
const volatile bool follow_children = true;

/* Read by the collector. */
struct {
    __u64 unplaced;   /* records lost for threads that `losses` had no room for */
    __u64 life_cycle; /* life-cycle records lost */
    __u64 processes;  /* children not followed because `processes` was full */
} totals;

/* Threads with an entry in `losses`: while it is 0 nobody looks there. */
__u64 losing_threads;

struct loss {
    __u32 calls;
    __u32 returns;
};

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 25);
} ring SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 20);
} overflow SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, MAX_PROCESSES);
    __type(key, __u32); /* tgid */
    __type(value, __u32);
} processes SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, MAX_PROCESSES);
    __type(key, __u32); /* tgid */
    __type(value, __u32);
} held SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, MAX_LOSING_THREADS);
    __type(key, __u32); /* tid */
    __type(value, struct loss);
} losses SEC(".maps");

static __always_inline __u64 now(void)
{
    return with_time ? bpf_ktime_get_ns() : 0;
}

/* Counts a record of thread `tid` that found no room. */
static __always_inline void count_loss(__u32 tid, bool is_return)
{
    struct loss *loss = bpf_map_lookup_elem(&losses, &tid);
    struct loss first = {};

    if (loss) { /* only the thread itself writes its entry */
        if (is_return)
            loss->returns++;
        else
            loss->calls++;
        return;
    }
    if (is_return)
        first.returns = 1;
    else
        first.calls = 1;
    if (bpf_map_update_elem(&losses, &tid, &first, BPF_ANY))
        __sync_fetch_and_add(&totals.unplaced, 1);
    else
        __sync_fetch_and_add(&losing_threads, 1);
}

/* Puts a WIRE_LOST before the thread's next record if it has losses to report. Returns false when there is
 * still no room: then the next record must not be written either, or the loss would be misplaced. */
static __always_inline bool report_loss(__u32 tid)
{
    struct wire_lost *record;
    struct loss *loss;

    if (!losing_threads)
        return true;
    loss = bpf_map_lookup_elem(&losses, &tid);
    if (!loss)
        return true;
    record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
    if (!record)
        return false;
    record->header.kind = WIRE_LOST;
    record->header.flags = 0;
    record->header.sp_high = 0;
    record->header.tid = tid;
    record->header.ns = now();
    record->calls = loss->calls;
    record->returns = loss->returns;
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
    bpf_map_delete_elem(&losses, &tid);
    __sync_fetch_and_add(&losing_threads, -1);
    return true;
}

static __always_inline bool on_signal_stack(const struct task_struct *task, __u64 sp)
{
    return sp - task->sas_ss_sp < task->sas_ss_size;
}

static __always_inline void fill_call(struct wire_call *record, __u8 kind, struct task_struct *task, __u64 sp,
                                      __u32 function)
{
    record->header.kind = kind;
    record->header.flags = on_signal_stack(task, sp) ? WIRE_ON_SIGNAL_STACK : 0;
    record->header.sp_high = (__u16)(sp >> 32);
    record->header.tid = (__u32)task->pid;
    record->header.ns = now();
    record->sp_low = (__u32)sp;
    record->function = function;
}

static __always_inline void emit_call(struct task_struct *task, __u64 sp, __u64 cookie, bool is_return)
{
    __u32 tid = (__u32)task->pid;
    struct wire_call *record;

    if (!report_loss(tid)) {
        count_loss(tid, is_return);
        return;
    }
    record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
    if (!record) {
        count_loss(tid, is_return);
        return;
    }
    fill_call(record, is_return ? WIRE_RETURN : WIRE_CALL, task, sp, (__u32)cookie);
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/*
 * The innermost calls of a thread whose returns are not probed, with the return address that each found in
 * its slot on the stack. When another call comes from deeper down and a slot holds something else by now,
 * that call has returned: this is how a callback out of a library is told from a call inside the last one. A
 * slot that still holds its address proves nothing.
 */
#define SHADOW_DEPTH 8 /* a power of two */
#define SHADOW_REACH \
    (8 << 20) /* a frame further away lies on another stack: it says nothing about this one */

struct shadow {
    __u32 next;  /* where the next frame goes, modulo SHADOW_DEPTH */
    __u32 count; /* frames that are known, at most SHADOW_DEPTH */
    struct {
        __u64 sp, return_address;
    } frames[SHADOW_DEPTH];
};

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, MAX_THREAD_STACKS);
    __type(key, __u32); /* tid */
    __type(value, struct shadow);
} shadows SEC(".maps");

/* Drops the frames that are gone; returns the highest entry stack pointer among those that a slot gave away.
 */
static __always_inline __u64 drop_gone(struct shadow *shadow, __u64 sp)
{
    __u64 gone = 0, slot;

    for (int i = 0; i < SHADOW_DEPTH && shadow->count; i++) {
        __u32 top = (shadow->next - 1) & (SHADOW_DEPTH - 1);

        if (shadow->frames[top].sp > sp && shadow->frames[top].sp - sp < SHADOW_REACH) {
            if (bpf_probe_read_user(&slot, sizeof(slot), (const void *)shadow->frames[top].sp) ||
                slot == shadow->frames[top].return_address)
                break;
            gone = shadow->frames[top].sp;
        }
        shadow->next--;
        shadow->count--;
    }
    return gone;
}

/* `keep`: the call is on an ordinary stack and its return is not probed. (A return probe overwrites the slot
 * itself.) */
static __always_inline __u64 update_shadow(__u32 tid, __u64 sp, __u64 return_address, bool keep)
{
    struct shadow *shadow = bpf_map_lookup_elem(&shadows, &tid);
    __u64 gone;

    if (!shadow) {
        struct shadow empty = {};

        if (!keep || bpf_map_update_elem(&shadows, &tid, &empty, BPF_ANY))
            return 0;
        shadow = bpf_map_lookup_elem(&shadows, &tid);
        if (!shadow)
            return 0;
    }
    gone = drop_gone(shadow, sp);
    if (keep) {
        __u32 top = shadow->next & (SHADOW_DEPTH - 1);

        shadow->frames[top].sp = sp;
        shadow->frames[top].return_address = return_address;
        shadow->next++;
        if (shadow->count < SHADOW_DEPTH)
            shadow->count++;
    }
    return gone;
}

static __always_inline void emit_call_from(struct task_struct *task, __u64 sp, __u64 cookie,
                                           bool catch_return)
{
    __u32 tid = (__u32)task->pid;
    struct wire_call_from *record;
    __u64 return_address, gone;

    if (bpf_probe_read_user(&return_address, sizeof(return_address), (const void *)sp))
        return_address = 0;
    gone = update_shadow(tid, sp, return_address, !catch_return && !on_signal_stack(task, sp));
    if (!report_loss(tid)) {
        count_loss(tid, false);
        return;
    }
    record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
    if (!record) {
        count_loss(tid, false);
        return;
    }
    fill_call(&record->call, WIRE_CALL_FROM, task, sp, (__u32)cookie);
    if (!catch_return)
        record->call.header.flags |= WIRE_RETURN_UNSEEN;
    record->return_address = return_address;
    record->gone = gone;
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/*
 * Is the thread on the stack that it was born with? A return probe replaces a return address, and the kernel
 * keeps the true ones in a list that it tidies up by comparing stack pointers: a coroutine or a signal
 * handler with a stack of its own looks to it like frames that were left, and the thread dies at its next
 * return. So there are return probes on the thread's own stack only.
 *
 * The main thread's stack ends at mm->start_stack, and the kernel puts nothing else into the 128 MiB below
 * it. Any other thread has its control block (fs) at the upper end of its stack: what lies closely below is
 * the stack, what lies further down must be in the same mapping. That look-up fails when the process changes
 * its mappings at this very moment; then the return is inferred.
 */
#define THREAD_STACK_TOP (64ul << 10)
#define MAIN_STACK_ROOM (128ul << 20)

struct stack_bounds {
    __u64 start, end;
};

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, MAX_THREAD_STACKS);
    __type(key, __u32); /* tid */
    __type(value, struct stack_bounds);
} stacks SEC(".maps");

struct stack_question {
    __u64 sp, thread_block;
    struct stack_bounds answer; /* end 0: not the thread's own stack */
};

static long look_at_mapping(struct task_struct *task, struct vm_area_struct *mapping, void *context)
{
    struct stack_question *question = context;

    if (question->thread_block > question->sp && question->thread_block < mapping->vm_end) {
        question->answer.start = mapping->vm_start;
        question->answer.end = question->thread_block;
    }
    return 0;
}

static __always_inline bool on_own_stack(struct task_struct *task, __u64 sp)
{
    __u32 tid = (__u32)task->pid;
    struct stack_question question = {};
    struct stack_bounds *known;

    if (on_signal_stack(task, sp)) /* which may be a variable on the thread's stack */
        return false;
    if (task->pid == task->tgid)
        return task->mm->start_stack - sp < MAIN_STACK_ROOM;
    if (task->thread.fsbase - sp < THREAD_STACK_TOP)
        return true;
    known = bpf_map_lookup_elem(&stacks, &tid);
    if (known && sp - known->start < known->end - known->start)
        return true;
    if (known) /* elsewhere now; the thread's own stack does not move */
        return false;
    question.sp = sp;
    question.thread_block = task->thread.fsbase;
    if (bpf_find_vma(task, sp, look_at_mapping, &question, 0) || !question.answer.end)
        return false;
    bpf_map_update_elem(&stacks, &tid, &question.answer, BPF_ANY);
    return true;
}

static __always_inline bool is_traced(struct task_struct *task)
{
    __u32 tgid = (__u32)task->tgid;

    return bpf_map_lookup_elem(&processes, &tgid) != 0;
}

/* At a call. Returns 0 when its return is to be caught, else 1. */
static __always_inline int on_call(struct pt_regs *ctx)
{
    struct task_struct *task = bpf_get_current_task_btf();
    bool catch_return;
    __u64 cookie;

    if (!is_traced(task))
        return 1;
    cookie = bpf_get_attach_cookie(ctx);
    catch_return = !(cookie & COOKIE_ENTRY_ONLY) && on_own_stack(task, ctx->sp);
    if (!catch_return || cookie & COOKIE_WANT_RETURN_ADDRESS)
        emit_call_from(task, ctx->sp, cookie, catch_return);
    else
        emit_call(task, ctx->sp, cookie, false);
    return !catch_return;
}

static __always_inline int on_return(struct pt_regs *ctx)
{
    struct task_struct *task = bpf_get_current_task_btf();

    if (is_traced(task))
        emit_call(task, ctx->sp, bpf_get_attach_cookie(ctx), true);
    return 0;
}

/* Call and return in one link, each call deciding about its return (kernels with uprobe sessions). */
SEC("uprobe.multi")
int on_session(struct pt_regs *ctx)
{
    return bpf_session_is_return() ? on_return(ctx) : on_call(ctx);
}

/* Calls only, for kernels without sessions: there a return probe could not be declined where it harms. */
SEC("uprobe.multi")
int on_call_only(struct pt_regs *ctx)
{
    struct task_struct *task = bpf_get_current_task_btf();

    if (is_traced(task))
        emit_call_from(task, ctx->sp, bpf_get_attach_cookie(ctx), false);
    return 0;
}

/* Reserves a life-cycle record and fills its header; the caller fills the rest and submits it. */
static __always_inline void *reserve_life_cycle(__u64 size, __u8 kind, __u32 tid)
{
    struct wire_header *header = bpf_ringbuf_reserve(&ring, size, 0);

    if (!header)
        header = bpf_ringbuf_reserve(&overflow, size, 0);
    if (!header) {
        __sync_fetch_and_add(&totals.life_cycle, 1);
        return 0;
    }
    header->kind = kind;
    header->flags = 0;
    header->sp_high = 0;
    header->tid = tid;
    header->ns = bpf_ktime_get_ns();
    return header;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
    __u32 parent_tgid = (__u32)parent->tgid, tgid = (__u32)child->tgid, one = 1;
    struct wire_fork *record;

    if (!bpf_map_lookup_elem(&processes, &parent_tgid))
        return 0;
    if (tgid != parent_tgid) {
        if (!follow_children)
            return 0;
        if (bpf_map_update_elem(&processes, &tgid, &one, BPF_ANY)) {
            __sync_fetch_and_add(&totals.processes, 1);
            return 0;
        }
    }
    record = reserve_life_cycle(sizeof(*record), WIRE_FORK, (__u32)child->pid);
    if (!record)
        return 0;
    record->tgid = tgid;
    record->parent_tid = (__u32)parent->pid;
    record->parent_tgid = parent_tgid;
    record->unused = 0;
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
    return 0;
}

#define SIGSTOP 19
#define PIDTYPE_PGID 2

/* A shell with job control would take the stop for its user's Ctrl-Z, and the terminal with it. Such a shell
 * gives each job a process group of its own. */
static __always_inline bool is_job(struct task_struct *task)
{
    return task->signal->tty &&
           task->signal->pids[PIDTYPE_PGID] != task->real_parent->signal->pids[PIDTYPE_PGID];
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_tid)
{
    __u32 tgid = (__u32)task->tgid, one = 1;
    struct wire_exec *record;
    bool hold;

    if (!bpf_map_lookup_elem(&processes, &tgid))
        return 0;
    /* Held only if it is on the list: whoever is stopped must be found again. */
    /* What is known about the old program's stack means nothing on the new one. */
    bpf_map_delete_elem(&shadows, &tgid);
    bpf_map_delete_elem(&stacks, &tgid);
    hold = !is_job(task) && !bpf_map_update_elem(&held, &tgid, &one, BPF_ANY);
    if (hold)
        bpf_send_signal(SIGSTOP);
    record = reserve_life_cycle(sizeof(*record), WIRE_EXEC, tgid);
    if (!record)
        return 0;
    record->header.flags = hold ? WIRE_HELD : 0;
    record->old_tid = (__u32)old_tid;
    record->unused = 0;
    bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
    return 0;
}

#define SIGNAL_GROUP_EXIT 4 /* signal_struct.flags: the exit code is the group's */

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_task_exit, struct task_struct *task)
{
    __u32 tgid = (__u32)task->tgid, tid = (__u32)task->pid;
    bool last = task->signal->live.counter == 0;
    struct wire_exit *record;

    if (!bpf_map_lookup_elem(&processes, &tgid))
        return 0;
    if (last) {
        bpf_map_delete_elem(&processes, &tgid);
        bpf_map_delete_elem(&held, &tgid);
    }
    report_loss(tid);
    bpf_map_delete_elem(&stacks, &tid);
    bpf_map_delete_elem(&shadows, &tid);
    record = reserve_life_cycle(sizeof(*record), WIRE_EXIT, tid);
    if (!record)
        return 0;
    record->header.flags = last ? WIRE_LAST_THREAD : 0;
    record->tgid = tgid;
    if (last && task->signal->flags & SIGNAL_GROUP_EXIT)
        record->exit_code = (__u32)task->signal->group_exit_code;
    else if (last)
        record->exit_code = (__u32)task->group_leader->exit_code;
    else
        record->exit_code = (__u32)task->exit_code;
    __builtin_memcpy(record->comm, task->comm, sizeof(record->comm));
    bpf_ringbuf_submit(record, last ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
    return 0;
}
