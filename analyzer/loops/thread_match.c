/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/loops/thread_match.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/loops/goroutine_match.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "store/db/db.h"

struct process {
    char *label;   /* "P" */
    char *program; /* the last part of its path, without " (deleted)" */
    int64_t rank;  /* -1: none */
    char *key;     /* NULL: not matched yet */
    bool taken;    /* of a first run: a process of the run at hand is matched with it */
};

struct processes {
    struct process *items; /* in the order of their labels */
    size_t count, capacity;
};

static void processes_release(struct processes *processes)
{
    for (size_t i = 0; i < processes->count; i++) {
        free(processes->items[i].label);
        free(processes->items[i].program);
        free(processes->items[i].key);
    }
    free(processes->items);
}

static int compare_processes(const void *a, const void *b)
{
    return thread_label_compare(((const struct process *)a)->label, ((const struct process *)b)->label);
}

static char *program_of(const char *path)
{
    const char *name = path_file_name(path);

    return strndup(name, strcspn(name, " "));
}

static void finalize(sqlite3_stmt **statement)
{
    sqlite3_finalize(*statement);
}

/* The label of a process is the first part of its threads'. */
static int read_processes(const struct loop_source *source, struct processes *processes, struct error *err)
{
    CLEANUP(finalize) sqlite3_stmt *row = NULL;
    sqlite3 *db = tracestore_db(source->store);
    int result = sqlite3_prepare_v2(
        db,
        "SELECT substr(min(t.label), 1, instr(min(t.label) || '.', '.') - 1), p.exe, coalesce(p.rank, -1)"
        " FROM processes p JOIN threads t USING (process_id) WHERE p.run_id = ?1 GROUP BY p.process_id",
        -1, &row, NULL);

    if (result == SQLITE_OK)
        result = sqlite3_bind_int64(row, 1, source->run->run_id);
    while ((result == SQLITE_OK || result == SQLITE_ROW) && (result = db_row(row, "Tti")) == SQLITE_ROW) {
        struct process *process;
        const char *label = (const char *)sqlite3_column_text(row, 0);
        const char *path = (const char *)sqlite3_column_text(row, 1);

        if (array_reserve(&processes->items, &processes->capacity, processes->count + 1))
            return error_no_memory(err);
        process = &processes->items[processes->count++];
        *process = (struct process){.label = strdup(label ? label : ""),
                                    .program = program_of(path ? path : ""),
                                    .rank = sqlite3_column_int64(row, 2)};
        if (!process->label || !process->program)
            return error_no_memory(err);
    }
    if (result != SQLITE_DONE)
        return db_fail(db, err, "cannot read the processes of a run");
    if (processes->count)
        qsort(processes->items, processes->count, sizeof(*processes->items), compare_processes);
    return 0;
}

/* ------------------------------------------------------------------------------------------ matching */

static bool same_rank(const struct process *a, const struct process *b)
{
    return a->rank >= 0 && a->rank == b->rank;
}

static bool same_label(const struct process *a, const struct process *b)
{
    return a->rank < 0 && b->rank < 0 && !strcmp(a->label, b->label);
}

static bool same_program(const struct process *a, const struct process *b)
{
    return a->rank < 0 && b->rank < 0 && !strcmp(a->program, b->program);
}

static bool same_label_and_program(const struct process *a, const struct process *b)
{
    return same_label(a, b) && same_program(a, b);
}

/* The first rule that applies, in the order of this table. */
static bool (*const rules[])(const struct process *a, const struct process *b) = {
    same_rank,
    same_label_and_program,
    same_program,
    same_label,
};

static int match(struct processes *first, struct processes *other)
{
    for (size_t i = 0; i < first->count; i++)
        first->items[i].taken = false;
    for (size_t rule = 0; rule < ARRAY_SIZE(rules); rule++)
        for (size_t i = 0; i < other->count; i++)
            for (size_t j = 0; j < first->count && !other->items[i].key; j++) {
                if (first->items[j].taken || !rules[rule](&other->items[i], &first->items[j]))
                    continue;
                first->items[j].taken = true;
                other->items[i].key = strdup(first->items[j].key);
                if (!other->items[i].key)
                    return -ENOMEM;
            }
    /* The others have no partner, and must not look like one of those with the same label. */
    for (size_t i = 0; i < other->count; i++)
        if (!other->items[i].key && asprintf(&other->items[i].key, "%s'", other->items[i].label) < 0)
            return -ENOMEM;
    return 0;
}

/* ------------------------------------------------------------------------------------------ threads */

static int compare_threads(const void *a, const void *b)
{
    return thread_label_compare(thread_key(a), thread_key(b));
}

static int key_threads(const struct processes *processes, struct run_loops *run)
{
    for (size_t i = 0; i < run->thread_count; i++) {
        struct thread_loops *thread = &run->threads[i];
        size_t length = strcspn(thread->label, ".");
        AUTO_FREE char *label = strndup(thread->label, length);
        const struct process *process = label && processes->count
                                            ? bsearch(&(struct process){.label = label}, processes->items,
                                                      processes->count, sizeof(*process), compare_processes)
                                            : NULL;

        thread->has_rank = process && process->rank >= 0;
        if (!label ||
            asprintf(&thread->key, "%s%s", process ? process->key : label, thread->label + length) < 0)
            return -ENOMEM;
    }
    return 0;
}

static void sort_threads(struct run_loops *run)
{
    if (run->thread_count)
        qsort(run->threads, run->thread_count, sizeof(*run->threads), compare_threads);
}

static int key_first(struct processes *first)
{
    for (size_t i = 0; i < first->count; i++) {
        first->items[i].key = strdup(first->items[i].label);
        if (!first->items[i].key)
            return -ENOMEM;
    }
    return 0;
}

int threads_match(const struct loop_source *sources, struct loop_summary *summary, struct error *err)
{
    CLEANUP(processes_release) struct processes first = {0};
    int r = read_processes(&sources[0], &first, err);

    if (r < 0)
        return r;
    if (key_first(&first) || key_threads(&first, &summary->runs[0]))
        return error_no_memory(err);
    sort_threads(&summary->runs[0]);
    for (size_t run = 1; run < summary->run_count; run++) {
        CLEANUP(processes_release) struct processes other = {0};

        r = read_processes(&sources[run], &other, err);
        if (r < 0)
            return r;
        if (match(&first, &other) || key_threads(&other, &summary->runs[run]))
            return error_no_memory(err);
        r = goroutines_match(&sources[0], &summary->runs[0], &sources[run], &summary->runs[run], err);
        if (r < 0)
            return r;
        sort_threads(&summary->runs[run]);
    }
    return 0;
}
