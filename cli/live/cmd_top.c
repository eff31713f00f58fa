/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl top: functions by calls, of a run from its catalog, or live (top_live.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "base/number.h"
#include "cli/common/command.h"
#include "cli/common/completeness.h"
#include "cli/common/output.h"
#include "cli/common/table.h"
#include "cli/live/top_live.h"
#include "cli/live/top_times.h"

struct top_input {
    const char *run;
    struct top_options live;
};

enum { DELAY_MIN_NS = 100000000 };

enum { KEY_DELAY = 256, KEY_ITERATIONS, KEY_BUDGET, KEY_FUNCTIONS, KEY_EXCLUDE, KEY_IMAGES };

static double parse_budget(const char *text, struct argp_state *state)
{
    double share = 0;

    if (!number_parse_share(text, &share) || share < 0.0001)
        argp_error(state, "--budget must be a number from 0.01 to 1000, not '%s'", text);
    return share;
}

static void check(const struct top_input *input, struct argp_state *state)
{
    const int subjects = (input->run != NULL) + (input->live.pids.count > 0) + (input->live.config != NULL);

    if (!subjects)
        argp_error(state,
                   "no run, process or daemon given (top RUN, top -p PID, or top -c FILE; tracectl runs "
                   "lists runs)");
    if (subjects > 1)
        argp_error(state, "name only one of: a run, -p, -c");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct top_input *input = state->input;
    struct top_options *live = &input->live;

    switch (key) {
    case 'n':
        live->limit = cli_parse_number(state, "--limit", arg, 0, 1000000000);
        return 0;
    case 'p':
        pid_list_parse(&live->pids, arg, state);
        return 0;
    case 'c':
        live->config = arg;
        return 0;
    case 'b':
        live->batch = true;
        return 0;
    case KEY_DELAY:
        live->delay_ns = cli_parse_duration(state, "--delay", arg, DELAY_MIN_NS);
        return 0;
    case KEY_ITERATIONS:
        live->iterations = cli_parse_number(state, "--iterations", arg, 1, 1000000000);
        return 0;
    case KEY_BUDGET:
        live->budget = parse_budget(arg, state);
        return 0;
    case KEY_FUNCTIONS:
        function_choice_parse(function_choice_only, &live->choice, arg, state);
        return 0;
    case KEY_EXCLUDE:
        function_choice_parse(function_choice_exclude, &live->choice, arg, state);
        return 0;
    case KEY_IMAGES:
        function_choice_parse(function_choice_images, &live->choice, arg, state);
        return 0;
    case ARGP_KEY_ARG:
        if (pid_list_add_word(&live->pids, arg, state))
            return 0;
        if (input->run)
            argp_error(state, "unexpected argument '%s'", arg);
        input->run = arg;
        return 0;
    case ARGP_KEY_END:
        check(input, state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"limit", 'n', "N", 0, "Show the first N functions (default 20, 0: all; a screen shows as many as fit)",
     1},
    {"pid", 'p', "PID|NAME...", 0,
     "Count the calls of running processes, by number or by name, and their children", 2},
    {"config", 'c', "FILE", 0, "Show the functions recorded by the daemon of FILE", 2},
    {"batch", 'b', 0, 0, "Print one table after another instead of a full-screen display", 2},
    {"delay", KEY_DELAY, "TIME", 0, "Time between updates (default 1s)", 2},
    {"iterations", KEY_ITERATIONS, "N", 0, "End after N updates", 2},
    {"budget", KEY_BUDGET, "PCT", 0,
     "With -p: limit of the counting cost, in percent of the processes' CPU time (default 5). Functions "
     "that are called too often for it are not counted for a time",
     2},
    {"functions", KEY_FUNCTIONS, "REGEX", 0, "With -p: count only functions whose name matches", 2},
    {"exclude", KEY_EXCLUDE, "REGEX", 0, "With -p: do not count functions whose name matches", 2},
    {"images", KEY_IMAGES, "main|all|GLOB[,GLOB...]", 0,
     "With -p: images to count, as for record (default main)", 2},
    {0},
};
static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "RUN\n-p PID|NAME...\n-c FILE",
    .doc =
        "List the most-called functions of a run, with their durations if every event has a time (record "
        "--time full); or, until Ctrl-C, those of running processes.\vTIME is the duration of calls with "
        "a known return, including the functions they called (recursive calls count again); SELF is "
        "without those.\n\n"
        "With -p the calls are counted in the kernel and nothing is stored. PROBE is traced (each call "
        "is counted), limited (counted, up to a limit) or excluded (called too often for the budget, no "
        "probe). ~ marks the rate last measured, before the probe was removed. Keys: arrows, Page Up and "
        "Down, q. With --json, one document per line.",
    .children = cli_common_children,
};

/* By function and not by name: two functions of one name are two rows. */
static const char top_sql[] =
    "SELECT c.name, sum(c.calls) AS calls, count(DISTINCT c.thread_id), i.path, coalesce(f.file, ''), "
    "coalesce(f.line, 0), EXISTS (SELECT 1 FROM blind b WHERE b.run_id = c.run_id AND b.function_id = "
    "c.function_id), c.function_id "
    "FROM call_counts c JOIN functions f ON f.function_id = c.function_id "
    "JOIN images i ON i.image_id = f.image_id WHERE c.run_id = ?1 GROUP BY c.function_id "
    "ORDER BY calls DESC, c.name, c.function_id LIMIT ?2";

enum top_column { TOP_NAME, TOP_CALLS, TOP_THREADS, TOP_IMAGE, TOP_FILE, TOP_LINE, TOP_BLIND, TOP_ID };

static bool is_exact(struct time_range range)
{
    return range.min_ns == range.max_ns;
}

static json_t *json_bound(const struct function_time *time, uint64_t ns)
{
    return time->calls && ns != UINT64_MAX ? cli_json_count(ns) : json_null();
}

static json_t *json_exact(const struct function_time *time, struct time_range range)
{
    return is_exact(range) ? json_bound(time, range.min_ns) : json_null();
}

static json_t *row_json(sqlite3_stmt *row, uint64_t all, const struct top_times *times)
{
    const struct function_time *time = top_times_of(times, sqlite3_column_int64(row, TOP_ID));
    uint64_t calls = (uint64_t)sqlite3_column_int64(row, TOP_CALLS);

    return json_pack("{s:o, s:I, s:f, s:I, s:o, s:o, s:I, s:b, s:o, s:o, s:b, s:o, s:o, s:o, s:o}", "name",
                     cli_json_text(cli_text(row, TOP_NAME)), "calls", (json_int_t)calls, "percent",
                     all ? 100.0 * (double)calls / (double)all : 0.0, "threads",
                     (json_int_t)sqlite3_column_int64(row, TOP_THREADS), "image",
                     cli_json_text(cli_text(row, TOP_IMAGE)), "file", cli_json_text(cli_text(row, TOP_FILE)),
                     "line", (json_int_t)sqlite3_column_int64(row, TOP_LINE), "muted",
                     sqlite3_column_int(row, TOP_BLIND), "total_ns", json_exact(time, time->total), "self_ns",
                     json_exact(time, time->self), "exact", time->calls && is_exact(time->total), "min_ns",
                     json_bound(time, time->total.min_ns), "max_ns", json_bound(time, time->total.max_ns),
                     "self_min_ns", json_bound(time, time->self.min_ns), "self_max_ns",
                     json_bound(time, time->self.max_ns));
}

/* Unknown when no call's return is; a range where returns are inferred, which have no time of their own. */
static void cell_ms(struct table *table, const struct function_time *time, struct time_range range)
{
    double least = (double)range.min_ns / 1e6, most = (double)range.max_ns / 1e6;

    if (!time->calls)
        table_cell(table, "?");
    else if (is_exact(range))
        table_cell_format(table, "%.3f ms", least);
    else if (range.max_ns == UINT64_MAX)
        table_cell_format(table, "over %.3f ms", least);
    else
        table_cell_format(table, "%.3f to %.3f ms", least, most);
}

static void row_text(struct table *table, sqlite3_stmt *row, uint64_t all, const struct top_times *times)
{
    const struct function_time *time = top_times_of(times, sqlite3_column_int64(row, TOP_ID));
    uint64_t calls = (uint64_t)sqlite3_column_int64(row, TOP_CALLS);
    int muted = sqlite3_column_int(row, TOP_BLIND);

    table_cell_count(table, calls);
    table_cell_format(table, "%.1f%%", all ? 100.0 * (double)calls / (double)all : 0.0);
    if (times->known) {
        cell_ms(table, time, time->total);
        cell_ms(table, time, time->self);
    }
    table_cell(table, cli_text(row, TOP_THREADS));
    table_cell_format(table, "%s%s", cli_text(row, TOP_NAME),
                      muted ? " (undercounted: probe removed at times to stay within budget)" : "");
}

static struct table *begin_table(bool timed)
{
    static const char *const plain[] = {">CALLS", ">SHARE", ">THREADS", "FUNCTION"};
    static const char *const with_times[] = {">CALLS", ">SHARE", ">TIME", ">SELF", ">THREADS", "FUNCTION"};

    return timed ? table_new(stdout, with_times, ARRAY_SIZE(with_times), cli_colour())
                 : table_new(stdout, plain, ARRAY_SIZE(plain), cli_colour());
}

static int print(struct tracestore *store, const struct tracestore_run *run, const struct top_input *input,
                 const struct top_times *times, struct error *err)
{
    AUTO_STATEMENT *statement = NULL;
    AUTO_JSON json_t *functions = json_array();
    struct table *table = NULL;
    struct completeness completeness;
    struct tracestore_totals totals;
    int64_t limit = input->live.limit ? (int64_t)input->live.limit : -1;
    int r = tracestore_run_totals(store, run->run_id, &totals, err);

    if (r == 0)
        r = completeness_read(store, run->run_id, &completeness, err);
    if (r == 0)
        r = cli_prepare(store, &statement, err, top_sql, 2, run->run_id, limit);
    if (r == 0 && !cli.json)
        table = begin_table(times->known);
    while (r == 0 && (r = cli_step(statement, "tnntti", err)) == 0) {
        if (cli.json)
            json_array_append_new(functions, row_json(statement, totals.calls, times));
        else
            row_text(table, statement, totals.calls, times);
    }
    if (r < 0) {
        table_free(table);
        return r;
    }
    if (!cli.json) {
        if (table_free(table) < 0)
            return error_no_memory(err);
        completeness_print(&completeness, 1);
        return 0;
    }
    AUTO_JSON json_t *document =
        json_pack("{s:I, s:o, s:I, s:I, s:b, s:O, s:o}", "run", (json_int_t)run->run_id, "name",
                  cli_json_text(run->name), "calls", (json_int_t)totals.calls, "lost",
                  (json_int_t)totals.lost, "complete", totals.complete, "functions", functions,
                  "completeness", completeness_json(&completeness, 1));
    cli_json_print(document);
    return 0;
}

static int top_run(const struct top_input *input, struct error *err)
{
    AUTO_STORE struct tracestore *store = NULL;
    AUTO_RUN struct tracestore_run run = {0};
    struct top_times times = {0};
    int r = cli_open_run(input->run, TRACESTORE_READ, &store, &run, err);

    if (!r)
        r = top_times_read(store, run.run_id, &times, err);
    if (!r)
        r = print(store, &run, input, &times, err);
    top_times_release(&times);
    return r;
}

static int run(int argc, char **argv)
{
    struct top_input input = {
        .live = {.limit = 20, .delay_ns = 1000000000, .budget = 0.05, .batch = !isatty(STDOUT_FILENO)}};
    struct error err = {0};
    int r;

    cli_parse(&cmd_top, argc, argv, &input);
    input.live.batch |= cli.json;
    if (input.run)
        r = top_run(&input, &err);
    else
        r = input.live.config ? top_daemon(&input.live, &err) : top_processes(&input.live, &err);
    pid_list_release(&input.live.pids);
    function_choice_release(&input.live.choice);
    return r < 0 ? cli_fail(&err) : cli_finish(EXIT_NOTHING_FOUND);
}

const struct command cmd_top = {
    .name = "top",
    .summary = "list the most-called functions of a run or a live process",
    .argp = &argp,
    .examples =
        "List the most-called functions of the newest run:\n"
        "  tracectl top latest\n"
        "Watch a running process:\n"
        "  tracectl top -p redis-server\n"
        "Print three tables, one every two seconds:\n"
        "  tracectl top -b --delay 2s --iterations 3 -p 1234\n",
    .run = run,
};
