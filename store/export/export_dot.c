/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Graphviz: who calls whom how often, out of the table call_edges. Its memory is that of the edges, which the
 * program's code bounds.
 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "store/export/export_run.h"
#include "store/export/export_text.h"

static const char what[] = "cannot read the call graph";

/* Losses and blind functions of what is drawn. */
static int put_gaps(struct export_run *run)
{
    sqlite3 *db = tracestore_db(run->store);
    const int64_t run_id = run->run->run_id, thread_id = run->options->thread ? run->threads[0].thread_id : 0;
    int64_t places = 0, lost = 0, blind = 0;
    int r = db_number(db, what, &places, run->err,
                      "SELECT count(*) FROM losses WHERE run_id = ?1 AND (?2 = 0 OR thread_id IS NULL OR"
                      " thread_id = ?2)",
                      "ii", run_id, thread_id);

    if (r == 0)
        r = db_number(db, what, &lost, run->err,
                      "SELECT sum(count) FROM losses WHERE run_id = ?1 AND (?2 = 0 OR thread_id IS NULL OR"
                      " thread_id = ?2)",
                      "ii", run_id, thread_id);
    if (r == 0)
        r = db_number(db, what, &blind, run->err,
                      "SELECT count(DISTINCT function_id) FROM blind WHERE run_id = ?1", "i", run_id);
    run->totals.lost = (uint64_t)lost;
    if (r == 0 && (places || blind))
        fprintf(
            run->out,
            "    gaps [shape=note, label=\"not seen:\\n%lld events lost in %lld places\\n%lld functions not "
            "observed at times\"];\n",
            (long long)lost, (long long)places, (long long)blind);
    return r;
}

/* Threads whose returns are not known say nothing about callers: nothing is around their calls. */
static void put_edge(struct export_run *run, sqlite3_stmt *row, uint64_t *calls)
{
    const uint64_t caller = (uint64_t)sqlite3_column_int64(row, 0),
                   count = (uint64_t)sqlite3_column_int64(row, 2);
    const size_t callee = export_function_index(run, (uint32_t)sqlite3_column_int64(row, 1));

    calls[callee] += count;
    if (caller)
        fprintf(run->out, "    f%zu -> f%zu [label=\"%llu\"];\n",
                export_function_index(run, (uint32_t)caller), callee, (unsigned long long)count);
    else
        fprintf(run->out, "    outside -> f%zu [label=\"%llu\"];\n", callee, (unsigned long long)count);
    run->totals.events += count;
}

static int put_edges(struct export_run *run, uint64_t *calls)
{
    AUTO_STATEMENT *row = NULL;
    sqlite3 *db = tracestore_db(run->store);
    int result = SQLITE_DONE, r;

    if (run->options->thread)
        r = db_prepare(
            db,
            "SELECT caller_id, function_id, sum(calls) FROM call_edges WHERE run_id = ?1 AND thread_id"
            " = ?2 GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2",
            what, &row, run->err);
    else
        r = db_prepare(db,
                       "SELECT caller_id, function_id, sum(calls) FROM call_edges WHERE run_id = ?1"
                       " GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2",
                       what, &row, run->err);
    if (r < 0)
        return r;
    sqlite3_bind_int64(row, 1, run->run->run_id);
    if (run->options->thread)
        sqlite3_bind_int64(row, 2, run->threads[0].thread_id);
    while ((result = db_row(row, "Iin")) == SQLITE_ROW)
        put_edge(run, row, calls);
    return result == SQLITE_DONE ? 0 : db_fail(db, run->err, what);
}

/* A label's quotes and backslashes are escaped; its other escapes mean nothing here. */
static void put_label(FILE *out, const char *name)
{
    AUTO_FREE char *printable = text_printable(name);

    for (const char *text = printable ? printable : "?"; *text; text++) {
        if (*text == '"' || *text == '\\')
            putc('\\', out);
        putc(*text, out);
    }
}

static void put_nodes(const struct export_run *run, const uint64_t *calls)
{
    for (size_t i = 0; i <= run->function_count; i++) {
        if (!calls[i])
            continue;
        fprintf(run->out, "    f%zu [label=\"", i);
        put_label(run->out, run->functions[i].name);
        fprintf(run->out, "\\n%llu\"];\n", (unsigned long long)calls[i]);
    }
}

static int put_graph(struct export_run *run, uint64_t *calls)
{
    FILE *out = run->out;
    int r;

    text_put(out, "digraph calls {\n    label=\"");
    put_label(out, run->run->name);
    text_put(out, "\";\n    node [shape=box];\n    outside [label=\"(nothing around)\", shape=plaintext];\n");
    r = put_edges(run, calls);
    if (r == 0) {
        put_nodes(run, calls);
        r = put_gaps(run);
    }
    text_put(out, "}\n");
    run->totals.threads = run->thread_count;
    return r;
}

static int write_dot(struct tracestore *store, const struct tracestore_run *info,
                     const struct export_options *options, FILE *out, struct export_totals *ret_totals,
                     struct error *err)
{
    struct export_run run = {0};
    AUTO_FREE uint64_t *calls = NULL;
    int r = export_run_open(&run, store, info, options, out, err);

    if (r == 0) {
        calls = calloc(run.function_count + 1, sizeof(*calls));
        r = calls ? put_graph(&run, calls) : error_no_memory(err);
    }
    if (r == 0)
        *ret_totals = run.totals;
    export_run_release(&run);
    return r;
}

const struct export_format export_dot = {
    .name = "dot",
    .summary = "the call graph with its counts, for graphviz",
    .write = write_dot,
};
