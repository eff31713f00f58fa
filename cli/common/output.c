/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/common/output.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/output_file.h"

/* ------------------------------------------------------------------------------------------ store and run */

int cli_open_store(enum tracestore_mode mode, struct tracestore **ret_store, struct error *err)
{
    return tracestore_open(cli.store_path, mode, ret_store, err);
}

char *cli_split_run(const char *argument, const char **ret_run)
{
    const char *colon = strrchr(argument, ':');
    char *path;

    *ret_run = argument;
    if (!colon || colon == argument || !colon[1])
        return NULL;
    path = strndup(argument, (size_t)(colon - argument));
    /* A run's name may have a colon too: it is a store when there is such a file, or when it looks like one.
     */
    if (path && access(path, F_OK) < 0 && (strlen(path) < 4 || strcmp(path + strlen(path) - 3, ".db") != 0)) {
        free(path);
        return NULL;
    }
    if (path)
        *ret_run = colon + 1;
    return path;
}

int cli_open_run(const char *argument, enum tracestore_mode mode, struct tracestore **ret_store,
                 struct tracestore_run *ret_run, struct error *err)
{
    AUTO_STORE struct tracestore *store = NULL;
    const char *name;
    AUTO_FREE char *path = cli_split_run(argument, &name);
    int r = tracestore_open(path ? path : cli.store_path, mode, &store, err);

    if (r < 0)
        return r;
    r = tracestore_find_run(store, name, ret_run, err);
    if (r < 0)
        return r;
    *ret_store = take_pointer(store);
    return 0;
}

int cli_prepare(struct tracestore *store, sqlite3_stmt **ret_statement, struct error *err, const char *sql,
                int count, ...)
{
    sqlite3 *db = tracestore_db(store);
    sqlite3_stmt *statement;
    va_list values;

    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
        return error_say(err, -EIO, "reading the store: %s", sqlite3_errmsg(db));
    va_start(values, count);
    for (int i = 1; i <= count; i++)
        sqlite3_bind_int64(statement, i, va_arg(values, int64_t));
    va_end(values);
    *ret_statement = statement;
    return 0;
}

int cli_step(sqlite3_stmt *statement, const char *types, struct error *err)
{
    int r = db_row(statement, types);

    if (r == SQLITE_ROW)
        return 0;
    if (r == SQLITE_DONE)
        return 1;
    return db_fail(sqlite3_db_handle(statement), err, "cannot read the run");
}

const char *cli_text(sqlite3_stmt *statement, int column)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);

    return text ? text : "";
}

/* ------------------------------------------------------------------------------------------ JSON */

json_t *cli_json_text(const char *text)
{
    AUTO_FREE char *valid = text_valid(text);

    return valid ? json_string(valid) : NULL;
}

json_t *cli_json_count(uint64_t number)
{
    return json_integer((json_int_t)number);
}

json_t *cli_json_time(uint64_t ns)
{
    char text[64];

    if (!ns)
        return json_null();
    cli_format_time(ns, 9, text, sizeof(text));
    return json_string(text);
}

void cli_json_print(const json_t *json)
{
    json_dumpf(json, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY);
    putchar('\n');
}

void cli_json_begin(struct json_array *array)
{
    array->count = 0;
    putchar('[');
}

void cli_json_item(struct json_array *array, json_t *item)
{
    fputs(array->count++ ? ",\n" : "\n", stdout);
    json_dumpf(item, stdout, JSON_ENCODE_ANY);
    json_decref(item);
}

void cli_json_end(struct json_array *array)
{
    fputs(array->count ? "\n]" : "]", stdout);
}

/* ------------------------------------------------------------------------------------------ numbers */

void cli_format_time(uint64_t ns, int digits, char *text, size_t size)
{
    time_t seconds = (time_t)(ns / 1000000000u);
    uint64_t fraction = ns % 1000000000u;
    struct tm parts;
    char date[40];

    for (int i = digits; i < 9; i++)
        fraction /= 10;
    gmtime_r(&seconds, &parts);
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &parts);
    if (digits)
        snprintf(text, size, "%s.%0*" PRIu64 "Z", date, digits, fraction);
    else
        snprintf(text, size, "%sZ", date);
}

void cli_format_bytes(uint64_t bytes, char *text, size_t size)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    double amount = (double)bytes / 1024;
    size_t unit = 0;

    if (bytes < 1024) {
        snprintf(text, size, "%" PRIu64 " B", bytes);
        return;
    }
    for (; amount >= 1024 && unit < 3; unit++)
        amount /= 1024;
    snprintf(text, size, "%.1f %s", amount, units[unit]);
}

/* ------------------------------------------------------------------------------------------ stdout */

bool cli_colour(void)
{
    const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM");

    return isatty(STDOUT_FILENO) && !(no_colour && *no_colour) && !(terminal && !strcmp(terminal, "dumb"));
}

void cli_style(bool colour, enum cli_style style)
{
    static const char *const sequences[] = {
        [CLI_PLAIN] = "\033[0m",    [CLI_BOLD] = "\033[1m",    [CLI_DIM] = "\033[2m",
        [CLI_CHANGED] = "\033[35m", [CLI_NORMAL] = "\033[34m", [CLI_FAULTY] = "\033[31m",
        [CLI_UNKNOWN] = "\033[33m",
    };

    if (colour)
        text_put_raw(stdout, sequences[style]);
}

int cli_write_picture(const char *svg, const char *path, struct error *err)
{
    struct output_file file = {0};
    int r = output_file_open(&file, path, err);

    if (r == 0)
        text_put_raw(file.stream, svg);
    return output_file_close(&file, r, err);
}

int cli_finish(int status)
{
    struct error err;
    int code = 0;

    errno = 0;
    if (fflush(stdout))
        code = errno ? -errno : -EIO;
    else if (ferror(stdout))
        code = -EIO;
    if (!code || code == -EPIPE)
        return status;
    error_set(&err, code, NULL, "writing standard output");
    return cli_fail(&err);
}

void cli_pager_begin(struct cli_pager *pager)
{
    const char *command = getenv("PAGER");

    *pager = (struct cli_pager){.saved_stdout = -1};
    if (!isatty(STDOUT_FILENO) || (command && (!*command || !strcmp(command, "cat"))))
        return;
    setenv("LESS", "FRX", 0);
    fflush(stdout);
    pager->pipe = popen(command ? command : "less -FRX", "we");
    if (!pager->pipe)
        return;
    signal(SIGPIPE, SIG_IGN); /* the user may leave the pager before the end: that only ends our output */
    pager->saved_stdout = dup(STDOUT_FILENO);
    dup2(fileno(pager->pipe), STDOUT_FILENO);
}

void cli_pager_end(struct cli_pager *pager)
{
    if (!pager->pipe)
        return;
    fflush(stdout);
    if (pager->saved_stdout >= 0) {
        dup2(pager->saved_stdout, STDOUT_FILENO);
        close(pager->saved_stdout);
    }
    pclose(pager->pipe);
}
