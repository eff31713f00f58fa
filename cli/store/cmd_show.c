/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl show RUN: what is known of one run, and what is not. */
#include <errno.h>
#include <inttypes.h>

#include "base/array.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/completeness.h"
#include "cli/common/output.h"
#include "cli/common/table.h"

static error_t parse(int key, char *arg, struct argp_state *state)
{
    const char **name = state->input;

    switch (key) {
    case ARGP_KEY_ARG:
        if (*name)
            argp_usage(state);
        *name = arg;
        return 0;
    case ARGP_KEY_END:
        if (!*name)
            argp_error(state, "show needs a run (tracectl runs lists them)");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .parser = parse,
    .args_doc = "RUN",
    .doc =
        "Describe a run: its processes and threads, its functions, lost events, functions that were "
        "excluded for some time, and its size.",
    .children = cli_common_children,
};

/* ------------------------------------------------------------------------------------------ sections */

/*
 * A section is a query. Its columns carry how they are shown: the result column's name is the JSON key, and
 * its first letter is the kind of the value: t text, n number, c count, s nanoseconds since 1970, r real. The
 * table's titles are given apart; NULL in `titles` leaves a column out of it.
 */
struct section {
    const char *key, *sql;
    const char *const *titles;
    size_t limit; /* rows of the table, 0: all */
};

static const char *const process_titles[] = {">PID",  ">RANK", ">PARENT", "EXECUTABLE", NULL,
                                             ">EXIT", NULL,    NULL,      NULL};
static const char *const function_titles[] = {">CALLS", "FUNCTION", "IMAGE", NULL, NULL, NULL};
static const char *const loss_titles[] = {"CAUSE", ">LOST EVENTS", ">PLACES", ">UNKNOWN COUNT", NULL};
static const char *const blind_titles[] = {"FUNCTION", "FROM", "TO", ">CALLS/S", "CAUSE", ">MISSED"};
static const char *const tag_titles[] = {"TAG", "VALUE"};

static const struct section sections[] = {
    {"tags", "SELECT key AS t_key, value AS t_value FROM tags WHERE run_id = ?1 ORDER BY key", tag_titles, 0},
    {"processes",
     "SELECT p.pid AS n_pid, p.rank AS n_rank, q.pid AS n_parent_pid, p.exe AS t_exe, p.argv AS t_argv, "
     "p.exit_status AS n_exit_status, p.started_ns AS s_started, p.ended_ns AS s_ended, p.process_id AS "
     "n_process_id "
     "FROM processes p LEFT JOIN processes q ON q.process_id = p.parent_process_id "
     "WHERE p.run_id = ?1 ORDER BY p.process_id",
     process_titles, 0},
    {"losses",
     "SELECT cause AS t_cause, sum(count) AS c_count, count(*) AS c_places, sum(count IS NULL) AS c_unknown, "
     "min(ns) AS s_first FROM losses WHERE run_id = ?1 GROUP BY cause ORDER BY cause",
     loss_titles, 0},
    {"muted",
     "SELECT coalesce(f.demangled, f.name) AS t_name, nullif(b.from_ns, 0) AS s_from, b.to_ns AS "
     "s_to, nullif(b.calls_per_second, 0) AS r_calls_per_second, b.cause AS t_cause, "
     "b.calls_missed AS c_calls_missed FROM blind b "
     "LEFT JOIN functions f ON f.function_id = b.function_id WHERE b.run_id = ?1 ORDER BY b.from_ns, f.name",
     blind_titles, 40},
    {"functions",
     "SELECT sum(c.calls) AS c_calls, c.name AS t_name, i.path AS t_image, f.file AS t_file, f.line AS "
     "n_line, c.function_id AS n_function_id FROM call_counts c JOIN functions f ON f.function_id = "
     "c.function_id "
     "JOIN images i ON i.image_id = f.image_id WHERE c.run_id = ?1 GROUP BY c.function_id "
     "ORDER BY c_calls DESC, c.name, c.function_id",
     function_titles, 10},
};

static json_t *value_json(sqlite3_stmt *row, int column)
{
    if (sqlite3_column_type(row, column) == SQLITE_NULL)
        return json_null();
    switch (sqlite3_column_name(row, column)[0]) {
    case 'n':
    case 'c':
        return json_integer(sqlite3_column_int64(row, column));
    case 's':
        return cli_json_time((uint64_t)sqlite3_column_int64(row, column));
    case 'r':
        return json_real(sqlite3_column_double(row, column));
    default:
        return cli_json_text(cli_text(row, column));
    }
}

static void value_text(struct table *table, sqlite3_stmt *row, int column)
{
    char time[64];

    if (sqlite3_column_type(row, column) == SQLITE_NULL) {
        table_cell(table, "-");
        return;
    }
    switch (sqlite3_column_name(row, column)[0]) {
    case 's':
        cli_format_time((uint64_t)sqlite3_column_int64(row, column), 3, time, sizeof(time));
        table_cell(table, time);
        break;
    case 'c':
        table_cell_count(table, (uint64_t)sqlite3_column_int64(row, column));
        break;
    case 'r':
        table_cell_count(table, (uint64_t)(sqlite3_column_double(row, column) + 0.5));
        break;
    default:
        table_cell(table, cli_text(row, column));
        break;
    }
}

static int section_json(struct tracestore *store, int64_t run_id, const struct section *section,
                        json_t *document, struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    json_t *array = json_array();
    int r = cli_prepare(store, &row, err, section->sql, 1, run_id);

    while (r == 0 && (r = cli_step(row, "", err)) == 0) {
        json_t *object = json_object();

        for (int i = 0; i < sqlite3_column_count(row); i++)
            json_object_set_new(object, sqlite3_column_name(row, i) + 2, value_json(row, i));
        json_array_append_new(array, object);
    }
    json_object_set_new(document, section->key, array);
    return r < 0 ? r : 0;
}

static int section_text(struct tracestore *store, int64_t run_id, const struct section *section,
                        struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    const char *titles[16];
    size_t columns = 0, rows = 0;
    struct table *table = NULL;
    int r = cli_prepare(store, &row, err, section->sql, 1, run_id);

    while (r == 0 && (r = cli_step(row, "", err)) == 0) {
        if (section->limit && rows++ >= section->limit)
            continue;
        for (int i = 0; !table && i < sqlite3_column_count(row); i++)
            if (section->titles[i])
                titles[columns++] = section->titles[i];
        if (!table) {
            putchar('\n');
            table = table_new(stdout, titles, columns, cli_colour());
        }
        for (int i = 0; i < sqlite3_column_count(row); i++)
            if (section->titles[i])
                value_text(table, row, i);
    }
    if (table && table_free(table) < 0 && r >= 0)
        return error_no_memory(err);
    if (section->limit && rows > section->limit)
        text_print(stdout, "... %zu more\n", rows - section->limit);
    return r < 0 ? r : 0;
}

/* ------------------------------------------------------------------------------------------ threads */

static json_t *threads_json(const struct tracestore_thread *threads, size_t count)
{
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++) {
        const struct tracestore_thread *thread = &threads[i];

        json_array_append_new(
            array, json_pack("{s:o, s:I, s:I, s:i, s:o, s:I, s:s, s:o, s:o}", "thread",
                             cli_json_text(thread->label), "thread_id", (json_int_t)thread->thread_id,
                             "process_id", (json_int_t)thread->process_id, "tid", thread->tid, "name",
                             cli_json_text(thread->name), "events", (json_int_t)thread->events, "returns",
                             trace_returns_name(thread->returns), "started",
                             cli_json_time(thread->started_ns), "ended", cli_json_time(thread->ended_ns)));
    }
    return array;
}

/* For people: the name in the store, or words for the one that does not explain itself. */
static const char *returns_text(enum trace_returns returns)
{
    return returns == TRACE_RETURNS_SETTLED ? "inferred, confirmed at the end" : trace_returns_name(returns);
}

static int threads_text(const struct tracestore_thread *threads, size_t count, struct error *err)
{
    static const char *const titles[] = {"THREAD", ">TID", ">EVENTS", "RETURNS", "NAME"};
    struct table *table;

    if (!count)
        return 0;
    putchar('\n');
    table = table_new(stdout, titles, ARRAY_SIZE(titles), cli_colour());
    for (size_t i = 0; i < count; i++) {
        table_cell(table, threads[i].label);
        table_cell_format(table, "%d", threads[i].tid);
        table_cell_count(table, threads[i].events);
        table_cell(table, returns_text(threads[i].returns));
        table_cell(table, threads[i].name);
    }
    return table_free(table) < 0 ? error_no_memory(err) : 0;
}

/* ------------------------------------------------------------------------------------------ the run */

static json_t *facts_json(const struct tracestore_run *run, const struct tracestore_totals *totals)
{
    return json_pack(
        "{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
        "s:I, s:b, s:f}",
        "run", (json_int_t)run->run_id, "name", cli_json_text(run->name), "command",
        cli_json_text(run->command), "started", cli_json_time(run->started_ns), "ended",
        cli_json_time(run->ended_ns), "exit_status",
        run->has_exit_status ? json_integer(run->exit_status) : json_null(), "host", cli_json_text(run->host),
        "kernel", cli_json_text(run->kernel), "options", cli_json_text(run->options), "tool_version",
        cli_json_text(run->tool_version), "events", (json_int_t)totals->events, "calls",
        (json_int_t)totals->calls, "returns", (json_int_t)totals->returns, "lost", (json_int_t)totals->lost,
        "muted_functions", (json_int_t)totals->muted_functions, "segments", (json_int_t)totals->segments,
        "stored_bytes", (json_int_t)totals->stored_bytes, "catalog_bytes", (json_int_t)totals->catalog_bytes,
        "index_bytes", (json_int_t)totals->index_bytes, "raw_bytes", (json_int_t)totals->raw_bytes,
        "complete", totals->complete, "waited_seconds", (double)totals->waited_ns / 1e9);
}

static void facts_text(const struct tracestore_run *run, const struct tracestore_totals *totals)
{
    char time[64], stored[32], catalog[32];

    text_print(stdout, "run       %" PRId64 " '%s'\n", run->run_id, run->name);
    text_print(stdout, "command   %s\n", run->command);
    cli_format_time(run->started_ns, 3, time, sizeof(time));
    text_print(stdout, "started   %s on %s, Linux %s\n", time, run->host, run->kernel);
    if (run->ended_ns) {
        cli_format_time(run->ended_ns, 3, time, sizeof(time));
        text_print(stdout, "ended     %s, after %.3f s", time,
                   (double)(int64_t)(run->ended_ns - run->started_ns) / 1e9);
    } else {
        fputs("ended     not ended (still being recorded, or the recorder died)", stdout);
    }
    if (run->has_exit_status)
        text_print(stdout, ", exit status %d", run->exit_status);
    putchar('\n');
    text_print(stdout, "recorder  tracectl %s, options: %s\n", run->tool_version,
               *run->options ? run->options : "none");
    text_print(stdout, "events    %'" PRIu64 " (%'" PRIu64 " calls, %'" PRIu64 " returns), ", totals->events,
               totals->calls, totals->returns);
    if (totals->complete)
        fputs("none lost\n", stdout);
    else
        text_print(stdout, "%'" PRIu64 " lost%s, %'" PRIu64 " function%s excluded at times\n", totals->lost,
                   totals->loss_unknown ? " and an unknown number more" : "", totals->muted_functions,
                   text_plural(totals->muted_functions));
    if (totals->waited_ns)
        text_print(stdout, "waiting   threads waited %.*f s in total for the recorder\n",
                   totals->waited_ns < 10000000 ? 6 : 2, (double)totals->waited_ns / 1e9);
    cli_format_bytes(totals->stored_bytes, stored, sizeof(stored));
    cli_format_bytes(totals->catalog_bytes, catalog, sizeof(catalog));
    text_print(stdout, "size      %s in %" PRIu64 " segment%s, catalog %s", stored, totals->segments,
               totals->segments == 1 ? "" : "s", catalog);
    if (totals->stored_bytes)
        text_print(stdout, "; %.1f times smaller than 2 bytes per event",
                   (double)totals->raw_bytes / (double)totals->stored_bytes);
    putchar('\n');
}

/* One line, if the nesting of the calls of some threads is unknown. */
static void nesting_text(const struct tracestore_thread *threads, size_t count)
{
    size_t bare = 0;

    for (size_t i = 0; i < count; i++)
        bare += threads[i].returns == TRACE_RETURNS_NONE;
    if (bare && bare == count)
        puts("nesting   unknown: returns were not recorded");
    else if (bare)
        text_print(stdout, "nesting   unknown in %zu of %zu threads: returns were not recorded\n", bare,
                   count);
}

/* One line, if some functions were not recorded all the time. */
static void gaps_text(const struct completeness *completeness)
{
    char text[256];

    completeness_text(completeness, text, sizeof(text));
    if (*text)
        text_print(stdout, "gaps      %s\n", text);
}

static int show_text(struct tracestore *store, const struct tracestore_run *run,
                     const struct tracestore_totals *totals, const struct tracestore_thread *threads,
                     size_t count, struct error *err)
{
    struct completeness completeness;
    int r = completeness_read(store, run->run_id, &completeness, err);

    if (r)
        return r;
    facts_text(run, totals);
    gaps_text(&completeness);
    nesting_text(threads, count);
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(sections); i++) {
        r = section_text(store, run->run_id, &sections[i], err);
        if (r == 0 && i == 1) /* behind the processes */
            r = threads_text(threads, count, err);
    }
    return r;
}

static int show_json(struct tracestore *store, const struct tracestore_run *run,
                     const struct tracestore_totals *totals, const struct tracestore_thread *threads,
                     size_t count, struct error *err)
{
    AUTO_JSON json_t *document = facts_json(run, totals);
    struct completeness completeness;
    int r;

    if (!document)
        return error_no_memory(err);
    r = completeness_read(store, run->run_id, &completeness, err);
    if (r)
        return r;
    json_object_set_new(document, "completeness", completeness_json(&completeness, 1));
    json_object_set_new(document, "threads", threads_json(threads, count));
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(sections); i++)
        r = section_json(store, run->run_id, &sections[i], document, err);
    if (r == 0)
        cli_json_print(document);
    return r;
}

static int show(struct tracestore *store, const struct tracestore_run *run, struct error *err)
{
    struct tracestore_totals totals = {0};
    struct tracestore_thread *threads = NULL;
    size_t count = 0;
    int r = tracestore_run_totals(store, run->run_id, &totals, err);

    if (r == 0)
        r = tracestore_threads(store, run->run_id, &threads, &count, err);
    if (r == 0)
        r = cli.json ? show_json(store, run, &totals, threads, count, err)
                     : show_text(store, run, &totals, threads, count, err);
    tracestore_threads_free(threads, count);
    return r;
}

static int run(int argc, char **argv)
{
    const char *name = NULL;
    AUTO_STORE struct tracestore *store = NULL;
    AUTO_RUN struct tracestore_run run = {0};
    struct error err = {0};

    cli_parse(&cmd_show, argc, argv, &name);
    if (cli_open_run(name, TRACESTORE_READ, &store, &run, &err) < 0 || show(store, &run, &err) < 0)
        return cli_fail(&err);
    return cli_finish(EXIT_NOTHING_FOUND);
}

const struct command cmd_show = {
    .name = "show",
    .summary = "describe a run",
    .argp = &argp,
    .examples =
        "Describe the newest run:\n"
        "  tracectl show latest\n"
        "Describe a run of another store by its name:\n"
        "  tracectl show other.db:nightly\n",
    .run = run,
};
