/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/stacks/goroutines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/go/verdict.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "collector/process/target_memory.h"
#include "collector/stacks/goroutine_walk.h"
#include "collector/stacks/thread_state.h"

#define COPY_LIMIT (1u << 20)
#define COPY_LIMIT_MANY (64u << 10)

enum { MANY_GOROUTINES = 1000, ROUNDS = 4 };

/* Where a goroutine's stack was found. */
struct catch
{
    const struct caught_thread *on;    /* it runs on this one, on its own stack; NULL: it does not */
    const struct caught_thread *below; /* its thread, which runs on another stack; NULL: none */
    struct go_point from;
    bool caught;
};

struct sampling {
    const struct goroutine_sampling *options;
    pid_t *tids; /* of the caught threads */
    struct goroutines now;
    struct catch *catches;    /* one for each of them */
    struct live_copy *copies; /* the same; empty of those on threads */
    struct goroutine *again;  /* what they are after the copies */
};

void goroutine_copies_release(struct goroutine_copies *copies)
{
    for (size_t i = 0; i < copies->count; i++)
        live_copy_release(&copies->items[i]);
    free(copies->items);
    *copies = (struct goroutine_copies){0};
}

/* ------------------------------------------------------------------------------------------------ threads
 */

static const struct caught_thread *thread_of(const struct sampling *sampling, pid_t tid)
{
    const struct caught_process *caught = sampling->options->caught;

    for (size_t i = 0; i < caught->count; i++)
        if (caught->threads[i].seen.tid == tid)
            return &caught->threads[i];
    return NULL;
}

/* The thread that was on the goroutine's stack when it was caught. */
static const struct caught_thread *thread_on(const struct sampling *sampling,
                                             const struct goroutine *goroutine)
{
    const struct caught_process *caught = sampling->options->caught;

    for (size_t i = 0; i < caught->count; i++) {
        const struct caught_thread *thread = &caught->threads[i];
        uint64_t depth = thread->seen.registers[LIVE_SP] - goroutine->stack_low;

        if (thread->caught && thread->copy_count && depth < goroutine->stack_high - goroutine->stack_low)
            return thread;
    }
    return NULL;
}

/* Whether the goroutine had this stack before the threads were caught, too. */
static bool had_stack(const struct sampling *sampling, const struct goroutine *goroutine)
{
    const struct goroutine *same = goroutines_find(sampling->options->before, goroutine->address);

    return same && same->goid == goroutine->goid && same->stack_low == goroutine->stack_low &&
           same->stack_high == goroutine->stack_high;
}

/* ------------------------------------------------------------------------------------------------ catching
 */

/* Where the goroutine's own stack continues, as far as its struct tells. False: it does not tell. */
static bool resting_place(const struct sampling *sampling, const struct goroutine *goroutine,
                          struct catch *catch)
{
    struct go_thread thread;

    switch (goroutine->status) {
    case GOROUTINE_RUNNABLE:
    case GOROUTINE_WAITING:
    case GOROUTINE_PREEMPTED:
        catch->from = (struct go_point){goroutine->saved_pc, goroutine->saved_sp, false};
        break;
    case GOROUTINE_IN_SYSTEM_CALL:
        catch->from = (struct go_point){goroutine->called_pc, goroutine->called_sp, false};
        if (go_thread_find(sampling->options->runtime, goroutine->thread, sampling->tids,
                           sampling->options->caught->count, &thread))
            catch->below = thread_of(sampling, thread.tid);
        break;
    case GOROUTINE_RUNNING: /* the runtime works for it, on the thread's own stack */
        if (!go_thread_find(sampling->options->runtime, goroutine->thread, sampling->tids,
                            sampling->options->caught->count, &thread))
            return false;
        catch->below = thread_of(sampling, thread.tid);
        if (!catch->below || !catch->below->caught ||
            catch->below->seen.registers[LIVE_SP] - thread.stack_low >= thread.stack_high - thread.stack_low)
            return false;
        catch->from = (struct go_point){goroutine->saved_pc, goroutine->saved_sp, false};
        break;
    default:
        return false;
    }
    return catch->from.pc &&
           catch->from.sp - goroutine->stack_low < goroutine->stack_high - goroutine->stack_low;
}

static int copy_stack(const struct sampling *sampling, const struct goroutine *goroutine, uint64_t from,
                      struct live_copy *copy)
{
    size_t limit = sampling->now.count < MANY_GOROUTINES ? COPY_LIMIT : COPY_LIMIT_MANY;
    size_t size = goroutine->stack_high - from < limit ? goroutine->stack_high - from : limit;

    live_copy_release(copy);
    copy->bytes = malloc(size + 1);
    if (!copy->bytes)
        return -ENOMEM;
    copy->address = from;
    copy->size = target_memory_read(sampling->options->runtime->pid, from, copy->bytes, size);
    copy->stack_low = goroutine->stack_low;
    copy->stack_high = goroutine->stack_high;
    return 0;
}

/* Looks where the goroutine's stack is, and copies it if it rests there. */
static int begin_catching(struct sampling *sampling, size_t index)
{
    const struct goroutine *goroutine = &sampling->now.items[index];
    struct catch *catch = &sampling->catches[index];

    *catch = (struct catch){.on = thread_on(sampling, goroutine)};
    if (catch->on && !had_stack(sampling, goroutine))
        catch->on = NULL;
    if (catch->on || !resting_place(sampling, goroutine, catch))
        return 0;
    return copy_stack(sampling, goroutine, catch->from.sp, &sampling->copies[index]);
}

/* Whether the stack still has the bytes that were copied. A goroutine that went on and came to rest at the
 * same place while they were copied has the same struct, but the copy may be of both times. */
static bool is_unchanged(const struct sampling *sampling, const struct live_copy *copy)
{
    AUTO_FREE uint8_t *bytes = malloc(copy->size + 1);

    return bytes && copy->size &&
           target_memory_read(sampling->options->runtime->pid, copy->address, bytes, copy->size) ==
               copy->size &&
           !memcmp(bytes, copy->bytes, copy->size);
}

/* It is caught when it has not gone on since; else what is known of it is what it is now. */
static void end_catching(struct sampling *sampling, size_t index)
{
    struct goroutine *goroutine = &sampling->now.items[index], *again = &sampling->again[index];
    struct catch *catch = &sampling->catches[index];

    if (catch->on)
        catch->caught = goroutine->goid == again->goid && goroutine->stack_low == again->stack_low;
    else
        catch->caught = catch->from.pc && goroutine_rests(goroutine, again) &&
                        is_unchanged(sampling, &sampling->copies[index]);
    if (!catch->caught)
        *goroutine = *again;
}

/* Copies the stacks of all, and looks whether they rested meanwhile. */
static int catch_together(struct sampling *sampling)
{
    const struct goroutines *now = &sampling->now;
    int r = 0;

    for (size_t i = 0; i < now->count && !r; i++)
        r = begin_catching(sampling, i);
    if (!r)
        r = goroutines_again(sampling->options->runtime, now->items, now->count, sampling->again);
    for (size_t i = 0; i < now->count && !r; i++)
        end_catching(sampling, i);
    return r;
}

/* Once more for one of them, where the moment is short. */
static int catch_alone(struct sampling *sampling, size_t index)
{
    const struct goroutine *goroutine = &sampling->now.items[index];
    int r = 0;

    for (int round = 0; round < ROUNDS && !sampling->catches[index].caught && goroutine->goid && !r;
         round++) {
        r = begin_catching(sampling, index);
        if (!r)
            r = goroutines_again(sampling->options->runtime, goroutine, 1, &sampling->again[index]);
        if (!r)
            end_catching(sampling, index);
    }
    return r;
}

/* ------------------------------------------------------------------------------------------------ stacks */

static void state_words(const struct sampling *sampling, const struct goroutine *goroutine,
                        const struct catch *catch, char *ret_text, size_t size)
{
    const struct go_layout *layout = &sampling->options->runtime->layout;
    char thread[48] = "";

    switch (goroutine->status) {
    case GOROUTINE_RUNNABLE:
    case GOROUTINE_PREEMPTED:
        snprintf(ret_text, size, "runnable");
        return;
    case GOROUTINE_RUNNING:
        snprintf(ret_text, size, "running");
        return;
    case GOROUTINE_IN_SYSTEM_CALL:
        if (catch->below)
            thread_state_words(&catch->below->seen, thread, sizeof(thread));
        snprintf(ret_text, size, "%s", *thread ? thread : "in a system call");
        return;
    default:
        snprintf(ret_text, size, "%s",
                 goroutine->status == GOROUTINE_WAITING && goroutine->wait_reason < layout->wait_reason_count
                     ? layout->wait_reasons[goroutine->wait_reason]
                     : "waiting");
    }
}

/* The stack of a goroutine that is caught. False: no memory. */
static bool walk(const struct sampling *sampling, const struct catch *catch, const struct live_copy *copy,
                 struct sampled_thread *thread)
{
    const struct goroutine_sampling *options = sampling->options;
    struct go_point from = catch->from, inner;

    if (catch->on) {
        if (!go_walk_to_go(options->runtime, options->unwinder, catch->on, thread, &from))
            return thread->known;
        copy = &catch->on->copies[0];
    } else if (catch->below && catch->below->caught) {
        go_walk_to_go(options->runtime, options->unwinder, catch->below, thread, &inner);
    }
    return thread->known && go_walk_stack(options->runtime, from, copy, thread);
}

/* Whether the runtime began it for itself. */
static bool is_system(const struct go_runtime *runtime, const struct sampled_thread *thread)
{
    const struct image_function *first;

    if (!thread->whole || thread->count < 2)
        return false;
    first =
        code_image_function(runtime->image, thread->activations[thread->count - 2].pc - runtime->bias - 1);
    return first && go_is_runtime(first->name);
}

static int add_goroutine(const struct sampling *sampling, size_t index, struct sampled_threads *threads,
                         size_t *ret_system)
{
    const struct goroutine *goroutine = &sampling->now.items[index];
    const struct catch *catch = &sampling->catches[index];
    const struct caught_thread *runs_on = catch->on ? catch->on : catch->below;
    struct live_copy *copy = &sampling->copies[index];
    struct sampled_thread thread = {.pid = sampling->options->runtime->pid,
                                    .tid = runs_on ? runs_on->seen.tid : 0,
                                    .switches = runs_on ? runs_on->seen.switches : 0,
                                    .goid = goroutine->goid,
                                    .known = catch->caught,
                                    .copies = catch->on ? catch->on->copies : copy,
                                    .copy_count = catch->on ? catch->on->copy_count : 1};

    state_words(sampling, goroutine, catch, thread.state, sizeof(thread.state));
    if ((catch->caught && !walk(sampling, catch, copy, &thread)) ||
        array_reserve(&threads->items, &threads->capacity, threads->count + 1)) {
        sampled_thread_release(&thread);
        return -ENOMEM;
    }
    if (!sampling->options->system && is_system(sampling->options->runtime, &thread)) {
        sampled_thread_release(&thread);
        ++*ret_system;
        return 0;
    }
    threads->items[threads->count++] = thread;
    return 0;
}

static int compare_goids(const void *a, const void *b)
{
    const struct sampled_thread *left = a, *right = b;

    return (left->goid > right->goid) - (left->goid < right->goid);
}

/* Which threads there is nothing to show of: they run Go code, which is a goroutine's or the runtime's. */
static int find_served(const struct sampling *sampling, bool *served)
{
    const struct goroutine_sampling *options = sampling->options;

    for (size_t i = 0; i < options->caught->count; i++) {
        struct sampled_thread thread = {.known = true};
        struct go_point point;

        served[i] =
            options->caught->threads[i].caught &&
            go_walk_to_go(options->runtime, options->unwinder, &options->caught->threads[i], &thread, &point);
        if (!thread.known) {
            sampled_thread_release(&thread);
            return -ENOMEM;
        }
        sampled_thread_release(&thread);
    }
    return 0;
}

/* ---------------------------------------------------------------------------------------------- in a whole
 */

static int prepare(struct sampling *sampling)
{
    const struct caught_process *caught = sampling->options->caught;
    int r = goroutines_list(sampling->options->runtime, &sampling->now);
    size_t count = sampling->now.count + 1;

    if (r)
        return r;
    sampling->tids = malloc((caught->count + 1) * sizeof(*sampling->tids));
    sampling->catches = calloc(count, sizeof(*sampling->catches));
    sampling->copies = calloc(count, sizeof(*sampling->copies));
    sampling->again = calloc(count, sizeof(*sampling->again));
    if (!sampling->tids || !sampling->catches || !sampling->copies || !sampling->again)
        return -ENOMEM;
    for (size_t i = 0; i < caught->count; i++)
        sampling->tids[i] = caught->threads[i].seen.tid;
    return 0;
}

static int sample(struct sampling *sampling, struct sampled_threads *threads, bool *served,
                  size_t *ret_system)
{
    size_t native = threads->count;
    int r = prepare(sampling);

    if (!r)
        r = catch_together(sampling);
    for (size_t i = 0; i < sampling->now.count && !r; i++)
        r = catch_alone(sampling, i);
    for (size_t i = 0; i < sampling->now.count && !r; i++)
        if (sampling->now.items[i].goid)
            r = add_goroutine(sampling, i, threads, ret_system);
    if (threads->count > native)
        qsort(threads->items + native, threads->count - native, sizeof(*threads->items), compare_goids);
    return r ? r : find_served(sampling, served);
}

int goroutines_sample(const struct goroutine_sampling *options, struct sampled_threads *threads, bool *served,
                      struct goroutine_copies *ret_copies, size_t *ret_system)
{
    struct sampling sampling = {.options = options};
    int r = sample(&sampling, threads, served, ret_system);

    *ret_copies = (struct goroutine_copies){sampling.copies, sampling.copies ? sampling.now.count : 0};
    goroutines_release(&sampling.now);
    free(sampling.tids);
    free(sampling.catches);
    free(sampling.again);
    return r;
}
