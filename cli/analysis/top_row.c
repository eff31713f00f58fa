/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/analysis/top_row.h"

#include <inttypes.h>
#include <stdlib.h>

#include "analyzer/times/time_text.h"
#include "base/text.h"
#include "cli/common/output.h"

void top_row_release(struct top_row *row)
{
    free(row->name);
    free(row->spelled);
    free(row->image);
    free(row->file);
    *row = (struct top_row){0};
}

/* ------------------------------------------------------------------------------------------ JSON */

static json_t *bound_json(const struct function_time *time, uint64_t ns)
{
    return function_time_is_known(time) && ns != UINT64_MAX ? cli_json_count(ns) : json_null();
}

static json_t *exact_json(const struct function_time *time, struct time_range range)
{
    return time_range_is_exact(range) ? bound_json(time, range.min_ns) : json_null();
}

static json_t *estimate_json(double number)
{
    return number > 0 ? json_real(number) : json_null();
}

json_t *top_row_json(const struct top_row *row, uint64_t all)
{
    const struct function_time *time = &row->time;
    bool exact = function_time_is_exact(time);
    json_t *json = json_pack(
        "{s:o, s:o, s:o, s:o, s:I, s:I, s:f, s:I, s:b, s:o, s:o, s:I, s:b}", "function",
        cli_json_text(row->name), "name", cli_json_text(row->name), "image", cli_json_text(row->image),
        "file", cli_json_text(row->file), "line", (json_int_t)row->line, "calls", (json_int_t)row->calls,
        "percent", all ? 100.0 * (double)row->calls / (double)all : 0.0, "threads", (json_int_t)row->threads,
        "muted", row->muted, "missed_calls", estimate_json(row->missed), "missed_per_second",
        estimate_json(row->missed_per_second), "returned", (json_int_t)time->returned, "exact", exact);

    json_object_set_new(json, "total_ns", exact_json(time, time->total));
    json_object_set_new(json, "self_ns", exact_json(time, time->self));
    json_object_set_new(json, "p50_ns", exact_json(time, time->p50));
    json_object_set_new(json, "p90_ns", exact_json(time, time->p90));
    json_object_set_new(json, "p99_ns", exact_json(time, time->p99));
    json_object_set_new(json, "min_ns", bound_json(time, exact ? time->shortest.min_ns : time->total.min_ns));
    json_object_set_new(json, "max_ns", bound_json(time, exact ? time->longest.max_ns : time->total.max_ns));
    json_object_set_new(json, "total_min_ns", bound_json(time, time->total.min_ns));
    json_object_set_new(json, "total_max_ns", bound_json(time, time->total.max_ns));
    json_object_set_new(json, "self_min_ns", bound_json(time, time->self.min_ns));
    json_object_set_new(json, "self_max_ns", bound_json(time, time->self.max_ns));
    return json;
}

static uint64_t octave_from(int octave)
{
    return octave ? 1ull << octave : 0;
}

static uint64_t octave_to(int octave)
{
    return octave == DURATION_OCTAVES - 1 ? UINT64_MAX : (2ull << octave) - 1;
}

json_t *top_row_json_histogram(const struct top_row *row, uint64_t all)
{
    const struct durations *durations = &row->time.durations;
    json_t *json = top_row_json(row, all), *histogram = json_array();
    size_t placed = 0;

    for (int i = 0; i < DURATION_OCTAVES; i++) {
        placed += durations->octaves[i];
        if (durations->octaves[i])
            json_array_append_new(histogram,
                                  json_pack("{s:o, s:o, s:I}", "from_ns", cli_json_count(octave_from(i)),
                                            "to_ns", cli_json_count(octave_to(i)), "calls",
                                            (json_int_t)durations->octaves[i]));
    }
    json_object_set_new(json, "histogram", histogram);
    json_object_set_new(json, "unplaced", cli_json_count(durations->count - placed));
    return json;
}

/* ------------------------------------------------------------------------------------------ text */

enum { BAR_WIDTH = 50 };

static void print_time(const char *what, struct time_range range)
{
    char text[TIME_TEXT_SIZE];

    time_range_text(range, text);
    text_print(stdout, "  %-10s%s\n", what, text);
}

static void print_bars(const struct durations *durations)
{
    size_t most = 0, placed = 0;
    int first = DURATION_OCTAVES, last = -1;

    for (int i = 0; i < DURATION_OCTAVES; i++) {
        if (!durations->octaves[i])
            continue;
        first = i < first ? i : first;
        last = i;
        placed += durations->octaves[i];
        most = durations->octaves[i] > most ? durations->octaves[i] : most;
    }
    if (placed)
        text_print(stdout, "\n  %10s  %14s\n", "FROM", "CALLS");
    for (int i = first; i <= last; i++) {
        size_t calls = durations->octaves[i];
        char from[TIME_TEXT_SIZE];
        int length = (int)((double)calls / (double)most * BAR_WIDTH);

        time_text(octave_from(i), from);
        text_print(stdout, "  %10s  %'14" PRIu64 "  ", from, (uint64_t)calls);
        for (int column = 0; column < length || (column < 1 && calls); column++)
            putchar('#');
        putchar('\n');
    }
    if (placed < durations->count)
        text_print(stdout, "  %'" PRIu64 " calls have ranges of time that are too wide for the chart.\n",
                   (uint64_t)(durations->count - placed));
}

void top_row_print(const struct top_row *row)
{
    const struct function_time *time = &row->time;

    text_print(stdout, "%s (%s)\n", row->name, row->image);
    text_print(stdout, "  %-10s%'" PRIu64 ", of which %'" PRIu64 " returned\n", "calls", row->calls,
               time->returned);
    if (!function_time_is_known(time)) {
        puts("  times     unknown: the run has no times, or no call returned");
        return;
    }
    if (row->missed > 0)
        text_print(stdout,
                   "  %-10sabout %'" PRIu64 " more calls were not recorded; times are of those that were\n",
                   "", (uint64_t)row->missed);
    print_time("total", time->total);
    print_time("self", time->self);
    print_time("shortest", time->shortest);
    print_time("p50", time->p50);
    print_time("p90", time->p90);
    print_time("p99", time->p99);
    print_time("longest", time->longest);
    print_bars(&time->durations);
}
