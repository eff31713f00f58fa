/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "tests/unit/store/fixture.h"

/* Opening fails with this code, and the error line has the right form and holds these words. */
static void expect_refused(const char *path, enum tracestore_mode mode, int code, const char *words)
{
    struct tracestore *store = NULL;
    struct error err = {0};
    int got = tracestore_open(path, mode, &store, &err);

    cr_assert_eq(got, code, "%s: %d, not %d: %s", path, got, code, err.message);
    cr_assert_null(store);
    cr_assert_not_null(strstr(err.message, words), "%s", err.message);
    cr_assert_eq(strncmp(err.message, "cannot open store /tmp/", 23), 0, "%s", err.message);
    cr_assert_not_null(strstr(err.message, ": "), "%s", err.message);
    cr_assert_eq(err.message[strlen(err.message) - 1], ')', "no remedy: %s", err.message);
    cr_assert_null(strchr(err.message, '\n'), "%s", err.message);
}

static void write_file(const char *path, const void *data, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, data, size), (ssize_t)size);
    close(fd);
}

/* A finished store of a few pages, with nothing beside it. */
static void make_store(struct fixture *fixture)
{
    struct stream stream = {0};

    fixture_open(fixture, NULL);
    fixture_functions(fixture, 300);
    stream_generate(&stream, STREAM_RANDOM, 1, 20000);
    write_events(fixture_thread(fixture, "0.0", TRACE_RETURNS_PROBED), &stream, 0, stream.count);
    cr_assert_eq(trace_writer_end(fixture->writer, 5000, 0, NULL), 0);
    trace_writer_free(fixture->writer);
    tracestore_free(fixture->store);
    fixture->writer = NULL;
    fixture->store = NULL;
    stream_release(&stream);
}

Test(open, what_is_not_a_store_is_refused)
{
    struct fixture fixture;
    char path[128];
    sqlite3 *db;

    make_store(&fixture);
    expect_refused(fixture.folder, TRACESTORE_READ, -EISDIR, "is a directory");
    snprintf(path, sizeof(path), "%s/none", fixture.folder);
    expect_refused(path, TRACESTORE_READ, -ENOENT, "no such file");
    expect_refused(path, TRACESTORE_CHANGE, -ENOENT, "no such file");
    write_file(path, "", 0);
    expect_refused(path, TRACESTORE_READ, -EINVAL, "not a tracectl store");
    write_file(path,
               "This is a text, and it is long enough to be read as a header of a database file, I hope.\n"
               "This is its second line.\n",
               114);
    for (int mode = TRACESTORE_READ; mode <= TRACESTORE_CREATE; mode++)
        expect_refused(path, (enum tracestore_mode)mode, -EINVAL, "not a tracectl store");
    unlink(path);
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    run_sql(db, "CREATE TABLE t (a)");
    sqlite3_close(db);
    for (int mode = TRACESTORE_READ; mode <= TRACESTORE_CREATE; mode++)
        expect_refused(path, (enum tracestore_mode)mode, -EINVAL, "not a tracectl store");
    fixture_close(&fixture);
}

Test(open, a_store_cut_short_is_refused)
{
    struct fixture fixture;
    struct stat status;

    make_store(&fixture);
    cr_assert_eq(stat(fixture.path, &status), 0);
    for (off_t size = status.st_size - 1; size > 100; size = size * 2 / 3) {
        cr_assert_eq(truncate(fixture.path, size), 0);
        expect_refused(fixture.path, TRACESTORE_READ, -EBADMSG, "cut short");
        expect_refused(fixture.path, TRACESTORE_CREATE, -EBADMSG, "cut short");
    }
    fixture_close(&fixture);
}

Test(open, other_versions_are_refused)
{
    static const char newer[] = "written by a newer tracectl: format 2, this one reads 1";
    struct fixture fixture;
    sqlite3 *db;

    make_store(&fixture);
    cr_assert_eq(sqlite3_open(fixture.path, &db), SQLITE_OK);
    run_sql(db, "PRAGMA user_version = 2");
    expect_refused(fixture.path, TRACESTORE_READ, -ENOTSUP, newer);
    expect_refused(fixture.path, TRACESTORE_CREATE, -ENOTSUP, newer);
    run_sql(db, "PRAGMA user_version = 0");
    expect_refused(fixture.path, TRACESTORE_READ, -ENOTSUP, "format 0, this tracectl reads 1");
    sqlite3_close(db);
    fixture_close(&fixture);
}

Test(open, the_file_says_what_it_is)
{
    struct fixture fixture;
    sqlite3 *db;

    make_store(&fixture);
    cr_assert_eq(sqlite3_open(fixture.path, &db), SQLITE_OK);
    cr_assert_eq(ask(db, "PRAGMA application_id"), 0x74726163);
    cr_assert_eq(ask(db, "PRAGMA user_version"), 1);
    cr_assert_eq(ask(db, "PRAGMA auto_vacuum"), 2);
    cr_assert_eq(ask(db, "SELECT count(*) FROM runs"), 1);
    sqlite3_close(db);
    cr_assert_eq(tracestore_open(fixture.path, TRACESTORE_READ, &fixture.store, NULL), 0);
    cr_assert_eq(
        ask(tracestore_db(fixture.store), "SELECT 1 FROM pragma_journal_mode WHERE journal_mode = 'wal'"), 1);
    fixture_close(&fixture);
}

static bool exists(const struct fixture *fixture, const char *suffix)
{
    char path[128];

    snprintf(path, sizeof(path), "%s%s", fixture->path, suffix);
    return access(path, F_OK) == 0;
}

Test(open, reading_leaves_nothing_behind)
{
    struct fixture fixture;

    make_store(&fixture);
    cr_assert_not(exists(&fixture, "-wal"));
    cr_assert_eq(tracestore_open(fixture.path, TRACESTORE_READ, &fixture.store, NULL), 0);
    cr_assert_eq(ask(tracestore_db(fixture.store), "SELECT count(*) FROM runs"), 1);
    cr_assert_eq(sqlite3_exec(tracestore_db(fixture.store), "DELETE FROM runs", NULL, NULL, NULL),
                 SQLITE_READONLY);
    tracestore_free(fixture.store);
    fixture.store = NULL;
    cr_assert_not(exists(&fixture, "-wal"));
    cr_assert_not(exists(&fixture, "-shm"));
    fixture_close(&fixture);
}

/* As another user, because root may write everywhere. 0: it could be read. */
static int read_as_nobody(const struct fixture *fixture)
{
    int status;
    pid_t pid = fork();

    cr_assert_geq(pid, 0);
    if (pid == 0) {
        struct tracestore *store;
        struct error err;

        if (setgid(65534) || setuid(65534))
            _exit(99);
        if (tracestore_open(fixture->path, TRACESTORE_READ, &store, &err))
            _exit(-err.code);
        _exit(ask(tracestore_db(store), "SELECT sum(event_count) FROM segments") == 20000 ? 0 : 98);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    return WEXITSTATUS(status);
}

Test(open, a_store_that_may_only_be_read_is_read)
{
    struct fixture fixture;

    if (geteuid() != 0)
        cr_skip_test("needs root, to become another user");
    make_store(&fixture);
    chmod(fixture.folder, 0755);
    chmod(fixture.path, 0444);
    cr_assert_eq(read_as_nobody(&fixture), 0, "read-only folder and file");
    cr_assert_not(exists(&fixture, "-wal"));
    chmod(fixture.folder, 0777);
    cr_assert_eq(read_as_nobody(&fixture), 0, "read-only file");
    chmod(fixture.folder, 0755);
    chmod(fixture.path, 0600);
    cr_assert_eq(read_as_nobody(&fixture), EACCES, "unreadable file");
    fixture_close(&fixture);
}
