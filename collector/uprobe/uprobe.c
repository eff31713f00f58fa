/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/uprobe/uprobe.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "bpf/tracectl.skel.h"
#include "bpf/wire.h"
#include "collector/launch/privileges.h"
#include "collector/process/process.h"
#include "collector/uprobe/bpf_mappings.h"
#include "collector/uprobe/bpf_messages.h"
#include "collector/uprobe/kernel_features.h"
#include "collector/uprobe/probe_links.h"
#include "collector/uprobe/ring_reader.h"

struct uprobe_backend {
    struct tracectl_bpf *skeleton;
    struct ring_reader ring;
    struct budget_slot *budget; /* NULL: there is none */
    bool returns;               /* are probed, by sessions */
    struct probe_links links;
};

/* A time for each event, or for the ends of windows, stands in a record of its own. */
static bool packs(const struct uprobe_options *options)
{
    return options->packed && !options->full_time && !options->trigger_share && !options->count_only;
}

/* Loads the skeleton, with the session program only if return probes are wanted. */
static int load(struct uprobe_backend *backend, const struct uprobe_options *options)
{
    struct tracectl_bpf *skeleton = tracectl_bpf__open();
    int r;

    if (!skeleton)
        return -errno;
    bpf_program__set_autoload(skeleton->progs.on_session, options->returns);
    bpf_program__set_autoload(skeleton->progs.on_go, options->goroutines);
    if (options->returns)
        bpf_program__set_expected_attach_type(skeleton->progs.on_session,
                                              (enum bpf_attach_type)ATTACH_UPROBE_SESSION);
    if (options->ring_bytes)
        bpf_map__set_max_entries(skeleton->maps.ring, (uint32_t)options->ring_bytes);
    if (!options->goroutines)
        bpf_map__set_max_entries(skeleton->maps.go_probes, 1);
    if (!options->follows_schedule)
        bpf_map__set_max_entries(skeleton->maps.go_delays, 1);
    if (!options->budget_ns)
        bpf_map__set_max_entries(skeleton->maps.relinked, 1);
    if (!options->budget_ns && !options->trigger_share)
        bpf_map__set_max_entries(skeleton->maps.budget_slots, 1);
    if (!options->trigger_share)
        bpf_map__set_max_entries(skeleton->maps.trigger_windows, 1);
    bpf_program__set_autoload(skeleton->progs.on_sync, options->sync);
    bpf_program__set_autoload(skeleton->progs.on_sys_enter, options->sync);
    bpf_program__set_autoload(skeleton->progs.on_sys_exit, options->sync);
    bpf_program__set_autoload(skeleton->progs.on_claim, options->inlined);
    bpf_program__set_autoload(skeleton->progs.on_new_task, options->inlined);
    bpf_program__set_autoload(skeleton->progs.on_rights, options->inlined);
    skeleton->rodata->reports_slots = options->inlined && kernel_reports_slots();
    bpf_program__set_autoload(skeleton->progs.on_prepare_exec, skeleton->rodata->reports_slots);
    skeleton->bss->budget_ns = options->budget_ns;
    skeleton->bss->count_only = options->count_only;
    skeleton->bss->trigger_share = options->trigger_share;
    skeleton->rodata->packs = packs(options);
    if (!packs(options)) {
        bpf_map__set_max_entries(skeleton->maps.packed_slots, 1);
        bpf_map__set_max_entries(skeleton->maps.slot_memories, 1);
    }
    skeleton->rodata->with_time = options->with_time;
    skeleton->rodata->full_time = options->full_time;
    skeleton->rodata->follow_children = options->follow_children;
    skeleton->rodata->may_hold = !options->no_hold;
    skeleton->rodata->collector = (uint32_t)getpid();
    skeleton->rodata->can_continue_all = options->can_continue_all;
    skeleton->rodata->collector_user = (uint32_t)getuid();
    r = tracectl_bpf__load(skeleton);
    if (r) {
        tracectl_bpf__destroy(skeleton);
        return r;
    }
    backend->skeleton = skeleton;
    backend->returns = options->returns;
    return 0;
}

#define BUDGET_BYTES (MAX_BUDGET_PROBES * sizeof(struct budget_slot))

static int map_budget(struct uprobe_backend *backend)
{
    void *slots = mmap(NULL, BUDGET_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
                       bpf_map__fd(backend->skeleton->maps.budget_slots), 0);

    if (slots == MAP_FAILED)
        return -errno;
    backend->budget = slots;
    return 0;
}

static int open_ring(struct uprobe_backend *backend)
{
    const struct tracectl_bpf *skeleton = backend->skeleton;
    struct packed_reader *packed = NULL;
    int r = 0;

    if (skeleton->rodata->packs)
        r = packed_reader_new(bpf_map__fd(skeleton->maps.packed_slots),
                              bpf_map__fd(skeleton->maps.free_slots),
                              bpf_map__max_entries(skeleton->maps.packed_slots), &packed);
    return r ? r
             : ring_reader_open(&backend->ring, bpf_map__fd(skeleton->maps.ring),
                                bpf_map__fd(skeleton->maps.overflow), packed);
}

int uprobe_backend_open(const struct uprobe_options *options, struct uprobe_backend **ret_backend,
                        struct error *err)
{
    struct uprobe_backend *backend = calloc(1, sizeof(*backend));
    int r;

    if (!backend)
        return error_no_memory(err);
    bpf_messages_begin();
    if (options->returns && !kernel_has_sessions() && !privileges_missing(PRIVILEGES_TO_RECORD)) {
        uprobe_backend_free(backend);
        return error_say(err, -EOPNOTSUPP,
                         "cannot probe returns: this kernel has no uprobe sessions (use --returns auto, or "
                         "Linux 6.13)");
    }
    r = load(backend, options);
    if (r) {
        uprobe_backend_free(backend);
        return bpf_messages_error(err, r, "cannot load BPF programs");
    }
    if (!kernel_has_uprobe_multi()) {
        uprobe_backend_free(backend);
        return error_say(
            err, -EOPNOTSUPP,
            "cannot load BPF programs: this kernel has no uprobe_multi to attach them by (Linux 6.6 has it)");
    }
    r = tracectl_bpf__attach(backend->skeleton);
    if (r) {
        uprobe_backend_free(backend);
        return error_set(err, r, "see tracectl doctor", "cannot attach to the scheduler's tracepoints");
    }
    r = open_ring(backend);
    if (r) {
        uprobe_backend_free(backend);
        return error_set(err, r, NULL, "cannot map the ring buffer");
    }
    r = options->budget_ns || options->trigger_share ? map_budget(backend) : 0;
    if (r) {
        uprobe_backend_free(backend);
        return error_set(err, r, NULL, "cannot map the counts of probes");
    }
    bpf_mappings_keep();
    *ret_backend = backend;
    return 0;
}

void uprobe_backend_free(struct uprobe_backend *backend)
{
    if (!backend)
        return;
    if (backend->skeleton)
        uprobe_backend_detach(backend);
    probe_links_release(&backend->links);
    ring_reader_close(&backend->ring);
    if (backend->budget)
        munmap(backend->budget, BUDGET_BYTES);
    tracectl_bpf__destroy(backend->skeleton);
    free(backend);
}

/* All sites, or none. */
static int attach_kind(struct uprobe_backend *backend, const struct probe_links_kind *kind,
                       const struct uprobe_sites *sites, struct error *err)
{
    int r = probe_links_attach(&backend->links, kind, sites);

    return !r ? 0 : error_set(err, r, NULL, "cannot attach %zu probes to %s", sites->count, sites->name);
}

int uprobe_backend_attach(struct uprobe_backend *backend, const struct uprobe_sites *sites, pid_t pid,
                          struct error *err)
{
    const struct tracectl_bpf *skeleton = backend->skeleton;
    bool session = backend->returns && !pid;
    const struct probe_links_kind kind = {
        .program = session ? skeleton->progs.on_session : skeleton->progs.on_call_only,
        .type = session ? ATTACH_UPROBE_SESSION : ATTACH_UPROBE_MULTI,
        .pid = pid,
        .part = sites->part,
        .purpose = PROBE_CALLS,
    };

    return attach_kind(backend, &kind, sites, err);
}

struct budget_slot *uprobe_backend_budget(const struct uprobe_backend *backend)
{
    return backend->budget;
}

void uprobe_backend_relinking(struct uprobe_backend *backend, bool relinking)
{
    __atomic_store_n(&backend->skeleton->bss->relinking, relinking, __ATOMIC_SEQ_CST);
}

int uprobe_backend_attach_go(struct uprobe_backend *backend, const struct uprobe_go *go, struct error *err)
{
    const struct tracectl_bpf *skeleton = backend->skeleton;
    const struct probe_links_kind kind = {skeleton->progs.on_go, ATTACH_UPROBE_MULTI, 0, go->part,
                                          PROBE_GOROUTINES};
    int r = bpf_map_update_elem(bpf_map__fd(skeleton->maps.go_programs), &go->program, &go->fields, BPF_ANY);

    for (size_t i = 0; !r && i < go->sites.count; i++) {
        uint32_t index = (uint32_t)go->sites.cookies[i];

        r = bpf_map_update_elem(bpf_map__fd(skeleton->maps.go_probes), &index, &go->probes[i], BPF_ANY);
    }
    return r ? error_set(err, r, NULL, "cannot describe the probes of %s", go->sites.name)
             : attach_kind(backend, &kind, &go->sites, err);
}

int uprobe_backend_attach_sync(struct uprobe_backend *backend, const struct uprobe_sites *sites, pid_t pid,
                               struct error *err)
{
    const struct probe_links_kind kind = {backend->skeleton->progs.on_sync, ATTACH_UPROBE_MULTI, pid, 0,
                                          PROBE_SYNC};

    return attach_kind(backend, &kind, sites, err);
}

int uprobe_backend_attach_claims(struct uprobe_backend *backend, int file, unsigned long offset,
                                 struct error *err)
{
    const struct probe_links_kind kind = {backend->skeleton->progs.on_claim, ATTACH_UPROBE_MULTI, 0, 0,
                                          PROBE_CLAIMS};
    const uint64_t cookie = 0;
    bool refused = false;
    const struct uprobe_sites sites = {.file = file,
                                       .name = "the agent",
                                       .offsets = &offset,
                                       .cookies = &cookie,
                                       .count = 1,
                                       .refused = &refused};
    int r = attach_kind(backend, &kind, &sites, err);

    return r || !refused ? r : error_say(err, -EOPNOTSUPP, "cannot attach a probe to the agent");
}

int uprobe_backend_attach_rights(struct uprobe_backend *backend, const struct uprobe_sites *sites,
                                 struct error *err)
{
    const struct probe_links_kind kind = {backend->skeleton->progs.on_rights, ATTACH_UPROBE_MULTI, 0, 0,
                                          PROBE_CLAIMS};

    return attach_kind(backend, &kind, sites, err);
}

int uprobe_backend_attach_gates(struct uprobe_backend *backend, const struct uprobe_sites *sites, pid_t pid,
                                struct error *err)
{
    const struct probe_links_kind kind = {backend->skeleton->progs.on_protect, ATTACH_UPROBE_MULTI, pid,
                                          sites->part, PROBE_GATES};

    return attach_kind(backend, &kind, sites, err);
}

int uprobe_backend_sync_call(struct uprobe_backend *backend, uint32_t number, const struct sync_call *call,
                             struct error *err)
{
    int r = bpf_map_update_elem(bpf_map__fd(backend->skeleton->maps.sync_calls), &number, call, BPF_ANY);

    return r ? error_set(err, r, NULL, "cannot describe system call %u", number) : 0;
}

void uprobe_backend_set_schedule(struct uprobe_backend *backend, unsigned worker,
                                 const struct go_schedule *schedule, pid_t holder)
{
    backend->skeleton->bss->go_schedules[worker % GO_WORKERS_MAX] = *schedule;
    backend->skeleton->bss->holder = (uint32_t)holder;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

uint32_t uprobe_backend_hits(const struct uprobe_backend *backend, uint32_t index, unsigned worker,
                             uint32_t execution)
{
    struct go_delay delay = {0};

    if (bpf_map_lookup_elem(bpf_map__fd(backend->skeleton->maps.go_delays), &index, &delay) ||
        delay.hits[worker % GO_WORKERS_MAX] >> 32 != execution)
        return 0;
    return (uint32_t)delay.hits[worker % GO_WORKERS_MAX];
}

void uprobe_backend_detach_process(struct uprobe_backend *backend, pid_t pid)
{
    probe_links_close_of(&backend->links, pid, 0);
}

void uprobe_backend_detach_part(struct uprobe_backend *backend, unsigned part)
{
    probe_links_close_of(&backend->links, 0, part);
}

unsigned uprobe_backend_closing(const struct uprobe_backend *backend)
{
    return closer_pending(&backend->links.closer);
}

int uprobe_backend_watch_linker(struct uprobe_backend *backend, int file, const char *name,
                                const struct linker_sites *linker, pid_t pid, struct error *err)
{
    const struct uprobe_sites site = {
        .file = file, .name = name, .offsets = &linker->rendezvous, .cookies = &linker->state, .count = 1};
    const struct probe_links_kind kind = {backend->skeleton->progs.on_libraries, ATTACH_UPROBE_MULTI, pid, 0,
                                          PROBE_LINKER};
    int r = probe_links_attach(&backend->links, &kind, &site);

    return r ? error_set(err, r, NULL, "cannot watch the dynamic linker %s", name) : 0;
}

int uprobe_backend_placed(const struct uprobe_backend *backend,
                          int (*handle)(void *context, const struct placed_probes *placed), void *context)
{
    int r = 0;

    for (size_t i = 0; i < backend->links.count && !r; i++)
        r = handle(context, &backend->links.items[i].placed);
    return r;
}

int uprobe_backend_former(struct uprobe_backend *backend,
                          int (*handle)(void *context, const struct placed_probes *former), void *context)
{
    int r = 0;

    for (size_t i = 0; i < backend->links.file_count && !r; i++) {
        struct former_probes *former = &backend->links.files[i];

        probe_links_put_in_order(former);
        const struct placed_probes placed = {.device = former->device,
                                             .inode = former->inode,
                                             .offsets = former->offsets,
                                             .count = former->count};

        r = handle(context, &placed);
    }
    return r;
}

bool uprobe_backend_had_probes(const struct uprobe_backend *backend)
{
    return backend->links.file_count;
}

void uprobe_backend_forget_former(struct uprobe_backend *backend)
{
    probe_links_forget(&backend->links);
}

void uprobe_backend_touch(struct uprobe_backend *backend, int file, pid_t pid, const unsigned long *offsets,
                          size_t count)
{
    const struct probe_links_kind kind = {backend->skeleton->progs.on_call_only, ATTACH_UPROBE_MULTI, pid, 0,
                                          PROBE_CALLS};
    AUTO_FREE uint64_t *cookies = calloc(count + 1, sizeof(*cookies));
    AUTO_FREE bool *refused = calloc(count + 1, sizeof(*refused));
    const struct uprobe_sites sites = {
        .file = file, .offsets = offsets, .cookies = cookies, .count = count, .refused = refused};
    struct probe_links links = {0};

    if (cookies && refused)
        probe_links_attach(&links, &kind, &sites);
    probe_links_release(&links);
}

void uprobe_backend_detach(struct uprobe_backend *backend)
{
    probe_links_close(&backend->links);
    tracectl_bpf__detach(backend->skeleton);
}

void uprobe_backend_enter(struct uprobe_backend *backend, enum recording_phase phase)
{
    __atomic_store_n(&backend->skeleton->bss->phase, phase, __ATOMIC_SEQ_CST);
}

int uprobe_backend_set_process(struct uprobe_backend *backend, pid_t pid, const struct process_state *state)
{
    struct process_state before, after = *state;
    uint32_t tgid = (uint32_t)pid;
    int r;

    if (uprobe_backend_process(backend, pid, &before)) {
        after.worker = before.worker;
        after.flags |= before.flags & PROCESS_SHARES_SLOTS;
    }
    r = bpf_map_update_elem(bpf_map__fd(backend->skeleton->maps.processes), &tgid, &after, BPF_EXIST);

    __atomic_fetch_add(&backend->skeleton->bss->generation, 1, __ATOMIC_SEQ_CST);
    return r;
}

bool uprobe_backend_process(const struct uprobe_backend *backend, pid_t pid, struct process_state *ret_state)
{
    uint32_t tgid = (uint32_t)pid;

    return !bpf_map_lookup_elem(bpf_map__fd(backend->skeleton->maps.processes), &tgid, ret_state);
}

int uprobe_backend_add_process(struct uprobe_backend *backend, pid_t pid, unsigned worker, struct error *err)
{
    const struct process_state state = {.flags = PROCESS_TRACED, .worker = worker};
    uint32_t tgid = (uint32_t)pid;
    int r = bpf_map_update_elem(bpf_map__fd(backend->skeleton->maps.processes), &tgid, &state, BPF_ANY);

    __atomic_fetch_add(&backend->skeleton->bss->generation, 1, __ATOMIC_SEQ_CST);
    return r ? error_set(err, r, NULL, "cannot trace process %d", (int)pid) : 0;
}

int uprobe_backend_fd(const struct uprobe_backend *backend)
{
    return ring_buffer__epoll_fd(backend->ring.rings);
}

int uprobe_backend_consume(struct uprobe_backend *backend, unsigned limit, wire_handler handle, void *context)
{
    return ring_reader_consume(&backend->ring, limit, handle, context);
}

void uprobe_backend_want_all(struct uprobe_backend *backend)
{
    backend->ring.wanted = true;
}

uint64_t uprobe_backend_ring_bytes(const struct uprobe_backend *backend)
{
    return ring_reader_bytes(&backend->ring);
}

struct wire_losses uprobe_backend_consume_losses(struct uprobe_backend *backend, uint32_t tid)
{
    struct {
        uint32_t calls, returns, go, sync;
    } loss;
    struct wire_losses none = {0};
    int map = bpf_map__fd(backend->skeleton->maps.losses);

    if (!backend->skeleton->bss->losing_threads || bpf_map_lookup_elem(map, &tid, &loss))
        return none;
    if (!bpf_map_delete_elem(map, &tid))
        __atomic_fetch_sub(&backend->skeleton->bss->losing_threads, 1, __ATOMIC_RELAXED);
    return (struct wire_losses){loss.calls, loss.returns, loss.go, loss.sync};
}

struct uprobe_loss_totals uprobe_backend_loss_totals(const struct uprobe_backend *backend)
{
    const struct tracectl_bpf__bss *bss = backend->skeleton->bss;

    return (struct uprobe_loss_totals){bss->totals.unplaced, bss->totals.life_cycle, bss->totals.processes};
}

int uprobe_backend_held_fd(const struct uprobe_backend *backend)
{
    return bpf_map__fd(backend->skeleton->maps.held);
}

size_t uprobe_backend_held(const struct uprobe_backend *backend, pid_t *pids, size_t capacity)
{
    uint32_t key, *previous = NULL;
    size_t count = 0;

    while (count < capacity && !bpf_map_get_next_key(uprobe_backend_held_fd(backend), previous, &key)) {
        pids[count++] = (pid_t)key;
        previous = &key;
    }
    return count;
}

bool uprobe_backend_release(struct uprobe_backend *backend, pid_t pid)
{
    int map = uprobe_backend_held_fd(backend);
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

bool uprobe_backend_end_wait(struct uprobe_backend *backend, pid_t tid)
{
    uint32_t key = (uint32_t)tid;

    return !bpf_map_delete_elem(bpf_map__fd(backend->skeleton->maps.waiting), &key);
}
