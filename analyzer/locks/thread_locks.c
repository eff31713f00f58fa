/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/locks/thread_locks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"

/* A lock that a thread has asked for, or a condition's mutex that it has given up. */
struct wanted {
    uint64_t object, ns; /* object 0: none */
    uint32_t site;
    bool shared;
};

struct lock_thread {
    uint32_t thread;
    struct lock_hold *held;
    size_t held_count, held_capacity;
    struct wanted wants;   /* it gets it, or has it, when it does the next thing */
    uint32_t tried_at;     /* the site of the last attempt */
    struct wanted waiting; /* gets it when the wait for the condition ends */
    UT_hash_handle hh;
};

struct thread_locks {
    struct lock_order *order;
    struct lock_thread *threads;
    bool lost;
};

static void forget_threads(struct thread_locks *locks)
{
    struct lock_thread *thread = NULL, *next = NULL;

    HASH_ITER (hh, locks->threads, thread, next) {
        HASH_DEL(locks->threads, thread);
        free(thread->held);
        free(thread);
    }
}

static void release(struct thread_locks *locks)
{
    forget_threads(locks);
    lock_order_free(locks->order);
}

/* NULL: no memory. */
static struct lock_thread *thread_of(struct thread_locks *locks, uint32_t number)
{
    struct lock_thread *thread = NULL;

    HASH_FIND(hh, locks->threads, &number, sizeof(number), thread);
    if (thread)
        return thread;
    thread = calloc(1, sizeof(*thread));
    if (!thread)
        return NULL;
    thread->thread = number;
    HASH_ADD(hh, locks->threads, thread, sizeof(thread->thread), thread);
    return thread;
}

/* ------------------------------------------------------------------------------------------ holding */

static int hold(struct lock_thread *thread, const struct wanted *lock)
{
    if (array_reserve(&thread->held, &thread->held_capacity, thread->held_count + 1))
        return -ENOMEM;
    thread->held[thread->held_count++] = (struct lock_hold){
        .object = lock->object, .site = lock->site, .ns = lock->ns, .shared = lock->shared};
    return 0;
}

/* Gives up what was taken last of it; false: it was taken before the recording. */
static bool give_up(struct lock_thread *thread, uint64_t object)
{
    for (size_t i = thread->held_count; i-- > 0;) {
        if (thread->held[i].object != object)
            continue;
        memmove(thread->held + i, thread->held + i + 1, (thread->held_count - i - 1) * sizeof(*thread->held));
        thread->held_count--;
        return true;
    }
    return false;
}

/* The thread takes what it wants, or is `stuck` before it. */
static int take(struct thread_locks *locks, struct lock_thread *thread, struct wanted *wanted, bool stuck)
{
    const struct lock_taking taking = {.agent = thread->thread,
                                       .object = wanted->object,
                                       .site = wanted->site,
                                       .shared = wanted->shared,
                                       .stuck = stuck,
                                       .held = thread->held,
                                       .held_count = thread->held_count};
    int r = lock_order_take(locks->order, &taking);

    if (!r && !stuck)
        r = hold(thread, wanted);
    wanted->object = 0;
    return r;
}

/* ------------------------------------------------------------------------------------------ events */

static struct wanted wanted_by(const struct process_event *event, bool shared)
{
    return (struct wanted){.object = event->object, .ns = event->ns, .site = event->site, .shared = shared};
}

/* An attempt that may fail; EOWNERDEAD has the lock, too. */
static int tried(struct lock_thread *thread, const struct process_event *event, bool shared)
{
    struct wanted lock = wanted_by(event, shared);

    if (event->phase == SYNC_BEGIN)
        thread->tried_at = event->site;
    lock.site = thread->tried_at;
    return event->phase == SYNC_END && (!event->result || event->result == EOWNERDEAD) ? hold(thread, &lock)
                                                                                       : 0;
}

static int condition(struct thread_locks *locks, struct lock_thread *thread,
                     const struct process_event *event)
{
    if (event->phase == SYNC_BEGIN) {
        thread->waiting = (struct wanted){.object = event->other, .ns = event->ns, .site = event->site};
        if (!give_up(thread, event->other))
            thread->waiting.object = 0;
        return 0;
    }
    return thread->waiting.object ? take(locks, thread, &thread->waiting, false) : 0;
}

/* What has become of the threads. */
static int life(struct thread_locks *locks, struct lock_thread *thread, const struct process_event *event)
{
    switch (event->kind) {
    case SYNC_THREAD_CREATE:
        return lock_order_begin(locks->order, event->other);
    case SYNC_THREAD_END:
        lock_order_end(locks->order, event->thread);
        return 0;
    case SYNC_THREAD_JOIN:
        return event->phase == SYNC_END && !event->result && event->other != SYNC_UNKNOWN_THREAD
                   ? lock_order_join(locks->order, event->other, event->thread)
                   : 0;
    case SYNC_PROCESS_EXEC:
        forget_threads(locks);
        return 0;
    case SYNC_LOST: /* what it holds now nobody knows */
        thread->held_count = 0;
        thread->waiting.object = 0;
        locks->lost = true;
        return 0;
    default:
        return 0;
    }
}

static int add_event(struct thread_locks *locks, const struct process_event *event)
{
    struct lock_thread *thread = thread_of(locks, event->thread);
    int r = 0;

    if (!thread)
        return -ENOMEM;
    lock_order_tick(locks->order);
    if (thread->wants.object && event->kind != SYNC_FUTEX_WAIT && event->kind != SYNC_THREAD_END &&
        event->kind != SYNC_PROCESS_EXIT)
        r = take(locks, thread, &thread->wants, false);
    if (r)
        return r;
    switch (event->kind) {
    case SYNC_MUTEX_LOCK:
    case SYNC_RWLOCK_WRLOCK:
    case SYNC_SPIN_LOCK:
    case SYNC_RWLOCK_RDLOCK:
        thread->wants = wanted_by(event, event->kind == SYNC_RWLOCK_RDLOCK);
        return 0;
    case SYNC_MUTEX_TRYLOCK:
    case SYNC_MUTEX_TIMEDLOCK:
    case SYNC_RWLOCK_TRYWRLOCK:
    case SYNC_RWLOCK_TIMEDWRLOCK:
    case SYNC_SPIN_TRYLOCK:
        return tried(thread, event, false);
    case SYNC_RWLOCK_TRYRDLOCK:
    case SYNC_RWLOCK_TIMEDRDLOCK:
        return tried(thread, event, true);
    case SYNC_MUTEX_UNLOCK:
    case SYNC_RWLOCK_UNLOCK:
    case SYNC_SPIN_UNLOCK:
        give_up(thread, event->object);
        return 0;
    case SYNC_COND_WAIT:
    case SYNC_COND_TIMEDWAIT:
        return condition(locks, thread, event);
    default:
        return life(locks, thread, event);
    }
}

static int find_cycles(struct thread_locks *locks, struct lock_cycle **ret_cycles, size_t *ret_count,
                       bool *ret_complete)
{
    struct lock_thread *thread = NULL, *next = NULL;
    int r = 0;

    HASH_ITER (hh, locks->threads, thread, next)
        if (!r && thread->wants.object)
            r = take(locks, thread, &thread->wants, true);
    *ret_complete = !locks->lost && lock_order_complete(locks->order);
    return r ? r : lock_order_cycles(locks->order, ret_cycles, ret_count);
}

DEFINE_CLEANUP(cleanup_iter, struct process_event_iter *, process_event_iter_free)

int thread_locks_cycles(struct tracestore *store, int64_t process_id, struct lock_cycle **ret_cycles,
                        size_t *ret_count, bool *ret_complete, struct error *err)
{
    CLEANUP(release) struct thread_locks locks = {0};
    CLEANUP(cleanup_iter) struct process_event_iter *iter = NULL;
    struct process_event event;
    int r = lock_order_new(&locks.order);

    if (r)
        return error_no_memory(err), -ENOMEM;
    r = process_event_iter_open(store, PROCESS_STREAM_SYNC, process_id, &iter, err);
    if (r)
        return r;
    while ((r = process_event_iter_next(iter, &event, err)) == 0)
        if (add_event(&locks, &event))
            return error_no_memory(err), -ENOMEM;
    if (r < 0)
        return r;
    return find_cycles(&locks, ret_cycles, ret_count, ret_complete) ? (error_no_memory(err), -ENOMEM) : 0;
}
