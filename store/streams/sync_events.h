/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the threads of a run do to each other (`record --sync`): locks, conditions, semaphores, barriers,
 * creation and joining, messages with the bytes that they are made of, queues, and the calls that take time
 * by themselves, such as input, output and sleeping. One sequence for each process, in the order in which the
 * kernel side saw it. PCatch (Li et al., EuroSys 2018), section 2, says what happens-before is made from it.
 *
 * An operation that may take time has two events, SYNC_BEGIN and SYNC_END; what happens at once has one,
 * SYNC_AT. The end of an operation may be missing: then it is over when its thread has the next event that is
 * no part of it, and if there is none, the thread was still in it when the recording, or the thread, ended.
 * Operations of a thread nest: those on futexes stand inside the locking that needs them, calls inside
 * handlers and sinks.
 *
 * SYNC_MUTEX_LOCK, SYNC_RWLOCK_RDLOCK, SYNC_RWLOCK_WRLOCK and SYNC_SPIN_LOCK have a beginning only: that the
 * thread wants the lock. A second event would double their price. It has the lock when it does the next thing
 * that is no SYNC_FUTEX_WAIT; where it had to wait, such events are in between, and it got the lock when the
 * last of them ended, or a moment later. An unlocking is seen before it happens.
 *
 * SYNC_COND_WAIT gives up the mutex `other` when it begins and has it again when it ends: there are no events
 * of their own for that.
 *
 * Numbers are stored: they are append-only.
 */
#ifndef TRACECTL_STORE_STREAMS_SYNC_EVENTS_H
#define TRACECTL_STORE_STREAMS_SYNC_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/api/tracestore.h"
#include "store/streams/process_events.h"

struct error;

/* Kinds, with their names. O: object, R: result (of the END, where there is one), T: other. Where nothing is
 * said, O is the address of the lock and the like in its process, R is what the function returned: 0 or an
 * error number (positive), and T is 0. A channel is a number of struct sync_channel; a system call's R is
 * negative when it failed. */
#define SYNC_EVENT_KINDS(X) \
    X(1, MUTEX_LOCK, "mutex lock") /* no END */ \
    X(2, MUTEX_TRYLOCK, "mutex trylock") \
    X(3, MUTEX_TIMEDLOCK, "mutex timedlock") \
    X(4, MUTEX_UNLOCK, "mutex unlock")   /* AT */ \
    X(5, RWLOCK_RDLOCK, "rwlock rdlock") /* no END */ \
    X(6, RWLOCK_TRYRDLOCK, "rwlock tryrdlock") \
    X(7, RWLOCK_TIMEDRDLOCK, "rwlock timedrdlock") \
    X(8, RWLOCK_WRLOCK, "rwlock wrlock") /* no END */ \
    X(9, RWLOCK_TRYWRLOCK, "rwlock trywrlock") \
    X(10, RWLOCK_TIMEDWRLOCK, "rwlock timedwrlock") \
    X(11, RWLOCK_UNLOCK, "rwlock unlock") /* AT */ \
    X(12, SPIN_LOCK, "spin lock")         /* no END */ \
    X(13, SPIN_TRYLOCK, "spin trylock") \
    X(14, SPIN_UNLOCK, "spin unlock")       /* AT */ \
    X(15, COND_WAIT, "cond wait")           /* T: the mutex */ \
    X(16, COND_TIMEDWAIT, "cond timedwait") /* T: the mutex */ \
    X(17, COND_SIGNAL, "cond signal")       /* AT */ \
    X(18, COND_BROADCAST, "cond broadcast") /* AT */ \
    X(19, SEM_WAIT, "sem wait")             /* R: 0 or -1 */ \
    X(20, SEM_TRYWAIT, "sem trywait") \
    X(21, SEM_TIMEDWAIT, "sem timedwait") \
    X(22, SEM_POST, "sem post")           /* AT */ \
    X(23, BARRIER_WAIT, "barrier wait")   /* R: 0, or -1 in one of the threads */ \
    X(24, FUTEX_WAIT, "futex wait")       /* O: the word */ \
    X(25, FUTEX_WAKE, "futex wake")       /* AT, when it has returned; R: how many were woken */ \
    X(26, THREAD_CREATE, "thread create") /* AT; T: the new thread */ \
    X(27, THREAD_BEGIN, "thread begin") /* AT; T: its creator; SYNC_UNKNOWN_THREAD: before the recording */ \
    X(28, THREAD_END, "thread end")     /* AT */ \
    X(29, THREAD_JOIN, "thread join")   /* T: the thread; SYNC_UNKNOWN_THREAD: not known */ \
    X(30, PROCESS_FORK, "fork")         /* AT; T: pid of the child */ \
    X(31, PROCESS_BEGIN, "process begin") /* AT; T: pid of the parent */ \
    X(32, PROCESS_EXIT, "process exit")   /* AT; R: status, as processes.exit_status */ \
    X(33, PROCESS_WAIT, "wait")           /* R: pid of the child that has ended */ \
    X(34, SEND, "send")       /* O: channel; R: bytes; T, at the END: position of the first of them */ \
    X(35, RECEIVE, "receive") /* the same */ \
    X(36, ACCEPT, "accept")   /* O: channel that listens, at the END the new connection's */ \
    X(37, CONNECT, "connect") /* O: channel */ \
    X(38, READ, "read")       /* O: channel of a file; R: bytes */ \
    X(39, WRITE, "write")     /* the same */ \
    X(40, IO, "io")     /* another call that may take time; T: number of the system call; O: channel or 0 */ \
    X(41, POLL, "poll") /* waits until something can be read...; R: how many can */ \
    X(42, SLEEP, "sleep")     /* T: ns that it asked for */ \
    X(43, ENQUEUE, "enqueue") /* AT; O: the declared argument; T: number of the declared function */ \
    X(44, DEQUEUE, "dequeue") /* the same */ \
    X(45, HANDLER, "handler") /* O: the declared argument, or 0; T: number of the declared function; R: 0 */ \
    X(46, SINK, "sink")       /* T: number of the declared function; R: 0 */ \
    X(47, LOST, "lost")       /* AT; R: so many events of this thread are missing here */ \
    X(48, PROCESS_EXEC, "exec") /* AT; continues with another program, without its locks and threads */

enum sync_event_kind {
#define SYNC_EVENT_NUMBER(number, name, text) SYNC_##name = number,
    SYNC_EVENT_KINDS(SYNC_EVENT_NUMBER)
#undef SYNC_EVENT_NUMBER
        SYNC_KINDS,
};

enum sync_phase { SYNC_AT, SYNC_BEGIN, SYNC_END };

#define SYNC_UNKNOWN_THREAD UINT64_MAX /* `other` where it is a thread that is not known */

/* "mutex lock"..., "at", "begin", "end"; "?" for what is not known. */
const char *sync_event_kind_name(unsigned kind);
const char *sync_phase_name(unsigned phase);

/* ------------------------------------------------------------------------------------------ channels */

/*
 * What is read from and written to: one end of a connection, or a file. Two ends belong to each other when
 * they have the same kind and each one's `local` is the other's `remote`, whichever processes and runs they
 * are of; addresses of the loopback interface and unix sockets are only equal inside one network namespace.
 * Where an address was used again for another connection, their times tell them apart.
 *
 * Positions count the bytes of one direction, and are the same at both ends: the sender's and the receiver's
 * [other, other + result) say which bytes a receive got from which send. Those of TCP are its own sequence
 * numbers, continued beyond 32 bits by each end for itself: compare the low 32 bits where an end may have
 * been seen 4 GiB later than the other one. Those of pipes and unix sockets are counted from where the
 * recording began, so they agree only when `from_start` says so of both ends.
 */
enum sync_channel_kind {
    SYNC_CHANNEL_FILE = 1,
    SYNC_CHANNEL_TCP,
    SYNC_CHANNEL_UDP, /* one for each peer of a socket that is not connected; no positions: 0 */
    SYNC_CHANNEL_UNIX,
    SYNC_CHANNEL_PIPE,
    SYNC_CHANNEL_OTHER, /* another socket, an eventfd... */
    SYNC_CHANNEL_KINDS,
};

struct sync_channel {
    uint64_t channel; /* from 1 in each run; in all processes of the run the same */
    char *name;       /* of a file: its path; "" where it is not known */
    char *local;      /* "127.0.0.1:8080", "[::1]:8080", "unix:INODE", "pipe:INODE:write", ... */
    char *remote;     /* the other end's `local`, "" where there is none or it is not known */
    uint64_t device;  /* as stat(2) gives it; and the inode: together the identity in this run */
    uint64_t inode;
    uint64_t net; /* inode of the network namespace, 0: no socket */
    enum sync_channel_kind kind;
    bool from_start;
};

/* ------------------------------------------------------------------------------------------ writing */

/* A process of the run whose doing is recorded. */
struct sync_process_description {
    int64_t process_id;
    uint64_t from_ns; /* locks may be held, and threads be there, from before */
    bool from_start;  /* nothing is from before */
};

/* Gives the writer of the process's PROCESS_STREAM_SYNC. A process that is known keeps its sequence. */
int trace_writer_sync_process(struct trace_writer *writer, const struct sync_process_description *process,
                              struct process_writer **ret_sync, struct error *err);

/* That locks, conditions... of the C library at `library` are seen in the process; NULL: they are not, for
 * the reason `why`, and futexes are all that is known of them. Told at most once for each program. */
int trace_writer_sync_library(struct trace_writer *writer, int64_t process_id, const char *library,
                              const char *why, struct error *err);

/* Enters a channel, whose number the callee chooses; strings are copied. A later call with the same `channel`
 * says it anew, as when a socket has been connected: then the number stays. 0: a new one. */
int trace_writer_sync_channel(struct trace_writer *writer, const struct sync_channel *channel,
                              uint64_t *ret_channel, struct error *err);

/* Enters a declared function under its number. `role`: "sink", "handler", "enqueue", "dequeue". */
int trace_writer_sync_function(struct trace_writer *writer, uint64_t number, const char *role,
                               const char *name, struct error *err);

/* ------------------------------------------------------------------------------------------ reading */

struct sync_process {
    int64_t process_id, run_id;
    char *label; /* P of P.T */
    char *exe;
    int64_t pid;
    char *library; /* whose locks are seen, NULL: none's, see why_not */
    char *why_not; /* NULL where there is a library */
    uint64_t from_ns, events;
    bool from_start;
};

/* The processes of a run that have sync events, by process_id. A run without has none. Free with
 * sync_processes_free. */
int sync_processes(struct tracestore *store, int64_t run_id, struct sync_process **ret_processes,
                   size_t *ret_count, struct error *err);
void sync_processes_free(struct sync_process *processes, size_t count);

/* The channels of a run, by number. Free with sync_channels_free. */
int sync_channels(struct tracestore *store, int64_t run_id, struct sync_channel **ret_channels,
                  size_t *ret_count, struct error *err);
void sync_channels_free(struct sync_channel *channels, size_t count);

/* Where a function was called from: a row of call_sites, in words; "" and 0 for what is not known. */
struct sync_site {
    char *function, *file;
    int line;
};
int sync_site(struct tracestore *store, uint32_t site_id, struct sync_site *ret_site, struct error *err);
void sync_site_release(struct sync_site *site);

struct sync_function {
    uint64_t number;
    char *role, *name;
};
/* The declared functions of a run, by number. Free with sync_functions_free. */
int sync_functions(struct tracestore *store, int64_t run_id, struct sync_function **ret_functions,
                   size_t *ret_count, struct error *err);
void sync_functions_free(struct sync_function *functions, size_t count);

#endif
