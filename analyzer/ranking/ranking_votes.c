/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/ranking/ranking_votes.h"

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

struct weight {
    struct attribute_entry entries[2];
    uint64_t frequency;
};

static int compare_weights(const void *a, const void *b)
{
    return memcmp(((const struct weight *)a)->entries, ((const struct weight *)b)->entries,
                  sizeof(((const struct weight *)a)->entries));
}

/* A set's entries with their frequencies, in an order that both sides share, each once. */
static struct weight *weights_of(const struct attribute_table *table, const struct attribute_set *set,
                                 size_t *ret_count)
{
    struct weight *weights = calloc(set->count + 1, sizeof(*weights));
    size_t count = 0;

    for (size_t i = 0; weights && i < set->count; i++) {
        const struct attribute *attribute = &table->attributes[set->ids[i]];

        memcpy(weights[i].entries, attribute->entries, sizeof(weights[i].entries));
        weights[i].frequency = attribute->frequency;
    }
    if (!weights)
        return NULL;
    qsort(weights, set->count, sizeof(*weights), compare_weights);
    for (size_t i = 0; i < set->count; i++) { /* threads of one process have the same entries */
        if (count && !compare_weights(&weights[count - 1], &weights[i]))
            weights[count - 1].frequency += weights[i].frequency;
        else
            weights[count++] = weights[i];
    }
    *ret_count = count;
    return weights;
}

/* What a change of a frequency says. */
static double change_of(double one, double other)
{
    double least = one < other ? one : other, most = one > other ? one : other;
    double roots = sqrt(most) - sqrt(least);

    return most > 0 ? (1 - least / most) * (1 - exp(-roots * roots / 2)) : 0;
}

/* An entry's frequencies in the normal runs; of runs that do not have it, 0. */
struct range {
    struct attribute_entry entries[2];
    uint64_t low, high;
    size_t runs; /* that have it */
};

static int compare_ranges(const void *a, const void *b)
{
    return memcmp(((const struct range *)a)->entries, ((const struct range *)b)->entries,
                  sizeof(((const struct range *)a)->entries));
}

/* Sorts what several runs have by entries, and makes one of those of one entry. Returns their number. */
static size_t merge_ranges(struct range *ranges, size_t count, size_t runs)
{
    size_t merged = 0;

    qsort(ranges, count, sizeof(*ranges), compare_ranges);
    for (size_t i = 0; i < count; i++) {
        struct range *last = merged ? &ranges[merged - 1] : NULL;

        if (!last || compare_ranges(last, &ranges[i])) {
            ranges[merged++] = ranges[i];
            continue;
        }
        last->low = ranges[i].low < last->low ? ranges[i].low : last->low;
        last->high = ranges[i].high > last->high ? ranges[i].high : last->high;
        last->runs++;
    }
    for (size_t i = 0; i < merged; i++)
        if (ranges[i].runs < runs)
            ranges[i].low = 0;
    return merged;
}

static double outside(const struct range *range, uint64_t frequency)
{
    if (frequency < range->low)
        return change_of((double)frequency, (double)range->low);
    return frequency > range->high ? change_of((double)frequency, (double)range->high) : 0;
}

/* The mean over all entries of how far the subject's frequency lies outside the range. */
static double mean_outside(const struct range *ranges, size_t range_count, const struct weight *weights,
                           size_t weight_count)
{
    size_t i = 0, j = 0, entries = 0;
    double sum = 0;

    for (; i < range_count || j < weight_count; entries++) {
        static const struct range never;
        int order = i == range_count ? 1
                    : j == weight_count
                        ? -1
                        : memcmp(ranges[i].entries, weights[j].entries, sizeof(ranges[i].entries));
        const struct range *range = order <= 0 ? &ranges[i++] : &never;

        sum += outside(range, order >= 0 ? weights[j++].frequency : 0);
    }
    return entries ? sum / (double)entries : 0;
}

/* The entries of all normal runs but the spare one, in memory from malloc. */
static struct range *normal_ranges(const struct attribute_table *table, const struct run_context *normals,
                                   size_t count, long spare, size_t object, size_t *ret_count)
{
    struct range *ranges;
    size_t most = 0, filled = 0, runs = 0;

    for (size_t run = 0; run < count; run++)
        most += normals[run].counts[object].count;
    ranges = calloc(most + 1, sizeof(*ranges));
    for (size_t run = 0; ranges && run < count; run++) {
        size_t weights_count = 0;
        AUTO_FREE struct weight *weights = NULL;

        if ((long)run == spare)
            continue;
        weights = weights_of(table, &normals[run].counts[object], &weights_count);
        if (!weights) {
            free(ranges);
            return NULL;
        }
        runs++;
        for (size_t i = 0; i < weights_count; i++) {
            struct range *range = &ranges[filled++];

            memcpy(range->entries, weights[i].entries, sizeof(range->entries));
            range->low = range->high = weights[i].frequency;
            range->runs = 1;
        }
    }
    if (ranges)
        *ret_count = merge_ranges(ranges, filled, runs);
    return ranges;
}

int votes_own_change(const struct attribute_table *table, const struct run_context *normals, size_t count,
                     long spare, const struct run_context *subject, size_t object, double *ret_change)
{
    size_t range_count = 0, weight_count = 0;
    AUTO_FREE struct range *ranges = normal_ranges(table, normals, count, spare, object, &range_count);
    AUTO_FREE struct weight *weights = weights_of(table, &subject->counts[object], &weight_count);

    if (!ranges || !weights)
        return -ENOMEM;
    *ret_change = mean_outside(ranges, range_count, weights, weight_count);
    return 0;
}

double votes_of_changes(double relations, double own)
{
    return (own + sqrt(relations * own)) / 2;
}

/* ------------------------------------------------------------------------------------------ votes */

/* Of its peers, the share that changed as much as the object; of one that changed half as much, half. */
static double shared(const double *changes, size_t count, const struct similarity *peers, size_t object)
{
    double all = 0, part = 0;

    for (size_t i = 0; i < count; i++) {
        double weight = i == object ? 0 : similarity_at(peers, i, object);

        all += weight;
        part += changes[i] < changes[object] ? weight * changes[i] / changes[object] : weight;
    }
    return all > 0 ? part / all : 0;
}

int votes_stand_out(double *changes, size_t count, const struct similarity *peers, double *ret_confidence)
{
    AUTO_FREE double *votes = calloc(count + 1, sizeof(*votes));
    double sum = 0, squares = 0;

    if (!votes)
        return -ENOMEM;
    *ret_confidence = 0;
    for (size_t i = 0; i < count; i++) {
        if (changes[i] > 0)
            votes[i] = count < 3 ? changes[i] : changes[i] * (1 - shared(changes, count, peers, i));
        sum += votes[i];
        squares += votes[i] * votes[i];
    }
    memcpy(changes, votes, count * sizeof(*votes));
    /* sum^2 / squares is the number of objects that share the votes, if they shared them equally. */
    if (squares > 0)
        *ret_confidence = count > 1 ? ((double)count - sum * sum / squares) / (double)(count - 1) : 1;
    return 0;
}
