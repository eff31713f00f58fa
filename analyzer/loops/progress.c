/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/loops/progress.h"

#include <errno.h>

#include "base/array.h"
#include "base/cleanup.h"

/* An outer loop of a thread whose first outer loop is `group`. */
struct outer_loop {
    uint32_t group, body;
    size_t thread;
    uint64_t iterations;
};

struct outer_loops {
    struct outer_loop *items;
    size_t count, capacity;
};

static int by_group_and_body(const void *a, const void *b)
{
    const struct outer_loop *x = a, *y = b;

    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->body != y->body)
        return x->body < y->body ? -1 : 1;
    return (x->thread > y->thread) - (x->thread < y->thread);
}

static int add_thread(struct outer_loops *loops, const struct nlr_sequence *sequence, size_t thread,
                      struct thread_progress *progress)
{
    for (size_t i = 0; i < sequence->count; i++) {
        const struct nlr_element *element = &sequence->elements[i];

        if (element->kind != NLR_LOOP)
            continue;
        if (!progress->known)
            progress->loop = element->id;
        progress->known = true;
        if (array_reserve(&loops->items, &loops->capacity, loops->count + 1))
            return -ENOMEM;
        loops->items[loops->count++] =
            (struct outer_loop){progress->loop, element->id, thread, element->count};
    }
    return 0;
}

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* The loops `first` to `last` are of one group and body: they count when two threads have them. */
static void count_body(const struct outer_loops *loops, size_t first, size_t last,
                       struct thread_progress *progress)
{
    if (loops->items[first].thread == loops->items[last].thread)
        return;
    for (size_t i = first; i <= last; i++) {
        struct thread_progress *thread = &progress[loops->items[i].thread];

        thread->iterations = add(thread->iterations, loops->items[i].iterations);
    }
}

/* The same for one group, when its bodies have been counted. */
static void compare_group(const struct outer_loops *loops, size_t first, size_t last,
                          struct thread_progress *progress)
{
    uint64_t furthest = 0;
    size_t threads = 0;

    for (size_t i = first; i <= last; i++) {
        const struct outer_loop *loop = &loops->items[i];

        if (progress[loop->thread].iterations > furthest)
            furthest = progress[loop->thread].iterations;
        /* Each thread of the group has a loop of the group's own body. */
        threads += loop->body == loop->group &&
                   (i == first || loop[-1].body != loop->body || loop[-1].thread != loop->thread);
    }
    for (size_t i = first; i <= last; i++) {
        struct thread_progress *thread = &progress[loops->items[i].thread];

        if (threads < 2) {
            *thread = (struct thread_progress){0};
        } else {
            thread->furthest = furthest;
            thread->peers = threads - 1;
        }
    }
}

int progress_of_run(const struct run_loops *run, struct thread_progress *ret_progress)
{
    struct outer_loops loops = {0};
    AUTO_FREE struct outer_loop *items = NULL;
    size_t group = 0, body = 0;
    int r = 0;

    for (size_t i = 0; i < run->thread_count && r >= 0; i++) {
        const struct thread_loops *thread = &run->threads[i];

        ret_progress[i] = (struct thread_progress){0};
        if (!thread->gap_count && !thread->incomplete)
            r = add_thread(&loops, &thread->loops, i, &ret_progress[i]);
    }
    items = loops.items;
    if (r < 0 || !loops.count)
        return r;
    qsort(items, loops.count, sizeof(*items), by_group_and_body);
    for (size_t i = 0; i < loops.count; i++) {
        bool last_of_group = i + 1 == loops.count || items[i + 1].group != items[i].group;

        if (last_of_group || items[i + 1].body != items[i].body) {
            count_body(&loops, body, i, ret_progress);
            body = i + 1;
        }
        if (last_of_group) {
            compare_group(&loops, group, i, ret_progress);
            group = i + 1;
        }
    }
    return 0;
}
