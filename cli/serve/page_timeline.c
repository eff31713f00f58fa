/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The page "/runs/N/timeline": the calls of threads from one moment to another, as a flame chart for each thread. Only
 * the events of that time are read. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/picture/svg.h"
#include "analyzer/report/html.h"
#include "analyzer/times/time_text.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "cli/common/output.h"
#include "cli/serve/page.h"
#include "cli/serve/print.h"

enum { THREADS_MAX = 30, EVENTS_MAX = 20000, LEVELS_MAX = 24, BARS_MAX = 1500, PARTS = 10 };

#define LABEL_WIDTH 90.0
#define CHART_WIDTH 1000.0
#define LEVEL_HEIGHT 11.0
#define GAP 8.0
#define LEAST_WIDTH 0.4  /* pixels; a shorter call is drawn where no other one stands */
#define WIDE_ENOUGH 30.0 /* for a name */

static const char threads_sql[] =
    "SELECT thread_id, label, coalesce(ended_ns, 0) FROM threads WHERE run_id = ?1 ORDER BY thread_id LIMIT ?2 "
    "OFFSET ?3";
static const char events_sql[] =
    "SELECT e.ns, e.kind, e.depth, coalesce(f.demangled, f.name, '(unknown function)'), e.ns_error = 0 FROM events e "
    "LEFT JOIN functions f ON f.function_id = e.function_id "
    "WHERE e.run_id = ?1 AND e.thread_id = ?2 AND e.ns BETWEEN ?3 AND ?4 LIMIT ?5";

struct bar {
    double from, to; /* pixels from the chart's left */
    int64_t level;
    bool exact; /* both ends are known, and have times of their own */
    char *name;
};

struct open_bar {
    double from;
    bool exact; /* so far */
    char *name; /* NULL: nothing is open there */
};

/* One thread's part of the picture. */
struct chart {
    uint64_t from_ns, to_ns;
    struct bar *bars;
    size_t count, capacity, undrawn;
    struct open_bar open[LEVELS_MAX];
    double drawn_to[LEVELS_MAX]; /* the end of the last bar of each level */
    double last;                 /* the last event */
    int64_t deepest;
    bool cut; /* there are more events than were read */
};

static void chart_release(struct chart *chart)
{
    for (size_t i = 0; i < chart->count; i++)
        free(chart->bars[i].name);
    for (size_t i = 0; i < LEVELS_MAX; i++)
        free(chart->open[i].name);
    free(chart->bars);
}

static double place_of(const struct chart *chart, uint64_t ns)
{
    return (double)(ns - chart->from_ns) / (double)(chart->to_ns - chart->from_ns) * CHART_WIDTH;
}

/* Ends what is open at this level and those inside it. `exact`: there is a return of this level with its own time. */
static void close_levels(struct chart *chart, int64_t level, double at, bool exact)
{
    for (int64_t i = level; i < LEVELS_MAX; i++) {
        struct open_bar *open = &chart->open[i];
        struct bar bar = {open->from, at, i, open->exact && exact && i == level, open->name};

        open->name = NULL;
        if (!bar.name)
            continue;
        if (bar.to - bar.from < LEAST_WIDTH && bar.from < chart->drawn_to[i] + LEAST_WIDTH) {
            free(bar.name);
            continue;
        }
        if (chart->count == BARS_MAX || array_reserve(&chart->bars, &chart->capacity, chart->count + 1)) {
            chart->undrawn++;
            free(bar.name);
            continue;
        }
        chart->drawn_to[i] = bar.to;
        chart->deepest = i > chart->deepest ? i : chart->deepest;
        chart->bars[chart->count++] = bar;
    }
}

/* What returned after lost events may be a later call. */
static void doubt_open(struct chart *chart)
{
    for (size_t i = 0; i < LEVELS_MAX; i++)
        chart->open[i].exact = false;
}

/* -ENOMEM. A return without its call ends one that began before. */
static int add_event(struct chart *chart, sqlite3_stmt *row)
{
    double at = place_of(chart, (uint64_t)sqlite3_column_int64(row, 0));
    bool is_call = !strcmp(cli_text(row, 1), "call"), is_return = !strcmp(cli_text(row, 1), "return");
    bool exact = sqlite3_column_int(row, 4);
    int64_t level = sqlite3_column_int64(row, 2);

    chart->last = at;
    if (!is_call && !is_return) {
        doubt_open(chart);
        return 0;
    }
    if (level >= LEVELS_MAX) {
        chart->undrawn += is_call;
        return 0;
    }
    if (is_call || !chart->open[level].name) {
        close_levels(chart, level, at, false);
        chart->open[level] = (struct open_bar){is_call ? at : 0, is_call && exact, strdup(cli_text(row, 3))};
        if (!chart->open[level].name)
            return -ENOMEM;
    }
    if (is_return)
        close_levels(chart, level, at, exact);
    return 0;
}

/* Of a thread whose end was seen what is open ends with it. */
static double end_of(const struct chart *chart, uint64_t ended_ns)
{
    return ended_ns > chart->from_ns && ended_ns < chart->to_ns ? place_of(chart, ended_ns) : CHART_WIDTH;
}

static int read_chart(const struct print *print, int64_t thread_id, uint64_t ended_ns, struct chart *chart,
                      struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    int64_t count = 0;
    int r = cli_prepare(print->store, &row, err, events_sql, 5, print->route->runs[0], thread_id,
                        (int64_t)chart->from_ns, (int64_t)chart->to_ns, (int64_t)EVENTS_MAX);

    while (r == 0 && (r = cli_step(row, "ntntn", err)) == 0) {
        count++;
        if (add_event(chart, row))
            return error_no_memory(err);
    }
    chart->cut = count == EVENTS_MAX;
    close_levels(chart, 0, chart->cut ? chart->last : end_of(chart, ended_ns), false);
    return r < 0 ? r : 0;
}

/* The same colour for the same name, readable below black text. */
static const char *colour_of(const char *name)
{
    static const char *const colours[] = {"#9ecae9", "#f9c58d", "#a5d6a0", "#e8b4d0", "#f2e08a", "#c5b8e3"};
    unsigned hash = 5381;

    for (const char *at = name; *at; at++)
        hash = hash * 33 + (unsigned char)*at;
    return colours[hash % ARRAY_SIZE(colours)];
}

static void draw_bar(struct svg *svg, const struct chart *chart, const struct bar *bar, double y)
{
    double width = bar->to - bar->from < LEAST_WIDTH ? LEAST_WIDTH : bar->to - bar->from;
    double ns = (bar->to - bar->from) / CHART_WIDTH * (double)(chart->to_ns - chart->from_ns);
    AUTO_FREE char *title = NULL, *name = NULL;
    char time[TIME_TEXT_SIZE];
    size_t room = (size_t)(width / (9 * SVG_MONOSPACE_WIDTH));

    time_text((uint64_t)ns, time);
    if (asprintf(&title, "%s, %s%s", bar->name, bar->exact ? "about " : "time not known exactly",
                 bar->exact ? time : "") < 0)
        title = NULL;
    svg_begin_group(svg, NULL, title);
    svg_rect(svg,
             &(struct svg_box){LABEL_WIDTH + bar->from, y + (double)bar->level * LEVEL_HEIGHT, width,
                               LEVEL_HEIGHT - 1},
             &(struct svg_style){.fill = colour_of(bar->name), .opacity = bar->exact ? 0 : 0.5});
    name = width > WIDE_ENOUGH ? strndup(bar->name, room) : NULL;
    if (name)
        svg_text(
            svg,
            (struct svg_point){LABEL_WIDTH + bar->from + 2, y + (double)(bar->level + 1) * LEVEL_HEIGHT - 3},
            name, &(struct svg_font){.size = 9, .monospace = true});
    svg_end_group(svg);
}

/* Returns the height. */
static double draw_chart(struct svg *svg, const struct chart *chart, const char *label, double y)
{
    svg_text(svg, (struct svg_point){0, y + LEVEL_HEIGHT - 2}, label, NULL);
    svg_line(svg, (struct svg_point){0, y - GAP / 2},
             (struct svg_point){LABEL_WIDTH + CHART_WIDTH, y - GAP / 2},
             &(struct svg_style){.stroke = "#ddd", .stroke_width = 1});
    for (size_t i = 0; i < chart->count; i++)
        draw_bar(svg, chart, &chart->bars[i], y);
    return (double)(chart->deepest + 1) * LEVEL_HEIGHT + GAP;
}

/* ------------------------------------------------------------------------------------------ the ways to other times */

/* Without other times, from the first event to the last one: programs often begin late in their runs. */
static int find_range(const struct print *print, const struct tracestore_run *run, uint64_t all,
                      uint64_t *ret_from, uint64_t *ret_to, struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    uint64_t first, last;
    int r = cli_prepare(
        print->store, &row, err,
        "SELECT coalesce(min(first_ns), 0), coalesce(max(last_ns), 0) FROM segments WHERE run_id = ?1", 1,
        run->run_id);

    *ret_from = print->route->from_ns;
    *ret_to = print->route->to_ns && print->route->to_ns < all ? print->route->to_ns : all;
    if (r == 0)
        r = cli_step(row, "nn", err);
    if (r < 0 || print->route->from_ns || print->route->to_ns || !run->ended_ns)
        return r < 0 ? r : 0;
    first = (uint64_t)sqlite3_column_int64(row, 0);
    last = (uint64_t)sqlite3_column_int64(row, 1);
    if (first >= run->started_ns && last > first && last - run->started_ns < all) {
        *ret_from = first - run->started_ns;
        *ret_to = last - run->started_ns;
    }
    return 0;
}

static void put_link(const struct print *print, const char *words, uint64_t from, uint64_t to)
{
    fprintf(print->out, "<li><a href=\"/runs/%s/timeline?from=%" PRIu64 "&amp;to=%" PRIu64 "\">%s</a></li>",
            print->runs[0], from, to, words);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void put_ways(const struct print *print, uint64_t from, uint64_t to, uint64_t all)
{
    uint64_t span = to - from, half = span / 2;
    FILE *out = print->out;

    fputs("<nav aria-label=\"Other times\"><ol>", out);
    fprintf(out, "<li><a href=\"/runs/%s/timeline\">all calls</a></li>", print->runs[0]);
    put_link(print, "zoom out", from > half ? from - half : 0, least(to + half, all));
    if (from)
        put_link(print, "earlier", from > span ? from - span : 0, from > span ? from : least(span, all));
    if (to < all)
        put_link(print, "later", to, least(to + span, all));
    fputs("</ol></nav>\n<nav aria-label=\"Zoom into a part\"><ol class=\"parts\">", out);
    for (uint64_t i = 0; span >= PARTS && i < PARTS; i++) {
        char time[TIME_TEXT_SIZE];

        time_text(from + span / PARTS * i, time);
        put_link(print, time, from + span / PARTS * i, i + 1 == PARTS ? to : from + span / PARTS * (i + 1));
    }
    fputs("</ol></nav>\n", out);
}

/* ------------------------------------------------------------------------------------------ the page */

struct totals {
    size_t threads, undrawn, cut;
    double height;
};

static int draw_threads(const struct print *print, struct svg *svg, uint64_t from_ns, uint64_t to_ns,
                        struct totals *totals, struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    int r = cli_prepare(print->store, &row, err, threads_sql, 3, print->route->runs[0], (int64_t)THREADS_MAX,
                        (int64_t)print->route->page * THREADS_MAX);

    while (r == 0 && (r = cli_step(row, "itn", err)) == 0) {
        CLEANUP(chart_release) struct chart chart = {.from_ns = from_ns, .to_ns = to_ns};

        for (size_t i = 0; i < LEVELS_MAX; i++)
            chart.drawn_to[i] = -1;
        r = read_chart(print, sqlite3_column_int64(row, 0), (uint64_t)sqlite3_column_int64(row, 2), &chart,
                       err);
        if (r < 0)
            return r;
        totals->threads++;
        totals->undrawn += chart.undrawn;
        totals->cut += chart.cut;
        totals->height += draw_chart(svg, &chart, cli_text(row, 1), totals->height);
    }
    return r < 0 ? r : 0;
}

static void put_notes(const struct print *print, const struct totals *totals, uint64_t from, uint64_t to)
{
    FILE *out = print->out;
    unsigned page = print->route->page;

    if (totals->cut)
        html_paragraph(out, "summary",
                       "Only the first %d events of this time are drawn in %zu of the threads: zoom in.",
                       EVENTS_MAX, totals->cut);
    if (totals->undrawn)
        html_paragraph(out, "note", "%zu calls are not drawn: they are too many, or deeper than %d levels.",
                       totals->undrawn, LEVELS_MAX);
    html_paragraph(out, "note", "Calls that began before this time and end after it are not drawn.");
    if (totals->threads == THREADS_MAX)
        fprintf(out,
                "<p><a href=\"/runs/%s/timeline?from=%" PRIu64 "&amp;to=%" PRIu64
                "&amp;page=%u\">Next threads</a></p>\n",
                print->runs[0], from, to, page + 1);
}

static int put_picture(const struct print *print, const struct tracestore_run *run, uint64_t from,
                       uint64_t to, struct error *err)
{
    struct totals totals = {.height = GAP};
    struct svg *svg = svg_new();
    AUTO_FREE char *text = NULL;
    char begin[TIME_TEXT_SIZE], end[TIME_TEXT_SIZE];
    int r = draw_threads(print, svg, run->started_ns + from, run->started_ns + to, &totals, err);

    if (r < 0) {
        svg_free(svg);
        return r;
    }
    text = svg_finish(svg, LABEL_WIDTH + CHART_WIDTH, totals.height, "Calls of threads over time", NULL,
                      SVG_INLINE);
    if (!text)
        return error_no_memory(err);
    time_text(from, begin);
    time_text(to, end);
    html_figure(
        print->out, text,
        "From %s to %s after the beginning of the run. A call is as wide as it took; the beginning or the end of "
        "a pale one is not known exactly.",
        begin, end);
    put_notes(print, &totals, from, to);
    return 0;
}

int print_timeline(const struct print *print, struct error *err)
{
    AUTO_RUN struct tracestore_run run = {0};
    uint64_t from, to, all, end;
    int r = tracestore_find_run(print->store, print->runs[0], &run, err);

    if (r < 0)
        return r;
    end = run.ended_ns ? run.ended_ns : clock_ns(CLOCK_REALTIME);
    all = end > run.started_ns ? end - run.started_ns : 1;
    r = find_range(print, &run, all, &from, &to, err);
    if (r < 0)
        return r;
    if (from >= to)
        return error_say(err, -EINVAL, "from is not before to, or not before the end of the run.");
    page_begin(print->out, "Time line of run %s: %s", print->runs[0], run.name);
    fprintf(print->out, "<p><a href=\"/runs/%s\">Back to the run</a></p>\n", print->runs[0]);
    put_ways(print, from, to, all);
    r = put_picture(print, &run, from, to, err);
    page_end(print->out);
    return r;
}
