/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pages in HTML, piece by piece into a stream. Every text is escaped here; what is given as markup says so.
 * Write errors stay with the stream (ferror).
 */
#ifndef TRACECTL_ANALYZER_REPORT_HTML_H
#define TRACECTL_ANALYZER_REPORT_HTML_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The page up to its first heading: `style` is a style sheet, written as it is. Nothing in it is fetched from
 * elsewhere, and a policy in its head forbids that, and scripts. */
void html_begin(FILE *out, const char *title, const char *style);
void html_end(FILE *out);

/* A part of the page that a table of contents can point at; `id` is of letters, digits and '-'. */
void html_section_begin(FILE *out, const char *id, const char *title);
void html_section_end(FILE *out);
void html_subheading(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* `css_class` may be NULL. */
void html_paragraph(FILE *out, const char *css_class, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void html_list_begin(FILE *out);
void html_list_item(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void html_list_end(FILE *out);

/* A picture, as svg_finish makes it for pages, with what is said under it. */
void html_figure(FILE *out, const char *svg, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Figures between these stand side by side where there is room. */
void html_side_by_side_begin(FILE *out);
void html_side_by_side_end(FILE *out);

/* A table: titles that begin with '>' are of columns aligned to the right, as in cli/common/table.h. One call
 * a cell, and the rows follow from that. */
struct html_table {
    FILE *out;
    const char *const *titles;
    size_t columns, at;
    const char *row_class; /* of the rows that follow, or NULL; read when a row begins */
};
void html_table_begin(struct html_table *table, FILE *out, const char *caption, const char *const *titles,
                      size_t columns);
void html_cell(struct html_table *table, const char *text);
void html_cell_format(struct html_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* "12,345,678" */
void html_cell_count(struct html_table *table, uint64_t count);
/* The number, with a bar of that share of the room: from 0 on; 1 and more fills it. */
void html_cell_share(struct html_table *table, double share);
void html_table_end(struct html_table *table);

/* "12,345,678" in a buffer of at least 32 bytes. */
const char *html_count(uint64_t count, char text[32]);

#endif
