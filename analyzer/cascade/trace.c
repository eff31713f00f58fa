/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/cascade/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <uthash.h>

#include "base/array.h"

struct trace_thread_key {
    uint64_t key; /* process and number */
    uint32_t thread;
    UT_hash_handle hh;
};

void cascade_trace_release(struct cascade_trace *trace)
{
    struct trace_thread_key *key = NULL, *next = NULL;

    HASH_ITER (hh, trace->by_number, key, next) {
        HASH_DEL(trace->by_number, key);
        free(key);
    }
    for (size_t i = 0; i < trace->process_count; i++) {
        free(trace->processes[i].label);
        free(trace->processes[i].exe);
    }
    for (size_t i = 0; i < trace->thread_count; i++)
        free(trace->threads[i].events);
    free(trace->processes);
    free(trace->threads);
    free(trace->events);
    sync_channels_free(trace->channels, trace->channel_count);
    sync_functions_free(trace->functions, trace->function_count);
    *trace = (struct cascade_trace){0};
}

int cascade_trace_process(struct cascade_trace *trace, const struct trace_process *process,
                          uint32_t *ret_process)
{
    struct trace_process copy = *process;

    if (array_reserve(&trace->processes, &trace->process_capacity, trace->process_count + 1) < 0)
        return -ENOMEM;
    copy.label = strdup(process->label);
    copy.exe = strdup(process->exe);
    if (!copy.label || !copy.exe) {
        free(copy.label);
        free(copy.exe);
        return -ENOMEM;
    }
    *ret_process = (uint32_t)trace->process_count;
    trace->processes[trace->process_count++] = copy;
    return 0;
}

/* ------------------------------------------------------------------------------------------ threads */

uint32_t cascade_trace_thread(const struct cascade_trace *trace, uint32_t process, uint32_t number)
{
    uint64_t key = (uint64_t)process << 32 | number;
    struct trace_thread_key *found;

    HASH_FIND(hh, trace->by_number, &key, sizeof(key), found);
    return found ? found->thread : TRACE_NONE;
}

static int get_thread(struct cascade_trace *trace, uint32_t process, uint32_t number, uint32_t *ret_thread)
{
    struct trace_thread_key *key;

    *ret_thread = cascade_trace_thread(trace, process, number);
    if (*ret_thread != TRACE_NONE)
        return 0;
    if (array_reserve(&trace->threads, &trace->thread_capacity, trace->thread_count + 1) < 0)
        return -ENOMEM;
    key = calloc(1, sizeof(*key));
    if (!key)
        return -ENOMEM;
    key->key = (uint64_t)process << 32 | number;
    key->thread = (uint32_t)trace->thread_count;
    HASH_ADD(hh, trace->by_number, key, sizeof(key->key), key);
    if (!key->hh.tbl) {
        free(key);
        return -ENOMEM;
    }
    trace->threads[trace->thread_count] =
        (struct trace_thread){.process = process, .number = number, .open = TRACE_NONE};
    *ret_thread = (uint32_t)trace->thread_count++;
    return 0;
}

void cascade_trace_label(const struct cascade_trace *trace, uint32_t thread, char *text, size_t size)
{
    const struct trace_thread *of = &trace->threads[thread];

    snprintf(text, size, "%s.%" PRIu32, trace->processes[of->process].label, of->number);
}

size_t cascade_trace_before(const struct cascade_trace *trace, uint32_t thread, uint64_t position)
{
    const struct trace_thread *of = &trace->threads[thread];
    size_t low = 0, high = of->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (trace->events[of->events[middle]].position <= position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t cascade_trace_index(const struct cascade_trace *trace, uint32_t event)
{
    const struct trace_thread *of = &trace->threads[trace->events[event].thread];
    size_t low = 0, high = of->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (of->events[middle] < event)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ------------------------------------------------------------------------------------------ appending */

/* Which of an operation's events is kept. */
enum keep { KEEP_NONE, KEEP_BEGIN, KEEP_END, KEEP_SUCCESS, KEEP_BOTH };

static enum keep keep_of(enum sync_event_kind kind)
{
    switch (kind) {
    case SYNC_FUTEX_WAIT:
    case SYNC_FUTEX_WAKE:
        return KEEP_NONE;
    case SYNC_SEND:
    case SYNC_READ:
    case SYNC_WRITE:
    case SYNC_IO:
    case SYNC_POLL:
    case SYNC_SLEEP:
    case SYNC_CONNECT:
        return KEEP_BEGIN;
    case SYNC_RECEIVE:
    case SYNC_ACCEPT:
    case SYNC_PROCESS_WAIT:
        return KEEP_END;
    case SYNC_MUTEX_TRYLOCK:
    case SYNC_MUTEX_TIMEDLOCK:
    case SYNC_RWLOCK_TRYRDLOCK:
    case SYNC_RWLOCK_TIMEDRDLOCK:
    case SYNC_RWLOCK_TRYWRLOCK:
    case SYNC_RWLOCK_TIMEDWRLOCK:
    case SYNC_SPIN_TRYLOCK:
    case SYNC_SEM_WAIT:
    case SYNC_SEM_TRYWAIT:
    case SYNC_SEM_TIMEDWAIT:
    case SYNC_THREAD_JOIN:
        return KEEP_SUCCESS;
    default:
        return KEEP_BOTH;
    }
}

static bool is_kept(enum keep keep, const struct process_event *event)
{
    if (keep == KEEP_BOTH || event->phase == SYNC_AT)
        return keep != KEEP_NONE;
    if (keep == KEEP_BEGIN)
        return event->phase == SYNC_BEGIN;
    return event->phase == SYNC_END && (keep == KEEP_END || (keep == KEEP_SUCCESS && event->result == 0));
}

/* Gives the beginning, which is kept, what is known at the end. */
static void complete(struct cascade_trace *trace, struct trace_thread *thread,
                     const struct process_event *event)
{
    struct process_event *begin = thread->open == TRACE_NONE ? NULL : &trace->events[thread->open];

    if (!begin || begin->kind != event->kind)
        return;
    begin->phase = SYNC_END;
    begin->result = event->result;
    if (event->object)
        begin->object = event->object;
    if (event->kind == SYNC_SEND)
        begin->other = event->other;
    thread->open = TRACE_NONE;
}

int cascade_trace_append(struct cascade_trace *trace, uint32_t process, const struct process_event *event)
{
    enum keep keep = keep_of(event->kind);
    struct trace_thread *thread;
    uint32_t number;
    int r = get_thread(trace, process, event->thread, &number);

    if (r < 0)
        return r;
    thread = &trace->threads[number];
    if (keep == KEEP_BEGIN && event->phase == SYNC_END)
        complete(trace, thread, event);
    if (event->kind == SYNC_LOST) {
        thread->incomplete = true;
        trace->lost += event->result > 0 ? (uint64_t)event->result : 0;
    }
    if (!is_kept(keep, event))
        return 0;
    if (trace->count >= TRACE_NONE)
        return -EOVERFLOW;
    if (array_reserve(&trace->events, &trace->capacity, trace->count + 1) < 0 ||
        array_reserve(&thread->events, &thread->capacity, thread->count + 1) < 0)
        return -ENOMEM;
    trace->events[trace->count] = *event;
    trace->events[trace->count].thread = number;
    if (keep == KEEP_BEGIN && event->phase == SYNC_BEGIN)
        thread->open = (uint32_t)trace->count;
    thread->events[thread->count++] = (uint32_t)trace->count++;
    return 0;
}

/* ------------------------------------------------------------------------------------------ inserting */

static int compare_insertions(const void *a, const void *b)
{
    const struct trace_insertion *first = a, *second = b;

    if (first->at != second->at)
        return first->at < second->at ? -1 : 1;
    return second->event.phase - first->event.phase;
}

int cascade_trace_insert(struct cascade_trace *trace, struct trace_insertion *insertions, size_t count)
{
    size_t total = trace->count + count, from = 0, inserted = 0;
    struct process_event *events;

    if (total >= TRACE_NONE)
        return -EOVERFLOW;
    events = calloc(total + 1, sizeof(*events));
    if (!events)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        struct trace_thread *thread = &trace->threads[insertions[i].event.thread];

        if (array_reserve(&thread->events, &thread->capacity, thread->count + count) < 0) {
            free(events);
            return -ENOMEM;
        }
    }
    qsort(insertions, count, sizeof(*insertions), compare_insertions);
    for (size_t i = 0; i < trace->thread_count; i++) {
        trace->threads[i].count = 0;
        trace->threads[i].open = TRACE_NONE;
    }
    for (size_t i = 0; i < total; i++) {
        struct trace_thread *thread;

        if (inserted < count && insertions[inserted].at <= from)
            events[i] = insertions[inserted++].event;
        else
            events[i] = trace->events[from++];
        thread = &trace->threads[events[i].thread];
        thread->events[thread->count++] = (uint32_t)i;
    }
    free(trace->events);
    trace->events = events;
    trace->count = total;
    trace->capacity = total + 1;
    return 0;
}

/* ------------------------------------------------------------------------------------------ kinds */

enum lock_action trace_lock_action(const struct process_event *event)
{
    switch ((enum sync_event_kind)event->kind) {
    case SYNC_MUTEX_LOCK:
    case SYNC_MUTEX_TIMEDLOCK:
    case SYNC_RWLOCK_WRLOCK:
    case SYNC_RWLOCK_TIMEDWRLOCK:
    case SYNC_SPIN_LOCK:
        return LOCK_TAKE;
    case SYNC_RWLOCK_RDLOCK:
    case SYNC_RWLOCK_TIMEDRDLOCK:
        return LOCK_TAKE_SHARED;
    case SYNC_MUTEX_TRYLOCK:
    case SYNC_RWLOCK_TRYWRLOCK:
    case SYNC_SPIN_TRYLOCK:
        return LOCK_TRY;
    case SYNC_RWLOCK_TRYRDLOCK:
        return LOCK_TRY_SHARED;
    case SYNC_MUTEX_UNLOCK:
    case SYNC_RWLOCK_UNLOCK:
    case SYNC_SPIN_UNLOCK:
        return LOCK_GIVE_UP;
    case SYNC_COND_WAIT:
    case SYNC_COND_TIMEDWAIT:
        return event->phase == SYNC_BEGIN ? LOCK_GIVE_UP : LOCK_TAKE;
    default:
        return LOCK_NOTHING;
    }
}

uint64_t trace_lock(const struct process_event *event)
{
    bool condition = event->kind == SYNC_COND_WAIT || event->kind == SYNC_COND_TIMEDWAIT;

    return condition ? event->other : event->object;
}

bool trace_only_waits(const struct process_event *event)
{
    switch ((enum sync_event_kind)event->kind) {
    case SYNC_SLEEP:
    case SYNC_POLL:
    case SYNC_SEM_WAIT:
    case SYNC_SEM_TIMEDWAIT:
        return true;
    case SYNC_COND_WAIT:
    case SYNC_COND_TIMEDWAIT:
        return event->phase == SYNC_END;
    default:
        return false;
    }
}

bool trace_reads(const struct process_event *event)
{
    return event->kind == SYNC_READ || event->kind == SYNC_RECEIVE ||
           (event->kind == SYNC_IO && event->other == SYS_getdents64);
}

bool trace_takes_time(const struct process_event *event)
{
    switch ((enum sync_event_kind)event->kind) {
    case SYNC_SEND:
    case SYNC_RECEIVE:
    case SYNC_ACCEPT:
    case SYNC_CONNECT:
    case SYNC_READ:
    case SYNC_WRITE:
    case SYNC_IO:
        return true;
    default:
        return trace_only_waits(event);
    }
}
