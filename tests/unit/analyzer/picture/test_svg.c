/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The SVG writer: escaping, numbers, nesting, widths. */
#include <criterion/criterion.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/picture/svg.h"

/* What stands between the document's head and its end. */
static char *drawn(struct svg *svg)
{
    char *text = svg_finish(svg, 100, 50.5, "T & t", NULL, SVG_INLINE), *body;

    cr_assert_not_null(text);
    body = strstr(text, "</title>\n");
    cr_assert_not_null(body);
    body = strdup(body + strlen("</title>\n"));
    cr_assert_not_null(strstr(text, "width=\"100\" height=\"50.5\" viewBox=\"0 0 100 50.5\""));
    cr_assert_not_null(strstr(text, "<title>T &amp; t</title>"));
    *strstr(body, "</svg>") = '\0';
    free(text);
    return body;
}

static void expect(struct svg *svg, const char *wanted)
{
    char *body = drawn(svg);

    cr_assert_str_eq(body, wanted, "%s", body);
    free(body);
}

Test(svg, shapes)
{
    struct svg *svg = svg_new();
    struct svg_point points[] = {{0, 0}, {1.234, -2.5}, {3, 4}};

    svg_rect(svg, &(struct svg_box){1, 2, 3.25, 4},
             &(struct svg_style){.fill = "#eee", .stroke = "red", .stroke_width = 1.5, .radius = 2});
    svg_polyline(svg, points, 3, &(struct svg_style){.stroke = "black", .dashes = "4 2"});
    svg_line(svg, points[0], points[2], &(struct svg_style){0});
    svg_path(svg, "M0 0 l1 1", &(struct svg_style){0});
    expect(svg,
           "<rect x=\"1\" y=\"2\" width=\"3.25\" height=\"4\" rx=\"2\" fill=\"#eee\" stroke=\"red\" "
           "stroke-width=\"1.5\"/>\n"
           "<polyline points=\"0,0 1.23,-2.5 3,4\" fill=\"none\" stroke=\"black\" "
           "stroke-dasharray=\"4 2\"/>\n"
           "<line x1=\"0\" y1=\"0\" x2=\"3\" y2=\"4\" fill=\"none\"/>\n"
           "<path d=\"M0 0 l1 1\" fill=\"none\"/>\n");
}

Test(svg, texts_are_escaped)
{
    struct svg *svg = svg_new();

    svg_begin_group(svg, "a\"b", "x<y>&'z'");
    svg_text(svg, (struct svg_point){1, 2},
             "a\x01"
             "b\xff\xed\xa0\x80\xc3\xa9]]>",
             NULL);
    /* The group is ended by svg_finish. */
    expect(svg,
           "<g class=\"a&quot;b\">\n<title>x&lt;y&gt;&amp;&#39;z&#39;</title>\n"
           "<text x=\"1\" y=\"2\" font-size=\"12\" xml:space=\"preserve\">a\xef\xbf\xbd"
           "b\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xc3\xa9]]&gt;</text>\n</g>\n");
}

Test(svg, numbers_are_the_same_in_every_locale)
{
    struct svg *svg = svg_new();

    setlocale(LC_ALL, "de_DE.UTF-8");
    svg_line(svg, (struct svg_point){0.005, -0.001}, (struct svg_point){-1.05, 1e6},
             &(struct svg_style){.stroke_width = 0.1});
    svg_line(svg, (struct svg_point){(double)NAN, 0}, (struct svg_point){0, 0}, &(struct svg_style){0});
    expect(svg,
           "<line x1=\"0.01\" y1=\"0\" x2=\"-1.05\" y2=\"1000000\" fill=\"none\" stroke-width=\"0.1\"/>\n"
           "<line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"0\" fill=\"none\"/>\n");
}

Test(svg, documents_and_no_memory)
{
    struct svg *svg = svg_new();
    char *text;

    svg_hatch(svg, "h", "white", "grey");
    text = svg_finish(svg, 1, 1, NULL, "d", SVG_DOCUMENT);
    cr_assert(!strncmp(text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg ", 44));
    cr_assert_not_null(strstr(text, "<pattern id=\"h\""));
    cr_assert_not_null(strstr(text, "<desc>d</desc>"));
    cr_assert_null(strstr(text, "<title>"));
    free(text);
    svg_rect(NULL, &(struct svg_box){0, 0, 1, 1}, &(struct svg_style){0});
    svg_text(NULL, (struct svg_point){0, 0}, "x", NULL);
    cr_assert_null(svg_finish(NULL, 1, 1, NULL, NULL, SVG_DOCUMENT));
    svg_free(NULL);
}

Test(svg, widths)
{
    struct svg_font mono = {.size = 10, .monospace = true}, bold = {.size = 10, .bold = true};

    cr_assert_float_eq(svg_text_width("12345", &mono), 5 * 6.02, 1e-9);
    cr_assert_float_eq(svg_text_width("\xc3\xa9\xc3\xa9", &mono), 2 * 6.02, 1e-9);
    cr_assert_gt(svg_text_width("MMM", NULL), svg_text_width("iii", NULL));
    cr_assert_gt(svg_text_width("abc", &bold), 1.05 * svg_text_width("abc", NULL) * 10 / 12);
    cr_assert_eq((int)svg_text_width("", NULL), 0);
}

static size_t lines_of(const char *text, double width)
{
    struct svg *svg = svg_new();
    struct svg_font mono = {.size = 10, .monospace = true};
    double below = svg_wrapped_text(svg, (struct svg_point){0, 0}, width, text, &mono);
    char *body = drawn(svg);
    size_t lines = 0;

    for (const char *at = body; (at = strstr(at, "<text")); at++)
        lines++;
    cr_assert_float_eq(below, (double)lines * 10 * SVG_LINE_HEIGHT, 1e-9);
    free(body);
    return lines;
}

Test(svg, wrapped_texts)
{
    cr_assert_eq(lines_of("", 60), 0);
    cr_assert_eq(lines_of("one two three", 1000), 1);
    cr_assert_eq(lines_of("one two three", 8 * 6.02), 2);
    cr_assert_eq(lines_of("one two three", 6 * 6.02), 3);
    cr_assert_eq(lines_of("averylongwordthatdoesnotfit at all", 8 * 6.02), 2);
}
