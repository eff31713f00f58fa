/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A new store: whole from its first moment on, and the same wherever it is made. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "tests/unit/store/fixture.h"

static struct tracestore *open_store(const char *path, enum tracestore_mode mode)
{
    struct tracestore *store = NULL;
    struct error err = {0};

    cr_assert_eq(tracestore_open(path, mode, &store, &err), 0, "%s", err.message);
    return store;
}

static char *text(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *row = NULL;
    char *copy;

    cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK);
    cr_assert_eq(sqlite3_step(row), SQLITE_ROW);
    copy = strdup((const char *)sqlite3_column_text(row, 0));
    sqlite3_finalize(row);
    return copy;
}

static void make_folder(char folder[64])
{
    strcpy(folder, "/tmp/tracectl-create.XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
}

static void remove_folder(const char *folder)
{
    char command[96];

    snprintf(command, sizeof(command), "rm -r %s", folder);
    cr_assert_eq(system(command), 0);
}

/* An empty file is made a store in place, by SQLite alone. */
Test(create, a_file_made_at_once_is_the_one_that_sqlite_makes)
{
    static const char *const asked[] = {
        "SELECT group_concat(type || name || tbl_name || coalesce(sql, ''), char(10)) FROM "
        "(SELECT * FROM sqlite_schema ORDER BY rowid)",
        "PRAGMA auto_vacuum",
        "PRAGMA journal_mode",
        "PRAGMA page_size",
        "PRAGMA encoding",
        "PRAGMA user_version",
        "PRAGMA application_id",
        "PRAGMA integrity_check",
        "PRAGMA page_count"};
    char folder[64], path[2][96];
    struct tracestore *stores[2];

    make_folder(folder);
    for (int i = 0; i < 2; i++) {
        snprintf(path[i], sizeof(path[i]), "%s/%d.db", folder, i);
        if (i == 1)
            close(open(path[i], O_CREAT | O_WRONLY, 0644));
        stores[i] = open_store(path[i], TRACESTORE_CREATE);
    }
    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        char *first = text(tracestore_db(stores[0]), asked[i]),
             *second = text(tracestore_db(stores[1]), asked[i]);

        cr_assert_str_eq(first, second, "%s", asked[i]);
        free(first);
        free(second);
    }
    for (int i = 0; i < 2; i++)
        tracestore_free(stores[i]);
    remove_folder(folder);
}

static useconds_t microseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (useconds_t)(now.tv_sec * 1000000 + now.tv_nsec / 1000);
}

/* A process that makes a store, and leaves it open. */
static pid_t start_maker(const char *path)
{
    struct tracestore *store = NULL;
    pid_t child = fork();

    if (!child)
        _exit(tracestore_open(path, TRACESTORE_CREATE, &store, NULL) != 0);
    return child;
}

static void remove_store(const char *path)
{
    char beside[128];

    cr_assert_eq(unlink(path), 0);
    snprintf(beside, sizeof(beside), "%s-wal", path);
    unlink(beside);
    snprintf(beside, sizeof(beside), "%s-shm", path);
    unlink(beside);
}

/* Whoever finds the file finds a store in it. */
Test(create, a_killed_maker_leaves_a_store_or_nothing, .timeout = 100)
{
    enum { KILLS = 150 };
    char folder[64], path[96];
    int nothing = 0, whole = 0;
    useconds_t longest = microseconds();

    make_folder(folder);
    snprintf(path, sizeof(path), "%s/store.db", folder);
    waitpid(start_maker(path), NULL, 0);
    longest = 2 * (microseconds() - longest);
    remove_store(path);
    for (int i = 0; i < KILLS; i++) {
        pid_t child = start_maker(path);

        usleep((useconds_t)((uint64_t)longest * (uint64_t)i / KILLS));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        if (access(path, F_OK)) {
            nothing++;
            continue;
        }
        whole++;
        tracestore_free(open_store(path, TRACESTORE_READ));
        tracestore_free(open_store(path, TRACESTORE_CREATE));
        remove_store(path);
    }
    cr_assert_gt(nothing, 0);
    cr_assert_gt(whole, 0, "every one of %d was killed before it had made its store", KILLS);
    remove_folder(folder);
}
