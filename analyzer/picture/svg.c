/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/picture/svg.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/picture/markup.h"

struct svg {
    char *text;
    size_t size;
    FILE *out;
    size_t groups; /* that are open */
};

struct svg *svg_new(void)
{
    struct svg *svg = calloc(1, sizeof(*svg));

    if (svg)
        svg->out = open_memstream(&svg->text, &svg->size);
    if (svg && !svg->out) {
        free(svg);
        return NULL;
    }
    return svg;
}

void svg_free(struct svg *svg)
{
    if (!svg)
        return;
    if (svg->out)
        fclose(svg->out);
    free(svg->text);
    free(svg);
}

/* ------------------------------------------------------------------------------------------ attributes */

/* Without zeros at the end, and the same in every locale. */
static void put_number(FILE *out, double number)
{
    long long hundredths = isfinite(number) ? llround(number * 100) : 0;
    long long whole = llabs(hundredths) / 100, rest = llabs(hundredths) % 100;

    fprintf(out, "%s%lld", hundredths < 0 ? "-" : "", whole);
    if (rest)
        fprintf(out, rest % 10 ? ".%02lld" : ".%lld", rest % 10 ? rest : rest / 10);
}

static void put_attribute(FILE *out, const char *name, double number)
{
    fprintf(out, " %s=\"", name);
    put_number(out, number);
    fputc('"', out);
}

static void put_words(FILE *out, const char *name, const char *words)
{
    if (!words)
        return;
    fprintf(out, " %s=\"", name);
    markup_escape(out, words);
    fputc('"', out);
}

static void put_style(FILE *out, const struct svg_style *style)
{
    put_words(out, "fill", style->fill ? style->fill : "none");
    put_words(out, "stroke", style->stroke);
    put_words(out, "stroke-dasharray", style->dashes);
    if (style->stroke_width > 0)
        put_attribute(out, "stroke-width", style->stroke_width);
    if (style->opacity > 0)
        put_attribute(out, "opacity", style->opacity);
}

/* ------------------------------------------------------------------------------------------ shapes */

void svg_rect(struct svg *svg, const struct svg_box *box, const struct svg_style *style)
{
    if (!svg)
        return;
    fputs("<rect", svg->out);
    put_attribute(svg->out, "x", box->x);
    put_attribute(svg->out, "y", box->y);
    put_attribute(svg->out, "width", box->width);
    put_attribute(svg->out, "height", box->height);
    if (style->radius > 0)
        put_attribute(svg->out, "rx", style->radius);
    put_style(svg->out, style);
    fputs("/>\n", svg->out);
}

void svg_line(struct svg *svg, struct svg_point from, struct svg_point to, const struct svg_style *style)
{
    if (!svg)
        return;
    fputs("<line", svg->out);
    put_attribute(svg->out, "x1", from.x);
    put_attribute(svg->out, "y1", from.y);
    put_attribute(svg->out, "x2", to.x);
    put_attribute(svg->out, "y2", to.y);
    put_style(svg->out, style);
    fputs("/>\n", svg->out);
}

void svg_polyline(struct svg *svg, const struct svg_point *points, size_t count,
                  const struct svg_style *style)
{
    if (!svg)
        return;
    fputs("<polyline points=\"", svg->out);
    for (size_t i = 0; i < count; i++) {
        fputs(i ? " " : "", svg->out);
        put_number(svg->out, points[i].x);
        fputc(',', svg->out);
        put_number(svg->out, points[i].y);
    }
    fputc('"', svg->out);
    put_style(svg->out, style);
    fputs("/>\n", svg->out);
}

void svg_path(struct svg *svg, const char *commands, const struct svg_style *style)
{
    if (!svg)
        return;
    fputs("<path", svg->out);
    put_words(svg->out, "d", commands);
    put_style(svg->out, style);
    fputs("/>\n", svg->out);
}

void svg_text(struct svg *svg, struct svg_point at, const char *text, const struct svg_font *font)
{
    static const char *const anchors[] = {[SVG_START] = NULL, [SVG_MIDDLE] = "middle", [SVG_END] = "end"};
    static const struct svg_font plain = {0};

    if (!svg)
        return;
    font = font ? font : &plain;
    fputs("<text", svg->out);
    put_attribute(svg->out, "x", at.x);
    put_attribute(svg->out, "y", at.y);
    put_attribute(svg->out, "font-size", font->size > 0 ? font->size : SVG_FONT_SIZE);
    put_words(svg->out, "fill", font->colour);
    put_words(svg->out, "text-anchor", anchors[font->anchor]);
    put_words(svg->out, "font-weight", font->bold ? "bold" : NULL);
    put_words(svg->out, "font-style", font->italic ? "italic" : NULL);
    put_words(svg->out, "font-family", font->monospace ? "monospace" : NULL);
    if (fabs(font->rotate) > 0) {
        fputs(" transform=\"rotate(", svg->out);
        put_number(svg->out, font->rotate);
        fputc(' ', svg->out);
        put_number(svg->out, at.x);
        fputc(' ', svg->out);
        put_number(svg->out, at.y);
        fputs(")\"", svg->out);
    }
    /* Runs of spaces count. */
    fputs(" xml:space=\"preserve\">", svg->out);
    markup_escape(svg->out, text);
    fputs("</text>\n", svg->out);
}

void svg_begin_group(struct svg *svg, const char *css_class, const char *title)
{
    if (!svg)
        return;
    fputs("<g", svg->out);
    put_words(svg->out, "class", css_class);
    fputs(">\n", svg->out);
    if (title) {
        fputs("<title>", svg->out);
        markup_escape(svg->out, title);
        fputs("</title>\n", svg->out);
    }
    svg->groups++;
}

void svg_end_group(struct svg *svg)
{
    if (!svg || !svg->groups)
        return;
    svg->groups--;
    fputs("</g>\n", svg->out);
}

void svg_hatch(struct svg *svg, const char *id, const char *background, const char *lines)
{
    if (!svg)
        return;
    fputs("<pattern", svg->out);
    put_words(svg->out, "id", id);
    fputs(" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\n",
          svg->out);
    svg_rect(svg, &(struct svg_box){0, 0, 6, 6}, &(struct svg_style){.fill = background});
    svg_line(svg, (struct svg_point){0, 0}, (struct svg_point){0, 6},
             &(struct svg_style){.stroke = lines, .stroke_width = 2});
    fputs("</pattern>\n", svg->out);
}

/* ------------------------------------------------------------------------------------------ the document */

static void put_element(FILE *out, const char *name, const char *text)
{
    if (!text)
        return;
    fprintf(out, "<%s>", name);
    markup_escape(out, text);
    fprintf(out, "</%s>\n", name);
}

static char *wrap(const struct svg *svg, double width, double height, const char *title,
                  const char *description, enum svg_form form)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    if (form == SVG_DOCUMENT)
        fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", out);
    fputs("<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\"", out);
    put_attribute(out, "width", width);
    put_attribute(out, "height", height);
    fputs(" viewBox=\"0 0 ", out);
    put_number(out, width);
    fputc(' ', out);
    put_number(out, height);
    fputs("\" font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\">\n", out);
    put_element(out, "title", title);
    put_element(out, "desc", description);
    fwrite(svg->text, 1, svg->size, out);
    fputs("</svg>\n", out);
    if (ferror(out) | fclose(out)) {
        free(text);
        return NULL;
    }
    return text;
}

char *svg_finish(struct svg *svg, double width, double height, const char *title, const char *description,
                 enum svg_form form)
{
    char *text = NULL;
    bool broken;

    if (!svg)
        return NULL;
    while (svg->groups)
        svg_end_group(svg);
    broken = ferror(svg->out);
    broken |= fclose(svg->out) != 0;
    svg->out = NULL;
    if (!broken)
        text = wrap(svg, width, height, title, description, form);
    svg_free(svg);
    return text;
}
