/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The words for kinds of events and operations: those of SQL and of all output. */
#include "store/streams/go_events.h"

static const char *const kind_names[GO_EVENT_KINDS] = {
    [GO_EVENT_CREATE] = "create",       [GO_EVENT_RUN] = "run",         [GO_EVENT_END] = "end",
    [GO_EVENT_OPERATE] = "operate",     [GO_EVENT_CASE] = "case",       [GO_EVENT_RESULT] = "result",
    [GO_EVENT_BLOCK] = "block",         [GO_EVENT_WAKE] = "wake",       [GO_EVENT_YIELD] = "yield",
    [GO_EVENT_TIMER] = "timer",         [GO_EVENT_TEST] = "test",       [GO_EVENT_TIMER_STOP] = "timer stop",
    [GO_EVENT_PANIC] = "panic",         [GO_EVENT_FATAL] = "fatal",     [GO_EVENT_EXIT] = "exit",
    [GO_EVENT_DELAY] = "delay",         [GO_EVENT_LOST] = "lost",       [GO_EVENT_DETAIL] = "detail",
    [GO_EVENT_TIMER_RUN] = "timer run", [GO_EVENT_SIGNALS] = "signals",
};

static const char *const op_names[GO_OPS] = {
    [GO_OP_CHAN_MAKE] = "chan make",
    [GO_OP_CHAN_SEND] = "chan send",
    [GO_OP_CHAN_RECV] = "chan recv",
    [GO_OP_CHAN_RANGE] = "chan range",
    [GO_OP_CHAN_CLOSE] = "chan close",
    [GO_OP_SELECT] = "select",
    [GO_OP_GO] = "go",
    [GO_OP_MUTEX_LOCK] = "mutex lock",
    [GO_OP_MUTEX_TRYLOCK] = "mutex trylock",
    [GO_OP_MUTEX_UNLOCK] = "mutex unlock",
    [GO_OP_RWMUTEX_LOCK] = "rwmutex lock",
    [GO_OP_RWMUTEX_TRYLOCK] = "rwmutex trylock",
    [GO_OP_RWMUTEX_UNLOCK] = "rwmutex unlock",
    [GO_OP_RWMUTEX_RLOCK] = "rwmutex rlock",
    [GO_OP_RWMUTEX_TRYRLOCK] = "rwmutex tryrlock",
    [GO_OP_RWMUTEX_RUNLOCK] = "rwmutex runlock",
    [GO_OP_WAITGROUP_ADD] = "waitgroup add",
    [GO_OP_WAITGROUP_DONE] = "waitgroup done",
    [GO_OP_WAITGROUP_WAIT] = "waitgroup wait",
    [GO_OP_COND_WAIT] = "cond wait",
    [GO_OP_COND_SIGNAL] = "cond signal",
    [GO_OP_COND_BROADCAST] = "cond broadcast",
    [GO_OP_ONCE_DO] = "once do",
    [GO_OP_SLEEP] = "sleep",
    [GO_OP_BLOCK] = "block",
};

const char *go_event_kind_name(unsigned kind)
{
    return kind && kind < GO_EVENT_KINDS ? kind_names[kind] : "?";
}

const char *go_op_name(unsigned operation)
{
    return operation && operation < GO_OPS ? op_names[operation] : "?";
}

bool go_op_can_wait(unsigned operation)
{
    switch ((enum go_op)operation) {
    case GO_OP_CHAN_SEND:
    case GO_OP_CHAN_RECV:
    case GO_OP_CHAN_RANGE:
    case GO_OP_SELECT:
    case GO_OP_MUTEX_LOCK:
    case GO_OP_RWMUTEX_LOCK:
    case GO_OP_RWMUTEX_RLOCK:
    case GO_OP_WAITGROUP_WAIT:
    case GO_OP_COND_WAIT:
    case GO_OP_ONCE_DO:
    case GO_OP_SLEEP:
    case GO_OP_BLOCK:
        return true;
    default:
        return false;
    }
}
