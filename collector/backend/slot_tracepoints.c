/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the kernel tells of a task's last moment in its memory. */
#include <bpf/btf.h>
#include <pthread.h>

#include "base/cleanup.h"
#include "collector/backend/uprobe.h"

DEFINE_CLEANUP(cleanup_btf, struct btf *, btf__free)

/* Whether a task can be met in the last moment before it leaves its memory: at an exec since Linux 6.10, and
 * at its end since 6.16, where that tracepoint comes earlier and has one more argument. */
static bool look_for_slot_tracepoints(void)
{
    CLEANUP(cleanup_btf) struct btf *kernel = btf__load_vmlinux_btf();
    const struct btf_type *type;
    int exit = kernel ? btf__find_by_name_kind(kernel, "btf_trace_sched_process_exit", BTF_KIND_TYPEDEF) : -1;

    if (exit < 0 || btf__find_by_name_kind(kernel, "btf_trace_sched_prepare_exec", BTF_KIND_TYPEDEF) < 0)
        return false;
    type = btf__type_by_id(kernel, btf__type_by_id(kernel, (__u32)exit)->type); /* a pointer */
    type = btf__type_by_id(kernel, type->type);
    return btf_is_func_proto(type) &&
           btf_vlen(type) >= 3; /* the context, the task, and whether it is the last */
}

static bool has_slot_tracepoints;

static void find_slot_tracepoints(void)
{
    has_slot_tracepoints = look_for_slot_tracepoints();
}

/* Once: the kernel stays the same, and its types take tens of milliseconds to read. */
bool uprobe_kernel_tells_slots(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, find_slot_tracepoints);
    return has_slot_tracepoints;
}
