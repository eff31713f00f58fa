/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The translator between two vocabularies: wire records come in, events of the store's streams go out.
 *
 * It knows the traced processes and threads, gives them their labels P.T, keeps each thread's open calls
 * right (call_stack.h) and hands calls, returns and losses to the thread's writer. A process or thread enters
 * the store with its first event.
 *
 * Labels: P is the MPI rank where a launcher set one and no other process of the run has it; every other
 * process takes the lowest number that is free when it is made, whether or not it ever records something, and
 * gives way to a rank that comes later. So P counts processes in the order of their creation, and T the
 * threads of a process: the same program has the same labels whatever arrives first. Processes that are
 * attached to are numbered as they were named, each with those below it. Parents are stored before their
 * children.
 */
#ifndef TRACECTL_COLLECTOR_STREAM_STREAMS_H
#define TRACECTL_COLLECTOR_STREAM_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collector/arch/record.h"
#include "collector/backend/life_cycle_source.h"
#include "collector/go/observer.h"
#include "collector/images/image_table.h"
#include "store/api/tracestore.h"

struct error;

struct call_watch;
struct live_stacks;
struct streams;

enum stream_times { STREAM_TIMES_NONE, STREAM_TIMES_ANCHOR, STREAM_TIMES_FULL };

struct stream_options {
    enum stream_times times;
    bool call_sites;                  /* keep where each call came from */
    struct life_cycle_source *source; /* asked for what a thread has lost and not reported itself */
    struct call_watch *watch;         /* functions whose calls are looked at; NULL: none */
    bool sync;                        /* records of synchronisation come, too */
    struct go_observer goroutines;    /* .event NULL: none */
};

int streams_new(const struct stream_options *options, struct image_table *images, struct trace_writer *writer,
                struct streams **ret_streams, struct error *err);
void streams_free(struct streams *streams);

/* Makes a process known before its first record, with all its threads; `tids` begins with the main thread. */
int streams_add_process(struct streams *streams, pid_t pid, const pid_t *tids, size_t count,
                        struct error *err);

bool streams_knows_process(struct streams *streams, pid_t pid);

struct stream_program {
    const struct traced_image *image; /* NULL: nothing that is traced */
    struct traced_image *go;          /* a Go program whose goroutines are recorded, or NULL */
    bool starting;                    /* it has just been loaded */
    char *exe, *argv;                 /* taken over, also on failure */
    int rank;                         /* -1: none */
};
/* What a known process runs from now on. */
int streams_set_program(struct streams *streams, pid_t pid, const struct stream_program *program,
                        struct error *err);

/* Code that a process has mapped. */
struct stream_code {
    uint64_t start, end; /* addresses in the process */
    uint64_t load_bias;  /* added to link-time addresses */
    struct traced_image *image;
};
/* All the code of a known process, in ascending order, from now on; copied. */
int streams_set_code(struct streams *streams, pid_t pid, const struct stream_code *code, size_t count,
                     struct error *err);

/* The locks of the C library in `path` are seen in a process, without those of the functions `missed` (NULL:
 * none). */
int streams_set_sync_library(struct streams *streams, pid_t pid, const char *path, const char *missed,
                             struct error *err);

/* Translates one record; a wire_handler whose context is the streams. What happens to processes it takes note
 * of as far as threads and their streams go: the reader of the records brings probes to a new program
 * (streams_set_program, streams_set_code), and acts on WIRE_LIBRARIES, WIRE_OVER_BUDGET, WIRE_REWRITE,
 * WIRE_RIGHTS and those of inline probes, which are nothing here. On failure streams_error() says more. */
int streams_handle(void *streams, const void *record, size_t size);
const struct error *streams_error(const struct streams *streams);

/* The live processes with threads of which it is unknown which of their innermost calls are open. The caller
 * frees them. -ENOMEM. */
int streams_uncertain_processes(const struct streams *streams, pid_t **ret_pids, size_t *ret_count);

/* Looks for watched calls that have been open for too long by `ns` (CLOCK_MONOTONIC). */
void streams_check_watched(struct streams *streams, uint64_t ns);

/* Translates calls that a thread's inline probes have recorded, one after the other, all of the same tick:
 * they came after `ns` (CLOCK_MONOTONIC) and before the next tick. -ELOOP: more calls are open than a stack
 * has room for; none has been taken. On other failures streams_error() says more. */
int streams_inline_calls(struct streams *streams, uint32_t tid, const struct agent_record *records,
                         size_t count, uint64_t ns);

/* Something of a process is not recorded from here on, or may be wrong: `what`, a clause, is kept as a loss,
 * with the names of the process before it. */
int streams_process_loss(struct streams *streams, pid_t pid, const char *what);

/* Calls of a thread that did not fit into the buffers of its inline probes, at this place. */
int streams_inline_lost(struct streams *streams, uint32_t tid, uint64_t calls);

/* Some calls of the function are not recorded, from here on: one that comes out of its code says nothing
 * about which of its recorded calls are open. -ENOMEM. */
int streams_function_missed(struct streams *streams, uint32_t function);

/* The open calls of functions `of[...]` (by number, as many as there are; all threads) will not be seen to
 * return. */
int streams_returns_unseen(struct streams *streams, const bool *of, size_t count, struct error *err);

/* What the live processes have used of CPU time, all together. */
uint64_t streams_cpu_ns(const struct streams *streams);

/* The process that a thread belongs to; 0: not known. */
pid_t streams_process_of(struct streams *streams, uint32_t tid);

/* At the end of a recording, for the threads that live on: stores what each has lost and not reported, and
 * whether its open calls are known to be open, where `stacks` can tell (NULL: it cannot). */
int streams_resolve(struct streams *streams, struct live_stacks *stacks, struct error *err);

/* Marks the images of all live processes (traced_image.in_use). */
void streams_mark_images(const struct streams *streams);

/* Processes that have not ended. */
size_t streams_live_processes(const struct streams *streams);

/* The ids of those, in the order of their beginning, in memory from malloc. */
int streams_processes(const struct streams *streams, pid_t **ret_pids, size_t *ret_count);

struct stream_counts {
    uint64_t stored_threads; /* with at least one event */
    uint64_t
        unmatched_returns; /* of calls from before the recording or from before a fork: seen, not stored */
    uint64_t strays;       /* calls of threads that no life-cycle record has announced: lost */
};
struct stream_counts streams_counts(const struct streams *streams);

/* CLOCK_MONOTONIC as the store's CLOCK_REALTIME. */
uint64_t streams_realtime(const struct streams *streams, uint64_t monotonic_ns);

#endif
