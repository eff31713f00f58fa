/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A cell of a small matrix is a shape of its own, with a number in it and a title. In large ones that would
 * be megabytes: there, equal neighbours in a row are one stretch, and the stretches of one colour one shape.
 */
#include "analyzer/picture/heat_map.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyzer/picture/svg.h"
#include "base/array.h"
#include "base/cleanup.h"

enum { WITH_NUMBERS = 18, WITH_TITLES = 32, LEVELS = 41 };

/* Whole pixels, so that there are no seams between cells. */
#define LARGEST_CELL 32.0
#define LEAST_CELL 3.0
#define SIDE 560.0 /* of a matrix that is larger than that many cells of the largest size */
#define WIDEST_NAME 170.0
#define GAP 6.0
#define SCALE_WIDTH 16.0
#define SCALE_ROOM 64.0
#define LEAST_FONT 9.0

static const unsigned cividis[] = {0x00204d, 0x00336f, 0x39486b, 0x575c6d, 0x707173,
                                   0x8a8779, 0xa69d75, 0xc4b56c, 0xe4cf5b, 0xffea46};
static const unsigned oranges[] = {0xffffff, 0xfee6ce, 0xfdd0a2, 0xfdae6b, 0xfd8d3c,
                                   0xf16913, 0xd94801, 0xa63603, 0x7f2704};

struct drawing {
    const struct heat_map *map;
    struct svg *svg;
    size_t count;
    double cell, left, top;
    double highest; /* the value of the last colour */
    bool *named;    /* rows whose names are drawn */
};

/* ------------------------------------------------------------------------------------------ colours */

static unsigned between(unsigned from, unsigned to, double share)
{
    unsigned colour = 0;

    for (int shift = 16; shift >= 0; shift -= 8) {
        double a = from >> shift & 0xff, b = to >> shift & 0xff;

        colour |= (unsigned)lround(a + (b - a) * share) << shift;
    }
    return colour;
}

static unsigned colour_of(enum heat_scale scale, double value)
{
    const unsigned *stops = scale == HEAT_CHANGE ? oranges : cividis;
    size_t count = scale == HEAT_CHANGE ? ARRAY_SIZE(oranges) : ARRAY_SIZE(cividis);
    double place = fmin(fmax(value, 0), 1) * (double)(count - 1);
    size_t at = (size_t)place;

    return at + 1 < count ? between(stops[at], stops[at + 1], place - (double)at) : stops[count - 1];
}

/* Black or white, whichever is read more easily on the colour (by its luminance, roughly). */
static const char *ink_on(unsigned colour)
{
    double luminance = 0.3 * (colour >> 16 & 0xff) + 0.59 * (colour >> 8 & 0xff) + 0.11 * (colour & 0xff);

    return luminance > 125 ? "#000000" : "#ffffff";
}

/* ------------------------------------------------------------------------------------------ cells */

static size_t object_at(const struct drawing *drawing, size_t row)
{
    return drawing->map->rows ? drawing->map->rows[row] : row;
}

static double value_at(const struct drawing *drawing, size_t row, size_t column)
{
    if (row == column)
        return drawing->map->scale == HEAT_CHANGE ? 0 : 1;
    return similarity_at(drawing->map->values, object_at(drawing, row), object_at(drawing, column));
}

/* 1 and 0 are exact; what is only near them stays visibly so. */
static void number_text(double value, char *text, size_t size)
{
    if (value >= 1 || value <= 0)
        snprintf(text, size, "%.0f", value);
    else
        snprintf(text, size, ".%02.0f", fmin(fmax(value, 0.01), 0.99) * 100);
}

static void draw_cell(const struct drawing *drawing, size_t row, size_t column)
{
    const struct heat_map *map = drawing->map;
    double value = value_at(drawing, row, column);
    struct svg_box box = {drawing->left + drawing->cell * (double)column,
                          drawing->top + drawing->cell * (double)row, drawing->cell, drawing->cell};
    unsigned colour = colour_of(map->scale, value / drawing->highest);
    struct svg_font font = {.size = 11, .anchor = SVG_MIDDLE, .colour = ink_on(colour)};
    char fill[16], number[16];
    AUTO_FREE char *title = NULL;

    snprintf(fill, sizeof(fill), "#%06x", colour);
    if (asprintf(&title, "%s and %s: %.3f", map->names[object_at(drawing, row)],
                 map->names[object_at(drawing, column)], value) < 0)
        title = NULL;
    svg_begin_group(drawing->svg, "cell", title);
    svg_rect(drawing->svg, &box, &(struct svg_style){.fill = fill, .stroke = "#ffffff", .stroke_width = 0.5});
    if (drawing->count <= WITH_NUMBERS) {
        number_text(value, number, sizeof(number));
        svg_text(drawing->svg, (struct svg_point){box.x + box.width / 2, box.y + box.height / 2 + 4}, number,
                 &font);
    }
    svg_end_group(drawing->svg);
}

static int level_of(const struct drawing *drawing, size_t row, size_t column)
{
    return (int)lround(fmin(value_at(drawing, row, column) / drawing->highest, 1) * (LEVELS - 1));
}

/* The stretches of one row, each added to the shape of its colour. */
static void draw_stretches(const struct drawing *drawing, size_t row, FILE *shapes[LEVELS])
{
    size_t first = 0, cell = (size_t)drawing->cell;

    for (size_t column = 1; column <= drawing->count; column++) {
        int level = level_of(drawing, row, first);

        if (column < drawing->count && level_of(drawing, row, column) == level)
            continue;
        fprintf(shapes[level], "M%zu %zuh%zuv%zuh-%zuz", (size_t)drawing->left + first * cell,
                (size_t)drawing->top + row * cell, (column - first) * cell, cell, (column - first) * cell);
        first = column;
    }
}

/* Returns false for lack of memory. */
static bool draw_levels(const struct drawing *drawing)
{
    FILE *shapes[LEVELS] = {NULL};
    char *commands[LEVELS] = {NULL};
    size_t sizes[LEVELS];
    bool failed = false;

    for (int level = 0; level < LEVELS; level++) {
        shapes[level] = open_memstream(&commands[level], &sizes[level]);
        failed |= !shapes[level];
    }
    for (size_t row = 0; row < drawing->count && !failed; row++)
        draw_stretches(drawing, row, shapes);
    for (int level = 0; level < LEVELS; level++) {
        char fill[16];

        if (shapes[level])
            failed |= fclose(shapes[level]) != 0;
        snprintf(fill, sizeof(fill), "#%06x", colour_of(drawing->map->scale, level / (LEVELS - 1.0)));
        if (!failed && *commands[level])
            svg_path(drawing->svg, commands[level], &(struct svg_style){.fill = fill});
        free(commands[level]);
    }
    return !failed;
}

/* ------------------------------------------------------------------------------------------ around them */

/* Every how many rows there is room for a name. */
static size_t name_step(const struct drawing *drawing)
{
    size_t step = 1;

    while ((double)step * drawing->cell < LEAST_FONT + 1)
        step++;
    return step;
}

static bool is_marked(const struct drawing *drawing, size_t row)
{
    return drawing->map->marked && drawing->map->marked[object_at(drawing, row)];
}

/* Which rows have their names drawn: marked ones as far as there is room, and others between them. */
static void choose_names(struct drawing *drawing)
{
    size_t step = name_step(drawing), next = 0;

    for (size_t row = 0; row < drawing->count; row++) {
        bool room = true;

        if (row < next)
            continue;
        for (size_t near = row + 1; near < row + step && near < drawing->count; near++)
            room &= !is_marked(drawing, near);
        if (!room && !is_marked(drawing, row))
            continue;
        drawing->named[row] = true;
        next = row + step;
    }
}

static struct svg_font name_font(const struct drawing *drawing, size_t row)
{
    return (struct svg_font){.size = drawing->cell < 14 ? LEAST_FONT : 12, .bold = is_marked(drawing, row)};
}

static void draw_name(const struct drawing *drawing, size_t row)
{
    static const struct svg_style mark = {.fill = "#b34700"};
    const char *name = drawing->map->names[object_at(drawing, row)];
    struct svg_font font = name_font(drawing, row);
    double middle = ((double)row + 0.5) * drawing->cell, drop = font.size * 0.35;
    char commands[96];

    font.anchor = SVG_END;
    svg_text(drawing->svg, (struct svg_point){drawing->left - GAP, drawing->top + middle + drop}, name,
             &font);
    font.anchor = SVG_START;
    font.rotate = -60;
    svg_text(drawing->svg, (struct svg_point){drawing->left + middle + drop, drawing->top - GAP}, name,
             &font);
    if (!font.bold)
        return;
    snprintf(commands, sizeof(commands), "M%d %d l-5 -4 v8 z", (int)drawing->left - 1,
             (int)(drawing->top + middle));
    svg_path(drawing->svg, commands, &mark);
}

static void draw_scale(const struct drawing *drawing, double height)
{
    static const struct svg_font small = {.size = 11};
    static const struct svg_style border = {.stroke = "#666666", .stroke_width = 1};
    struct svg_box box = {drawing->left + drawing->cell * (double)drawing->count + 18, drawing->top,
                          SCALE_WIDTH, height};

    for (int level = 0; level < LEVELS; level++) {
        char fill[16];

        snprintf(fill, sizeof(fill), "#%06x", colour_of(drawing->map->scale, 1 - level / (LEVELS - 1.0)));
        svg_rect(drawing->svg,
                 &(struct svg_box){box.x, box.y + height * level / LEVELS, box.width, height / LEVELS + 0.5},
                 &(struct svg_style){.fill = fill});
    }
    svg_rect(drawing->svg, &box, &border);
    for (int quarter = 0; quarter <= 4; quarter++) {
        char text[16];

        snprintf(text, sizeof(text), "%.3g", drawing->highest * quarter / 4.0);
        svg_text(drawing->svg,
                 (struct svg_point){box.x + box.width + 5, box.y + height * (1 - quarter / 4.0) + 4}, text,
                 &small);
    }
}

/* Similarities always have the whole scale; small changes get a smaller one, or they would not be seen. */
static double highest_of(const struct drawing *drawing)
{
    static const double tops[] = {0.1, 0.2, 0.4};
    double highest = 0;

    if (drawing->map->scale == HEAT_SIMILARITY)
        return 1;
    for (size_t row = 0; row < drawing->count; row++)
        for (size_t column = 0; column < row; column++)
            highest = fmax(highest, value_at(drawing, row, column));
    for (size_t i = 0; i < ARRAY_SIZE(tops) && highest > 0; i++)
        if (highest <= tops[i])
            return tops[i];
    return 1;
}

static double widest_name(const struct drawing *drawing)
{
    double widest = 0;

    for (size_t row = 0; row < drawing->count; row++) {
        struct svg_font font = name_font(drawing, row);

        if (!drawing->named[row])
            continue;
        widest = fmax(widest, svg_text_width(drawing->map->names[object_at(drawing, row)], &font));
    }
    return fmin(widest, WIDEST_NAME);
}

char *heat_map_svg(const struct heat_map *map)
{
    struct drawing drawing = {.map = map, .svg = svg_new(), .cell = LARGEST_CELL};
    AUTO_FREE bool *named = NULL;
    double side, names, height;
    bool drawn = true;

    drawing.count = map->rows ? map->row_count : map->values->count;
    named = calloc(drawing.count + 1, sizeof(*named));
    drawing.named = named;
    if (!named) {
        svg_free(drawing.svg);
        return NULL;
    }
    if (drawing.cell * (double)drawing.count > SIDE)
        drawing.cell = fmax(floor(SIDE / (double)drawing.count), LEAST_CELL);
    side = drawing.cell * (double)drawing.count;
    drawing.highest = highest_of(&drawing);
    choose_names(&drawing);
    names = widest_name(&drawing);
    drawing.left = ceil(names + GAP + 8);
    drawing.top = ceil(names * 0.87 + 2 * GAP + 4); /* the sine of the angle they are written at */
    height = fmax(side, 80);
    if (drawing.count > WITH_TITLES)
        drawn = draw_levels(&drawing);
    else
        for (size_t row = 0; row < drawing.count; row++)
            for (size_t column = 0; column < drawing.count; column++)
                draw_cell(&drawing, row, column);
    if (!drawn) {
        svg_free(drawing.svg);
        return NULL;
    }
    svg_rect(drawing.svg, &(struct svg_box){drawing.left, drawing.top, side, side},
             &(struct svg_style){.stroke = "#666666", .stroke_width = 1});
    for (size_t row = 0; row < drawing.count; row++)
        if (drawing.named[row])
            draw_name(&drawing, row);
    draw_scale(&drawing, height);
    return svg_finish(drawing.svg, drawing.left + fmax(side + SCALE_ROOM, side + names / 2 + GAP),
                      drawing.top + height + 10, map->title, map->description, SVG_INLINE);
}
