/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/live/top_times.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/common/output.h"

/* Calls come thread by thread in the order of their ends: those that a call has made come before it. */
static const char calls_sql[] =
    "SELECT thread_id, function_id, depth, duration_min_ns, coalesce(duration_max_ns, -1) FROM calls "
    "WHERE run_id = ?1 AND state = 'returned'";

enum { CALL_THREAD, CALL_FUNCTION, CALL_DEPTH, CALL_MIN, CALL_MAX };

/* What the calls of each depth have taken since the last one further out ended. */
struct inner {
    struct time_range *ns;
    size_t count, capacity;
};

struct timed_function {
    int64_t function_id;
    struct function_time time;
    UT_hash_handle hh;
};

/* NULL: out of memory. */
static struct function_time *time_of(struct top_times *times, int64_t function_id)
{
    struct timed_function *function, *added;

    HASH_FIND(hh, times->functions, &function_id, sizeof(function_id), function);
    if (function)
        return &function->time;
    function = calloc(1, sizeof(*function));
    if (!function)
        return NULL;
    function->function_id = function_id;
    HASH_ADD(hh, times->functions, function_id, sizeof(function_id), function);
    HASH_FIND(hh, times->functions, &function_id, sizeof(function_id), added);
    if (!added)
        free(function);
    return added ? &added->time : NULL;
}

static int make_room(struct inner *inner, size_t depth)
{
    if (array_reserve(&inner->ns, &inner->capacity, depth + 2) || !inner->ns)
        return -ENOMEM;
    memset(&inner->ns[inner->count], 0, (inner->capacity - inner->count) * sizeof(*inner->ns));
    inner->count = inner->capacity;
    return 0;
}

static uint64_t add_known(uint64_t a, uint64_t b)
{
    return a == UINT64_MAX || b == UINT64_MAX ? UINT64_MAX : a + b;
}

static void add_range(struct time_range *sum, struct time_range more)
{
    sum->min_ns = add_known(sum->min_ns, more.min_ns);
    sum->max_ns = add_known(sum->max_ns, more.max_ns);
}

/* What is left of `whole` without `part`, which is inside it. */
static struct time_range without(struct time_range whole, struct time_range part)
{
    return (struct time_range){
        .min_ns = whole.min_ns > part.max_ns ? whole.min_ns - part.max_ns : 0,
        .max_ns = whole.max_ns == UINT64_MAX   ? UINT64_MAX
                  : whole.max_ns > part.min_ns ? whole.max_ns - part.min_ns
                                               : 0,
    };
}

static int add_call(struct top_times *times, struct inner *inner, sqlite3_stmt *row)
{
    struct function_time *time = time_of(times, sqlite3_column_int64(row, CALL_FUNCTION));
    size_t depth = (size_t)sqlite3_column_int64(row, CALL_DEPTH);
    struct time_range duration = {(uint64_t)sqlite3_column_int64(row, CALL_MIN),
                                  (uint64_t)sqlite3_column_int64(row, CALL_MAX)};

    if (!time || make_room(inner, depth))
        return -ENOMEM;
    time->calls++;
    add_range(&time->total, duration);
    add_range(&time->self, without(duration, inner->ns[depth + 1]));
    add_range(&inner->ns[depth], duration);
    inner->ns[depth + 1] = (struct time_range){0};
    return 0;
}

static int read_calls(struct tracestore *store, int64_t run_id, struct top_times *times, struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    struct inner inner = {0};
    int64_t thread = 0;
    int r = cli_prepare(store, &row, err, calls_sql, 1, run_id);

    while (!r && (r = cli_step(row, "iiiii", err)) == 0) {
        if (thread != sqlite3_column_int64(row, CALL_THREAD) && inner.ns)
            memset(inner.ns, 0, inner.count * sizeof(*inner.ns));
        thread = sqlite3_column_int64(row, CALL_THREAD);
        if (add_call(times, &inner, row))
            r = error_no_memory(err);
    }
    free(inner.ns);
    return r < 0 ? r : 0;
}

int top_times_read(struct tracestore *store, int64_t run_id, struct top_times *ret_times, struct error *err)
{
    AUTO_STATEMENT *tag = NULL;
    int r =
        cli_prepare(store, &tag, err,
                    "SELECT 1 FROM tags WHERE run_id = ?1 AND key = 'times' AND value = 'full'", 1, run_id);

    *ret_times = (struct top_times){0};
    if (!r)
        r = cli_step(tag, "", err);
    if (r)
        return r < 0 ? r : 0;
    ret_times->known = true;
    return read_calls(store, run_id, ret_times, err);
}

void top_times_release(struct top_times *times)
{
    struct timed_function *function, *next;

    HASH_ITER (hh, times->functions, function, next) {
        HASH_DEL(times->functions, function);
        free(function);
    }
    *times = (struct top_times){0};
}

const struct function_time *top_times_of(const struct top_times *times, int64_t function_id)
{
    static const struct function_time none;
    struct timed_function *function;

    HASH_FIND(hh, times->functions, &function_id, sizeof(function_id), function);
    return function ? &function->time : &none;
}
