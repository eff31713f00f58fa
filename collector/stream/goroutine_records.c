/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "collector/stream/goroutine_state.h"

static int find_place(struct translation *at, enum go_op operation, struct go_source_place *ret_place)
{
    uint64_t place = at->record->place, caller = 0;

    if (place && !at->target->probe.place_in_code)
        place--; /* behind a call, which may be its line's last instruction */
    if (at->target->probe.kind == GO_AT_OPERATION && at->record->other)
        caller = at->record->other - 1 - at->bias;
    place = place ? place - at->bias : 0;
    return go_program_place(at->goroutines->file, at->streams->writer, at->goroutines->image->image_id,
                            at->target->source ? at->target->source : place, caller, operation, ret_place,
                            &at->streams->error);
}

static int find_function(struct translation *at, uint64_t address, struct go_source_function *ret_function)
{
    return go_program_function(at->goroutines->file, at->streams->writer, at->goroutines->image->image_id,
                               address - at->bias, ret_function, &at->streams->error);
}

static int on_spawn(struct translation *at)
{
    struct goroutine_streams *goroutines = at->goroutines;
    uint32_t tid = at->record->header.tid;
    struct go_source_place place;
    struct goroutine *goroutine;
    struct spawn *spawn;
    int r;

    HASH_FIND(hh, goroutines->spawns, &tid, sizeof(tid), spawn);
    if (!spawn) {
        spawn = calloc(1, sizeof(*spawn));
        if (!spawn)
            return error_no_memory(&at->streams->error), -ENOMEM;
        spawn->tid = tid;
        HASH_ADD(hh, goroutines->spawns, tid, sizeof(spawn->tid), spawn);
    }
    spawn->function = at->record->value;
    spawn->place = at->record->place;
    if (!at->event.goroutine || go_program_detail(goroutines->file) < GO_DETAIL_OPERATIONS)
        return 0;
    goroutine = recorded_goroutine_meet(goroutines, at->event.goroutine);
    r = goroutine ? find_place(at, GO_OP_GO, &place) : (error_no_memory(&at->streams->error), -ENOMEM);
    if (r)
        return r;
    at->event.kind = GO_EVENT_OPERATE;
    at->event.operation = GO_OP_GO;
    at->event.site = place.site;
    r = goroutine_append(at);
    return r ? r : goroutine_operation(at, goroutine, place.inner);
}

/* The goroutine that SPAWN announced on this thread is there. */
static int on_spawned(struct translation *at)
{
    uint32_t tid = at->record->header.tid;
    struct goroutine_streams *goroutines = at->goroutines;
    struct go_source_function function = {.name = "?"};
    struct go_source_place place = {.text = "?"};
    struct goroutine *goroutine;
    struct spawn *spawn;
    struct translation creation = *at;
    struct wire_go record = *at->record;
    int r = 0;

    HASH_FIND(hh, goroutines->spawns, &tid, sizeof(tid), spawn);
    if (spawn && spawn->place) {
        record.place = spawn->place;
        creation.record = &record;
        r = find_function(at, spawn->function, &function);
        if (!r)
            r = find_place(&creation, GO_OP_GO, &place);
        spawn->place = 0;
    }
    if (r)
        return r;
    at->event.kind = GO_EVENT_CREATE;
    at->event.other = at->record->object;
    at->event.value = function.function_id;
    at->event.site = place.site;
    r = goroutine_append(at);
    if (r || go_program_detail(goroutines->file) < GO_DETAIL_OPERATIONS)
        return r;
    goroutine = recorded_goroutine_meet(goroutines, at->record->object);
    if (!goroutine || goroutine_name(goroutine, recorded_goroutine_find(goroutines, at->event.goroutine),
                                     function.name, &place))
        return error_no_memory(&at->streams->error), -ENOMEM;
    return function.system ? 0 : goroutine_begin_stream(at, goroutine, function.function_id);
}

static int on_end(struct translation *at)
{
    struct goroutine *goroutine = recorded_goroutine_find(at->goroutines, at->event.goroutine);
    int r;

    at->event.kind = GO_EVENT_END;
    r = goroutine_append(at);
    if (r || !goroutine)
        return r;
    goroutine->blocked = false;
    r = goroutine_end_stream(at, goroutine, true);
    recorded_goroutine_forget(at->goroutines, goroutine);
    return r;
}

static int on_state(struct translation *at, enum go_event_kind kind)
{
    struct goroutine *goroutine = recorded_goroutine_find(at->goroutines, at->event.goroutine);

    at->event.kind = (uint8_t)kind;
    if (goroutine && kind != GO_EVENT_WAKE)
        goroutine->blocked = kind == GO_EVENT_BLOCK;
    return goroutine_append(at);
}

static bool is_of_mutex(unsigned operation)
{
    return operation == GO_OP_MUTEX_LOCK || operation == GO_OP_MUTEX_TRYLOCK ||
           operation == GO_OP_MUTEX_UNLOCK;
}

static bool is_of_rwmutex(unsigned operation)
{
    return operation >= GO_OP_RWMUTEX_LOCK && operation <= GO_OP_RWMUTEX_RUNLOCK;
}

/* The slow path of an operation whose beginning has been seen, and the Mutex inside a RWMutex, which has the
 * same address, add nothing. */
static bool is_repeated(const struct translation *at, const struct goroutine *goroutine)
{
    unsigned operation = at->event.operation;

    return at->target->probe.kind == GO_AT_OPERATION && goroutine->object == at->event.object &&
           goroutine->object && is_of_mutex(operation) &&
           (is_of_rwmutex(goroutine->operation) ||
            (at->target->slow_path && operation == goroutine->operation));
}

static int append_cases(struct translation *at)
{
    const struct wire_go_select *select = (const struct wire_go_select *)at->record;
    uint64_t sends = at->record->object;
    int r = 0;

    at->event.kind = GO_EVENT_CASE;
    at->event.site = 0;
    for (uint32_t i = 0; !r && i < at->record->cases && i < GO_CASES_MAX; i++) {
        at->event.object = select->cases[i].channel;
        at->event.value = i;
        at->event.flags = i < sends ? GO_FLAG_SEND : 0;
        r = goroutine_append(at);
    }
    return r;
}

/* What the words of the record say about an operation. */
static void read_operation(struct translation *at)
{
    const struct wire_go *record = at->record;
    struct process_event *event = &at->event;

    event->object = record->object;
    switch (at->target->probe.kind) {
    case GO_AT_SEND:
    case GO_AT_RECV:
        event->flags = record->value ? 0 : GO_FLAG_TRY;
        break;
    case GO_AT_SELECT:
        event->object = 0;
        event->value = record->cases;
        event->flags = record->value ? 0 : GO_FLAG_TRY;
        break;
    case GO_AT_LOCK:
        event->flags = record->value ? 0 : GO_FLAG_DONE;
        break;
    default:
        if (event->operation == GO_OP_WAITGROUP_ADD)
            event->value = (int64_t)record->value;
        if (event->operation == GO_OP_SLEEP)
            event->value = (int64_t)record->object;
        if (event->operation == GO_OP_SLEEP || event->operation == GO_OP_BLOCK)
            event->object = 0;
        break;
    }
}

static bool is_try_lock(unsigned operation)
{
    return operation == GO_OP_MUTEX_TRYLOCK || operation == GO_OP_RWMUTEX_TRYLOCK ||
           operation == GO_OP_RWMUTEX_TRYRLOCK;
}

static int append_answer(struct translation *at)
{
    at->event.kind = GO_EVENT_RESULT;
    at->event.value = !at->record->value;
    return goroutine_append(at);
}

static int on_operation(struct translation *at)
{
    struct goroutine *goroutine = recorded_goroutine_meet(at->goroutines, at->event.goroutine);
    struct go_source_place place;
    int r;

    if (!goroutine)
        return error_no_memory(&at->streams->error), -ENOMEM;
    at->event.operation = (uint8_t)at->target->operation;
    read_operation(at);
    if (!at->event.goroutine || is_repeated(at, goroutine))
        return 0; /* the runtime's own use of a channel, on a system stack */
    r = find_place(at, at->target->operation, &place);
    if (r)
        return r;
    at->event.kind = GO_EVENT_OPERATE;
    at->event.site = place.site;
    at->event.operation = (uint8_t)place.operation;
    at->event.flags |= place.inner ? GO_FLAG_INNER : 0;
    goroutine->operation = at->event.operation;
    goroutine->object = at->event.object;
    r = goroutine_append(at);
    if (!r)
        r = goroutine_operation(at, goroutine, place.inner);
    if (!r && at->target->probe.kind == GO_AT_LOCK && is_try_lock(at->event.operation))
        r = append_answer(at);
    return r || at->target->probe.kind != GO_AT_SELECT ? r : append_cases(at);
}

/* A channel has been made. */
static int on_make(struct translation *at)
{
    struct goroutine *goroutine = recorded_goroutine_meet(at->goroutines, at->event.goroutine);
    struct go_source_place place;
    int r =
        goroutine ? find_place(at, GO_OP_CHAN_MAKE, &place) : (error_no_memory(&at->streams->error), -ENOMEM);

    if (r)
        return r;
    at->event.kind = GO_EVENT_OPERATE;
    at->event.operation = GO_OP_CHAN_MAKE;
    at->event.object = at->record->object;
    at->event.flags = GO_FLAG_DONE;
    at->event.site = place.site;
    r = goroutine_append(at);
    return r ? r : goroutine_operation(at, goroutine, place.inner);
}

static int on_result(struct translation *at)
{
    const struct go_usage *usage = at->target->usage;
    bool truth = at->target->operation != GO_OP_SELECT || (usage->case_count < 2 && !usage->blocks);

    at->event.kind = GO_EVENT_RESULT;
    at->event.operation = (uint8_t)at->target->operation;
    at->event.value = truth ? (int64_t)(at->record->object & 1) : (int64_t)at->record->object;
    return goroutine_append(at);
}

static int append_timers_channel(struct translation *at, uint64_t channel)
{
    at->event.kind = GO_EVENT_CASE;
    at->event.object = channel;
    at->event.flags = GO_FLAG_TIMER;
    at->event.value = 0;
    at->event.other = 0;
    return goroutine_append(at);
}

static int on_timer(struct translation *at)
{
    const struct wire_go_select *timer = (const struct wire_go_select *)at->record;
    struct go_source_function function = {.name = ""};
    struct go_source_place place = {0};
    int r = find_place(at, GO_OP_NONE, &place);

    if (!r && timer->cases[0].element)
        r = find_function(at, timer->cases[0].element, &function);
    if (r || (int64_t)at->record->value <= 0 || at->record->value >= INT64_MAX)
        return r;
    at->event.kind = GO_EVENT_TIMER;
    at->event.object = at->record->object;
    at->event.value = (int64_t)streams_realtime(at->streams, at->record->value);
    at->event.other = at->record->other;
    at->event.site = place.site;
    at->event.flags = !strcmp(function.name, "time.goFunc") ? GO_FLAG_TIMER : 0;
    r = goroutine_append(at);
    return r || strcmp(function.name, "time.sendTime") != 0
               ? r
               : append_timers_channel(at, timer->cases[0].channel);
}

static int on_test(struct translation *at)
{
    struct go_source_function function;
    int r = find_function(at, at->record->value, &function);

    at->event.kind = GO_EVENT_TEST;
    at->event.value = function.function_id;
    return r ? r : goroutine_append(at);
}

static int on_fatal(struct translation *at)
{
    static const char deadlock[8] = {'a', 'l', 'l', ' ', 'g', 'o', 'r', 'o'};

    at->event.kind = GO_EVENT_FATAL;
    at->event.value = GO_FATAL_OTHER;
    if (at->target->probe.kind == GO_AT_FATAL_PANIC)
        at->event.value = GO_FATAL_PANIC;
    else if (!memcmp(&at->record->object, deadlock, sizeof(deadlock)))
        at->event.value = GO_FATAL_DEADLOCK;
    return goroutine_append(at);
}

static int on_delay(struct translation *at)
{
    struct go_source_place place;
    int r = find_place(at, at->target->operation, &place);

    at->event.kind = GO_EVENT_DELAY;
    at->event.operation = (uint8_t)at->target->operation;
    at->event.site = place.site;
    at->event.value = (int64_t)at->record->object;
    at->event.object = at->record->value;
    at->event.other = at->record->probe;
    return r ? r : goroutine_append(at);
}

int goroutine_record(struct translation *at)
{
    switch ((enum go_place_kind)at->target->probe.kind) {
    case GO_AT_SPAWN:
        return on_spawn(at);
    case GO_AT_SPAWNED:
        return on_spawned(at);
    case GO_AT_EXECUTE:
        return on_state(at, GO_EVENT_RUN);
    case GO_AT_END:
        return on_end(at);
    case GO_AT_PARK:
        at->event.value = (int64_t)at->record->value;
        return on_state(at, GO_EVENT_BLOCK);
    case GO_AT_READY:
        at->event.other = at->record->object;
        return on_state(at, GO_EVENT_WAKE);
    case GO_AT_QUEUE:
        return on_state(at, GO_EVENT_YIELD);
    case GO_AT_OPERATION:
    case GO_AT_SEND:
    case GO_AT_RECV:
    case GO_AT_SELECT:
    case GO_AT_LOCK:
        return on_operation(at);
    case GO_AT_RESULT:
        return at->target->operation == GO_OP_CHAN_MAKE ? on_make(at) : on_result(at);
    case GO_AT_TIMER:
    case GO_AT_TIMER_STRUCT:
        return on_timer(at);
    case GO_AT_TIMER_STOP:
        at->event.object = at->record->object;
        return on_state(at, GO_EVENT_TIMER_STOP);
    case GO_AT_TIMER_RUN:
        at->event.object = at->record->object;
        return on_state(at, GO_EVENT_TIMER_RUN);
    case GO_AT_TIMER_RUN_SECOND:
        at->event.object = at->record->value;
        return on_state(at, GO_EVENT_TIMER_RUN);
    case GO_AT_NOTIFY:
        at->event.object = at->record->object;
        return on_state(at, GO_EVENT_SIGNALS);
    case GO_AT_TEST:
        return on_test(at);
    case GO_AT_PANIC:
        return on_state(at, GO_EVENT_PANIC);
    case GO_AT_FATAL:
    case GO_AT_FATAL_PANIC:
        return on_fatal(at);
    case GO_AT_DELAY:
        return on_delay(at);
    case GO_AT_BEHIND_GO: /* its records are of the go statement */
        return 0;
    case GO_AT_EXIT:
        at->event.value = (int32_t)at->record->value;
        return on_state(at, GO_EVENT_EXIT);
    }
    return 0;
}
