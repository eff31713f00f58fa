/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/common/completion.h"
#include "cli/common/output.h"
#include "collector/process/process_name.h"

/* More than a terminal shows would only take time. */
#define RUNS_SHOWN "200"

struct value {
    const char *before, *begin;
};

static void print_value(const struct value *value, const char *text)
{
    if (!strncmp(text, value->begin, strlen(value->begin)) && !strpbrk(text, " \t\n"))
        text_print(stdout, "%s%s\n", value->before, text);
}

/* "main|all|GLOB": what is in lower case stands for itself. */
static void print_choices(const char *metavariable, const struct value *value)
{
    for (const char *at = metavariable; *at; at += *at == '|') {
        size_t length = strcspn(at, "|");
        AUTO_FREE char *choice = strndup(at, length);

        if (choice && islower((unsigned char)*choice))
            print_value(value, choice);
        at += length;
    }
}

/* The names of the store's newest runs. A store that cannot be read has none: completion is no place for errors. */
static void print_runs(const struct value *value)
{
    static const char sql[] =
        "SELECT DISTINCT name FROM (SELECT name FROM runs ORDER BY run_id DESC LIMIT " RUNS_SHOWN ")";
    CLEANUP(cleanup_store) struct tracestore *store = NULL;
    AUTO_STATEMENT *statement = NULL;

    print_value(value, "latest");
    if (cli_open_store(TRACESTORE_READ, &store, NULL) ||
        db_prepare(tracestore_db(store), sql, "runs", &statement, NULL))
        return;
    while (sqlite3_step(statement) == SQLITE_ROW)
        print_value(value, cli_text(statement, 0));
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct process_name *)a)->executable, ((const struct process_name *)b)->executable);
}

/* The names of running processes, each once. */
static void print_processes(const struct value *value)
{
    AUTO_FREE struct process_name *names = NULL;
    AUTO_FREE pid_t *pids = NULL;
    size_t count = 0;

    if (processes_named("*", &pids, &count, NULL) || !count)
        return;
    names = calloc(count, sizeof(*names));
    for (size_t i = 0; names && i < count; i++)
        process_name_read(pids[i], NULL, &names[i]);
    if (names)
        qsort(names, count, sizeof(*names), compare_names);
    for (size_t i = 0; names && i < count; i++)
        if (*names[i].executable && (!i || compare_names(&names[i], &names[i - 1])))
            print_value(value, names[i].executable);
}

void completion_print_values(const char *metavariable, const char *before, const char *begin)
{
    static const char *const files[] = {"FILE", "DIR", "DIR|FILE", "STORE", "BINARY"};
    static const char *const runs[] = {"RUN", "BASELINE", "CANDIDATE"};
    const struct value value = {before, begin};

    for (size_t i = 0; i < ARRAY_SIZE(files); i++)
        if (!strcmp(metavariable, files[i]))
            puts(":files");
    for (size_t i = 0; i < ARRAY_SIZE(runs); i++)
        if (!strcmp(metavariable, runs[i]))
            print_runs(&value);
    if (!strncmp(metavariable, "PID", 3))
        print_processes(&value);
    if (strchr(metavariable, '|'))
        print_choices(metavariable, &value);
}
