/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/ranking/ranking.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/ranking/ranking_combination.h"
#include "base/cleanup.h"

enum { MOST_WORKERS = 64 };

/* The next normal run may vary more than those few that are known. */
#define VARIATION_MARGIN 2.0

/* Suspects worth a word have at least so much of the highest score. */
#define NOTABLE_PART 0.1

/* A change that all have in common counts, too, but never as much as standing out: when all hang alike, that
 * is no reason to say that nothing has changed. */
#define COMMON_PART 0.1

/* One view and one kind of attributes. */
struct task {
    struct combination threads, processes;
};

struct sweep {
    const struct ranking_sweep *options;
    const struct object_maps *maps;
    struct similarity thread_peers, process_peers;
    struct task *tasks; /* of view v and attributes a: tasks[v * attribute_count + a] */
    size_t task_count;
    atomic_size_t next;
    atomic_int failed;
};

static int run_task(const struct sweep *sweep, size_t index)
{
    const struct ranking_sweep *options = sweep->options;
    const struct ranking_view *view = &options->views[index / options->attribute_count];
    struct attribute_kind kind = options->attributes[index % options->attribute_count];
    struct task *task = &sweep->tasks[index];
    int r = combination_compute(view, kind, options->linkages, options->linkage_count, &sweep->maps->threads,
                                &sweep->thread_peers, &task->threads);

    return r ? r
             : combination_compute(view, kind, options->linkages, options->linkage_count,
                                   &sweep->maps->processes, &sweep->process_peers, &task->processes);
}

static void *work(void *argument)
{
    struct sweep *sweep = argument;

    for (;;) {
        size_t index = atomic_fetch_add(&sweep->next, 1);
        int r = index < sweep->task_count && !atomic_load(&sweep->failed) ? run_task(sweep, index) : 1;

        if (r < 0)
            atomic_store(&sweep->failed, r);
        if (r)
            return NULL;
    }
}

/* The calling thread works, too; so that fewer helpers than wanted only make it slower. */
static int run_tasks(struct sweep *sweep)
{
    pthread_t helpers[MOST_WORKERS];
    unsigned count = 0, wanted = sweep->options->workers;

    if (wanted > MOST_WORKERS)
        wanted = MOST_WORKERS;
    while (count + 1 < wanted && !pthread_create(&helpers[count], NULL, work, sweep))
        count++;
    work(sweep);
    while (count)
        pthread_join(helpers[--count], NULL);
    return atomic_load(&sweep->failed);
}

/* ------------------------------------------------------------------------------------------ consensus */

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    if (x->change != y->change)
        return x->change > y->change ? -1 : 1;
    return x->object < y->object ? -1 : x->object > y->object;
}

static const struct combination *combination_of(const struct sweep *sweep, size_t task, bool processes)
{
    return processes ? &sweep->tasks[task].processes : &sweep->tasks[task].threads;
}

/* What the combinations say of a subject: the mean of their votes, weighted by their confidence, and the mean
 * of the objects' own changes. */
static void add_up(const struct sweep *sweep, bool processes, size_t subject, size_t count,
                   struct ranked *scores)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        scores[i] = (struct ranked){.object = (uint32_t)i};
    for (size_t task = 0; task < sweep->task_count; task++) {
        const struct combination *combination = combination_of(sweep, task, processes);
        double confidence = combination->confidence[subject];

        sum += confidence;
        for (size_t i = 0; i < count; i++) {
            scores[i].change += confidence * combination->votes[subject * count + i];
            scores[i].own += combination->own[subject * count + i] / (double)sweep->task_count;
        }
    }
    for (size_t i = 0; i < count && sum > 0; i++)
        scores[i].change /= sum;
}

/* What an object's peers, and it itself, change between normal runs, is what it may change. */
static void add_variation(const struct ranked *scores, size_t count, const struct similarity *peers,
                          struct ranked *consensus)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++) {
            double weight = VARIATION_MARGIN * similarity_at(peers, i, j);

            consensus[i].variation = fmax(consensus[i].variation, weight * scores[j].change);
            consensus[i].own_variation = fmax(consensus[i].own_variation, weight * scores[j].own);
        }
}

/* Whether a thread of the object came back from its last call in every normal run, and in the faulty one not.
 */
static bool hangs(const struct loop_summary *summary, const struct object_map *map, size_t object)
{
    for (size_t member = map->first[object]; member < map->first[object + 1]; member++) {
        size_t faulty = summary->run_count - 1, run = 0;

        while (run < faulty &&
               summary->runs[run].threads[map->threads[run * map->members + member]].last_call ==
                   LAST_CALL_RETURNED)
            run++;
        if (run == faulty &&
            summary->runs[run].threads[map->threads[run * map->members + member]].last_call == LAST_CALL_OPEN)
            return true;
    }
    return false;
}

static int find_consensus(const struct sweep *sweep, bool processes, struct object_map *map,
                          struct ranking_objects *objects)
{
    size_t subjects = combination_of(sweep, 0, processes)->subjects;
    AUTO_FREE struct ranked *others = calloc(map->count + 1, sizeof(*others));

    objects->consensus = calloc(map->count + 1, sizeof(*objects->consensus));
    if (!others || !objects->consensus)
        return -ENOMEM;
    objects->labels = take_pointer(map->labels);
    objects->count = map->count;
    add_up(sweep, processes, 0, objects->count, objects->consensus);
    for (size_t subject = 1; subject < subjects; subject++) {
        add_up(sweep, processes, subject, objects->count, others);
        add_variation(others, objects->count, processes ? &sweep->process_peers : &sweep->thread_peers,
                      objects->consensus);
    }
    for (size_t i = 0; i < objects->count; i++) {
        struct ranked *ranked = &objects->consensus[i];

        ranked->hangs = hangs(sweep->options->views->summary, map, i);
        ranked->score = fmax(0, ranked->change - ranked->variation) +
                        COMMON_PART * (ranked->hangs + fmax(0, ranked->own - ranked->own_variation));
    }
    qsort(objects->consensus, objects->count, sizeof(*objects->consensus), compare_ranked);
    return 0;
}

/* ------------------------------------------------------------------------------------------ rows */

static int compare_rows(const void *a, const void *b)
{
    const struct ranking_row *x = a, *y = b;

    if (x->b_score != y->b_score)
        return x->b_score < y->b_score ? -1 : 1;
    if (x->confidence != y->confidence)
        return x->confidence > y->confidence ? -1 : 1;
    if (x->view != y->view)
        return x->view < y->view ? -1 : 1;
    if (x->attributes.unit != y->attributes.unit)
        return x->attributes.unit < y->attributes.unit ? -1 : 1;
    if (x->attributes.frequency != y->attributes.frequency)
        return x->attributes.frequency < y->attributes.frequency ? -1 : 1;
    return x->linkage < y->linkage ? -1 : x->linkage > y->linkage;
}

static int make_rows(const struct sweep *sweep, struct ranking *ranking)
{
    const struct ranking_sweep *options = sweep->options;

    ranking->rows = calloc(sweep->task_count * options->linkage_count, sizeof(*ranking->rows));
    if (!ranking->rows)
        return -ENOMEM;
    for (size_t task = 0; task < sweep->task_count; task++)
        for (size_t i = 0; i < options->linkage_count; i++) {
            struct linkage_result *threads = &sweep->tasks[task].threads.linkages[i];
            struct linkage_result *processes = &sweep->tasks[task].processes.linkages[i];

            ranking->rows[ranking->row_count++] = (struct ranking_row){
                .view = task / options->attribute_count,
                .attributes = options->attributes[task % options->attribute_count],
                .linkage = options->linkages[i],
                .b_score = threads->b_score,
                .confidence = sweep->tasks[task].threads.confidence[0],
                .threads = threads->suspects,
                .thread_count = threads->suspect_count,
                .processes = processes->suspects,
                .process_count = processes->suspect_count,
            };
            threads->suspects = processes->suspects = NULL; /* handed on */
        }
    qsort(ranking->rows, ranking->row_count, sizeof(*ranking->rows), compare_rows);
    return 0;
}

/* ------------------------------------------------------------------------------------------ all of it */

static void sweep_release(struct sweep *sweep)
{
    for (size_t i = 0; sweep->tasks && i < sweep->task_count; i++) {
        combination_release(&sweep->tasks[i].threads);
        combination_release(&sweep->tasks[i].processes);
    }
    free(sweep->tasks);
    similarity_release(&sweep->thread_peers);
    similarity_release(&sweep->process_peers);
}

int rank_runs(const struct ranking_sweep *options, struct ranking *ret_ranking)
{
    CLEANUP(object_maps_release) struct object_maps maps = {0};
    CLEANUP(sweep_release) struct sweep sweep = {.options = options, .maps = &maps};
    struct ranking ranking = {0};
    int r;

    sweep.task_count = options->view_count * options->attribute_count;
    if (!sweep.task_count || !options->linkage_count || options->views->summary->run_count < 2)
        return -EINVAL;
    sweep.tasks = calloc(sweep.task_count, sizeof(*sweep.tasks));
    r = sweep.tasks ? object_maps_make(options->views, options->view_count, &ranking, &maps) : -ENOMEM;
    if (!r)
        r = peers_compute(&options->views[0], &maps.threads, &sweep.thread_peers);
    if (!r)
        r = peers_compute(&options->views[0], &maps.processes, &sweep.process_peers);
    if (!r)
        r = run_tasks(&sweep);
    if (!r)
        r = make_rows(&sweep, &ranking);
    if (!r)
        r = find_consensus(&sweep, false, &maps.threads, &ranking.threads);
    if (!r)
        r = find_consensus(&sweep, true, &maps.processes, &ranking.processes);
    if (r) {
        ranking_release(&ranking);
        return r;
    }
    *ret_ranking = ranking;
    return 0;
}

static void objects_release(struct ranking_objects *objects)
{
    for (size_t i = 0; i < objects->count; i++)
        free(objects->labels[i]);
    free(objects->labels);
    free(objects->consensus);
}

void ranking_release(struct ranking *ranking)
{
    for (size_t i = 0; i < ranking->row_count; i++) {
        free(ranking->rows[i].threads);
        free(ranking->rows[i].processes);
    }
    free(ranking->rows);
    free(ranking->unranked);
    objects_release(&ranking->threads);
    objects_release(&ranking->processes);
    *ranking = (struct ranking){0};
}

size_t ranking_suspects(const struct ranking_objects *objects)
{
    double least = objects->count ? objects->consensus[0].score * NOTABLE_PART : 0;
    size_t count = 0;

    while (count < objects->count && objects->consensus[count].score > 0 &&
           objects->consensus[count].score >= least)
        count++;
    return count;
}
