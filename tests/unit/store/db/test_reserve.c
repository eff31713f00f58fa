/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* On a small file system of its own: what is set aside suffices for the log's way into the database. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/api/tracestore.h"
#include "store/db/db.h"
#include "store/db/reserve.h"

#define DISK_BYTES "6m"

struct disk {
    char folder[32], path[64], log[80], ballast[64];
    struct tracestore *store;
};

static void disk_open(struct disk *disk)
{
    snprintf(disk->folder, sizeof(disk->folder), "/tmp/reserve.XXXXXX");
    cr_assert_not_null(mkdtemp(disk->folder));
    cr_assert_eq(unshare(CLONE_NEWNS), 0);
    cr_assert_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    cr_assert_eq(mount("tmpfs", disk->folder, "tmpfs", 0, "size=" DISK_BYTES), 0);
    snprintf(disk->path, sizeof(disk->path), "%s/store.db", disk->folder);
    snprintf(disk->log, sizeof(disk->log), "%s-wal", disk->path);
    snprintf(disk->ballast, sizeof(disk->ballast), "%s/ballast", disk->folder);
    cr_assert_eq(tracestore_open(disk->path, TRACESTORE_CREATE, &disk->store, NULL), 0);
    cr_assert_eq(db_exec(tracestore_db(disk->store), "CREATE TABLE filler (data BLOB)", "", NULL), 0);
    tracestore_reserve(disk->store);
}

static void disk_close(struct disk *disk)
{
    tracestore_free(disk->store);
    umount(disk->folder);
    rmdir(disk->folder);
}

/* Somebody else takes every byte that is left. */
static void fill(const struct disk *disk)
{
    static const char zeros[4096];
    int fd = open(disk->ballast, O_WRONLY | O_CREAT, 0600);

    cr_assert_geq(fd, 0);
    while (write(fd, zeros, sizeof(zeros)) > 0)
        ;
    cr_assert_eq(errno, ENOSPC);
    close(fd);
}

/* Writes so many bytes in a transaction, if they are covered. */
static int write_bytes(struct disk *disk, int64_t bytes)
{
    sqlite3 *db = tracestore_db(disk->store);
    int code = db_begin(db, "", NULL);

    cr_assert_eq(code, 0);
    code = db_run(db, "", NULL, "INSERT INTO filler VALUES (zeroblob(?1))", "i", bytes);
    if (!code)
        code = reserve_cover_log(disk->store, "cannot write", NULL);
    if (!code)
        code = db_commit(db, "", NULL);
    if (code)
        db_rollback(db);
    return code;
}

static void expect_empty_log(struct disk *disk)
{
    struct stat log;

    tracestore_use_reserve(disk->store);
    cr_assert_eq(stat(disk->log, &log), 0);
    cr_assert_eq(log.st_size, 0, "%ld bytes cannot leave the log", (long)log.st_size);
}

Test(reserve, a_log_of_any_length_finds_its_way_into_the_file)
{
    struct disk disk;
    struct stat log;

    disk_open(&disk);
    sqlite3_wal_autocheckpoint(tracestore_db(disk.store), 0); /* as with a reader in the way */
    cr_assert_eq(write_bytes(&disk, 1 << 20), 0);
    cr_assert_eq(write_bytes(&disk, 1 << 20), 0);
    fill(&disk);
    cr_assert_eq(stat(disk.log, &log), 0);
    cr_assert_geq(log.st_size, 2 << 20);
    expect_empty_log(&disk);
    disk_close(&disk);
}

Test(reserve, what_would_not_find_its_way_is_not_committed)
{
    struct disk disk;

    disk_open(&disk);
    cr_assert_eq(write_bytes(&disk, 4 << 20), -ENOSPC);
    cr_assert_eq(write_bytes(&disk, 1 << 20), 0);
    fill(&disk);
    while (!write_bytes(&disk, 100 << 10))
        ;
    expect_empty_log(&disk);
    disk_close(&disk);
}

Test(reserve, it_is_no_longer_than_needed)
{
    struct disk disk;
    struct stat reserve;

    disk_open(&disk);
    cr_assert_eq(mount(NULL, disk.folder, NULL, MS_REMOUNT, "size=100m"), 0);
    cr_assert_eq(write_bytes(&disk, 20 << 20), 0);
    fstat(disk.store->reserves[RESERVE_LOG], &reserve);
    cr_assert_geq(reserve.st_size, 20 << 20);
    cr_assert_eq(write_bytes(&disk, 1000), 0); /* the log has been copied after the commit before */
    fstat(disk.store->reserves[RESERVE_LOG], &reserve);
    cr_assert_leq(reserve.st_size, 8 << 20);
    disk_close(&disk);
}
