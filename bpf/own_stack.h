/* SPDX-License-Identifier: GPL-2.0-only */
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
#ifndef TRACECTL_BPF_OWN_STACK_H
#define TRACECTL_BPF_OWN_STACK_H

#include "bpf/arch.h"
#include "bpf/kernel_compat.h"
#include "bpf/limits.h"

static __always_inline bool on_signal_stack(const struct task_struct *task, __u64 sp)
{
    return sp - task->sas_ss_sp < task->sas_ss_size;
}

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
        return task_to_read(task)->mm->start_stack - sp < MAIN_STACK_ROOM;
    if (thread_block_of(task) - sp < THREAD_STACK_TOP)
        return true;
    known = bpf_map_lookup_elem(&stacks, &tid);
    if (known && sp - known->start < known->end - known->start)
        return true;
    if (known) /* elsewhere now; the thread's own stack does not move */
        return false;
    question.sp = sp;
    question.thread_block = thread_block_of(task);
    if (bpf_find_vma(task, sp, look_at_mapping, &question, 0) || !question.answer.end)
        return false;
    bpf_map_update_elem(&stacks, &tid, &question.answer, BPF_ANY);
    return true;
}

#endif
