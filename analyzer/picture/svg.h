/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pictures in SVG, as text: shapes are appended one behind the other, later ones over earlier ones.
 *
 * What comes out is one XML document, or with SVG_INLINE one element of an HTML page, that refers to nothing
 * outside itself. Coordinates are pixels from the top left, y downwards; they are written with two digits
 * behind the point at most. Texts are any bytes: markup is escaped, what XML cannot hold becomes U+FFFD.
 *
 *     struct svg *svg = svg_new();
 *     svg_rect(svg, &(struct svg_box){0, 0, 10, 10}, &(struct svg_style){.fill = "#eee"});
 *     char *text = svg_finish(svg, 100, 50, "A title", NULL, SVG_DOCUMENT);
 *
 * Lack of memory is remembered, and told once, by svg_finish.
 */
#ifndef TRACECTL_ANALYZER_PICTURE_SVG_H
#define TRACECTL_ANALYZER_PICTURE_SVG_H

#include <stdbool.h>
#include <stddef.h>

struct svg;

struct svg_point {
    double x, y;
};

struct svg_box {
    double x, y, width, height;
};

/* Fields of NULL and 0 are left to SVG's defaults; without `fill` a shape is not filled. Colours and dashes
 * are SVG's words ("#0072b2", "none"; "4 2"). */
struct svg_style {
    const char *fill, *stroke, *dashes;
    double stroke_width;
    double opacity; /* 0 stands for 1 */
    double radius;  /* of a rectangle's corners */
};

enum svg_anchor { SVG_START, SVG_MIDDLE, SVG_END };

struct svg_font {
    double size;        /* pixels; 0: SVG_FONT_SIZE */
    const char *colour; /* NULL: black */
    enum svg_anchor anchor;
    bool bold, italic, monospace;
    double rotate; /* degrees, clockwise, around the point that the text is at */
};

#define SVG_FONT_SIZE 12.0
#define SVG_LINE_HEIGHT 1.35      /* of the font's size */
#define SVG_MONOSPACE_WIDTH 0.602 /* of a character, of the font's size */

/* NULL: no memory. Every function below accepts that. */
struct svg *svg_new(void);
void svg_free(struct svg *svg);

void svg_rect(struct svg *svg, const struct svg_box *box, const struct svg_style *style);
void svg_line(struct svg *svg, struct svg_point from, struct svg_point to, const struct svg_style *style);
void svg_polyline(struct svg *svg, const struct svg_point *points, size_t count,
                  const struct svg_style *style);
/* `commands`: the words of SVG's attribute d. */
void svg_path(struct svg *svg, const char *commands, const struct svg_style *style);
/* `at` is on the text's base line. `font` may be NULL. */
void svg_text(struct svg *svg, struct svg_point at, const char *text, const struct svg_font *font);

/* What follows, up to svg_end_group, belongs together: `title` is what a browser shows under the pointer and
 * a screen reader says, `css_class` a name for the scripts and styles of a page (letters, digits and '-').
 * Either may be NULL. */
void svg_begin_group(struct svg *svg, const char *css_class, const char *title);
void svg_end_group(struct svg *svg);

/* A fill of slanted lines for marks that do not depend on colours; use it as "url(#ID)" in `fill`. Ids are
 * one name space of all pictures of a page. */
void svg_hatch(struct svg *svg, const char *id, const char *background, const char *lines);

enum svg_form {
    SVG_DOCUMENT, /* a file of its own */
    SVG_INLINE,   /* an element in a page */
};

/* The picture, `width` by `height`; `title` and `description` may be NULL. Ends groups that are open, and
 * frees `svg`. In memory from malloc; NULL: there was not enough. */
char *svg_finish(struct svg *svg, double width, double height, const char *title, const char *description,
                 enum svg_form form);

/* How wide a text becomes, at most, in the usual sans-serif fonts (those that a browser takes for Helvetica,
 * Arial or DejaVu Sans): an estimate, since the font is the reader's. `font` may be NULL. */
double svg_text_width(const char *text, const struct svg_font *font);

/* A text in lines of at most `width`, broken at spaces, the first one's base line at `at`. A word that is
 * wider stays whole. Returns the base line of the line that would follow. */
double svg_wrapped_text(struct svg *svg, struct svg_point at, double width, const char *text,
                        const struct svg_font *font);

#endif
