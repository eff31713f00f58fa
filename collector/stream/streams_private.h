/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to collector/stream/: what the parts of the translator share. */
#ifndef TRACECTL_COLLECTOR_STREAM_STREAMS_PRIVATE_H
#define TRACECTL_COLLECTOR_STREAM_STREAMS_PRIVATE_H

#include "base/error.h"
#include "collector/process/labels.h"
#include "collector/stream/registry.h"
#include "collector/stream/streams.h"

struct wire_exec;
struct wire_exit;
struct wire_fork;

struct streams {
    struct stream_options options;
    struct image_table *images;
    struct trace_writer *writer;
    uint64_t to_realtime_ns; /* added to CLOCK_MONOTONIC */
    struct registry registry;
    struct labels labels;
    uint64_t serials;               /* given to processes so far */
    struct sync_channels *channels; /* NULL: none yet */
    bool *missed;                   /* by function: some calls were not seen */
    size_t missed_count, missed_capacity;
    struct stream_counts counts;
    struct error error;
};

/* The one function of which is known that it never returns, NO_FUNCTION when it is not. */
static inline uint32_t streams_entry_function(const struct traced_process *process)
{
    return process->image ? process->image->entry_function : NO_FUNCTION;
}

/* As `returns`: some of the `calls` that were lost are returns, it is unknown how many. */
#define STREAM_LOSS_MIXED UINT64_MAX

/* Appends returns, or a loss, to a thread's stream. On failure streams->error is filled. */
int streams_write_returns(struct streams *streams, struct thread_writer *writer, size_t count);
int streams_write_loss(struct streams *streams, struct traced_thread *thread, uint64_t ns, uint64_t calls,
                       uint64_t returns);

/* The thread's writer, made when it is first asked for: NULL on failure, streams->error is filled. */
struct thread_writer *streams_thread_writer(struct streams *streams, struct traced_thread *thread);

/* Where a call returns to, as the store knows the place; 0: in no image, such as code made at run time, or
 * the kernel's trampoline of a return probe. */
int streams_site(struct streams *streams, const struct traced_process *process, uint64_t return_address,
                 uint32_t *ret_site_id);
/* A call that has come, and where it came from: 0 when that is not known. `ret_step` (or NULL): what it was
 * to the thread's stream. */
int streams_write_call(struct streams *streams, struct traced_thread *thread,
                       const struct call_evidence *call, uint64_t return_address, uint64_t ns,
                       struct thread_step *ret_step);

/* `closed` calls of the thread have returned, the last of them at `ns` (0: it is not told), the others unseen. */
int streams_write_seen_return(struct streams *streams, struct traced_thread *thread, size_t closed,
                              uint64_t ns);

/* Exits of inline probes (inline_exits.c): takes the first of the records, as far as they are such, all at
 * `ns`; *ret_taken: how many. */
int streams_write_exits(struct streams *streams, struct traced_thread *thread,
                        const struct agent_record *records, size_t count, uint64_t ns, size_t *ret_taken);

/* Whether functions of the process' program have such. */
bool streams_sees_exits(const struct traced_process *process);

/* Whether something with this stack pointer happens on the alternate signal stack that a handler of the
 * thread was entered on last. */
bool streams_is_on_signal_stack(const struct traced_thread *thread, uint64_t sp);

/* Whether an event that happened at `ns` is told with its time. */
bool streams_wants_anchor(const struct streams *streams, const struct traced_thread *thread, uint64_t ns);

/* Whether all calls of the function have been seen. */
static inline bool streams_sees_all(const struct streams *streams, uint32_t function)
{
    return function >= streams->missed_count || !streams->missed[function];
}

/* Which function the call came out of, CALL_STACK_NO_CALLER where that is not certain. */
uint32_t streams_caller_of(const struct streams *streams, const struct traced_process *process,
                           uint32_t function, uint64_t return_address);

/* How deep the frame of a caller that is not probed is at the call that returns to this address
 * (call_depth.h); 0: not known. */
uint64_t streams_caller_depth(const struct traced_process *process, uint64_t return_address);

/* A process becomes known and gets its number. NULL on failure: streams->error is filled. */
struct traced_process *streams_new_process(struct streams *streams, pid_t pid, int rank, uint64_t started_ns);

/* Enters the process into the store, once, behind its ancestors. On failure streams->error is filled. */
int streams_store_process(struct streams *streams, struct traced_process *process);

/* What the kernel side tells of a process's life. On failure streams->error is filled. */
int streams_fork(struct streams *streams, const struct wire_fork *record);
int streams_exec(struct streams *streams, const struct wire_exec *record);
int streams_exit(struct streams *streams, const struct wire_exit *record);

/* Stores what the thread has lost and not told, and whether its open calls are known to be open. */
int streams_resolve_thread(struct streams *streams, struct traced_thread *thread, uint64_t ns);

#endif
