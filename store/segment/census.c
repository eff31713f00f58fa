/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/segment/census.h"

#include "store/segment/call_list.h"

static struct function_calls *find_slot(const struct census *census, uint32_t function)
{
    size_t mask = census->table_size - 1, at = (uint32_t)(function * 2654435769u) >> 7 & mask;

    while (census->table[at].function && census->table[at].function != function)
        at = (at + 1) & mask;
    return &census->table[at];
}

static int grow(struct census *census)
{
    struct census grown = *census;

    grown.table_size = census->table_size ? 2 * census->table_size : 256;
    grown.table = calloc(grown.table_size, sizeof(*grown.table));
    if (!grown.table)
        return -ENOMEM;
    for (size_t i = 0; i < census->table_size; i++)
        if (census->table[i].function)
            *find_slot(&grown, census->table[i].function) = census->table[i];
    free(census->table);
    *census = grown;
    return 0;
}

int census_add_calls(struct census *census, uint32_t function, uint64_t calls)
{
    struct function_calls *slot;

    if (2 * census->count >= census->table_size && grow(census))
        return -ENOMEM;
    slot = find_slot(census, function);
    census->count += !slot->function;
    slot->function = function;
    slot->calls += calls;
    census->calls += calls;
    return 0;
}

int census_add(struct census *census, const struct event *event)
{
    int code = census_add_calls(census, event->function, event->kind == EVENT_CALL);

    census->events += !code;
    return code;
}

void census_list(const struct census *census, struct function_calls *ret_functions)
{
    size_t count = 0;

    for (size_t i = 0; i < census->table_size; i++)
        if (census->table[i].function)
            ret_functions[count++] = census->table[i];
    call_list_sort(ret_functions, count);
}

const struct function_calls *census_find(const struct census *census, uint32_t function)
{
    const struct function_calls *slot = census->table_size && function ? find_slot(census, function) : NULL;

    return slot && slot->function ? slot : NULL;
}

void census_clear(struct census *census)
{
    if (census->table_size)
        memset(census->table, 0, census->table_size * sizeof(*census->table));
    census->count = 0;
    census->events = census->calls = 0;
}

void census_release(struct census *census)
{
    free(census->table);
    *census = (struct census){0};
}

int census_take(struct census *census, const struct segment_parts *parts, uint64_t first_seq,
                uint64_t event_count)
{
    struct segment_decoder *decoder;
    struct event event;
    int code = segment_decoder_open(parts, first_seq, event_count, 0, true, &decoder);

    if (code)
        return code;
    while (!code && (code = segment_decoder_next(decoder, &event)) == 0)
        code = census_add(census, &event);
    segment_decoder_free(decoder);
    return code == 1 ? 0 : code;
}
