/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the probe that was hit was given when it was placed.
 *
 * The probes of a tracefs event (collector/uprobe/probe_events.h) have one cookie for all of them. There each
 * probe has an argument that is a constant. The kernel notes which of the probes it handles on its stack, and
 * in the thread where that note is (uprobe_dispatcher in kernel/trace/trace_uprobe.c, since 3.14).
 */
#ifndef TRACECTL_BPF_PROBE_COOKIE_H
#define TRACECTL_BPF_PROBE_COOKIE_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

const volatile bool probes_are_events; /* else they are in links of uprobe_multi */

static __always_inline __u64 probe_cookie(struct pt_regs *ctx)
{
    const struct task_struct *task = bpf_get_current_task_btf();
    const struct uprobe_dispatch_data *handled;

    if (!probes_are_events)
        return bpf_get_attach_cookie(ctx);
    handled = (const struct uprobe_dispatch_data *)BPF_CORE_READ(task, utask, vaddr);
    return BPF_CORE_READ(handled, tu, tp.args[0].code, immediate);
}

#endif
