/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/order/order_tree.h"
#include "analyzer/order/order_words.h"
#include "analyzer/order/own_code.h"
#include "analyzer/order/prefix_tree.h"
#include "base/array.h"

/* Stacks as texts: "main:1 work:7", function and line; the address is the line in the function. */
static void add_stack(struct sample_set *set, int rank, const char *stack)
{
    struct sample_thread thread = {.rank = rank};
    uint32_t row[16], count = 0;
    char words[256], label[16], *rest = words;

    snprintf(words, sizeof(words), "%s", stack);
    snprintf(label, sizeof(label), "0.%zu", set->thread_count);
    cr_assert_eq(sample_set_text(set, label, &thread.label), 0);
    for (char *word; (word = strsep(&rest, " "));) {
        struct sample_place place = {.image = SAMPLE_NO_IMAGE, .entry = (uint64_t)(unsigned char)*word << 8};
        char *colon = strchr(word, ':');

        place.line = (uint32_t)atoi(colon + 1);
        place.address = place.entry + (uint64_t)(atof(colon + 1) * 10);
        *colon = '\0';
        cr_assert_eq(sample_set_text(set, word, &place.function), 0);
        cr_assert_eq(sample_set_place(set, &place, &row[count++]), 0);
    }
    cr_assert_eq(sample_set_thread(set, &thread, row, count), 0);
}

static struct sample_set *four_ranks(void)
{
    struct sample_set *set;

    cr_assert_eq(sample_set_new(&set), 0);
    add_stack(set, 0, "main:1 work:7 send:3");
    add_stack(set, 1, "main:1 work:7.5 receive:3");
    add_stack(set, 3, "main:1 work:8 send:3");
    add_stack(set, 2, "main:1");
    return set;
}

static size_t children(const struct prefix_tree *tree, uint32_t node)
{
    return tree->nodes[node].child_count;
}

static void check_label(const struct prefix_tree *tree, uint32_t node, const char *expected)
{
    AUTO_FREE char *label = NULL;

    cr_assert_eq(prefix_tree_label(tree, node, 3, &label), 0);
    cr_assert_str_eq(label, expected);
}

Test(prefix_tree, granularities)
{
    AUTO_SAMPLE_SET struct sample_set *set = four_ranks();
    static const struct {
        enum prefix_granularity granularity;
        size_t below_main;
    } cases[] = {{PREFIX_FUNCTION, 1}, {PREFIX_LINE, 2}, {PREFIX_POINT, 3}};

    for (size_t i = 0; i < 3; i++) {
        AUTO_PREFIX_TREE struct prefix_tree *tree = NULL;

        cr_assert_eq(prefix_tree_new(set, cases[i].granularity, &tree), 0);
        cr_assert_eq(prefix_tree_expand_all(tree, 0), 0);
        cr_assert_eq(children(tree, 0), 1);
        cr_assert_eq(tree->nodes[1].count, 4);
        cr_assert_eq(tree->nodes[1].ends, 1);
        cr_assert_eq(children(tree, 1), cases[i].below_main);
        check_label(tree, 0, "4:[0-3]");
        check_label(tree, 1, "4:[0-3]");
        check_label(tree, 2, i == 0 ? "3:[0-1,3]" : i == 1 ? "2:[0-1]" : "1:[0]");
    }
}

/* Every thread is in exactly one child or ends, and threads of a node ascend. */
Test(prefix_tree, slices)
{
    AUTO_SAMPLE_SET struct sample_set *set = NULL;
    AUTO_PREFIX_TREE struct prefix_tree *tree = NULL;
    char stack[64];

    cr_assert_eq(sample_set_new(&set), 0);
    for (int i = 0; i < 300; i++) {
        snprintf(stack, sizeof(stack), "main:%d work:%d%s", i % 3 + 1, i % 7 + 1, i % 5 ? " leaf:1" : "");
        add_stack(set, SAMPLE_NO_RANK, stack);
    }
    cr_assert_eq(prefix_tree_new(set, PREFIX_LINE, &tree), 0);
    cr_assert_eq(prefix_tree_expand_all(tree, 0), 0);
    for (uint32_t i = 0; i < tree->node_count; i++) {
        const struct prefix_node *node = &tree->nodes[i];
        size_t sum = node->ends;

        for (uint32_t k = 0; k < node->child_count; k++) {
            cr_assert_eq(tree->nodes[node->first_child + k].first, node->first + sum);
            sum += tree->nodes[node->first_child + k].count;
        }
        cr_assert_eq(sum, node->count);
        for (size_t k = 1; i && k < node->count; k++)
            cr_assert(k == node->ends ||
                      tree->threads[node->first + k - 1] < tree->threads[node->first + k] ||
                      node->child_count > 0);
        for (size_t k = 0; i && k < node->count; k++) {
            const struct sample_place *place =
                sample_place_of(set, tree->threads[node->first + k], node->depth);

            cr_assert_eq(place->line, set->places[node->place].line);
        }
    }
    cr_assert_eq(children(tree, 0), 3);
    cr_assert_eq(children(tree, 1), 7);
}

static int refuse(void *context, size_t thread, size_t frame, uint32_t *ret_class)
{
    *ret_class = 0;
    return thread == 2 ? -EIO : 0;
}

Test(prefix_tree, an_error_leaves_the_node_as_it_was)
{
    AUTO_SAMPLE_SET struct sample_set *set = four_ranks();
    AUTO_PREFIX_TREE struct prefix_tree *tree = NULL;
    const struct prefix_classes classes = {NULL, refuse};

    cr_assert_eq(prefix_tree_new(set, PREFIX_POINT, &tree), 0);
    cr_assert_eq(prefix_tree_expand(tree, 0, &classes), -EIO);
    cr_assert_eq(tree->node_count, 1);
    cr_assert_eq(prefix_tree_expand(tree, 0, NULL), 0);
    cr_assert_eq(children(tree, 0), 1);
}

Test(prefix_tree, labels_of_many_ranges)
{
    AUTO_SAMPLE_SET struct sample_set *set = NULL;
    AUTO_PREFIX_TREE struct prefix_tree *tree = NULL;

    cr_assert_eq(sample_set_new(&set), 0);
    for (int i = 0; i < 10; i++)
        add_stack(set, i * 2, "main:1");
    cr_assert_eq(prefix_tree_new(set, PREFIX_POINT, &tree), 0);
    check_label(tree, 0, "10:[0,2,4,...]");
    set->threads[0].rank = 2; /* two threads of a rank: threads are named */
    check_label(tree, 0, "10:[0.0-0.9]");
}

/* Images that cannot be opened: merged, and no order. */
Test(order_tree, without_code_there_is_no_order)
{
    AUTO_SAMPLE_SET struct sample_set *set = four_ranks();
    AUTO_ORDER_TREE struct order_tree *order = NULL;
    const struct order_source source = {0};
    AUTO_FREE char *words = NULL;

    cr_assert_eq(order_tree_new(set, &source, true, &order, NULL), 0);
    cr_assert_eq(order->decided, PREFIX_NONE);
    cr_assert_eq(order_words(order, &words), 0);
    cr_assert_eq(strncmp(words, "no order found: ", 16), 0, "%s", words);
    for (uint32_t i = 0; i < order->tree->node_count; i++)
        cr_assert_not(order->nodes[i].flags & (ORDER_NODE_RANKED | ORDER_NODE_LEAST));
}

Test(order_words, the_same_is_said_once)
{
    AUTO_SAMPLE_SET struct sample_set *set = NULL;
    AUTO_ORDER_TREE struct order_tree *order = NULL;
    const struct order_source source = {0};
    AUTO_FREE char *words = NULL;

    cr_assert_eq(sample_set_new(&set), 0);
    add_stack(set, 0, "main:1 work:7");
    add_stack(set, 1, "main:2 work:8");
    add_stack(set, 2, "main:3 read:3");
    add_stack(set, 3, "main:2 work:8");
    cr_assert_eq(order_tree_new(set, &source, true, &order, NULL), 0);
    cr_assert_eq(order_words(order, &words), 0);
    cr_assert_str_eq(words, "no order found: 3 ranks are in work, rank 2 is in read");
}

static void words_are(const struct sample_set *set, const char *expected)
{
    AUTO_ORDER_TREE struct order_tree *order = NULL;
    const struct order_source source = {0};
    AUTO_FREE char *words = NULL;

    cr_assert_eq(order_tree_new(set, &source, false, &order, NULL), 0);
    cr_assert_eq(order_words(order, &words), 0);
    cr_assert_str_eq(words, expected);
}

/* Who has overwritten its own stack; not where most stacks cannot be followed. */
Test(order_words, who_cannot_be_followed_stands_apart)
{
    AUTO_SAMPLE_SET struct sample_set *set = NULL;

    cr_assert_eq(sample_set_new(&set), 0);
    add_stack(set, 0, "main:1 work:7 read:1");
    add_stack(set, 1, "read:2");
    add_stack(set, 2, "main:1 work:7 write:1");
    set->threads[1].flags |= SAMPLE_INCOMPLETE;
    words_are(set,
              "rank 1 stands apart, inside read, with an unknown caller; no order found: rank 0 is in "
              "read, rank 2 is in write");
    set->threads[0].flags |= SAMPLE_INCOMPLETE;
    set->threads[2].flags |= SAMPLE_INCOMPLETE;
    words_are(set, "no order found: 2 ranks are in work, rank 1 is in read");
}

/* Adds a thread with a place in each of these files. */
static void add_thread_of(struct sample_set *set, const char *const *files)
{
    struct sample_thread thread = {.rank = SAMPLE_NO_RANK};
    uint32_t row[8], count = 0;

    for (; *files; files++) {
        struct sample_place place = {.entry = 0x100, .address = 0x110};

        cr_assert_eq(sample_set_image(set, *files, *files, NULL, &place.image), 0);
        cr_assert_eq(sample_set_place(set, &place, &row[count++]), 0);
    }
    cr_assert_eq(sample_set_thread(set, &thread, row, count), 0);
}

/* A callback is the program's own again; a program that the system came with is none of its libraries. */
Test(own_code, ends_where_the_systems_libraries_are_called)
{
    static const char c[] = "/usr/lib/x86_64-linux-gnu/libc.so.6", program[] = "/srv/bin/program";
    static const struct {
        const char *files[6];
        uint32_t ends;
    } cases[] = {
        {{program, c, program, c, c}, 3},
        {{c, c}, 2},
        {{c, "/usr/lib/postgresql/15/bin/postgres", c}, 2},
        {{program, "/srv/lib/libown.so.1", "[vdso]"}, 2},
    };
    AUTO_SAMPLE_SET struct sample_set *set = NULL;
    AUTO_PREFIX_TREE struct prefix_tree *tree = NULL;
    AUTO_FREE uint32_t *ends = NULL;

    cr_assert_eq(sample_set_new(&set), 0);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        add_thread_of(set, cases[i].files);
    ends = own_code_ends(set);
    cr_assert_not_null(ends);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        cr_expect_eq(ends[i], cases[i].ends, "%zu: %u", i, ends[i]);
    cr_assert_eq(prefix_tree_new(set, PREFIX_POINT, &tree), 0);
    cr_assert_eq(prefix_tree_expand_all(tree, 0), 0);
    cr_expect(own_code_goes_on(tree, 0, ends));
    for (uint32_t i = 1; i < tree->node_count; i++) {
        uint32_t thread = tree->threads[tree->nodes[i].first];

        if (tree->nodes[i].count == 1)
            cr_expect_eq(own_code_goes_on(tree, i, ends), tree->nodes[i].depth + 1 < ends[thread], "%u", i);
    }
}
