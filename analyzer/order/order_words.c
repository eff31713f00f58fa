/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/order/order_words.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"

/* Classes that a sentence names; the others are counted. */
#define CLASSES_NAMED 3
/* Classes among which those are looked for of which the same is said. */
#define REMARKS_COMPARED 64

/* ---------------------------------------------------------------------------------------------- places */

static void write_place(FILE *out, const struct order_tree *order, const struct sample_place *place)
{
    const char *name = sample_text(order->set, place->function);
    const char *image =
        place->image == SAMPLE_NO_IMAGE ? "" : sample_text(order->set, order->set->images[place->image].path);

    if (*name)
        fputs(name, out);
    else
        fputs(*image ? path_file_name(image) : "(unknown)", out);
    if (place->line)
        fprintf(out, "@%s:%" PRIu32, path_file_name(sample_text(order->set, place->file)), place->line);
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

/* Threads that a sentence speaks of together. */
struct who {
    size_t count;
    const struct sample_thread *first;
    bool no_ranks, no_goroutines; /* some are none */
};

static void add_who(const struct order_tree *order, uint32_t node, struct who *who)
{
    const struct prefix_node *at = &order->tree->nodes[node];

    for (size_t i = 0; i < at->count; i++) {
        const struct sample_thread *thread = &order->set->threads[order->tree->threads[at->first + i]];

        who->first = who->first ? who->first : thread;
        who->no_ranks |= thread->rank == SAMPLE_NO_RANK;
        who->no_goroutines |= !sample_is_goroutine(order->set, thread);
    }
    who->count += at->count;
}

/* "rank 8", "31 ranks", "thread 0.3", "goroutine 1.g7", "12 threads"; whether that is one. */
static bool write_whom(FILE *out, const struct order_tree *order, const struct who *who)
{
    if (who->count == 1 && !who->no_ranks)
        fprintf(out, "rank %d", who->first->rank);
    else if (who->count == 1)
        fprintf(out, "%s %s", who->no_goroutines ? "thread" : "goroutine",
                sample_text(order->set, who->first->label));
    else
        fprintf(out, "%zu %s", who->count,
                !who->no_ranks       ? "ranks"
                : who->no_goroutines ? "threads"
                                     : "goroutines");
    return who->count == 1;
}

static bool write_who(FILE *out, const struct order_tree *order, uint32_t node)
{
    struct who who = {0};

    add_who(order, node, &who);
    return write_whom(out, order, &who);
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

/* Where the threads of a node are, as a sentence says it of one or of several. */
static void write_where(FILE *out, const struct order_tree *order, uint32_t node, bool one)
{
    const char *function = order_words_function(order, node);

    fprintf(out, " %s in %s", one ? "is" : "are", *function ? function : "unnamed code");
    write_iteration(out, order, node, " (", ")");
    if (moves(order, node))
        fputs(" and moving", out);
}

static void write_class(FILE *out, const struct order_tree *order, uint32_t node)
{
    bool one = write_who(out, order, node);

    write_where(out, order, node, one);
}

/* ---------------------------------------------------------------------------------------------- sentences */

/* Classes of which the sentence says the same. */
struct remark {
    char *where; /* in the plural */
    uint32_t node;
    struct who who;
};

static int compare_remarks(const void *left, const void *right)
{
    const struct remark *a = left, *b = right;

    if (a->who.count != b->who.count)
        return a->who.count < b->who.count ? 1 : -1;
    return (a->node > b->node) - (a->node < b->node);
}

static int where_of(const struct order_tree *order, uint32_t node, char **ret_where)
{
    size_t size;
    FILE *out = open_memstream(ret_where, &size);

    if (!out)
        return -ENOMEM;
    write_where(out, order, node, false);
    return finish(out, ret_where);
}

/* The classes of a node but for `without`, those of which the same is said as one. They are looked for only
 * among as many as a reader could bear. */
static int make_remarks(const struct order_tree *order, uint32_t node, uint32_t without,
                        struct remark *remarks, size_t *ret_count)
{
    const struct prefix_node *at = &order->tree->nodes[node];

    for (uint32_t child = at->first_child; child < at->first_child + at->child_count; child++) {
        AUTO_FREE char *where = NULL;
        size_t same = 0;

        if (child == without)
            continue;
        if (where_of(order, child, &where) < 0)
            return -ENOMEM;
        while (same < *ret_count && same < REMARKS_COMPARED && strcmp(remarks[same].where, where) != 0)
            same++;
        if (same == REMARKS_COMPARED)
            same = *ret_count;
        if (same == *ret_count) {
            remarks[(*ret_count)++] = (struct remark){.where = where, .node = child};
            where = NULL;
        }
        add_who(order, child, &remarks[same].who);
    }
    return 0;
}

static void write_remarks(FILE *out, const struct order_tree *order, struct remark *remarks, size_t count)
{
    size_t left = 0;

    qsort(remarks, count, sizeof(*remarks), compare_remarks);
    for (size_t i = 0; i < count; i++) {
        if (i >= CLASSES_NAMED) {
            left += remarks[i].who.count;
            continue;
        }
        fputs(i ? ", " : "", out);
        write_where(out, order, remarks[i].node, write_whom(out, order, &remarks[i].who));
    }
    if (left)
        fprintf(out, ", %zu are elsewhere", left);
}

/* The classes of a node but for `without`, the largest first. */
static int write_others(FILE *out, const struct order_tree *order, uint32_t node, uint32_t without)
{
    AUTO_FREE struct remark *remarks = calloc(order->tree->nodes[node].child_count + 1, sizeof(*remarks));
    size_t count = 0;
    int r = remarks ? make_remarks(order, node, without, remarks, &count) : -ENOMEM;

    if (r == 0)
        write_remarks(out, order, remarks, count);
    for (size_t i = 0; i < count; i++)
        free(remarks[i].where);
    return r;
}

static uint32_t child_with(const struct order_tree *order, uint32_t node, unsigned flag)
{
    const struct prefix_node *at = &order->tree->nodes[node];

    for (uint32_t i = 0; i < at->child_count; i++)
        if (order->nodes[at->first_child + i].flags & flag)
            return at->first_child + i;
    return PREFIX_NONE;
}

/* Who is behind those that are behind the others. */
static int write_last(FILE *out, const struct order_tree *order)
{
    bool one;
    int r;

    fputs("; of these, ", out);
    one = write_who(out, order, order->last);
    fprintf(out, " %s last: ", one ? "is" : "are");
    r = write_others(out, order, order->tree->nodes[order->last].parent, order->last);
    fputs(", ", out);
    write_class(out, order, order->last);
    return r;
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
        fprintf(out, " %s most advanced", one ? "is" : "are");
    }
    if (order->last != least && r == 0)
        r = write_last(out, order);
    if ((order->nodes[least].flags | order->nodes[order->last].flags) & ORDER_NODE_ASSUMED)
        fputs(", assuming the same iteration of loops whose iteration is unknown", out);
    return r;
}

/* Whether all stacks are whole, and their outermost functions are not the same. */
static bool began_differently(const struct order_tree *order)
{
    const struct prefix_node *root = &order->tree->nodes[0];
    const char *first = NULL;
    bool differ = false;

    for (size_t i = 0; i < order->set->thread_count; i++)
        if (order->set->threads[i].flags & SAMPLE_INCOMPLETE)
            return false;
    for (uint32_t i = 0; root->first_child != PREFIX_NONE && i < root->child_count; i++) {
        const char *name = sample_text(order->set, order_tree_place(order, root->first_child + i)->function);

        differ |= first && strcmp(first, name) != 0;
        first = name;
    }
    return differ;
}

static int write_undecided(FILE *out, const struct order_tree *order)
{
    uint32_t node = order_tree_branching(order);

    if (order->set->thread_count == 0) {
        fputs("no thread to order", out);
        return 0;
    }
    if (order->tree->nodes[node].child_count == 0) {
        write_class(out, order, node);
        fputs(order->tree->nodes[node].count > 1 ? ", all at the same place" : "", out);
        return 0;
    }
    if (!order_comparable(order->set)) {
        fputs("no order: the processes are not ranks of one job", out);
        return 0;
    }
    if (began_differently(order)) {
        fprintf(out, "no order: the %ss began in different functions",
                sample_is_goroutine(order->set, &order->set->threads[0]) ? "goroutine" : "thread");
        return 0;
    }
    fputs("no order found: ", out);
    return write_others(out, order, node, PREFIX_NONE);
}

/* The one that spoilt its stack is often the one at fault, and no rank tells of it. */
static void write_apart(FILE *out, const struct order_tree *order)
{
    const struct prefix_node *root = &order->tree->nodes[0];
    uint32_t named = 0;
    size_t left = 0;

    for (uint32_t node = root->first_child; node < root->first_child + root->child_count; node++) {
        const char *name;
        bool one;

        if (!(order->nodes[node].flags & ORDER_NODE_APART))
            continue;
        if (named++ >= CLASSES_NAMED) {
            left += order->tree->nodes[node].count;
            continue;
        }
        one = write_who(out, order, node);
        name = sample_text(order->set, order_tree_place(order, node)->function);
        fprintf(out, " %s apart, inside %s, with an unknown caller; ", one ? "stands" : "stand",
                *name ? name : "unnamed code");
    }
    if (left)
        fprintf(out, "%zu more stand apart; ", left);
}

int order_words(const struct order_tree *order, char **ret_words)
{
    size_t size;
    FILE *out = open_memstream(ret_words, &size);
    int r;

    if (!out)
        return -ENOMEM;
    write_apart(out, order);
    r = order->decided != PREFIX_NONE ? write_decided(out, order) : write_undecided(out, order);
    if (finish(out, ret_words) < 0)
        return -ENOMEM;
    if (r < 0) {
        free(*ret_words);
        *ret_words = NULL;
    }
    return r;
}
