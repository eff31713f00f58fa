/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/picture/cascade_chain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/cascade/report.h"
#include "analyzer/picture/svg.h"
#include "base/cleanup.h"
#include "base/path.h"

#define MARGIN 20.0
#define COLUMN 260.0
#define BOX_WIDTH 230.0
#define BOX_HEIGHT 24.0
#define ROW 56.0
#define HEAD 46.0
#define FONT 11.0

enum { MOST_COLUMNS = SEARCH_MOST_LINKS + 2 };

/* Okabe and Ito's colours on light tints; borders and dashes say the same without colours. */
static const struct svg_style
    source_look = {.fill = "#fce6d8", .stroke = "#b34700", .stroke_width = 3, .radius = 3},
    holds_look = {.fill = "#e3f3ec", .stroke = "#00664b", .stroke_width = 1, .radius = 3},
    waits_look = {.fill = "#fdf3d8", .stroke = "#a66f00", .stroke_width = 1.5, .dashes = "5 3", .radius = 3},
    sink_look = {.fill = "#f6e4ef", .stroke = "#8f3d70", .stroke_width = 3, .radius = 3},
    may_look = {.stroke = "#a66f00", .stroke_width = 1.5, .dashes = "5 3"},
    must_look = {.stroke = "#00664b", .stroke_width = 1.5};

struct columns {
    const struct cascade_place *places[MOST_COLUMNS];
    size_t count;
};

static size_t column_of(struct columns *columns, const struct cascade_place *place)
{
    for (size_t i = 0; i < columns->count; i++)
        if (!strcmp(columns->places[i]->thread, place->thread))
            return i;
    if (columns->count == MOST_COLUMNS)
        return MOST_COLUMNS - 1;
    columns->places[columns->count] = place;
    return columns->count++;
}

static struct svg_point centre_of(struct columns *columns, const struct cascade_place *place, double y)
{
    return (struct svg_point){MARGIN + COLUMN * (double)column_of(columns, place) + BOX_WIDTH / 2, y};
}

static void draw_box(struct svg *svg, struct svg_point centre, const char *text, const char *title,
                     const struct svg_style *style)
{
    const struct svg_box box = {centre.x - BOX_WIDTH / 2, centre.y - BOX_HEIGHT / 2, BOX_WIDTH, BOX_HEIGHT};

    svg_begin_group(svg, NULL, title);
    svg_rect(svg, &box, style);
    svg_text(svg, (struct svg_point){centre.x, centre.y + 4}, text,
             &(struct svg_font){.size = FONT, .anchor = SVG_MIDDLE});
    svg_end_group(svg);
}

/* "copy_file (store.c:41)", cut to what a box holds. */
static void place_text(const struct cascade_place *place, char *text, size_t size)
{
    if (*place->file && place->line)
        snprintf(text, size, "%.24s (%.12s:%d)", place->function, path_file_name(place->file), place->line);
    else
        snprintf(text, size, "%.38s", place->function);
}

static void draw_place(struct svg *svg, struct columns *columns, const struct cascade_place *place, double y,
                       const struct svg_style *style)
{
    char text[96];

    place_text(place, text, sizeof(text));
    draw_box(svg, centre_of(columns, place, y), text, place->program, style);
}

/* An arrow with what is waited for beside it. */
static void draw_link(struct svg *svg, struct columns *columns, const struct cascade_report_link *link,
                      double y)
{
    static const char *const words[] = {"the lock", "the thread", NULL};
    struct svg_point from = centre_of(columns, &link->delays, y + BOX_HEIGHT / 2),
                     to = centre_of(columns, &link->waits, y + ROW - BOX_HEIGHT / 2);
    const struct svg_style *look = link->kind == CASCADE_CAUSE ? &must_look : &may_look;
    const char *word = link->kind == CASCADE_CAUSE ? hb_edge_words(link->edge) : words[link->kind];

    draw_place(svg, columns, &link->delays, y, &holds_look);
    svg_line(svg, from, to, look);
    svg_line(svg, to, (struct svg_point){to.x - 5, to.y - 7}, look);
    svg_line(svg, to, (struct svg_point){to.x + 5, to.y - 7}, look);
    svg_text(svg, (struct svg_point){(from.x + to.x) / 2 + 8, (from.y + to.y) / 2 + 4}, word,
             &(struct svg_font){.size = FONT, .italic = true});
    draw_place(svg, columns, &link->waits, y + ROW, &waits_look);
}

/* Returns where the next report begins. */
static double draw_report(struct svg *svg, const struct cascade_report *report, double y, double *width)
{
    AUTO_FREE char *sentence = NULL;
    struct columns columns = {.count = 0};
    size_t size = 0;
    FILE *out = open_memstream(&sentence, &size);
    double right;

    if (out) {
        cascade_report_sentence(out, report);
        fclose(out);
        svg_text(svg, (struct svg_point){MARGIN, y}, sentence,
                 &(struct svg_font){.size = FONT, .bold = true});
    }
    y += HEAD;
    draw_place(svg, &columns, &report->source, y, &source_look);
    for (size_t i = 0; i < report->count; i++, y += 2 * ROW)
        draw_link(svg, &columns, &report->links[i], y + ROW * 0.75);
    y += ROW * 0.75;
    draw_place(svg, &columns, &report->sink, y, &sink_look);
    for (size_t i = 0; i < columns.count; i++) {
        char head[64];

        snprintf(head, sizeof(head), "%.12s of %.24s", columns.places[i]->thread, columns.places[i]->program);
        svg_text(svg, centre_of(&columns, columns.places[i], y + ROW * 0.75), head,
                 &(struct svg_font){.size = FONT, .anchor = SVG_MIDDLE});
    }
    right = 2 * MARGIN + COLUMN * (double)columns.count;
    if (right > *width)
        *width = right;
    if (sentence &&
        svg_text_width(sentence, &(struct svg_font){.size = FONT, .bold = true}) + 2 * MARGIN > *width)
        *width = svg_text_width(sentence, &(struct svg_font){.size = FONT, .bold = true}) + 2 * MARGIN;
    return y + 2 * ROW;
}

char *cascade_chain_svg(const struct cascade_result *result, const char *sink)
{
    struct svg *svg = svg_new();
    double y = 2 * MARGIN, width = COLUMN * 2;
    char title[160];

    snprintf(title, sizeof(title), "%zu predicted cascades to %.64s", result->count, sink);
    svg_text(svg, (struct svg_point){MARGIN, MARGIN}, title, &(struct svg_font){.bold = true});
    for (size_t i = 0; i < result->count && i < CASCADE_MOST_DRAWN; i++)
        y = draw_report(svg, &result->reports[i], y + MARGIN, &width);
    return svg_finish(svg, width, y + MARGIN, title, NULL, SVG_DOCUMENT);
}
