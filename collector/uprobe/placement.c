/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/uprobe/placement.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collector/uprobe/kernel_features.h"
#include "collector/uprobe/probe_events.h"
#include "collector/uprobe/proxy.h"

/* bpf(BPF_LINK_CREATE) for uprobe_multi, spelled out because libbpf 1.4 does not know sessions and the
 * headers of older distributions lack the fields. The layout is the kernel's union bpf_attr. */
struct link_create_attr {
    uint32_t prog_fd, target_fd, attach_type, flags;
    uint64_t path, offsets, ref_ctr_offsets, cookies;
    uint32_t count, multi_flags, pid, unused;
};

static int make_link(void *context)
{
    int fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, context, sizeof(struct link_create_attr));

    return fd < 0 ? -errno : fd;
}

static int place_by_link(const struct placement *placement)
{
    char path[32];
    struct link_create_attr attr = {
        .prog_fd = (uint32_t)placement->program,
        .attach_type = placement->session ? ATTACH_UPROBE_SESSION : ATTACH_UPROBE_MULTI,
        .path = (uintptr_t)path,
        .offsets = (uintptr_t)placement->offsets,
        .cookies = (uintptr_t)placement->cookies,
        .count = (uint32_t)placement->count,
        .pid = (uint32_t)placement->pid,
    };

    snprintf(path, sizeof(path), "/proc/self/fd/%d",
             placement->file); /* the proxy has the same descriptors */
    return proxy_do(make_link, &attr);
}

void placement_prepare(struct bpf_object *object)
{
    struct bpf_program *program;

    if (kernel_probe_way() != PROBE_WAY_EVENTS)
        return;
    bpf_object__for_each_program(program, object)
    {
        if (bpf_program__expected_attach_type(program) == (enum bpf_attach_type)ATTACH_UPROBE_MULTI)
            bpf_program__set_expected_attach_type(program, (enum bpf_attach_type)0);
    }
}

/* The process that works for us may be killed; more often than that, and it is on purpose. */
#define ATTEMPTS 3

int placement_make(const struct placement *placement)
{
    enum probe_way way = kernel_probe_way();
    int fd = -EINTR;

    if (way == PROBE_WAY_NONE || (placement->session && !kernel_has_sessions()))
        return -EOPNOTSUPP;
    for (int i = 0; i < ATTEMPTS && fd == -EINTR; i++)
        fd = way == PROBE_WAY_MULTI ? place_by_link(placement) : probe_events_place(placement);
    return fd;
}
