/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The replay's own structures, shared by its files: replay.c (events, states), replay_goroutines.c (the table
 * of goroutines), replay_actions.c (the operations that a goroutine is in), replay_objects.c (holders and
 * users of objects), replay_timers.c, replay_wait.c (wait reasons).
 *
 * Functions that return int return 0, -ENOMEM, or what a callback returned.
 */
#ifndef TRACECTL_ANALYZER_GO_REPLAY_STATE_H
#define TRACECTL_ANALYZER_GO_REPLAY_STATE_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "analyzer/go/replay.h"

struct goroutine {
    struct go_goroutine public; /* first: what is handed out is this */
    struct go_action *actions;
    struct lock_hold *held;
    size_t action_capacity, held_capacity;
    uint32_t tid;      /* that it ran on last */
    uint32_t children; /* in the table */
    UT_hash_handle hh;
};

struct holder {
    uint64_t goroutine;
    bool shared;
};

struct object {
    struct go_object public;
    struct holder *holders;
    size_t holder_count, holder_capacity;
    uint64_t pending;   /* the last goroutine that wanted the lock and has neither got it nor stopped */
    uint64_t last_used; /* the replay's count of events */
    bool kept;          /* somebody waits for it: only within objects_sweep() */
    UT_hash_handle hh;
};

struct timer {
    uint64_t timer, due_ns, period_ns;
    uint64_t set_ns;
    uint64_t ran_ns;  /* when it was run last, 0: not since it was set */
    uint64_t channel; /* that it sends on; 0: none, or not known */
    uint32_t site;
    uint32_t tid; /* that runs it, within `running` */
    bool runs_function;
    bool pending; /* or running: it may still do something */
    struct timer *next_running;
    UT_hash_handle hh;
};

struct runner {
    uint32_t tid;
    uint64_t goroutine;
    UT_hash_handle hh;
};

struct go_replay {
    struct go_replay_options options;
    struct goroutine *goroutines;
    struct object *objects;
    struct timer *timers;
    struct runner *runners;
    size_t sweep_objects_at, sweep_timers_at;
    struct go_replay_totals totals;
    uint64_t births;          /* goroutines that were made or met */
    enum go_detail detail;    /* what GO_EVENT_DETAIL said last */
    struct timer *last_timer; /* set by the last event; NULL: that was another one */
    struct timer *running;    /* timers that have been run, but whose effect has not been seen yet */
    uint64_t exit_ns;         /* when the process began to end; 0: it has not */
};

/* -------------------------------------------------------------------- replay_goroutines.c */

struct goroutine *goroutine_find(const struct go_replay *replay, uint64_t goroutine);
/* Made with GO_STATE_UNKNOWN when it is new. */
int goroutine_get(struct go_replay *replay, uint64_t goroutine, struct goroutine **ret_goroutine);
/* A new state, at the time of the last event; keeps the totals. */
void goroutine_set_state(struct go_replay *replay, struct goroutine *goroutine, enum go_state state,
                         enum go_wait wait);
/* It is one of the runtime's own. */
void goroutine_set_system(struct go_replay *replay, struct goroutine *goroutine);
/* It runs on `tid` (0: not known); whoever was taken to run there does not. */
int goroutine_set_running(struct go_replay *replay, struct goroutine *goroutine, uint32_t tid);
void goroutine_set_parent(struct go_replay *replay, struct goroutine *goroutine, uint64_t parent);
/* With the option forget_ended: takes ended goroutines out of the table that nobody needs. */
void goroutine_forget(struct go_replay *replay, struct goroutine *ended);
void goroutines_free(struct go_replay *replay);

/* -------------------------------------------------------------------- replay_actions.c */

/* An operation begins (GO_EVENT_OPERATE). */
int actions_begin(struct go_replay *replay, struct goroutine *goroutine, const struct process_event *event);
int actions_add_case(struct go_replay *replay, struct goroutine *goroutine,
                     const struct process_event *event);
int actions_result(struct go_replay *replay, struct goroutine *goroutine, int64_t result);
/* The goroutine stops for `wait`. */
int actions_block(struct go_replay *replay, struct goroutine *goroutine, enum go_wait wait);
/* It runs again after it had stopped. */
int actions_resume(struct go_replay *replay, struct goroutine *goroutine);
/* `waker` lets `woken` continue. */
void actions_wake(struct goroutine *waker, struct goroutine *woken);
/* It panics: what can panic may not have been done. */
int actions_panic(struct go_replay *replay, struct goroutine *goroutine);
/* All its operations are over; `known`: its next event says so. */
int actions_end(struct go_replay *replay, struct goroutine *goroutine, bool known);
/* Tells on_action of the operations that it is in. */
int actions_report(const struct go_replay *replay, const struct goroutine *goroutine);
/* What the operation that it is in can wait for: where the runtime's word is not known. */
enum go_wait actions_wait(const struct goroutine *goroutine);
void actions_release(struct goroutine *goroutine);

/* -------------------------------------------------------------------- replay_objects.c */

/* `goroutine` uses an object with `operation`; `value` as in GO_EVENT_OPERATE. */
int object_use(struct go_replay *replay, uint64_t object, enum go_op operation, uint64_t goroutine,
               uint32_t site, int64_t value);
/* Package os/signal sends to this channel from now on. */
int object_signals(struct go_replay *replay, uint64_t object);
/* Takes a lock for an operation, if nobody else has it or `surely`; otherwise remembers who wants it. */
int object_lock(struct go_replay *replay, struct goroutine *goroutine, struct go_action *action, bool surely);
/* The operation did not take the lock after all. */
void object_unlock_undone(struct go_replay *replay, struct goroutine *goroutine, struct go_action *action);
/* An unlocking operation. */
int object_unlock(struct go_replay *replay, struct goroutine *goroutine, uint64_t object, bool shared);
/* Nothing is known any more of who holds which lock. */
void objects_lost(struct go_replay *replay);
void objects_free(struct go_replay *replay);

/* -------------------------------------------------------------------- replay_timers.c */

int timer_set(struct go_replay *replay, const struct process_event *event);
void timer_channel(struct go_replay *replay, uint64_t channel);
void timer_stop(struct go_replay *replay, uint64_t timer);
/* The runtime does on thread `tid` what the timer is for. */
void timer_run(struct go_replay *replay, uint64_t timer, uint32_t tid);
/* An event of this thread comes: what the timer that it ran had for an effect is known then. */
void timers_settle(struct go_replay *replay, uint32_t tid);
/* A receive that began at `since_ns` has got something from a channel: what a timer sent there that was set
 * before and has run. One that was set since may still be about to send: its receiver may come to its next
 * receive while the timer's thread waits for a processor. */
void timers_received(struct go_replay *replay, uint64_t channel, uint64_t since_ns);
void timers_free(struct go_replay *replay);

#endif
