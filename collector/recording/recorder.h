/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One recording, from the first probe to the last commit.
 *
 *     recorder_open                            load BPF, or start the tracer; begin the run
 *     recorder_launch or recorder_attach       the targets
 *     recorder_run                             until the command ends, a time is up, or recorder_stop
 *     recorder_close                           detach, drain, end the run
 *     recorder_free
 *
 * The targets are never stopped for longer than an exec takes to be probed, and never killed. recorder_run
 * gives up, permanently, the capabilities of this process that recording does not need, unless more commands
 * are to be launched (`watch`).
 */
#ifndef TRACECTL_COLLECTOR_RECORDING_RECORDER_H
#define TRACECTL_COLLECTOR_RECORDING_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collector/flight/flight.h"
#include "collector/go/watch.h"
#include "collector/images/image_table.h"
#include "collector/recording/store_quota.h"
#include "collector/stream/streams.h"
#include "collector/sync/functions.h"
#include "store/api/tracestore.h"

struct error;

struct recorder;

/* What records calls. */
enum recorder_backend {
    RECORDER_UPROBE, /* uprobes alone */
    RECORDER_INLINE, /* inline probes where functions can be patched, uprobes for the others */
};

/* How is known what processes and threads do. */
enum recorder_life_cycle {
    RECORDER_BY_BPF,    /* by BPF programs, and uprobes can be used */
    RECORDER_BY_PTRACE, /* by ptrace(2), which an ordinary user may: with inline probes alone */
    RECORDER_BY_EITHER, /* by BPF where its programs can be loaded and pids are those of the kernel, else by ptrace */
};

/* Which images and functions are recorded, as in struct image_table_options. */
struct recorder_selection {
    bool (*want_image)(void *context, const char *path, enum image_kind kind);
    bool (*want)(void *context, struct elf_image *image, const struct image_function *function);
    const char *(*asked_name)(void *context, struct elf_image *image, const struct image_function *function);
    void *context;
};

/* What is recorded of them, and of processes. */
struct recorder_content {
    enum stream_times times;
    enum plan_returns returns;
    bool call_sites;                             /* keep where each call came from */
    bool sync;                                   /* locks, messages and waiting, too */
    const struct sync_declaration *declarations; /* with `sync`: sinks and the like; borrowed */
    size_t declaration_count;
    bool skip_environment; /* neither arguments nor the environment of processes are read */
    bool keep_arguments;   /* of processes, in the store; not with `skip_environment` */
};

/* Of Go programs. */
struct recorder_go {
    enum go_detail detail;                /* of what goroutines do */
    bool functions;                       /* with `detail`: functions of Go programs, too */
    struct go_budget budget;              /* what recording goroutines may cost */
    const struct go_watch_options *watch; /* programs that are launched; NULL: none is watched */
    struct go_observer observer;          /* without `watch`: gets what goroutines do */
    struct go_watch_observer watcher;     /* gets what is observed */
    bool delays;                          /* recorder_set_schedule will be called */
};

/* Outside of the windows that some functions open nothing is recorded (trigger.h). */
struct recorder_trigger {
    /* Which functions; NULL: there are no windows. */
    bool (*opens)(void *context, struct elf_image *image, const struct image_function *function);
    void *context;
    double share; /* how many of the windows are recorded: 1 is all */
};

struct recorder_probes {
    enum recorder_backend backend;
    bool
        insists_on_inline; /* even where the kernel's probes would tell more, or inline probes are not trusted */
    bool waits;            /* threads wait where their inline probes are ahead of the collector, instead of
                               losing calls */
    enum recorder_life_cycle life_cycle;
    const char
        *needs_bpf;  /* an option, as the user has given it, that ptrace cannot serve; NULL: there is none */
    bool plain_wire; /* each call and return goes through the ring as a record of its own */
};

struct recorder_limits {
    double budget;   /* what calls seen by uprobes may cost: 0.05 of the target's CPU time; 0: what they do */
    bool count_only; /* with a budget: calls are only counted, and none is stored */
    size_t ring_bytes;   /* 0: the default */
    size_t memory_bytes; /* as in trace_writer_options; 0: a quarter of the machine's, at most 1 GiB */
};

struct recorder_targets {
    bool follow_children;
    bool until_all; /* a launched command's recording lasts until all its processes have ended */
    bool no_hold; /* children are not stopped while their programs are probed: their beginnings may be lost */
    int output;   /* descriptor for the command's standard output, -1: the caller's own */
};

struct recorder_storage {
    uint64_t flush_interval_ns;      /* 0: one second */
    struct flight *flight;           /* the store is its window; NULL: everything is kept */
    struct store_quota_options room; /* what the store keeps meanwhile */
};

struct recorder_options {
    struct {
        const char *name, *command, *options; /* as in trace_run_description */
    } run;
    struct recorder_selection selected;
    struct recorder_content content;
    struct recorder_go go;
    struct recorder_trigger trigger;
    struct recorder_probes probes;
    struct recorder_limits limits;
    struct recorder_targets targets;
    struct recorder_storage storage;
};

/* Which of the options, or what of this machine, rules out inline probes, in words; NULL: nothing. */
const char *recorder_inline_refusal(const struct recorder_options *options);
/* Whether there will be inline probes: they are wanted, and nothing rules them out. */
bool recorder_has_inline(const struct recorder_options *options);

/* Which of the options rule out RECORDER_BY_PTRACE, in words; NULL: none. */
const char *recorder_ptrace_refusal(const struct recorder_options *options);

int recorder_open(struct tracestore *store, const struct recorder_options *options,
                  struct recorder **ret_recorder, struct error *err);

/* Whether it records by ptrace: why BPF was not used (an error's message; empty: that was asked for). NULL: by BPF. */
const char *recorder_why_ptrace(const struct recorder *recorder);

/* Attaches a key and a value to the run. */
int recorder_tag(struct recorder *recorder, const char *key, const char *value, struct error *err);

/* How the goroutines of what is launched for `worker` (below GO_WORKERS_MAX) from now on are held up. */
void recorder_set_schedule(struct recorder *recorder, unsigned worker, const struct go_schedule *schedule);
/* How goroutines of a process are held up from now on (collector/go/watch.h). */
void recorder_hold_by(struct recorder *recorder, pid_t pid, const struct go_hold_rule *rule);
/* How often that place was hit in the worker's `execution` (struct go_schedule). */
uint32_t recorder_hits(const struct recorder *recorder, uint32_t index, unsigned worker, uint32_t execution);
/* Whom a process is executed for, as the child of a command or the command itself. -ESRCH: it has ended. */
int recorder_worker_of(const struct recorder *recorder, pid_t pid);

/* What commands of `worker` print from the next one on, standard error as well, goes to the descriptor
 * `output`, which stays the caller's; -1: as the options have it. */
void recorder_redirect(struct recorder *recorder, unsigned worker, int output);

/* Starts a command for `worker`, again when the last one of that has ended; argv[0] is looked up in PATH. It
 * runs its first instruction with all probes in place. */
int recorder_launch(struct recorder *recorder, unsigned worker, char *const *argv, struct error *err);

/* Traces a running process from now on, and the children that it has, if they are followed. */
int recorder_attach(struct recorder *recorder, pid_t pid, struct error *err);

/* The same for several. One that cannot be traced does not keep the others from it: it is left out and named;
 * only a wrong process id, or that none can be traced, is a failure. */
int recorder_attach_all(struct recorder *recorder, const pid_t *pids, size_t count, struct error *err);

/* Processes that were left out so far, and why; the recorder's. */
struct recorder_excluded {
    pid_t pid;
    char *why;
};
const struct recorder_excluded *recorder_excluded(const struct recorder *recorder, size_t *ret_count);

/* Whether the process is, or was, among those recorded. */
bool recorder_knows_process(const struct recorder *recorder, pid_t pid);

/* Records until a command has ended (`until_all`: and all its processes), all attached processes have,
 * `duration_ns` is over (0: no limit) or recorder_stop was called; after the first and the third it may be
 * called again, and continues. -ENOSPC and the like: recording has stopped, what was committed stays. */
int recorder_run(struct recorder *recorder, uint64_t duration_ns, struct error *err);

/* The worker whose command has ended last. */
unsigned recorder_ended(const struct recorder *recorder);
/* Ends all commands that run, by SIGKILL. */
void recorder_kill(struct recorder *recorder);

/* Ends recorder_run soon; may be called from a signal handler. */
void recorder_stop(struct recorder *recorder);

/* Passes a signal on to the commands that run, soon, unless it was sent to the process group as a whole and
 * they are in it; may be called from a signal handler. */
void recorder_pass_on(struct recorder *recorder, int signal);

/* With a flight recorder: what it has becomes a run soon; may be called from a signal handler. */
void recorder_commit(struct recorder *recorder);

/* Takes the probes away, reads the ring empty and ends the run. */
int recorder_close(struct recorder *recorder, struct error *err);

/* Behind recorder_detach, when recorder_run or recorder_close said -ENOSPC: ends the run with as much of it
 * as there is room for, and the loss 'disk full'. */
int recorder_close_full(struct recorder *recorder, struct error *err);

/* Takes the probes away without ending the run. */
void recorder_detach(struct recorder *recorder);

/* Takes the run back, as if it had never begun, in place of recorder_close or after its failure. */
int recorder_abandon(struct recorder *recorder, struct error *err);

/* Waits for the commands to end that were launched and still run; no probe is on them any more. */
void recorder_wait(struct recorder *recorder);

/* Whether a function has been met that opens windows. */
bool recorder_has_trigger(const struct recorder *recorder);

int64_t recorder_run_id(const struct recorder *recorder);

/* The status of the command that ended last, 0 to 255 or 128 + signal; -1: it still runs, or there is none.
 */
int recorder_exit_status(const struct recorder *recorder);

/* Behind recorder_close: how many processes of the commands ran on when it was called, and which of them do
 * so still (at most `most`, in ret_pids). */
size_t recorder_survivors(const struct recorder *recorder, pid_t *ret_pids, size_t most, size_t *ret_running);

struct stream_counts recorder_counts(const struct recorder *recorder);

/* Older runs that the retention, or a full disk, has deleted. */
uint64_t recorder_dropped_runs(const struct recorder *recorder);

struct trace_writer_memory recorder_memory(const struct recorder *recorder);

/* With a flight recorder: how far its window reaches. */
struct trace_writer_window recorder_window(const struct recorder *recorder);

/* Bytes that have come through the ring buffers of the kernel side. */
uint64_t recorder_ring_bytes(const struct recorder *recorder);

/* The images met, traced or refused. */
const struct traced_image *recorder_images(const struct recorder *recorder);

/* Accepts NULL. Without recorder_close the run stays 'unfinished'. */
void recorder_free(struct recorder *recorder);

#endif
