/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/cascade/loop_growth.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/array.h"
#include "base/cleanup.h"

/* Counts that differ by less are not growth: a reading more or less at the end, a retry. */
#define LEAST_RATIO 1.25
enum { LEAST_STEPS = 2 };
/* What waits for chance is never so near to a function of the size. */
#define CLOSE_FIT 0.02

struct growth_entry {
    char *key; /* function, a newline, step */
    struct loop_growth growth;
    UT_hash_handle hh;
};

struct growth_table {
    struct growth_entry *entries;
    size_t runs;
    uint64_t sizes[GROWTH_MOST_RUNS];
    bool sized; /* all sizes are known, and not all the same */
};

const char *loop_fit_name(enum loop_fit fit)
{
    static const char *const names[] = {"unknown", "constant",           "logarithmic",
                                        "linear",  "linear-logarithmic", "quadratic"};

    return fit < ARRAY_SIZE(names) ? names[fit] : "unknown";
}

const char *loop_kind_name(enum loop_kind kind)
{
    static const char *const names[] = {"bounded", "waits", "reads", "follows"};

    return kind < ARRAY_SIZE(names) ? names[kind] : "?";
}

int growth_table_new(size_t runs, const uint64_t *sizes, struct growth_table **ret_table)
{
    struct growth_table *table = calloc(1, sizeof(*table));

    if (!table)
        return -ENOMEM;
    table->runs = runs;
    table->sized = runs > 0;
    for (size_t i = 0; i < runs; i++) {
        table->sizes[i] = sizes[i];
        table->sized = table->sized && sizes[i];
    }
    for (size_t i = 1; table->sized && i < runs && sizes[i] == sizes[0]; i++)
        table->sized = i + 1 < runs;
    *ret_table = table;
    return 0;
}

static void free_entry(struct growth_entry *entry)
{
    free(entry->key);
    free(entry->growth.function);
    free(entry->growth.step);
    free(entry);
}

void growth_table_free(struct growth_table *table)
{
    struct growth_entry *entry = NULL, *next = NULL;

    if (!table)
        return;
    HASH_ITER (hh, table->entries, entry, next) {
        HASH_DEL(table->entries, entry);
        free_entry(entry);
    }
    free(table);
}

static struct growth_entry *find(const struct growth_table *table, const char *function, const char *step)
{
    struct growth_entry *entry;
    char key[1024];

    snprintf(key, sizeof(key), "%s\n%s", function, step);
    HASH_FIND_STR(table->entries, key, entry);
    return entry;
}

const struct loop_growth *growth_table_find(const struct growth_table *table, const char *function,
                                            const char *step)
{
    const struct growth_entry *entry = find(table, function, step);

    return entry ? &entry->growth : NULL;
}

/* NULL: no memory. */
static struct growth_entry *add_entry(struct growth_table *table, const char *function, const char *step)
{
    struct growth_entry *entry = calloc(1, sizeof(*entry));
    char key[1024];

    if (!entry)
        return NULL;
    snprintf(key, sizeof(key), "%s\n%s", function, step);
    entry->key = strdup(key);
    entry->growth = (struct loop_growth){
        .function = strdup(function), .step = strdup(step), .fewest = UINT64_MAX, .only_waits = true};
    if (entry->key && entry->growth.function && entry->growth.step) {
        HASH_ADD_KEYPTR(hh, table->entries, entry->key, strlen(entry->key), entry);
        if (entry->hh.tbl)
            return entry;
    }
    free_entry(entry);
    return NULL;
}

int growth_table_add(struct growth_table *table, size_t run, const char *function, const char *step,
                     uint64_t iterations, bool only_waits, bool ends_on_read)
{
    struct growth_entry *entry = find(table, function, step);
    struct loop_growth *growth;

    if (!entry)
        entry = add_entry(table, function, step);
    if (!entry)
        return -ENOMEM;
    growth = &entry->growth;
    if (iterations > growth->counts[run])
        growth->counts[run] = iterations;
    if (iterations < growth->fewest)
        growth->fewest = iterations;
    growth->only_waits = growth->only_waits && only_waits;
    growth->ends_on_read = growth->ends_on_read || ends_on_read;
    return 0;
}

/* ------------------------------------------------------------------------------------------ fitting */

static double shape(enum loop_fit fit, double size)
{
    switch (fit) {
    case FIT_LOGARITHMIC:
        return log2(size + 1);
    case FIT_LINEAR:
        return size;
    case FIT_LINEAR_LOG:
        return size * log2(size + 1);
    case FIT_QUADRATIC:
        return size * size;
    default:
        return 1;
    }
}

/* The mean relative distance of the counts from the nearest c * f(size); least squares of the relative
 * distances, so that small counts count as much as large ones. */
static double distance(const struct growth_table *table, const struct loop_growth *growth, enum loop_fit fit)
{
    double above = 0, below = 0, sum = 0, factor;

    for (size_t i = 0; i < table->runs; i++) {
        double relative = shape(fit, (double)table->sizes[i]) / (double)growth->counts[i];

        above += relative;
        below += relative * relative;
    }
    factor = above / below;
    for (size_t i = 0; i < table->runs; i++)
        sum += fabs(1 - factor * shape(fit, (double)table->sizes[i]) / (double)growth->counts[i]);
    return sum / (double)table->runs;
}

static void find_fit(const struct growth_table *table, struct loop_growth *growth)
{
    growth->fit = FIT_UNKNOWN;
    for (size_t i = 0; i < table->runs; i++)
        if (!growth->counts[i])
            return;
    if (!table->sized)
        return;
    for (enum loop_fit fit = FIT_CONSTANT; fit <= FIT_QUADRATIC; fit++) {
        double error = distance(table, growth, fit);

        if (growth->fit == FIT_UNKNOWN || error < growth->fit_error - 1e-9) {
            growth->fit = fit;
            growth->fit_error = error;
        }
    }
}

/* ------------------------------------------------------------------------------------------ judging */

/* Whether the counts are larger where the sizes are, or, without sizes, anywhere. A run in which the loop is
 * not reached says nothing. */
static bool grows(const struct growth_table *table, const struct loop_growth *growth)
{
    size_t least = GROWTH_MOST_RUNS, most = GROWTH_MOST_RUNS;

    for (size_t i = 0; i < table->runs; i++) {
        if (!growth->counts[i])
            continue;
        if (least == GROWTH_MOST_RUNS || growth->counts[i] < growth->counts[least])
            least = i;
        if (most == GROWTH_MOST_RUNS || growth->counts[i] > growth->counts[most])
            most = i;
    }
    if (least == GROWTH_MOST_RUNS || (table->sized && table->sizes[most] <= table->sizes[least]))
        return false;
    return growth->counts[most] >= growth->counts[least] + LEAST_STEPS &&
           (double)growth->counts[most] >= LEAST_RATIO * (double)growth->counts[least];
}

static uint64_t most_steps(const struct growth_table *table, const struct loop_growth *growth)
{
    uint64_t most = 0;

    for (size_t i = 0; i < table->runs; i++)
        if (growth->counts[i] > most)
            most = growth->counts[i];
    return most;
}

/* How long somebody else is waited for is chance: any difference between two calls says that there is no
 * bound. */
static bool varies(const struct growth_table *table, const struct loop_growth *growth)
{
    return most_steps(table, growth) >= growth->fewest + LEAST_STEPS;
}

static void judge(const struct growth_table *table, struct loop_growth *growth)
{
    bool larger = grows(table, growth);

    growth->possible = table->runs < 2;
    find_fit(table, growth);
    if (growth->possible)
        growth->kind = growth->only_waits ? LOOP_WAITS : growth->ends_on_read ? LOOP_READS : LOOP_FOLLOWS;
    else if (growth->only_waits && varies(table, growth) &&
             !(larger && table->sized && growth->fit_error < CLOSE_FIT))
        growth->kind = LOOP_WAITS;
    else if (larger)
        growth->kind = growth->ends_on_read ? LOOP_READS : LOOP_FOLLOWS;
    else
        growth->kind = LOOP_BOUNDED;
}

void growth_table_judge(struct growth_table *table)
{
    for (struct growth_entry *entry = table->entries; entry; entry = entry->hh.next)
        judge(table, &entry->growth);
}
