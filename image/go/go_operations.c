/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Operations by the function that is called and by what was inlined around the call; names and inlining as in
 * the sources of go 1.19, 1.22 and 1.23, and, where they differ, 1.24 (internal/sync) and 1.25
 * (WaitGroup.Go). */
#include "image/go/go_operations.h"

#include <string.h>

#include "base/array.h"

static const struct go_call_kind kinds[] = {
    {GO_MAKECHAN, GO_CHANNEL, GO_MAKE, NULL},
    {GO_MAKECHAN64, GO_CHANNEL, GO_MAKE, NULL},
    {GO_CHANSEND1, GO_CHANNEL, GO_SEND, NULL},
    {GO_CHANRECV1, GO_CHANNEL, GO_RECV, NULL},
    {GO_CHANRECV2, GO_CHANNEL, GO_RECV, NULL},
    {GO_CLOSECHAN, GO_CHANNEL, GO_CLOSE, NULL},
    {GO_SELECTGO, GO_CHANNEL, GO_SELECT, NULL},
    {GO_SELECTNBSEND, GO_CHANNEL, GO_SELECT, NULL},
    {GO_SELECTNBRECV, GO_CHANNEL, GO_SELECT, NULL},
    {GO_BLOCK, GO_CHANNEL, GO_SELECT, NULL},
    {GO_NEWPROC, GO_GOROUTINE, GO_GO, NULL},
    {GO_MUTEX_LOCK, GO_MUTEX, GO_LOCK, NULL},
    {GO_MUTEX_LOCK_SLOW, GO_MUTEX, GO_LOCK, "sync.(*Mutex).Lock"},
    {GO_MUTEX_TRYLOCK, GO_MUTEX, GO_TRYLOCK, NULL},
    {GO_MUTEX_UNLOCK, GO_MUTEX, GO_UNLOCK, NULL},
    {GO_MUTEX_UNLOCK_SLOW, GO_MUTEX, GO_UNLOCK, "sync.(*Mutex).Unlock"},
    {GO_RWMUTEX_LOCK, GO_RWMUTEX, GO_LOCK, NULL},
    {GO_RWMUTEX_TRYLOCK, GO_RWMUTEX, GO_TRYLOCK, NULL},
    {GO_RWMUTEX_UNLOCK, GO_RWMUTEX, GO_UNLOCK, NULL},
    {GO_RWMUTEX_RLOCK, GO_RWMUTEX, GO_RLOCK, NULL},
    {GO_RWMUTEX_RLOCK_SLOW, GO_RWMUTEX, GO_RLOCK, "sync.(*RWMutex).RLock"},
    {GO_RWMUTEX_TRYRLOCK, GO_RWMUTEX, GO_TRYRLOCK, NULL},
    {GO_RWMUTEX_RUNLOCK, GO_RWMUTEX, GO_RUNLOCK, NULL},
    {GO_RWMUTEX_RUNLOCK_SLOW, GO_RWMUTEX, GO_RUNLOCK, "sync.(*RWMutex).RUnlock"},
    {GO_WAITGROUP_ADD, GO_WAITGROUP, GO_DONE, "sync.(*WaitGroup).Done"},
    {GO_WAITGROUP_ADD, GO_WAITGROUP, GO_ADD, NULL},
    {GO_WAITGROUP_DONE, GO_WAITGROUP, GO_DONE, NULL},
    {GO_WAITGROUP_GO, GO_GOROUTINE, GO_GO, NULL},
    {GO_WAITGROUP_WAIT, GO_WAITGROUP, GO_WAIT, NULL},
    {GO_COND_WAIT, GO_COND, GO_WAIT, NULL},
    {GO_COND_SIGNAL, GO_COND, GO_SIGNAL, NULL},
    {GO_COND_BROADCAST, GO_COND, GO_BROADCAST, NULL},
    {GO_NOTIFY_LIST_NOTIFY_ONE, GO_COND, GO_SIGNAL, "sync.(*Cond).Signal"},
    {GO_NOTIFY_LIST_NOTIFY_ALL, GO_COND, GO_BROADCAST, "sync.(*Cond).Broadcast"},
    {GO_ONCE_DO, GO_ONCE, GO_DO, NULL},
    {GO_ONCE_DO_SLOW, GO_ONCE, GO_DO, "sync.(*Once).Do"},
    {GO_TIME_SLEEP, GO_TIME, GO_SLEEP, NULL},
};

static const char *const object_names[] = {
    [GO_CHANNEL] = "channel", [GO_GOROUTINE] = "goroutine", [GO_MUTEX] = "mutex",
    [GO_RWMUTEX] = "rwmutex", [GO_WAITGROUP] = "waitgroup", [GO_COND] = "cond",
    [GO_ONCE] = "once",       [GO_TIME] = "time",
};

static const char *const operation_names[] = {
    [GO_MAKE] = "make",       [GO_SEND] = "send",     [GO_RECV] = "recv",
    [GO_RANGE] = "range",     [GO_CLOSE] = "close",   [GO_SELECT] = "select",
    [GO_GO] = "go",           [GO_LOCK] = "lock",     [GO_TRYLOCK] = "trylock",
    [GO_UNLOCK] = "unlock",   [GO_RLOCK] = "rlock",   [GO_TRYRLOCK] = "tryrlock",
    [GO_RUNLOCK] = "runlock", [GO_ADD] = "add",       [GO_DONE] = "done",
    [GO_WAIT] = "wait",       [GO_SIGNAL] = "signal", [GO_BROADCAST] = "broadcast",
    [GO_DO] = "do",           [GO_SLEEP] = "sleep",
};

const char *go_object_name(enum go_object_kind object)
{
    return object_names[object];
}

const char *go_operation_name(enum go_operation operation)
{
    return operation_names[operation];
}

/* How many of the innermost frames are `inlined`: since go 1.24 sync.(*Mutex).Lock has
 * internal/sync.(*Mutex).Lock in it. */
static size_t frames_called(const struct go_frame *frames, size_t count, const char *inlined)
{
    static const char prefix[] = "internal/";
    size_t own = 0;

    while (own < count) {
        const char *name = frames[own].function;

        if (!strncmp(name, prefix, strlen(prefix)))
            name += strlen(prefix);
        if (strcmp(name, inlined) != 0)
            break;
        own++;
    }
    return own;
}

/* The caller's statement may be in a function of package sync that was inlined, too. */
const struct go_call_kind *go_call_kind_of(enum go_entry entry, const struct go_frame *frames, size_t count,
                                           size_t *ret_own_frames)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        size_t own;

        if (kinds[i].entry != entry)
            continue;
        own = kinds[i].inlined ? frames_called(frames, count, kinds[i].inlined) : 0;
        if (kinds[i].inlined && !own)
            continue;
        if (entry == GO_NEWPROC || entry == GO_WAITGROUP_ADD)
            own += frames_called(frames + own, count - own, "sync.(*WaitGroup).Go");
        *ret_own_frames = own;
        return &kinds[i];
    }
    return NULL;
}

bool go_is_slow_path(enum go_entry entry)
{
    return entry == GO_MUTEX_LOCK_SLOW || entry == GO_MUTEX_UNLOCK_SLOW || entry == GO_RWMUTEX_RLOCK_SLOW ||
           entry == GO_RWMUTEX_RUNLOCK_SLOW;
}
