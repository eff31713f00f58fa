/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/loops/thread_nest.h"

#include <errno.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"

DEFINE_CLEANUP(cleanup_builder, struct nlr_builder *, nlr_builder_free)

void nest_release(struct thread_nest *nest)
{
    loop_table_release(&nest->table);
    free(nest->loops);
    *nest = (struct thread_nest){0};
}

/* ------------------------------------------------------------------------------------------ recognition */

static int push_calls(struct nlr_builder *builder, struct loop_table *table, struct event_iter *iter,
                      struct error *err)
{
    struct event event;
    int r;

    while ((r = event_iter_next(iter, &event, err)) == 0) {
        if (event.kind == EVENT_RETURN)
            continue;
        r = nlr_builder_push(builder,
                             event.kind == EVENT_CALL ? nlr_symbol(event.function) : loop_table_lost(table));
        if (r < 0)
            return error_no_memory(err);
    }
    return r < 0 ? r : 0;
}

/* Adds the loops among the elements and in their bodies; *call is the first call of the elements, and then
 * the one behind them. */
static int add_loops(struct thread_nest *nest, const struct nlr_element *elements, size_t count,
                     uint32_t level, uint64_t *call)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t calls = nlr_events(&nest->table, &elements[i], 1), inside = *call;
        int r = 0;

        if (elements[i].kind == NLR_LOOP) {
            if (array_reserve(&nest->loops, &nest->capacity, nest->count + 1))
                return -ENOMEM;
            nest->loops[nest->count++] = (struct nest_loop){
                .element = elements[i], .level = level, .first_call = *call, .last_call = *call + calls - 1};
            r = add_loops(nest, loop_table_elements(&nest->table, elements[i].id),
                          nest->table.bodies[elements[i].id].length, level + 1, &inside);
        }
        if (r < 0)
            return r;
        *call += calls;
    }
    return 0;
}

int nest_read(struct thread_nest *nest, struct event_iter *iter, const struct nlr_options *options,
              struct error *err)
{
    CLEANUP(cleanup_builder) struct nlr_builder *builder = NULL;
    struct nlr_sequence sequence = {0};
    uint64_t call = 0;
    int r;

    nest_release(nest);
    r = nlr_builder_new(&nest->table, options, &builder);
    if (r == -EINVAL)
        return error_say(err, r, "loops: max_body is 1 to %u, min_repeats 2 to %u", NLR_MAX_BODY,
                         NLR_MAX_REPEATS);
    if (r < 0)
        return error_no_memory(err);
    r = push_calls(builder, &nest->table, iter, err);
    if (r < 0)
        return r;
    r = nlr_builder_take(builder, &sequence);
    if (r == 0)
        r = add_loops(nest, sequence.elements, sequence.count, 0, &call);
    free(sequence.elements);
    return r < 0 ? error_no_memory(err) : 0;
}

/* ------------------------------------------------------------------------------------------ places */

/* The first or the last call of a loop. */
struct end {
    uint64_t call;
    size_t loop;
    bool last;
};

static int compare_ends(const void *left, const void *right)
{
    const struct end *a = left, *b = right;

    return (a->call > b->call) - (a->call < b->call);
}

static void set_end(struct thread_nest *nest, const struct end *end, const struct event *event)
{
    struct nest_loop *loop = &nest->loops[end->loop];

    *(end->last ? &loop->end_seq : &loop->seq) = event->seq;
    *(end->last ? &loop->end_ns : &loop->ns) = event->ns;
}

int nest_place(struct thread_nest *nest, struct event_iter *iter, struct error *err)
{
    AUTO_FREE struct end *ends = malloc((2 * nest->count + 1) * sizeof(*ends));
    uint64_t call = 0;
    struct event event;
    size_t at = 0;
    int r = 0;

    if (!ends)
        return error_no_memory(err);
    for (size_t i = 0; i < nest->count; i++) {
        ends[2 * i] = (struct end){nest->loops[i].first_call, i, false};
        ends[2 * i + 1] = (struct end){nest->loops[i].last_call, i, true};
    }
    qsort(ends, 2 * nest->count, sizeof(*ends), compare_ends);
    while (at < 2 * nest->count && (r = event_iter_next(iter, &event, err)) == 0) {
        if (event.kind != EVENT_CALL)
            continue;
        for (; at < 2 * nest->count && ends[at].call == call; at++)
            set_end(nest, &ends[at], &event);
        call++;
    }
    return r < 0 ? r : 0;
}

uint32_t nest_first_function(const struct thread_nest *nest, const struct nest_loop *loop)
{
    struct nlr_element element = loop->element;

    while (element.kind == NLR_LOOP)
        element = *loop_table_elements(&nest->table, element.id);
    return element.id;
}
