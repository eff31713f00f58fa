/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/diff/call_tally.h"

#include <errno.h>
#include <stdlib.h>

int call_tally_init(struct call_tally *tally, const struct loop_summary *summary)
{
    size_t symbols = summary->symbols.count + 1;

    *tally = (struct call_tally){
        .counts = malloc(symbols * sizeof(*tally->counts)),
        .slots = calloc(symbols, sizeof(*tally->slots)),
    };
    if (tally->counts && tally->slots)
        return 0;
    call_tally_release(tally);
    return -ENOMEM;
}

void call_tally_release(struct call_tally *tally)
{
    free(tally->counts);
    free(tally->slots);
    *tally = (struct call_tally){0};
}

void call_tally_clear(struct call_tally *tally)
{
    for (size_t i = 0; i < tally->count; i++)
        tally->slots[tally->counts[i].symbol] = 0;
    tally->count = 0;
}

static void add_calls(struct call_tally *tally, uint32_t symbol, uint64_t times, bool faulty)
{
    struct call_count *count;
    uint64_t *side;

    if (!tally->slots[symbol]) {
        tally->counts[tally->count++] = (struct call_count){.symbol = symbol};
        tally->slots[symbol] = (uint32_t)tally->count;
    }
    count = &tally->counts[tally->slots[symbol] - 1];
    side = faulty ? &count->faulty : &count->normal;
    if (__builtin_add_overflow(*side, times, side))
        *side = UINT64_MAX;
}

static void add_elements(struct call_tally *tally, const struct loop_table *table,
                         const struct nlr_element *elements, size_t count, uint64_t times, bool faulty)
{
    for (size_t i = 0; i < count; i++) {
        const struct nlr_element *element = &elements[i];
        uint64_t inner;

        if (element->kind == NLR_SYMBOL && element->id != SYMBOL_RETURN)
            add_calls(tally, element->id, times, faulty);
        if (element->kind != NLR_LOOP)
            continue;
        if (__builtin_mul_overflow(times, element->count, &inner))
            inner = UINT64_MAX;
        add_elements(tally, table, loop_table_elements(table, element->id), table->bodies[element->id].length,
                     inner, faulty);
    }
}

void call_tally_add(struct call_tally *tally, const struct loop_table *table,
                    const struct nlr_element *elements, size_t count, bool faulty)
{
    add_elements(tally, table, elements, count, 1, faulty);
}

void call_tally_thread(struct call_tally *tally, const struct loop_summary *summary,
                       const struct thread_diff *thread)
{
    call_tally_clear(tally);
    for (size_t i = 0; i < thread->diff.edit_count; i++) {
        const struct diff_edit *edit = &thread->diff.edits[i];

        if (edit->op == DIFF_UNKNOWN)
            continue;
        call_tally_add(tally, &summary->table, thread->normal->loops.elements + edit->normal,
                       edit->normal_count, false);
        call_tally_add(tally, &summary->table, thread->faulty->loops.elements + edit->faulty,
                       edit->faulty_count, true);
    }
}

static uint64_t change(const struct call_count *count)
{
    return count->normal > count->faulty ? count->normal - count->faulty : count->faulty - count->normal;
}

/* A function that one side never calls tells more than one that both do. */
static bool is_one_sided(const struct call_count *count)
{
    return !count->normal != !count->faulty;
}

static int compare_counts(const void *a, const void *b)
{
    const struct call_count *x = a, *y = b;

    if (is_one_sided(x) != is_one_sided(y))
        return is_one_sided(x) ? -1 : 1;
    if (change(x) != change(y))
        return change(x) > change(y) ? -1 : 1;
    return x->symbol < y->symbol ? -1 : x->symbol > y->symbol;
}

void call_tally_sort(struct call_tally *tally)
{
    qsort(tally->counts, tally->count, sizeof(*tally->counts), compare_counts);
    for (size_t i = 0; i < tally->count; i++)
        tally->slots[tally->counts[i].symbol] = (uint32_t)i + 1;
}
