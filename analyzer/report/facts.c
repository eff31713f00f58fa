/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the runs were, and what was not seen of them. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "analyzer/report/parts.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "store/db/db.h"

enum { MOST_NAMED = 12 };

static void finalize(sqlite3_stmt **statement)
{
    sqlite3_finalize(*statement);
}

/* ------------------------------------------------------------------------------------------ the runs */

struct run_facts {
    const struct tracestore_run *run;
    struct tracestore_totals totals;
    const char *complete;
};

static void print_time(struct html_table *table, uint64_t ns)
{
    time_t seconds = (time_t)(ns / 1000000000u);
    struct tm parts;
    char text[48];

    gmtime_r(&seconds, &parts);
    strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &parts);
    html_cell(table, text);
}

static void print_bytes(struct html_table *table, uint64_t bytes)
{
    if (bytes < 10 * 1024)
        html_cell_format(table, "%" PRIu64 " bytes", bytes);
    else if (bytes < 10 * 1048576)
        html_cell_format(table, "%.1f KiB", (double)bytes / 1024);
    else
        html_cell_format(table, "%.1f MiB", (double)bytes / 1048576);
}

static void fact_name(struct html_table *table, const struct run_facts *facts)
{
    html_cell_format(table, "%s (run %" PRId64 ")", facts->run->name, facts->run->run_id);
}

static void fact_command(struct html_table *table, const struct run_facts *facts)
{
    html_cell(table, facts->run->command);
}

static void fact_started(struct html_table *table, const struct run_facts *facts)
{
    print_time(table, facts->run->started_ns);
}

static void fact_took(struct html_table *table, const struct run_facts *facts)
{
    if (facts->run->ended_ns)
        html_cell_format(table, "%.3f s", (double)(facts->run->ended_ns - facts->run->started_ns) / 1e9);
    else
        html_cell(table, "unknown: the recorder did not end the run");
}

static void fact_status(struct html_table *table, const struct run_facts *facts)
{
    if (facts->run->has_exit_status)
        html_cell_format(table, "%d", facts->run->exit_status);
    else
        html_cell(table, "unknown");
}

static void fact_host(struct html_table *table, const struct run_facts *facts)
{
    html_cell_format(table, "%s, Linux %s", *facts->run->host ? facts->run->host : "unknown",
                     *facts->run->kernel ? facts->run->kernel : "unknown");
}

static void fact_recorder(struct html_table *table, const struct run_facts *facts)
{
    html_cell_format(table, "tracectl %s, options: %s", facts->run->tool_version,
                     *facts->run->options ? facts->run->options : "none");
}

static void fact_threads(struct html_table *table, const struct run_facts *facts)
{
    html_cell_count(table, facts->totals.threads);
}

static void fact_functions(struct html_table *table, const struct run_facts *facts)
{
    html_cell_count(table, facts->totals.functions);
}

static void fact_events(struct html_table *table, const struct run_facts *facts)
{
    char events[32], calls[32], returns[32];

    html_cell_format(table, "%s (%s calls, %s returns)", html_count(facts->totals.events, events),
                     html_count(facts->totals.calls, calls), html_count(facts->totals.returns, returns));
}

static void fact_lost(struct html_table *table, const struct run_facts *facts)
{
    char lost[32];

    html_cell_format(table, "%s%s", html_count(facts->totals.lost, lost),
                     facts->totals.loss_unknown ? " and an unknown number more" : "");
}

static void fact_complete(struct html_table *table, const struct run_facts *facts)
{
    html_cell(table, *facts->complete ? facts->complete : "all selected functions");
}

static void fact_size(struct html_table *table, const struct run_facts *facts)
{
    print_bytes(table, facts->totals.stored_bytes);
}

static const struct fact {
    const char *name;
    void (*print)(struct html_table *table, const struct run_facts *facts);
} facts[] = {
    {"Name", fact_name},         {"Command", fact_command},    {"Started", fact_started},
    {"Took", fact_took},         {"Exit status", fact_status}, {"Host", fact_host},
    {"Recorder", fact_recorder}, {"Threads", fact_threads},    {"Functions called", fact_functions},
    {"Events", fact_events},     {"Events lost", fact_lost},   {"Complete", fact_complete},
    {"Stored", fact_size},
};

/* "Normal run", "Faulty run", "Normal run 2" or "Run", in a buffer of at least 32 bytes. */
static const char *report_role(const struct report *report, size_t run, char text[32])
{
    size_t count = report->input->run_count;

    if (count == 1)
        snprintf(text, 32, "Run");
    else if (run == count - 1)
        snprintf(text, 32, "Candidate run");
    else if (count == 2)
        snprintf(text, 32, "Baseline run");
    else
        snprintf(text, 32, "Baseline run %zu", run + 1);
    return text;
}

int report_facts(struct report *report, struct error *err)
{
    size_t runs = report->input->run_count;
    AUTO_FREE struct run_facts *all = calloc(runs, sizeof(*all));
    AUTO_FREE const char **titles = calloc(runs + 1, sizeof(*titles));
    AUTO_FREE char(*roles)[32] = calloc(runs, sizeof(*roles));
    struct html_table table;

    if (!all || !titles || !roles)
        return error_no_memory(err);
    titles[0] = "Fact";
    for (size_t i = 0; i < runs; i++) {
        int r = tracestore_run_totals(report->input->sources[i].store, report_run(report, i)->run_id,
                                      &all[i].totals, err);

        if (r < 0)
            return r;
        all[i].run = report_run(report, i);
        all[i].complete = report->input->complete[i];
        titles[i + 1] = report_role(report, i, roles[i]);
    }
    html_table_begin(&table, report->out, "What was recorded", titles, runs + 1);
    for (size_t i = 0; i < ARRAY_SIZE(facts); i++) {
        html_cell(&table, facts[i].name);
        for (size_t run = 0; run < runs; run++)
            facts[i].print(&table, &all[run]);
    }
    html_table_end(&table);
    return 0;
}

/* ------------------------------------------------------------------------------------------ losses */

/* What the store's words for causes mean to whoever has not written the recorder. */
static const struct cause {
    const char *cause, *meaning;
} causes[] = {
    {"ring full", "the program made calls faster than the recorder could read them"},
    {"disk full", "there was no space on the disk"},
    {"damaged", "that part of the file could not be read"},
    {"deleted in part", "deletion of the run has begun, from its end"},
    {"too many processes at once", "more processes ran at once than the recorder can follow"},
};

static const char *meaning_of(const char *cause)
{
    for (size_t i = 0; i < ARRAY_SIZE(causes); i++)
        if (!strcmp(causes[i].cause, cause))
            return causes[i].meaning;
    return cause;
}

static int fail(const struct report *report, size_t run, struct error *err)
{
    return db_fail(tracestore_db(report->input->sources[run].store), err, "cannot read the losses of a run");
}

static int prepare(const struct report *report, size_t run, const char *sql, sqlite3_stmt **ret_statement,
                   struct error *err)
{
    sqlite3 *db = tracestore_db(report->input->sources[run].store);

    if (sqlite3_prepare_v2(db, sql, -1, ret_statement, NULL) != SQLITE_OK ||
        sqlite3_bind_int64(*ret_statement, 1, report_run(report, run)->run_id) != SQLITE_OK)
        return fail(report, run, err);
    return 0;
}

static const char *column_text(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);

    return text ? text : "";
}

/* A row of losses by cause: events known to be lost, places, and places of unknown size. */
static void print_loss(struct report *report, sqlite3_stmt *row)
{
    uint64_t known = (uint64_t)sqlite3_column_int64(row, 1), places = (uint64_t)sqlite3_column_int64(row, 2);
    uint64_t unknown = (uint64_t)sqlite3_column_int64(row, 3);
    const char *meaning = meaning_of(column_text(row, 0)), *plural = places == 1 ? "" : "s";
    char events[32], many[32];

    html_count(places, many);
    if (unknown == places)
        html_list_item(report->out, "An unknown number of events were lost at %s place%s: %s.", many, plural,
                       meaning);
    else
        html_list_item(report->out, "%s event%s%s lost at %s place%s: %s.", html_count(known, events),
                       known == 1 ? "" : "s",
                       unknown      ? ", and an unknown number more, were"
                       : known == 1 ? " was"
                                    : " were",
                       many, plural, meaning);
}

static int print_losses(struct report *report, size_t run, size_t *items, struct error *err)
{
    CLEANUP(finalize) sqlite3_stmt *row = NULL;
    int step = SQLITE_DONE,
        r = prepare(
            report, run,
            "SELECT cause, sum(count), count(*), sum(count IS NULL) FROM losses WHERE run_id = ?1 AND "
            "cause <> 'unfinished' GROUP BY cause ORDER BY cause",
            &row, err);

    while (r == 0 && (step = db_row(row, "tNnN")) == SQLITE_ROW) {
        print_loss(report, row);
        ++*items;
    }
    return r < 0 || step == SQLITE_DONE ? r : fail(report, run, err);
}

static int print_blind(struct report *report, size_t run, size_t *items, struct error *err)
{
    CLEANUP(finalize) sqlite3_stmt *row = NULL;
    AUTO_FREE char *names = NULL;
    size_t size = 0, count = 0;
    AUTO_FCLOSE FILE *out = open_memstream(&names, &size);
    int step = SQLITE_DONE,
        r = prepare(report, run,
                    "SELECT DISTINCT coalesce(f.demangled, f.name) AS n FROM blind b JOIN functions f USING "
                    "(function_id) WHERE b.run_id = ?1 ORDER BY n",
                    &row, err);

    if (!out)
        return error_no_memory(err);
    while (r == 0 && (step = db_row(row, "t")) == SQLITE_ROW)
        if (count++ < MOST_NAMED)
            fprintf(out, "%s%s", count > 1 ? ", " : "", column_text(row, 0));
    if (r == 0 && step != SQLITE_DONE)
        r = fail(report, run, err);
    if (r < 0 || !count)
        return r;
    if (count > MOST_NAMED)
        fprintf(out, " and %zu more", count - MOST_NAMED);
    if (fflush(out))
        return error_no_memory(err);
    html_list_item(report->out,
                   "%zu function%s not recorded all the time, to limit the overhead, and %s not "
                   "compared: %s.",
                   count, count == 1 ? " was" : "s were", count == 1 ? "is" : "are", names);
    ++*items;
    return 0;
}

static int print_returns(struct report *report, size_t run, size_t *items, struct error *err)
{
    struct tracestore_thread *threads = NULL;
    size_t count = 0, none = 0, inferred = 0;
    int r = tracestore_threads(report->input->sources[run].store, report_run(report, run)->run_id, &threads,
                               &count, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++) {
        none += threads[i].returns == TRACE_RETURNS_NONE;
        inferred += threads[i].returns == TRACE_RETURNS_INFERRED;
    }
    tracestore_threads_free(threads, count);
    if (none)
        html_list_item(report->out,
                       "Returns were not recorded in %zu of %zu threads, so it is unknown whether their "
                       "last calls returned.",
                       none, count);
    if (inferred)
        html_list_item(report->out,
                       "Returns were inferred in %zu of %zu threads, so it is unknown whether the last "
                       "call of each returned.",
                       inferred, count);
    *items += (none > 0) + (inferred > 0);
    return 0;
}

static void print_threads_with_gaps(struct report *report, size_t run, size_t *items)
{
    const struct run_loops *loops = &report->input->summary->runs[run];
    size_t count = 0;

    for (size_t i = 0; i < loops->thread_count; i++)
        count += loops->threads[i].gap_count > 0 || loops->threads[i].incomplete;
    if (!count)
        return;
    html_list_item(report->out,
                   "In %zu of %zu threads events are missing, or may be; only the recorded events "
                   "are compared.",
                   count, loops->thread_count);
    ++*items;
}

int report_losses(struct report *report, struct error *err)
{
    int r = 0;

    for (size_t run = 0; run < report->input->run_count && r == 0; run++) {
        size_t items = 0;
        char role[32];

        html_subheading(report->out, "%s: %s", report_role(report, run, role), report_run(report, run)->name);
        html_list_begin(report->out);
        if (report_run(report, run)->unfinished) {
            html_list_item(report->out,
                           "The recorder did not finish: events after the last stored one are unknown.");
            items++;
        }
        r = print_losses(report, run, &items, err);
        if (r == 0)
            r = print_blind(report, run, &items, err);
        if (r == 0)
            r = print_returns(report, run, &items, err);
        print_threads_with_gaps(report, run, &items);
        if (!items)
            html_list_item(report->out,
                           "Nothing is missing: every event of the selected functions was recorded.");
        html_list_end(report->out);
    }
    return r;
}
