/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The backend of uprobes: breakpoints in files. The calls come as records of the life-cycle source. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "collector/uprobe/uprobe_state.h"

/* For one process there is no session: the kernel gives a call that meets the breakpoint in another process
 * (a forked child, or one that has probes of its own there) a return probe without asking the program
 * (uprobe_prog_run in kernel/trace/bpf_trace.c answers 0 for another process, which a session takes for yes),
 * and at a place that is no entry this destroys the stack. */
static int attach_sites(struct backend *calls, const struct probe_sites *sites, pid_t pid, struct error *err)
{
    struct uprobe_backend *backend = uprobe_of_calls(calls);
    const struct tracectl_bpf *skeleton = backend->skeleton;
    bool session = backend->returns && !pid;

    return uprobe_attach(backend, session ? skeleton->progs.on_session : skeleton->progs.on_call_only,
                         PROBE_CALLS, sites, pid, err);
}

static void detach_part(struct backend *calls, unsigned part)
{
    probe_links_close_of(&uprobe_of_calls(calls)->links, 0, part);
}

static void detach_process(struct backend *calls, pid_t pid)
{
    probe_links_close_of(&uprobe_of_calls(calls)->links, pid, 0);
}

static unsigned closing(const struct backend *calls)
{
    return closer_pending(&uprobe_of_calls(calls)->links.closer);
}

static struct budget_slot *counts(const struct backend *calls)
{
    return uprobe_of_calls(calls)->counts;
}

static void relinking(struct backend *calls, bool on)
{
    __atomic_store_n(&uprobe_of_calls(calls)->skeleton->bss->relinking, on, __ATOMIC_SEQ_CST);
}

/* ------------------------------------------------------------------------------------ what is in place */

static int placed(const struct backend *calls, placed_handler handle, void *context)
{
    const struct probe_links *links = &uprobe_of_calls(calls)->links;
    int r = 0;

    for (size_t i = 0; i < links->count && !r; i++)
        r = handle(context, &links->items[i].placed);
    return r;
}

static int former(const struct backend *calls, placed_handler handle, void *context)
{
    struct probe_links *links = &uprobe_of_calls(calls)->links;
    int r = 0;

    for (size_t i = 0; i < links->file_count && !r; i++) {
        struct former_probes *file = &links->files[i];

        probe_links_put_in_order(file);
        const struct placed_probes probes = {
            .device = file->device, .inode = file->inode, .offsets = file->offsets, .count = file->count};

        r = handle(context, &probes);
    }
    return r;
}

static bool had_probes(const struct backend *calls)
{
    return uprobe_of_calls(calls)->links.file_count;
}

static void forget_former(struct backend *calls)
{
    probe_links_forget(&uprobe_of_calls(calls)->links);
}

static void touch(struct backend *calls, int file, pid_t pid, const unsigned long *offsets, size_t count)
{
    const struct probe_links_kind kind = {
        .program = uprobe_of_calls(calls)->skeleton->progs.on_call_only, .pid = pid, .purpose = PROBE_CALLS};
    AUTO_FREE uint64_t *cookies = calloc(count + 1, sizeof(*cookies));
    AUTO_FREE bool *refused = calloc(count + 1, sizeof(*refused));
    const struct probe_sites sites = {
        .file = file, .offsets = offsets, .cookies = cookies, .count = count, .refused = refused};
    struct probe_links links = {0};

    if (cookies && refused)
        probe_links_attach(&links, &kind, &sites);
    probe_links_release(&links);
}

/* ------------------------------------------------------------------------------------ the end */

/* The tracepoints of the life cycle, too: the records that are in the ring stay. */
static int detach(struct backend *calls, struct error *err)
{
    struct uprobe_backend *backend = uprobe_of_calls(calls);

    probe_links_close(&backend->links);
    tracectl_bpf__detach(backend->skeleton);
    return 0;
}

const struct backend_operations uprobe_calls_operations = {
    .name = "uprobe",
    .attach_sites = attach_sites,
    .detach_part = detach_part,
    .detach_process = detach_process,
    .closing = closing,
    .counts = counts,
    .relinking = relinking,
    .placed = placed,
    .former = former,
    .had_probes = had_probes,
    .forget_former = forget_former,
    .touch = touch,
    .detach = detach,
};
