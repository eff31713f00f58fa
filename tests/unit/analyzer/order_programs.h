/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Random programs of nested loops and branches that tell, while they run, where they are, with their
 * registers. */
#ifndef TRACECTL_TESTS_ORDER_PROGRAMS_H
#define TRACECTL_TESTS_ORDER_PROGRAMS_H

#include <stddef.h>
#include <stdint.h>

/* The source of a program, decided by `seed`. The caller frees it. Run as `program SEED FILE`, it decides its
 * branches by SEED and writes its samples into FILE. */
char *order_program(unsigned seed);

#define TOLD_WORDS 96

/* One frame as the program tells it: what the unwinder knows, and the words below the canonical frame
 * address. */
struct told_frame {
    uint64_t address; /* of the next instruction, from the beginning of the program */
    uint64_t cfa;
    uint64_t registers[6]; /* rbx, rbp, r12, r13, r14, r15 */
    uint64_t word_count;
    uint64_t words[TOLD_WORDS]; /* words[0] is at cfa - 8 * word_count */
};

struct told_sample {
    uint64_t time; /* counted in points passed */
    uint64_t count;
    struct told_frame *frames; /* the innermost first; main() is the last */
};

struct told_run {
    struct told_sample *samples;
    size_t count;
};

/* Reads what a program wrote; the test fails when it is not that. */
void told_run_read(const char *path, struct told_run *ret_run);
void told_run_release(struct told_run *run);

#endif
