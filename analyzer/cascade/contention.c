/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/cascade/contention.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/array.h"
#include "base/cleanup.h"

struct resource_key {
    unsigned char key[TRACE_KEY_SIZE]; /* address; process, and whether it is a pool */
    uint32_t resource;
    UT_hash_handle hh;
};

/* The sections that a thread is in, outermost first. */
struct held {
    uint32_t *sections;
    size_t count, capacity;
};

struct reading {
    const struct cascade_trace *trace;
    struct contention *contention;
    struct resource_key *keys;
    struct held *held; /* by thread */
};

void contention_release(struct contention *contention)
{
    for (size_t i = 0; i < contention->resource_count; i++)
        free(contention->resources[i].sections);
    free(contention->resources);
    free(contention->sections);
    free(contention->section_of);
    *contention = (struct contention){0};
}

/* ------------------------------------------------------------------------------------------ finding them */

static int get_resource(struct reading *reading, uint32_t process, uint64_t address, bool pool,
                        uint32_t *ret_resource)
{
    struct contention *contention = reading->contention;
    unsigned char key[TRACE_KEY_SIZE];
    struct resource_key *found;

    trace_key(key, address, (uint64_t)process << 1 | pool);
    HASH_FIND(hh, reading->keys, key, sizeof(key), found);
    if (found) {
        *ret_resource = found->resource;
        return 0;
    }
    if (array_reserve(&contention->resources, &contention->resource_capacity,
                      contention->resource_count + 1) < 0)
        return -ENOMEM;
    found = calloc(1, sizeof(*found));
    if (!found)
        return -ENOMEM;
    memcpy(found->key, key, sizeof(key));
    found->resource = (uint32_t)contention->resource_count;
    HASH_ADD(hh, reading->keys, key, sizeof(found->key), found);
    if (!found->hh.tbl) {
        free(found);
        return -ENOMEM;
    }
    contention->resources[contention->resource_count++] =
        (struct resource){.address = pool ? 0 : address, .process = process, .pool = pool};
    *ret_resource = found->resource;
    return 0;
}

static int add_section(struct contention *contention, const struct section *section, uint32_t *ret_section)
{
    struct resource *resource = &contention->resources[section->resource];

    if (array_reserve(&contention->sections, &contention->capacity, contention->count + 1) < 0 ||
        array_reserve(&resource->sections, &resource->capacity, resource->count + 1) < 0)
        return -ENOMEM;
    contention->sections[contention->count] = *section;
    contention->section_of[section->first] = (uint32_t)contention->count;
    resource->sections[resource->count++] = (uint32_t)contention->count;
    *ret_section = (uint32_t)contention->count++;
    return 0;
}

static int take(struct reading *reading, const struct process_event *event, uint32_t number,
                enum lock_action action)
{
    struct held *held = &reading->held[event->thread];
    struct section section = {
        .thread = event->thread,
        .first = number,
        .last = number,
        .around = held->count ? held->sections[held->count - 1] : TRACE_NONE,
        .shared = action == LOCK_TAKE_SHARED || action == LOCK_TRY_SHARED,
        .handler = TRACE_NONE,
        .waits = action == LOCK_TAKE || action == LOCK_TAKE_SHARED,
        .kind = event->site + UINT64_C(0x9e3779b97f4a7c15),
    };
    int r = get_resource(reading, reading->trace->threads[event->thread].process, trace_lock(event), false,
                         &section.resource);

    if (r == 0 && array_reserve(&held->sections, &held->capacity, held->count + 1) < 0)
        r = -ENOMEM;
    if (r < 0)
        return r;
    return add_section(reading->contention, &section, &held->sections[held->count++]);
}

/* The youngest section of the lock ends. */
static void give_up(struct reading *reading, const struct process_event *event, uint32_t number)
{
    struct contention *contention = reading->contention;
    struct held *held = &reading->held[event->thread];

    for (size_t i = held->count; i-- > 0;) {
        struct section *section = &contention->sections[held->sections[i]];

        if (contention->resources[section->resource].address != trace_lock(event))
            continue;
        section->last = number;
        section->ended = true;
        for (size_t j = i + 1; j < held->count; j++)
            held->sections[j - 1] = held->sections[j];
        held->count--;
        return;
    }
}

/* What is done, and where. The same once more, as in a loop, is nothing new: a set, not a sequence. */
static uint64_t kind_bit(const struct process_event *event)
{
    uint64_t what = (uint64_t)event->site << 8 | event->kind;

    return UINT64_C(1) << ((what * UINT64_C(0x9e3779b97f4a7c15)) >> 58);
}

/* An event inside sections makes them of another kind. */
static void note_inside(struct reading *reading, const struct process_event *event, uint32_t number)
{
    const struct held *held = &reading->held[event->thread];

    for (size_t i = 0; i < held->count; i++) {
        struct section *section = &reading->contention->sections[held->sections[i]];

        section->last = number;
        section->kind |= kind_bit(event);
    }
}

/* What happens in a handler makes it of another kind, too; and how much happens does so for all. */
static void note_amounts(struct reading *reading)
{
    const struct cascade_trace *trace = reading->trace;

    for (size_t i = 0; i < reading->contention->count; i++) {
        struct section *section = &reading->contention->sections[i];
        const uint32_t *events = trace->threads[section->thread].events;
        size_t first = cascade_trace_index(trace, section->first),
               last = cascade_trace_index(trace, section->last);

        for (size_t j = first + 1; section->handler != TRACE_NONE && j <= last; j++)
            section->kind |= kind_bit(&trace->events[events[j]]);
        section->kind = section->kind * 64 + (uint64_t)__builtin_clzll(last - first + 1);
    }
}

static int read_locks(struct reading *reading)
{
    for (uint32_t i = 0; i < reading->trace->count; i++) {
        const struct process_event *event = &reading->trace->events[i];
        enum lock_action action = trace_lock_action(event);
        int r = 0;

        note_inside(reading, event, i);
        if (action == LOCK_GIVE_UP)
            give_up(reading, event, i);
        else if (action != LOCK_NOTHING)
            r = take(reading, event, i, action);
        if (r < 0)
            return r;
    }
    return 0;
}

static int add_handlers(struct reading *reading, const struct handlers *handlers)
{
    for (size_t i = 0; i < handlers->count; i++) {
        const struct handler *handler = &handlers->handlers[i];
        struct section section = {
            .thread = handler->thread,
            .first = handler->first,
            .last = handler->last,
            .around = TRACE_NONE,
            .waits = true,
            .handler = (uint32_t)i,
            .ended = true,
            .kind = handler->function,
        };
        uint32_t number;
        int r = get_resource(reading, reading->trace->threads[handler->thread].process, handler->pool, true,
                             &section.resource);

        if (r == 0)
            r = add_section(reading->contention, &section, &number);
        if (r < 0)
            return r;
    }
    return 0;
}

static int compare_sections(const void *a, const void *b, void *context)
{
    const struct section *sections = context;
    const struct section *first = &sections[*(const uint32_t *)a], *second = &sections[*(const uint32_t *)b];

    if (first->thread != second->thread)
        return first->thread < second->thread ? -1 : 1;
    return first->first < second->first ? -1 : first->first > second->first;
}

static void release_reading(struct reading *reading)
{
    struct resource_key *key = NULL, *next = NULL;

    HASH_ITER (hh, reading->keys, key, next) {
        HASH_DEL(reading->keys, key);
        free(key);
    }
    for (size_t i = 0; reading->held && i < reading->trace->thread_count; i++)
        free(reading->held[i].sections);
    free(reading->held);
}

int contention_find(const struct cascade_trace *trace, const struct handlers *handlers,
                    struct contention *ret_contention)
{
    CLEANUP(release_reading) struct reading reading = {.trace = trace, .contention = ret_contention};
    int r;

    *ret_contention = (struct contention){0};
    ret_contention->section_of = malloc((trace->count + 1) * sizeof(*ret_contention->section_of));
    reading.held = calloc(trace->thread_count + 1, sizeof(*reading.held));
    if (!ret_contention->section_of || !reading.held)
        return -ENOMEM;
    for (size_t i = 0; i < trace->count; i++)
        ret_contention->section_of[i] = TRACE_NONE;
    r = read_locks(&reading);
    if (r == 0)
        r = add_handlers(&reading, handlers);
    if (r == 0)
        note_amounts(&reading);
    for (size_t i = 0; r == 0 && i < ret_contention->resource_count; i++)
        qsort_r(ret_contention->resources[i].sections, ret_contention->resources[i].count, sizeof(uint32_t),
                compare_sections, ret_contention->sections);
    return r;
}

/* ------------------------------------------------------------------------------------------ rivals */

/* Whether some lock that both hold, not only to read, keeps the two sections apart. */
static bool has_gate(const struct contention *contention, const struct section *a, const struct section *b)
{
    const struct section *sections = contention->sections;

    for (uint32_t i = a->around; i != TRACE_NONE; i = sections[i].around) {
        if (sections[i].ended && sections[i].last < a->first)
            continue;
        for (uint32_t j = b->around; j != TRACE_NONE; j = sections[j].around)
            if (sections[i].resource == sections[j].resource && !(sections[i].shared && sections[j].shared) &&
                !(sections[j].ended && sections[j].last < b->last))
                return true;
    }
    return false;
}

/* Whether neither handler must begin before the other one, though no event of the other need be over by then.
 */
static bool may_begin_first(const struct causality *causality, const struct section *a,
                            const struct section *b)
{
    uint32_t begun_a = causality->begun[a->handler], begun_b = causality->begun[b->handler];
    uint32_t node_a = causality->node_of[a->first], node_b = causality->node_of[b->first];

    return !hb_before(causality->graph, begun_a == HB_NONE ? node_a : begun_a, node_b) &&
           !hb_before(causality->graph, begun_b == HB_NONE ? node_b : begun_b, node_a);
}

static bool can_delay(const struct contention *contention, const struct causality *causality,
                      const struct section *rival, const struct section *wanted, bool check)
{
    if (rival->shared && wanted->shared)
        return false;
    if (!check)
        return rival != wanted;
    if (wanted->handler != TRACE_NONE)
        return rival != wanted && may_begin_first(causality, rival, wanted);
    return events_concurrent(causality, rival->first, wanted->first) && !has_gate(contention, rival, wanted);
}

/* The kinds of one thread's sections that have been taken already, and how often. */
struct kinds {
    uint64_t kinds[32];
    unsigned taken[32];
    size_t count;
};

static bool is_enough(struct kinds *kinds, uint64_t kind)
{
    for (size_t i = 0; i < kinds->count; i++)
        if (kinds->kinds[i] == kind)
            return kinds->taken[i]++ >= CONTENTION_SAMPLES;
    if (kinds->count == ARRAY_SIZE(kinds->kinds))
        return true;
    kinds->kinds[kinds->count] = kind;
    kinds->taken[kinds->count++] = 1;
    return false;
}

/* Those of sections[0] to sections[count - 1], which are one thread's. */
static int add_rivals(const struct contention *contention, const struct causality *causality,
                      const struct section *wanted, bool check, const uint32_t *sections, size_t count,
                      uint32_t **rivals, size_t *rival_count, size_t *capacity)
{
    struct kinds kinds = {.count = 0};
    /* Of a thread's critical sections, those that must be over before, and those that must come after, are at
     * the two ends; handlers are in no order. */
    size_t low = 0, high = count;

    while (check && wanted->handler == TRACE_NONE && low < high) {
        size_t middle = low + (high - low) / 2;

        if (event_before(causality, contention->sections[sections[middle]].first, wanted->first))
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = low; i < count; i++) {
        const struct section *rival = &contention->sections[sections[i]];

        if (check && wanted->handler == TRACE_NONE && event_before(causality, wanted->first, rival->first))
            break;
        if (!can_delay(contention, causality, rival, wanted, check) || is_enough(&kinds, rival->kind))
            continue;
        if (array_reserve(rivals, capacity, *rival_count + 1) < 0)
            return -ENOMEM;
        (*rivals)[(*rival_count)++] = sections[i];
    }
    return 0;
}

int contention_rivals(const struct contention *contention, const struct causality *causality, uint32_t wanted,
                      bool check, uint32_t **rivals, size_t *count, size_t *capacity)
{
    const struct section *section = &contention->sections[wanted];
    const struct resource *resource = &contention->resources[section->resource];
    int r = 0;

    if (!section->waits)
        return 0;
    for (size_t i = 0, end; i < resource->count && r == 0; i = end) {
        uint32_t thread = contention->sections[resource->sections[i]].thread;

        for (end = i; end < resource->count; end++)
            if (contention->sections[resource->sections[end]].thread != thread)
                break;
        if (thread != section->thread || section->handler != TRACE_NONE)
            r = add_rivals(contention, causality, section, check, resource->sections + i, end - i, rivals,
                           count, capacity);
    }
    return r;
}
