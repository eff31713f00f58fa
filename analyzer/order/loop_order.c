/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/order/loop_order.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "image/arch/effects.h"
#include "image/flow/flow_values.h"

/* A place that every iteration of a loop changes by the same constant. */
struct counter {
    uint16_t place;
    uint8_t size;
    bool has_start;
    int64_t start, step;
};

struct known_loop {
    bool found;
    struct counter *counters;
    size_t count, capacity;
};

struct loop_order {
    struct flow_values *values;
    struct known_loop *loops; /* of the graph, in its order */
    uint32_t loop_count;
};

void loop_order_free(struct loop_order *loops)
{
    if (!loops)
        return;
    for (uint32_t i = 0; loops->loops && i < loops->loop_count; i++)
        free(loops->loops[i].counters);
    free(loops->loops);
    flow_values_free(loops->values);
    free(loops);
}

/* ---------------------------------------------------------------------------------------------- numbers */

/* As a signed number of `size` bytes. */
static int64_t wrapped(uint64_t value, uint8_t size)
{
    return size == 4 ? (int32_t)(uint32_t)value : (int64_t)value;
}

static int64_t difference(int64_t a, int64_t b, uint8_t size)
{
    return wrapped((uint64_t)a - (uint64_t)b, size);
}

bool loop_order_iterations(const struct loop_reading *reading, int64_t value, uint64_t *ret_iterations)
{
    int64_t distance = difference(value, reading->start, reading->value.size);

    if ((reading->step == -1 && distance == INT64_MIN) || distance % reading->step != 0 ||
        distance / reading->step < 0)
        return false;
    *ret_iterations = (uint64_t)(distance / reading->step);
    return true;
}

/* ---------------------------------------------------------------------------------------------- beginning */

/* Words of the frame that debug information knows as variables. */
static int vouch(struct order_code *code, const struct order_function *function, struct flow_values *values)
{
    AUTO_FREE struct frame_variable *variables = NULL;
    size_t count;
    int r =
        image_frame_variables(order_code_image(code, function->image), function->entry, &variables, &count);

    for (size_t i = 0; r == 0 && i < count; i++) {
        if (variables[i].base == FRAME_VARIABLE_CFA)
            flow_values_vouch(values, variables[i].offset + CALL_PUSHES, variables[i].size);
        else if (variables[i].base == FRAME_VARIABLE_NEAR &&
                 variables[i].number == register_in_dwarf(REGISTER_FRAME))
            flow_values_vouch(values, variables[i].offset - CALL_PUSHES,
                              variables[i].size); /* the frame pointer, as functions begin */
    }
    return r;
}

static int begin(struct order_code *code, struct order_function *function)
{
    const struct elf_image_facts *facts = elf_image_facts(order_code_image(code, function->image));
    struct loop_order *loops = calloc(1, sizeof(*loops));
    int r = loops ? 0 : -ENOMEM;

    if (r == 0) {
        loops->loop_count = function->graph->loop_count;
        loops->loops = calloc(loops->loop_count + 1, sizeof(*loops->loops));
        r = loops->loops ? flow_values_new(function->graph, !facts->is_go, &loops->values, NULL) : -ENOMEM;
    }
    if (r == 0)
        r = vouch(code, function, loops->values);
    if (r < 0)
        loop_order_free(loops);
    else
        function->loops = loops;
    return r;
}

/* ---------------------------------------------------------------------------------------------- counters */

/* What the place holds at the end of a block that closes the loop, seen from the beginning of the iteration.
 */
static bool is_step(const struct flow_value *value, size_t place)
{
    return value->kind == FLOW_VALUE_SUM && value->place == place && value->size >= 4 &&
           value->constant != 0 && place != FLOW_PLACE_FRAME && place != REGISTER_STACK;
}

static int add_counter(struct known_loop *known, size_t place, const struct flow_value *value)
{
    if (array_reserve(&known->counters, &known->capacity, known->count + 1) < 0)
        return -ENOMEM;
    known->counters[known->count++] =
        (struct counter){.place = (uint16_t)place,
                         .size = value->size,
                         .step = wrapped((uint64_t)value->constant, value->size)};
    return 0;
}

/* Keeps those counters that this way through the body changes just so, too. */
static void keep_agreeing(struct known_loop *known, const struct flow_value *state)
{
    size_t kept = 0;

    for (size_t i = 0; i < known->count; i++) {
        struct counter counter = known->counters[i];
        const struct flow_value *value = &state[counter.place];

        if (!is_step(value, counter.place) || difference(value->constant, counter.step, 4) != 0)
            continue;
        if (value->size < counter.size)
            counter.size = value->size;
        known->counters[kept++] = counter;
    }
    known->count = kept;
}

static int find_steps(struct loop_order *loops, const struct flow_graph *graph, uint32_t loop,
                      struct flow_value *state)
{
    struct known_loop *known = &loops->loops[loop];
    uint32_t header = graph->loops[loop].header;
    bool first = true;

    for (uint32_t block = 0; block < graph->block_count; block++) {
        const uint32_t *next = flow_graph_next(graph, block);

        if (!flow_graph_in_loop(graph, loop, block))
            continue;
        for (uint32_t k = 0; k < graph->blocks[block].nexts; k++) {
            if (next[k] != header || !flow_values_after_block(loops->values, block, state))
                continue;
            if (!first)
                keep_agreeing(known, state);
            for (size_t place = 0; first && place < flow_values_places(loops->values); place++)
                if (is_step(&state[place], place) && add_counter(known, place, &state[place]) < 0)
                    return -ENOMEM;
            first = false;
        }
    }
    return 0;
}

/* The constants that the counters begin with, on every way into the loop. */
static void find_starts(struct loop_order *loops, const struct flow_graph *graph, uint32_t loop,
                        struct flow_value *state)
{
    struct known_loop *known = &loops->loops[loop];
    uint32_t header = graph->loops[loop].header;
    bool first = true;

    for (uint32_t block = 0; block < graph->block_count; block++) {
        const uint32_t *next = flow_graph_next(graph, block);

        for (uint32_t k = 0; k < graph->blocks[block].nexts; k++) {
            if (next[k] != header || flow_graph_in_loop(graph, loop, block) ||
                !flow_values_after_block(loops->values, block, state))
                continue;
            for (size_t i = 0; i < known->count; i++) {
                struct counter *counter = &known->counters[i];
                const struct flow_value *value = &state[counter->place];
                bool fits = value->kind == FLOW_VALUE_CONSTANT && value->size >= 4;

                counter->has_start =
                    fits && (first || (counter->has_start &&
                                       difference(value->constant, counter->start, counter->size) == 0));
                counter->start = value->constant;
            }
            first = false;
        }
    }
}

static int find_counters(struct loop_order *loops, const struct flow_graph *graph, uint32_t loop)
{
    struct known_loop *known = &loops->loops[loop];
    AUTO_FREE struct flow_value *state = NULL;
    size_t kept = 0;
    int r;

    if (known->found)
        return 0;
    r = flow_values_follow(loops->values, loop);
    state = calloc(flow_values_places(loops->values), sizeof(*state));
    if (r < 0 || !state || find_steps(loops, graph, loop, state) < 0)
        return -ENOMEM;
    if (known->count > 0 && flow_values_follow(loops->values, FLOW_NONE) < 0)
        return -ENOMEM;
    if (known->count > 0)
        find_starts(loops, graph, loop, state);
    for (size_t i = 0; i < known->count; i++)
        if (known->counters[i].has_start)
            known->counters[kept++] = known->counters[i];
    known->count = kept;
    known->found = true;
    return 0;
}

/* ---------------------------------------------------------------------------------------------- readings */

/* Whether the place can be read of a thread that stands there. */
static bool is_readable(const struct loop_order *loops, size_t place, bool innermost, bool calls_keep)
{
    const struct flow_slot *slots;
    size_t count;

    if (place < FLOW_PLACE_FRAME)
        return place != REGISTER_STACK &&
               (innermost || (calls_keep && (register_is_kept((enum machine_register)place))));
    slots = flow_values_slots(loops->values, &count);
    return place >= FLOW_PLACE_SLOTS && !slots[place - FLOW_PLACE_SLOTS].shared;
}

static void set_value(const struct loop_order *loops, size_t place, uint8_t size, struct frame_value *value)
{
    const struct flow_slot *slots;
    size_t count;

    *value = (struct frame_value){.size = size, .is_signed = true};
    if (place < FLOW_PLACE_FRAME) {
        value->kind = FRAME_REGISTER;
        value->number = register_in_dwarf((enum machine_register)place);
        return;
    }
    slots = flow_values_slots(loops->values, &count);
    value->kind = FRAME_CFA;
    value->offset = slots[place - FLOW_PLACE_SLOTS].offset - CALL_PUSHES;
}

/* Of those that can be read, the one that needs the least to be known: a word of the frame before a register,
 * for it is there even when registers were not restored. */
static bool choose(const struct loop_order *loops, const struct known_loop *known,
                   const struct flow_value *state, bool innermost, bool calls_keep,
                   struct loop_reading *reading)
{
    for (size_t at = flow_values_places(loops->values); at-- > 0;) {
        const struct flow_value *value = &state[at];

        if (value->kind != FLOW_VALUE_SUM || !is_readable(loops, at, innermost, calls_keep))
            continue;
        for (size_t i = 0; i < known->count; i++) {
            const struct counter *counter = &known->counters[i];
            uint8_t size = value->size < counter->size ? value->size : counter->size;

            if (counter->place != value->place || size < 4)
                continue;
            set_value(loops, at, size, &reading->value);
            reading->step = wrapped((uint64_t)counter->step, size);
            reading->start = wrapped((uint64_t)counter->start + (uint64_t)value->constant, size);
            return true;
        }
    }
    return false;
}

/* Which variable of the source it is that is read. */
static int find_name(struct order_code *code, const struct order_function *function, uint64_t address,
                     struct loop_reading *reading)
{
    AUTO_FREE struct frame_variable *variables = NULL;
    size_t count;
    int r = image_frame_variables(order_code_image(code, function->image), address, &variables, &count);

    for (size_t i = 0; r == 0 && i < count; i++) {
        const struct frame_variable *variable = &variables[i];
        bool same = false;

        if (reading->value.kind == FRAME_REGISTER)
            same = variable->base == FRAME_VARIABLE_REGISTER && variable->number == reading->value.number;
        else if (variable->base == FRAME_VARIABLE_CFA)
            same = variable->offset == reading->value.offset;
        else if (variable->base == FRAME_VARIABLE_NEAR && variable->number == 6)
            same = variable->offset - 16 == reading->value.offset;
        if (same)
            reading->name = variable->name;
    }
    return r;
}

int loop_order_reading(struct order_code *code, struct order_function *function, uint32_t loop,
                       uint64_t address, bool innermost, struct loop_reading *ret_reading)
{
    AUTO_FREE struct flow_value *state = NULL;
    struct loop_reading reading = {0};
    const struct loop_order *loops;
    bool calls_keep;
    int r = function->loops ? 0 : begin(code, function);

    if (!flow_graph_is_closed(function->graph))
        return -ENOENT;
    if (r == 0)
        r = find_counters(function->loops, function->graph, loop);
    if (r < 0)
        return r;
    loops = function->loops;
    if (loops->loops[loop].count == 0)
        return -ENOENT;
    if (flow_values_follow(loops->values, loop) < 0)
        return -ENOMEM;
    state = calloc(flow_values_places(loops->values), sizeof(*state));
    if (!state)
        return -ENOMEM;
    calls_keep = !elf_image_facts(order_code_image(code, function->image))->is_go;
    if (!flow_values_before(loops->values, address, state) ||
        !choose(loops, &loops->loops[loop], state, innermost, calls_keep, &reading))
        return -ENOENT;
    r = find_name(code, function, address, &reading);
    if (r == 0)
        *ret_reading = reading;
    return r;
}
