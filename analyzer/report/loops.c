/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The loop table: what L0, L1 and so on are, and how often they ran. */
#include <inttypes.h>
#include <stdlib.h>

#include "analyzer/cluster/entry_text.h"
#include "analyzer/report/parts.h"
#include "analyzer/symbols/short_names.h"
#include "base/cleanup.h"
#include "base/error.h"

enum { MOST_LOOPS = 200, BODY_WIDTH = 240 };

/* The number of a loop, and what decides whether it is shown. */
struct loop {
    uint32_t number;
    bool differs, mentioned;
    uint64_t iterations; /* in both runs */
};

static uint64_t capped_sum(uint64_t a, uint64_t b)
{
    uint64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t capped_product(uint64_t a, uint64_t b)
{
    uint64_t product;

    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Adds what one repetition of the elements, `times` times over, adds to the loops directly among them. */
static void add_loops(const struct loop_table *table, const struct nlr_element *elements, size_t count,
                      uint64_t times, uint64_t *iterations)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t *sum;

        if (elements[i].kind != NLR_LOOP)
            continue;
        sum = &iterations[table->numbers[elements[i].id]];
        *sum = capped_sum(*sum, capped_product(elements[i].count, times));
    }
}

/* How often each loop ran in a run, by number. A loop has a higher number than those in it. */
static uint64_t *count_iterations(const struct loop_table *table, const struct run_loops *run)
{
    uint64_t *iterations = calloc(table->number_count + 1, sizeof(*iterations));

    if (!iterations)
        return NULL;
    for (size_t i = 0; i < run->thread_count; i++)
        add_loops(table, run->threads[i].loops.elements, run->threads[i].loops.count, 1, iterations);
    for (size_t number = table->number_count; number-- > 0;) {
        uint32_t id = table->numbered[number];

        add_loops(table, loop_table_elements(table, id), table->bodies[id].length, iterations[number],
                  iterations);
    }
    return iterations;
}

/* ------------------------------------------------------------------------------------------ the choice */

static int compare_loops(const void *a, const void *b)
{
    const struct loop *x = a, *y = b;

    if (x->mentioned != y->mentioned)
        return x->mentioned ? -1 : 1;
    if (x->differs != y->differs)
        return x->differs ? -1 : 1;
    if (x->iterations != y->iterations)
        return x->iterations > y->iterations ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

static int compare_numbers(const void *a, const void *b)
{
    const struct loop *x = a, *y = b;

    return x->number < y->number ? -1 : x->number > y->number;
}

/* Sorts the loops to be shown to the front, by number. */
static size_t choose(struct loop *loops, size_t count)
{
    size_t shown = count < MOST_LOOPS ? count : MOST_LOOPS;

    qsort(loops, count, sizeof(*loops), compare_loops);
    qsort(loops, shown, sizeof(*loops), compare_numbers);
    return shown;
}

/* ------------------------------------------------------------------------------------------ the table */

static int print_loop(struct html_table *table, const struct loop_summary *summary, const struct loop *loop,
                      const uint64_t *normal, const uint64_t *faulty)
{
    uint32_t id = summary->table.numbered[loop->number];
    AUTO_FREE char *body = loop_body_text(summary, id);
    char text[SHORT_NAME_SIZE(BODY_WIDTH)];

    if (!body)
        return -1;
    name_shorten(body, BODY_WIDTH, text, sizeof(text));
    table->row_class = loop->differs ? "differs" : NULL;
    html_cell_format(table, "L%" PRIu32, loop->number);
    html_cell(table, text);
    html_cell_count(table, summary->table.bodies[id].events);
    html_cell_count(table, normal[loop->number]);
    if (faulty) {
        html_cell_count(table, faulty[loop->number]);
        html_cell(table, loop->differs ? "\xe2\x89\xa0" : "=");
    }
    return 0;
}

static int print_table(struct report *report, const uint64_t *normal, const uint64_t *faulty,
                       struct error *err)
{
    static const char *const compared[] = {"Loop",          "One iteration",  ">Calls in it",
                                           ">Baseline run", ">Candidate run", "Equal"};
    static const char *const alone[] = {"Loop", "One iteration", ">Calls in it", ">Iterations"};
    const struct loop_summary *summary = report->input->summary;
    size_t count = summary->table.number_count, shown;
    AUTO_FREE struct loop *loops = calloc(count + 1, sizeof(*loops));
    struct html_table table;

    if (!loops)
        return error_no_memory(err);
    for (size_t i = 0; i < count; i++)
        loops[i] = (struct loop){
            .number = (uint32_t)i,
            .differs = faulty && normal[i] != faulty[i],
            .mentioned = report->mentioned[i],
            .iterations = capped_sum(normal[i], faulty ? faulty[i] : 0),
        };
    shown = choose(loops, count);
    html_table_begin(&table, report->out, "Loops and their number of iterations, all threads together",
                     faulty ? compared : alone, faulty ? 6 : 4);
    for (size_t i = 0; i < shown; i++)
        if (print_loop(&table, summary, &loops[i], normal, faulty) < 0)
            return error_no_memory(err);
    html_table_end(&table);
    if (shown < count)
        html_paragraph(report->out, "note",
                       "Omitted: %zu loops with fewer iterations%s. tracectl nlr lists all.", count - shown,
                       faulty ? ", or equal in both runs" : "");
    return 0;
}

int report_loops(struct report *report, struct error *err)
{
    const struct loop_summary *summary = report->input->summary;
    AUTO_FREE uint64_t *normal = NULL, *faulty = NULL;

    if (!summary->table.number_count) {
        html_paragraph(report->out, NULL, "No thread repeated any calls kept by this filter.");
        return 0;
    }
    normal = count_iterations(&summary->table, &summary->runs[0]);
    if (report_compares(report))
        faulty = count_iterations(&summary->table, summary_run(summary, true));
    if (!normal || (report_compares(report) && !faulty))
        return error_no_memory(err);
    return print_table(report, normal, faulty, err);
}
