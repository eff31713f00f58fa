/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/diff/diff_nlr.h"

#include <errno.h>
#include <stdlib.h>

#include "analyzer/diff/loop_pairs.h"
#include "analyzer/diff/myers.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/hash_index.h"

/* ----------------------------------------------------------------------------------- numbers for elements */

/* Gives equal elements equal numbers, from 0 on. */
struct numbering {
    struct nlr_element *elements; /* by number */
    struct hash_index index;
    size_t count;
};

static void numbering_release(struct numbering *numbering)
{
    free(numbering->elements);
    hash_index_release(&numbering->index);
}

static int numbering_init(struct numbering *numbering, size_t most)
{
    numbering->elements = malloc((most + 1) * sizeof(*numbering->elements));
    return numbering->elements ? hash_index_reserve(&numbering->index, most) : -ENOMEM;
}

static uint32_t number_of(struct numbering *numbering, const struct nlr_element *element)
{
    uint64_t hash = nlr_hash_element(*element);
    struct hash_walk walk = hash_index_walk(&numbering->index, hash);
    uint32_t number;

    while (hash_walk_next(&walk, &number))
        if (nlr_same(&numbering->elements[number], element, 1))
            return number;
    number = (uint32_t)numbering->count++;
    numbering->elements[number] = *element;
    hash_index_add(&numbering->index, hash, number); /* numbering_init() has made room */
    return number;
}

/* ------------------------------------------------------------------------------------------ the two sides */

struct comparison {
    const struct loop_table *table;
    const struct nlr_sequence *normal, *faulty;
    bool *normal_only, *faulty_only;
    bool normal_incomplete, faulty_incomplete;
};

static int run_myers(struct comparison *comparison)
{
    CLEANUP(numbering_release) struct numbering numbering = {0};
    size_t n = comparison->normal->count, m = comparison->faulty->count;
    AUTO_FREE uint32_t *ids = malloc((n + m + 1) * sizeof(*ids));

    if (!ids || numbering_init(&numbering, n + m))
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        ids[i] = number_of(&numbering, &comparison->normal->elements[i]);
    for (size_t i = 0; i < m; i++)
        ids[n + i] = number_of(&numbering, &comparison->faulty->elements[i]);
    return myers_diff(ids, n, ids + n, m, comparison->normal_only, comparison->faulty_only);
}

static bool has_lost(const struct nlr_sequence *sequence, size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++)
        if (sequence->elements[i].kind == NLR_LOST)
            return true;
    return false;
}

static int add_edit(struct diff_nlr *diff, const struct diff_edit *edit)
{
    if (!edit->normal_count && !edit->faulty_count)
        return 0;
    if (array_reserve(&diff->edits, &diff->edit_capacity, diff->edit_count + 1))
        return -ENOMEM;
    diff->edits[diff->edit_count++] = *edit;
    if (edit->op == DIFF_UNKNOWN) {
        diff->unknown++;
        return 0;
    }
    diff->compared += edit->normal_count + edit->faulty_count;
    if (edit->op != DIFF_COMMON)
        diff->changed += edit->normal_count + edit->faulty_count;
    return 0;
}

/* ------------------------------------------------------------------------------------------ the edits */

/* Whether missing events may be all that there is to a block: some are missing in it, or one side has what
 * the other may have lost. */
static bool is_unknown(const struct comparison *comparison, const struct diff_edit *block)
{
    return has_lost(comparison->normal, block->normal, block->normal_count) ||
           has_lost(comparison->faulty, block->faulty, block->faulty_count) ||
           (comparison->normal_incomplete && block->faulty_count) ||
           (comparison->faulty_incomplete && block->normal_count);
}

/* `block` is what lies between two common stretches. */
static int add_block(const struct comparison *comparison, struct diff_edit block, struct diff_nlr *diff)
{
    struct diff_edit normal = block, faulty = block;
    int r;

    if (is_unknown(comparison, &block)) {
        block.op = DIFF_UNKNOWN;
        return add_edit(diff, &block);
    }
    normal.op = DIFF_NORMAL;
    normal.faulty_count = 0;
    faulty.op = DIFF_FAULTY;
    faulty.normal += faulty.normal_count;
    faulty.normal_count = 0;
    r = add_edit(diff, &normal);
    if (r >= 0)
        r = add_edit(diff, &faulty);
    return r < 0 ? r
                 : loop_pairs_add(comparison->table, comparison->normal, comparison->faulty, &block, diff);
}

static int add_edits(const struct comparison *comparison, struct diff_nlr *diff)
{
    size_t n = comparison->normal->count, m = comparison->faulty->count, i = 0, j = 0;
    int r = 0;

    while (r >= 0 && (i < n || j < m)) {
        struct diff_edit edit = {DIFF_COMMON, i, 0, j, 0};

        while (i < n && j < m && !comparison->normal_only[i] && !comparison->faulty_only[j])
            i++, j++;
        edit.normal_count = edit.faulty_count = i - edit.normal;
        r = add_edit(diff, &edit);
        edit = (struct diff_edit){DIFF_NORMAL, i, 0, j, 0};
        while (i < n && comparison->normal_only[i])
            i++;
        while (j < m && comparison->faulty_only[j])
            j++;
        edit.normal_count = i - edit.normal;
        edit.faulty_count = j - edit.faulty;
        if (r >= 0)
            r = add_block(comparison, edit, diff);
    }
    return r;
}

int diff_nlr(const struct loop_table *table, const struct diff_side *normal, const struct diff_side *faulty,
             struct diff_nlr *ret_diff)
{
    size_t n = normal->loops->count, m = faulty->loops->count;
    struct comparison comparison = {
        .table = table,
        .normal = normal->loops,
        .faulty = faulty->loops,
        .normal_incomplete = normal->incomplete,
        .faulty_incomplete = faulty->incomplete,
    };
    AUTO_FREE bool *only = calloc(n + m + 1, sizeof(*only));
    struct diff_nlr diff = {0};
    int r;

    if (!only)
        return -ENOMEM;
    comparison.normal_only = only;
    comparison.faulty_only = only + n;
    r = run_myers(&comparison);
    if (r >= 0)
        r = add_edits(&comparison, &diff);
    if (r < 0) {
        diff_nlr_release(&diff);
        return r;
    }
    *ret_diff = diff;
    return 0;
}

void diff_nlr_release(struct diff_nlr *diff)
{
    free(diff->edits);
    free(diff->loops);
    *diff = (struct diff_nlr){0};
}

int diff_nlr_bodies(const struct loop_table *table, uint32_t normal, uint32_t faulty,
                    struct diff_nlr *ret_diff)
{
    struct nlr_sequence left = loop_body_sequence(table, normal), right = loop_body_sequence(table, faulty);

    return diff_nlr(table, &(struct diff_side){&left, false}, &(struct diff_side){&right, false}, ret_diff);
}
