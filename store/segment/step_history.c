/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/segment/step_history.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 256u

void step_history_release(struct step_history *history)
{
    uint64_t generation = history->generation;

    free(history->steps);
    free(history->uses);
    free(history->words);
    *history = (struct step_history){.generation = generation + 1};
}

void step_history_clear(struct step_history *history)
{
    if (history->count)
        history->generation++;
    history->count = 0;
    history->foreseen = history->highest = 0;
}

static bool enlarge(struct step_history *history, size_t capacity)
{
    struct kept_step *steps = reallocarray(history->steps, capacity, sizeof(*steps));
    uint16_t *words = reallocarray(history->words, capacity, STEP_HISTORY_WORDS * sizeof(*words));
    int32_t *uses = reallocarray(history->uses, capacity + 1, sizeof(*uses));
    size_t had = history->capacity ? history->capacity + 1 : 0;

    history->steps = steps ? steps : history->steps;
    history->words = words ? words : history->words;
    history->uses = uses ? uses : history->uses;
    if (!steps || !words || !uses)
        return false;
    memset(&uses[had], 0, (capacity + 1 - had) * sizeof(*uses));
    history->capacity = capacity;
    return true;
}

bool step_history_make_room(struct step_history *history, size_t steps, size_t words)
{
    size_t count = history->count + steps, capacity = history->capacity ? history->capacity : FIRST_CAPACITY;

    words += step_history_words(history, (uint32_t)history->count);
    while (capacity < count || capacity * STEP_HISTORY_WORDS < words) {
        if (capacity >= STEP_HISTORY_MOST)
            return false;
        capacity *= 2;
    }
    return capacity == history->capacity || enlarge(history, capacity);
}

void step_history_add(struct step_history *history, uint32_t returns, uint16_t local,
                      const struct kept_step *step)
{
    struct kept_step *kept = &history->steps[history->count];
    uint32_t at = step_history_words(history, (uint32_t)history->count);
    uint32_t below = history->count ? (uint32_t)history->count - 1 : STEP_HISTORY_NONE;

    memset(&history->words[at], 0, returns * sizeof(*history->words));
    history->words[at + returns] = local;
    while (below != STEP_HISTORY_NONE && history->steps[below].depth >= step->depth)
        below = history->steps[below].below;
    *kept = *step;
    kept->words_end = at + returns + 1;
    kept->below = below;
    history->highest = step->depth > history->highest ? step->depth : history->highest;
    history->count++;
}

void step_history_use(struct step_history *history, uint32_t first, uint32_t count)
{
    history->uses[first]++;
    history->uses[first + count]--;
    history->counts = true;
}

void step_history_take_counts(struct step_history *history, uint32_t *calls)
{
    uint32_t used = 0;

    if (!history->counts)
        return;
    for (uint32_t i = 0; i < history->count; i++) {
        used += (uint32_t)history->uses[i];
        calls[step_history_local(history, i) - 1] += used;
    }
    memset(history->uses, 0, (history->count + 1) * sizeof(*history->uses));
    history->counts = false;
}

size_t step_history_memory(const struct step_history *history)
{
    return history->capacity *
               (sizeof(*history->steps) + sizeof(*history->uses) + STEP_HISTORY_WORDS * sizeof(uint16_t)) +
           (history->capacity ? sizeof(*history->uses) : 0);
}
