/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/cascade/waited.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/cascade/happens_before.h"
#include "base/array.h"

/* What an address, or a number, stands for. */
enum what { WHAT_CONDITION, WHAT_SEMAPHORE, WHAT_BARRIER, WHAT_EVENT, WHAT_THREAD, WHAT_CHILD };

static struct waited *waited_get(struct waited **table, enum what what, uint32_t process, uint64_t object)
{
    unsigned char key[TRACE_KEY_SIZE];
    struct waited *found;

    trace_key(key, object, (uint64_t)process << 32 | what);
    HASH_FIND(hh, *table, key, sizeof(key), found);
    if (found)
        return found;
    found = calloc(1, sizeof(*found));
    if (!found)
        return NULL;
    memcpy(found->key, key, sizeof(key));
    found->made = found->ended = HB_NONE;
    HASH_ADD(hh, *table, key, sizeof(found->key), found);
    if (!found->hh.tbl) {
        free(found);
        return NULL;
    }
    return found;
}

void waited_forget(struct waited **table, struct waited *waited)
{
    HASH_DEL(*table, waited);
    free(waited->marks);
    free(waited);
}

int waited_mark(struct waited *waited, uint32_t event, uint32_t node)
{
    if (waited->first > 64 && waited->first > waited->count / 2) {
        waited->count -= waited->first;
        memmove(waited->marks, waited->marks + waited->first, waited->count * sizeof(*waited->marks));
        waited->first = 0;
    }
    if (array_reserve(&waited->marks, &waited->capacity, waited->count + 1) < 0)
        return -ENOMEM;
    waited->marks[waited->count++] = (struct mark){event, node, waited->round, false};
    return 0;
}

struct waited *waited_of_event(struct waited **table, const struct cascade_trace *trace,
                               const struct process_event *event, struct waited *nothing)
{
    const struct trace_thread *thread = &trace->threads[event->thread];

    switch ((enum sync_event_kind)event->kind) {
    case SYNC_THREAD_CREATE:
    case SYNC_THREAD_JOIN:
        return waited_get(table, WHAT_THREAD, thread->process, event->other);
    case SYNC_THREAD_BEGIN:
    case SYNC_THREAD_END:
        return waited_get(table, WHAT_THREAD, thread->process, thread->number);
    case SYNC_PROCESS_FORK:
        return waited_get(table, WHAT_CHILD, 0, event->other);
    case SYNC_PROCESS_BEGIN:
    case SYNC_PROCESS_EXIT:
        return waited_get(table, WHAT_CHILD, 0, (uint64_t)trace->processes[thread->process].pid);
    case SYNC_PROCESS_WAIT:
        return waited_get(table, WHAT_CHILD, 0, (uint64_t)event->result);
    case SYNC_COND_WAIT:
    case SYNC_COND_TIMEDWAIT:
    case SYNC_COND_SIGNAL:
    case SYNC_COND_BROADCAST:
        return waited_get(table, WHAT_CONDITION, thread->process, event->object);
    case SYNC_SEM_WAIT:
    case SYNC_SEM_TRYWAIT:
    case SYNC_SEM_TIMEDWAIT:
    case SYNC_SEM_POST:
        return waited_get(table, WHAT_SEMAPHORE, thread->process, event->object);
    case SYNC_BARRIER_WAIT:
        return waited_get(table, WHAT_BARRIER, thread->process, event->object);
    case SYNC_ENQUEUE:
    case SYNC_DEQUEUE:
        return waited_get(table, WHAT_EVENT, thread->process, event->object);
    case SYNC_HANDLER:
        return event->phase == SYNC_BEGIN ? waited_get(table, WHAT_EVENT, thread->process, event->object)
                                          : nothing;
    default:
        return nothing;
    }
}

bool waited_is_used_up(const struct waited *waited, const struct process_event *event)
{
    return (event->kind == SYNC_DEQUEUE || (event->kind == SYNC_HANDLER && event->phase == SYNC_BEGIN)) &&
           waited->first == waited->count;
}
