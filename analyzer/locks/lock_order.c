/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/locks/lock_order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "base/array.h"

enum { MOST_GATES = 8 };

struct gate {
    uint64_t object;
    bool shared;
};

struct dependency {
    struct lock_dependency public;
    struct gate gates[MOST_GATES]; /* the other locks that the agent held */
    size_t gate_count;
    uint64_t first, last; /* when it was met, in events of the process */
    bool stuck;           /* the agent never got the lock */
};

struct dependencies {
    struct dependency *items;
    size_t count, capacity;
};

/* One agent has waited for the end of another one. */
struct join {
    uint64_t agent, by, when;
};

/* When an agent was made, in events of the process. */
struct life {
    uint64_t agent, begin;
    UT_hash_handle hh;
};

struct lock_order {
    struct dependencies locks;   /* of one lock while another one is held */
    struct dependencies rereads; /* held and wanted are one lock, both to read */
    struct dependencies writes;  /* of a RWMutex, `held` 0 */
    struct life *lives;          /* of agents with dependencies, and of those that live */
    struct join *joins;
    size_t join_count, join_capacity;
    uint64_t events;
    bool incomplete;
};

int lock_order_new(struct lock_order **ret_order)
{
    struct lock_order *order = calloc(1, sizeof(*order));

    if (!order)
        return -ENOMEM;
    *ret_order = order;
    return 0;
}

void lock_order_free(struct lock_order *order)
{
    struct life *life, *next;

    if (!order)
        return;
    HASH_ITER (hh, order->lives, life, next) {
        HASH_DEL(order->lives, life);
        free(life);
    }
    free(order->locks.items);
    free(order->rereads.items);
    free(order->writes.items);
    free(order->joins);
    free(order);
}

bool lock_order_complete(const struct lock_order *order)
{
    return !order->incomplete;
}

/* ------------------------------------------------------------------------------------------ lives */

static struct life *find_life(const struct lock_order *order, uint64_t agent)
{
    struct life *life;

    HASH_FIND(hh, order->lives, &agent, sizeof(agent), life);
    return life;
}

int lock_order_begin(struct lock_order *order, uint64_t agent)
{
    struct life *life;

    if (find_life(order, agent))
        return 0;
    life = calloc(1, sizeof(*life));
    if (!life)
        return -ENOMEM;
    life->agent = agent;
    life->begin = order->events;
    HASH_ADD(hh, order->lives, agent, sizeof(life->agent), life);
    if (!find_life(order, agent)) {
        free(life);
        return -ENOMEM;
    }
    return 0;
}

static bool has_any(const struct dependencies *dependencies, uint64_t agent)
{
    for (size_t i = 0; i < dependencies->count; i++)
        if (dependencies->items[i].public.agent == agent)
            return true;
    return false;
}

/* What has no dependencies needs no life. */
void lock_order_end(struct lock_order *order, uint64_t agent)
{
    struct life *life = find_life(order, agent);

    if (!life || has_any(&order->locks, agent) || has_any(&order->rereads, agent) ||
        has_any(&order->writes, agent))
        return;
    HASH_DEL(order->lives, life);
    free(life);
}

void lock_order_tick(struct lock_order *order)
{
    order->events++;
}

int lock_order_join(struct lock_order *order, uint64_t agent, uint64_t by)
{
    struct join *join;

    if (array_reserve(&order->joins, &order->join_capacity, order->join_count + 1))
        return -ENOMEM;
    join = &order->joins[order->join_count++];
    *join = (struct join){agent, by, order->events};
    return 0;
}

/* ------------------------------------------------------------------------------------------ dependencies */

static bool same_dependency(const struct dependency *a, const struct dependency *b)
{
    const struct lock_dependency *x = &a->public, *y = &b->public;

    if (x->agent != y->agent || x->held != y->held || x->wanted != y->wanted ||
        x->held_site != y->held_site || x->wanted_site != y->wanted_site ||
        x->held_shared != y->held_shared || x->wanted_shared != y->wanted_shared ||
        a->gate_count != b->gate_count)
        return false;
    for (size_t i = 0; i < a->gate_count; i++)
        if (a->gates[i].object != b->gates[i].object || a->gates[i].shared != b->gates[i].shared)
            return false;
    return true;
}

static int add_dependency(struct lock_order *order, struct dependencies *dependencies,
                          const struct dependency *dependency)
{
    for (size_t i = 0; i < dependencies->count; i++) {
        struct dependency *known = &dependencies->items[i];

        if (!same_dependency(known, dependency))
            continue;
        known->last = dependency->last;
        known->stuck |= dependency->stuck;
        return 0;
    }
    if (dependencies->count == MOST_LOCK_DEPENDENCIES) {
        order->incomplete = true;
        return 0;
    }
    if (array_reserve(&dependencies->items, &dependencies->capacity, dependencies->count + 1))
        return -ENOMEM;
    dependencies->items[dependencies->count++] = *dependency;
    return 0;
}

/* What the agent holds, but for what it takes and `but`. */
static void add_gates(struct dependency *dependency, const struct lock_taking *taking,
                      const struct lock_hold *but)
{
    for (size_t i = 0; i < taking->held_count && dependency->gate_count < MOST_GATES; i++)
        if (&taking->held[i] != but && taking->held[i].object != taking->object)
            dependency->gates[dependency->gate_count++] =
                (struct gate){taking->held[i].object, taking->held[i].shared};
}

/* The agent takes a lock while it holds `held`; NULL: that does not matter. */
static struct dependency make_dependency(const struct lock_order *order, const struct lock_taking *taking,
                                         const struct lock_hold *held)
{
    struct dependency dependency = {
        .public = {.agent = taking->agent,
                   .wanted = taking->object,
                   .wanted_site = taking->site,
                   .wanted_shared = taking->shared},
        .first = order->events,
        .last = order->events,
        .stuck = taking->stuck,
    };

    if (held) {
        dependency.public.held = held->object;
        dependency.public.held_site = held->site;
        dependency.public.held_shared = held->shared;
    }
    add_gates(&dependency, taking, held);
    return dependency;
}

static int add_held(struct lock_order *order, const struct lock_taking *taking, const struct lock_hold *held)
{
    struct dependency dependency = make_dependency(order, taking, held);

    if (held->object != taking->object)
        return add_dependency(order, &order->locks, &dependency);
    if (held != taking->taken && held->shared && taking->shared)
        return add_dependency(order, &order->rereads, &dependency);
    return 0;
}

int lock_order_take(struct lock_order *order, const struct lock_taking *taking)
{
    int r = 0;

    if (taking->writes) {
        struct dependency write = make_dependency(order, taking, NULL);

        r = add_dependency(order, &order->writes, &write);
    }
    for (size_t i = 0; !r && i < taking->held_count; i++)
        r = add_held(order, taking, &taking->held[i]);
    return r;
}

/* ------------------------------------------------------------------------------------------ cycles */

struct search {
    const struct lock_order *order;
    const struct dependency *steps[LONGEST_LOCK_CYCLE];
    struct lock_cycle *cycles;
    size_t count, capacity;
};

/* Whether `a` was all over before the agent of `b` was made, or before that one did `b`, since it waited for
 * the end of the other one first. An agent of which the beginning was not seen was there from the start. That
 * `a` came after the agent's end is a matter of the schedule. */
static bool precedes(const struct lock_order *order, const struct dependency *a, const struct dependency *b)
{
    const struct life *life = find_life(order, b->public.agent);

    if (life && a->last < life->begin)
        return true;
    for (size_t i = 0; i < order->join_count; i++)
        if (order->joins[i].agent == a->public.agent && order->joins[i].by == b->public.agent &&
            order->joins[i].when < b->first)
            return true;
    return false;
}

static bool could_meet(const struct lock_order *order, const struct dependency *a, const struct dependency *b)
{
    return !precedes(order, a, b) && !precedes(order, b, a);
}

/* A lock that both hold, and that keeps them apart. */
static bool have_gate(const struct dependency *a, const struct dependency *b)
{
    for (size_t i = 0; i < a->gate_count; i++)
        for (size_t j = 0; j < b->gate_count; j++)
            if (a->gates[i].object == b->gates[j].object && !(a->gates[i].shared && b->gates[j].shared))
                return true;
    return false;
}

/* `waits` has to wait when `holds` has its lock. */
static bool conflict(const struct dependency *waits, const struct dependency *holds)
{
    return waits->public.wanted == holds->public.held &&
           !(waits->public.wanted_shared && holds->public.held_shared);
}

/* Whether `next` can be where the chain already is. */
static bool fits(const struct search *search, size_t length, const struct dependency *next)
{
    for (size_t i = 0; i < length; i++) {
        const struct dependency *step = search->steps[i];

        if (step->public.agent == next->public.agent || step->public.held == next->public.held ||
            have_gate(step, next) || !could_meet(search->order, step, next))
            return false;
    }
    return conflict(search->steps[length - 1], next);
}

/* The sites of one cycle are those of the other, from wherever it begins. */
static bool same_sites(const struct lock_cycle *cycle, const struct search *search, size_t length)
{
    for (size_t turn = 0; cycle->count == length && turn < length; turn++) {
        size_t equal = 0;

        while (equal < length) {
            const struct lock_dependency *a = &cycle->steps[(turn + equal) % length];
            const struct lock_dependency *b = &search->steps[equal]->public;

            if (a->held_site != b->held_site || a->wanted_site != b->wanted_site)
                break;
            equal++;
        }
        if (equal == length)
            return true;
    }
    return false;
}

static int add_cycle(struct search *search, enum lock_danger danger, size_t length)
{
    struct lock_cycle *cycle;
    bool happened = true;

    for (size_t i = 0; i < length; i++)
        happened = happened && search->steps[i]->stuck;
    for (size_t i = 0; i < search->count; i++)
        if (search->cycles[i].danger == danger && same_sites(&search->cycles[i], search, length)) {
            search->cycles[i].happened |= happened;
            return 0;
        }
    if (array_reserve(&search->cycles, &search->capacity, search->count + 1))
        return -ENOMEM;
    cycle = &search->cycles[search->count++];
    memset(cycle, 0, sizeof(*cycle));
    cycle->danger = danger;
    cycle->count = length;
    cycle->happened = happened;
    for (size_t i = 0; i < length; i++)
        cycle->steps[i] = search->steps[i]->public;
    return 0;
}

/* Lengthens the chain by each dependency that was met after its first one: each cycle is found once. */
static int extend(struct search *search, size_t length)
{
    const struct lock_order *order = search->order;
    int r = 0;

    for (const struct dependency *next = search->steps[0] + 1;
         !r && next < order->locks.items + order->locks.count && search->count < MOST_LOCK_CYCLES; next++) {
        if (!fits(search, length, next))
            continue;
        search->steps[length] = next;
        if (conflict(next, search->steps[0]))
            r = add_cycle(search, LOCK_ORDER, length + 1);
        else if (length + 1 < LONGEST_LOCK_CYCLE)
            r = extend(search, length + 1);
    }
    return r;
}

/* Who reads again, and who writes the same lock meanwhile. */
static int find_rereads(struct search *search)
{
    const struct lock_order *order = search->order;
    int r = 0;

    for (size_t i = 0; i < order->rereads.count; i++)
        for (size_t j = 0; !r && j < order->writes.count && search->count < MOST_LOCK_CYCLES; j++) {
            const struct dependency *read = &order->rereads.items[i], *write = &order->writes.items[j];

            if (read->public.wanted != write->public.wanted || read->public.agent == write->public.agent ||
                have_gate(read, write) || !could_meet(order, read, write))
                continue;
            search->steps[0] = read;
            search->steps[1] = write;
            r = add_cycle(search, LOCK_READ_AGAIN, 2);
        }
    return r;
}

int lock_order_cycles(const struct lock_order *order, struct lock_cycle **ret_cycles, size_t *ret_count)
{
    struct search search = {.order = order};
    int r = 0;

    for (size_t i = 0; !r && i < order->locks.count; i++) {
        search.steps[0] = &order->locks.items[i];
        r = extend(&search, 1);
    }
    if (!r)
        r = find_rereads(&search);
    if (r < 0) {
        free(search.cycles);
        return r;
    }
    *ret_cycles = search.cycles;
    *ret_count = search.count;
    return 0;
}
