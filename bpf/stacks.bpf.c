// SPDX-License-Identifier: GPL-2.0-only
/*
 * What lies on the stacks of a program that a timer interrupts: collector/budget/stack_profile.h.
 *
 * Whether the interrupt came in user mode or inside a system call, the registers of user mode are on the
 * kernel's stack.
 */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

#include "bpf/arch.h"
#include "bpf/wire.h"

/* Of the file that the program is in; the reader knows which of its processes are meant. */
const volatile __u64 program_inode = 0;

char LICENSE[] SEC("license") = "GPL";

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 22);
} stacks SEC(".maps");

static bool runs_program(const struct task_struct *task)
{
    const struct mm_struct *mm = task->mm;

    return mm && mm->exe_file && mm->exe_file->f_inode->i_ino == program_inode;
}

SEC("perf_event")
int on_sample(void *ctx)
{
    struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
    struct pt_regs *registers = (struct pt_regs *)bpf_task_pt_regs(task);
    struct stack_sample *sample;
    __u64 from;

    if (!runs_program(task))
        return 0;
    sample = bpf_ringbuf_reserve(&stacks, sizeof(*sample), 0);
    if (!sample)
        return 0;
    from = (stack_pointer(registers) & ~7ull) - STACK_SAMPLE_BELOW;
    sample->tgid = bpf_get_current_pid_tgid() >> 32;
    sample->ip = instruction_pointer(registers);
    for (int i = 0; i < STACK_SAMPLE_PIECES; i++) /* one that is not in memory has nothing to tell */
        if (bpf_probe_read_user(sample->words[i], sizeof(sample->words[i]),
                                (const void *)(from + i * sizeof(sample->words[i]))))
            __builtin_memset(sample->words[i], 0, sizeof(sample->words[i]));
    bpf_ringbuf_submit(sample, BPF_RB_NO_WAKEUP);
    return 0;
}
