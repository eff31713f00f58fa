/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/uprobe/kernel_features.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "collector/uprobe/probe_events.h"

DEFINE_CLEANUP(cleanup_btf, struct btf *, btf__free)

/* Whether there are links of this type: one on a folder is refused as such, and not as something unknown. */
static bool takes_links(uint32_t type)
{
    const struct bpf_insn nothing[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
        {.code = BPF_JMP | BPF_EXIT},
    };
    LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = (enum bpf_attach_type)type);
    AUTO_CLOSE int program =
        bpf_prog_load(BPF_PROG_TYPE_KPROBE, "try_link", "GPL", nothing, ARRAY_SIZE(nothing), &options);
    unsigned long offset = 0;
    struct {
        uint32_t prog_fd, target_fd, attach_type, flags;
        uint64_t path, offsets, ref_ctr_offsets, cookies;
        uint32_t count, multi_flags, pid, unused;
    } attr = {
        .prog_fd = (uint32_t)program,
        .attach_type = type,
        .path = (uintptr_t) "/",
        .offsets = (uintptr_t)&offset,
        .count = 1,
    };

    if (program == -EMFILE || program == -ENFILE)
        return true; /* not known: what is tried next says what is missing */
    return program >= 0 && syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr)) < 0 && errno == EBADF;
}

/* Whether events can be defined; what else they need, bpf(2) needs as well. */
static bool takes_events(void)
{
    int folder = probe_events_folder();
    AUTO_CLOSE int events =
        folder < 0 ? -1 : openat(folder, "uprobe_events", O_WRONLY | O_APPEND | O_CLOEXEC);

    return events >= 0;
}

static bool events_are_wanted(void)
{
    const char *wanted = getenv("TRACECTL_PROBE_WAY");

    return wanted && !strcmp(wanted, "events");
}

static bool has_slot_tracepoints(const struct btf *kernel)
{
    const struct btf_type *type;
    int exit = btf__find_by_name_kind(kernel, "btf_trace_sched_process_exit", BTF_KIND_TYPEDEF);

    if (exit < 0 || btf__find_by_name_kind(kernel, "btf_trace_sched_prepare_exec", BTF_KIND_TYPEDEF) < 0)
        return false;
    type = btf__type_by_id(kernel, btf__type_by_id(kernel, (__u32)exit)->type); /* a pointer */
    type = btf__type_by_id(kernel, type->type);
    return btf_is_func_proto(type) &&
           btf_vlen(type) >= 3; /* the context, the task, and whether it is the last */
}

static enum probe_way found_way;
static bool has_sessions, reports_slots, reports_rights;

static void find_way(void)
{
    if (!events_are_wanted() && takes_links(ATTACH_UPROBE_MULTI))
        found_way = PROBE_WAY_MULTI;
    else if (takes_events())
        found_way = PROBE_WAY_EVENTS;
}

static void find_sessions(void)
{
    has_sessions = kernel_probe_way() == PROBE_WAY_MULTI && takes_links(ATTACH_UPROBE_SESSION);
}

/* The kernel's types take tens of milliseconds to read. */
static void find_tracepoints(void)
{
    CLEANUP(cleanup_btf) struct btf *kernel = btf__load_vmlinux_btf();

    if (!kernel)
        return;
    reports_slots = has_slot_tracepoints(kernel);
    reports_rights = btf__find_by_name_kind(kernel, "btf_trace_cap_capable", BTF_KIND_TYPEDEF) >= 0;
}

static pthread_once_t tracepoints = PTHREAD_ONCE_INIT;

enum probe_way kernel_probe_way(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, find_way);
    return found_way;
}

const char *probe_way_name(enum probe_way way)
{
    static const char *const names[] = {
        [PROBE_WAY_NONE] = "uprobe_multi and no tracefs events",
        [PROBE_WAY_MULTI] = "uprobe_multi",
        [PROBE_WAY_EVENTS] = "tracefs events",
    };

    return names[way];
}

bool kernel_has_sessions(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, find_sessions);
    return has_sessions;
}

bool kernel_reports_slots(void)
{
    pthread_once(&tracepoints, find_tracepoints);
    return reports_slots;
}

bool kernel_reports_rights(void)
{
    pthread_once(&tracepoints, find_tracepoints);
    return reports_rights;
}
