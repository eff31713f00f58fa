/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The sync events of a run (store/streams/sync_events.h) in one sequence over all processes, as the analysis
 * of cascades wants them: an event an operation.
 *
 * Of operations with a beginning and an end one event is kept. What others can wait for (a send, a write) is
 * where it began, so that it stands before what it causes; what waits (a receive, a join, a semaphore) is
 * where it ended, and only when it did; both carry the result. A wait on a condition and one on a barrier
 * keep both, because they are two things: to give up the mutex, to arrive; and to have it again, to continue. So
 * do handlers and sinks. Tries that failed and futexes are left out.
 */
#ifndef TRACECTL_ANALYZER_CASCADE_TRACE_H
#define TRACECTL_ANALYZER_CASCADE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "store/streams/sync_events.h"

#define TRACE_NONE UINT32_MAX

/* `other` of a handler that was recognised, not declared: this and its function_id. */
#define TRACE_RECOGNISED (UINT64_C(1) << 32)

struct trace_process {
    char *label, *exe;
    int64_t process_id, pid;
    bool from_start;
    bool locks; /* false: its locks are not seen */
};

struct trace_thread {
    uint32_t process;
    uint32_t number;  /* T of P.T */
    uint32_t *events; /* its events, in order */
    size_t count, capacity;
    bool incomplete; /* events are missing */
    uint32_t open;   /* the event of an operation whose end is still to come */
};

struct cascade_trace {
    struct process_event
        *events; /* `thread` is a number of `threads`, others' numbers (T) stay as they are */
    size_t count, capacity;
    struct trace_process *processes;
    size_t process_count, process_capacity;
    struct trace_thread *threads;
    size_t thread_count, thread_capacity;
    struct sync_channel *channels; /* by number; freed with sync_channels_free */
    size_t channel_count;
    struct sync_function *functions; /* declared; freed with sync_functions_free */
    size_t function_count;
    uint64_t lost; /* events known to be missing */
    struct trace_thread_key *by_number;
};

/* A trace of zeros is empty. Release gives its memory back and leaves it empty. */
void cascade_trace_release(struct cascade_trace *trace);

/* Adds a process, whose strings are copied. -ENOMEM. */
int cascade_trace_process(struct cascade_trace *trace, const struct trace_process *process,
                          uint32_t *ret_process);

/* Appends the next event of a process; of all processes, they come by time. -ENOMEM, -EOVERFLOW (2^32). */
int cascade_trace_append(struct cascade_trace *trace, uint32_t process, const struct process_event *event);

/* An event that comes before the event `at` of the trace, or behind its last one. */
struct trace_insertion {
    uint32_t at;
    struct process_event event; /* `thread` is a number of `threads` */
};

/* Puts events in between, which numbers all of them anew; the insertions are sorted, ends first. -ENOMEM,
 * -EOVERFLOW (2^32): then the trace is as it was. */
int cascade_trace_insert(struct cascade_trace *trace, struct trace_insertion *insertions, size_t count);

/* What happened at the same time, and was recorded as one run or as several. */
enum { TRACE_MOST_PARTS = 8 };
struct trace_parts {
    int64_t runs[TRACE_MOST_PARTS];
    size_t count;
};

/* Reads the runs' events. A run without: -ENODATA. Of several runs the processes are labelled "RUN:P", and
 * their channels and declared functions are numbered anew. Release the trace also after a failure. */
int cascade_trace_read(struct cascade_trace *trace, struct tracestore *store, const struct trace_parts *parts,
                       struct error *err);

/* The thread with that number in the process; TRACE_NONE: it has no event. */
uint32_t cascade_trace_thread(const struct cascade_trace *trace, uint32_t process, uint32_t number);

/* "P.T" */
void cascade_trace_label(const struct cascade_trace *trace, uint32_t thread, char *text, size_t size);

/* How many of the thread's events happened before the event `position` of its stream of calls. */
size_t cascade_trace_before(const struct cascade_trace *trace, uint32_t thread, uint64_t position);

/* Where the event is among those of its thread. */
size_t cascade_trace_index(const struct cascade_trace *trace, uint32_t event);

/* Two numbers as the key of a hash table. */
enum { TRACE_KEY_SIZE = 16 };
static inline void trace_key(unsigned char key[TRACE_KEY_SIZE], uint64_t a, uint64_t b)
{
    memcpy(key, &a, sizeof(a));
    memcpy(key + sizeof(a), &b, sizeof(b));
}

/* What an event does to a lock. A wait on a condition gives up its mutex when it begins. */
enum lock_action { LOCK_NOTHING, LOCK_TAKE, LOCK_TAKE_SHARED, LOCK_TRY, LOCK_TRY_SHARED, LOCK_GIVE_UP };
enum lock_action trace_lock_action(const struct process_event *event);
/* The address of the lock that it does it to. */
uint64_t trace_lock(const struct process_event *event);

/* Input, output, sleeping and waiting for others, locks not among them; and of these what does nothing but
 * wait; what reads, and how much it read decides what is done next. */
bool trace_takes_time(const struct process_event *event);
bool trace_only_waits(const struct process_event *event);
bool trace_reads(const struct process_event *event);

#endif
