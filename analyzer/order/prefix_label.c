/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who stands at a node of a prefix tree, in the fewest words. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/order/prefix_tree.h"

static int compare_numbers(const void *left, const void *right)
{
    int a = *(const int *)left, b = *(const int *)right;

    return (a > b) - (a < b);
}

/* The ranks of the node's threads, ascending. False: one has none, or two have the same. */
static bool ranks_of(const struct prefix_tree *tree, const struct prefix_node *node, int *ranks)
{
    for (size_t i = 0; i < node->count; i++) {
        ranks[i] = tree->set->threads[tree->threads[node->first + i]].rank;
        if (ranks[i] == SAMPLE_NO_RANK)
            return false;
    }
    qsort(ranks, node->count, sizeof(*ranks), compare_numbers);
    for (size_t i = 1; i < node->count; i++)
        if (ranks[i] == ranks[i - 1])
            return false;
    return true;
}

static void write_ranks(FILE *out, const int *ranks, size_t count, size_t most)
{
    size_t ranges = 0, next;

    for (size_t i = 0; i < count; i = next) {
        for (next = i + 1; next < count && ranks[next] == ranks[next - 1] + 1; next++)
            continue;
        if (ranges++ == most) {
            fputs(",...", out);
            return;
        }
        fprintf(out, next - i > 1 ? "%s%d-%d" : "%s%d", i ? "," : "", ranks[i], ranks[next - 1]);
    }
}

static int compare_threads(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

    return (a > b) - (a < b);
}

/* Threads "0.1", "0.2", "0.3" that follow on each other in the set are "0.1-0.3". */
static int write_threads(FILE *out, const struct prefix_tree *tree, const struct prefix_node *node,
                         size_t most)
{
    AUTO_FREE uint32_t *threads = calloc(node->count + 1, sizeof(*threads));
    size_t ranges = 0, next;

    if (!threads)
        return -ENOMEM;
    memcpy(threads, tree->threads + node->first, node->count * sizeof(*threads));
    qsort(threads, node->count, sizeof(*threads), compare_threads);
    for (size_t i = 0; i < node->count; i = next) {
        for (next = i + 1; next < node->count && threads[next] == threads[next - 1] + 1; next++)
            continue;
        if (ranges++ == most) {
            fputs(",...", out);
            return 0;
        }
        fprintf(out, "%s%s", i ? "," : "", sample_text(tree->set, tree->set->threads[threads[i]].label));
        if (next - i > 1)
            fprintf(out, "-%s", sample_text(tree->set, tree->set->threads[threads[next - 1]].label));
    }
    return 0;
}

int prefix_tree_label(const struct prefix_tree *tree, uint32_t node, size_t most, char **ret_label)
{
    const struct prefix_node *labelled = &tree->nodes[node];
    AUTO_FREE int *ranks = calloc(labelled->count + 1, sizeof(*ranks));
    size_t size;
    FILE *out;
    int r = 0;

    *ret_label = NULL;
    out = ranks ? open_memstream(ret_label, &size) : NULL;
    if (!out)
        return -ENOMEM;
    fprintf(out, "%zu:[", labelled->count);
    if (ranks_of(tree, labelled, ranks))
        write_ranks(out, ranks, labelled->count, most);
    else
        r = write_threads(out, tree, labelled, most);
    fputc(']', out);
    if (fclose(out) == 0 && r == 0)
        return 0;
    free(*ret_label);
    *ret_label = NULL;
    return -ENOMEM;
}
