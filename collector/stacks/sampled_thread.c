/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/stacks/sampled_thread.h"

#include <stdlib.h>

#include "base/array.h"

void sampled_thread_release(struct sampled_thread *thread)
{
    free(thread->activations);
    *thread = (struct sampled_thread){0};
}

void sampled_threads_release(struct sampled_threads *threads)
{
    for (size_t i = 0; i < threads->count; i++)
        sampled_thread_release(&threads->items[i]);
    free(threads->items);
    *threads = (struct sampled_threads){0};
}

bool sampled_thread_add(struct sampled_thread *thread, const struct live_activation *activation)
{
    if (array_reserve(&thread->activations, &thread->capacity, thread->count + 1))
        return false;
    thread->activations[thread->count++] = *activation;
    return true;
}

/* The first activation from `at` on, going outwards, that is a call made in [start, end). */
static size_t next_call(const struct sampled_thread *thread, size_t at, uint64_t start, uint64_t end)
{
    while (at < thread->count &&
           (thread->activations[at].interrupted || thread->activations[at].pc - start >= end - start))
        at++;
    return at;
}

bool sampled_thread_stays(const struct sampled_thread *before, const struct sampled_thread *now,
                          uint64_t start, uint64_t end)
{
    size_t i = next_call(before, 0, start, end), j = next_call(now, 0, start, end);

    if (i == before->count && j == now->count) {
        start = 0;
        end = UINT64_MAX;
        i = next_call(before, 0, start, end);
        j = next_call(now, 0, start, end);
    }
    while (i < before->count && j < now->count && before->activations[i].pc == now->activations[j].pc) {
        i = next_call(before, i + 1, start, end);
        j = next_call(now, j + 1, start, end);
    }
    return i == before->count && j == now->count;
}
