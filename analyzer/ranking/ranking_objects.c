/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/ranking/ranking_objects.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"

/* Walks through the threads of all runs, which are in the order of their labels, side by side. */
struct walk {
    const struct loop_summary *summary;
    size_t *at;  /* by run: the next thread */
    bool *has;   /* by run: whether it has the thread with the current label */
    size_t runs; /* the faulty one is the last */
    bool ranks;  /* there are processes with MPI ranks */
};

/* The least key that comes next; NULL: the end. */
static const char *walk_next(struct walk *walk)
{
    const char *key = NULL;

    for (size_t run = 0; run < walk->runs; run++) {
        const struct run_loops *loops = &walk->summary->runs[run];

        if (walk->at[run] < loops->thread_count &&
            (!key || thread_label_compare(thread_key(&loops->threads[walk->at[run]]), key) < 0))
            key = thread_key(&loops->threads[walk->at[run]]);
    }
    for (size_t run = 0; key && run < walk->runs; run++) {
        const struct run_loops *loops = &walk->summary->runs[run];

        walk->has[run] =
            walk->at[run] < loops->thread_count && !strcmp(thread_key(&loops->threads[walk->at[run]]), key);
    }
    return key;
}

/* What the first run that has the thread calls it. */
static const char *walk_label(const struct walk *walk)
{
    size_t run = 0;

    while (!walk->has[run])
        run++;
    return walk->summary->runs[run].threads[walk->at[run]].label;
}

static void walk_on(struct walk *walk)
{
    for (size_t run = 0; run < walk->runs; run++)
        walk->at[run] += walk->has[run];
}

/* Filters differ in what they keep, so a gap may be seen in one view only: it counts for all. */
static bool events_missing(const struct walk *walk, const struct ranking_view *views, size_t view_count)
{
    for (size_t view = 0; view < view_count; view++)
        for (size_t run = 0; run < walk->runs; run++) {
            const struct thread_loops *thread = &views[view].summary->runs[run].threads[walk->at[run]];

            if (thread->incomplete || thread->gap_count)
                return true;
        }
    return false;
}

static bool any_ranks(const struct loop_summary *summary)
{
    for (size_t run = 0; run < summary->run_count; run++)
        for (size_t i = 0; i < summary->runs[run].thread_count; i++)
            if (summary->runs[run].threads[i].has_rank)
                return true;
    return false;
}

/* Whether the thread can be ranked, and otherwise why not. */
static bool rankable(const struct walk *walk, const struct ranking_view *views, size_t view_count,
                     enum unranked_why *ret_why)
{
    size_t normals = 0;

    for (size_t run = 0; run + 1 < walk->runs; run++)
        normals += walk->has[run];
    if (!walk->has[walk->runs - 1])
        *ret_why = UNRANKED_ONLY_NORMAL;
    else if (!normals)
        *ret_why = UNRANKED_ONLY_FAULTY;
    else if (normals + 1 < walk->runs)
        *ret_why = UNRANKED_VARIES;
    else if (events_missing(walk, views, view_count))
        *ret_why = UNRANKED_UNKNOWN;
    else if (walk->ranks && !walk->summary->runs[0].threads[walk->at[0]].has_rank)
        *ret_why = UNRANKED_NO_RANK;
    else
        return true;
    return false;
}

static int add_unranked(struct ranking *ranking, const char *label, enum unranked_why why)
{
    if (array_reserve(&ranking->unranked, &ranking->unranked_capacity, ranking->unranked_count + 1))
        return -ENOMEM;
    ranking->unranked[ranking->unranked_count++] = (struct unranked){label, why};
    return 0;
}

static int match_threads(struct walk *walk, const struct ranking_view *views, size_t view_count,
                         struct ranking *ranking, struct object_map *map, size_t *indices, size_t stride)
{
    for (; walk_next(walk); walk_on(walk)) {
        enum unranked_why why;

        if (!rankable(walk, views, view_count, &why)) {
            if (add_unranked(ranking, walk_label(walk), why))
                return -ENOMEM;
            continue;
        }
        map->labels[map->count] = strdup(walk_label(walk));
        if (!map->labels[map->count])
            return -ENOMEM;
        for (size_t run = 0; run < walk->runs; run++)
            indices[run * stride + map->count] = walk->at[run];
        map->first[map->count] = map->count;
        map->count++;
    }
    map->first[map->count] = map->count;
    return 0;
}

static int map_threads(const struct ranking_view *views, size_t view_count, struct ranking *ranking,
                       struct object_map *map)
{
    const struct loop_summary *summary = views->summary;
    size_t runs = summary->run_count, most = summary->runs[runs - 1].thread_count;
    AUTO_FREE size_t *at = calloc(runs, sizeof(*at));
    AUTO_FREE bool *has = calloc(runs, sizeof(*has));
    size_t *indices = calloc(runs * most + 1, sizeof(*indices));
    struct walk walk = {.summary = summary, .at = at, .has = has, .runs = runs, .ranks = any_ranks(summary)};

    map->threads = indices;
    map->members = most;
    map->labels = calloc(most + 1, sizeof(*map->labels));
    map->first = calloc(most + 1, sizeof(*map->first));
    if (!at || !has || !indices || !map->labels || !map->first)
        return -ENOMEM;
    return match_threads(&walk, views, view_count, ranking, map, indices, most);
}

static bool same_process(const char *a, const char *b)
{
    size_t length = strcspn(a, ".");

    return strcspn(b, ".") == length && !strncmp(a, b, length);
}

/* Threads of one process are neighbours in the order of the labels. */
static int map_processes(const struct loop_summary *summary, const struct object_map *threads,
                         struct object_map *map)
{
    const char *last = NULL;

    map->threads = threads->threads;
    map->members = threads->members;
    map->labels = calloc(threads->count + 1, sizeof(*map->labels));
    map->first = calloc(threads->count + 1, sizeof(*map->first));
    if (!map->labels || !map->first)
        return -ENOMEM;
    for (size_t i = 0; i < threads->count; i++) {
        const char *label = summary->runs[0].threads[threads->threads[i]].label;

        if (last && same_process(label, last))
            continue;
        last = label;
        map->labels[map->count] = strndup(label, strcspn(label, "."));
        if (!map->labels[map->count])
            return -ENOMEM;
        map->first[map->count++] = i;
    }
    map->first[map->count] = threads->count;
    return 0;
}

int object_maps_make(const struct ranking_view *views, size_t view_count, struct ranking *ranking,
                     struct object_maps *ret_maps)
{
    int r;

    *ret_maps = (struct object_maps){0};
    r = map_threads(views, view_count, ranking, &ret_maps->threads);
    return r ? r : map_processes(views->summary, &ret_maps->threads, &ret_maps->processes);
}

static void map_release(struct object_map *map)
{
    for (size_t i = 0; map->labels && i < map->count; i++)
        free(map->labels[i]);
    free(map->labels);
    free(map->first);
}

void object_maps_release(struct object_maps *maps)
{
    free((void *)maps->threads.threads);
    map_release(&maps->threads);
    map_release(&maps->processes);
}
