/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store_mutation.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "../store/fixture.h"
#include "base/array.h"
#include "store/db/db.h"

#define PAGE 4096

/* ------------------------------------------------------------------------------------------ the file */

static void change_file(const char *path, struct generator *generator)
{
    int fd = open(path, O_RDWR);
    struct stat status;
    uint8_t *bytes, page[PAGE];
    size_t pages, from, to;

    cr_assert(fd >= 0 && fstat(fd, &status) == 0);
    pages = (size_t)status.st_size / PAGE;
    bytes = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    cr_assert(bytes != MAP_FAILED);
    from = generator_below(generator, (uint32_t)pages) * PAGE;
    to = generator_below(generator, (uint32_t)pages) * PAGE;
    switch (generator_below(generator, 6)) {
    case 0: /* swap */
        memcpy(page, bytes + from, PAGE);
        memcpy(bytes + from, bytes + to, PAGE);
        memcpy(bytes + to, page, PAGE);
        break;
    case 1:
        memset(bytes + from, 0, PAGE);
        break;
    case 2: /* what holds of SQLite's trees is at the beginning of a page */
        for (size_t i = 0; i < 4; i++)
            bytes[from + generator_below(generator, 64)] = (uint8_t)generator_next(generator);
        break;
    case 3:
        cr_assert_eq(ftruncate(fd, (off_t)generator_below(generator, (uint32_t)status.st_size)), 0);
        break;
    default:
        for (size_t i = 0; i < 1 + generator_below(generator, 20); i++)
            bytes[generator_below(generator, (uint32_t)status.st_size)] ^=
                (uint8_t)(1 + generator_below(generator, 255));
    }
    munmap(bytes, (size_t)status.st_size);
    close(fd);
}

/* ------------------------------------------------------------------------------------------ values */

/* A random table and column of the store, as "table.column" in two texts to free with sqlite3_free. */
static bool choose_column(sqlite3 *db, struct generator *generator, char **ret_table, char **ret_column)
{
    AUTO_STATEMENT *row = NULL;
    uint32_t skip = generator_below(generator, 170);
    int result = SQLITE_DONE;

    if (sqlite3_prepare_v2(
            db,
            "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type ="
            " 'table' AND t.rootpage > 0 AND t.name NOT LIKE 'sqlite%' LIMIT 1 OFFSET"
            " ?1 % (SELECT count(*) FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type ="
            " 'table' AND t.rootpage > 0 AND t.name NOT LIKE 'sqlite%')",
            -1, &row, NULL) == SQLITE_OK) {
        db_bind(row, "i", (int64_t)skip);
        result = sqlite3_step(row);
    }
    if (result != SQLITE_ROW)
        return false;
    *ret_table = sqlite3_mprintf("%s", sqlite3_column_text(row, 0));
    *ret_column = sqlite3_mprintf("%s", sqlite3_column_text(row, 1));
    return true;
}

static void execute(sqlite3 *db, char *sql)
{
    sqlite3_exec(db, sql, NULL, NULL, NULL);
    sqlite3_free(sql);
}

static void change_value(sqlite3 *db, struct generator *generator)
{
    static const char *const values[] = {"NULL",
                                         "0",
                                         "1",
                                         "-1",
                                         "0.5",
                                         "1e300",
                                         "9223372036854775807",
                                         "-9223372036854775808",
                                         "4294967295",
                                         "4294967296",
                                         "2147483648",
                                         "16777216",
                                         "16777217",
                                         "'x'",
                                         "''",
                                         "x'00'",
                                         "zeroblob(70000)",
                                         "'0.0'",
                                         "abs(random() % 10)",
                                         "random()",
                                         "rowid",
                                         "-rowid",
                                         "9223372036854775807 - rowid"};
    char *table = NULL, *column = NULL;
    const char *value = values[generator_below(generator, ARRAY_SIZE(values))];
    bool all = generator_below(generator, 4) == 0;

    if (!choose_column(db, generator, &table, &column))
        return;
    execute(db, sqlite3_mprintf("UPDATE OR IGNORE \"%w\" SET \"%w\" = %s%s", table, column, value,
                                all ? "" : " WHERE random() % 3 = 0"));
    /* The value of another column, or of another row. */
    if (generator_below(generator, 4) == 0)
        execute(db, sqlite3_mprintf(
                        "UPDATE OR IGNORE \"%w\" SET \"%w\" = (SELECT \"%w\" FROM \"%w\" ORDER BY random()"
                        " LIMIT 1)",
                        table, column, column, table));
    sqlite3_free(table);
    sqlite3_free(column);
}

/* NULL where it may not be: the schema says otherwise for a moment. */
static void change_values(const char *path, struct generator *generator)
{
    static const char *const laxer =
        "PRAGMA writable_schema = ON;"
        "CREATE TABLE kept AS SELECT rowid AS number, sql FROM sqlite_schema;"
        "UPDATE sqlite_schema SET sql = replace(sql, 'NOT NULL', '') WHERE type = 'table'"
        " AND rootpage > 0 AND name <> 'kept' AND name NOT LIKE 'sqlite%'";
    static const char *const strict =
        "PRAGMA writable_schema = ON;"
        "UPDATE sqlite_schema SET sql = (SELECT k.sql FROM kept k WHERE number = sqlite_schema.rowid)"
        " WHERE rowid IN (SELECT number FROM kept); DROP TABLE kept";
    bool lax = generator_below(generator, 2);
    sqlite3 *db;

    for (int step = 0; step < 3; step++) {
        cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
        if (step == 1)
            for (size_t i = 0; i < 1 + generator_below(generator, 3); i++)
                change_value(db, generator);
        else if (lax)
            sqlite3_exec(db, step ? strict : laxer, NULL, NULL, NULL);
        sqlite3_close(db);
    }
}

/* A payload that is wrong under a checksum that is right. */
static void change_payload(sqlite3 *db, struct generator *generator)
{
    static const char *const tables[][3] = {{"segments", "segment_id", "functions"},
                                            {"process_segments", "segment_id", "names"},
                                            {"journal", "journal_id", "data"}};
    const char *const *table = tables[generator_below(generator, ARRAY_SIZE(tables))];
    const char *column = generator_below(generator, 4) ? "data" : table[2];
    char *sql =
        sqlite3_mprintf("SELECT %s, %s FROM %s ORDER BY random() LIMIT 1", table[1], column, table[0]);
    AUTO_STATEMENT *row = NULL, *update = NULL;
    AUTO_FREE uint8_t *data = NULL;
    size_t size;

    if (sqlite3_prepare_v2(db, sql, -1, &row, NULL) == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW) {
        size = (size_t)sqlite3_column_bytes(row, 1);
        data = malloc(size + 1);
        if (size)
            memcpy(data, sqlite3_column_blob(row, 1), size);
        for (size_t i = 0; size && i < 1 + generator_below(generator, 4); i++)
            data[generator_below(generator,
                                 size < 40 || generator_below(generator, 2) ? (uint32_t)size : 40)] =
                (uint8_t)generator_next(generator);
        sqlite3_free(sql);
        sql =
            strcmp(column, "data") == 0
                ? sqlite3_mprintf("UPDATE %s SET data = ?1, checksum = ?3 WHERE %s = ?2", table[0], table[1])
                : sqlite3_mprintf("UPDATE %s SET %s = ?1 WHERE %s = ?2 AND ?3 NOTNULL", table[0], column,
                                  table[1]);
        if (sqlite3_prepare_v2(db, sql, -1, &update, NULL) == SQLITE_OK) {
            db_bind(update, "bii", (const void *)data, size, sqlite3_column_int64(row, 0),
                    (int64_t)crc32(0, data, (uInt)size));
            sqlite3_step(update);
        }
    }
    sqlite3_free(sql);
}

static void change_schema(sqlite3 *db, struct generator *generator)
{
    static const char *const changes[] = {
        "CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END",
        "ALTER TABLE threads RENAME TO hidden; CREATE VIEW threads AS SELECT * FROM events",
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM "
        "sqlite_schema WHERE type"
        " = 'table' ORDER BY random() LIMIT 1) WHERE rowid % 5 = 1",
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'INTEGER', 'TEXT') WHERE "
        "name ="
        " 'segments'",
        "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE rowid = abs(random() % 40)",
        "DROP INDEX segments_by_thread",
        "DROP TABLE go_usages",
        "PRAGMA user_version = 2",
        "INSERT INTO function_trigrams(function_trigrams) VALUES ('delete-all')"};

    sqlite3_exec(db, changes[generator_below(generator, ARRAY_SIZE(changes))], NULL, NULL, NULL);
}

void store_mutate(const char *path, uint64_t number)
{
    struct generator generator = {number * 2654435761u + 1};
    uint32_t kind = generator_below(&generator, 20);
    sqlite3 *db;

    sqlite3_test_control(SQLITE_TESTCTRL_PRNG_SEED, (int)(number + 1), NULL);
    if (kind < 6) {
        change_file(path, &generator);
    } else if (kind < 13) {
        change_values(path, &generator);
    } else {
        cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
        for (size_t i = 0; kind < 19 && i < 1 + generator_below(&generator, 2); i++)
            change_payload(db, &generator);
        if (kind == 19)
            change_schema(db, &generator);
        sqlite3_close(db);
    }
}
