/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/uprobe/uprobe.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "collector/launch/privileges.h"
#include "collector/uprobe/bpf_mappings.h"
#include "collector/uprobe/bpf_messages.h"
#include "collector/uprobe/placement.h"
#include "collector/uprobe/probe_events.h"
#include "collector/uprobe/uprobe_state.h"

/* A time for each event, or for the ends of windows, stands in a record of its own. */
static bool packs(const struct uprobe_options *options)
{
    return options->packed && !options->full_time && !options->trigger_share && !options->count_only;
}

/* Which programs are loaded: the session program only if return probes are wanted. */
static void choose_programs(struct tracectl_bpf *skeleton, const struct uprobe_options *options)
{
    bpf_program__set_autoload(skeleton->progs.on_session, options->returns);
    bpf_program__set_autoload(skeleton->progs.on_go, options->goroutines);
    if (options->returns)
        bpf_program__set_expected_attach_type(skeleton->progs.on_session,
                                              (enum bpf_attach_type)ATTACH_UPROBE_SESSION);
    bpf_program__set_autoload(skeleton->progs.on_sync, options->sync);
    bpf_program__set_autoload(skeleton->progs.on_sys_enter, options->sync);
    bpf_program__set_autoload(skeleton->progs.on_sys_exit, options->sync);
    bpf_program__set_autoload(skeleton->progs.on_claim, options->inlined);
    bpf_program__set_autoload(skeleton->progs.on_ask, options->asked);
    bpf_program__set_autoload(skeleton->progs.on_new_task, options->inlined);
    bpf_program__set_autoload(skeleton->progs.on_rights, options->inlined);
    bpf_program__set_autoload(skeleton->progs.on_capability, options->inlined && kernel_reports_rights());
    bpf_program__set_autoload(skeleton->progs.on_prepare_exec, options->inlined && kernel_reports_slots());
}

/* Maps that the recording does not need have one entry, the least that there can be. */
static void size_maps(struct tracectl_bpf *skeleton, const struct uprobe_options *options)
{
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
    if (!options->inlined)
        bpf_map__set_max_entries(skeleton->maps.areas, 1);
    if (!packs(options)) {
        bpf_map__set_max_entries(skeleton->maps.packed_slots, 1);
        bpf_map__set_max_entries(skeleton->maps.slot_memories, 1);
    }
}

static void set_variables(struct tracectl_bpf *skeleton, const struct uprobe_options *options)
{
    skeleton->rodata->probes_are_events = kernel_probe_way() == PROBE_WAY_EVENTS;
    skeleton->rodata->reports_slots = options->inlined && kernel_reports_slots();
    skeleton->rodata->packs = packs(options);
    skeleton->rodata->with_time = options->with_time;
    skeleton->rodata->full_time = options->full_time;
    skeleton->rodata->follow_children = options->follow_children;
    skeleton->rodata->may_hold = !options->no_hold;
    skeleton->rodata->collector = (uint32_t)getpid();
    skeleton->rodata->can_continue_all = options->can_continue_all;
    skeleton->rodata->collector_user = (uint32_t)getuid();
    skeleton->bss->budget_ns = options->budget_ns;
    skeleton->bss->count_only = options->count_only;
    skeleton->bss->trigger_share = options->trigger_share;
}

static int load(struct uprobe_backend *backend, const struct uprobe_options *options)
{
    struct tracectl_bpf *skeleton = tracectl_bpf__open();
    int r;

    if (!skeleton)
        return -errno;
    placement_prepare(skeleton->obj);
    choose_programs(skeleton, options);
    size_maps(skeleton, options);
    set_variables(skeleton, options);
    r = tracectl_bpf__load(skeleton);
    if (r) {
        tracectl_bpf__destroy(skeleton);
        return r;
    }
    backend->skeleton = skeleton;
    backend->returns = options->returns;
    return 0;
}

#define COUNT_BYTES (MAX_BUDGET_PROBES * sizeof(struct budget_slot))

static int map_counts(struct uprobe_backend *backend)
{
    void *slots = mmap(NULL, COUNT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
                       bpf_map__fd(backend->skeleton->maps.budget_slots), 0);

    if (slots == MAP_FAILED)
        return -errno;
    backend->counts = slots;
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
    backend->calls.of = &uprobe_calls_operations;
    backend->life_cycle.of = &bpf_life_cycle_operations;
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
    if (kernel_probe_way() == PROBE_WAY_NONE) {
        uprobe_backend_free(backend);
        return error_say(err, -EOPNOTSUPP,
                         "cannot load BPF programs: this kernel has neither uprobe_multi (Linux 6.6) nor "
                         "tracefs events (CONFIG_UPROBE_EVENTS) to attach them by");
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
    r = options->budget_ns || options->trigger_share ? map_counts(backend) : 0;
    if (r) {
        uprobe_backend_free(backend);
        return error_set(err, r, NULL, "cannot map the counts of probes");
    }
    bpf_mappings_keep();
    probe_events_sweep(); /* what killed recorders have left */
    *ret_backend = backend;
    return 0;
}

void uprobe_backend_free(struct uprobe_backend *backend)
{
    if (!backend)
        return;
    if (backend->skeleton)
        backend->calls.of->detach(&backend->calls, NULL);
    exec_guard_stop(&backend->guard);
    probe_links_release(&backend->links);
    ring_reader_close(&backend->ring);
    if (backend->counts)
        munmap(backend->counts, COUNT_BYTES);
    tracectl_bpf__destroy(backend->skeleton);
    free(backend);
}

struct backend *uprobe_calls(struct uprobe_backend *backend)
{
    return &backend->calls;
}

struct life_cycle_source *uprobe_life_cycle(struct uprobe_backend *backend)
{
    return &backend->life_cycle;
}

int uprobe_attach(struct uprobe_backend *backend, const struct bpf_program *program,
                  enum probe_purpose purpose, const struct probe_sites *sites, pid_t pid, struct error *err)
{
    const struct probe_links_kind kind = {
        .program = program,
        .session = program == backend->skeleton->progs.on_session,
        .pid = pid,
        .part = sites->part,
        .purpose = purpose,
    };
    int r = probe_links_attach(&backend->links, &kind, sites);

    return r ? error_set(err, r, NULL, "cannot attach %zu probes to %s", sites->count, sites->name) : 0;
}

int uprobe_backend_attach_go(struct uprobe_backend *backend, const struct uprobe_go *go, struct error *err)
{
    const struct tracectl_bpf *skeleton = backend->skeleton;
    int r = bpf_map_update_elem(bpf_map__fd(skeleton->maps.go_programs), &go->program, &go->fields, BPF_ANY);

    for (size_t i = 0; !r && i < go->sites.count; i++) {
        uint32_t index = (uint32_t)go->sites.cookies[i];

        r = bpf_map_update_elem(bpf_map__fd(skeleton->maps.go_probes), &index, &go->probes[i], BPF_ANY);
    }
    return r ? error_set(err, r, NULL, "cannot describe the probes of %s", go->sites.name)
             : uprobe_attach(backend, skeleton->progs.on_go, PROBE_GOROUTINES, &go->sites, 0, err);
}

int uprobe_backend_attach_sync(struct uprobe_backend *backend, const struct probe_sites *sites, pid_t pid,
                               struct error *err)
{
    return uprobe_attach(backend, backend->skeleton->progs.on_sync, PROBE_SYNC, sites, pid, err);
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
