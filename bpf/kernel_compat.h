/* SPDX-License-Identifier: GPL-2.0-only */
/* What differs between kernels, one accessor each, with the change that made it so. */
#ifndef TRACECTL_BPF_KERNEL_COMPAT_H
#define TRACECTL_BPF_KERNEL_COMPAT_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* Is the program run at the return (true) or at the call of a session? Since 6.13 (commit d920179b3d48, "bpf:
 * Add support for uprobe multi session attach"; the kfunc itself since 6.10, commit adf46d88ae4b). */
extern bool bpf_session_is_return(void) __ksym __weak;

/* Sends a signal to another task. Since 6.13 (commit 6280cf718db0, "bpf: Implement bpf_send_signal_task()
 * kfunc"). */
extern int bpf_send_signal_task(struct task_struct *task, int signal, enum pid_type type,
                                __u64 value) __ksym __weak;

/* Since 6.2 (commit a35b9af4ec2c, "bpf: Add a kfunc for generic type cast"). */
extern void *bpf_rdonly_cast(const void *pointer, __u32 type) __ksym __weak;

/* The same task, of which the verifier believes nothing: good for reads alone. For each pointer that is read out of a
 * trusted task, the verifier of Linux 6.18 searches all types of the kernel to see whether that pointer is trusted, too,
 * and does so on every path. This took more than a third of the processor time of `record -- true`. */
static __always_inline const struct task_struct *task_to_read(const struct task_struct *task)
{
    return bpf_ksym_exists(bpf_rdonly_cast)
               ? bpf_rdonly_cast(task, bpf_core_type_id_kernel(struct task_struct))
               : task;
}

#endif
