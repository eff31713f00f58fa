/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "tests/unit/analyzer/two_runs.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/loops/known_loops.h"
#include "tests/unit/analyzer/streams.h"

static const char letters[][16] = {"MPI_Finalize", "MPI_Init", "MPI_Comm_rank",
                                   "MPI_Recv",     "MPI_Send", "MPI_Comm_size"};

/* A symbol for each letter up to Z, named after MPI functions where odd_even uses it. */
static void name_symbols(struct symbol_table *symbols)
{
    static const char used[] = "FIKRSZ";

    for (char c = 'A'; c <= 'Z'; c++) {
        const char *found = strchr(used, c), plain[2] = {c, 0};
        uint32_t symbol;

        cr_assert_eq(symbols_add(symbols, found ? letters[found - used] : plain, NULL, &symbol), 0);
        cr_assert_eq(symbol, (uint32_t)(c - 'A' + 1));
    }
}

struct loop_summary two_runs(char texts[2][MOST_THREADS][LONGEST_TEXT], size_t count)
{
    struct loop_summary summary = {.runs = calloc(2, sizeof(struct run_loops)), .run_count = 2};
    struct nlr_options options = {NLR_DEFAULT_BODY, NLR_STRICT_REPEATS};
    struct nlr_sequence *sequences[2 * MOST_THREADS];
    size_t all = 0;

    name_symbols(&summary.symbols);
    for (size_t run = 0; run < 2; run++) {
        summary.runs[run].threads = calloc(count, sizeof(struct thread_loops));
        summary.runs[run].thread_count = count;
        for (size_t i = 0; i < count; i++) {
            struct thread_loops *thread = &summary.runs[run].threads[i];

            thread->loops = reduce_text(&summary.table, texts[run][i]);
            sequences[all++] = &thread->loops;
            cr_assert_gt(asprintf(&thread->label, "%zu.0", i), 0);
        }
    }
    cr_assert_eq(known_loops_apply(&summary.table, &options, sequences, all), 0);
    for (size_t i = 0; i < all; i++)
        cr_assert_eq(loop_table_number(&summary.table, sequences[i]->elements, sequences[i]->count), 0);
    return summary;
}

struct loop_summary one_thread(const char *normal, const char *faulty)
{
    static char texts[2][MOST_THREADS][LONGEST_TEXT];

    strcpy(texts[0][0], normal);
    strcpy(texts[1][0], faulty);
    return two_runs(texts, 1);
}
