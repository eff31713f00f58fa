/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/flow/constant_calls.h"

#include <string.h>

#define CALL 0xe8 /* and 32 bits of distance */
#define BRANCH_BYTES 5
#define LOAD_BYTES 5  /* mov $value,%edi or %esi */
#define LOOK_BACK 48u /* bytes before the call */

static bool is_loaded(const uint8_t *code, size_t at, const struct constant_call *call)
{
    static const uint8_t loads[] = {0xbf, 0xbe};

    for (size_t back = LOAD_BYTES; back <= LOOK_BACK && back <= at; back++)
        if (code[at - back] == loads[call->argument & 1] &&
            !memcmp(code + at - back + 1, &call->value, sizeof(call->value)))
            return true;
    return false;
}

static bool leads_to(const uint8_t *code, uint64_t address, uint64_t target)
{
    int32_t distance;

    memcpy(&distance, code + 1, sizeof(distance));
    return address + BRANCH_BYTES + (uint64_t)(int64_t)distance == target;
}

static bool calls(struct elf_image *image, const struct image_function *function, uint64_t stub,
                  const struct constant_call *call)
{
    size_t size = 0;
    const uint8_t *code = elf_image_code(image, function->address, &size);

    if (size > function->size)
        size = function->size;
    for (size_t at = 0; code && at + BRANCH_BYTES <= size; at++)
        if (code[at] == CALL && leads_to(code + at, function->address + at, stub) &&
            is_loaded(code, at, call))
            return true;
    return false;
}

static bool any_calls(struct elf_image *image, const struct image_function *functions, size_t count,
                      uint64_t stub, const struct constant_call *call)
{
    for (size_t i = 0; i < count; i++)
        if (!(functions[i].flags & IMAGE_FUNCTION_PLT) && calls(image, &functions[i], stub, call))
            return true;
    return false;
}

bool image_calls_with(struct elf_image *image, const struct image_function *functions, size_t count,
                      const struct constant_call *call)
{
    for (size_t i = 0; i < count; i++)
        if (functions[i].flags & IMAGE_FUNCTION_PLT && !strcmp(functions[i].name, call->stub) &&
            any_calls(image, functions, count, functions[i].address, call))
            return true;
    return false;
}
