/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/ranking_votes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

int votes_difference(const struct run_context *normals, size_t count, long spare,
                     const struct run_context *subject, struct similarity *ret_difference)
{
    const double *faulty = subject->similarity.values;
    size_t size = similarity_size(subject->similarity.count);
    double *values = malloc((size + 1) * sizeof(*values));

    if (!values)
        return -ENOMEM;
    for (size_t at = 0; at < size; at++) {
        double low = INFINITY, high = -INFINITY;

        for (size_t i = 0; i < count; i++) {
            double normal = normals[i].similarity.values[at];

            if ((long)i == spare)
                continue;
            low = normal < low ? normal : low;
            high = normal > high ? normal : high;
        }
        values[at] = faulty[at] < low ? low - faulty[at] : faulty[at] > high ? faulty[at] - high : 0;
    }
    *ret_difference = (struct similarity){subject->similarity.count, values};
    return 0;
}

void votes_relations(const struct similarity *difference, double *changes)
{
    size_t count = difference->count, at = 0;

    memset(changes, 0, count * sizeof(*changes));
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count; j++, at++) {
            changes[i] += difference->values[at];
            changes[j] += difference->values[at];
        }
    for (size_t i = 0; i < count && count > 1; i++)
        changes[i] /= (double)(count - 1);
}

/* ------------------------------------------------------------------------------------------ own change */

static double jaccard_distance(const struct attribute_set *a, const struct attribute_set *b)
{
    size_t i = 0, j = 0, common = 0, all;

    while (i < a->count && j < b->count) {
        common += a->ids[i] == b->ids[j];
        if (a->ids[i] < b->ids[j])
            i++;
        else if (a->ids[i] > b->ids[j])
            j++;
        else
            i++, j++;
    }
    all = a->count + b->count - common;
    return all ? 1 - (double)common / (double)all : 0;
}

struct weight {
    struct attribute_entry entries[2];
    uint64_t frequency;
};

static int compare_weights(const void *a, const void *b)
{
    return memcmp(((const struct weight *)a)->entries, ((const struct weight *)b)->entries,
                  sizeof(((const struct weight *)a)->entries));
}

/* A set's entries with their frequencies, in an order that both sides share. */
static struct weight *weights_of(const struct attribute_table *table, const struct attribute_set *set)
{
    struct weight *weights = calloc(set->count + 1, sizeof(*weights));

    for (size_t i = 0; weights && i < set->count; i++) {
        const struct attribute *attribute = &table->attributes[set->ids[i]];

        memcpy(weights[i].entries, attribute->entries, sizeof(weights[i].entries));
        weights[i].frequency = attribute->frequency;
    }
    if (weights)
        qsort(weights, set->count, sizeof(*weights), compare_weights);
    return weights;
}

static int weighted_distance(const struct attribute_table *table, const struct attribute_set *a,
                             const struct attribute_set *b, double *ret_distance)
{
    AUTO_FREE struct weight *x = weights_of(table, a);
    AUTO_FREE struct weight *y = weights_of(table, b);
    double least = 0, most = 0;
    size_t i = 0, j = 0;

    if (!x || !y)
        return -ENOMEM;
    while (i < a->count || j < b->count) {
        int order = i == a->count ? 1 : j == b->count ? -1 : compare_weights(&x[i], &y[j]);
        double one = order <= 0 ? (double)x[i++].frequency : 0;
        double other = order >= 0 ? (double)y[j++].frequency : 0;

        least += one < other ? one : other;
        most += one > other ? one : other;
    }
    *ret_distance = most > 0 ? 1 - least / most : 0;
    return 0;
}

int votes_own_change(const struct attribute_table *table, const struct run_context *normals, size_t count,
                     long spare, const struct run_context *subject, size_t object, bool weighted,
                     double *ret_change)
{
    double least = 1;

    for (size_t i = 0; i < count; i++) {
        double distance;

        if ((long)i == spare)
            continue;
        if (!weighted)
            distance = jaccard_distance(&normals[i].sets[object], &subject->sets[object]);
        else if (weighted_distance(table, &normals[i].sets[object], &subject->sets[object], &distance))
            return -ENOMEM;
        least = distance < least ? distance : least;
    }
    *ret_change = least;
    return 0;
}

/* ------------------------------------------------------------------------------------------ votes */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

int votes_stand_out(double *changes, size_t count, double *ret_confidence)
{
    AUTO_FREE double *sorted = malloc((count + 1) * sizeof(*sorted));
    double median, sum = 0, squares = 0;

    if (!sorted)
        return -ENOMEM;
    *ret_confidence = 0;
    if (!count)
        return 0;
    memcpy(sorted, changes, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), compare_doubles);
    median = count < 3 ? 0 : sorted[(count - 1) / 2]; /* of two, both are most */
    for (size_t i = 0; i < count; i++) {
        changes[i] = changes[i] > median ? changes[i] - median : 0;
        sum += changes[i];
        squares += changes[i] * changes[i];
    }
    /* sum^2 / squares is the number of objects that share the change, if they shared it equally. */
    if (squares > 0)
        *ret_confidence = count > 1 ? ((double)count - sum * sum / squares) / (double)(count - 1) : 1;
    return 0;
}
