/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A life-cycle source: tells what happens to the processes and threads of a recording, and holds processes
 * still until their probes are in place. The recorder, the loader and the streams know this table only.
 *
 * It speaks wire records (bpf/wire.h): WIRE_FORK, EXEC and EXIT of every thread of a traced process;
 * WIRE_LIBRARIES, CLAIM, RIGHTS and REWRITE of what it has been asked to watch; WIRE_SLOTS_SHARED and
 * SLOTS_BACK of children that work on their parents' slots; WIRE_LOST where records are missing. Rules that
 * readers rely on:
 *
 * - the records of one thread come in the order in which it did these things, and a thread's WIRE_FORK comes
 *   before any other record of it;
 * - a record with WIRE_HELD means that the process stands still until `release`, one with WIRE_WAITING that
 *   the thread does until `end_wait`; without these flags it runs already, and what it calls meanwhile is
 *   unseen (the reader notes the loss);
 * - a record that is lost is counted, in `consume_losses` or in `losses`.
 *
 * Implementations: uprobe_life_cycle() (collector/uprobe/uprobe.h), by BPF programs on tracepoints. Calls
 * that uprobes see are in its ring, too, and so in order with its records. And tracer_life_cycle()
 * (collector/tracer/tracer.h), by ptrace(2), for users who may load no BPF programs.
 */
#ifndef TRACECTL_COLLECTOR_BACKEND_LIFE_CYCLE_SOURCE_H
#define TRACECTL_COLLECTOR_BACKEND_LIFE_CYCLE_SOURCE_H

#include <sys/types.h>

#include "bpf/wire.h"
#include "collector/backend/probe_sites.h"

struct error;

struct life_cycle_source {
    const struct life_cycle_operations *of;
};

/* Takes one record. Below 0: a failure, which ends everything; above 0: it wants to be asked no more than
 * necessary. */
typedef int (*wire_handler)(void *context, const void *record, size_t size);

/* Records of one thread that could not be handed on, by kind. */
struct wire_losses {
    uint64_t calls, returns, go, sync;
};

struct life_cycle_losses {
    uint64_t unplaced;   /* calls and returns of unknown threads */
    uint64_t life_cycle; /* records of forks, execs, exits and libraries */
    uint64_t processes;  /* that found no place in the table of traced ones */
};

/* Where the dynamic linker tells debuggers of libraries. */
struct linker_sites {
    unsigned long rendezvous; /* file offset of _dl_debug_state */
    uint64_t state;           /* from there to _r_debug, in memory; 0: not known */
};

/* Failures are negative errnos; `err`, where there is one, has the reason. */
struct life_cycle_operations {
    /* ---- traced processes */

    /* Traces a process from now on, and its children if they are followed, for a worker (0 where nothing
     * follows_schedule). */
    int (*add_process)(struct life_cycle_source *source, pid_t pid, unsigned worker, struct error *err);

    /* What the source knows of a traced process, and a change of it. False, -ENOENT: it is not traced. The
     * process must stand still where a call could depend on it; its worker stays the same. */
    bool (*process)(const struct life_cycle_source *source, pid_t pid, struct process_state *ret_state);
    int (*set_process)(struct life_cycle_source *source, pid_t pid, const struct process_state *state);

    /* Which calls are recorded and what is held from now on; it begins with PHASE_RECORDING. */
    void (*enter)(struct life_cycle_source *source, enum recording_phase phase);

    /* ---- records */

    /* A descriptor that is readable when a life-cycle record has come; calls alone do not wake (1.2 us each).
     */
    int (*fd)(const struct life_cycle_source *source);

    /* Hands up to about `limit` records to `handle`, and returns how many; what `handle` returns below 0 ends
     * the round and is returned; above 0 it ends the round soon. */
    int (*consume)(struct life_cycle_source *source, unsigned limit, wire_handler handle, void *context);

    /* The next rounds hand on, too, all that threads have gathered by now and not yet written; otherwise that
     * comes every 100 ms. */
    void (*want_all)(struct life_cycle_source *source);

    /* Reads and resets the losses of thread `tid` that no WIRE_LOST has reported. */
    struct wire_losses (*consume_losses)(struct life_cycle_source *source, uint32_t tid);
    /* What was lost so far that no thread's record tells of. */
    struct life_cycle_losses (*losses)(const struct life_cycle_source *source);
    /* Bytes that have come in so far. */
    uint64_t (*bytes)(const struct life_cycle_source *source);

    /* ---- what is watched, where it is asked for */

    /* The dynamic linker in `file` tells of libraries, in this process alone: WIRE_LIBRARIES. Every program
     * maps the linker, and one that reads its own code (valgrind) must not find a probe in it. */
    int (*watch_linker)(struct life_cycle_source *source, int file, const char *name,
                        const struct linker_sites *linker, pid_t pid, struct error *err);
    /* Threads take slots at `offset` of the agent of inline probes, wherever it is mapped: WIRE_CLAIM.
     * `file`: the agent's. */
    int (*watch_claims)(struct life_cycle_source *source, int file, unsigned long offset, struct error *err);
    /* The same where its threads ask whether they may wait for the collector; those that must not are marked
     * in the file of `filtered`, a page that targets map, which stays the source's. */
    int (*watch_asks)(struct life_cycle_source *source, int file, unsigned long offset, struct error *err);
    int (*filtered)(const struct life_cycle_source *source);
    /* A number for an area that no process has at present, from 1; threads may wait there until one is marked.
     * -ENOSPC: there is none left, -ENOTSUP: nobody may wait. Then numbers from AREAS_THAT_WAIT on will do. */
    int (*number_area)(struct life_cycle_source *source, uint32_t *ret_area);
    /* A process is about to get the area with that number, or (0) has none any more: it is the one that its
     * threads ask for, and those of the children that it makes from now on. -E2BIG: there are too many, and
     * they must not wait. */
    int (*set_area)(struct life_cycle_source *source, pid_t pid, uint32_t area);
    /* Functions by which a process is about to change its rights, in all processes: WIRE_RIGHTS. That may come
     * without them, too. */
    int (*watch_rights)(struct life_cycle_source *source, const struct probe_sites *sites, struct error *err);
    /* Calls by which programs are about to change their code, in one process or (`pid` 0) in all:
     * WIRE_REWRITE. The cookies are of enum rewrite_gate_kind. */
    int (*watch_rewrites)(struct life_cycle_source *source, const struct probe_sites *sites, pid_t pid,
                          struct error *err);

    /* ---- held processes */

    /* From now on a process is let go that has stood still for ten seconds, and all are when the collector
     * dies. */
    int (*guard)(struct life_cycle_source *source, struct error *err);
    /* The first `capacity` processes that stand still, returned as their number. */
    size_t (*held)(const struct life_cycle_source *source, pid_t *pids, size_t capacity);
    /* Lets a process go; false: it had stood too long and runs already. */
    bool (*release)(struct life_cycle_source *source, pid_t pid);
    /* The same of a thread that waits. `*ret_stopped`: a tracer has stopped it meanwhile, and it continued when
     * the tracer detached. */
    bool (*end_wait)(struct life_cycle_source *source, pid_t tid, bool *ret_stopped);
};

#endif
