/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/report/report_objects.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/picture/folded_names.h"
#include "base/cleanup.h"

/* While the groups are looked for: the sets of thread i in run r are sets[r * count + i]. */
struct search {
    size_t run_count, count;
    struct attribute_set *sets;
};

static void search_release(struct search *search)
{
    for (size_t i = 0; search->sets && i < search->run_count * search->count; i++)
        attribute_set_release(&search->sets[i]);
    free(search->sets);
}

void report_objects_release(struct report_objects *objects)
{
    for (size_t i = 0; objects->sets && i < objects->run_count * objects->group_count; i++)
        attribute_set_release(&objects->sets[i]);
    for (size_t i = 0; objects->similarities && i < objects->run_count; i++)
        similarity_release(&objects->similarities[i]);
    for (size_t i = 0; objects->group_names && i < objects->group_count; i++)
        free(objects->group_names[i]);
    attribute_table_release(&objects->table);
    free(objects->names);
    free(objects->suspect);
    free(objects->importance);
    free(objects->group_of);
    free(objects->threads);
    free(objects->first);
    free(objects->group_names);
    free(objects->group_suspect);
    free(objects->sets);
    free(objects->similarities);
    *objects = (struct report_objects){0};
}

/* ------------------------------------------------------------------------------------------ threads */

static const struct thread_loops *find_thread(const struct run_loops *run, const char *key)
{
    size_t low = 0, high = run->thread_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = thread_label_compare(thread_key(&run->threads[middle]), key);

        if (!order)
            return &run->threads[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static int add_thread(const struct html_report *report, struct report_objects *objects, struct search *search,
                      const char *key)
{
    const struct run_loops *runs = report->summary->runs;

    for (size_t run = 0; run < report->run_count; run++)
        if (!find_thread(&runs[run], key))
            return 0;
    for (size_t run = 0; run < report->run_count; run++) {
        int r = attribute_set_of(&objects->table, report->attributes, &find_thread(&runs[run], key)->loops,
                                 &search->sets[run * search->count + objects->count]);

        if (r < 0)
            return r;
    }
    objects->importance[objects->count] = objects->count;
    objects->names[objects->count++] = find_thread(&runs[0], key)->label;
    return 0;
}

/* All threads of a run; of several, those that were ranked. */
static int add_threads(const struct html_report *report, struct report_objects *objects,
                       struct search *search)
{
    const struct ranking *ranking = report->ranking;
    size_t count = ranking ? ranking->threads.count : report->summary->runs[0].thread_count;
    int r = 0;

    *search = (struct search){.run_count = report->run_count, .count = count};
    search->sets = calloc(report->run_count * count + 1, sizeof(*search->sets));
    objects->names = calloc(count + 1, sizeof(*objects->names));
    objects->suspect = calloc(count + 1, sizeof(*objects->suspect));
    objects->importance = calloc(count + 1, sizeof(*objects->importance));
    if (!search->sets || !objects->names || !objects->suspect || !objects->importance)
        return -ENOMEM;
    for (size_t i = 0; i < count && !r; i++)
        r = add_thread(report, objects, search,
                       ranking ? ranking->threads.labels[i]
                               : thread_key(&report->summary->runs[0].threads[i]));
    if (r || !ranking || objects->count < count)
        return r;
    for (size_t i = 0; i < count; i++) {
        uint32_t object = ranking->threads.consensus[i].object;

        objects->importance[object] = i;
        objects->suspect[object] = i < report->suspects;
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------ groups */

static int compare_sets(const struct attribute_set *a, const struct attribute_set *b)
{
    if (a->count != b->count)
        return a->count < b->count ? -1 : 1;
    return a->count ? memcmp(a->ids, b->ids, a->count * sizeof(*a->ids)) : 0;
}

static int compare_in_all_runs(const struct search *search, uint32_t a, uint32_t b)
{
    int order = 0;

    for (size_t run = 0; run < search->run_count && !order; run++)
        order = compare_sets(&search->sets[run * search->count + a], &search->sets[run * search->count + b]);
    return order;
}

static int compare_threads(const void *a, const void *b, void *search)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int order = compare_in_all_runs(search, x, y);

    return order ? order : x < y ? -1 : x > y;
}

/* Numbers the groups by their first threads; `heads[thread]` is the first thread that is like it. */
static void number_groups(struct report_objects *objects, const uint32_t *heads)
{
    for (size_t i = 0; i < objects->count; i++)
        objects->group_of[i] = heads[i] == i ? (uint32_t)objects->group_count++ : objects->group_of[heads[i]];
    for (size_t i = 0; i < objects->count; i++)
        objects->first[objects->group_of[i] + 1]++;
    for (size_t group = 0; group < objects->group_count; group++)
        objects->first[group + 1] += objects->first[group];
    for (size_t i = objects->count; i-- > 0;)
        objects->threads[--objects->first[objects->group_of[i] + 1]] = (uint32_t)i;
    /* Each end has moved to its group's begin. */
    for (size_t group = 0; group < objects->group_count; group++)
        objects->first[group] = objects->first[group + 1];
    objects->first[objects->group_count] = objects->count;
}

static int find_groups(struct report_objects *objects, struct search *search)
{
    AUTO_FREE uint32_t *order = calloc(objects->count + 1, sizeof(*order));
    AUTO_FREE uint32_t *heads = calloc(objects->count + 1, sizeof(*heads));

    objects->group_of = calloc(objects->count + 1, sizeof(*objects->group_of));
    objects->threads = calloc(objects->count + 1, sizeof(*objects->threads));
    objects->first = calloc(objects->count + 2, sizeof(*objects->first));
    if (!order || !heads || !objects->group_of || !objects->threads || !objects->first)
        return -ENOMEM;
    for (size_t i = 0; i < objects->count; i++)
        order[i] = (uint32_t)i;
    qsort_r(order, objects->count, sizeof(*order), compare_threads, search);
    for (size_t i = 0; i < objects->count; i++) {
        bool alike = i && !compare_in_all_runs(search, order[i - 1], order[i]);

        heads[order[i]] = alike ? heads[order[i - 1]] : order[i];
    }
    number_groups(objects, heads);
    return 0;
}

/* Takes over the sets of each group's first thread. */
static int describe_groups(struct report_objects *objects, struct search *search)
{
    objects->sets = calloc(objects->run_count * objects->group_count + 1, sizeof(*objects->sets));
    objects->group_names = calloc(objects->group_count + 1, sizeof(*objects->group_names));
    objects->group_suspect = calloc(objects->group_count + 1, sizeof(*objects->group_suspect));
    if (!objects->sets || !objects->group_names || !objects->group_suspect)
        return -ENOMEM;
    for (size_t group = 0; group < objects->group_count; group++) {
        const uint32_t *threads = objects->threads + objects->first[group];
        size_t count = objects->first[group + 1] - objects->first[group];

        objects->group_names[group] = folded_name(objects->names, threads, count);
        if (!objects->group_names[group])
            return -ENOMEM;
        for (size_t i = 0; i < count; i++)
            objects->group_suspect[group] |= objects->suspect[threads[i]];
        for (size_t run = 0; run < objects->run_count; run++) {
            struct attribute_set *set = &search->sets[run * search->count + threads[0]];

            objects->sets[run * objects->group_count + group] = *set;
            *set = (struct attribute_set){0};
        }
    }
    return 0;
}

int report_objects_make(const struct html_report *report, struct report_objects *ret_objects)
{
    CLEANUP(search_release) struct search search = {0};
    int r;

    ret_objects->run_count = report->run_count;
    r = add_threads(report, ret_objects, &search);
    if (!r)
        r = find_groups(ret_objects, &search);
    if (!r)
        r = describe_groups(ret_objects, &search);
    if (r < 0)
        return r;
    ret_objects->similarities = calloc(report->run_count, sizeof(*ret_objects->similarities));
    if (!ret_objects->similarities)
        return -ENOMEM;
    for (size_t run = 0; run < report->run_count && !r; run++)
        r = similarity_of_sets(ret_objects->sets + run * ret_objects->group_count, ret_objects->group_count,
                               &ret_objects->similarities[run]);
    return r;
}

/* ------------------------------------------------------------------------------------------ the choice */

static size_t group_importance(const struct report_objects *objects, size_t group)
{
    size_t best = SIZE_MAX;

    for (size_t i = objects->first[group]; i < objects->first[group + 1]; i++)
        if (objects->importance[objects->threads[i]] < best)
            best = objects->importance[objects->threads[i]];
    return best;
}

static int compare_sizes(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;

    return x < y ? -1 : x > y;
}

size_t *report_objects_choose(const struct report_objects *objects, size_t most, size_t *ret_count)
{
    size_t *chosen = calloc(objects->group_count + 1, sizeof(*chosen)), count = 0;
    AUTO_FREE size_t *sorted = calloc(objects->group_count + 1, sizeof(*sorted));
    size_t limit;

    if (!chosen || !sorted) {
        free(chosen);
        return NULL;
    }
    for (size_t group = 0; group < objects->group_count; group++)
        sorted[group] = group_importance(objects, group);
    qsort(sorted, objects->group_count, sizeof(*sorted), compare_sizes);
    limit = objects->group_count > most ? sorted[most] : SIZE_MAX;
    for (size_t group = 0; group < objects->group_count; group++)
        if (group_importance(objects, group) < limit)
            chosen[count++] = group;
    *ret_count = count;
    return chosen;
}
