// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the kernel knows about each thread of a process: whether it runs, how often it has been switched, its
 * user registers, and which return addresses on its stack are replaced by return probes.
 *
 * An iterator: reading it stops and wakes no thread and interrupts no system call. A thread that is off the
 * processor has all its user registers in its pt_regs, saved when it entered the kernel. One that is on it
 * may change them any moment: its record says so and is good for nothing else.
 *
 * The record is consistent by the order in which it is filled in. `on_cpu` is read before `switches`, and a
 * thread that leaves the processor is counted before its `on_cpu` falls. So two records of a thread, both
 * with `on_cpu` 0 and with equal `switches`, say that it did not run from the first to the second.
 */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/arch.h"
#include "bpf/watched_calls.h"

char LICENSE[] SEC("license") = "GPL";

#define RETURN_PROBES 64 /* MAX_URETPROBE_DEPTH of the kernel (include/linux/uprobes.h) */

/*
 * The record of one thread, as it is written for the reader, who gets its layout out of the skeleton. It
 * stands here because it is too large for the stack; only the one reader of this object runs the
 * program.
 */
struct {
    __u32 tid, tgid;
    __u32 on_cpu; /* 1: it runs right now, and nothing of the following holds still */
    __u32 state;  /* task_struct.__state; 0: it runs or wants to */
    __u64 switches;
    __u64 thread_block; /* its control block */
    __u64 main_stack;   /* an address in the main thread's stack */
    __u64 signal_stack, signal_stack_size;
    __u64 registers[UNWIND_REGISTERS];
    __s64 system_call;                   /* its number; -1: the thread came into the kernel another way */
    __u64 is_native;                     /* it was in code of 64 bits */
    __u64 has_filter;                    /* of seccomp */
    __u64 allowed[CALL_WORDS];           /* then the numbers of system calls that it allows in any case */
    __u32 replaced_count, replaced_more; /* more: there are others that did not fit */
    struct {
        __u64 slot, address; /* where on the stack, and the true return address */
    } replaced[RETURN_PROBES];
} thread;

/* The kernel changes the list while the thread runs; whatever is read then is dropped with the record. */
static __always_inline void list_replaced(struct task_struct *task)
{
    struct return_instance *instance = BPF_CORE_READ(task, utask, return_instances);
    __u32 count = 0;

    for (int i = 0; i < RETURN_PROBES && instance; i++) {
        thread.replaced[i].slot = BPF_CORE_READ(instance, stack);
        thread.replaced[i].address = BPF_CORE_READ(instance, orig_ret_vaddr);
        count++;
        instance = BPF_CORE_READ(instance, next);
    }
    thread.replaced_count = count;
    thread.replaced_more = instance != 0;
}

static __always_inline void list_allowed(const struct task_struct *task)
{
    const struct seccomp_filter *filter = call_filter(task);

    thread.has_filter = has_call_filter(task);
    if (!filter || bpf_core_read(thread.allowed, sizeof(thread.allowed), &filter->cache.allow_native))
        __builtin_memset(thread.allowed, 0, sizeof(thread.allowed));
}

SEC("iter/task")
int list_threads(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;

    if (!task || !task->mm)
        return 0;
    thread.tid = (__u32)task->pid;
    thread.tgid = (__u32)task->tgid;
    thread.on_cpu = *(volatile int *)&task->on_cpu != 0; /* before the switches: see above */
    thread.switches = *(volatile unsigned long *)&task->nvcsw + *(volatile unsigned long *)&task->nivcsw;
    thread.state = task->__state;
    thread.thread_block = thread_block_of(task);
    thread.main_stack = task->mm->start_stack;
    thread.signal_stack = task->sas_ss_sp;
    thread.signal_stack_size = task->sas_ss_size;
    if (save_registers((struct pt_regs *)bpf_task_pt_regs(task), thread.registers, &thread.system_call,
                       &thread.is_native))
        return 0;
    list_allowed(task);
    list_replaced(task);
    bpf_seq_write(ctx->meta->seq, &thread, sizeof(thread));
    return 0;
}
