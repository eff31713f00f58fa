/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/sql/percentile.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct collected {
    double *values;
    size_t count, capacity;
    double percent;
    bool begun, failed;
};

static void fail(sqlite3_context *context, struct collected *collected, const char *why)
{
    sqlite3_result_error(context, why, -1);
    collected->failed = true;
}

/* ------------------------------------------------------------------------------------------ collecting */

static void add(sqlite3_context *context, struct collected *collected, sqlite3_value *value)
{
    int type = sqlite3_value_numeric_type(value);

    if (type == SQLITE_NULL || collected->failed)
        return;
    if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) {
        fail(context, collected, "percentile() and median() are of numbers");
        return;
    }
    if (collected->count == collected->capacity) {
        size_t capacity = collected->capacity ? 2 * collected->capacity : 64;
        double *values = sqlite3_realloc64(collected->values, capacity * sizeof(*values));

        if (!values) {
            sqlite3_result_error_nomem(context);
            collected->failed = true;
            return;
        }
        collected->values = values;
        collected->capacity = capacity;
    }
    collected->values[collected->count++] = sqlite3_value_double(value);
}

static struct collected *collected_of(sqlite3_context *context)
{
    struct collected *collected = sqlite3_aggregate_context(context, sizeof(*collected));

    if (!collected)
        sqlite3_result_error_nomem(context);
    return collected;
}

static void step_percentile(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    struct collected *collected = collected_of(context);
    int type = sqlite3_value_numeric_type(argv[1]);
    double percent = sqlite3_value_double(argv[1]);

    if (!collected || collected->failed)
        return;
    if ((type != SQLITE_INTEGER && type != SQLITE_FLOAT) || percent < 0 || percent > 100) {
        fail(context, collected, "the second argument of percentile() is a number from 0 to 100");
        return;
    }
    if (collected->begun && collected->percent != percent) {
        fail(context, collected, "the second argument of percentile() is the same for all rows");
        return;
    }
    collected->begun = true;
    collected->percent = percent;
    add(context, collected, argv[0]);
}

static void step_median(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    struct collected *collected = collected_of(context);

    if (!collected)
        return;
    collected->percent = 50;
    add(context, collected, argv[0]);
}

/* ------------------------------------------------------------------------------------------ choosing */

static void swap(double *a, double *b)
{
    double kept = *a;

    *a = *b;
    *b = kept;
}

/* Puts the value of that rank in its place, smaller ones before it and larger ones behind it (C. A. R. Hoare,
 * "Algorithm 65: Find", 1961), with pivots that the order of the values does not choose. */
static void select_rank(double *values, size_t count, size_t rank)
{
    size_t low = 0, high = count - 1;
    uint64_t random = 0x9e3779b97f4a7c15u;

    while (low < high) {
        size_t left = low, right = high;
        double pivot;

        random = random * 6364136223846793005u + 1442695040888963407u;
        pivot = values[low + (size_t)((random >> 33) % (high - low + 1))];
        while (left <= right) {
            while (values[left] < pivot)
                left++;
            while (values[right] > pivot)
                right--;
            if (left > right)
                break;
            swap(&values[left++], &values[right]);
            if (!right)
                break;
            right--;
        }
        if (rank <= right)
            high = right;
        else if (rank >= left)
            low = left;
        else
            return;
    }
}

static double percentile_of(double *values, size_t count, double percent)
{
    double at = percent / 100 * (double)(count - 1), below = floor(at);
    size_t rank = (size_t)below;
    double next = 0;

    select_rank(values, count, rank);
    if (rank + 1 == count || at == below)
        return values[rank];
    next = values[rank + 1];
    for (size_t i = rank + 2; i < count; i++)
        next = values[i] < next ? values[i] : next;
    return values[rank] + (at - below) * (next - values[rank]);
}

static void finish(sqlite3_context *context)
{
    struct collected *collected = sqlite3_aggregate_context(context, 0);

    if (!collected)
        return;
    if (collected->count && !collected->failed)
        sqlite3_result_double(context,
                              percentile_of(collected->values, collected->count, collected->percent));
    sqlite3_free(collected->values);
}

int percentile_register(sqlite3 *db)
{
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
    int r = sqlite3_create_function_v2(db, "percentile", 2, flags, NULL, NULL, step_percentile, finish, NULL);

    return r == SQLITE_OK
               ? sqlite3_create_function_v2(db, "median", 1, flags, NULL, NULL, step_median, finish, NULL)
               : r;
}
