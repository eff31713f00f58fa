/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/stream/process_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A program whose returns are not looked for has calls only, whatever its libraries do. Otherwise one image
 * with inferred returns is enough to make the open calls of a thread uncertain. */
static enum trace_returns returns_of(const struct traced_process *process)
{
    if (process->image && process->image->returns == TRACE_RETURNS_NONE)
        return TRACE_RETURNS_NONE;
    for (size_t i = 0; i < process->code_count; i++) {
        const struct traced_image *image = process->code[i].image;

        if (image_is_traced(image) && image->returns != TRACE_RETURNS_PROBED)
            return process->image ? TRACE_RETURNS_INFERRED : image->returns;
    }
    return TRACE_RETURNS_PROBED;
}

int process_code_set(struct traced_process *process, const struct stream_code *code, size_t count)
{
    struct stream_code *copy = calloc(count ? count : 1, sizeof(*copy));

    if (!copy)
        return -ENOMEM;
    if (count)
        memcpy(copy, code, count * sizeof(*copy));
    free(process->code);
    free(process->callers); /* looked up in the old code */
    process->callers = NULL;
    process->epoch++;
    process->code = copy;
    process->code_count = count;
    process->returns = returns_of(process);
    return 0;
}

const struct stream_code *process_code_find(const struct traced_process *process, uint64_t address)
{
    size_t low = 0, high = process->code_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (process->code[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < process->code_count && process->code[low].start <= address ? &process->code[low] : NULL;
}

bool process_code_bias(const struct traced_process *process, const struct traced_image *image,
                       uint64_t *ret_load_bias)
{
    for (size_t i = 0; i < process->code_count; i++) {
        if (process->code[i].image == image) {
            *ret_load_bias = process->code[i].load_bias;
            return true;
        }
    }
    return false;
}

void process_code_mark_images(const struct traced_process *process)
{
    for (size_t i = 0; i < process->code_count; i++)
        process->code[i].image->in_use = true;
}

uint64_t process_code_complete(const struct traced_process *process, uint32_t low)
{
    uint64_t found = 0;

    for (size_t i = 0; i < process->code_count; i++) {
        const struct stream_code *code = &process->code[i];
        uint64_t address = (code->start & ~(uint64_t)UINT32_MAX) | low;

        if (address < code->start)
            address += (uint64_t)UINT32_MAX + 1;
        if (address >= code->end)
            continue;
        if (found)
            return 0;
        found = address;
    }
    return found;
}
