/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "analyzer/go/tree.h"
#include "base/cleanup.h"
#include "tests/unit/analyzer/go_script.h"

DEFINE_CLEANUP(cleanup_replay, struct go_replay *, go_replay_free)

struct lines {
    char text[1024];
};

/* A line for each node: "  g2 s12 x3 last s20". */
static int write_node(void *context, const struct go_node *node)
{
    struct lines *lines = context;
    size_t length = strlen(lines->text);
    char last[32] = "", count[32] = "";

    if (node->has_last)
        snprintf(last, sizeof(last), " last s%u", node->last_site);
    if (node->count != 1)
        snprintf(count, sizeof(count), " x%d", (int)node->count);
    snprintf(lines->text + length, sizeof(lines->text) - length, "%*sg%d%s%s\n", (int)node->depth, "",
             (int)node->goroutine->goroutine, count, last);
    return 0;
}

static void expect_tree(const char *script, struct go_tree_options options, const char *expected)
{
    CLEANUP(cleanup_replay) struct go_replay *replay = NULL;
    CLEANUP(go_tree_release) struct go_tree tree = {0};
    struct go_replay_options replay_options = go_script_options();
    struct lines lines = {""};

    replay_options.on_action = go_tree_action;
    replay_options.context = &tree;
    replay = go_script_replay(script, &replay_options);
    cr_assert_eq(go_replay_end(replay), 0);
    cr_assert_eq(go_tree_walk(&tree, replay, &options, write_node, &lines), 0);
    cr_assert_str_eq(lines.text, expected);
}

static const struct go_tree_options usual, unfolded = {.unfolded = true}, all = {.system = true};

#define FAMILY \
    "g1 run t1; g1 go g4 s12; g1 go g2 f5; g4 run t2; g4 go g3 s13; g4 send c1 s20; g3 run t3; g3 end;" \
    "g1 lock m1 s30 done"

Test(go_tree, parents_come_before_their_children)
{
    expect_tree(FAMILY, usual, "g1 last s30\n g4 last s20\n  g3\n");
    expect_tree(FAMILY, all, "g1 last s30\n g2\n g4 last s20\n  g3\n");
    expect_tree("", usual, "");
    expect_tree("g5 run t1; g7 run t2; g7 go g6 s1", usual, "g5\ng7\n g6\n");
    /* In a store that was changed: the last word counts, and all are shown. */
    expect_tree("g5 go g6 s1; g6 go g5 s2", usual, "g6\n g5\n");
}

#define ALIKE \
    "g1 run t1; g1 go g2 s12 f99; g1 go g3 s12 f99; g1 go g4 s12 f99; g2 run t2; g3 run t3; g4 run t4;" \
    "g2 recv c1 s20; g2 block recv; g3 recv c2 s20; g3 block recv; g4 recv c1 s20; g4 block recv;"

Test(go_tree, siblings_that_are_alike_are_one_node)
{
    expect_tree(ALIKE, usual, "g1\n g2 x3 last s20\n");
    expect_tree(ALIKE, unfolded, "g1\n g2 last s20\n g3 last s20\n g4 last s20\n");
}

Test(go_tree, siblings_that_differ_are_not)
{
    expect_tree(ALIKE "g0 wake g3", usual, "g1\n g2 x2 last s20\n g3 last s20\n");
    expect_tree(ALIKE "g0 wake g3; g3 run t3; g3 recv c1 s21; g3 block recv", usual,
                "g1\n g2 x2 last s20\n g3 last s21\n");
    expect_tree(ALIKE "g0 wake g3; g3 run t3; g3 lock m1 done; g3 recv c1 s20; g3 block recv", usual,
                "g1\n g2 x2 last s20\n g3 last s20\n");
    /* Below them. */
    expect_tree("g1 run t1; g1 go g2 s12 f99; g1 go g3 s12 f99; g2 run t2; g2 go g4 s14 f98; g2 yield", usual,
                "g1\n g2\n  g4\n g3\n");
    expect_tree(
        "g1 run t1; g1 go g2 s12 f99; g1 go g3 s12 f99; g2 run t2; g2 go g4 s14 f98; g2 yield;"
        "g3 run t2; g3 go g5 s14 f98; g3 yield",
        usual, "g1\n g2 x2\n  g4\n");
}
