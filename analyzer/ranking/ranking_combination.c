/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/ranking/ranking_combination.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/cluster/b_score.h"
#include "analyzer/ranking/ranking_votes.h"
#include "base/cleanup.h"

/* A cluster of suspects has at most one object in so many. */
enum { SMALL_PART = 3 };

struct contexts {
    struct attribute_table table;
    struct run_context *runs; /* the faulty one last */
    size_t run_count, objects;
    const struct similarity *peers;
};

static void sets_free(struct attribute_set *sets, size_t count)
{
    for (size_t i = 0; sets && i < count; i++)
        attribute_set_release(&sets[i]);
    free(sets);
}

static void contexts_release(struct contexts *contexts)
{
    for (size_t run = 0; contexts->runs && run < contexts->run_count; run++) {
        if (contexts->runs[run].counts != contexts->runs[run].sets)
            sets_free(contexts->runs[run].counts, contexts->objects);
        sets_free(contexts->runs[run].sets, contexts->objects);
        similarity_release(&contexts->runs[run].similarity);
    }
    free(contexts->runs);
    attribute_table_release(&contexts->table);
}

/* The attributes of one object: its thread's, or those of all its threads. */
static int object_set(struct contexts *contexts, const struct run_loops *loops, struct attribute_kind kind,
                      const size_t *threads, size_t count, struct attribute_set *ret_set)
{
    struct attribute_set *sets;
    int r = 0;

    if (count == 1)
        return attribute_set_of(&contexts->table, kind, &loops->threads[*threads].loops, ret_set);
    sets = calloc(count + 1, sizeof(*sets));
    if (!sets)
        return -ENOMEM;
    for (size_t i = 0; i < count && !r; i++)
        r = attribute_set_of(&contexts->table, kind, &loops->threads[threads[i]].loops, &sets[i]);
    if (!r)
        r = attribute_set_union(sets, count, ret_set);
    sets_free(sets, count);
    return r;
}

/* The sets of all objects in one run. */
static int object_sets(struct contexts *contexts, const struct run_loops *loops, struct attribute_kind kind,
                       const struct object_map *objects, const size_t *threads,
                       struct attribute_set **ret_sets)
{
    int r = 0;

    *ret_sets = calloc(objects->count + 1, sizeof(**ret_sets));
    if (!*ret_sets)
        return -ENOMEM;
    for (size_t i = 0; i < objects->count && !r; i++)
        r = object_set(contexts, loops, kind, threads + objects->first[i],
                       objects->first[i + 1] - objects->first[i], &(*ret_sets)[i]);
    return r;
}

static int make_contexts(const struct ranking_view *view, struct attribute_kind kind,
                         const struct object_map *objects, struct contexts *contexts)
{
    const struct attribute_kind counts = {kind.unit, FREQUENCY_ACTUAL};
    int r = 0;

    contexts->run_count = view->summary->run_count;
    contexts->objects = objects->count;
    contexts->runs = calloc(contexts->run_count, sizeof(*contexts->runs));
    if (!contexts->runs)
        return -ENOMEM;
    for (size_t run = 0; run < contexts->run_count && !r; run++) {
        struct run_context *context = &contexts->runs[run];
        const struct run_loops *loops = &view->summary->runs[run];
        const size_t *threads = objects->threads + run * objects->members;

        r = object_sets(contexts, loops, kind, objects, threads, &context->sets);
        if (kind.frequency == FREQUENCY_ACTUAL)
            context->counts = context->sets;
        else if (!r)
            r = object_sets(contexts, loops, counts, objects, threads, &context->counts);
        if (!r)
            r = similarity_of_sets(context->sets, objects->count, &context->similarity);
    }
    return r;
}

/* ------------------------------------------------------------------------------------------ votes */

/* `spare` as in votes_difference. */
static int vote(const struct contexts *contexts, long spare, size_t subject, double *votes, double *own,
                double *ret_confidence)
{
    CLEANUP(similarity_release) struct similarity difference = {0};
    const struct run_context *run = &contexts->runs[subject];
    size_t normals = contexts->run_count - 1;
    int r = votes_difference(contexts->runs, normals, spare, run, &difference);

    if (!r)
        votes_relations(&difference, votes);
    for (size_t i = 0; i < contexts->objects && !r; i++) {
        r = votes_own_change(&contexts->table, contexts->runs, normals, spare, run, i, &own[i]);
        votes[i] = votes_of_changes(votes[i], own[i]);
    }
    return r ? r : votes_stand_out(votes, contexts->objects, contexts->peers, ret_confidence);
}

/* On the faulty run, and on every normal run against the other ones. */
static int vote_on_all(const struct contexts *contexts, struct combination *combination)
{
    size_t count = contexts->objects;
    int r = vote(contexts, -1, contexts->run_count - 1, combination->votes, combination->own,
                 combination->confidence);

    for (size_t i = 1; i < combination->subjects && !r; i++)
        r = vote(contexts, (long)i - 1, i - 1, combination->votes + i * count, combination->own + i * count,
                 &combination->confidence[i]);
    return r;
}

/* ------------------------------------------------------------------------------------------ clusterings */

/* Objects are as far from each other as their votes are. (JSM_D itself as a distance, as in the paper's
 * pictures, has an object next to those that it resembles as little as before: they hide it.) */
static int cluster(enum linkage_method method, const double *votes, size_t count, double *buffer,
                   struct linkage_merge *merges)
{
    size_t at = 0;

    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count; j++)
            buffer[at++] = fabs(votes[i] - votes[j]);
    return linkage_of(method, count, buffer, merges);
}

/* Into how many clusters the objects fall most clearly: where the distance between merges grows most. */
static size_t clearest_cut(const struct linkage_merge *merges, size_t count)
{
    size_t clusters = 1;
    double widest = 0;

    for (size_t i = 2; i <= count / 2 + 1 && i <= count; i++) {
        double below = i == count ? 0 : merges[count - i - 1].distance;
        double gap = merges[count - i].distance - below;

        if (gap > widest) {
            widest = gap;
            clusters = i;
        }
    }
    return clusters;
}

struct change {
    uint32_t object;
    double value;
};

static int compare_changes(const void *a, const void *b)
{
    const struct change *x = a, *y = b;

    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return x->object < y->object ? -1 : x->object > y->object;
}

/* The objects in small clusters that the combination votes for. */
static int find_suspects(const struct linkage_merge *merges, size_t count, const double *votes,
                         struct linkage_result *result)
{
    size_t clusters = clearest_cut(merges, count), found = 0;
    AUTO_FREE uint32_t *labels = calloc(count + 1, sizeof(*labels));
    AUTO_FREE size_t *sizes = calloc(count + 1, sizeof(*sizes));
    AUTO_FREE struct change *changes = calloc(count + 1, sizeof(*changes));
    size_t small = count / SMALL_PART ? count / SMALL_PART : 1;
    int r;

    if (!labels || !sizes || !changes)
        return -ENOMEM;
    r = clusters > 1 ? linkage_cut(merges, count, clusters, labels) : 0;
    if (r || clusters < 2)
        return r;
    for (size_t i = 0; i < count; i++)
        sizes[labels[i]]++;
    for (size_t i = 0; i < count; i++)
        if (sizes[labels[i]] <= small && votes[i] > 0)
            changes[found++] = (struct change){(uint32_t)i, votes[i]};
    qsort(changes, found, sizeof(*changes), compare_changes);
    result->suspects = calloc(found + 1, sizeof(*result->suspects));
    if (!result->suspects)
        return -ENOMEM;
    for (size_t i = 0; i < found; i++)
        result->suspects[i] = changes[i].object;
    result->suspect_count = found;
    return 0;
}

/* The mean of the runs' JSMs. */
static double mean_similarity(const struct run_context *runs, size_t count, size_t at)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += runs[i].similarity.values[at];
    return sum / (double)count;
}

/* 1 - JSM of the faulty run, and of the normal ones the mean. */
static void distances(const struct run_context *runs, size_t count, size_t size, double *values)
{
    for (size_t at = 0; at < size; at++)
        values[at] = 1 - mean_similarity(runs, count, at);
}

static int compare_clusterings(const struct contexts *contexts, enum linkage_method method, double *buffer,
                               double *ret_score)
{
    AUTO_FREE struct linkage_merge *normal = calloc(contexts->objects + 1, sizeof(*normal));
    AUTO_FREE struct linkage_merge *faulty = calloc(contexts->objects + 1, sizeof(*faulty));
    size_t count = contexts->objects, size = similarity_size(count), normals = contexts->run_count - 1;
    int r;

    if (!normal || !faulty)
        return -ENOMEM;
    distances(contexts->runs, normals, size, buffer);
    r = linkage_of(method, count, buffer, normal);
    distances(contexts->runs + normals, 1, size, buffer);
    if (!r)
        r = linkage_of(method, count, buffer, faulty);
    return r ? r : b_score(normal, faulty, count, NULL, ret_score);
}

static int compute_linkages(const struct contexts *contexts, const enum linkage_method *methods,
                            struct combination *combination)
{
    AUTO_FREE double *buffer = malloc((similarity_size(contexts->objects) + 1) * sizeof(*buffer));
    AUTO_FREE struct linkage_merge *merges = calloc(contexts->objects + 1, sizeof(*merges));
    int r = 0;

    if (!buffer || !merges)
        return -ENOMEM;
    for (size_t i = 0; i < combination->linkage_count && !r; i++) {
        r = compare_clusterings(contexts, methods[i], buffer, &combination->linkages[i].b_score);
        if (!r)
            r = cluster(methods[i], combination->votes, contexts->objects, buffer, merges);
        if (!r)
            r = find_suspects(merges, contexts->objects, combination->votes, &combination->linkages[i]);
    }
    return r;
}

/* ------------------------------------------------------------------------------------------ all of it */

int combination_compute(const struct ranking_view *view, struct attribute_kind kind,
                        const enum linkage_method *linkages, size_t linkage_count,
                        const struct object_map *objects, const struct similarity *peers,
                        struct combination *ret_combination)
{
    CLEANUP(contexts_release) struct contexts contexts = {.peers = peers};
    size_t normals = view->summary->run_count - 1;
    int r;

    ret_combination->subjects = normals > 1 ? 1 + normals : 1;
    ret_combination->linkage_count = linkage_count;
    ret_combination->votes = calloc(ret_combination->subjects * objects->count + 1, sizeof(double));
    ret_combination->own = calloc(ret_combination->subjects * objects->count + 1, sizeof(double));
    ret_combination->confidence = calloc(ret_combination->subjects, sizeof(double));
    ret_combination->linkages = calloc(linkage_count, sizeof(*ret_combination->linkages));
    if (!ret_combination->votes || !ret_combination->own || !ret_combination->confidence ||
        !ret_combination->linkages)
        return -ENOMEM;
    r = make_contexts(view, kind, objects, &contexts);
    if (!r)
        r = vote_on_all(&contexts, ret_combination);
    return r ? r : compute_linkages(&contexts, linkages, ret_combination);
}

int peers_compute(const struct ranking_view *view, const struct object_map *objects,
                  struct similarity *ret_peers)
{
    const struct attribute_kind kind = {ATTRIBUTE_SINGLE, FREQUENCY_NONE};
    CLEANUP(contexts_release) struct contexts contexts = {0};
    size_t size = similarity_size(objects->count);
    int r = make_contexts(view, kind, objects, &contexts);

    if (r)
        return r;
    ret_peers->values = malloc((size + 1) * sizeof(*ret_peers->values));
    if (!ret_peers->values)
        return -ENOMEM;
    ret_peers->count = objects->count;
    for (size_t at = 0; at < size; at++)
        ret_peers->values[at] = mean_similarity(contexts.runs, contexts.run_count - 1, at);
    return 0;
}

void combination_release(struct combination *combination)
{
    for (size_t i = 0; combination->linkages && i < combination->linkage_count; i++)
        free(combination->linkages[i].suspects);
    free(combination->linkages);
    free(combination->votes);
    free(combination->own);
    free(combination->confidence);
}
