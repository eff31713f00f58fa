/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a call returns to. A return probe, another recorder's too, has the kernel put the address of its own
 * page in the place of the return address; the true one is in the kernel's list.
 */
#ifndef TRACECTL_BPF_RETURN_ADDRESS_H
#define TRACECTL_BPF_RETURN_ADDRESS_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel_compat.h"

#define RETURN_PROBES_SEEN 8 /* that are looked at: further in only those come first that longjmp() left */
#define PROBE_PAGE 4096

/* The kernel's page for probes ([uprobes] in /proc/PID/maps) is the highest of a process, if nothing else was
 * there first. */
static __always_inline bool in_probe_page(const struct task_struct *task, __u64 address)
{
    const struct xol_area *area = task_to_read(task)->mm->uprobes_state.xol_area;

    return area && address - area->vaddr < PROBE_PAGE;
}

/* The return address that a return probe has replaced at `sp`; 0: it is not known. */
static __always_inline __u64 replaced_return_address(struct task_struct *task, __u64 sp)
{
    struct return_instance *instance = BPF_CORE_READ(task, utask, return_instances);

    for (int i = 0; i < RETURN_PROBES_SEEN && instance; i++) {
        if (BPF_CORE_READ(instance, stack) == sp)
            return BPF_CORE_READ(instance, orig_ret_vaddr);
        instance = BPF_CORE_READ(instance, next);
    }
    return 0;
}

/* The return address at `sp`, the true one; 0: it is not known. */
static __always_inline __u64 return_address_at(struct task_struct *task, __u64 sp)
{
    __u64 address;

    if (bpf_probe_read_user(&address, sizeof(address), (const void *)sp))
        return 0;
    return in_probe_page(task, address) ? replaced_return_address(task, sp) : address;
}

#endif
