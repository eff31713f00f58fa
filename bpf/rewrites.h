/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Programs that change their own code: before they can, mprotect() has to make it writable.
 *
 * A uprobe carries out the instruction that the file has, so a program that changes the operand of a probed
 * instruction would keep the old one; and an inline probe's jump may be overwritten in part. So there are
 * probes where programs call mprotect (collector/plan/rewrite_gates.h), and a process that makes the code of
 * a file writable is held until the collector has taken the other probes away, as one with new libraries is
 * (bpf/libraries.h): its first write comes after that.
 *
 * A program that copies its code and runs the copy would run the probes in it, which kill it. It needs memory
 * of its own for that which is writable and executable; so one that maps as much of it as the code takes that
 * maps it is held in the same way. (Most that make code of their own map less, or make it executable later.)
 */
#ifndef TRACECTL_BPF_REWRITES_H
#define TRACECTL_BPF_REWRITES_H

#include "bpf/arch.h"
#include "bpf/libraries.h"
#include "bpf/probe_cookie.h"

#define PROT_WRITE 2
#define PROT_EXEC 4
#define MAP_ANONYMOUS 0x20
#define VM_EXEC 4
#define VM_SHARED 8

#define CALL_MMAP 9
#define CALL_MPROTECT 10
#define CALL_PKEY_MPROTECT 329

#define PAGE_BYTES 4096

struct mapping_question {
    bool is_code; /* of a file, mapped for this process alone */
    __u64 size;
};

struct rewrite_request {
    __u64 address; /* of what is to become writable; 0: nothing is */
    __u64 size;    /* of what is to be mapped, writable and executable; 0: nothing is */
};

static long look_whether_code(struct task_struct *task, struct vm_area_struct *mapping, void *context)
{
    struct mapping_question *question = context;

    question->is_code = mapping->vm_flags & VM_EXEC && !(mapping->vm_flags & VM_SHARED) && mapping->vm_file;
    question->size = mapping->vm_end - mapping->vm_start;
    return 0;
}

static __always_inline struct rewrite_request request_of(const struct pt_regs *ctx, __u64 kind)
{
    const __u64 both = PROT_WRITE | PROT_EXEC;
    __u64 arguments[FUNCTION_ARGUMENTS + 1], address, size, rights, flags, call;
    struct rewrite_request request = {};

    read_arguments(ctx, arguments);
    call = kind == REWRITE_BY_MPROTECT ? CALL_MPROTECT : kind == REWRITE_BY_MMAP ? CALL_MMAP : arguments[1];
    address = kind == REWRITE_BY_NUMBER ? arguments[2] : arguments[1];
    size = kind == REWRITE_BY_NUMBER ? arguments[3] : arguments[2];
    rights = kind == REWRITE_BY_NUMBER ? arguments[4] : arguments[3];
    flags = kind == REWRITE_BY_NUMBER ? arguments[5] : arguments[4];
    if ((call == CALL_MPROTECT || call == CALL_PKEY_MPROTECT) && rights & PROT_WRITE)
        request.address = address;
    if (call == CALL_MMAP && (rights & both) == both && flags & MAP_ANONYMOUS)
        request.size = size;
    return request;
}

/* While probes are attached or taken away no record is read for so long that only a stop helps. */
static __always_inline __u8 wait_for_removal(struct task_struct *task)
{
    __u32 tid = (__u32)task->pid, waits = WAIT_GOES_ON;

    if ((task_to_read(task)->signal->nr_threads == 1 || phase != PHASE_RECORDING) && hold_in_any_phase(task))
        return WIRE_HELD;
    return bpf_map_update_elem(&waiting, &tid, &waits, BPF_ANY) ? 0 : WIRE_WAITING;
}

SEC("uprobe.multi")
int on_protect(struct pt_regs *ctx)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct mapping_question question = {};
    struct rewrite_request request;
    struct wire_rewrite *record;
    __u32 tid = (__u32)task->pid;
    __u64 address;
    __u8 how;

    if (!process_of(task))
        return 0;
    request = request_of(ctx, probe_cookie(ctx));
    address = request.size ? instruction_pointer(ctx) : request.address;
    if (!address || bpf_find_vma(task, address, look_whether_code, &question, 0) || !question.is_code)
        return 0;
    if (request.size && (request.size + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES < question.size)
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
    record->copies = request.size != 0;
    record->address = address;
    bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
    if (how == WIRE_WAITING)
        wait_until_let_go(tid, false);
    return 0;
}

#endif
