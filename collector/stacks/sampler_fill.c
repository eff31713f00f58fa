/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What was sampled, as a sample of the analysis: labels, names, places. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "collector/process/labels.h"
#include "collector/process/process.h"
#include "collector/stacks/place_names.h"
#include "collector/stacks/sampler_state.h"

struct filling {
    struct stack_sampler *sampler;
    struct sample_set *set;
    struct place_names *names;
    uint32_t *numbers; /* of the places of the thread at hand */
    struct filled_place *places;
    size_t count, number_capacity, place_capacity;
};

/* ------------------------------------------------------------------------------------------------- places
 */

/* What holds between an activation and the one that it was called from. */
static unsigned flags_of(const struct sampled_thread *thread, size_t index)
{
    const struct live_activation *outer = index + 1 < thread->count ? &thread->activations[index + 1] : NULL;

    if (!outer)
        return 0;
    return (outer->interrupted ? SAMPLE_SIGNAL : 0u) | (outer->guessed ? SAMPLE_AFTER_GAP : 0u);
}

/* Where the activation stands: a call inside its call instruction. */
static uint64_t place_of(const struct live_activation *activation)
{
    return activation->interrupted || activation->signal_frame ? activation->pc : activation->pc - 1;
}

static int add_activation(struct filling *filling, const struct sampled_process *process,
                          const struct sampled_thread *thread, size_t index)
{
    const struct process_code code = {process->caught.alive, &process->caught.maps};
    uint32_t numbers[PLACES_MAX];
    struct code_place place;
    size_t count;

    if (place_names_find(filling->names, &code, place_of(&thread->activations[index]), &place) ||
        place_names_places(filling->names, &place, flags_of(thread, index), numbers, &count) ||
        array_reserve(&filling->numbers, &filling->number_capacity, filling->count + count) ||
        array_reserve(&filling->places, &filling->place_capacity, filling->count + count))
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        filling->numbers[filling->count] = numbers[i];
        filling->places[filling->count++] = (struct filled_place){(uint32_t)index, place.bias};
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------------ threads
 */

/* For readers of values: which activation each place is of. */
static int note_filled(struct filling *filling, const struct sampled_process *process,
                       const struct sampled_thread *thread)
{
    struct stack_sampler *sampler = filling->sampler;
    struct filled_thread filled = {.process = process, .thread = thread, .count = filling->count};

    if (array_reserve(&sampler->filled, &sampler->filled_capacity, sampler->filled_count + 1))
        return -ENOMEM;
    filled.places = malloc((filling->count + 1) * sizeof(*filled.places));
    if (!filled.places)
        return -ENOMEM;
    if (filling->count)
        memcpy(filled.places, filling->places, filling->count * sizeof(*filled.places));
    sampler->filled[sampler->filled_count++] = filled;
    return 0;
}

/* The name of a thread, or of the function that a goroutine was begun with: the outermost but the one that
 * ends it. */
static int name_thread(struct filling *filling, const struct sampled_thread *thread, uint32_t *ret_name)
{
    AUTO_FREE char *name = NULL;

    if (thread->goid) {
        size_t outermost = thread->whole && filling->count > 1 ? 1 : 0;

        *ret_name = filling->count ? filling->set->places[filling->numbers[outermost]].function : 0;
        return 0;
    }
    name = process_thread_name(thread->pid, thread->tid);
    return name ? sample_set_text(filling->set, name, ret_name) : -ENOMEM;
}

static int add_thread(struct filling *filling, const struct sampled_process *process, unsigned number,
                      const struct sampled_thread *thread, size_t order)
{
    struct sample_thread added = {.process = thread->pid,
                                  .tid = thread->tid,
                                  .rank = process->rank < 0 ? SAMPLE_NO_RANK : process->rank};
    char label[48];
    int r = 0;

    filling->count = 0;
    for (size_t i = thread->count; i-- > 0 && !r;)
        r = add_activation(filling, process, thread, i);
    if (thread->goid)
        snprintf(label, sizeof(label), "%u.g%llu", number, (unsigned long long)thread->goid);
    else
        snprintf(label, sizeof(label), "%u.%zu", number, order);
    if (!r)
        r = sample_set_text(filling->set, label, &added.label);
    if (!r)
        r = sample_set_text(filling->set, thread->state, &added.state);
    if (!r)
        r = name_thread(filling, thread, &added.name);
    added.flags = (thread->whole ? 0u : SAMPLE_INCOMPLETE) | (thread->moved ? SAMPLE_MOVED : 0u);
    if (!r)
        r = sample_set_thread(filling->set, &added, filling->numbers, filling->count);
    return r ? r : note_filled(filling, process, thread);
}

/* Threads are numbered as they were made; the main thread is 0 whatever the others' ids are. */
static int add_process(struct filling *filling, const struct sampled_process *process, unsigned number)
{
    const struct sampled_threads *threads = &process->threads;
    size_t order = 1;
    int r = 0;

    for (size_t i = 0; i < threads->count && !r; i++) {
        const struct sampled_thread *thread = &threads->items[i];
        bool is_main = thread->tid == thread->pid;

        r = add_thread(filling, process, number, thread, is_main ? 0 : order);
        order += !is_main && !thread->goid;
    }
    return r;
}

/* The P of each process: its rank, or else its place in the order. */
static int number_processes(const struct stack_sampler *sampler, unsigned *numbers)
{
    CLEANUP(labels_release) struct labels labels = {0};

    for (size_t i = 0; i < sampler->process_count; i++) {
        struct label_move moved;

        if (labels_assign(&labels, i + 1, sampler->processes[i].rank, &numbers[i], &moved))
            return -ENOMEM;
        if (moved.serial)
            numbers[moved.serial - 1] = moved.number;
    }
    return 0;
}

static int fill(struct filling *filling)
{
    struct stack_sampler *sampler = filling->sampler;
    AUTO_FREE unsigned *numbers = calloc(sampler->process_count + 1, sizeof(*numbers));
    int r = numbers ? number_processes(sampler, numbers) : -ENOMEM;

    for (size_t i = 0; i < sampler->process_count && !r; i++)
        r = add_process(filling, &sampler->processes[i], numbers[i]);
    return r;
}

int stack_sampler_fill(struct stack_sampler *sampler, struct sample_set *set, struct error *err)
{
    struct filling filling = {.sampler = sampler, .set = set};
    int r = place_names_new(&sampler->images, set, &filling.names);

    if (!r)
        r = fill(&filling);
    place_names_free(filling.names);
    free(filling.numbers);
    free(filling.places);
    return r ? error_no_memory(err) : 0;
}
