/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/times/durations.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static void bounds_release(struct duration_bounds *bounds)
{
    free(bounds->small);
    free(bounds->large);
    *bounds = (struct duration_bounds){0};
}

void durations_release(struct durations *durations)
{
    bounds_release(&durations->lower);
    bounds_release(&durations->upper);
    *durations = (struct durations){0};
}

/* ------------------------------------------------------------------------------------------ adding */

static int bounds_reserve(struct duration_bounds *bounds)
{
    int r = array_reserve(&bounds->small, &bounds->small_capacity, bounds->small_count + 1);

    return r ? r : array_reserve(&bounds->large, &bounds->large_capacity, bounds->large_count + 1);
}

/* Behind bounds_reserve. */
static void bounds_add(struct duration_bounds *bounds, uint64_t ns)
{
    if (ns < UINT32_MAX)
        bounds->small[bounds->small_count++] = (uint32_t)ns;
    else
        bounds->large[bounds->large_count++] = ns;
}

static int bounds_copy(const struct duration_bounds *from, struct duration_bounds *to)
{
    if (array_reserve(&to->small, &to->small_capacity, from->small_count + 1) ||
        array_reserve(&to->large, &to->large_capacity, from->large_count + 1))
        return -ENOMEM;
    if (from->small_count)
        memcpy(to->small, from->small, from->small_count * sizeof(*from->small));
    if (from->large_count)
        memcpy(to->large, from->large, from->large_count * sizeof(*from->large));
    to->small_count = from->small_count;
    to->large_count = from->large_count;
    return 0;
}

static unsigned octave_of(uint64_t ns)
{
    return ns ? 63 - (unsigned)__builtin_clzll(ns) : 0;
}

int durations_add(struct durations *durations, struct time_range duration)
{
    bool exact = time_range_is_exact(duration), ranges = durations->exact < durations->count;

    if (bounds_reserve(&durations->lower))
        return -ENOMEM;
    if (!exact && !ranges && bounds_copy(&durations->lower, &durations->upper))
        return -ENOMEM;
    if ((!exact || ranges) && bounds_reserve(&durations->upper))
        return -ENOMEM;
    bounds_add(&durations->lower, duration.min_ns);
    if (!exact || ranges)
        bounds_add(&durations->upper, duration.max_ns);
    if (octave_of(duration.min_ns) == octave_of(duration.max_ns))
        durations->octaves[octave_of(duration.min_ns)]++;
    durations->count++;
    durations->exact += exact;
    return 0;
}

/* ------------------------------------------------------------------------------------------ percentiles */

#define DEFINE_SELECT(name, type) \
    /* The value that stands at `at` when all are sorted (Hoare's FIND, median of three): what is before it \
     * is no larger afterwards, what is behind it no smaller. */ \
    static type name(type *values, size_t count, size_t at) \
    { \
        size_t low = 0, high = count - 1; \
\
        while (low < high) { \
            type a = values[low], b = values[low + (high - low) / 2], c = values[high]; \
            type pivot = a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b); \
            size_t i = low, j = high; \
\
            while (i <= j) { \
                while (values[i] < pivot) \
                    i++; \
                while (values[j] > pivot) \
                    j--; \
                if (i <= j) { \
                    type moved = values[i]; \
                    values[i++] = values[j]; \
                    values[j] = moved; \
                    if (!j) \
                        break; \
                    j--; \
                } \
            } \
            if (at <= j) \
                high = j; \
            else if (at >= i) \
                low = i; \
            else \
                break; \
        } \
        return values[at]; \
    }

DEFINE_SELECT(select_small, uint32_t)
DEFINE_SELECT(select_large, uint64_t)

static uint64_t bounds_at(struct duration_bounds *bounds, size_t at)
{
    if (at < bounds->small_count)
        return select_small(bounds->small, bounds->small_count, at);
    return select_large(bounds->large, bounds->large_count, at - bounds->small_count);
}

static uint64_t bounds_percentile(struct duration_bounds *bounds, double percent)
{
    size_t count = bounds->small_count + bounds->large_count;
    double place = percent / 100 * (double)(count - 1), part;
    size_t before = (size_t)place;
    uint64_t low = bounds_at(bounds, before), high = low;

    part = place - (double)before;
    if (part > 0 && before + 1 < count)
        high = bounds_at(bounds, before + 1);
    if (high == UINT64_MAX)
        return part > 0 || low == UINT64_MAX ? UINT64_MAX : low;
    return low + (uint64_t)llround((double)(high - low) * part);
}

struct time_range durations_percentile(struct durations *durations, double percent)
{
    struct time_range range = {0};

    if (!durations->count)
        return range;
    range.min_ns = range.max_ns = bounds_percentile(&durations->lower, percent);
    if (durations->exact < durations->count)
        range.max_ns = bounds_percentile(&durations->upper, percent);
    return range;
}
