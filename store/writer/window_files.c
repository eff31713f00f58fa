/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The files that windows are in, beside their stores. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "store/db/store.h"
#include "store/writer/window.h"

#define SUFFIX "-flight-"

static const char what[] = "cannot create a flight recorder's window";

/* ------------------------------------------------------------------------------------------ making one */

static int copy_plan_rows(sqlite3 *from, sqlite3 *to, struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    int result = SQLITE_ROW,
        code =
            db_prepare(from, "SELECT build_id, address, calls_per_second FROM budget_plans", what, &row, err);

    if (!code)
        code = db_begin(to, what, err);
    if (code)
        return code;
    while (!code && (result = db_row(row, "tid")) == SQLITE_ROW)
        code = db_run(to, what, err, "INSERT INTO budget_plans VALUES (?1, ?2, ?3)", "tid",
                      (const char *)sqlite3_column_text(row, 0), sqlite3_column_int64(row, 1),
                      sqlite3_column_double(row, 2));
    if (!code && result != SQLITE_DONE)
        code = db_fail(from, err, what);
    if (!code)
        return db_commit(to, what, err);
    db_rollback(to);
    return code;
}

static int copy_plans(const char *path, struct tracestore *window, struct error *err)
{
    struct tracestore *store = NULL;
    int code = access(path, F_OK) ? -ENOENT : store_open(path, TRACESTORE_READ, NULL, &store, err);

    if (code)
        return code == -ENOENT ? 0 : code;
    code = copy_plan_rows(store->db, window->db, err);
    tracestore_free(store);
    return code;
}

int window_create(const char *path, char **ret_path, struct tracestore **ret_window, struct error *err)
{
    AUTO_FREE char *window_path = NULL;
    struct tracestore *window = NULL;
    int code;

    /* The time, because another process may have had the number and left its window. */
    if (asprintf(&window_path, "%s" SUFFIX "%d-%llu", path, (int)getpid(),
                 (unsigned long long)clock_ns(CLOCK_REALTIME) / 1000) < 0) {
        window_path = NULL;
        return error_no_memory(err);
    }
    code = store_open(window_path, TRACESTORE_CREATE, NULL, &window, err);
    if (!code)
        code = db_exec(window->db, "PRAGMA synchronous = OFF", what, err);
    if (!code)
        code = copy_plans(path, window, err);
    if (code) {
        tracestore_free(window);
        window_delete(window_path);
        return code;
    }
    *ret_path = take_pointer(window_path);
    *ret_window = window;
    return 0;
}

void window_delete(const char *window_path)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};

    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
        AUTO_FREE char *path = NULL;

        if (asprintf(&path, "%s%s", window_path, suffixes[i]) > 0)
            unlink(path);
    }
}

/* ------------------------------------------------------------------------------------------ dead recorders
 */

/* Whether nobody writes to the window any more. */
static int is_left_behind(struct tracestore *window, bool *ret_left, struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    int result, code = db_prepare(window->db, "SELECT recorder FROM runs", "cannot read a window", &row, err);

    if (code)
        return code;
    result = db_row(row, "t");
    /* Without a run it had no time to be of any use. */
    if (result != SQLITE_ROW && result != SQLITE_DONE)
        return db_fail(window->db, err, "cannot read a window");
    *ret_left = result == SQLITE_DONE || !recorder_alive((const char *)sqlite3_column_text(row, 0));
    return 0;
}

static int recover_open(struct tracestore *window, struct tracestore *store, bool *ret_left, uint64_t *runs,
                        struct error *err)
{
    static const struct window_commit commit = {
        .trigger = "none: the recorder died, and its window was recovered", .is_cut = true};
    struct window_committed committed = {0};
    int code = is_left_behind(window, ret_left, err);

    if (!code && *ret_left)
        code = window_commit(window, store, &commit, &committed, err);
    *runs += committed.run_id > 0;
    return code;
}

/* Whether a process runs that has the number of the one that made the window, which may be making it now. */
static bool may_be_made(const char *window_path)
{
    const char *suffix = strrchr(window_path, '-'), *end = suffix;

    while (suffix > window_path && suffix[-1] != '-')
        suffix--;
    return end && (kill((pid_t)strtol(suffix, NULL, 10), 0) == 0 || errno != ESRCH);
}

/* Whether it has a run yet: until then there may be no more than a file. */
static bool has_run(const char *window_path)
{
    struct tracestore *window = NULL;
    int64_t runs = 0;

    if (store_open(window_path, TRACESTORE_READ, NULL, &window, NULL) == 0)
        db_number(window->db, "cannot read a window", &runs, NULL, "SELECT count(*) FROM runs", "");
    tracestore_free(window);
    return runs > 0;
}

/* One process at a time. The lock is flock's, which SQLite does not use; it is let go when SQLite has closed
 * the file, since closing any descriptor drops SQLite's own. */
static int recover_file(const char *window_path, struct tracestore *store, uint64_t *runs, struct error *err)
{
    AUTO_CLOSE int lock = open(window_path, O_RDONLY | O_CLOEXEC);
    struct tracestore *window = NULL;
    bool left = false;
    int code;

    if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) || access(window_path, F_OK))
        return 0; /* another process has it, or has deleted it */
    if (may_be_made(window_path) && !has_run(window_path))
        return 0;
    code = store_open(window_path, TRACESTORE_CHANGE, NULL, &window, err);
    if (!code)
        code = recover_open(window, store, &left, runs, err);
    tracestore_free(window);
    if (!code && left)
        window_delete(window_path);
    return code;
}

/* Whether a file's name is that of a window of the store, and of none of its logs. */
static bool is_window(const char *name, const char *store_name)
{
    size_t length = strlen(store_name);
    const char *number = name + length + strlen(SUFFIX);

    return !strncmp(name, store_name, length) && !strncmp(name + length, SUFFIX, strlen(SUFFIX)) && *number &&
           !number[strspn(number, "0123456789-")];
}

int window_recover(const char *path, struct tracestore *store, uint64_t *ret_runs, struct error *err)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    AUTO_FREE char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup("./");
    DIR *directory = folder ? opendir(folder) : NULL;
    struct dirent *entry;
    uint64_t runs = 0;
    int code = 0;

    if (!folder)
        return error_no_memory(err);
    while (directory && (entry = readdir(directory))) {
        AUTO_FREE char *window_path = NULL;
        int failed;

        if (!is_window(entry->d_name, name))
            continue;
        if (asprintf(&window_path, "%s%s", folder, entry->d_name) < 0) {
            window_path = NULL;
            code = error_no_memory(err);
            break;
        }
        failed = recover_file(window_path, store, &runs, err);
        code = failed ? failed : code;
    }
    if (directory)
        closedir(directory);
    if (!code)
        *ret_runs = runs;
    return code;
}
