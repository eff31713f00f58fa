// SPDX-License-Identifier: GPL-2.0-only
/*
 * How many perf events there are of the tracefs events whose files `enable` a process has open. The kernel
 * counts one down in the critical section in which it takes its probes away, and deletes the definition of an
 * event in another section of the same lock: where no user was found, nothing of the users is left then.
 */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

__u32 reader; /* the process; written by the collector */

/* A record for the reader. What stands in one of another descriptor means nothing; that it is an event's shows
 * in its number. */
struct {
    __u32 fd;
    __u32 number;
    __u32 users;
} event_user;

SEC("iter/task_file")
int list_event_users(struct bpf_iter__task_file *ctx)
{
    struct task_struct *task = ctx->task;
    struct file *file = ctx->file;
    const struct trace_event_file *event;

    if (!task || !file || (__u32)task->tgid != reader)
        return 0;
    event = (const struct trace_event_file *)file->f_inode->i_private;
    event_user.fd = ctx->fd;
    event_user.number = (__u32)BPF_CORE_READ(event, event_call, event.type);
    event_user.users = (__u32)BPF_CORE_READ(event, event_call, perf_refcount);
    bpf_seq_write(ctx->meta->seq, &event_user, sizeof(event_user));
    return 0;
}
