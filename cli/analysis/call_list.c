/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/analysis/call_list.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/times/time_text.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/output.h"

enum { DEEPEST_INDENT = 60 };

bool call_filter_parse(int key, char *arg, const struct argp_state *state, struct call_filter *filter)
{
    switch (key) {
    case CALL_FILTER_DURATIONS:
        break;
    case CALL_FILTER_MIN_TIME:
        filter->min_ns = cli_parse_duration(state, "--min-time", arg, 0);
        break;
    case CALL_FILTER_DEPTH:
        filter->depth = cli_parse_number(state, "--depth", arg, 1, 1000000000);
        break;
    case CALL_FILTER_FROM:
        filter->from_ns = cli_parse_duration(state, "--from", arg, 0);
        break;
    case CALL_FILTER_TO:
        filter->to_ns = cli_parse_duration(state, "--to", arg, 1);
        break;
    case CALL_FILTER_FUNCTION:
        filter->function = arg;
        break;
    default:
        return false;
    }
    filter->wanted = true;
    return true;
}

/* In the order of the beginnings, for which the rows are sorted: they come as calls end. */
static const char calls_sql[] =
    "SELECT seq, coalesce(ns, -1), coalesce(duration_min_ns, -1), coalesce(duration_max_ns, -1), depth, state, "
    "coalesce(name, '(unknown function)'), assumed, duration_ns NOTNULL FROM calls WHERE run_id = ?1 "
    "AND thread_id = ?2 AND depth < ?3 AND (?4 = 0 OR duration_min_ns >= ?4 OR state <> 'returned') ";
static const char times_sql[] = "AND ns BETWEEN ?5 AND ?6 ";
static const char function_sql[] =
    "AND function_id IN (SELECT function_id FROM functions WHERE ?7 IN (name, demangled)) ";

enum call_column {
    CALL_SEQ,
    CALL_NS,
    CALL_MIN,
    CALL_MAX,
    CALL_DEPTH,
    CALL_STATE,
    CALL_NAME,
    CALL_ASSUMED,
    CALL_EXACT
};

static int64_t limit_number(uint64_t number)
{
    return number < INT64_MAX ? (int64_t)number : INT64_MAX;
}

static int prepare(struct tracestore *store, const struct tracestore_thread *thread, uint64_t started_ns,
                   const struct call_filter *filter, sqlite3_stmt **ret_row, struct error *err)
{
    bool timed = filter->from_ns || filter->to_ns;
    char sql[1200];
    int r;

    snprintf(sql, sizeof(sql), "%s%s%sORDER BY seq", calls_sql, timed ? times_sql : "",
             filter->function ? function_sql : "");
    r = cli_prepare(store, ret_row, err, sql, 4, thread->run_id, thread->thread_id,
                    filter->depth ? limit_number(filter->depth) : INT64_MAX, limit_number(filter->min_ns));
    if (r < 0)
        return r;
    if (timed) {
        sqlite3_bind_int64(*ret_row, 5, limit_number(started_ns + filter->from_ns));
        sqlite3_bind_int64(*ret_row, 6, filter->to_ns ? limit_number(started_ns + filter->to_ns) : INT64_MAX);
    }
    if (filter->function)
        sqlite3_bind_text(*ret_row, 7, filter->function, -1, SQLITE_STATIC);
    return 0;
}

/* -1, which stands for a bound that is not known, becomes UINT64_MAX. */
static struct time_range range_of(sqlite3_stmt *row)
{
    int64_t least = sqlite3_column_int64(row, CALL_MIN);
    struct time_range range = {least < 0 ? 0 : (uint64_t)least,
                               (uint64_t)sqlite3_column_int64(row, CALL_MAX)};

    return range;
}

/* The time since the run began, in its own column. A call may have begun before what is kept as that. */
static void print_start(int64_t ns, uint64_t started_ns)
{
    int64_t since = ns - (int64_t)started_ns;
    char text[40];

    if (ns < 0) {
        text_print(stdout, "%14s", "?");
        return;
    }
    snprintf(text, sizeof(text), "%s%" PRId64 ".%09" PRId64, since < 0 ? "-" : "", labs(since) / 1000000000,
             labs(since) % 1000000000);
    text_print(stdout, "%14s", text);
}

static void print_line(sqlite3_stmt *row, uint64_t started_ns)
{
    const char *state = cli_text(row, CALL_STATE);
    int64_t depth = sqlite3_column_int64(row, CALL_DEPTH);
    int indent = depth < DEEPEST_INDENT ? (int)depth : DEEPEST_INDENT;
    char text[TIME_TEXT_SIZE];

    time_range_text(range_of(row), text);
    print_start(sqlite3_column_int64(row, CALL_NS), started_ns);
    text_print(stdout, "  %-22s  %*s", text, 2 * indent, "");
    if (depth > DEEPEST_INDENT)
        text_print(stdout, "[%" PRId64 "] ", depth);
    text_print(stdout, "%s%s%s\n", cli_text(row, CALL_NAME),
               !strcmp(state, "returned") ? ""
               : !strcmp(state, "open")   ? " (never returned)"
                                          : " (unknown)",
               sqlite3_column_int(row, CALL_ASSUMED) ? " ?" : "");
}

static json_t *number_json(int64_t number)
{
    return number < 0 ? json_null() : json_integer(number);
}

static void print_json(sqlite3_stmt *row, uint64_t started_ns, bool first)
{
    int64_t ns = sqlite3_column_int64(row, CALL_NS), least = sqlite3_column_int64(row, CALL_MIN);
    AUTO_JSON json_t *call = json_pack(
        "{s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:s, s:b}", "name", cli_json_text(cli_text(row, CALL_NAME)),
        "seq", (json_int_t)sqlite3_column_int64(row, CALL_SEQ), "depth",
        (json_int_t)sqlite3_column_int64(row, CALL_DEPTH), "start_ns",
        ns < 0 ? json_null() : json_integer(ns - (int64_t)started_ns), "duration_ns",
        sqlite3_column_int(row, CALL_EXACT) ? number_json(least) : json_null(), "duration_min_ns",
        number_json(least), "duration_max_ns", number_json(sqlite3_column_int64(row, CALL_MAX)), "state",
        cli_text(row, CALL_STATE), "assumed", sqlite3_column_int(row, CALL_ASSUMED));

    fputs(first ? "\n" : ",\n", stdout);
    json_dumpf(call, stdout, JSON_COMPACT);
}

int call_list_print(struct tracestore *store, const struct tracestore_run *run,
                    const struct tracestore_thread *thread, const struct call_filter *filter,
                    struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    bool first = true;
    int r = prepare(store, thread, run->started_ns, filter, &row, err);

    if (r == 0 && !cli.json)
        text_print(stdout, "%14s  %-22s  CALL\n", "SECONDS", "DURATION");
    while (r == 0 && !cli_output_broken() && (r = cli_step(row, "niiintt-i", err)) == 0) {
        if (cli.json)
            print_json(row, run->started_ns, first);
        else
            print_line(row, run->started_ns);
        first = false;
    }
    return r < 0 ? r : 0;
}
