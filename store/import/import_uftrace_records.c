/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The records of a uftrace thread, and the calls that they open and close. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "store/import/import_uftrace.h"

#define RECORD_MAGIC 5u

/* The second word has, from its lowest bit: type 2, more 1, magic 3, depth 10, address 48. */
bool uftrace_record_parse(const uint8_t *bytes, struct uftrace_record *ret_record)
{
    uint64_t ns, word;

    memcpy(&ns, bytes, sizeof(ns));
    memcpy(&word, bytes + sizeof(ns), sizeof(word));
    if ((word >> 3 & 7) != RECORD_MAGIC || ns > INT64_MAX)
        return false;
    *ret_record = (struct uftrace_record){
        .ns = ns,
        .type = (enum uftrace_record_type)(word & 3),
        .more = word >> 2 & 1,
        .depth = (unsigned)(word >> 6 & 1023),
        .address = word >> 16,
    };
    return true;
}

/* Closes the calls that are at `depth` or deeper. */
static size_t close_from(struct uftrace_stack *stack, unsigned depth)
{
    size_t closed = 0;

    while (stack->count > stack->base && stack->calls[stack->count - 1].depth >= depth) {
        stack->count--;
        closed++;
    }
    return closed;
}

int uftrace_stack_step(struct uftrace_stack *stack, const struct uftrace_record *record,
                       struct uftrace_step *ret_step, struct error *err)
{
    struct uftrace_step step = {0};

    if (record->type == UFTRACE_ENTRY) {
        if (array_reserve(&stack->calls, &stack->capacity, stack->count + 1))
            return error_no_memory(err);
        step.closes = close_from(stack, record->depth);
        step.opens = true;
        stack->calls[stack->count].address = record->address;
        stack->calls[stack->count++].depth = record->depth;
    } else if (record->type == UFTRACE_EXIT) {
        step.closes = close_from(stack, record->depth + 1);
        if (stack->count > stack->base && stack->calls[stack->count - 1].depth == record->depth &&
            stack->calls[stack->count - 1].address == record->address) {
            stack->count--;
            step.returns = true;
        } else {
            step.closes += close_from(stack, record->depth);
            step.unmatched = true;
        }
    }
    *ret_step = step;
    return 0;
}

void uftrace_stack_release(struct uftrace_stack *stack)
{
    free(stack->calls);
    *stack = (struct uftrace_stack){0};
}
