/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/report/html.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>

#include "analyzer/picture/markup.h"
#include "base/cleanup.h"

static void escape_format(FILE *out, const char *format, va_list values)
    __attribute__((format(printf, 2, 0)));

static void escape_format(FILE *out, const char *format, va_list values)
{
    AUTO_FREE char *text = NULL;

    if (vasprintf(&text, format, values) < 0)
        text = NULL;
    markup_escape(out, text ? text : "");
}

/* ------------------------------------------------------------------------------------------ the page */

void html_begin(FILE *out, const char *title, const char *style)
{
    fputs(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
        "'unsafe-inline'\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n<title>",
        out);
    markup_escape(out, title);
    fputs("</title>\n<style>\n", out);
    fputs(style, out);
    fputs("</style>\n</head>\n<body>\n", out);
}

void html_end(FILE *out)
{
    fputs("</body>\n</html>\n", out);
}

void html_section_begin(FILE *out, const char *id, const char *title)
{
    fprintf(out, "<section id=\"%s\" aria-labelledby=\"%s-title\">\n<h2 id=\"%s-title\">", id, id, id);
    markup_escape(out, title);
    fputs("</h2>\n", out);
}

void html_section_end(FILE *out)
{
    fputs("</section>\n", out);
}

void html_subheading(FILE *out, const char *format, ...)
{
    va_list values;

    fputs("<h3>", out);
    va_start(values, format);
    escape_format(out, format, values);
    va_end(values);
    fputs("</h3>\n", out);
}

void html_paragraph(FILE *out, const char *css_class, const char *format, ...)
{
    va_list values;

    if (css_class)
        fprintf(out, "<p class=\"%s\">", css_class);
    else
        fputs("<p>", out);
    va_start(values, format);
    escape_format(out, format, values);
    va_end(values);
    fputs("</p>\n", out);
}

void html_list_begin(FILE *out)
{
    fputs("<ul>\n", out);
}

void html_list_item(FILE *out, const char *format, ...)
{
    va_list values;

    fputs("<li>", out);
    va_start(values, format);
    escape_format(out, format, values);
    va_end(values);
    fputs("</li>\n", out);
}

void html_list_end(FILE *out)
{
    fputs("</ul>\n", out);
}

void html_figure(FILE *out, const char *svg, const char *format, ...)
{
    va_list values;

    fputs("<figure>\n<div class=\"picture\">\n", out);
    fputs(svg, out);
    fputs("</div>\n<figcaption>", out);
    va_start(values, format);
    escape_format(out, format, values);
    va_end(values);
    fputs("</figcaption>\n</figure>\n", out);
}

void html_side_by_side_begin(FILE *out)
{
    fputs("<div class=\"side-by-side\">\n", out);
}

void html_side_by_side_end(FILE *out)
{
    fputs("</div>\n", out);
}

/* ------------------------------------------------------------------------------------------ tables */

static bool is_right(const struct html_table *table, size_t column)
{
    return table->titles[column][0] == '>';
}

void html_table_begin(struct html_table *table, FILE *out, const char *caption, const char *const *titles,
                      size_t columns)
{
    *table = (struct html_table){.out = out, .titles = titles, .columns = columns};
    fputs("<div class=\"table\">\n<table>\n<caption>", out);
    markup_escape(out, caption);
    fputs("</caption>\n<thead><tr>", out);
    for (size_t i = 0; i < columns; i++) {
        fputs(is_right(table, i) ? "<th scope=\"col\" class=\"right\">" : "<th scope=\"col\">", out);
        markup_escape(out, titles[i] + is_right(table, i));
        fputs("</th>", out);
    }
    fputs("</tr></thead>\n<tbody>\n", out);
}

/* The first cell of a row names it. */
static void begin_cell(struct html_table *table)
{
    if (!table->at && table->row_class)
        fprintf(table->out, "<tr class=\"%s\">", table->row_class);
    else if (!table->at)
        fputs("<tr>", table->out);
    fputs(!table->at ? "<th scope=\"row\"" : "<td", table->out);
    fputs(is_right(table, table->at) ? " class=\"right\">" : ">", table->out);
}

static void end_cell(struct html_table *table)
{
    fputs(!table->at ? "</th>" : "</td>", table->out);
    if (++table->at < table->columns)
        return;
    fputs("</tr>\n", table->out);
    table->at = 0;
}

void html_cell(struct html_table *table, const char *text)
{
    begin_cell(table);
    markup_escape(table->out, text);
    end_cell(table);
}

void html_cell_format(struct html_table *table, const char *format, ...)
{
    va_list values;

    begin_cell(table);
    va_start(values, format);
    escape_format(table->out, format, values);
    va_end(values);
    end_cell(table);
}

void html_cell_count(struct html_table *table, uint64_t count)
{
    char text[32];

    html_cell(table, html_count(count, text));
}

void html_cell_share(struct html_table *table, double share)
{
    int thousandths = share <= 0 ? 0 : (int)(share * 1000 + 0.5);
    int width = thousandths > 1000 ? 1000 : thousandths;

    begin_cell(table);
    fprintf(table->out,
            "<span class=\"bar\" aria-hidden=\"true\"><span style=\"width:%d.%d%%\"></span></span> %d.%03d",
            width / 10, width % 10, thousandths / 1000, thousandths % 1000);
    end_cell(table);
}

void html_table_end(struct html_table *table)
{
    fputs("</tbody>\n</table>\n</div>\n", table->out);
}

const char *html_count(uint64_t count, char text[32])
{
    char digits[24];
    int length = snprintf(digits, sizeof(digits), "%" PRIu64, count);
    size_t at = 0;

    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = '\0';
    return text;
}
