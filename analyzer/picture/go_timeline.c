/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/picture/go_timeline.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyzer/symbols/short_names.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/path.h"

#define MARGIN 20.0
#define TIMES 74.0 /* room for the times, left of the first column */
#define COLUMN_GAP 14.0
#define NARROWEST 110.0
#define ROW 26.0
#define BOX 20.0
#define TEXT_DROP 4.2 /* from the middle of a box to its base line */
#define HEAD 64.0     /* above the first row: title and heads */
#define FONT 11.0
#define NAME_WIDTH 44 /* characters in a box */

static const struct svg_font box_font = {.size = FONT, .anchor = SVG_MIDDLE};
static const struct svg_font head_font = {.size = FONT, .anchor = SVG_MIDDLE, .bold = true};

/* Okabe and Ito's colours on light tints of them; borders and dashes say the same without colours. */
enum look { LOOK_PLAIN, LOOK_LIFE, LOOK_BLOCKS, LOOK_GOES_ON, LOOK_DELAYED, LOOK_BAD, LOOKS };

static const struct svg_style looks[LOOKS] = {
    [LOOK_PLAIN] = {.fill = "#ffffff", .stroke = "#555555", .stroke_width = 1, .radius = 3},
    [LOOK_LIFE] = {.fill = "#eeeeee", .stroke = "#555555", .stroke_width = 1, .radius = 9},
    [LOOK_BLOCKS] =
        {.fill = "#fdf3d8", .stroke = "#a66f00", .stroke_width = 1.5, .dashes = "5 3", .radius = 3},
    [LOOK_GOES_ON] = {.fill = "#e3f3ec", .stroke = "#00664b", .stroke_width = 1, .radius = 3},
    [LOOK_DELAYED] =
        {.fill = "#f6e4ef", .stroke = "#8f3d70", .stroke_width = 1.5, .dashes = "1 2", .radius = 3},
    [LOOK_BAD] = {.fill = "#fce6d8", .stroke = "#b34700", .stroke_width = 3, .radius = 3},
};

struct drawing {
    struct svg *svg;
    const struct go_timeline *timeline;
    struct go_place_source places;
    const char *file;
    double *left, *width; /* of columns */
    double bottom, right;
};

static enum look look_of(const struct go_timeline_row *row)
{
    switch (row->moment) {
    case GO_MOMENT_BEGINS:
    case GO_MOMENT_ENDS:
    case GO_MOMENT_EXITS:
        return LOOK_LIFE;
    case GO_MOMENT_BLOCKS:
        return LOOK_BLOCKS;
    case GO_MOMENT_GOES_ON:
        return LOOK_GOES_ON;
    case GO_MOMENT_DELAYED:
        return LOOK_DELAYED;
    case GO_MOMENT_PANICS:
    case GO_MOMENT_FATAL:
    case GO_MOMENT_MISSED:
        return LOOK_BAD;
    default:
        return row->blocked ? LOOK_BLOCKS : LOOK_PLAIN;
    }
}

/* ------------------------------------------------------------------------------------------ room */

static void widen(double *width, const char *text)
{
    char cut[SHORT_NAME_SIZE(NAME_WIDTH)];
    double wanted;

    name_shorten(text, NAME_WIDTH, cut, sizeof(cut));
    wanted = svg_text_width(cut, &head_font) + 14;
    if (wanted > *width)
        *width = wanted;
}

/* What stands above and below a column. */
static int words_of(const struct drawing *drawing, const struct go_timeline_column *column, char **ret_head,
                    char **ret_end)
{
    int r = go_timeline_head(column, drawing->places, ret_head);

    return r ? r : go_timeline_end_words(drawing->timeline, column, drawing->places, drawing->file, ret_end);
}

static int measure_column(struct drawing *drawing, size_t at)
{
    const struct go_timeline_column *column = &drawing->timeline->columns[at];
    AUTO_FREE char *head = NULL;
    AUTO_FREE char *end = NULL;
    int r = words_of(drawing, column, &head, &end);

    if (r < 0)
        return r;
    drawing->width[at] = NARROWEST;
    widen(&drawing->width[at], head);
    widen(&drawing->width[at], end);
    return 0;
}

static int measure(struct drawing *drawing)
{
    const struct go_timeline *timeline = drawing->timeline;
    int r = 0;

    for (size_t i = 0; !r && i < timeline->column_count; i++)
        r = measure_column(drawing, i);
    for (size_t i = 0; !r && i < timeline->row_count; i++) {
        long at = go_timeline_column_of(timeline, timeline->rows[i].goroutine);
        AUTO_FREE char *text = NULL;

        r = go_timeline_words(timeline, &timeline->rows[i], drawing->places, drawing->file, &text);
        if (!r && at >= 0)
            widen(&drawing->width[at], text);
    }
    drawing->right = MARGIN + TIMES;
    for (size_t i = 0; i < timeline->column_count; i++) {
        drawing->left[i] = drawing->right;
        drawing->right += drawing->width[i] + COLUMN_GAP;
    }
    drawing->bottom = MARGIN + HEAD + ROW * (double)timeline->row_count;
    return r;
}

static double middle_of(const struct drawing *drawing, long column)
{
    return drawing->left[column] + drawing->width[column] / 2;
}

static double middle_of_row(size_t row)
{
    return MARGIN + HEAD + ROW * (double)row + ROW / 2;
}

/* ------------------------------------------------------------------------------------------ lines */

static void draw_life(const struct drawing *drawing, long column, double from, double to, bool waits)
{
    static const struct svg_style runs = {.stroke = "#555555", .stroke_width = 1.5};
    static const struct svg_style stands = {.stroke = "#a66f00", .stroke_width = 3, .dashes = "2 4"};
    double x = middle_of(drawing, column);

    if (to > from)
        svg_line(drawing->svg, (struct svg_point){x, from}, (struct svg_point){x, to},
                 waits ? &stands : &runs);
}

/* The line of a goroutine, from its first row to its last one, or to the bottom. */
static void draw_lives(const struct drawing *drawing)
{
    const struct go_timeline *timeline = drawing->timeline;

    for (size_t i = 0; i < timeline->column_count; i++) {
        const struct go_timeline_column *column = &timeline->columns[i];
        double from = timeline->earlier ? MARGIN + HEAD : drawing->bottom;
        bool waits = false, over = false;

        for (size_t at = 0; at < timeline->row_count; at++) {
            const struct go_timeline_row *row = &timeline->rows[at];

            if (row->goroutine != column->goroutine)
                continue;
            draw_life(drawing, (long)i, from, middle_of_row(at), waits);
            from = middle_of_row(at);
            waits = row->blocked || row->moment == GO_MOMENT_BLOCKS;
            over = row->moment == GO_MOMENT_ENDS;
        }
        if (!over)
            draw_life(drawing, (long)i, from, drawing->bottom, waits);
    }
}

static void draw_arrow(const struct drawing *drawing, struct svg_point from, struct svg_point to)
{
    static const struct svg_style line = {.stroke = "#00664b", .stroke_width = 1.2};
    static const struct svg_style head = {.fill = "#00664b"};
    char commands[96];

    svg_line(drawing->svg, from, to, &line);
    snprintf(commands, sizeof(commands), "M%d %d l%d -4 v8 z", (int)to.x, (int)to.y, to.x > from.x ? -7 : 7);
    svg_path(drawing->svg, commands, &head);
}

/* From the last row of who let a goroutine continue to where that one does. */
static void draw_wakes(const struct drawing *drawing)
{
    const struct go_timeline *timeline = drawing->timeline;

    for (size_t at = 0; at < timeline->row_count; at++) {
        const struct go_timeline_row *row = &timeline->rows[at];
        long to = go_timeline_column_of(timeline, row->goroutine);
        long from = row->other ? go_timeline_column_of(timeline, row->other) : -1;
        size_t cause = at;

        if (row->moment != GO_MOMENT_GOES_ON || from < 0 || to < 0 || from == to)
            continue;
        while (cause-- && timeline->rows[cause].goroutine != row->other)
            ;
        if (cause < at)
            draw_arrow(
                drawing, (struct svg_point){middle_of(drawing, from), middle_of_row(cause)},
                (struct svg_point){to > from ? drawing->left[to] : drawing->left[to] + drawing->width[to],
                                   middle_of_row(at)});
    }
}

/* ------------------------------------------------------------------------------------------ boxes */

static void draw_box(const struct drawing *drawing, double left, double width, double middle, enum look look,
                     const char *text, const struct svg_font *font)
{
    struct svg_box box = {left, middle - BOX / 2, width, BOX};
    char cut[SHORT_NAME_SIZE(NAME_WIDTH)];

    name_shorten(text, NAME_WIDTH, cut, sizeof(cut));
    svg_begin_group(drawing->svg, NULL, text);
    svg_rect(drawing->svg, &box, &looks[look]);
    svg_text(drawing->svg, (struct svg_point){left + width / 2, middle + TEXT_DROP}, cut, font);
    svg_end_group(drawing->svg);
}

/* A bar left of the times, along the rows that repeat, with how often. */
static void draw_stretch(const struct drawing *drawing, size_t at)
{
    static const struct svg_style bar = {.stroke = "#0072b2", .stroke_width = 2};
    static const struct svg_font font = {.size = 9, .colour = "#0072b2"};
    const struct go_timeline_row *row = &drawing->timeline->rows[at];
    double top = middle_of_row(at) - BOX / 2, bottom = middle_of_row(at + row->stretch - 1) + BOX / 2;
    char text[48];

    snprintf(text, sizeof(text), "%" PRIu64 " times", row->repeats);
    svg_line(drawing->svg, (struct svg_point){MARGIN - 4, top}, (struct svg_point){MARGIN - 4, bottom}, &bar);
    svg_text(drawing->svg, (struct svg_point){MARGIN, top + 2}, text, &font);
}

static int draw_row(const struct drawing *drawing, size_t at)
{
    static const struct svg_font time_font = {.size = FONT, .anchor = SVG_END, .colour = "#555555"};
    const struct go_timeline *timeline = drawing->timeline;
    const struct go_timeline_row *row = &timeline->rows[at];
    long column = go_timeline_column_of(timeline, row->goroutine);
    double middle = middle_of_row(at);
    AUTO_FREE char *text = NULL;
    char time[48];
    int r = go_timeline_words(timeline, row, drawing->places, drawing->file, &text);

    if (r < 0)
        return r;
    snprintf(time, sizeof(time), "%.3f ms", (double)(row->ns - timeline->from_ns) / 1e6);
    svg_text(drawing->svg, (struct svg_point){MARGIN + TIMES - 8, middle + TEXT_DROP}, time, &time_font);
    if (column >= 0)
        draw_box(drawing, drawing->left[column], drawing->width[column], middle, look_of(row), text,
                 &box_font);
    else
        draw_box(drawing, MARGIN + TIMES, drawing->right - MARGIN - TIMES - COLUMN_GAP, middle, look_of(row),
                 text, &box_font);
    if (row->stretch)
        draw_stretch(drawing, at);
    return 0;
}

static int draw_column_ends(const struct drawing *drawing, size_t at)
{
    const struct go_timeline_column *column = &drawing->timeline->columns[at];
    AUTO_FREE char *head = NULL;
    AUTO_FREE char *end = NULL;
    int r = words_of(drawing, column, &head, &end);

    if (r < 0)
        return r;
    draw_box(drawing, drawing->left[at], drawing->width[at], MARGIN + HEAD - ROW / 2, LOOK_LIFE, head,
             &head_font);
    draw_box(drawing, drawing->left[at], drawing->width[at], drawing->bottom + ROW / 2,
             column->stuck ? LOOK_BAD : LOOK_LIFE, end, &head_font);
    return 0;
}

static void draw_notes(const struct drawing *drawing)
{
    static const struct svg_font font = {.size = FONT};
    const struct go_timeline *timeline = drawing->timeline;
    char text[192];

    snprintf(text, sizeof(text), "%s%s", drawing->file ? "Lines without a file name are in " : "",
             drawing->file ? path_file_name(drawing->file) : "");
    svg_text(drawing->svg, (struct svg_point){MARGIN, MARGIN + 32}, text, &font);
    snprintf(text, sizeof(text), "Omitted: %" PRIu64 " earlier rows, %zu goroutines", timeline->earlier,
             timeline->left_out);
    if (timeline->earlier || timeline->left_out)
        svg_text(drawing->svg, (struct svg_point){MARGIN, drawing->bottom + 2 * ROW}, text, &font);
}

static int draw_all(const struct drawing *drawing)
{
    int r = 0;

    draw_lives(drawing);
    draw_wakes(drawing);
    for (size_t i = 0; !r && i < drawing->timeline->row_count; i++)
        r = draw_row(drawing, i);
    for (size_t i = 0; !r && i < drawing->timeline->column_count; i++)
        r = draw_column_ends(drawing, i);
    draw_notes(drawing);
    return r;
}

int go_timeline_svg(const struct go_timeline *timeline, struct go_place_source places, const char *title,
                    enum svg_form form, char **ret_svg)
{
    static const struct svg_font title_font = {.size = 15, .bold = true};
    AUTO_FREE double *left = calloc(timeline->column_count + 1, sizeof(*left));
    AUTO_FREE double *width = calloc(timeline->column_count + 1, sizeof(*width));
    struct drawing drawing = {.timeline = timeline, .places = places, .left = left, .width = width};
    double title_end = 2 * MARGIN + svg_text_width(title, &title_font);
    int r = left && width ? go_timeline_file(timeline, places, &drawing.file) : -ENOMEM;

    if (!r)
        r = measure(&drawing);
    if (r < 0)
        return r;
    if (drawing.right < title_end)
        drawing.right = title_end;
    drawing.svg = svg_new();
    svg_rect(drawing.svg, &(struct svg_box){0, 0, drawing.right + MARGIN, drawing.bottom + 3 * ROW},
             &(struct svg_style){.fill = "#ffffff"});
    svg_text(drawing.svg, (struct svg_point){MARGIN, MARGIN + 14}, title, &title_font);
    r = draw_all(&drawing);
    if (r < 0) {
        svg_free(drawing.svg);
        return r;
    }
    *ret_svg = svg_finish(drawing.svg, drawing.right + MARGIN, drawing.bottom + 3 * ROW, title,
                          "What each goroutine did, in time order from top to bottom.", form);
    return *ret_svg ? 0 : -ENOMEM;
}
