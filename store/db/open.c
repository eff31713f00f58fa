/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Opening a store: makes it when it is missing, tells what is not one, copes with what may only be read.
 *
 * SQLite wants to write beside a database in WAL mode even when it only reads it. So a reader opens the file
 * for writing where it may, with query_only set, which leaves nothing behind; where it may not, SQLite tries
 * without, and where that fails and there is no -wal file, the file is complete in itself and is read as
 * immutable.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "store/db/create.h"
#include "store/db/full_disk.h"
#include "store/db/outside_journal.h"
#include "store/db/schema.h"
#include "store/db/schema_check.h"
#include "store/db/store.h"

DEFINE_CLEANUP(cleanup_store, struct tracestore *, tracestore_free)

static int fail(struct error *err, const char *path, int code, const char *why, const char *remedy)
{
    return error_say(err, code, "cannot open store %s: %s (%s)", path, why, remedy);
}

/* The same for what SQLite met last. */
static int fail_db(struct error *err, const char *path, sqlite3 *db)
{
    int result = sqlite3_errcode(db), code = db_errno(result);

    switch (result & 0xff) {
    case SQLITE_NOTADB:
        return fail(err, path, code, "not a tracectl store", "name another file with -d");
    case SQLITE_CORRUPT:
        return fail(err, path, code, "the file is damaged or cut short",
                    "salvage it with tracectl recover -o NEW.db");
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_READONLY:
        return fail(err, path, -EACCES, "permission denied",
                    "a store needs read and write permission for the file and its folder");
    case SQLITE_BUSY:
        return fail(err, path, code, "another process keeps it locked", "try again");
    default:
        return fail(err, path, code, sqlite3_errmsg(db), "name another file with -d");
    }
}

/* ------------------------------------------------------------------------------------------ the file */

/* Whether a write-ahead log with something in it lies beside the file. */
static bool has_log(const char *path)
{
    AUTO_FREE char *log = NULL;
    struct stat status;

    return asprintf(&log, "%s-wal", path) > 0 && stat(log, &status) == 0 && status.st_size > 0;
}

static uint32_t big_endian(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/*
 * Whether the file is shorter than its own header says, and nothing beside it holds the rest. Read through
 * SQLite's own descriptor: closing any other descriptor of the file would drop this process's locks on it, as
 * POSIX has it, and then the next reader that leaves deletes the log that a recorder is writing.
 */
static bool is_cut_short(const struct tracestore *store)
{
    sqlite3_file *file = NULL;
    uint64_t page_size, pages;
    sqlite3_int64 size;
    uint8_t header[100];

    if (sqlite3_file_control(store->db, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK || !file ||
        !file->pMethods || file->pMethods->xRead(file, header, sizeof(header), 0) != SQLITE_OK ||
        file->pMethods->xFileSize(file, &size) != SQLITE_OK)
        return false;
    if (memcmp(header, "SQLite format 3", 16) != 0 || big_endian(header + 68) != STORE_APPLICATION_ID)
        return false;
    page_size = big_endian(header + 16) >> 16;
    pages = big_endian(header + 28);
    return (uint64_t)size < (page_size == 1 ? 65536 : page_size) * pages && !has_log(store->path);
}

/* The folder that the file is in, in memory from malloc; NULL: none left. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        return strdup(".");
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

/* A path that begins in the working folder leads nowhere when that has been deleted, though the kernel still
 * follows ".." from there. */
static bool begins_nowhere(const char *path)
{
    struct stat status;

    return *path != '/' && stat(".", &status) == 0 && !status.st_nlink;
}

/* SQLite takes some names for something else than a file, and would forget what is written there. */
static int check_name(const char *path, struct error *err)
{
    if (!*path)
        return error_say(err, -EINVAL, "cannot open a store without a name (name a file with -d)");
    if (!strcmp(path, ":memory:") || !strncmp(path, "file:", strlen("file:")))
        return fail(err, path, -EINVAL, "not the name of a file",
                    "name a file with -d; with ./ before it any name is one");
    if (begins_nowhere(path))
        return fail(err, path, -ENOENT, "the working folder has been deleted",
                    "change to one that exists, or name a file by its full path with -d");
    return 0;
}

/* Whether a store can be made in the folder. */
static int check_folder(const char *path, struct error *err)
{
    AUTO_FREE char *folder = folder_of(path);
    struct stat status;

    if (!folder)
        return error_no_memory(err);
    if (stat(folder, &status))
        return errno == ENOENT
                   ? fail(err, path, -ENOENT, "its folder does not exist", "create the folder first")
                   : fail(err, path, -errno, strerrordesc_np(errno), "name another file with -d");
    if (!S_ISDIR(status.st_mode))
        return fail(err, path, -ENOTDIR, "its folder is a file", "name another file with -d");
    if (access(folder, W_OK | X_OK))
        return errno == EROFS
                   ? fail(err, path, -EROFS, "its file system is read-only", "name a file elsewhere with -d")
                   : fail(err, path, -errno, "its folder is not writable",
                          "check the folder's permissions, or name a file elsewhere with -d");
    return 0;
}

static int check_file(const char *path, enum tracestore_mode mode, struct error *err)
{
    struct stat status;
    int r = check_name(path, err);

    if (r)
        return r;
    if (stat(path, &status)) {
        if (errno == ENOENT && mode == TRACESTORE_CREATE)
            return check_folder(path, err);
        return fail(err, path, -errno, errno == ENOENT ? "no such file" : strerrordesc_np(errno),
                    errno == ENOENT ? "record something first, or name another file with -d"
                                    : "name another file with -d");
    }
    if (S_ISDIR(status.st_mode))
        return fail(err, path, -EISDIR, "is a directory", "name a file in it with -d");
    if (!S_ISREG(status.st_mode))
        return fail(err, path, -EINVAL, "not a regular file", "name another file with -d");
    if (access(path, R_OK | (mode == TRACESTORE_READ ? 0 : W_OK)))
        return errno == EROFS ? fail(err, path, -EROFS, "its file system is read-only",
                                     "copy the store, or mount it for writing")
                              : fail(err, path, -errno, "permission denied",
                                     "check the file's permissions, or run as another user");
    if (!status.st_size && mode != TRACESTORE_CREATE)
        return fail(err, path, -EINVAL, "not a tracectl store", "it is empty; name another file with -d");
    return 0;
}

/* Whether a reader may write to the file and its folder. */
static bool may_write(const char *path)
{
    AUTO_FREE char *folder = folder_of(path);

    return folder && !access(path, W_OK) && !access(folder, W_OK | X_OK);
}

/* ----------------------------------------------------------------------------------------- the connection */

static int open_immutable(struct tracestore *store)
{
    AUTO_FREE char *uri = malloc(3 * strlen(store->path) + 32);
    char *to;
    int result;

    if (!uri)
        return SQLITE_NOMEM;
    to = uri + sprintf(uri, "file:");
    for (const char *from = store->path; *from; from++)
        to += strchr("%?#", *from) ? sprintf(to, "%%%02X", (unsigned char)*from) : sprintf(to, "%c", *from);
    sprintf(to, "?immutable=1");
    sqlite3_close(take_pointer(store->db));
    result = sqlite3_open_v2(uri, &store->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
    schema_distrust(store->db);
    return result;
}

/* Opens the file and reads from it. `alone`: with the log's index in memory, which keeps others out. */
static int open_file(struct tracestore *store, int flags, bool alone)
{
    struct stat status;
    bool filled = !stat(store->path, &status) && status.st_size > 0;
    int result = sqlite3_open_v2(store->path, &store->db, flags, outside_journal_vfs());

    schema_distrust(store->db);
    if (result != SQLITE_OK)
        return result;
    sqlite3_busy_timeout(store->db, STORE_BUSY_TIMEOUT_MS);
    if (alone)
        sqlite3_exec(store->db, "PRAGMA main.locking_mode = EXCLUSIVE", NULL, NULL, NULL);
    /* Who was killed on a full disk has left the store without a log (full_disk.h). */
    if (filled && store->mode != TRACESTORE_READ)
        sqlite3_exec(store->db, "PRAGMA main.journal_mode = WAL", NULL, NULL, NULL);
    return sqlite3_exec(store->db, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL);
}

static int connect_db(struct tracestore *store)
{
    int flags = SQLITE_OPEN_READWRITE;
    bool has_rest = has_log(store->path);
    int result;

    if (store->mode == TRACESTORE_CREATE)
        flags |= SQLITE_OPEN_CREATE;
    else if (store->mode == TRACESTORE_READ && !may_write(store->path))
        flags = SQLITE_OPEN_READONLY;
    result = open_file(store, flags, false);
    if (result != SQLITE_OK && full_disk_is_why(store->db, result)) {
        sqlite3_close(take_pointer(store->db));
        result = open_file(store, flags, true);
    }
    if (flags == SQLITE_OPEN_READONLY && !has_rest &&
        ((result & 0xff) == SQLITE_CANTOPEN || (result & 0xff) == SQLITE_READONLY))
        result = open_immutable(store);
    /* A reader leaves the log of a killed recorder as it is. */
    if (result == SQLITE_OK && store->mode == TRACESTORE_READ && has_rest)
        sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return result;
}

static int check_format(struct tracestore *store, struct error *err)
{
    int64_t id, version;

    if (db_number(store->db, "", &id, NULL, "PRAGMA application_id", "") ||
        db_number(store->db, "", &version, NULL, "PRAGMA user_version", ""))
        return fail_db(err, store->path, store->db);
    if (id != STORE_APPLICATION_ID)
        return fail(err, store->path, -EINVAL, "not a tracectl store", "name another file with -d");
    if (version != STORE_VERSION)
        return error_say(
            err, -ENOTSUP,
            version > STORE_VERSION
                ? "cannot open store %s: written by a newer tracectl: format %lld, this one reads "
                  "%d (read it with that version)"
                : "cannot open store %s: format %lld, this tracectl reads %d (record it anew)",
            store->path, (long long)version, STORE_VERSION);
    return 0;
}

int store_open_damaged(const char *path, sqlite3 **ret_db, struct error *err)
{
    CLEANUP(cleanup_store) struct tracestore *store = NULL;
    int code = check_file(path, TRACESTORE_READ, err);

    if (code)
        return code;
    store = calloc(1, sizeof(*store));
    if (!store)
        return error_no_memory(err);
    store->reserves[RESERVE_LOG] = store->reserves[RESERVE_LAST] = -1;
    store->path = strdup(path);
    if (!store->path)
        return error_no_memory(err);
    connect_db(store);
    /* With this SQLite puts up with a file that is cut short. */
    sqlite3_exec(store->db, "PRAGMA writable_schema = ON; PRAGMA query_only = ON; BEGIN", NULL, NULL, NULL);
    if (sqlite3_exec(store->db, "SELECT count(*) FROM segments WHERE segment_id = 0", NULL, NULL, NULL) ==
        SQLITE_ERROR)
        return fail(err, path, -EINVAL, "not a tracectl store, or its list of tables is damaged",
                    "take it from a backup");
    if (sqlite3_errcode(store->db) == SQLITE_NOTADB)
        return fail(err, path, -EINVAL, "not a tracectl store, or its first page is damaged",
                    "take it from a backup");
    code = check_format(store, err);
    if (code == -ENOTSUP || code == -ENOMEM)
        return code;
    *ret_db = take_pointer(store->db);
    return 0;
}

static int set_up(struct tracestore *store, store_prepare prepare, struct error *err)
{
    char *message = NULL;
    int code = db_exec(store->db, "PRAGMA foreign_keys = ON; PRAGMA synchronous = NORMAL",
                       "cannot set up the connection", err);

    if (code)
        return code;
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    if (prepare && prepare(store->db, &message) != SQLITE_OK) {
        error_say(err, -EIO, "cannot open store %s: cannot create its event tables: %s", store->path,
                  message ? message : sqlite3_errmsg(store->db));
        sqlite3_free(message);
        return -EIO;
    }
    return store->mode == TRACESTORE_READ
               ? db_exec(store->db, "PRAGMA query_only = ON", "cannot set up the connection", err)
               : 0;
}

int store_open(const char *path, enum tracestore_mode mode, store_prepare prepare,
               struct tracestore **ret_store, struct error *err)
{
    CLEANUP(cleanup_store) struct tracestore *store = NULL;
    int code = check_file(path, mode, err);

    if (code)
        return code;
    store = calloc(1, sizeof(*store));
    if (!store)
        return error_no_memory(err);
    store->mode = mode;
    store->reserves[RESERVE_LOG] = store->reserves[RESERVE_LAST] = -1;
    store->path = strdup(path);
    if (!store->path)
        return error_no_memory(err);
    if (mode == TRACESTORE_CREATE && access(path, F_OK))
        store_create_file(path);
    if (connect_db(store) != SQLITE_OK)
        return is_cut_short(store) ? fail(err, path, -EBADMSG, "the file is cut short",
                                          "salvage it with tracectl recover -o NEW.db")
                                   : fail_db(err, path, store->db);
    if (mode == TRACESTORE_CREATE)
        code = schema_make(store->db, err);
    if (!code)
        code = check_format(store, err);
    if (!code && is_cut_short(store))
        code =
            fail(err, path, -EBADMSG, "the file is cut short", "salvage it with tracectl recover -o NEW.db");
    if (!code)
        code = schema_check(store->db, path, err);
    if (!code)
        code = set_up(store, prepare, err);
    if (code)
        return code;
    *ret_store = take_pointer(store);
    return 0;
}

void tracestore_free(struct tracestore *store)
{
    if (!store)
        return;
    for (int i = 0; i < STORE_RESERVES; i++)
        if (store->reserves[i] >= 0)
            close(store->reserves[i]);
    sqlite3_close_v2(store->db);
    free(store->path);
    free(store);
}

struct sqlite3 *tracestore_db(struct tracestore *store)
{
    return store->db;
}
