/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the stores, and the programs if they are still there, know of the functions of a comparison. */
#ifndef TRACECTL_ANALYZER_DIFF_FUNCTION_FACTS_H
#define TRACECTL_ANALYZER_DIFF_FUNCTION_FACTS_H

#include "analyzer/loops/loop_summary.h"

enum in_program { IN_PROGRAM_UNKNOWN, IN_PROGRAM_NO, IN_PROGRAM_YES };

/* A function in one run. */
struct function_side {
    bool called;                /* in the run, by any thread */
    enum in_program in_program; /* IN_PROGRAM_YES when called */
    char *file;                 /* source file; NULL or "" when unknown */
    int line;
    uint64_t size; /* bytes of code, 0: not known */
};

struct function_facts {
    struct function_side (*functions)[2]; /* by symbol; [0] of the normal run, [1] of the faulty one */
    size_t count;
};

/* The first of `summary`'s runs is the normal one, the last the faulty one; `normal` and `faulty` are where
 * they come from. Images are opened only when a function is called in one of the runs and not in the other,
 * and are believed only when their build id is that of the recording. Release what a success returned. */
int function_facts_read(const struct loop_summary *summary, const struct loop_source *normal,
                        const struct loop_source *faulty, struct function_facts *ret_facts,
                        struct error *err);
void function_facts_release(struct function_facts *facts);

/* Never NULL; nothing is known of a symbol that is none. */
const struct function_side *function_facts_side(const struct function_facts *facts, uint32_t symbol,
                                                bool faulty);

#endif
