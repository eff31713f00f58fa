/* SPDX-License-Identifier: GPL-2.0-only */
/* What differs between kernels, one accessor each, with the change that made it so. */
#ifndef TRACECTL_BPF_KERNEL_COMPAT_H
#define TRACECTL_BPF_KERNEL_COMPAT_H

/* Is the program run at the return (true) or at the call of a session? Since 6.13 (commit d920179b3d48, "bpf:
 * Add support for uprobe multi session attach"; the kfunc itself since 6.10, commit adf46d88ae4b). */
extern bool bpf_session_is_return(void) __ksym __weak;

/* Sends a signal to another task. Since 6.13 (commit 6280cf718db0, "bpf: Implement bpf_send_signal_task()
 * kfunc"). */
extern int bpf_send_signal_task(struct task_struct *task, int signal, enum pid_type type,
                                __u64 value) __ksym __weak;

#endif
