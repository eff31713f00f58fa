/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A set of function ids: what `function_id = ...` or `function_id IN (...)` asks for. */
#ifndef TRACESTORE_FUNCTION_SET_H
#define TRACESTORE_FUNCTION_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct function_set {
    uint32_t *ids; /* ascending and without duplicates, but between function_set_add and function_set_sort */
    size_t count, capacity;
};

/* -ENOMEM. */
int function_set_add(struct function_set *set, uint32_t id);
void function_set_sort(struct function_set *set);

/* Leaves what is in the other one, too. */
void function_set_intersect(struct function_set *set, const struct function_set *other);

bool function_set_has(const struct function_set *set, uint32_t id);

void function_set_release(struct function_set *set);

#endif
