/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/plan/rewrite_gates.h"

#include <string.h>

#include "base/array.h"
#include "bpf/wire.h"

static const struct gate {
    const char *name;
    enum rewrite_gate_kind kind;
} gates[] = {
    {"mprotect", REWRITE_BY_MPROTECT},
    {"__mprotect", REWRITE_BY_MPROTECT},
    {"pkey_mprotect", REWRITE_BY_MPROTECT},
    {"syscall", REWRITE_BY_NUMBER},
    {"mmap", REWRITE_BY_MMAP},
    {"mmap64", REWRITE_BY_MMAP},
    {"__mmap", REWRITE_BY_MMAP},
};

/* Whether `name` is that of the gate, or of a stub that leads there. */
static bool is_called(const char *name, const char *gate)
{
    size_t length = strlen(gate);

    return !strncmp(name, gate, length) && (!name[length] || !strcmp(name + length, "@plt"));
}

static const struct gate *gate_of(const struct image_function *function)
{
    for (size_t i = 0; i < ARRAY_SIZE(gates) && !(function->flags & IMAGE_FUNCTION_NO_STUB); i++) {
        if (is_called(function->name, gates[i].name))
            return &gates[i];
        for (char **alias = function->aliases; alias && *alias; alias++)
            if (is_called(*alias, gates[i].name))
                return &gates[i];
    }
    return NULL;
}

bool rewrite_gate_is(const struct image_function *function)
{
    return gate_of(function);
}

void rewrite_gates_find(const struct image_function *functions, size_t count, struct rewrite_gates *ret_gates)
{
    *ret_gates = (struct rewrite_gates){0};
    for (size_t i = 0; i < count && ret_gates->count < REWRITE_GATES_MAX; i++) {
        const struct gate *gate = gate_of(&functions[i]);

        if (!gate)
            continue;
        ret_gates->offsets[ret_gates->count] = functions[i].file_offset;
        ret_gates->cookies[ret_gates->count++] = gate->kind;
    }
}
