/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Steps of an open segment that may come again, stretches of them at once: their words, and what a stretch of
 * them leaves behind. A step here is one of thread_writer_keep: returns, then a call.
 *
 * Of a stretch's calls those are open behind it that lie on the way from its last step outwards, each to the
 * nearest step before it that is less deep. How often a function was called is counted by where stretches
 * begin and end (a difference array over the steps), and added up when somebody asks.
 */
#ifndef TRACESTORE_STEP_HISTORY_H
#define TRACESTORE_STEP_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STEP_HISTORY_MOST 32768u /* steps; each has no more than STEP_HISTORY_WORDS on average */
#define STEP_HISTORY_WORDS 4u
#define STEP_HISTORY_NONE UINT32_MAX

struct kept_step {
    uint32_t words_end; /* behind its words, of which the call is the last one */
    uint32_t depth;     /* of the segment's open calls, with the step's own */
    uint32_t below;     /* the nearest step before it that is less deep; STEP_HISTORY_NONE */
    uint16_t slot;      /* by which it is predicted whether the call is assumed */
    bool assumed;
};

/* All zero is empty, without memory. */
struct step_history {
    struct kept_step *steps;
    int32_t *uses; /* at a step: how many stretches begin there, less those that have ended before it */
    uint16_t *words;
    size_t count, capacity; /* of steps; uses has one element more, words STEP_HISTORY_WORDS times as many */
    uint64_t generation;    /* another number whenever all was forgotten */
    uint32_t foreseen;      /* from this step on no prediction was wrong since the step was kept */
    uint64_t corrections;   /* of predictions, when that was found */
    size_t low_depth;       /* of the segment, which has been the same since the first step was kept */
    uint32_t highest;       /* depth of a step */
    bool counts;            /* some uses are not 0 */
};

void step_history_release(struct step_history *history);
/* Forgets all; the counts must have been taken. */
void step_history_clear(struct step_history *history);

/* Room for `steps` more with `words` words in all. Returns false when they do not fit, or for lack of memory.
 */
bool step_history_make_room(struct step_history *history, size_t steps, size_t words);
/* Adds a step of `returns` returns and a call; there is room. */
void step_history_add(struct step_history *history, uint32_t returns, uint16_t local,
                      const struct kept_step *step);

/* Where the words of a step begin. */
static inline uint32_t step_history_words(const struct step_history *history, uint32_t step)
{
    return step ? history->steps[step - 1].words_end : 0;
}

/* The local id of the function that the step calls. */
static inline uint16_t step_history_local(const struct step_history *history, uint32_t step)
{
    return history->words[history->steps[step].words_end - 1];
}

/* A stretch has come again. */
void step_history_use(struct step_history *history, uint32_t first, uint32_t count);
/* Adds to `calls`, by local id less 1, how often each function was called by stretches, once. */
void step_history_take_counts(struct step_history *history, uint32_t *calls);

size_t step_history_memory(const struct step_history *history);

#endif
