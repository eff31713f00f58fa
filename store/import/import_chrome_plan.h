/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a file of trace events holds (import_chrome.h), between its two passes. */
#ifndef TRACESTORE_IMPORT_CHROME_PLAN_H
#define TRACESTORE_IMPORT_CHROME_PLAN_H

#include <jansson.h>
#include <stdbool.h>

#include "store/db/db.h"
#include "store/import/import_chrome.h"

#define CHROME_NO_NAME UINT32_MAX

enum chrome_kind { CHROME_BEGIN, CHROME_END, CHROME_WHOLE, CHROME_INSTANT, CHROME_LOST };
enum { CHROME_ASSUMED = 1, CHROME_UNKNOWN = 2 }; /* what args say of a call */

/* One event as it is spooled. */
struct chrome_event {
    int64_t thread; /* index, -1: of the whole trace */
    int64_t ns;     /* from the file's own time 0; less than 2^61 both ways */
    int64_t duration;
    enum chrome_kind kind;
    uint32_t name; /* index; of a loss: its cause */
    int64_t
        detail; /* of a call CHROME_ASSUMED, CHROME_UNKNOWN; of a loss the number of events, 0: not known */
};

struct chrome_process {
    int32_t pid;    /* 0: the file has none that is a number */
    int64_t number; /* in the order of the first events, -1: none yet */
    unsigned threads;
    uint32_t name; /* CHROME_NO_NAME: none */
    int64_t id;    /* the store's, 0: not registered yet */
};

struct chrome_thread {
    size_t process;
    int32_t tid;
    int64_t number; /* in its process, -1: no event yet */
    uint32_t name;
    bool slices; /* it has B, E or X */
};

struct chrome_plan {
    char *path;
    sqlite3 *spool; /* private, removed by SQLite when it is closed */
    sqlite3_stmt *insert;
    json_t *name_index, *process_index, *thread_index; /* by text */
    char **names;
    struct chrome_process *processes;
    struct chrome_thread *threads;
    size_t name_count, name_capacity, process_count, process_capacity, thread_count, thread_capacity;
    unsigned numbered; /* processes */
    int64_t first_ns, last_ns;
    uint64_t started_ns;  /* 0: the file does not tell */
    uint64_t passed_over; /* events of other kinds */
};

/* All events in the order of threads, and of each as they happened. */
int chrome_plan_select(struct chrome_plan *plan, sqlite3_stmt **ret_rows, struct error *err);
struct chrome_event chrome_plan_event(sqlite3_stmt *row);

#endif
