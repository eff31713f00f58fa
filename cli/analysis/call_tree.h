/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The call tree of a thread from its events, loops folded, in bounded memory.
 *
 * Two calls are equal when they are of one function, as certain, and all that they called is equal.
 * Consecutive equal calls become one with a count; where up to CALL_TREE_PERIOD calls in a row are repeated
 * as a whole, they become the body of a loop with a count. A call can be folded only after it has ended, so
 * what it called is held back until then. When more than CALL_TREE_HELD calls are held back, the outermost
 * open calls are printed, unfolded, and what is inside them from there on one by one: the loops inside them
 * fold as before.
 */
#ifndef TRACECTL_CLI_ANALYSIS_CALL_TREE_H
#define TRACECTL_CLI_ANALYSIS_CALL_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CALL_TREE_HELD 16384 /* also bounds the recursion over what is held back */

#define CALL_TREE_PERIOD 12 /* calls in the body of a loop, at most */

enum call_tree_kind { TREE_CALL, TREE_LOOP, TREE_LOST };

/* How a call ended. */
enum call_mark { CALL_RETURNED, CALL_OPEN, CALL_UNKNOWN };

struct call_tree_line {
    enum call_tree_kind kind;
    size_t depth;
    uint32_t function;
    enum call_mark mark;
    bool assumed;      /* that it is inside the call around it */
    uint64_t count;    /* equal calls in a row, rounds of a loop, or lost events (0: not known how many) */
    const char *cause; /* of lost events */
};

/* Where the tree goes: `begin` for each line, `end` behind the last line of what is inside it. */
struct call_tree_sink {
    void (*begin)(void *context, const struct call_tree_line *line);
    void (*end)(void *context, const struct call_tree_line *line);
};

struct call_tree;

/* NULL: out of memory. */
struct call_tree *call_tree_new(const struct call_tree_sink *sink, void *context, bool fold);
/* Accepts NULL; prints nothing. */
void call_tree_free(struct call_tree *tree);

size_t call_tree_depth(const struct call_tree *tree);
/* The next events. All return 0 or -ENOMEM. */
int call_tree_call(struct call_tree *tree, uint32_t function, enum call_mark mark);
/* The same, of a call whose place in the tree is assumed. */
int call_tree_call_assumed(struct call_tree *tree, uint32_t function, enum call_mark mark);
int call_tree_return(struct call_tree *tree);
/* `cause` must live as long as the tree. */
int call_tree_lost(struct call_tree *tree, uint64_t count, const char *cause);
/* Ends all open calls and prints what is held back. */
int call_tree_finish(struct call_tree *tree);

#endif
