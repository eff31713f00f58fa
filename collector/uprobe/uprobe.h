/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The uprobe backend: loads the BPF programs, attaches probes, hands out the ring's records.
 *
 * Nothing is pinned: when the process that holds the backend dies, however it dies, the kernel removes every
 * probe with its last file descriptor.
 */
#ifndef TRACECTL_COLLECTOR_UPROBE_UPROBE_H
#define TRACECTL_COLLECTOR_UPROBE_UPROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "bpf/wire.h"
#include "collector/uprobe/unpack.h"

struct uprobe_backend;

struct uprobe_options {
    size_t ring_bytes;     /* a power of two of at least a page; 0: the default, 32 MiB */
    bool with_time;        /* stamp records: 41 ns each, so only as often as --time anchor needs */
    bool full_time;        /* stamp every record */
    bool follow_children;  /* trace the processes that traced processes make */
    bool can_continue_all; /* this process may send SIGCONT to processes of other users, which can be held
                              then */
    bool goroutines;       /* uprobe_backend_attach_go will be called */
    bool follows_schedule; /* and uprobe_backend_set_schedule */
    bool sync;    /* record system calls that synchronise; uprobe_backend_attach_sync will be called */
    bool inlined; /* processes have inline probes */
    bool returns; /* cookies without COOKIE_ENTRY_ONLY will ask for return probes; else there are none */
    uint32_t budget_ns; /* what calls may cost on each CPU in a tick of the kernel's; 0: as much as they do */
    uint32_t trigger_share; /* of 2^32 - 1: of the windows that triggers open; 0: there are none */
    bool count_only;        /* with a budget: calls are counted in its slots, and none is recorded */
    bool packed;  /* calls and returns of a thread go packed through the ring, where nothing speaks against it
                   */
    bool no_hold; /* stop nobody at exec or fork: a parent could see it */
};

/* Loads the programs and attaches the life-cycle tracepoints; no probe yet. -EPERM without the capabilities,
 * -EOPNOTSUPP on a kernel that cannot place them, or has no sessions for `returns`. */
int uprobe_backend_open(const struct uprobe_options *options, struct uprobe_backend **ret_backend,
                        struct error *err);

/* Detaches everything. Accepts NULL. */
void uprobe_backend_free(struct uprobe_backend *backend);

/* Parts that no other probes have: those of a budget from here on, and all of an image. */
#define UPROBE_PARTS 0x10000u
#define UPROBE_IMAGE_PART(number) (0x80000000u + (number))

/* What is to be probed of one image. */
struct uprobe_sites {
    int file;                     /* open, of the very file that processes have mapped; borrowed */
    const char *name;             /* of the file, for messages */
    const unsigned long *offsets; /* in the file */
    const uint64_t *cookies;      /* an index in the low half and the COOKIE_ flags of bpf/wire.h */
    size_t count;
    unsigned part; /* what these probes can be taken away by, in all processes; 0: nothing */
    bool *
        refused; /* `count` answers, false before: the kernel does not take this instruction, or it is none */
};

/* Probes an image in every process that maps it (`pid` 0), or in one process and its threads, not its
 * children. What the kernel refuses is marked and left out; everything else is attached, or nothing.
 *
 * For one process all cookies must say COOKIE_ENTRY_ONLY. The kernel gives a call that meets the breakpoint
 * in another process (a forked child, or one that has probes of its own there) a return probe without asking
 * the program (uprobe_prog_run in kernel/trace/bpf_trace.c answers 0 for another process, which a session
 * takes for yes), and at a place that is no entry this destroys the stack: so there are no sessions then. */
int uprobe_backend_attach(struct uprobe_backend *backend, const struct uprobe_sites *sites, pid_t pid,
                          struct error *err);

/* With a budget: what is counted of each probe, by its index; MAX_BUDGET_PROBES of them, shared with the
 * kernel side. NULL without one. */
struct budget_slot *uprobe_backend_budget(const struct uprobe_backend *backend);

/* Says that some places have probes of two parts, or that none has any more. */
void uprobe_backend_relinking(struct uprobe_backend *backend, bool relinking);

/* What is to be probed of a Go program for its goroutines: the cookies are indexes of `probes`. */
struct uprobe_go {
    struct uprobe_sites sites;
    const struct go_probe *probes; /* as many as sites */
    uint32_t program;              /* number in the map of layouts */
    struct go_fields fields;
    unsigned part; /* what they are taken away by again; not 0 */
};

/* Probes it in every process that runs it. */
int uprobe_backend_attach_go(struct uprobe_backend *backend, const struct uprobe_go *go, struct error *err);
/* Takes one part away again, in all processes, behind the caller's back (some 40 ms). */
void uprobe_backend_detach_part(struct uprobe_backend *backend, unsigned part);

/* Probes functions that synchronise, whose cookies are those of struct wire_sync (bpf/wire.h), as
 * uprobe_backend_attach does. */
int uprobe_backend_attach_sync(struct uprobe_backend *backend, const struct uprobe_sites *sites, pid_t pid,
                               struct error *err);

/* Probes functions by which a process is about to change its rights (WIRE_RIGHTS), in all processes. */
int uprobe_backend_attach_rights(struct uprobe_backend *backend, const struct uprobe_sites *sites,
                                 struct error *err);

/* Probes the agent of inline probes at the offset where threads take their slots (WIRE_CLAIM), wherever it is
 * mapped. `file`: the agent's. */
int uprobe_backend_attach_claims(struct uprobe_backend *backend, int file, unsigned long offset,
                                 struct error *err);

/* Watches for programs that are about to change their code, at their calls of mprotect(); the cookies are of
 * enum rewrite_gate_kind. Otherwise as uprobe_backend_attach. */
int uprobe_backend_attach_gates(struct uprobe_backend *backend, const struct uprobe_sites *sites, pid_t pid,
                                struct error *err);

/* What is recorded of a system call. */
int uprobe_backend_sync_call(struct uprobe_backend *backend, uint32_t number, const struct sync_call *call,
                             struct error *err);

/* Whom to hold up from now on, of the processes of a worker (below GO_WORKERS_MAX): nobody of before is
 * affected. `holder`: the process that the targets are traced by. */
void uprobe_backend_set_schedule(struct uprobe_backend *backend, unsigned worker,
                                 const struct go_schedule *schedule, pid_t holder);
/* How often the place of probe `index` was hit in the worker's `execution`. */
uint32_t uprobe_backend_hits(const struct uprobe_backend *backend, uint32_t index, unsigned worker,
                             uint32_t execution);

/* Removes the probes of one process alone, when it has ended. The kernel takes some 40 ms a link: they are
 * closed behind the caller's back. */
void uprobe_backend_detach_process(struct uprobe_backend *backend, pid_t pid);

/* So many links of ended processes are still being removed. */
unsigned uprobe_backend_closing(const struct uprobe_backend *backend);

/* The dynamic linker's meeting place with debuggers. */
struct linker_sites {
    unsigned long rendezvous; /* file offset of _dl_debug_state */
    uint64_t state;           /* from there to _r_debug, in memory; 0: not known */
};

/* Lets a process announce new libraries (PROCESS_CAN_LOAD), which the linker in `file` loads. In this process
 * alone: every program maps the linker, and one that reads its own code (valgrind) must not find a probe. */
int uprobe_backend_watch_linker(struct uprobe_backend *backend, int file, const char *name,
                                const struct linker_sites *linker, pid_t pid, struct error *err);

/* Removes every probe and the life-cycle tracepoints, and waits until they are gone; records that are in the
 * ring stay. */
void uprobe_backend_detach(struct uprobe_backend *backend);

/* What probes are for. */
enum probe_purpose { PROBE_CALLS, PROBE_GOROUTINES, PROBE_SYNC, PROBE_CLAIMS, PROBE_GATES, PROBE_LINKER };

/* Probes in one file. */
struct placed_probes {
    dev_t device;
    ino_t inode;
    pid_t pid; /* in this process; 0: in all that map the file */
    enum probe_purpose purpose;
    unsigned long *offsets; /* in the file, ascending */
    size_t count;
};

/* Hands all probes that are in place to `handle`, until that returns another value than 0, which is returned.
 */
int uprobe_backend_placed(const struct uprobe_backend *backend,
                          int (*handle)(void *context, const struct placed_probes *placed), void *context);

/* The same for all that were in place at any time: each file once, without `pid` and `purpose`. */
int uprobe_backend_former(struct uprobe_backend *backend,
                          int (*handle)(void *context, const struct placed_probes *former), void *context);

bool uprobe_backend_had_probes(const struct uprobe_backend *backend);
void uprobe_backend_forget_former(struct uprobe_backend *backend);

/* After uprobe_backend_detach(): places probes in a process and takes them away, so that the kernel restores
 * what it has left there. As far as it can: the caller looks again. */
void uprobe_backend_touch(struct uprobe_backend *backend, int file, pid_t pid, const unsigned long *offsets,
                          size_t count);

/* Which calls are recorded and who is stopped from now on, whatever is attached. It begins with
 * PHASE_RECORDING. */
void uprobe_backend_enter(struct uprobe_backend *backend, enum recording_phase phase);

/* Starts recording a process, and its children if they are followed, for a worker (0 where nobody
 * follows_schedule).
 */
int uprobe_backend_add_process(struct uprobe_backend *backend, pid_t pid, unsigned worker, struct error *err);

/* What the kernel side knows of a traced process, and a change of it. False, -ENOENT: it is not traced. The
 * process must stand still where a call could depend on it; its worker stays the same. */
bool uprobe_backend_process(const struct uprobe_backend *backend, pid_t pid, struct process_state *ret_state);
int uprobe_backend_set_process(struct uprobe_backend *backend, pid_t pid, const struct process_state *state);

/* Readable when a life-cycle record has come; calls alone do not wake anybody (1.2 us each). */
int uprobe_backend_fd(const struct uprobe_backend *backend);

/* Hands up to about `limit` records to `handle` in the order of each thread, then returns how many; what
 * `handle` returns below 0 ends the round and is returned; above 0 it ends the round soon. Calls that are
 * packed come as the plain records that they would have been (struct wire_call and wire_call_from). */
int uprobe_backend_consume(struct uprobe_backend *backend, unsigned limit, wire_handler handle,
                           void *context);

/* The next rounds hand on, too, all that threads have packed by now and not yet written; otherwise that comes
 * every 100 ms. */
void uprobe_backend_want_all(struct uprobe_backend *backend);

/* Bytes that have come through the rings. */
uint64_t uprobe_backend_ring_bytes(const struct uprobe_backend *backend);

struct wire_losses {
    uint64_t calls, returns, go, sync;
};
/* Takes what thread `tid` has lost and not yet reported in the ring. */
struct wire_losses uprobe_backend_consume_losses(struct uprobe_backend *backend, uint32_t tid);

struct uprobe_loss_totals {
    uint64_t unplaced, life_cycle, processes; /* as in bpf/tracectl.bpf.c */
};
struct uprobe_loss_totals uprobe_backend_loss_totals(const struct uprobe_backend *backend);

/* The map of processes that stand still after exec, for exec_guard; and the list itself: the first `capacity`
 * pids, returned as their number. A process is let go by uprobe_backend_release; false: the guard has let it
 * go before, since it had stood too long. */
int uprobe_backend_held_fd(const struct uprobe_backend *backend);
size_t uprobe_backend_held(const struct uprobe_backend *backend, pid_t *pids, size_t capacity);
bool uprobe_backend_release(struct uprobe_backend *backend, pid_t pid);

/* Lets a thread go that waits for its libraries (WIRE_WAITING). False: it waited too long and runs already.
 */
bool uprobe_backend_end_wait(struct uprobe_backend *backend, pid_t tid);

#endif
