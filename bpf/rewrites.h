/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Programs that change their own code: before they can, mprotect() has to make it writable.
 *
 * A uprobe carries out the instruction that the file has, so a program that changes the operand of a probed
 * instruction would keep the old one; and an inline probe's jump may be overwritten in part. So there are
 * probes where programs call mprotect (collector/plan/rewrite_gates.h), and a process that makes the code of
 * a file writable is held until the collector has taken the other probes away, as one with new libraries is
 * (bpf/libraries.h): its first write comes after that.
 */
#ifndef TRACECTL_BPF_REWRITES_H
#define TRACECTL_BPF_REWRITES_H

#include "bpf/arch.h"
#include "bpf/libraries.h"
#include "bpf/probe_cookie.h"

#define PROT_WRITE 2
#define VM_EXEC 4
#define VM_SHARED 8

#define CALL_MPROTECT 10
#define CALL_PKEY_MPROTECT 329

struct mapping_question {
    bool is_code; /* of a file, mapped for this process alone */
};

static long look_whether_code(struct task_struct *task, struct vm_area_struct *mapping, void *context)
{
    struct mapping_question *question = context;

    question->is_code = mapping->vm_flags & VM_EXEC && !(mapping->vm_flags & VM_SHARED) && mapping->vm_file;
    return 0;
}

/* The address that is to become writable; 0: none is. */
static __always_inline __u64 asked_for(const struct pt_regs *ctx, __u64 kind)
{
    __u64 arguments[FUNCTION_ARGUMENTS + 1], first, second, third, fourth;

    read_arguments(ctx, arguments);
    first = arguments[1];
    second = arguments[2];
    third = arguments[3];
    fourth = arguments[4];
    if (kind == REWRITE_BY_MPROTECT)
        return third & PROT_WRITE ? first : 0;
    if (first != CALL_MPROTECT && first != CALL_PKEY_MPROTECT)
        return 0;
    return fourth & PROT_WRITE ? second : 0;
}

/* While probes are attached or taken away no record is read for so long that only a stop helps. */
static __always_inline __u8 wait_for_removal(struct task_struct *task)
{
    __u32 tid = (__u32)task->pid, one = 1;

    if ((task->signal->nr_threads == 1 || phase != PHASE_RECORDING) && hold_in_any_phase(task))
        return WIRE_HELD;
    return bpf_map_update_elem(&waiting, &tid, &one, BPF_ANY) ? 0 : WIRE_WAITING;
}

SEC("uprobe.multi")
int on_protect(struct pt_regs *ctx)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct mapping_question question = {};
    struct wire_rewrite *record;
    __u32 tid = (__u32)task->pid;
    __u64 address;
    __u8 how;

    if (!process_of(task))
        return 0;
    address = asked_for(ctx, probe_cookie(ctx));
    if (!address || bpf_find_vma(task, address, look_whether_code, &question, 0) || !question.is_code)
        return 0;
    how = wait_for_removal(task);
    flush_current(task);
    record = reserve_life_cycle(sizeof(*record), WIRE_REWRITE, tid);
    if (!record) {
        bpf_map_delete_elem(&waiting, &tid);
        return 0;
    }
    record->header.flags = how;
    record->tgid = (__u32)task->tgid;
    record->unused = 0;
    record->address = address;
    bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
    if (how == WIRE_WAITING)
        wait_until_let_go(tid);
    return 0;
}

#endif
