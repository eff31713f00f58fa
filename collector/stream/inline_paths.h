/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a call of an inline probe did to its thread's stack when it came before: looked up instead of worked
 * out again.
 *
 * What call_stack_call() makes of a call follows from the open calls and from the record alone, as long as
 * nothing changes that both are read with (the process' code, which functions are seen whole, where handlers
 * run). Programs come to the same stacks again and again: redis-server makes 166 calls a request, and has a
 * thousand different pairs of a stack and a record. So each stack that was seen has a number, a step leads
 * from one to the next, and a step knows which one followed it last: mostly a call costs a comparison.
 *
 * Stacks are numbered by their innermost frame and the number of what is below (hash consing): two stacks are
 * equal if and only if their numbers are. Nothing here is guessed, and what is not found is worked out.
 */
#ifndef TRACECTL_COLLECTOR_STREAM_INLINE_PATHS_H
#define TRACECTL_COLLECTOR_STREAM_INLINE_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/arch/record.h"
#include "collector/stream/call_stack.h"
#include "store/api/tracestore.h"

/* Of one thread. */
struct inline_paths {
    struct path_step *steps;
    struct call_frame *frames;             /* those that stacks are numbered by: of stack n frame n */
    uint32_t *below, *depths;              /* the stack without its innermost frame; how many it has */
    uint32_t *step_table, *frame_table;    /* open addressing; 0: free */
    uint32_t count, frame_count, capacity; /* from 1 on; capacity is a power of two, or 0 */
    uint32_t last;                         /* the step that was taken last; 0: none */
    uint32_t served;                       /* steps that were found since all was forgotten */
    uint32_t rest;                         /* so many calls are not learned from */
    uint64_t forgotten;                    /* how often all was */
    uint64_t epoch;                        /* of what the answers depend on, see inline_paths_expect */
    size_t *memory_left;                   /* bytes that all threads together may still take */
    size_t memory;                         /* of them taken here */
};

#define INLINE_PATHS_MOST 32768u /* steps, and stacks, of a thread */

/* `memory_left` must live as long. */
void inline_paths_init(struct inline_paths *paths, size_t *memory_left);
void inline_paths_release(struct inline_paths *paths);

/* To be called before the others, with a number that is another one whenever something has changed that the
 * stacks and records are read with: then all is forgotten. */
void inline_paths_expect(struct inline_paths *paths, struct call_stack *stack, uint64_t epoch);

/* Takes the known steps of `records`, up to `count`: their frames to the stack, what they are to `ret_steps`,
 * their numbers to `ret_numbers`. Returns how many there were; the record behind them is not known here. */
size_t inline_paths_follow(struct inline_paths *paths, struct call_stack *stack,
                           const struct agent_record *records, size_t count, struct thread_step *ret_steps,
                           uint32_t *ret_numbers);

/* The number of the stack, 0: it has none. */
uint32_t inline_paths_top(const struct call_stack *stack);
/* The number of the stack before a step, by its number, and behind it. */
uint32_t inline_paths_before(const struct inline_paths *paths, uint32_t step);
uint32_t inline_paths_behind(const struct inline_paths *paths, uint32_t step);
/* Steps were taken of which this is the last: the stack is that behind it. -ENOMEM. */
int inline_paths_skip_to(struct inline_paths *paths, struct call_stack *stack, uint32_t step);

/* Before a record that is not known: the number of the stack, 0 when it is not to be learned from. */
uint32_t inline_paths_stack(struct inline_paths *paths, struct call_stack *stack);
/* After it: it led from that stack to this one. For lack of memory nothing is learned. */
void inline_paths_learn(struct inline_paths *paths, struct call_stack *stack, uint32_t from,
                        const struct agent_record *record, const struct thread_step *step);

#endif
