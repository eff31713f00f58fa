/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the goroutines of one process are doing, at any moment of their sequence of events: who is there, in
 * which operation, waiting for what, holding which locks. Events are fed one by one, live or from a store;
 * memory goes with the goroutines that live (an ended one leaves a few words in the tree) and with the
 * objects that somebody holds or waits for.
 *
 * An operation that has begun is over when its goroutine begins another one that is no part of it, ends, or
 * is known to have succeeded at once. So the last operation of a goroutine that was let continue but has not
 * done anything since counts as over only if the goroutine has run since; if it then stops again for the same
 * reason (another one was faster to the lock), it is inside again.
 *
 * Locks: a lock is held from the end of the operation that takes it. One that does not succeed at once and
 * does not stop either counts as taken as soon as nobody else holds the lock. Whoever unlocks a lock of
 * somebody else's takes it from that one.
 *
 * Missing events (GO_EVENT_LOST): the state of every goroutine is unknown until something of it is seen
 * again, and so is who holds which lock and the counters of wait groups. Operations that were not over stay
 * listed, as the last that is known.
 */
#ifndef TRACECTL_ANALYZER_GO_REPLAY_H
#define TRACECTL_ANALYZER_GO_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyzer/locks/lock_order.h"
#include "store/streams/go_events.h"

struct go_replay;

enum go_state {
    GO_STATE_UNKNOWN, /* it was there before the recording, or events are missing */
    GO_STATE_RUNNABLE,
    GO_STATE_RUNNING, /* or in a system call */
    GO_STATE_BLOCKED,
    GO_STATE_ENDED,
};

/* What a goroutine waits for, by the runtime's word for it. */
enum go_wait {
    GO_WAIT_OTHER, /* the runtime's own: garbage collection, a stopped world; or a word not known here */
    GO_WAIT_CHAN,  /* a send or a receive */
    GO_WAIT_SELECT,
    GO_WAIT_FOREVER,   /* select {}, or a nil channel */
    GO_WAIT_LOCK,      /* Mutex or RWMutex */
    GO_WAIT_SEMAPHORE, /* a lock or a wait group: old versions do not tell them apart */
    GO_WAIT_GROUP,
    GO_WAIT_COND,
    GO_WAIT_SLEEP,
    GO_WAIT_NETWORK,
    GO_WAIT_SYSTEM, /* goroutines of the runtime when they have nothing to do */
};

/* Of a name in go_program.wait_reasons; NULL: GO_WAIT_OTHER. */
enum go_wait go_wait_of(const char *reason);
/* Whether only another goroutine of the program can end such a wait. */
bool go_wait_on_others(enum go_wait wait);
/* Whether a goroutine that is in this operation (enum go_op) may stop for this. */
bool go_operation_waits(unsigned operation, enum go_wait wait);

/* An operation of a goroutine. */
struct go_action {
    uint64_t goroutine;
    uint64_t object;
    int64_t value; /* as in GO_EVENT_OPERATE */
    uint64_t ns;   /* when it began */
    uint32_t site;
    uint8_t operation, flags; /* enum go_op, enum go_event_flags */
    bool blocked;             /* it had to wait */
    bool finished;            /* false: its end is not known, or the goroutine is still inside */
    bool acquired;            /* of a lock: the goroutine has got it */
    bool has_result;
    int64_t result;    /* GO_EVENT_RESULT */
    unsigned woken;    /* goroutines that it let continue */
    uint64_t woken_by; /* who let it continue last; 0: nobody, or the runtime */
    struct go_select_case {
        uint64_t object;
        bool send;
    } * cases; /* of a select, by number */
    size_t case_count;
};

struct go_goroutine {
    uint64_t goroutine, parent; /* goids; parent 0: not known */
    uint32_t created_at;        /* site, 0: not known */
    uint32_t function;          /* function_id that it began with, 0: not known */
    uint32_t test;              /* function_id of the test that it runs itself; 0: none */
    enum go_state state;
    bool system;       /* of the runtime: its function is in package runtime, and it is not the main one */
    uint64_t since_ns; /* of the state */
    uint64_t created_ns;
    uint64_t born;                   /* counts those met; a parent's is less */
    int64_t wait_reason;             /* of GO_STATE_BLOCKED; of GO_STATE_UNKNOWN the last, -1: none */
    enum go_wait wait;               /* the same as a kind */
    const struct go_action *actions; /* the operations that it is in, the outermost first */
    size_t action_count;
    const struct lock_hold *held; /* the locks that it holds */
    size_t held_count;
};

struct go_replay_options {
    /* Whether a function (function_id) belongs to the runtime itself: goroutines that begin there are its
     * own. NULL: none does. */
    bool (*is_runtime)(void *context, uint32_t function);
    /* Whether a timer that was set at `site` is not the program's: the alarm of package testing. NULL: none.
     */
    bool (*ignores_timer)(void *context, uint32_t site);
    /* The program's wait reasons, by number; they must live as long as the replay. Without them every stop is
     * taken for a part of the operation that the goroutine is in. */
    char *const *wait_reasons;
    size_t wait_reason_count;
    /* Goroutines that have ended are forgotten, but for the last of those that living ones descend from, so
     * that memory stays bounded in a process that runs for long. */
    bool forget_ended;
    /* An operation is over, or will not be any more; called once for each, in the order in which they end. */
    int (*on_action)(void *context, const struct go_goroutine *goroutine, const struct go_action *action);
    void *context;
};

int go_replay_new(const struct go_replay_options *options, struct go_replay **ret_replay);
void go_replay_free(struct go_replay *replay);

/* 0, -ENOMEM, or what a callback returned. */
int go_replay_event(struct go_replay *replay, const struct process_event *event);

/* The sequence is over: reports the operations that goroutines are still in, as not finished unless they are
 * of a kind that never waits. The state stays what it is. */
int go_replay_end(struct go_replay *replay);

/* The goroutine, NULL: it was never seen. What is returned is valid until the next event. */
const struct go_goroutine *go_replay_goroutine(const struct go_replay *replay, uint64_t goroutine);

/* The one that made it, NULL: not known, or not in the table. Whatever the events say, who goes from parent
 * to parent comes to an end: two that claim to have made each other have no common line. */
const struct go_goroutine *go_replay_parent(const struct go_replay *replay,
                                            const struct go_goroutine *goroutine);

/* Calls `visit` for every goroutine seen, by goid, until it returns other than 0, which is returned. */
int go_replay_each(struct go_replay *replay, int (*visit)(void *context, const struct go_goroutine *),
                   void *context);

/* Who holds a lock: up to `capacity` goroutines; their number. */
size_t go_replay_holders(const struct go_replay *replay, uint64_t object, uint64_t *ret_goroutines,
                         size_t capacity);

/* Who used an object: the last few that did, the ended ones included. */
struct go_user {
    uint64_t goroutine;
    uint64_t operations; /* the enum go_op that it used it with, as bits: 1 << GO_OP_CHAN_SEND */
    uint64_t ns;         /* of the last one */
    uint32_t site;
    uint8_t operation; /* the last one; what a select offers counts as send or receive */
    int64_t added;     /* of a wait group: what it has added, less what it has taken */
};

enum { GO_OBJECT_USERS = 8 };

struct go_object {
    uint64_t object;
    struct go_user users[GO_OBJECT_USERS]; /* the last first */
    size_t user_count;
    bool more_users;  /* there were others before */
    bool from_start;  /* it was seen being made (channels): all its users are known, but for `more_users` */
    uint32_t made_at; /* site; 0: not known */
    bool closed;
    bool signals; /* package os/signal sends to it */
    bool counter_known;
    int64_t counter; /* of a wait group */
};

/* NULL: never used, or forgotten: of objects that nobody holds or waits for, only the last hundred thousand
 * are kept. Valid until the next event. */
const struct go_object *go_replay_object(const struct go_replay *replay, uint64_t object);

/* A timer whose end is this much overdue has been missed: events were lost, or an older recording does not
 * tell when timers run. */
#define GO_TIMER_LATE_NS 30000000000u

/* A timer that could let somebody continue: it was set, and has neither been stopped, nor run with an effect
 * that was seen. That it is overdue means nothing: the runtime may be late, and so may tracectl have made it.
 */
struct go_timer {
    uint64_t due_ns;    /* of one that repeats the next time */
    uint64_t channel;   /* that it sends on; 0: it does something else, or nobody knows */
    uint32_t site;      /* where it was set; 0: not known */
    bool runs_function; /* in a goroutine of its own: it may do anything */
};
/* Calls `visit` for each until it returns other than 0, which is returned. */
int go_replay_each_timer(const struct go_replay *replay, int (*visit)(void *context, const struct go_timer *),
                         void *context);

/* When the first of them is due that is worth waiting for: where it sends on a channel somebody waits there,
 * and if the process is ending it was set before that, and has not been run since: a goroutine that sets one
 * timer after the other would never be done. It may be overdue. 0: none. */
uint64_t go_replay_next_timer(const struct go_replay *replay);

struct go_replay_totals {
    uint64_t events, lost;
    uint64_t created, ended;
    uint64_t application;   /* goroutines of the program's own that have not ended */
    uint64_t runnable;      /* of these: running, able to, or not known */
    uint64_t outside;       /* of these: waiting for what is not another goroutine (go_wait_on_others) */
    uint64_t last_ns;       /* of the last event */
    uint64_t idle_since_ns; /* since when `runnable` is 0; 0: it is not */
    bool exited;            /* GO_EVENT_EXIT was seen */
    int64_t exit_status;
    uint64_t exit_goroutine, fatal_goroutine; /* who did; 0: the runtime */
    enum go_fatal fatal;                      /* with has_fatal */
    bool has_fatal;
};
struct go_replay_totals go_replay_totals(const struct go_replay *replay);

#endif
