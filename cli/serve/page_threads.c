/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/serve/page_threads.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "analyzer/picture/svg.h"
#include "analyzer/report/html.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "cli/serve/page.h"

enum { PICTURE_MAX = 200, TABLE_MAX = 500 };

#define LABEL_WIDTH 150.0
#define LINE_WIDTH 700.0
#define ROW_HEIGHT 16.0

/* The time of a document, "2026-01-31T12:00:00.123456789Z", in nanoseconds; 0: none. */
static uint64_t parse_time(const char *text)
{
    struct tm tm = {0};
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    double fraction = end && *end == '.' ? strtod(end, NULL) : 0;

    return end ? (uint64_t)timegm(&tm) * 1000000000 + (uint64_t)(fraction * 1e9) : 0;
}

/* From when to when there were threads. */
static void find_span(const json_t *threads, uint64_t *ret_begin, uint64_t *ret_end)
{
    const json_t *thread;
    size_t i;

    *ret_begin = UINT64_MAX;
    *ret_end = 0;
    json_array_foreach(threads, i, thread)
    {
        uint64_t begin = parse_time(page_member(thread, "started")),
                 end = parse_time(page_member(thread, "ended"));

        *ret_begin = begin < *ret_begin ? begin : *ret_begin;
        *ret_end = begin > *ret_end ? begin : *ret_end;
        *ret_end = end > *ret_end ? end : *ret_end;
    }
}

static void draw_thread(struct svg *svg, const json_t *thread, double y, uint64_t begin, uint64_t end)
{
    uint64_t started = parse_time(page_member(thread, "started")),
             ended = parse_time(page_member(thread, "ended"));
    double scale = end > begin ? LINE_WIDTH / (double)(end - begin) : 0;
    double x = LABEL_WIDTH + (double)(started - begin) * scale;
    double width = (double)((ended > started ? ended : end) - started) * scale;
    AUTO_FREE char *title = NULL;

    if (asprintf(&title, "%s %s, %s to %s", page_member(thread, "thread"), page_member(thread, "name"),
                 page_member(thread, "started"),
                 ended ? page_member(thread, "ended") : "the end of the run") < 0)
        title = NULL;
    svg_begin_group(svg, NULL, title);
    svg_text(svg, (struct svg_point){0, y + ROW_HEIGHT - 4}, page_member(thread, "thread"), NULL);
    svg_rect(svg, &(struct svg_box){x, y + 2, width < 1 ? 1 : width, ROW_HEIGHT - 4},
             &(struct svg_style){.fill = "#0072b2", .stroke = ended ? NULL : "#d55e00", .stroke_width = 1});
    svg_end_group(svg);
}

static int put_picture(FILE *out, const json_t *threads, struct error *err)
{
    size_t count = json_array_size(threads), shown = count < PICTURE_MAX ? count : PICTURE_MAX;
    struct svg *svg = svg_new();
    AUTO_FREE char *text = NULL;
    uint64_t begin, end;

    find_span(threads, &begin, &end);
    for (size_t i = 0; i < shown; i++)
        draw_thread(svg, json_array_get(threads, i), (double)i * ROW_HEIGHT, begin, end);
    text = svg_finish(svg, LABEL_WIDTH + LINE_WIDTH + 4, (double)shown * ROW_HEIGHT + 4,
                      "Time line of threads", NULL, SVG_INLINE);
    if (!text)
        return error_no_memory(err);
    html_figure(out, text, "From the first event of a thread to its end, over %.3f ms%s.",
                (double)(end - begin) / 1e6, count > shown ? "; the first 200 threads" : "");
    return 0;
}

static void put_table(FILE *out, const json_t *threads)
{
    static const char *const titles[] = {"Thread", "Name", ">Events", "Returns", ">TID"};
    struct html_table table;
    const json_t *thread;
    size_t i;

    html_table_begin(&table, out, "Threads with events", titles, ARRAY_SIZE(titles));
    json_array_foreach(threads, i, thread)
    {
        if (i == TABLE_MAX)
            break;
        html_cell(&table, page_member(thread, "thread"));
        html_cell(&table, page_member(thread, "name"));
        html_cell_count(&table, (uint64_t)page_number(thread, "events", 0));
        html_cell(&table, page_member(thread, "returns"));
        html_cell_format(&table, "%lld", (long long)page_number(thread, "tid", 0));
    }
    html_table_end(&table);
    if (json_array_size(threads) > TABLE_MAX)
        html_paragraph(out, "note", "The first %d of %zu threads are listed.", TABLE_MAX,
                       json_array_size(threads));
}

int page_threads_put(FILE *out, const json_t *run, struct error *err)
{
    const json_t *threads = json_object_get(run, "threads");
    int r;

    if (!json_array_size(threads)) {
        html_paragraph(out, NULL, "No thread has events.");
        return 0;
    }
    r = put_picture(out, threads, err);
    if (r >= 0)
        put_table(out, threads);
    return r;
}
