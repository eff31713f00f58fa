/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "analyzer/go/groups_state.h"

enum { MOST_UNUSED = 100000 };

const struct used_object *object_get(const struct go_groups *groups, uint64_t key)
{
    struct used_object *object;

    HASH_FIND(hh, groups->objects, &key, sizeof(key), object);
    return object;
}

/* Forgets the objects that nobody waits for and no timer will use, when there are too many. */
static void sweep(struct go_groups *groups)
{
    struct used_object *object = NULL, *next = NULL;

    if (!groups->sweep_objects_at)
        groups->sweep_objects_at = MOST_UNUSED;
    if (HASH_COUNT(groups->objects) < groups->sweep_objects_at)
        return;
    HASH_ITER (hh, groups->objects, object, next) {
        if (!object->waiting && object->due_ns <= groups->now_ns) {
            HASH_DEL(groups->objects, object);
            free(object);
        }
    }
    /* As many again as were kept: the work stays in proportion to the events. */
    groups->sweep_objects_at = 2 * HASH_COUNT(groups->objects) + MOST_UNUSED;
}

/* NULL: no memory. */
static struct used_object *get(struct go_groups *groups, uint64_t key)
{
    struct used_object *object;

    HASH_FIND(hh, groups->objects, &key, sizeof(key), object);
    if (object)
        return object;
    sweep(groups);
    object = calloc(1, sizeof(*object));
    if (!object)
        return NULL;
    object->object = key;
    HASH_ADD(hh, groups->objects, object, sizeof(object->object), object);
    if (!object->hh.tbl) {
        free(object);
        return NULL;
    }
    return object;
}

/* Whom the operation could let continue, as bits. */
static unsigned directions(enum go_op operation, bool send)
{
    switch (operation) {
    case GO_OP_CHAN_RECV:
    case GO_OP_CHAN_RANGE:
        return 1u << TO_SEND;
    case GO_OP_CHAN_CLOSE:
        return 1u << TO_SEND | 1u << TO_RECEIVE;
    case GO_OP_SELECT:
        return send ? 1u << TO_RECEIVE : 1u << TO_SEND;
    case GO_OP_CHAN_SEND:
    case GO_OP_MUTEX_UNLOCK:
    case GO_OP_RWMUTEX_UNLOCK:
    case GO_OP_RWMUTEX_RUNLOCK:
    case GO_OP_WAITGROUP_ADD:
    case GO_OP_WAITGROUP_DONE:
    case GO_OP_COND_SIGNAL:
    case GO_OP_COND_BROADCAST:
        return 1u << TO_RECEIVE;
    default:
        return 0;
    }
}

int object_used(struct go_groups *groups, uint64_t key, enum go_op operation, bool send, uint64_t goroutine,
                uint32_t site)
{
    unsigned whom = key ? directions(operation, send) : 0;
    struct used_object *object = whom ? get(groups, key) : NULL;

    if (!whom)
        return 0;
    if (!object)
        return -ENOMEM;
    for (unsigned i = 0; i < DIRECTIONS; i++)
        if (whom & 1u << i)
            object->last[i] = (struct use){goroutine, groups->now_ns, site, (uint8_t)operation};
    return 0;
}

void object_released(struct go_groups *groups, uint64_t key, uint64_t goroutine)
{
    struct used_object *object;

    HASH_FIND(hh, groups->objects, &key, sizeof(key), object);
    for (unsigned i = 0; object && i < DIRECTIONS; i++) {
        if (object->last[i].goroutine != goroutine)
            object->last[i] = (struct use){.goroutine = goroutine};
        object->last[i].ns = groups->now_ns;
    }
}

int object_waits(struct go_groups *groups, uint64_t key, int change)
{
    struct used_object *object = key ? get(groups, key) : NULL;

    if (!key)
        return 0;
    if (!object)
        return -ENOMEM;
    if (change > 0)
        object->waiting++;
    else if (object->waiting)
        object->waiting--;
    return 0;
}

int object_due(struct go_groups *groups, uint64_t key, uint64_t due_ns)
{
    struct used_object *object = get(groups, key);

    if (!object)
        return -ENOMEM;
    if (due_ns > object->due_ns)
        object->due_ns = due_ns;
    return 0;
}

void used_objects_free(struct go_groups *groups)
{
    struct used_object *object = NULL, *next = NULL;

    HASH_ITER (hh, groups->objects, object, next) {
        HASH_DEL(groups->objects, object);
        free(object);
    }
}
