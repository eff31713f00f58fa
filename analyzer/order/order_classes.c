/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/order/order_classes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "analyzer/order/loop_order.h"
#include "base/array.h"

struct key {
    uint64_t place; /* its key in the tree */
    uint64_t known; /* a bit for each loop */
    uint64_t counts[ORDER_LOOPS_MAX];
};

struct class
{
    struct key key;
    uint32_t number;
    UT_hash_handle hh;
};

/* What there is to ask of threads that stand at a place; worked out when the first one does. */
struct place_facts {
    bool known;
    uint32_t depth; /* loops around it */
    struct {
        bool readable;
        struct loop_reading reading;
    } loops[ORDER_LOOPS_MAX];
};

struct order_classes {
    struct order_tree *order;
    const struct order_source *source;
    struct place_facts **facts; /* of each place twice: as a caller's, and as the innermost */
    struct class *by_key;
};

int order_classes_new(struct order_tree *order, const struct order_source *source,
                      struct order_classes **ret_classes)
{
    struct order_classes *classes = calloc(1, sizeof(*classes));

    if (!classes)
        return -ENOMEM;
    classes->order = order;
    classes->source = source;
    classes->facts = calloc(order->set->place_count * 2 + 1, sizeof(*classes->facts));
    if (!classes->facts) {
        free(classes);
        return -ENOMEM;
    }
    *ret_classes = classes;
    return 0;
}

void order_classes_free(struct order_classes *classes)
{
    struct class *class, *next;

    if (!classes)
        return;
    HASH_ITER (hh, classes->by_key, class, next) {
        HASH_DEL(classes->by_key, class);
        free(class);
    }
    for (size_t i = 0; i < classes->order->set->place_count * 2; i++)
        free(classes->facts[i]);
    free(classes->facts);
    free(classes);
}

/* ---------------------------------------------------------------------------------------------- places */

/* How the iterations of each loop around the place can be read from a thread. */
static int find_readings(struct order_classes *classes, const struct sample_place *place, bool innermost,
                         struct order_function *function, struct place_facts *facts)
{
    uint32_t loops[ORDER_LOOPS_MAX];

    facts->depth = order_loops_around(function->graph, place->address, loops);
    for (uint32_t i = 0; classes->source->frames && i < facts->depth; i++) {
        int r = loop_order_reading(classes->order->code, function, loops[i], place->address, innermost,
                                   &facts->loops[i].reading);

        if (r == -ENOMEM)
            return r;
        facts->loops[i].readable = r == 0;
    }
    return 0;
}

static int facts_of(struct order_classes *classes, uint32_t number, bool innermost,
                    const struct place_facts **ret_facts)
{
    const struct sample_place *place = &classes->order->set->places[number];
    struct place_facts **facts = &classes->facts[(size_t)number * 2 + innermost];
    struct order_function *function = NULL;
    int r = 0;

    if (!*facts) {
        *facts = calloc(1, sizeof(**facts));
        if (!*facts)
            return -ENOMEM;
        if (!(place->flags & SAMPLE_INLINED) && place->address != SAMPLE_NO_ADDRESS)
            function = order_code_function(classes->order->code, place);
        if (function && function->graph)
            r = find_readings(classes, place, innermost, function, *facts);
    }
    *ret_facts = *facts;
    return r;
}

/* Whether the thread has no physical frame behind this one. */
static bool is_innermost(const struct sample_set *set, size_t thread, size_t frame)
{
    for (size_t i = frame + 1; i < set->threads[thread].count; i++)
        if (!(sample_place_of(set, thread, i)->flags & SAMPLE_INLINED))
            return false;
    return true;
}

/* ---------------------------------------------------------------------------------------------- points */

static int add_point(struct order_tree *order, const struct order_point *point,
                     const struct order_variable *variables)
{
    if (array_reserve(&order->points, &order->point_capacity, order->point_count + 1) < 0 ||
        array_reserve(&order->variables, &order->variable_capacity, order->point_count + 1) < 0)
        return -ENOMEM;
    order->points[order->point_count] = *point;
    memcpy(order->variables[order->point_count], variables, sizeof(order->variables[0]));
    order->point_count++;
    return 0;
}

static int number_of(struct order_classes *classes, uint32_t place, const struct order_point *point,
                     const struct order_variable *variables, uint32_t *ret_class)
{
    struct class *class;
    struct key key;

    memset(&key, 0, sizeof(key));
    key.place = classes->order->tree->keys[place];
    for (uint32_t i = 0; i < point->depth && i < ORDER_LOOPS_MAX; i++) {
        key.known |= (uint64_t)point->iterations[i].known << i;
        key.counts[i] = point->iterations[i].known ? point->iterations[i].count : 0;
    }
    HASH_FIND(hh, classes->by_key, &key, sizeof(key), class);
    if (!class) {
        class = calloc(1, sizeof(*class));
        if (!class)
            return -ENOMEM;
        class->key = key;
        class->number = (uint32_t)classes->order->point_count;
        HASH_ADD(hh, classes->by_key, key, sizeof(class->key), class);
        if (!class->hh.tbl) {
            free(class);
            return -ENOMEM;
        }
        if (add_point(classes->order, point, variables) < 0)
            return -ENOMEM;
    }
    *ret_class = class->number;
    return 0;
}

/* What the source says of one loop. What cannot be read now is not known; that is no error. */
static int find_iteration(struct order_classes *classes, size_t thread, size_t frame, uint32_t index,
                          const struct place_facts *facts, struct order_iteration *iteration,
                          struct order_variable *variable)
{
    const struct order_source *source = classes->source;
    int r;

    if (source->iterations) {
        r = source->iterations(source->context, thread, frame, index + 1, &iteration->count);
        iteration->known = r == 0;
        return r == -ENOMEM ? r : 0;
    }
    if (!facts->loops[index].readable)
        return 0;
    r = source->frames->read(source->frames->context, thread, frame, &facts->loops[index].reading.value,
                             &variable->value);
    classes->order->values_read++;
    iteration->known =
        r == 0 && loop_order_iterations(&facts->loops[index].reading, variable->value, &iteration->count);
    variable->name = iteration->known ? facts->loops[index].reading.name : NULL;
    return r == -ENOMEM ? r : 0;
}

int order_classes_find(void *context, size_t thread, size_t frame, uint32_t *ret_class)
{
    struct order_classes *classes = context;
    const struct sample_set *set = classes->order->set;
    uint32_t place = set->stacks[set->threads[thread].first + frame];
    struct order_variable variables[ORDER_LOOPS_MAX] = {0};
    struct order_point point = {.address = set->places[place].address};
    const struct place_facts *facts;
    int r = facts_of(classes, place, is_innermost(set, thread, frame), &facts);

    if (r < 0)
        return r;
    point.depth = facts->depth;
    for (uint32_t i = 0; r == 0 && i < facts->depth; i++)
        r = find_iteration(classes, thread, frame, i, facts, &point.iterations[i], &variables[i]);
    return r < 0 ? r : number_of(classes, place, &point, variables, ret_class);
}
