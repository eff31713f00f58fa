/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/go/coverage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/go/coverage_state.h"
#include "base/array.h"

int go_coverage_new(bool standard, struct go_coverage **ret_coverage)
{
    struct go_coverage *coverage = calloc(1, sizeof(*coverage));

    if (!coverage)
        return -ENOMEM;
    coverage->standard = standard;
    *ret_coverage = coverage;
    return 0;
}

void go_coverage_free(struct go_coverage *coverage)
{
    struct coverage_text *text, *next;

    if (!coverage)
        return;
    usages_free(coverage);
    nodes_free(coverage);
    HASH_ITER (hh, coverage->texts, text, next) {
        HASH_DEL(coverage->texts, text);
        free(text->text);
        free(text);
    }
    for (size_t i = 0; i < coverage->run_count; i++)
        free(coverage->runs[i]);
    free(coverage->runs);
    free(coverage);
}

struct coverage_text *coverage_intern(struct go_coverage *coverage, const char *text)
{
    struct coverage_text *kept, *added;

    HASH_FIND_STR(coverage->texts, text, kept);
    if (kept)
        return kept;
    kept = calloc(1, sizeof(*kept));
    if (!kept)
        return NULL;
    kept->text = strdup(text);
    if (kept->text)
        HASH_ADD_KEYPTR(hh, coverage->texts, kept->text, strlen(kept->text), kept);
    HASH_FIND_STR(coverage->texts, text, added);
    if (!added) {
        free(kept->text);
        free(kept);
    }
    return added;
}

int go_coverage_add_run(struct go_coverage *coverage, const char *name, uint32_t *ret_run)
{
    char *copy;

    if (array_reserve(&coverage->runs, &coverage->run_capacity, coverage->run_count + 1))
        return -ENOMEM;
    copy = strdup(name);
    if (!copy)
        return -ENOMEM;
    coverage->runs[coverage->run_count] = copy;
    *ret_run = (uint32_t)coverage->run_count++;
    return 0;
}

/* ------------------------------------------------------------------------------------------ asking */

static int compare_usages(const void *left, const void *right)
{
    const struct go_covered_usage *a = *(const struct go_covered_usage *const *)left;
    const struct go_covered_usage *b = *(const struct go_covered_usage *const *)right;
    int order = strcmp(a->file, b->file);

    if (!order)
        order = (a->line > b->line) - (a->line < b->line);
    return order ? order : (a->operation > b->operation) - (a->operation < b->operation);
}

size_t go_coverage_usages(struct go_coverage *coverage, const struct go_covered_usage *const **ret_usages)
{
    size_t count = 0;

    if (!coverage->sorted && coverage->usage_count) {
        coverage->sorted = calloc(coverage->usage_count, sizeof(*coverage->sorted));
        if (!coverage->sorted)
            return 0;
        for (const struct usage *usage = coverage->usages; usage; usage = usage->hh.next)
            coverage->sorted[count++] = &usage->public;
        qsort(coverage->sorted, count, sizeof(*coverage->sorted), compare_usages);
    }
    *ret_usages = coverage->sorted;
    return coverage->usage_count;
}

size_t go_coverage_run_count(const struct go_coverage *coverage)
{
    return coverage->run_count;
}

const char *go_coverage_run_name(const struct go_coverage *coverage, uint32_t run)
{
    return coverage->runs[run];
}

size_t go_coverage_node_count(const struct go_coverage *coverage)
{
    return coverage->node_count;
}

struct go_coverage_node go_coverage_node(const struct go_coverage *coverage, uint32_t node)
{
    return coverage->node_list[node]->public;
}

bool go_requirement_covered(const struct go_requirement *requirement, uint32_t run)
{
    if (run == GO_ANY_RUN)
        return requirement->cover_count > 0;
    for (size_t i = 0; i < requirement->cover_count; i++)
        if (requirement->covers[i].run == run)
            return true;
    return false;
}

static bool covered_by_node(const struct go_requirement *requirement, uint32_t node)
{
    for (size_t i = 0; i < requirement->cover_count; i++)
        if (requirement->covers[i].node == node)
            return true;
    return false;
}

/* Adds the requirements of one usage: those covered by `run`, or by `node` unless it is GO_NO_NODE. */
static void count_usage(const struct go_covered_usage *usage, uint32_t run, uint32_t node,
                        struct go_coverage_count *count)
{
    for (size_t i = 0; i < usage->part_count; i++)
        for (size_t kind = 0; kind < GO_REQUIREMENT_KINDS; kind++) {
            const struct go_requirement *requirement = &usage->parts[i].requirements[kind];

            if (!requirement->wanted)
                continue;
            count->total++;
            count->covered += node == GO_NO_NODE ? go_requirement_covered(requirement, run)
                                                 : covered_by_node(requirement, node);
        }
}

struct go_coverage_count go_coverage_of_run(const struct go_coverage *coverage, uint32_t run)
{
    struct go_coverage_count count = {0};

    for (struct usage *usage = coverage->usages; usage; usage = usage->hh.next)
        count_usage(&usage->public, run, GO_NO_NODE, &count);
    return count;
}

struct go_coverage_count go_coverage_total(const struct go_coverage *coverage)
{
    return go_coverage_of_run(coverage, GO_ANY_RUN);
}

static bool met_by(const struct go_covered_usage *usage, uint32_t node)
{
    for (size_t i = 0; i < usage->node_count; i++)
        if (usage->nodes[i] == node)
            return true;
    return false;
}

struct go_coverage_count go_coverage_of_node(const struct go_coverage *coverage, uint32_t node)
{
    struct go_coverage_count count = {0};

    for (struct usage *usage = coverage->usages; usage; usage = usage->hh.next)
        if (met_by(&usage->public, node))
            count_usage(&usage->public, GO_ANY_RUN, node, &count);
    return count;
}

double go_coverage_percent(struct go_coverage_count count)
{
    return count.total ? 100.0 * (double)count.covered / (double)count.total : 100.0;
}

size_t go_coverage_open(const struct go_coverage *coverage, const char *file, int line, enum go_op operation)
{
    struct go_coverage_count count = {0};
    struct coverage_text *text;
    struct usage *usage;

    HASH_FIND_STR(coverage->texts, file, text);
    usage = text ? usage_find(coverage, text->text, line, operation) : NULL;
    if (usage)
        count_usage(&usage->public, GO_ANY_RUN, GO_NO_NODE, &count);
    return count.total - count.covered;
}
