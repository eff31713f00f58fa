// SPDX-License-Identifier: GPL-2.0-only
/*
 * What `tracectl doctor` tries: one program for each thing that recording needs, each loaded alone, so that
 * one that the kernel refuses does not hide the others; and empty programs, whose hits cost what the kernel
 * takes.
 *
 * Every program that is meant to run counts its hits in `hits` and leaves what it saw in `answer`.
 */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/arch.h"
#include "bpf/kernel_compat.h"
#include "bpf/probe_cookie.h"

char LICENSE[] SEC("license") = "GPL";

/* Read and written by the collector. */
__u64 hits, returns, answer;
__u32 watched; /* the process whose children the tracepoints count */

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 25); /* as large as the recorder's */
} try_ring SEC(".maps");

SEC("uprobe.multi")
int empty(struct pt_regs *ctx)
{
    return 0;
}

SEC("uprobe.multi")
int empty_session(struct pt_regs *ctx)
{
    return 0;
}

SEC("uprobe.multi")
int count_hits(struct pt_regs *ctx)
{
    __sync_fetch_and_add(&hits, 1);
    return 0;
}

SEC("uprobe.multi")
int count_session(struct pt_regs *ctx)
{
    if (bpf_session_is_return())
        __sync_fetch_and_add(&returns, 1);
    else
        __sync_fetch_and_add(&hits, 1);
    return 0;
}

SEC("uprobe.multi")
int read_cookie(struct pt_regs *ctx)
{
    answer = probe_cookie(ctx);
    __sync_fetch_and_add(&hits, 1);
    return 0;
}

SEC("uprobe.multi")
int write_ring(struct pt_regs *ctx)
{
    __u64 *record = bpf_ringbuf_reserve(&try_ring, sizeof(*record), 0);

    if (record) {
        *record = ++hits;
        bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
    }
    return 0;
}

SEC("uprobe.multi")
int see_process(struct pt_regs *ctx)
{
    struct task_struct *task = bpf_get_current_task_btf();

    answer = (__u64)task->tgid;
    __sync_fetch_and_add(&hits, 1);
    return 0;
}

#define SIGUSR1 10

SEC("uprobe.multi")
int send_signal(struct pt_regs *ctx)
{
    answer = (__u64)bpf_send_signal(SIGUSR1);
    __sync_fetch_and_add(&hits, 1);
    return 0;
}

static long note_mapping(struct task_struct *task, struct vm_area_struct *mapping, void *context)
{
    answer = mapping->vm_start;
    return 0;
}

SEC("uprobe.multi")
int find_stack(struct pt_regs *ctx)
{
    struct task_struct *task = bpf_get_current_task_btf();

    if (!bpf_find_vma(task, stack_pointer(ctx), note_mapping, 0, 0))
        __sync_fetch_and_add(&hits, 1);
    return 0;
}

/* Writes back what is there already. */
SEC("uprobe.multi")
int write_user(struct pt_regs *ctx)
{
    __u64 word;

    if (!bpf_probe_read_user(&word, sizeof(word), (const void *)stack_pointer(ctx)) &&
        !bpf_probe_write_user((void *)stack_pointer(ctx), &word, sizeof(word)))
        __sync_fetch_and_add(&hits, 1);
    return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(see_fork, struct task_struct *parent, struct task_struct *child)
{
    if ((__u32)parent->tgid == watched)
        __sync_fetch_and_add(&hits, 1);
    return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(see_exec, struct task_struct *task, int old_tid)
{
    if ((__u32)task->real_parent->tgid == watched)
        __sync_fetch_and_add(&hits, 1);
    return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(see_exit, struct task_struct *task)
{
    if ((__u32)task->real_parent->tgid == watched)
        __sync_fetch_and_add(&hits, 1);
    return 0;
}

/* Writes the id of every task. */
SEC("iter/task")
int list_tasks(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;
    __u32 tid;

    if (!task)
        return 0;
    tid = (__u32)task->pid;
    bpf_seq_write(ctx->meta->seq, &tid, sizeof(tid));
    return 0;
}
