/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The life-cycle source by BPF programs on tracepoints (bpf/lifecycle.h); its records come through the ring.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <signal.h>

#include "base/error.h"
#include "collector/process/process.h"
#include "collector/uprobe/uprobe_state.h"

/* ------------------------------------------------------------------------------------ traced processes */

static bool process(const struct life_cycle_source *source, pid_t pid, struct process_state *ret_state)
{
    const struct uprobe_backend *backend = uprobe_of_life_cycle(source);
    uint32_t tgid = (uint32_t)pid;

    return !bpf_map_lookup_elem(bpf_map__fd(backend->skeleton->maps.processes), &tgid, ret_state);
}

/* Each processor looks again at what it remembers of a process. */
static int update_process(struct uprobe_backend *backend, pid_t pid, const struct process_state *state,
                          uint64_t flags)
{
    uint32_t tgid = (uint32_t)pid;
    int r = bpf_map_update_elem(bpf_map__fd(backend->skeleton->maps.processes), &tgid, state, flags);

    __atomic_fetch_add(&backend->skeleton->bss->generation, 1, __ATOMIC_SEQ_CST);
    return r;
}

static int set_process(struct life_cycle_source *source, pid_t pid, const struct process_state *state)
{
    struct process_state before, after = *state;

    if (process(source, pid, &before)) {
        after.worker = before.worker;
        after.flags |= before.flags & (PROCESS_SHARES_SLOTS | PROCESS_SHARES_AREA);
    }
    return update_process(uprobe_of_life_cycle(source), pid, &after, BPF_EXIST);
}

static int add_process(struct life_cycle_source *source, pid_t pid, unsigned worker, struct error *err)
{
    const struct process_state state = {.flags = PROCESS_TRACED, .worker = worker};
    int r = update_process(uprobe_of_life_cycle(source), pid, &state, BPF_ANY);

    return r ? error_set(err, r, NULL, "cannot trace process %d", (int)pid) : 0;
}

static void enter(struct life_cycle_source *source, enum recording_phase phase)
{
    __atomic_store_n(&uprobe_of_life_cycle(source)->skeleton->bss->phase, phase, __ATOMIC_SEQ_CST);
}

/* ------------------------------------------------------------------------------------ records */

static int fd(const struct life_cycle_source *source)
{
    return ring_buffer__epoll_fd(uprobe_of_life_cycle(source)->ring.rings);
}

static int consume(struct life_cycle_source *source, unsigned limit, wire_handler handle, void *context)
{
    return ring_reader_consume(&uprobe_of_life_cycle(source)->ring, limit, handle, context);
}

static void want_all(struct life_cycle_source *source)
{
    uprobe_of_life_cycle(source)->ring.wanted = true;
}

static struct wire_losses consume_losses(struct life_cycle_source *source, uint32_t tid)
{
    struct tracectl_bpf *skeleton = uprobe_of_life_cycle(source)->skeleton;
    struct {
        uint32_t calls, returns, go, sync;
    } loss;
    struct wire_losses none = {0};
    int map = bpf_map__fd(skeleton->maps.losses);

    if (!skeleton->bss->losing_threads || bpf_map_lookup_elem(map, &tid, &loss))
        return none;
    if (!bpf_map_delete_elem(map, &tid))
        __atomic_fetch_sub(&skeleton->bss->losing_threads, 1, __ATOMIC_RELAXED);
    return (struct wire_losses){loss.calls, loss.returns, loss.go, loss.sync};
}

static struct life_cycle_losses losses(const struct life_cycle_source *source)
{
    const struct tracectl_bpf__bss *bss = uprobe_of_life_cycle(source)->skeleton->bss;

    return (struct life_cycle_losses){bss->totals.unplaced, bss->totals.life_cycle, bss->totals.processes};
}

static uint64_t bytes(const struct life_cycle_source *source)
{
    return ring_reader_bytes(&uprobe_of_life_cycle(source)->ring);
}

/* ------------------------------------------------------------------------------------ what is watched */

static int watch_linker(struct life_cycle_source *source, int file, const char *name,
                        const struct linker_sites *linker, pid_t pid, struct error *err)
{
    struct uprobe_backend *backend = uprobe_of_life_cycle(source);
    const struct probe_sites site = {
        .file = file, .name = name, .offsets = &linker->rendezvous, .cookies = &linker->state, .count = 1};

    return uprobe_attach(backend, backend->skeleton->progs.on_libraries, PROBE_LINKER, &site, pid, err);
}

static int watch_agent(struct life_cycle_source *source, const struct bpf_program *program, int file,
                       unsigned long offset, struct error *err)
{
    struct uprobe_backend *backend = uprobe_of_life_cycle(source);
    const uint64_t cookie = 0;
    const struct probe_sites site = {
        .file = file, .name = "the agent", .offsets = &offset, .cookies = &cookie, .count = 1};

    return uprobe_attach(backend, program, PROBE_CLAIMS, &site, 0, err);
}

static int watch_claims(struct life_cycle_source *source, int file, unsigned long offset, struct error *err)
{
    return watch_agent(source, uprobe_of_life_cycle(source)->skeleton->progs.on_claim, file, offset, err);
}

static int watch_asks(struct life_cycle_source *source, int file, unsigned long offset, struct error *err)
{
    return watch_agent(source, uprobe_of_life_cycle(source)->skeleton->progs.on_ask, file, offset, err);
}

static int filtered(const struct life_cycle_source *source)
{
    return bpf_map__fd(uprobe_of_life_cycle(source)->skeleton->maps.filtered);
}

static int watch_rights(struct life_cycle_source *source, const struct probe_sites *sites, struct error *err)
{
    struct uprobe_backend *backend = uprobe_of_life_cycle(source);

    return uprobe_attach(backend, backend->skeleton->progs.on_rights, PROBE_CLAIMS, sites, 0, err);
}

/* Those that no process has; the last ones are not taken again at once. */
static int number_area(struct life_cycle_source *source, uint32_t *ret_area)
{
    struct uprobe_backend *backend = uprobe_of_life_cycle(source);
    int map = bpf_map__fd(backend->skeleton->maps.areas), marks = filtered(source);
    bool taken[AREAS_THAT_WAIT] = {true};
    uint32_t key, *previous = NULL, area;
    const uint64_t none = 0;

    while (!bpf_map_get_next_key(map, previous, &key)) {
        if (!bpf_map_lookup_elem(map, &key, &area) && area < AREAS_THAT_WAIT)
            taken[area] = true;
        previous = &key;
    }
    for (uint32_t i = 1; i <= AREAS_THAT_WAIT; i++) {
        area = (backend->last_area + i) % AREAS_THAT_WAIT;
        if (taken[area] || bpf_map_update_elem(marks, &area, &none, BPF_ANY))
            continue;
        *ret_area = backend->last_area = area;
        return 0;
    }
    return -ENOSPC;
}

static int set_area(struct life_cycle_source *source, pid_t pid, uint32_t area)
{
    int map = bpf_map__fd(uprobe_of_life_cycle(source)->skeleton->maps.areas);
    uint32_t tgid = (uint32_t)pid;

    return area ? bpf_map_update_elem(map, &tgid, &area, BPF_ANY) : bpf_map_delete_elem(map, &tgid);
}

static int watch_rewrites(struct life_cycle_source *source, const struct probe_sites *sites, pid_t pid,
                          struct error *err)
{
    struct uprobe_backend *backend = uprobe_of_life_cycle(source);

    return uprobe_attach(backend, backend->skeleton->progs.on_protect, PROBE_GATES, sites, pid, err);
}

/* ------------------------------------------------------------------------------------ held processes */

static int held_map(const struct life_cycle_source *source)
{
    return bpf_map__fd(uprobe_of_life_cycle(source)->skeleton->maps.held);
}

static int guard(struct life_cycle_source *source, struct error *err)
{
    return exec_guard_start(held_map(source), &uprobe_of_life_cycle(source)->guard, err);
}

static size_t held(const struct life_cycle_source *source, pid_t *pids, size_t capacity)
{
    uint32_t key, *previous = NULL;
    size_t count = 0;

    while (count < capacity && !bpf_map_get_next_key(held_map(source), previous, &key)) {
        pids[count++] = (pid_t)key;
        previous = &key;
    }
    return count;
}

static bool release(struct life_cycle_source *source, pid_t pid)
{
    int map = held_map(source);
    uint64_t since = 0; /* let go: the guard does it again if we die here */
    uint32_t tgid = (uint32_t)pid;
    /* The second: the entry of an earlier stop was deleted below when it was already that of this one. */
    bool stood = !bpf_map_update_elem(map, &tgid, &since, BPF_EXIST) || process_is_stopped(pid);

    kill(pid, SIGCONT);
    /* It may be held again by now, at its libraries: that entry must stay. */
    if (!bpf_map_lookup_elem(map, &tgid, &since) && !since)
        bpf_map_delete_elem(map, &tgid);
    return stood;
}

static bool end_wait(struct life_cycle_source *source, pid_t tid, bool *ret_stopped)
{
    int map = bpf_map__fd(uprobe_of_life_cycle(source)->skeleton->maps.waiting);
    uint32_t key = (uint32_t)tid, state = 0;

    *ret_stopped = !bpf_map_lookup_elem(map, &key, &state) && state == WAIT_STOPPED;
    return !bpf_map_delete_elem(map, &key);
}

const struct life_cycle_operations bpf_life_cycle_operations = {
    .add_process = add_process,
    .process = process,
    .set_process = set_process,
    .enter = enter,
    .fd = fd,
    .consume = consume,
    .want_all = want_all,
    .consume_losses = consume_losses,
    .losses = losses,
    .bytes = bytes,
    .watch_linker = watch_linker,
    .watch_claims = watch_claims,
    .watch_asks = watch_asks,
    .filtered = filtered,
    .number_area = number_area,
    .set_area = set_area,
    .watch_rights = watch_rights,
    .watch_rewrites = watch_rewrites,
    .guard = guard,
    .held = held,
    .release = release,
    .end_wait = end_wait,
};
