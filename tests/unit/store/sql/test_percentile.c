/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* percentile() and median() against sorted values. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/db/sqlite.h"
#include "store/sql/percentile.h"

static sqlite3 *open_db(void)
{
    sqlite3 *db = NULL;

    cr_assert_eq(sqlite3_open(":memory:", &db), SQLITE_OK);
    cr_assert_eq(percentile_register(db), SQLITE_OK);
    cr_assert_eq(sqlite3_exec(db, "CREATE TABLE t (x)", NULL, NULL, NULL), SQLITE_OK);
    return db;
}

/* The one value of a query; NAN: NULL. */
static double ask(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    double answer;

    cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK, "%s", sqlite3_errmsg(db));
    cr_assert_eq(sqlite3_step(statement), SQLITE_ROW, "%s: %s", sql, sqlite3_errmsg(db));
    answer = sqlite3_column_type(statement, 0) == SQLITE_NULL ? NAN : sqlite3_column_double(statement, 0);
    sqlite3_finalize(statement);
    return answer;
}

static void expect_refused(sqlite3 *db, const char *sql, const char *words)
{
    char *message = NULL;

    cr_assert_eq(sqlite3_exec(db, sql, NULL, NULL, &message), SQLITE_ERROR, "%s", sql);
    cr_assert_not_null(strstr(message, words), "%s", message);
    sqlite3_free(message);
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

static double expected(const double *sorted, size_t count, double percent)
{
    double at = percent / 100 * (double)(count - 1);
    size_t rank = (size_t)at;

    return rank + 1 == count ? sorted[rank]
                             : sorted[rank] + (at - (double)rank) * (sorted[rank + 1] - sorted[rank]);
}

Test(percentile, is_that_of_the_sorted_values)
{
    static const double percents[] = {0, 0.1, 12.5, 50, 90, 99, 99.9, 100};
    static const int moduli[] = {1, 2, 7, 1000, 1000000}; /* all the same, many the same, hardly any */
    double values[999];
    sqlite3 *db = open_db();
    char sql[128];

    srandom(1);
    for (size_t count = 1; count <= 999; count = count * 3 + 1)
        for (size_t m = 0; m < 5; m++) {
            sqlite3_exec(db, "DELETE FROM t", NULL, NULL, NULL);
            for (size_t i = 0; i < count; i++) {
                values[i] = (double)(random() % moduli[m]) - 3;
                snprintf(sql, sizeof(sql), "INSERT INTO t VALUES (%.0f), (NULL)", values[i]);
                cr_assert_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
            }
            qsort(values, count, sizeof(*values), compare);
            for (size_t p = 0; p < sizeof(percents) / sizeof(*percents); p++) {
                snprintf(sql, sizeof(sql), "SELECT percentile(x, %f) FROM t", percents[p]);
                cr_assert_float_eq(ask(db, sql), expected(values, count, percents[p]), 1e-6, "%s of %zu", sql,
                                   count);
            }
            cr_assert_float_eq(ask(db, "SELECT median(x) FROM t"), expected(values, count, 50), 1e-9);
        }
    sqlite3_close(db);
}

Test(percentile, of_nothing_is_null_and_of_texts_an_error)
{
    sqlite3 *db = open_db();

    cr_assert(isnan(ask(db, "SELECT median(x) FROM t")));
    cr_assert(isnan(ask(db, "SELECT percentile(NULL, 5)")));
    expect_refused(db, "SELECT median('abc')", "numbers");
    expect_refused(db, "SELECT percentile(1, 101)", "0 to 100");
    expect_refused(db, "SELECT percentile(1, NULL)", "0 to 100");
    expect_refused(db, "SELECT percentile(1, column1) FROM (VALUES (1), (2))", "same for all rows");
    sqlite3_close(db);
}
