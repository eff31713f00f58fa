/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/stream/inline_paths.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

#define FIRST_CAPACITY 256u
#define EMPTY_STACK 1u      /* the number of the stack without a frame */
#define REST_CALLS 1000000u /* how long a thread that does not come back to its stacks is not tried again */

/* What a record does to a stack. */
struct path_step {
    uint64_t place;          /* function and return address, as they stand in the record */
    struct call_frame frame; /* that it puts on the stack, with the record's stack pointer */
    uint32_t from;           /* the stack before it */
    uint32_t next;           /* the step that followed last; 0: none yet */
    struct thread_step effect;
};

_Static_assert(sizeof(struct path_step) <= 64, "no more than a line of the cache");
_Static_assert(offsetof(struct agent_record, return_address) == 4, "one word with the function");

static uint64_t place_of(const struct agent_record *record)
{
    return record->function | (uint64_t)record->return_address << 32;
}

static uint32_t hash(uint64_t a, uint64_t b, uint32_t c)
{
    uint64_t sum = (a * 0x9e3779b97f4a7c15u ^ b) * 0xd6e8feb86659fd93u + c;

    return (uint32_t)((sum ^ sum >> 32) * 0x9e3779b97f4a7c15u >> 32);
}

static size_t table_mask(const struct inline_paths *paths)
{
    return 2 * (size_t)paths->capacity - 1;
}

/* ------------------------------------------------------------------------------------ memory */

void inline_paths_init(struct inline_paths *paths, size_t *memory_left)
{
    *paths = (struct inline_paths){.frame_count = EMPTY_STACK, .memory_left = memory_left};
}

void inline_paths_release(struct inline_paths *paths)
{
    if (paths->memory_left)
        *paths->memory_left += paths->memory;
    free(paths->steps);
    free(paths->frames);
    free(paths->below);
    free(paths->depths);
    free(paths->step_table);
    free(paths->frame_table);
    *paths = (struct inline_paths){0};
}

static void forget(struct inline_paths *paths, struct call_stack *stack)
{
    for (size_t i = 0; i < stack->depth; i++)
        stack->frames[i].stack = 0;
    if (paths->capacity) {
        memset(paths->step_table, 0, 2 * (size_t)paths->capacity * sizeof(*paths->step_table));
        memset(paths->frame_table, 0, 2 * (size_t)paths->capacity * sizeof(*paths->frame_table));
    }
    paths->count = 0;
    paths->frame_count = EMPTY_STACK;
    paths->last = paths->served = 0;
    paths->forgotten++;
}

void inline_paths_expect(struct inline_paths *paths, struct call_stack *stack, uint64_t epoch)
{
    if (paths->epoch == epoch)
        return;
    paths->epoch = epoch;
    forget(paths, stack);
}

static bool is_step_of(const struct path_step *step, uint32_t from, uint64_t place, uint64_t sp)
{
    return step->place == place && step->frame.sp == sp && step->from == from;
}

/* The slot of a step, or the free one where it belongs. */
static uint32_t *step_slot(const struct inline_paths *paths, uint32_t from, uint64_t place, uint64_t sp)
{
    size_t mask = table_mask(paths), at = hash(place, sp, from) & mask;

    for (; paths->step_table[at]; at = (at + 1) & mask) {
        const struct path_step *step = &paths->steps[paths->step_table[at]];

        if (is_step_of(step, from, place, sp))
            break;
    }
    return &paths->step_table[at];
}

/* Whether two frames are one to whatever comes next. */
static bool is_same_frame(const struct call_frame *a, const struct call_frame *b)
{
    return a->sp == b->sp && a->return_address == b->return_address && a->function == b->function &&
           a->on_signal_stack == b->on_signal_stack && a->return_unseen == b->return_unseen &&
           a->probed == b->probed;
}

static uint32_t *frame_slot(const struct inline_paths *paths, uint32_t below, const struct call_frame *frame)
{
    size_t mask = table_mask(paths), at = hash(frame->sp, frame->return_address, below) & mask;

    for (; paths->frame_table[at]; at = (at + 1) & mask) {
        uint32_t number = paths->frame_table[at];

        if (paths->below[number] == below && is_same_frame(&paths->frames[number], frame))
            break;
    }
    return &paths->frame_table[at];
}

static void fill_tables(struct inline_paths *paths)
{
    for (uint32_t i = 1; i <= paths->count; i++) {
        const struct path_step *step = &paths->steps[i];

        *step_slot(paths, step->from, step->place, step->frame.sp) = i;
    }
    for (uint32_t i = EMPTY_STACK + 1; i <= paths->frame_count; i++)
        *frame_slot(paths, paths->below[i], &paths->frames[i]) = i;
}

/* Of arrays for so many steps and stacks. */
static size_t memory_of(size_t capacity)
{
    return capacity * (sizeof(struct path_step) + sizeof(struct call_frame) + 6 * sizeof(uint32_t));
}

/* Replaces the arrays by larger ones. */
static bool enlarge(struct inline_paths *paths, size_t capacity)
{
    struct path_step *steps = reallocarray(paths->steps, capacity + 1, sizeof(*steps));
    struct call_frame *frames = reallocarray(paths->frames, capacity + 1, sizeof(*frames));
    uint32_t *below = reallocarray(paths->below, capacity + 1, sizeof(*below));
    uint32_t *depths = reallocarray(paths->depths, capacity + 1, sizeof(*depths));
    AUTO_FREE uint32_t *step_table = calloc(2 * capacity, sizeof(*step_table));
    AUTO_FREE uint32_t *frame_table = calloc(2 * capacity, sizeof(*frame_table));

    paths->steps = steps ? steps : paths->steps;
    paths->frames = frames ? frames : paths->frames;
    paths->below = below ? below : paths->below;
    paths->depths = depths ? depths : paths->depths;
    if (!steps || !frames || !below || !depths || !step_table || !frame_table)
        return false;
    paths->depths[EMPTY_STACK] = 0;
    free(paths->step_table);
    free(paths->frame_table);
    paths->step_table = take_pointer(step_table);
    paths->frame_table = take_pointer(frame_table);
    paths->capacity = (uint32_t)capacity;
    fill_tables(paths);
    return true;
}

static bool grow(struct inline_paths *paths)
{
    size_t capacity = paths->capacity ? 2 * (size_t)paths->capacity : FIRST_CAPACITY;
    size_t more = memory_of(capacity) - paths->memory;

    if (capacity > INLINE_PATHS_MOST || more > *paths->memory_left || !enlarge(paths, capacity))
        return false;
    *paths->memory_left -= more;
    paths->memory += more;
    return true;
}

/* Room for one more step and one more stack. Who has as many as there may be and has hardly come back to one
 * has no use for them. */
static bool make_room(struct inline_paths *paths, struct call_stack *stack)
{
    if (paths->count < paths->capacity && paths->frame_count < paths->capacity)
        return true;
    if (grow(paths))
        return true;
    paths->rest = paths->served <= 4 * paths->capacity ? REST_CALLS : 0;
    forget(paths, stack);
    return false;
}

/* ------------------------------------------------------------------------------------ stacks */

/* The number of the stack of this frame on `below`. It fits. */
static uint32_t number_stack(struct inline_paths *paths, uint32_t below, const struct call_frame *frame)
{
    uint32_t *slot = frame_slot(paths, below, frame);

    if (!*slot) {
        *slot = ++paths->frame_count;
        paths->frames[*slot] = *frame;
        paths->frames[*slot].stack = *slot;
        paths->below[*slot] = below;
        paths->depths[*slot] = paths->depths[below] + 1;
    }
    return *slot;
}

/* Numbers what is not numbered of the stack; its number, 0: the table is full. */
static uint32_t number_frames(struct inline_paths *paths, struct call_stack *stack)
{
    size_t known = stack->depth;
    uint32_t number;

    while (known && !stack->frames[known - 1].stack)
        known--;
    number = known ? stack->frames[known - 1].stack : EMPTY_STACK;
    for (; known < stack->depth; known++) {
        if (!make_room(paths, stack))
            return 0;
        number = number_stack(paths, number, &stack->frames[known]);
        stack->frames[known].stack = number;
    }
    return number;
}

uint32_t inline_paths_stack(struct inline_paths *paths, struct call_stack *stack)
{
    if (paths->rest) {
        paths->rest--;
        return 0;
    }
    return make_room(paths, stack) ? number_frames(paths, stack) : 0;
}

/* ------------------------------------------------------------------------------------ steps */

/* The step of a record from a stack, 0: it is not known. It is remembered to follow the last one. */
static uint32_t find_step(struct inline_paths *paths, uint32_t from, uint64_t place, uint64_t sp)
{
    uint32_t found = *step_slot(paths, from, place, sp);

    if (found && paths->last)
        paths->steps[paths->last].next = found;
    return found;
}

size_t inline_paths_follow(struct inline_paths *paths, struct call_stack *stack,
                           const struct agent_record *records, size_t count, struct thread_step *ret_steps,
                           uint32_t *ret_numbers)
{
    uint32_t from = inline_paths_top(stack);
    uint32_t step = paths->last ? paths->steps[paths->last].next : 0;
    size_t depth = stack->depth, done = 0;

    if (!from || !paths->count)
        return 0;
    for (; done < count && depth < stack->capacity; done++) {
        uint64_t place = place_of(&records[done]), sp = agent_record_sp(&records[done]);
        const struct path_step *taken = &paths->steps[step];

        if (!step || !is_step_of(taken, from, place, sp)) {
            step = find_step(paths, from, place, sp);
            if (!step)
                break;
            taken = &paths->steps[step];
        }
        ret_steps[done] = taken->effect;
        ret_numbers[done] = step;
        depth -= taken->effect.returns;
        stack->frames[depth++] = taken->frame;
        from = taken->frame.stack;
        paths->last = step;
        step = taken->next;
    }
    stack->depth = depth;
    paths->served += (uint32_t)done;
    return done;
}

void inline_paths_learn(struct inline_paths *paths, struct call_stack *stack, uint32_t from,
                        const struct agent_record *record, const struct thread_step *step)
{
    uint64_t place = place_of(record), sp = agent_record_sp(record);
    uint32_t *slot;

    if (!make_room(paths, stack) || !number_frames(paths, stack))
        return;
    slot = step_slot(paths, from, place, sp);
    if (!*slot) {
        *slot = ++paths->count;
        paths->steps[*slot] = (struct path_step){
            .place = place,
            .from = from,
            .effect = *step,
            .frame = stack->frames[stack->depth - 1],
        };
    }
    if (paths->last)
        paths->steps[paths->last].next = *slot;
    paths->last = *slot;
}

/* ------------------------------------------------------------------------------------ many at once */

uint32_t inline_paths_top(const struct call_stack *stack)
{
    return stack->depth ? stack->frames[stack->depth - 1].stack : EMPTY_STACK;
}

uint32_t inline_paths_before(const struct inline_paths *paths, uint32_t step)
{
    return paths->steps[step].from;
}

uint32_t inline_paths_behind(const struct inline_paths *paths, uint32_t step)
{
    return paths->steps[step].frame.stack;
}

int inline_paths_skip_to(struct inline_paths *paths, struct call_stack *stack, uint32_t step)
{
    uint32_t number = inline_paths_behind(paths, step), depth = paths->depths[number];
    size_t had = stack->depth;

    if (array_reserve(&stack->frames, &stack->capacity, depth))
        return -ENOMEM;
    stack->depth = depth;
    /* What is below equal stacks is equal. */
    for (; depth && (depth > had || stack->frames[depth - 1].stack != number); depth--) {
        stack->frames[depth - 1] = paths->frames[number];
        number = paths->below[number];
    }
    paths->last = step;
    return 0;
}
