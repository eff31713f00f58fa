/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/order/order_words.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Classes that a sentence names; the others are counted. */
#define CLASSES_NAMED 3

/* ---------------------------------------------------------------------------------------------- places */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static void write_place(FILE *out, const struct order_tree *order, const struct sample_place *place)
{
    const char *name = sample_text(order->set, place->function);
    const char *image =
        place->image == SAMPLE_NO_IMAGE ? "" : sample_text(order->set, order->set->images[place->image].path);

    if (*name)
        fputs(name, out);
    else
        fputs(*image ? base_name(image) : "(unknown)", out);
    if (place->line)
        fprintf(out, "@%s:%" PRIu32, base_name(sample_text(order->set, place->file)), place->line);
    else if (place->address != SAMPLE_NO_ADDRESS && place->entry != SAMPLE_NO_ADDRESS && *name)
        fprintf(out, "+0x%" PRIx64, place->address - place->entry);
    else if (place->address != SAMPLE_NO_ADDRESS)
        fprintf(out, "+0x%" PRIx64, place->address);
}

/* Ends a text that was written into memory. */
static int finish(FILE *out, char **text)
{
    if (fclose(out) == 0)
        return 0;
    free(*text);
    *text = NULL;
    return -ENOMEM;
}

int order_words_place(const struct order_tree *order, const struct sample_place *place, char **ret_label)
{
    size_t size;
    FILE *out = open_memstream(ret_label, &size);

    if (!out)
        return -ENOMEM;
    write_place(out, order, place);
    return finish(out, ret_label);
}

static void write_iteration(FILE *out, const struct order_tree *order, uint32_t node, const char *before,
                            const char *after)
{
    const struct order_variable *variable;
    const struct order_iteration *iteration = order_tree_iteration(order, node, &variable);

    if (!iteration)
        return;
    fprintf(out, "%siteration %" PRIu64, before, iteration->count + 1);
    if (variable->name)
        fprintf(out, ", %s = %" PRId64, variable->name, variable->value);
    fputs(after, out);
}

int order_words_iteration(const struct order_tree *order, uint32_t node, char **ret_words)
{
    size_t size;
    FILE *out = open_memstream(ret_words, &size);

    if (!out)
        return -ENOMEM;
    write_iteration(out, order, node, "", "");
    return finish(out, ret_words);
}

const char *order_words_function(const struct order_tree *order, uint32_t node)
{
    const struct prefix_node *at = &order->tree->nodes[node];
    uint32_t largest = PREFIX_NONE;

    for (uint32_t i = 0; at->first_child != PREFIX_NONE && i < at->child_count; i++)
        if (largest == PREFIX_NONE ||
            order->tree->nodes[at->first_child + i].count > order->tree->nodes[largest].count)
            largest = at->first_child + i;
    return sample_text(order->set,
                       order_tree_place(order, largest == PREFIX_NONE ? node : largest)->function);
}

/* ---------------------------------------------------------------------------------------------- who */

/* "rank 8", "31 ranks", "thread 0.3", "goroutine 1.g7", "12 threads"; whether that is one. */
static bool write_who(FILE *out, const struct order_tree *order, uint32_t node)
{
    const struct prefix_node *at = &order->tree->nodes[node];
    const struct sample_thread *first = &order->set->threads[order->tree->threads[at->first]];
    const char *label = sample_text(order->set, first->label);
    bool ranks = true, goroutines = true;

    for (size_t i = 0; i < at->count; i++) {
        const struct sample_thread *thread = &order->set->threads[order->tree->threads[at->first + i]];

        ranks &= thread->rank != SAMPLE_NO_RANK;
        goroutines &= strchr(sample_text(order->set, thread->label), 'g') != NULL;
    }
    if (at->count == 1 && ranks)
        fprintf(out, "rank %d", first->rank);
    else if (at->count == 1)
        fprintf(out, "%s %s", goroutines ? "goroutine" : "thread", label);
    else
        fprintf(out, "%zu %s", at->count, ranks ? "ranks" : goroutines ? "goroutines" : "threads");
    return at->count == 1;
}

/* Whether all threads of the node were elsewhere in another look at them. */
static bool moves(const struct order_tree *order, uint32_t node)
{
    const struct prefix_node *at = &order->tree->nodes[node];

    for (size_t i = 0; i < at->count; i++)
        if (!(order->set->threads[order->tree->threads[at->first + i]].flags & SAMPLE_MOVED))
            return false;
    return true;
}

static void write_class(FILE *out, const struct order_tree *order, uint32_t node)
{
    const char *function = order_words_function(order, node);
    bool one = write_who(out, order, node);

    fprintf(out, " %s in %s", one ? "is" : "are", *function ? function : "code without a name");
    write_iteration(out, order, node, " (", ")");
    if (moves(order, node))
        fprintf(out, " and %s on", one ? "goes" : "go");
}

/* ---------------------------------------------------------------------------------------------- sentences */

static int compare_counts(const void *left, const void *right)
{
    const size_t *a = left, *b = right;

    return (a[0] < b[0]) - (a[0] > b[0]);
}

/* The classes of a node but for `without`, the largest first. */
static int write_others(FILE *out, const struct order_tree *order, uint32_t node, uint32_t without)
{
    const struct prefix_node *at = &order->tree->nodes[node];
    AUTO_FREE size_t(*sorted)[2] = calloc(at->child_count + 1, sizeof(*sorted));
    size_t count = 0, left = 0;

    if (!sorted)
        return -ENOMEM;
    for (uint32_t i = 0; i < at->child_count; i++) {
        if (at->first_child + i == without)
            continue;
        sorted[count][0] = order->tree->nodes[at->first_child + i].count;
        sorted[count++][1] = at->first_child + i;
    }
    qsort(sorted, count, sizeof(*sorted), compare_counts);
    for (size_t i = 0; i < count; i++) {
        if (i >= CLASSES_NAMED) {
            left += sorted[i][0];
            continue;
        }
        fputs(i ? ", " : "", out);
        write_class(out, order, (uint32_t)sorted[i][1]);
    }
    if (left)
        fprintf(out, ", %zu are elsewhere", left);
    return 0;
}

static uint32_t child_with(const struct order_tree *order, uint32_t node, unsigned flag)
{
    const struct prefix_node *at = &order->tree->nodes[node];

    for (uint32_t i = 0; i < at->child_count; i++)
        if (order->nodes[at->first_child + i].flags & flag)
            return at->first_child + i;
    return PREFIX_NONE;
}

static int write_decided(FILE *out, const struct order_tree *order)
{
    uint32_t least = child_with(order, order->decided, ORDER_NODE_LEAST);
    uint32_t most = child_with(order, order->decided, ORDER_NODE_MOST);
    bool one = write_who(out, order, least);
    int r;

    fprintf(out, " %s behind: ", one ? "is" : "are");
    r = write_others(out, order, order->decided, least);
    fputs(", ", out);
    write_class(out, order, least);
    if (most != PREFIX_NONE && order->tree->nodes[most].count < order->tree->nodes[least].count) {
        fputs("; ", out);
        one = write_who(out, order, most);
        fprintf(out, " %s ahead of all others", one ? "is" : "are");
    }
    if (order->nodes[least].flags & ORDER_NODE_ASSUMED)
        fputs(", if all are in the same iteration of loops whose iterations are not known", out);
    return r;
}

/* The first node whose threads part; the last one, where they never do. */
static uint32_t first_branching(const struct order_tree *order)
{
    uint32_t node = 0;

    while (order->tree->nodes[node].child_count == 1 && order->tree->nodes[node].ends == 0)
        node = order->tree->nodes[node].first_child;
    return node;
}

static int write_undecided(FILE *out, const struct order_tree *order)
{
    uint32_t node = first_branching(order);

    if (order->set->thread_count == 0) {
        fputs("there is no thread to order", out);
        return 0;
    }
    if (order->tree->nodes[node].child_count == 0) {
        write_class(out, order, node);
        fputs(order->tree->nodes[node].count > 1 ? ", all at the same place" : "", out);
        return 0;
    }
    fputs("nobody is known to be behind all others: ", out);
    return write_others(out, order, node, PREFIX_NONE);
}

/* Whether the first calls of the node's threads are not known: nobody can say where they stand in the
 * program. */
static bool is_cut_off(const struct order_tree *order, uint32_t node)
{
    const struct prefix_node *at = &order->tree->nodes[node];

    for (size_t i = 0; i < at->count; i++)
        if (!(order->set->threads[order->tree->threads[at->first + i]].flags & SAMPLE_INCOMPLETE))
            return false;
    return true;
}

/* The one that spoilt its stack is often the one at fault, and no rank tells of it. Where all stacks are cut
 * off, that is nothing to remark. */
static void write_cut_off(FILE *out, const struct order_tree *order)
{
    const struct prefix_node *root = &order->tree->nodes[0];
    uint32_t cut_off = 0, named = 0;
    const char *name;
    size_t left = 0;
    bool one;

    for (uint32_t i = 0; i < root->child_count; i++)
        cut_off += is_cut_off(order, root->first_child + i);
    for (uint32_t i = 0; cut_off < root->child_count && i < root->child_count; i++) {
        uint32_t node = root->first_child + i;

        if (!is_cut_off(order, node))
            continue;
        if (named++ >= CLASSES_NAMED) {
            left += order->tree->nodes[node].count;
            continue;
        }
        fputs("; ", out);
        one = write_who(out, order, node);
        name = sample_text(order->set, order_tree_place(order, node)->function);
        fprintf(out, " %s inside %s, called from nobody knows where: without a place in the order",
                one ? "is" : "are", *name ? name : "code without a name");
    }
    if (left)
        fprintf(out, "; of %zu others neither", left);
}

int order_words(const struct order_tree *order, char **ret_words)
{
    size_t size;
    FILE *out = open_memstream(ret_words, &size);
    int r;

    if (!out)
        return -ENOMEM;
    r = order->decided != PREFIX_NONE ? write_decided(out, order) : write_undecided(out, order);
    if (order->decided != PREFIX_NONE)
        write_cut_off(out, order);
    if (finish(out, ret_words) < 0)
        return -ENOMEM;
    if (r < 0) {
        free(*ret_words);
        *ret_words = NULL;
    }
    return r;
}
