/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which functions were probably renamed between two versions of a program: a guess.
 *
 * A function that only the normal run calls and one that only the faulty run calls are one function if they
 * stand in the same places: the calls before and behind them are the same. A call is followed by the first
 * that it makes itself, so these places tell the caller and the callee, too. Other functions of one side are
 * all alike in this, so that functions renamed together do not hide each other. A first or last call is no
 * evidence: a program that ends otherwise than before calls another function there. And since a function that
 * is gone may have left its place to a new one, their names or the sizes of their code must be alike besides.
 */
#ifndef TRACECTL_ANALYZER_DIFF_RENAMES_H
#define TRACECTL_ANALYZER_DIFF_RENAMES_H

#include "analyzer/diff/function_facts.h"

struct rename {
    uint32_t normal, faulty; /* symbols */
    double likeness;         /* of the places of both: common ones, of all; above RENAME_LIKENESS to 1 */
};

#define RENAME_LIKENESS 0.5     /* of their places */
#define RENAME_SIZE 0.5         /* the smaller of two code sizes, of the larger one */
#define RENAME_LETTERS 4u       /* that the names have in common, scopes and arguments left out; or else: */
#define RENAME_SAME_SIZE 0.9    /* like RENAME_SIZE, of code of */
#define RENAME_TELLING_SIZE 48u /* bytes or more */

struct renames {
    struct rename *renames;
    size_t count;
};

/* Each function is in one pair at most, the most alike first. Functions that the other program is known to
 * have are in none. Fails with -ENOMEM. Release what a success returned. */
int find_renames(const struct loop_summary *summary, const struct function_facts *facts,
                 struct renames *ret_renames);
void renames_release(struct renames *renames);

#endif
