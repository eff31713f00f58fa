/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Watches Go programs while they are recorded, for `go check` and `go explore`: follows what their goroutines
 * do (analyzer/go/replay.h), holds threads up where the kernel side has chosen to
 * (collector/ptrace/thread_holder.h) until all other goroutines have come as far as they can, and finds out
 * that a program will never end.
 *
 * A program that ends is held at its last step, in the same way: goroutines that were about to run on do so,
 * and are not taken for stuck ones.
 *
 * All but the thread holder's own part is called by the recorder's thread.
 */
#ifndef TRACECTL_COLLECTOR_GO_WATCH_H
#define TRACECTL_COLLECTOR_GO_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "analyzer/go/verdict.h"
#include "collector/go/holds.h"
#include "collector/go/observer.h"

struct error;

struct go_watch;

struct go_watch_options {
    uint64_t patience_ns; /* no goroutine may have run for so long before a program counts as deadlocked */
    uint64_t limit_ns;    /* a process that takes longer is ended; 0: none is */
    uint64_t drain_ns;    /* at most so long a process is held at its end; 0: not at all */
};

enum go_end {
    GO_END_OWN,      /* the process ended on its own, or has not ended */
    GO_END_DEADLOCK, /* it was ended since no goroutine in it could continue */
    GO_END_LIMIT,    /* since it took too long */
};

/* What became of a process. */
struct go_watched {
    int64_t process_id;
    unsigned number; /* P */
    enum go_end end;
    const struct go_verdict *verdict;
    uint64_t events, lost, delays, drained_ns;
};

struct go_watch_observer {
    /* An event that `replay` has just been fed; NULL: not wanted, here and below. */
    int (*event)(void *context, const struct go_process *process, struct go_replay *replay,
                 const struct process_event *event);
    /* An operation that is over, from within the replay. */
    int (*action)(void *context, const struct go_process *process, const struct go_goroutine *goroutine,
                  const struct go_action *action);
    /* A process has ended. What is passed is valid during the call. */
    int (*end)(void *context, const struct go_process *process, const struct go_watched *watched);
    void *context;
};

/* -ENOMEM, or what thread_holder_new says. */
int go_watch_new(const struct go_watch_options *options, const struct go_watch_observer *observer,
                 struct go_watch **ret_watch, struct error *err);

/* Accepts NULL. Threads that are held continue. */
void go_watch_free(struct go_watch *watch);

/* How goroutines of a process that is watched are held up from now on; until then, for GO_HOLD_SHORT_NS at
 * most. */
void go_watch_hold_by(struct go_watch *watch, pid_t pid, const struct go_hold_rule *rule);

/* For stream_options. */
struct go_observer go_watch_observer(struct go_watch *watch);

/* The process that traces (uprobe_backend_set_schedule). */
pid_t go_watch_thread_holder(const struct go_watch *watch);

/* A process that stands still with a new program: its threads can be held from now on. */
int go_watch_seize(struct go_watch *watch, pid_t pid, struct error *err);

/* Readable when a thread has been stopped. */
int go_watch_fd(const struct go_watch *watch);

/* To be called between two looks into the ring, `idle`: the last one found it empty. Lets threads go that
 * have been held for long enough, and ends processes that never will. Returns whether some thread is held, so
 * that the next look should be soon. */
bool go_watch_round(struct go_watch *watch, bool idle);

#endif
