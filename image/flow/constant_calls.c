/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/flow/constant_calls.h"

#include <string.h>

#include "image/arch/code_bytes.h"

#define LOOK_BACK 48u /* bytes before the call */

static bool is_loaded(const uint8_t *code, size_t at, const struct constant_call *call)
{
    for (size_t back = CODE_LOAD_BYTES; back <= LOOK_BACK && back <= at; back++)
        if (code_loads_argument(code + at - back, call->argument, call->value))
            return true;
    return false;
}

static bool calls(struct elf_image *image, const struct image_function *function, uint64_t stub,
                  const struct constant_call *call)
{
    size_t size = 0;
    const uint8_t *code = elf_image_code(image, function->address, &size);

    if (size > function->size)
        size = function->size;
    for (size_t at = 0; code && at + CODE_CALL_BYTES <= size; at++)
        if (code_is_call(code + at) && code_call_target(code + at, function->address + at) == stub &&
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
