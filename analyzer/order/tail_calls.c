/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/order/tail_calls.h"

/* Functions that are followed; whoever jumps farther may come back for all that is known. */
#define CHAIN_MAX 32

bool tail_calls_none_between(struct order_code *code, const struct sample_place *caller,
                             const struct sample_place *callee)
{
    const struct order_function *function = order_code_function(code, caller), *entered;
    const struct instruction *call;
    const struct image_function *functions, *called;
    size_t count;

    if (!function || !function->graph || (caller->flags & SAMPLE_INLINED) || callee->image != caller->image ||
        (callee->flags & (SAMPLE_INLINED | SAMPLE_SIGNAL)))
        return true;
    call = flow_graph_instruction(function->graph, caller->address);
    if (!call || call->kind != INSTRUCTION_CALL)
        return true;
    functions = order_code_functions(code, caller->image, &count);
    called = image_functions_find(functions, count, call->target);
    entered = order_code_function(code, callee);
    return !called || (called->flags & IMAGE_FUNCTION_PLT) || (entered && entered->entry == called->address);
}

/* The functions that `function` jumps to and that are not in `chain` yet. False: there are too many. */
static bool follow(struct order_code *code, const struct order_function *function,
                   struct order_function **chain, size_t *count)
{
    size_t function_count;
    const struct image_function *functions = order_code_functions(code, function->image, &function_count);

    for (size_t i = 0; i < function->graph->tail_count; i++) {
        const struct sample_place place = {
            .image = function->image, .entry = SAMPLE_NO_ADDRESS, .address = function->graph->tails[i]};
        const struct image_function *to = image_functions_find(functions, function_count, place.address);
        struct order_function *next;
        bool known = false;

        if (!to || (to->flags & IMAGE_FUNCTION_PLT))
            continue;
        next = order_code_function(code, &place);
        for (size_t k = 0; k < *count; k++)
            known |= chain[k] == next;
        if (known)
            continue;
        if (!next || *count == CHAIN_MAX)
            return false;
        chain[(*count)++] = next;
    }
    return true;
}

bool tail_calls_may_reenter(struct order_code *code, struct order_function *function)
{
    struct order_function *chain[CHAIN_MAX];
    size_t count = 0;

    if (!function->graph || !follow(code, function, chain, &count))
        return true;
    for (size_t i = 0; i < count; i++) {
        bool open = !chain[i]->graph || chain[i] == function;

        for (uint32_t k = 0; !open && k < chain[i]->graph->block_count; k++)
            open = chain[i]->graph->blocks[k].flags & FLOW_BLOCK_UNKNOWN;
        if (open || !follow(code, chain[i], chain, &count))
            return true;
    }
    return false;
}
