/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/diff/loop_pairs.h"

#include <errno.h>
#include <stdlib.h>

#include "analyzer/diff/myers.h"
#include "base/array.h"
#include "base/cleanup.h"

#define SIMILAR 0.5
/* A stretch with more pairs of loops than this to compare has its loops compared in order only. */
#define MOST_COMPARISONS 1024u

/* ------------------------------------------------------------------------------------------ similarity */

/* The calls of one iteration, inner loops entered once. Returns how many there are, with the `count` before
 * them. */
static size_t calls_of(const struct loop_table *table, uint32_t id, uint32_t *calls, size_t count)
{
    struct nlr_sequence body = loop_body_sequence(table, id);

    for (size_t i = 0; i < body.count && count < LOOP_PAIRS_CALLS; i++) {
        if (body.elements[i].kind == NLR_LOOP)
            count = calls_of(table, body.elements[i].id, calls, count);
        else if (body.elements[i].kind == NLR_SYMBOL)
            calls[count++] = body.elements[i].id;
    }
    return count;
}

int loop_similarity(const struct loop_table *table, uint32_t a, uint32_t b, double *ret_similarity)
{
    uint32_t first[LOOP_PAIRS_CALLS], second[LOOP_PAIRS_CALLS];
    bool only[2][LOOP_PAIRS_CALLS];
    size_t n, m, common = 0;

    if (a == b) {
        *ret_similarity = 1;
        return 0;
    }
    n = calls_of(table, a, first, 0);
    m = calls_of(table, b, second, 0);
    if (myers_diff(first, n, second, m, only[0], only[1]))
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        common += !only[0][i];
    *ret_similarity = n + m ? 2 * (double)common / (double)(n + m) : 0;
    return 0;
}

/* ------------------------------------------------------------------------------------------ a block */

struct pairing {
    const struct loop_table *table;
    const struct nlr_sequence *normal, *faulty;
    struct diff_nlr *diff;
};

static int add_pair(const struct pairing *pairing, size_t normal, size_t faulty, double similarity)
{
    struct diff_nlr *diff = pairing->diff;

    if (array_reserve(&diff->loops, &diff->loop_capacity, diff->loop_count + 1))
        return -ENOMEM;
    diff->loops[diff->loop_count++] = (struct diff_loop){
        .normal = normal,
        .faulty = faulty,
        .same = pairing->normal->elements[normal].id == pairing->faulty->elements[faulty].id,
        .similarity = similarity,
    };
    return 0;
}

/* The places of the loops in [first, end). */
static size_t loops_in(const struct nlr_sequence *sequence, size_t first, size_t end, size_t *places)
{
    size_t count = 0;

    for (size_t i = first; i < end; i++)
        if (sequence->elements[i].kind == NLR_LOOP)
            places[count++] = i;
    return count;
}

static int similarity_at(const struct pairing *pairing, size_t normal, size_t faulty, double *ret_similarity)
{
    return loop_similarity(pairing->table, pairing->normal->elements[normal].id,
                           pairing->faulty->elements[faulty].id, ret_similarity);
}

/* Too many to compare each with each. */
static int pair_in_order(const struct pairing *pairing, const size_t *left, size_t n, const size_t *right,
                         size_t m)
{
    int r = 0;

    for (size_t i = 0; i < n && i < m && !r; i++) {
        double similarity = 0;

        r = similarity_at(pairing, left[i], right[i], &similarity);
        if (!r && similarity > SIMILAR)
            r = add_pair(pairing, left[i], right[i], similarity);
    }
    return r;
}

/* best[i][j]: the largest sum over the loops from the i-th left and the j-th right one on. */
static int pair_best(const struct pairing *pairing, const size_t *left, size_t n, const size_t *right,
                     size_t m)
{
    size_t row = m + 1, i = 0, j = 0;
    AUTO_FREE double *best = calloc((n + 1) * row, sizeof(*best));
    AUTO_FREE double *similar = calloc(n * m, sizeof(*similar));
    int r = 0;

    if (!best || !similar)
        return -ENOMEM;
    for (i = n; i-- > 0;)
        for (j = m; j-- > 0;) {
            double *here = &best[i * row + j], similarity = 0;

            if (similarity_at(pairing, left[i], right[j], &similarity))
                return -ENOMEM;
            similar[i * m + j] = similarity > SIMILAR ? similarity : 0;
            *here = best[(i + 1) * row + j] > best[i * row + j + 1] ? best[(i + 1) * row + j]
                                                                    : best[i * row + j + 1];
            if (similar[i * m + j] > 0 && similar[i * m + j] + best[(i + 1) * row + j + 1] > *here)
                *here = similar[i * m + j] + best[(i + 1) * row + j + 1];
        }
    for (i = j = 0; i < n && j < m && !r;) {
        double here = best[i * row + j];

        if (here == best[(i + 1) * row + j]) {
            i++;
        } else if (here == best[i * row + j + 1]) {
            j++;
        } else {
            r = add_pair(pairing, left[i], right[j], similar[i * m + j]);
            i++, j++;
        }
    }
    return r;
}

/* Loops between two pairs of one body. */
static int pair_similar(const struct pairing *pairing, size_t normal, size_t normal_end, size_t faulty,
                        size_t faulty_end)
{
    AUTO_FREE size_t *left = NULL;
    AUTO_FREE size_t *right = NULL;
    size_t n, m;

    if (normal == normal_end || faulty == faulty_end)
        return 0;
    left = malloc((normal_end - normal) * sizeof(*left));
    right = malloc((faulty_end - faulty) * sizeof(*right));
    if (!left || !right)
        return -ENOMEM;
    n = loops_in(pairing->normal, normal, normal_end, left);
    m = loops_in(pairing->faulty, faulty, faulty_end, right);
    if (!n || !m)
        return 0;
    return n * m > MOST_COMPARISONS ? pair_in_order(pairing, left, n, right, m)
                                    : pair_best(pairing, left, n, right, m);
}

/* For each entry of one side of a block: the loop's body, or a number that occurs once. */
static void bodies_of(const struct nlr_sequence *sequence, size_t first, size_t count, uint32_t *next_unique,
                      uint32_t *ret_bodies)
{
    for (size_t i = 0; i < count; i++) {
        const struct nlr_element *element = &sequence->elements[first + i];

        ret_bodies[i] = element->kind == NLR_LOOP ? element->id : (*next_unique)++;
    }
}

/* Goes through the pairs of one body, and between them through what is left. */
static int add_pairs(const struct pairing *pairing, const struct diff_edit *block, const bool *normal_only,
                     const bool *faulty_only)
{
    size_t n = block->normal_count, m = block->faulty_count, i = 0, j = 0, last_i = 0, last_j = 0;
    int r = 0;

    while (r >= 0 && i < n && j < m) {
        if (normal_only[i]) {
            i++;
        } else if (faulty_only[j]) {
            j++;
        } else {
            r = pair_similar(pairing, block->normal + last_i, block->normal + i, block->faulty + last_j,
                             block->faulty + j);
            if (r >= 0)
                r = add_pair(pairing, block->normal + i++, block->faulty + j++, 1);
            last_i = i, last_j = j;
        }
    }
    return r < 0 ? r
                 : pair_similar(pairing, block->normal + last_i, block->normal + n, block->faulty + last_j,
                                block->faulty + m);
}

int loop_pairs_add(const struct loop_table *table, const struct nlr_sequence *normal,
                   const struct nlr_sequence *faulty, const struct diff_edit *block, struct diff_nlr *diff)
{
    const struct pairing pairing = {table, normal, faulty, diff};
    size_t n = block->normal_count, m = block->faulty_count;
    uint32_t next_unique = (uint32_t)table->count;
    AUTO_FREE uint32_t *bodies = NULL;
    AUTO_FREE bool *only = NULL;

    if (!n || !m || !table->count)
        return 0;
    bodies = malloc((n + m) * sizeof(*bodies));
    only = malloc((n + m) * sizeof(*only));
    if (!bodies || !only)
        return -ENOMEM;
    bodies_of(normal, block->normal, n, &next_unique, bodies);
    bodies_of(faulty, block->faulty, m, &next_unique, bodies + n);
    if (myers_diff(bodies, n, bodies + n, m, only, only + n))
        return -ENOMEM;
    return add_pairs(&pairing, block, only, only + n);
}
