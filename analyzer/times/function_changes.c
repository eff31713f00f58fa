/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/times/function_changes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "store/api/tracestore.h"

static const struct time_range unknown = {0, UINT64_MAX};

/* What the baseline runs have, at least and at most; and the candidate run. */
struct entry {
    char *key; /* "NAME\nIMAGE" */
    char *name, *image;
    struct change_side first, least, most, after;
    size_t runs; /* baseline runs that call it */
    UT_hash_handle hh;
};

struct comparing {
    struct entry *entries;
    size_t baselines;
    bool timed;
};

static void entry_free(struct entry *entry)
{
    free(entry->key);
    free(entry->name);
    free(entry->image);
    free(entry);
}

static void comparing_release(struct comparing *comparing)
{
    struct entry *entry = NULL, *next = NULL;

    HASH_ITER (hh, comparing->entries, entry, next) {
        HASH_DEL(comparing->entries, entry);
        entry_free(entry);
    }
}

/* ------------------------------------------------------------------------------------------ entries */

static struct entry *new_entry(const struct tracestore_function *function, const char *key)
{
    struct entry *entry = calloc(1, sizeof(*entry));

    if (!entry)
        return NULL;
    entry->key = strdup(key);
    entry->name = strdup(function->demangled);
    entry->image = strdup(function->image);
    if (!entry->key || !entry->name || !entry->image) {
        entry_free(entry);
        return NULL;
    }
    return entry;
}

/* NULL: out of memory. */
static struct entry *entry_of(struct comparing *comparing, const struct tracestore_function *function)
{
    const char *image = path_file_name(function->image);
    size_t size = strlen(function->demangled) + strlen(image) + 2;
    AUTO_FREE char *key = malloc(size);
    struct entry *entry, *added;

    if (!key)
        return NULL;
    stpcpy(stpcpy(stpcpy(key, function->demangled), "\n"), image);
    HASH_FIND_STR(comparing->entries, key, entry);
    if (entry)
        return entry;
    entry = new_entry(function, key);
    if (!entry)
        return NULL;
    HASH_ADD_KEYPTR(hh, comparing->entries, entry->key, size - 1, entry);
    HASH_FIND_STR(comparing->entries, key, added);
    if (!added)
        entry_free(entry);
    return added;
}

/* ------------------------------------------------------------------------------------------ one run */

/* A function's times in a run; several functions of one name and image are added up, but for p99. */
static void add_side(struct change_side *side, const struct function_time *time, bool timed)
{
    bool known = timed && function_time_is_known(time);
    struct time_range total = known ? time->total : unknown, self = known ? time->self : unknown;

    if (!side->calls) {
        *side = (struct change_side){time->calls, total, self, known ? time->p99 : unknown};
        return;
    }
    side->calls += time->calls;
    time_range_add(&side->total, total);
    time_range_add(&side->self, self);
    side->p99 = unknown;
}

static void widen(struct time_range *least, struct time_range *most, struct time_range range)
{
    least->min_ns = range.min_ns < least->min_ns ? range.min_ns : least->min_ns;
    most->max_ns = range.max_ns > most->max_ns ? range.max_ns : most->max_ns;
}

/* Puts what a baseline run has, gathered in `after`, into the bounds. */
static void end_baseline(struct comparing *comparing, bool first)
{
    for (struct entry *entry = comparing->entries; entry; entry = entry->hh.next) {
        struct change_side side = entry->after;

        entry->after = (struct change_side){0};
        if (first)
            entry->first = side;
        if (!side.calls)
            continue;
        if (!entry->runs++) {
            entry->least = entry->most = side;
            continue;
        }
        entry->least.calls = side.calls < entry->least.calls ? side.calls : entry->least.calls;
        entry->most.calls = side.calls > entry->most.calls ? side.calls : entry->most.calls;
        widen(&entry->least.total, &entry->most.total, side.total);
        widen(&entry->least.self, &entry->most.self, side.self);
        widen(&entry->least.p99, &entry->most.p99, side.p99);
    }
}

static int read_run(struct comparing *comparing, const struct change_source *source, struct error *err)
{
    struct tracestore_function *functions = NULL;
    struct function_times times = {0};
    size_t count = 0;
    int r = function_times_read(source->store, source->run_id,
                                comparing->timed ? FUNCTION_TIMES_PERCENTILES : FUNCTION_TIMES_CALLS, &times,
                                err);

    if (r == 0)
        r = tracestore_functions(source->store, source->run_id, &functions, &count, err);
    for (size_t i = 0; i < count && r == 0; i++) {
        const struct function_time *time = function_times_find(&times, functions[i].function_id);
        struct entry *entry = time && time->calls ? entry_of(comparing, &functions[i]) : NULL;

        if (entry)
            add_side(&entry->after, time, comparing->timed);
        else if (time && time->calls)
            r = error_no_memory(err);
    }
    tracestore_functions_free(functions, count);
    function_times_release(&times);
    return r;
}

/* ------------------------------------------------------------------------------------------ changes */

/* How far `range` is outside of `least` to `most`, relative to the larger value. */
static double change_of(uint64_t least, uint64_t most, struct time_range range)
{
    if (range.min_ns > most)
        return (double)(range.min_ns - most) / (double)range.min_ns;
    if (range.max_ns < least)
        return (double)(least - range.max_ns) / (double)least;
    return 0;
}

static double time_change(const struct comparing *comparing, struct time_range least, struct time_range most,
                          struct time_range after)
{
    double change = change_of(least.min_ns, most.max_ns, after);

    return comparing->baselines > 1 || change >= FUNCTION_CHANGE_NOISE ? change : 0;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double change_of_entry(const struct comparing *comparing, const struct entry *entry)
{
    const struct change_side *after = &entry->after;
    uint64_t least = entry->runs == comparing->baselines ? entry->least.calls : 0;
    double change = change_of(least, entry->most.calls, (struct time_range){after->calls, after->calls});

    if (!entry->runs || !after->calls)
        return change;
    change = larger(change, time_change(comparing, entry->least.total, entry->most.total, after->total));
    change = larger(change, time_change(comparing, entry->least.self, entry->most.self, after->self));
    return larger(change, time_change(comparing, entry->least.p99, entry->most.p99, after->p99));
}

static uint64_t distance(const struct function_change *function)
{
    uint64_t before = function->before.calls, after = function->after.calls;

    return before > after ? before - after : after - before;
}

static int compare_changes(const void *a, const void *b)
{
    const struct function_change *left = a, *right = b;

    if (left->change > right->change || left->change < right->change)
        return left->change > right->change ? -1 : 1;
    if (distance(left) != distance(right))
        return distance(left) > distance(right) ? -1 : 1;
    return strcmp(left->name, right->name) ? strcmp(left->name, right->name)
                                           : strcmp(left->image, right->image);
}

static int make_changes(struct comparing *comparing, struct function_changes *changes)
{
    changes->functions = calloc(HASH_COUNT(comparing->entries) + 1u, sizeof(*changes->functions));
    if (!changes->functions)
        return -ENOMEM;
    changes->timed = comparing->timed;
    for (struct entry *entry = comparing->entries; entry; entry = entry->hh.next) {
        struct function_change *function = &changes->functions[changes->count++];

        function->name = take_pointer(entry->name);
        function->image = take_pointer(entry->image);
        function->before = entry->first;
        function->after = entry->after;
        function->change = change_of_entry(comparing, entry);
        changes->changed += function->change > 0;
    }
    qsort(changes->functions, changes->count, sizeof(*changes->functions), compare_changes);
    return 0;
}

/* Between the times in a function itself; 0: the ranges meet. A function that is not called takes no time. */
static uint64_t time_gap(const struct function_change *function)
{
    struct time_range before = function->before.self, after = function->after.self;

    if (before.min_ns > after.max_ns)
        return before.min_ns - after.max_ns;
    return after.min_ns > before.max_ns ? after.min_ns - before.max_ns : 0;
}

static int compare_gaps(const void *a, const void *b)
{
    uint64_t left = time_gap(a), right = time_gap(b);

    return left != right ? (left > right ? -1 : 1) : compare_changes(a, b);
}

void function_changes_order_by_time(struct function_changes *changes)
{
    if (changes->changed)
        qsort(changes->functions, changes->changed, sizeof(*changes->functions), compare_gaps);
}

int function_changes_read(const struct change_source *sources, size_t count,
                          struct function_changes *ret_changes, struct error *err)
{
    CLEANUP(comparing_release) struct comparing comparing = {.baselines = count - 1, .timed = true};
    struct function_changes changes = {0};
    int r = 0;

    for (size_t i = 0; i < count && r == 0; i++) {
        bool every = false;

        r = function_times_of_every_event(sources[i].store, sources[i].run_id, &every, err);
        comparing.timed &= every;
    }
    for (size_t i = 0; i < count && r == 0; i++) {
        r = read_run(&comparing, &sources[i], err);
        if (r == 0 && i + 1 < count)
            end_baseline(&comparing, i == 0);
    }
    if (r == 0 && make_changes(&comparing, &changes))
        r = error_no_memory(err);
    if (r == 0)
        *ret_changes = changes;
    return r;
}

void function_changes_release(struct function_changes *changes)
{
    for (size_t i = 0; i < changes->count; i++) {
        free(changes->functions[i].name);
        free(changes->functions[i].image);
    }
    free(changes->functions);
    *changes = (struct function_changes){0};
}
