/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/loops/goroutine_match.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"

/* A goroutine of one run. */
struct named {
    const char *process; /* first part of its key */
    size_t process_length;
    char *name;    /* "FUNCTION (PLACE < PLACE)" */
    size_t length; /* of the part of it that is compared */
    struct thread_loops *thread;
    bool taken;
};

struct names {
    struct named *items;
    size_t count;
};

static void names_release(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i].name);
    free(names->items);
}

static bool is_goroutine(const struct thread_loops *thread)
{
    return strstr(thread->label, ".g") != NULL;
}

static const struct tracestore_thread *find_thread(const struct tracestore_thread *threads, size_t count,
                                                   const char *label)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(threads[i].label, label))
            return &threads[i];
    return NULL;
}

static int read_names(const struct loop_source *source, const struct run_loops *run, struct names *names,
                      struct error *err)
{
    struct tracestore_thread *threads = NULL;
    size_t count = 0;
    int r = tracestore_threads(source->store, source->run->run_id, &threads, &count, err);

    if (r < 0)
        return r;
    names->items = calloc(run->thread_count + 1, sizeof(*names->items));
    for (size_t i = 0; names->items && i < run->thread_count; i++) {
        struct thread_loops *thread = &run->threads[i];
        const struct tracestore_thread *known = NULL;
        const char *key = thread_key(thread);

        if (!is_goroutine(thread))
            continue;
        /* Both are in the order of labels, but for what filters have left out. */
        known = find_thread(threads, count, thread->label);
        names->items[names->count++] = (struct named){.process = key,
                                                      .process_length = strcspn(key, "."),
                                                      .name = strdup(known ? known->name : ""),
                                                      .thread = thread};
        if (!names->items[names->count - 1].name)
            r = -ENOMEM;
    }
    tracestore_threads_free(threads, count);
    return names->items && !r ? 0 : (error_no_memory(err), -ENOMEM);
}

static bool same(const struct named *a, const struct named *b)
{
    return a->process_length == b->process_length && !memcmp(a->process, b->process, a->process_length) &&
           a->length == b->length && !memcmp(a->name, b->name, a->length);
}

static int take(struct named *goroutine, struct named *partner)
{
    char *key = strdup(thread_key(partner->thread));

    if (!key)
        return -ENOMEM;
    goroutine->taken = partner->taken = true;
    free(goroutine->thread->key);
    goroutine->thread->key = key;
    return 0;
}

/* Matches those whose names agree, up to the place where they were created or to their ends. */
static int match(struct names *first, struct names *other, bool whole)
{
    for (size_t i = 0; i < first->count; i++)
        first->items[i].length = whole ? strlen(first->items[i].name) : strcspn(first->items[i].name, " ");
    for (size_t i = 0; i < other->count; i++) {
        struct named *goroutine = &other->items[i];

        goroutine->length = whole ? strlen(goroutine->name) : strcspn(goroutine->name, " ");
        for (size_t j = 0; j < first->count && !goroutine->taken; j++)
            if (!first->items[j].taken && same(goroutine, &first->items[j]) &&
                take(goroutine, &first->items[j]))
                return -ENOMEM;
    }
    return 0;
}

/* Those without a partner must not look like one of those with the same label. */
static int part_others(struct names *other)
{
    for (size_t i = 0; i < other->count; i++) {
        struct thread_loops *thread = other->items[i].thread;
        char *key = NULL;

        if (other->items[i].taken)
            continue;
        if (asprintf(&key, "%s'", thread_key(thread)) < 0)
            return -ENOMEM;
        free(thread->key);
        thread->key = key;
    }
    return 0;
}

int goroutines_match(const struct loop_source *first_source, const struct run_loops *first,
                     const struct loop_source *source, struct run_loops *run, struct error *err)
{
    CLEANUP(names_release) struct names known = {0};
    CLEANUP(names_release) struct names other = {0};
    bool any = false;
    int r;

    for (size_t i = 0; !any && i < run->thread_count; i++)
        any = is_goroutine(&run->threads[i]);
    if (!any)
        return 0;
    r = read_names(first_source, first, &known, err);
    if (!r)
        r = read_names(source, run, &other, err);
    if (r)
        return r;
    if (match(&known, &other, true) || match(&known, &other, false) || part_others(&other))
        return error_no_memory(err), -ENOMEM;
    return 0;
}
