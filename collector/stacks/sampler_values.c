/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Values in the frames of a sample. */
#include <errno.h>
#include <string.h>

#include "collector/process/target_memory.h"
#include "collector/stacks/sampler_state.h"

/* Memory of the thread's stack, of the moment of the sample. */
static bool read_copy(const struct sampled_thread *thread, uint64_t address, void *ret_bytes, size_t size)
{
    for (size_t i = 0; i < thread->copy_count; i++) {
        const struct live_copy *copy = &thread->copies[i];
        uint64_t offset = address - copy->address;

        if (copy->size < size || offset > copy->size - size)
            continue;
        memcpy(ret_bytes, copy->bytes + offset, size);
        return true;
    }
    return false;
}

/* Other memory, as it is now: worth something only while the thread has not run. */
static int read_now(const struct stack_sampler *sampler, const struct sampled_thread *thread,
                    uint64_t address, void *ret_bytes, size_t size)
{
    CLEANUP(live_threads_release) struct live_threads now = {0};
    int r;

    if (!thread->tid)
        return -ENODATA;
    if (target_memory_read(thread->tid, address, ret_bytes, size) != size)
        return -ENODATA;
    r = live_reader_list_thread(sampler->reader, thread->tid, &now, NULL);
    if (r)
        return r;
    if (!now.count)
        return -ESRCH;
    return now.items[0].on_cpu || now.items[0].switches != thread->switches ? -ESTALE : 0;
}

/* The stack pointer in a frame's caller is the frame's canonical frame address (System V ABI for AMD64, 3.7);
 * of a frame that a signal interrupted the caller was not. */
static int read_frame(const struct sampled_thread *thread, size_t activation, int64_t offset, void *ret_bytes,
                      size_t size)
{
    const struct live_activation *caller = &thread->activations[activation + 1];

    if (activation + 1 >= thread->count || caller->interrupted || caller->guessed ||
        !(caller->known & 1u << LIVE_SP))
        return -ENODATA;
    return read_copy(thread, caller->registers[LIVE_SP] + (uint64_t)offset, ret_bytes, size) ? 0 : -ENODATA;
}

static int read_register(const struct sampled_thread *thread, size_t activation, unsigned number,
                         uint64_t *ret_bits)
{
    const struct live_activation *frame = &thread->activations[activation];

    if (number >= LIVE_REGISTERS || frame->guessed || !(frame->known & 1u << number))
        return -ENODATA;
    *ret_bits = frame->registers[number];
    return 0;
}

static int64_t widen(uint64_t bits, const struct frame_value *value)
{
    unsigned unused = 64 - 8 * value->size;

    return value->is_signed ? (int64_t)(bits << unused) >> unused : (int64_t)(bits << unused >> unused);
}

static int read_value(void *context, size_t number, size_t frame, const struct frame_value *value,
                      int64_t *ret_value)
{
    const struct stack_sampler *sampler = context;
    const struct filled_thread *filled = number < sampler->filled_count ? &sampler->filled[number] : NULL;
    uint64_t bits = 0;
    size_t activation;
    int r = -EINVAL;

    if (!filled || frame >= filled->count || !value->size || value->size > sizeof(bits))
        return -EINVAL;
    activation = filled->places[frame].activation;
    switch (value->kind) {
    case FRAME_REGISTER:
        r = read_register(filled->thread, activation, value->number, &bits);
        break;
    case FRAME_CFA:
        r = read_frame(filled->thread, activation, value->offset, &bits, value->size);
        break;
    case FRAME_ADDRESS:
        r = read_now(sampler, filled->thread, (uint64_t)value->offset + filled->places[frame].bias, &bits,
                     value->size);
        break;
    }
    if (!r)
        *ret_value = widen(bits, value);
    return r;
}

struct frame_source stack_sampler_source(struct stack_sampler *sampler)
{
    return (struct frame_source){.context = sampler, .read = read_value};
}
