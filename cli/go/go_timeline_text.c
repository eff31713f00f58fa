/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "analyzer/symbols/short_names.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "base/text.h"
#include "cli/diff/diff_columns.h"
#include "cli/go/go_timeline.h"

enum {
    TIME_WIDTH = 10,
    GAP = 2,
    NARROWEST = 12, /* column */
    WIDEST = 44,
    LABEL_WIDTH = 30, /* of the goroutine in a list */
};

struct page {
    FILE *out;
    const struct go_timeline *timeline;
    struct go_place_source places;
    const char *file;     /* of all places */
    char **texts;         /* of the rows */
    char **heads, **ends; /* of the columns */
    size_t *widths;
};

size_t go_timeline_width(void)
{
    return diff_columns_width();
}

/* ------------------------------------------------------------------------------------------ texts */

static void free_texts(char **texts, size_t count)
{
    for (size_t i = 0; texts && i < count; i++)
        free(texts[i]);
    free(texts);
}

static void page_release(struct page *page)
{
    free_texts(page->texts, page->timeline->row_count);
    free_texts(page->heads, page->timeline->column_count);
    free_texts(page->ends, page->timeline->column_count);
    free(page->widths);
}

static int make_texts(struct page *page)
{
    const struct go_timeline *timeline = page->timeline;
    int r = go_timeline_file(timeline, page->places, &page->file);

    page->texts = calloc(timeline->row_count + 1, sizeof(*page->texts));
    page->heads = calloc(timeline->column_count + 1, sizeof(*page->heads));
    page->ends = calloc(timeline->column_count + 1, sizeof(*page->ends));
    page->widths = calloc(timeline->column_count + 1, sizeof(*page->widths));
    if (!page->texts || !page->heads || !page->ends || !page->widths)
        return -ENOMEM;
    for (size_t i = 0; !r && i < timeline->row_count; i++)
        r = go_timeline_words(timeline, &timeline->rows[i], page->places, page->file, &page->texts[i]);
    for (size_t i = 0; !r && i < timeline->column_count; i++) {
        const struct go_timeline_column *column = &timeline->columns[i];

        r = go_timeline_head(column, page->places, &page->heads[i]);
        if (!r)
            r = go_timeline_end_words(timeline, column, page->places, page->file, &page->ends[i]);
    }
    return r;
}

static void widen(size_t *width, const char *text)
{
    size_t wanted = text_width(text);

    if (wanted > WIDEST)
        wanted = WIDEST;
    if (wanted > *width)
        *width = wanted;
}

/* As wide as what is in them. Returns what all need together. */
static size_t measure(const struct page *page)
{
    const struct go_timeline *timeline = page->timeline;
    size_t sum = TIME_WIDTH;

    for (size_t i = 0; i < timeline->column_count; i++) {
        page->widths[i] = NARROWEST;
        widen(&page->widths[i], page->heads[i]);
        widen(&page->widths[i], page->ends[i]);
    }
    for (size_t i = 0; i < timeline->row_count; i++) {
        long at = go_timeline_column_of(timeline, timeline->rows[i].goroutine);

        if (at >= 0)
            widen(&page->widths[at], page->texts[i]);
    }
    for (size_t i = 0; i < timeline->column_count; i++)
        sum += GAP + page->widths[i];
    return sum;
}

/* ------------------------------------------------------------------------------------------ printing */

static void put_padded(const struct page *page, const char *text, size_t width, bool last)
{
    char cut[SHORT_NAME_SIZE(WIDEST)];

    if (text_width(text) > width) {
        name_shorten(text, width, cut, sizeof(cut));
        text = cut;
    }
    text_print(page->out, "%*s%s", GAP, "", text);
    if (!last)
        text_print(page->out, "%*s", (int)(width - text_width(text)), "");
}

static void put_all(const struct page *page, const char *first, char *const *cells)
{
    text_print(page->out, "%*s", TIME_WIDTH, first);
    for (size_t i = 0; i < page->timeline->column_count; i++)
        put_padded(page, cells[i], page->widths[i], i + 1 == page->timeline->column_count);
    putc('\n', page->out);
}

static void put_time(const struct page *page, const struct go_timeline_row *row)
{
    text_print(page->out, "%*.3f", TIME_WIDTH, (double)(row->ns - page->timeline->from_ns) / 1e6);
}

static void put_in_column(const struct page *page, size_t at)
{
    long column = go_timeline_column_of(page->timeline, page->timeline->rows[at].goroutine);
    size_t indent = 0;

    for (long i = 0; i < column; i++)
        indent += GAP + page->widths[i];
    text_print(page->out, "%*s", (int)indent, "");
    if (column >= 0)
        put_padded(page, page->texts[at], page->widths[column], true);
    else
        text_print(page->out, "%*s%s", GAP, "", page->texts[at]);
}

static void put_in_list(const struct page *page, size_t at)
{
    const struct go_timeline_row *row = &page->timeline->rows[at];
    long column = go_timeline_column_of(page->timeline, row->goroutine);
    char label[SHORT_NAME_SIZE(LABEL_WIDTH)] = "";

    if (column >= 0)
        name_shorten(page->heads[column], LABEL_WIDTH, label, sizeof(label));
    text_print(page->out, "%*s%-*s%*s%s", GAP, "", LABEL_WIDTH, label, GAP, "", page->texts[at]);
}

static void put_rows(const struct page *page, bool as_list)
{
    const struct go_timeline *timeline = page->timeline;
    size_t until = 0;
    uint64_t times = 0;

    for (size_t i = 0; i < timeline->row_count; i++) {
        const struct go_timeline_row *row = &timeline->rows[i];

        if (row->stretch && i >= until) {
            until = i + row->stretch;
            times = row->repeats;
        }
        put_time(page, row);
        if (as_list)
            put_in_list(page, i);
        else
            put_in_column(page, i);
        if (row->stretch && i + row->stretch != until)
            text_print(page->out, " (%" PRIu64 " times, with the %u below)", row->repeats, row->stretch - 1);
        putc('\n', page->out);
        if (times && i + 1 == until) {
            text_print(page->out, "%*s  -- %s %" PRIu64 " times more --\n", TIME_WIDTH, "",
                       timeline->rows[i].stretch == 1 ? "this" : "these rows", times - 1);
            times = 0;
        }
    }
}

static void put_list_ends(const struct page *page)
{
    for (size_t i = 0; i < page->timeline->column_count; i++) {
        char label[SHORT_NAME_SIZE(LABEL_WIDTH)];

        name_shorten(page->heads[i], LABEL_WIDTH, label, sizeof(label));
        text_print(page->out, "%*s%*s%-*s%*s%s\n", TIME_WIDTH, "at the end", GAP, "", LABEL_WIDTH, label, GAP,
                   "", page->ends[i]);
    }
}

static void put_head(const struct page *page, const struct go_judged *judged)
{
    const struct go_timeline *timeline = page->timeline;

    text_print(page->out, "Timeline of the goroutines of process %s, in milliseconds",
               judged->program->label);
    if (page->file)
        text_print(page->out, "; lines without a file name are in %s", path_file_name(page->file));
    putc('\n', page->out);
    if (timeline->left_out)
        text_print(page->out, "%zu more goroutines (--all shows them)\n", timeline->left_out);
    if (timeline->earlier)
        text_print(page->out, "%" PRIu64 " earlier rows are omitted (--all shows them)\n", timeline->earlier);
}

int go_timeline_print(FILE *out, const struct go_timeline *timeline, const struct go_judged *judged,
                      size_t width)
{
    CLEANUP(page_release)
    struct page page = {out, timeline, go_places_source(judged->places), NULL, NULL, NULL, NULL, NULL};
    bool as_list;
    int r = make_texts(&page);

    if (r < 0)
        return r;
    as_list = measure(&page) > width;
    put_head(&page, judged);
    if (!as_list)
        put_all(&page, "", page.heads);
    put_rows(&page, as_list);
    if (as_list)
        put_list_ends(&page);
    else
        put_all(&page, "at the end", page.ends);
    return 0;
}

int go_timeline_text(FILE *out, struct tracestore *store, const struct go_judged *judged,
                     const struct go_timeline_options *options, size_t width, struct error *err)
{
    static const struct go_timeline_options usual = {0};
    CLEANUP(go_timeline_release) struct go_timeline timeline = {0};
    int r = go_timeline_read(store, judged->program, go_places_source(judged->places), judged->replay,
                             &judged->verdict, options ? options : &usual, &timeline, err);

    if (r < 0)
        return r;
    r = go_timeline_print(out, &timeline, judged, width);
    return r < 0 ? error_set(err, r, NULL, "printing the timeline of goroutines") : 0;
}
