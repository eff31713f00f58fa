/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the subcommands share: the store and the run they work on, JSON, colour, and the end of the output. */
#ifndef TRACECTL_CLI_COMMON_OUTPUT_H
#define TRACECTL_CLI_COMMON_OUTPUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "store/api/tracestore.h"
#include "store/db/db.h"

struct error;

/* Opens the store of -d. */
int cli_open_store(enum tracestore_mode mode, struct tracestore **ret_store, struct error *err);

/* Opens the run that the argument names: a number, a name, "latest", "latest~1" in the store of -d, or
 * "STORE.db:RUN". Free both. */
int cli_open_run(const char *argument, enum tracestore_mode mode, struct tracestore **ret_store,
                 struct tracestore_run *ret_run, struct error *err);

/* The STORE of "STORE.db:RUN" in memory from malloc, or NULL when the argument names none (or for lack of
 * memory); *ret_run points at the RUN in the argument. */
char *cli_split_run(const char *argument, const char **ret_run);

static inline void cleanup_store(struct tracestore **store)
{
    tracestore_free(*store);
}
static inline void cleanup_json(json_t **json)
{
    json_decref(*json);
}

#define AUTO_STORE CLEANUP(cleanup_store)
#define AUTO_RUN CLEANUP(tracestore_run_release)
#define AUTO_JSON CLEANUP(cleanup_json)

/* Prepares a query on the store's connection, with `count` integers bound. */
int cli_prepare(struct tracestore *store, sqlite3_stmt **ret_statement, struct error *err, const char *sql,
                int count, ...);
/* 0 with a row, whose columns are as `types` say (db_row), 1 behind the last, <0. */
int cli_step(sqlite3_stmt *statement, const char *types, struct error *err);
/* Column as text, never NULL. */
const char *cli_text(sqlite3_stmt *statement, int column);

/* A JSON string of any bytes: what is not UTF-8 becomes U+FFFD. */
json_t *cli_json_text(const char *text);
json_t *cli_json_count(uint64_t number);
/* A time as "2026-01-31T12:00:00.123456789Z"; null for 0. */
json_t *cli_json_time(uint64_t ns);
/* Prints the one document of --json. */
void cli_json_print(const json_t *json);

/* The streaming form of an array: begin, one item after another (which it takes over), end. */
struct json_array {
    uint64_t count;
};
void cli_json_begin(struct json_array *array);
void cli_json_item(struct json_array *array, json_t *item);
void cli_json_end(struct json_array *array);

/* "2026-01-31T12:00:00.123456789Z" in UTC; with `digits` behind the point. */
void cli_format_time(uint64_t ns, int digits, char *text, size_t size);
/* "1.5 MiB" */
void cli_format_bytes(uint64_t bytes, char *text, size_t size);

/* Whether to colour stdout. */
bool cli_colour(void);

/* How what is printed on stdout from now on looks, where `colour` says that there is colour. */
enum cli_style {
    CLI_PLAIN,
    CLI_BOLD,
    CLI_DIM,
    CLI_CHANGED,
    CLI_NORMAL,
    CLI_FAULTY,
    CLI_UNKNOWN,
};
void cli_style(bool colour, enum cli_style style);

/* Something could not be written to stdout: continuing is useless. */
static inline bool cli_output_broken(void)
{
    return ferror(stdout);
}

/* Writes a picture, as svg_finish() makes it, into the file `path`. */
int cli_write_picture(const char *svg, const char *path, struct error *err);

/* The last thing of every subcommand: flushes stdout and returns `status`, or EXIT_FAILED with the error line
 * when the output could not be written. A reader that has gone (`| head`) is no error. */
int cli_finish(int status);

/* Sends stdout through $PAGER when it is a terminal; cli_pager_end waits until the user has left it. */
struct cli_pager {
    FILE *pipe;
    int saved_stdout;
};
void cli_pager_begin(struct cli_pager *pager);
void cli_pager_end(struct cli_pager *pager);

#endif
