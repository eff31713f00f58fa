/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/flow/flow_values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "image/arch/operands.h"
#include "image/arch/values.h"

struct variable {
    int64_t offset;
    uint8_t size;
};

struct flow_values {
    const struct flow_graph *graph;
    struct value_machine *machine;
    bool calls_keep;
    bool lost;               /* the stack pointer is not known somewhere, and is used */
    struct flow_slot *slots; /* followed: none before they are all found */
    size_t slot_count;
    struct flow_slot *found;
    size_t found_count, found_capacity;
    int64_t *escapes; /* where addresses of the frame are taken */
    size_t escape_count, escape_capacity;
    struct variable *variables;
    size_t variable_count, variable_capacity;
    bool settled;             /* slots are known, and which of them others may write */
    struct flow_value *entry; /* of the function's values, the stack and frame pointers of each block */
    struct flow_value *in;    /* of what was last followed: a row of places for each block */
    bool *reached;
    uint32_t loop; /* that was last followed */
};

static const struct flow_value unknown = {.kind = FLOW_VALUE_UNKNOWN};

/* ---------------------------------------------------------------------------------------------- life */

int flow_values_new(const struct flow_graph *graph, bool calls_keep, struct flow_values **ret_values,
                    struct error *err)
{
    AUTO_FLOW_VALUES struct flow_values *values = calloc(1, sizeof(*values));
    int r;

    if (!values)
        return error_no_memory(err), -ENOMEM;
    values->graph = graph;
    values->calls_keep = calls_keep;
    values->reached = calloc(graph->block_count, sizeof(*values->reached));
    values->entry = calloc((size_t)graph->block_count * 2, sizeof(*values->entry));
    if (!values->reached || !values->entry)
        return error_no_memory(err), -ENOMEM;
    r = value_machine_new(&values->machine, err);
    if (r == 0)
        *ret_values = take_pointer(values);
    return r;
}

void flow_values_free(struct flow_values *values)
{
    if (!values)
        return;
    value_machine_free(values->machine);
    free(values->found);
    free(values->escapes);
    free(values->variables);
    free(values->entry);
    free(values->in);
    free(values->reached);
    free(values);
}

void flow_values_vouch(struct flow_values *values, int64_t offset, uint8_t size)
{
    if (array_reserve(&values->variables, &values->variable_capacity, values->variable_count + 1) == 0)
        values->variables[values->variable_count++] = (struct variable){offset, size};
}

size_t flow_values_places(const struct flow_values *values)
{
    return FLOW_PLACE_SLOTS + values->slot_count;
}

const struct flow_slot *flow_values_slots(const struct flow_values *values, size_t *ret_count)
{
    *ret_count = values->slot_count;
    return values->slots;
}

/* ---------------------------------------------------------------------------------------------- following */

static struct flow_value *row_of(struct flow_values *values, uint32_t block)
{
    return values->in + block * flow_values_places(values);
}

/* The values behind `block`, from those before it. What it reaches in the frame goes to `note`, if there is
 * one. */
static int step_block(struct flow_values *values, uint32_t index, struct flow_value *state,
                      int (*note)(struct flow_values *values, const struct frame_touch *touch))
{
    const struct flow_block *block = &values->graph->blocks[index];
    struct frame_touch touches[2];

    for (size_t i = block->first; i < block->first + block->count; i++) {
        size_t count =
            value_machine_step(values->machine, &values->graph->instructions[i], values->slots,
                               values->slot_count, values->calls_keep, state, touches, &values->lost);

        for (size_t k = 0; note && k < count; k++)
            if (note(values, &touches[k]) < 0)
                return -ENOMEM;
    }
    return 0;
}

static bool meet(struct flow_value *value, const struct flow_value *other)
{
    if (value->kind == FLOW_VALUE_UNKNOWN)
        return false;
    if (value->kind != other->kind || value->place != other->place || value->constant != other->constant) {
        *value = unknown;
        return true;
    }
    if (other->size >= value->size)
        return false;
    value->size = other->size;
    return true;
}

/* What is known at the beginning of `block` from now on; whether that is less than before. */
static bool arrive(struct flow_values *values, uint32_t block, const struct flow_value *state)
{
    struct flow_value *row = row_of(values, block);
    size_t places = flow_values_places(values);
    bool changed = false;

    if (!values->reached[block]) {
        values->reached[block] = true;
        memcpy(row, state, places * sizeof(*row));
        return true;
    }
    for (size_t i = 0; i < places; i++)
        changed |= meet(&row[i], &state[i]);
    return changed;
}

/* Until nothing changes: from `first`, never back to the header of the loop that is followed and never out of
 * it. */
static int follow(struct flow_values *values, uint32_t first, const struct flow_value *start)
{
    const struct flow_graph *graph = values->graph;
    AUTO_FREE struct flow_value *state = calloc(flow_values_places(values) + 1, sizeof(*state));
    AUTO_FREE uint32_t *queue = calloc(graph->block_count, sizeof(*queue));
    AUTO_FREE bool *queued = calloc(graph->block_count, sizeof(*queued));
    uint32_t count = 0;

    if (!state || !queue || !queued)
        return -ENOMEM;
    arrive(values, first, start);
    queue[count++] = first;
    while (count > 0) {
        uint32_t block = queue[--count];
        const uint32_t *next = flow_graph_next(graph, block);

        queued[block] = false;
        memcpy(state, row_of(values, block), flow_values_places(values) * sizeof(*state));
        step_block(values, block, state, NULL);
        for (uint32_t k = 0; k < graph->blocks[block].nexts; k++) {
            bool outside = values->loop != FLOW_NONE &&
                           (next[k] == first || !flow_graph_in_loop(graph, values->loop, next[k]));

            if (outside || !arrive(values, next[k], state) || queued[next[k]])
                continue;
            queued[next[k]] = true;
            queue[count++] = next[k];
        }
    }
    return 0;
}

static int clear(struct flow_values *values)
{
    free(values->in);
    values->in = calloc(values->graph->block_count * flow_values_places(values) + 1, sizeof(*values->in));
    memset(values->reached, 0, values->graph->block_count * sizeof(*values->reached));
    return values->in ? 0 : -ENOMEM;
}

static struct flow_value itself(size_t place, uint8_t size)
{
    return (struct flow_value){.kind = FLOW_VALUE_SUM, .place = (uint16_t)place, .size = size};
}

/* Every place holds what it holds. */
static void set_itself(const struct flow_values *values, struct flow_value *state)
{
    for (size_t i = 0; i < FLOW_PLACE_SLOTS; i++)
        state[i] = itself(i, 8);
    for (size_t i = 0; i < values->slot_count; i++)
        state[FLOW_PLACE_SLOTS + i] =
            values->slots[i].shared ? unknown : itself(FLOW_PLACE_SLOTS + i, values->slots[i].size);
}

static int follow_function(struct flow_values *values)
{
    AUTO_FREE struct flow_value *start = calloc(flow_values_places(values) + 1, sizeof(*start));
    int r = clear(values);

    if (!start || r < 0)
        return -ENOMEM;
    values->loop = FLOW_NONE;
    set_itself(values, start);
    start[REGISTER_STACK] = itself(FLOW_PLACE_FRAME, 8);
    r = follow(values, values->graph->first, start);
    for (uint32_t i = 0; r == 0 && i < values->graph->block_count; i++) {
        values->entry[i * 2] = values->reached[i] ? row_of(values, i)[REGISTER_STACK] : unknown;
        values->entry[i * 2 + 1] = values->reached[i] ? row_of(values, i)[REGISTER_FRAME] : unknown;
    }
    return r;
}

static int follow_loop(struct flow_values *values, uint32_t loop)
{
    AUTO_FREE struct flow_value *start = calloc(flow_values_places(values) + 1, sizeof(*start));
    uint32_t header = values->graph->loops[loop].header;
    const struct flow_value *stack = &values->entry[(size_t)header * 2];

    if (!start || clear(values) < 0)
        return -ENOMEM;
    values->loop = loop;
    set_itself(values, start);
    start[REGISTER_STACK] = stack[0];
    if (stack[1].kind == FLOW_VALUE_SUM && stack[1].place == FLOW_PLACE_FRAME)
        start[REGISTER_FRAME] = stack[1];
    return follow(values, header, start);
}

/* ---------------------------------------------------------------------------------------------- slots */

static int note_escape(struct flow_values *values, const struct frame_touch *touch)
{
    for (size_t i = 0; i < values->escape_count; i++)
        if (values->escapes[i] == touch->offset)
            return 0;
    if (array_reserve(&values->escapes, &values->escape_capacity, values->escape_count + 1) < 0)
        return -ENOMEM;
    values->escapes[values->escape_count++] = touch->offset;
    return 0;
}

static int note_touch(struct flow_values *values, const struct frame_touch *touch)
{
    if (touch->size == 0)
        return note_escape(values, touch);
    if (!touch->write || (touch->size != 4 && touch->size != 8) || values->found_count == FLOW_SLOTS_MAX)
        return 0;
    for (size_t i = 0; i < values->found_count; i++)
        if (values->found[i].offset == touch->offset && values->found[i].size == touch->size)
            return 0;
    if (array_reserve(&values->found, &values->found_capacity, values->found_count + 1) < 0)
        return -ENOMEM;
    values->found[values->found_count++] = (struct flow_slot){.offset = touch->offset, .size = touch->size};
    return 0;
}

/* Whether somebody who has one of the addresses that were taken may write the slot. */
static bool is_shared(const struct flow_values *values, const struct flow_slot *slot)
{
    int64_t from = slot->vouched ? slot->offset : INT64_MIN;

    if (values->lost)
        return true;
    for (size_t i = 0; i < values->escape_count; i++)
        if (values->escapes[i] >= from && values->escapes[i] < slot->offset + slot->size)
            return true;
    return false;
}

static bool is_vouched(const struct flow_values *values, const struct flow_slot *slot)
{
    for (size_t i = 0; i < values->variable_count; i++)
        if (values->variables[i].offset == slot->offset && values->variables[i].size == slot->size)
            return true;
    return false;
}

/* Slots are what the function writes of its frame; to know the frame, the stack and frame pointers must be followed first.
 * Meanwhile the slots that were found are not followed: there is no room for them in the state yet. */
static int find_slots(struct flow_values *values)
{
    struct flow_value state[FLOW_PLACE_SLOTS];
    int r = follow_function(values);

    for (uint32_t i = 0; r == 0 && i < values->graph->block_count; i++) {
        if (!values->reached[i])
            continue;
        memcpy(state, values->in + (size_t)i * FLOW_PLACE_SLOTS, sizeof(state));
        r = step_block(values, i, state, note_touch);
    }
    values->slots = values->found;
    values->slot_count = values->found_count;
    for (size_t i = 0; i < values->slot_count; i++) {
        values->slots[i].vouched = is_vouched(values, &values->slots[i]);
        values->slots[i].shared = is_shared(values, &values->slots[i]);
    }
    return r;
}

/* Once: the slots, and with them where the frame is at the beginning of each block. */
static int settle(struct flow_values *values)
{
    int r = values->settled ? 0 : find_slots(values);

    if (r == 0 && !values->settled)
        r = follow_function(values);
    values->settled = r == 0;
    return r;
}

int flow_values_follow(struct flow_values *values, uint32_t loop)
{
    int r = settle(values);

    if (r < 0)
        return r;
    return loop == FLOW_NONE ? follow_function(values) : follow_loop(values, loop);
}

/* ---------------------------------------------------------------------------------------------- questions */

bool flow_values_before(struct flow_values *values, uint64_t address, struct flow_value *ret_state)
{
    const struct flow_graph *graph = values->graph;
    uint32_t block = flow_graph_block(graph, address);
    struct frame_touch touches[2];

    if (block == FLOW_NONE || !values->in || !values->reached[block])
        return false;
    memcpy(ret_state, row_of(values, block), flow_values_places(values) * sizeof(*ret_state));
    for (size_t i = graph->blocks[block].first;; i++) {
        const struct instruction *instruction = &graph->instructions[i];

        if (address - instruction->address < instruction->length)
            return true;
        value_machine_step(values->machine, instruction, values->slots, values->slot_count,
                           values->calls_keep, ret_state, touches, &values->lost);
    }
}

bool flow_values_after_block(struct flow_values *values, uint32_t block, struct flow_value *ret_state)
{
    if (!values->in || !values->reached[block])
        return false;
    memcpy(ret_state, row_of(values, block), flow_values_places(values) * sizeof(*ret_state));
    return step_block(values, block, ret_state, NULL) == 0;
}
