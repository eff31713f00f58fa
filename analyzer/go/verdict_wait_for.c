/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who waits for whom, among stuck goroutines. Nothing is guessed: a lock's holder is known; a channel's other
 * side is only known when, of the goroutines that live, a single one has ever been there.
 *
 * The shortest cycle: goroutines that no cycle can go through (they wait for nobody, or nobody waits for
 * them) are taken away until none is left, then a breadth-first search from each of the rest, never deeper
 * than the best cycle so far.
 */
#include <errno.h>
#include <stdlib.h>

#include "analyzer/go/verdict_state.h"
#include "base/array.h"
#include "base/cleanup.h"

enum { MOST_HOLDERS = 64 };

struct edges {
    struct go_wait_for *items; /* by `goroutine` */
    size_t count, capacity;
};

/* ------------------------------------------------------------------------------------------ edges */

/* Only to stuck goroutines: a cycle has no others. */
static int add_edge(const struct judgement *judgement, struct edges *edges, struct go_wait_for edge)
{
    if (!is_stuck(judgement_find(judgement, edge.on)))
        return 0;
    if (array_reserve(&edges->items, &edges->capacity, edges->count + 1) < 0)
        return -ENOMEM;
    edges->items[edges->count++] = edge;
    return 0;
}

static const struct lock_hold *held_by(const struct judgement *judgement, uint64_t goroutine, uint64_t object)
{
    const struct go_goroutine *holder = go_replay_goroutine(judgement->replay, goroutine);

    for (size_t i = 0; holder && i < holder->held_count; i++)
        if (holder->held[i].object == object)
            return &holder->held[i];
    return NULL;
}

static int add_holders(const struct judgement *judgement, const struct suspect *suspect, struct edges *edges)
{
    uint64_t holders[MOST_HOLDERS], object = suspect->waits->object;
    size_t count = go_replay_holders(judgement->replay, object, holders, MOST_HOLDERS);
    bool behind_writer = waits_behind_writer(judgement, suspect);
    int r = 0;

    for (size_t i = 0; r == 0 && i < count && i < MOST_HOLDERS; i++) {
        const struct lock_hold *held = held_by(judgement, holders[i], object);

        if (held && !behind_writer)
            r = add_edge(judgement, edges,
                         (struct go_wait_for){.goroutine = suspect->outcome.goroutine,
                                              .on = holders[i],
                                              .object = object,
                                              .reason = GO_WAIT_FOR_HOLDS,
                                              .site = held->site,
                                              .ns = held->ns});
    }
    for (size_t i = 0; r == 0 && behind_writer && i < judgement->count; i++) {
        const struct suspect *writer = &judgement->suspects[i];

        if (!writer->waits || writer->waits->object != object ||
            writer->waits->operation != GO_OP_RWMUTEX_LOCK)
            continue;
        r = add_edge(judgement, edges,
                     (struct go_wait_for){.goroutine = suspect->outcome.goroutine,
                                          .on = writer->outcome.goroutine,
                                          .object = object,
                                          .reason = GO_WAIT_FOR_WRITER,
                                          .site = writer->waits->site,
                                          .ns = writer->waits->ns});
    }
    return r;
}

/* The only living goroutine, but for the one that waits, that has been on the other side; NULL: none, or not
 * the only one. */
static const struct go_user *only_peer(const struct judgement *judgement, uint64_t goroutine, uint64_t key,
                                       uint64_t opposite)
{
    const struct go_object *object = key ? go_replay_object(judgement->replay, key) : NULL;
    const struct go_user *only = NULL;

    if (!object || object->more_users)
        return NULL;
    for (size_t i = 0; i < object->user_count; i++) {
        const struct go_user *user = &object->users[i];

        if (user->goroutine == goroutine || !(user->operations & opposite) ||
            !judgement_find(judgement, user->goroutine))
            continue;
        if (only)
            return NULL;
        only = user;
    }
    return only;
}

static int add_peer(const struct judgement *judgement, const struct suspect *suspect, uint64_t object,
                    enum go_op operation, struct edges *edges)
{
    uint64_t goroutine = suspect->outcome.goroutine;
    const struct go_user *peer = only_peer(judgement, goroutine, object, opposite_of(operation));

    if (!peer)
        return 0;
    return add_edge(judgement, edges,
                    (struct go_wait_for){
                        .goroutine = goroutine,
                        .on = peer->goroutine,
                        .object = object,
                        .reason = operation == GO_OP_COND_WAIT ? GO_WAIT_FOR_SIGNALS : GO_WAIT_FOR_PEER,
                        .site = peer->site,
                        .ns = peer->ns,
                    });
}

static enum go_op case_operation(const struct go_select_case *select_case)
{
    return select_case->send ? GO_OP_CHAN_SEND : GO_OP_CHAN_RECV;
}

/* A select continues with any of its cases: it waits for the others only if each case has its peer. */
static int add_cases(const struct judgement *judgement, const struct suspect *suspect, struct edges *edges)
{
    const struct go_action *select = suspect->waits;
    int r = 0;

    for (size_t i = 0; i < select->case_count; i++)
        if (select->cases[i].object &&
            !only_peer(judgement, suspect->outcome.goroutine, select->cases[i].object,
                       opposite_of(case_operation(&select->cases[i]))))
            return 0;
    for (size_t i = 0; r == 0 && i < select->case_count; i++)
        r = add_peer(judgement, suspect, select->cases[i].object, case_operation(&select->cases[i]), edges);
    return r;
}

static int add_adders(const struct judgement *judgement, const struct suspect *suspect, struct edges *edges)
{
    const struct go_object *object = go_replay_object(judgement->replay, suspect->waits->object);
    int r = 0;

    for (size_t i = 0; r == 0 && object && object->counter_known && i < object->user_count; i++) {
        const struct go_user *user = &object->users[i];

        if (user->goroutine == suspect->outcome.goroutine || user->added <= 0)
            continue;
        r = add_edge(judgement, edges,
                     (struct go_wait_for){.goroutine = suspect->outcome.goroutine,
                                          .on = user->goroutine,
                                          .object = object->object,
                                          .reason = GO_WAIT_FOR_ADDED,
                                          .site = user->site,
                                          .ns = user->ns});
    }
    return r;
}

static int add_edges(const struct judgement *judgement, const struct suspect *suspect, struct edges *edges)
{
    if (!is_stuck(suspect) || suspect->silent || !suspect->waits)
        return 0;
    switch (suspect->waits->operation) {
    case GO_OP_SELECT:
        return add_cases(judgement, suspect, edges);
    case GO_OP_CHAN_SEND:
    case GO_OP_CHAN_RECV:
    case GO_OP_CHAN_RANGE:
    case GO_OP_COND_WAIT:
        return add_peer(judgement, suspect, suspect->waits->object, suspect->waits->operation, edges);
    case GO_OP_WAITGROUP_WAIT:
        return add_adders(judgement, suspect, edges);
    default:
        return add_holders(judgement, suspect, edges);
    }
}

/* ------------------------------------------------------------------------------------------ searching */

struct search {
    const struct judgement *judgement;
    const struct edges *edges;
    size_t *first;   /* for each suspect: its first edge; one more at the end */
    size_t *waiting; /* for each suspect: edges that lead to it and are left */
    size_t *left;    /* and its own that are left */
    bool *gone;
    size_t *reached_by; /* the edge that the search came along */
    size_t *queue;
    uint32_t *round; /* of the search that reached it */
};

static size_t index_of(const struct search *search, uint64_t goroutine)
{
    return (size_t)(judgement_find(search->judgement, goroutine) - search->judgement->suspects);
}

static void search_release(struct search *search)
{
    free(search->first);
    free(search->waiting);
    free(search->left);
    free(search->gone);
    free(search->reached_by);
    free(search->queue);
    free(search->round);
}

static int search_init(struct search *search)
{
    size_t count = search->judgement->count, edge = 0;

    search->first = calloc(count + 1, sizeof(size_t));
    search->waiting = calloc(count + 1, sizeof(size_t));
    search->left = calloc(count + 1, sizeof(size_t));
    search->gone = calloc(count + 1, sizeof(bool));
    search->reached_by = calloc(count + 1, sizeof(size_t));
    search->queue = calloc(count + 1, sizeof(size_t));
    search->round = calloc(count + 1, sizeof(uint32_t));
    if (!search->first || !search->waiting || !search->left || !search->gone || !search->reached_by ||
        !search->queue || !search->round)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        search->first[i] = edge;
        for (; edge < search->edges->count &&
               search->edges->items[edge].goroutine == search->judgement->suspects[i].outcome.goroutine;
             edge++)
            search->waiting[index_of(search, search->edges->items[edge].on)]++;
        search->left[i] = edge - search->first[i];
    }
    search->first[count] = edge;
    return 0;
}

/* Takes a goroutine away that waits for nobody, and those that wait for it alone. */
static void take_away(struct search *search, size_t *ret_changes)
{
    for (size_t i = 0; i < search->judgement->count; i++) {
        if (search->gone[i] || (search->left[i] && search->waiting[i]))
            continue;
        search->gone[i] = true;
        ++*ret_changes;
        for (size_t edge = search->first[i]; edge < search->first[i + 1]; edge++)
            search->waiting[index_of(search, search->edges->items[edge].on)]--;
    }
    for (size_t i = 0; i < search->judgement->count; i++) {
        search->left[i] = 0;
        for (size_t edge = search->first[i]; !search->gone[i] && edge < search->first[i + 1]; edge++)
            search->left[i] += !search->gone[index_of(search, search->edges->items[edge].on)];
    }
}

/* The length of the shortest cycle through `start` that is shorter than `limit`; 0: none. Its edges are found
 * by going back from `*ret_last`. */
static size_t shortest_through(struct search *search, size_t start, size_t limit, size_t *ret_last)
{
    size_t begin = 0, end = 0, level_end = 1, length = 1;

    search->queue[end++] = start;
    for (; begin < end && length < limit; begin++) {
        size_t at = search->queue[begin];

        for (size_t edge = search->first[at]; edge < search->first[at + 1]; edge++) {
            size_t to = index_of(search, search->edges->items[edge].on);

            if (to == start) {
                *ret_last = edge;
                return length;
            }
            if (search->gone[to] || search->round[to] == start + 1)
                continue;
            search->round[to] = (uint32_t)start + 1;
            search->reached_by[to] = edge;
            search->queue[end++] = to;
        }
        if (begin + 1 == level_end) {
            level_end = end;
            length++;
        }
    }
    return 0;
}

/* The edges of the cycle, from `start` on. */
static int collect(const struct search *search, size_t start, size_t last, size_t length,
                   struct go_wait_for **ret_cycle)
{
    struct go_wait_for *cycle = calloc(length, sizeof(*cycle));
    size_t edge = last;

    if (!cycle)
        return -ENOMEM;
    for (size_t i = length; i-- > 0;) {
        size_t from;

        cycle[i] = search->edges->items[edge];
        from = index_of(search, cycle[i].goroutine);
        if (from != start)
            edge = search->reached_by[from];
    }
    free(*ret_cycle);
    *ret_cycle = cycle;
    return 0;
}

static int find_shortest(struct search *search, struct go_wait_for **ret_cycle, size_t *ret_count)
{
    size_t limit = search->judgement->count + 1, changes;
    int r = 0;

    do {
        changes = 0;
        take_away(search, &changes);
    } while (changes);
    for (size_t i = 0; r == 0 && i < search->judgement->count && limit > 1; i++) {
        size_t last = 0, length = search->gone[i] ? 0 : shortest_through(search, i, limit, &last);

        if (!length)
            continue;
        r = collect(search, i, last, length, ret_cycle);
        limit = *ret_count = length;
    }
    return r;
}

int judgement_cycle(const struct judgement *judgement, struct go_wait_for **ret_cycle, size_t *ret_count)
{
    struct edges edges = {0};
    struct search search = {.judgement = judgement, .edges = &edges};
    int r = 0;

    for (size_t i = 0; r == 0 && i < judgement->count; i++)
        r = add_edges(judgement, &judgement->suspects[i], &edges);
    if (r == 0 && edges.count)
        r = search_init(&search);
    if (r == 0 && edges.count)
        r = find_shortest(&search, ret_cycle, ret_count);
    search_release(&search);
    free(edges.items);
    return r;
}
