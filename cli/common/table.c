/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/common/table.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/common/output.h"

#define HELD_ROWS 200
#define WIDEST 60 /* a wider cell among the first rows does not widen its column for all others */

struct column {
    char *title;
    bool right, if_numbers;
    size_t width;
};

struct table {
    FILE *stream;
    bool colour, streaming, failed;
    size_t columns, at, held;
    struct column *column;
    char **cells; /* of the rows held back, or of the one that is being filled */
};

struct table *table_new(FILE *stream, const char *const *titles, size_t columns, bool colour)
{
    struct table *table = calloc(1, sizeof(*table));

    if (!table)
        return NULL;
    table->stream = stream;
    table->colour = colour;
    table->columns = columns;
    table->column = calloc(columns + 1, sizeof(*table->column));
    table->cells = calloc((columns + 1) * HELD_ROWS, sizeof(*table->cells));
    if (!table->column || !table->cells)
        table->failed = true;
    for (size_t i = 0; i < columns && !table->failed; i++) {
        table->column[i].right = titles[i][0] == '>' || titles[i][0] == '?';
        table->column[i].if_numbers = titles[i][0] == '?';
        table->column[i].title = strdup(titles[i] + table->column[i].right);
        table->failed |= !table->column[i].title;
    }
    return table;
}

static bool is_number(const char *text)
{
    char *end;

    if (!*text)
        return true;
    if (!isdigit((unsigned char)*text) && !strchr("+-.", *text))
        return false;
    strtod(text, &end);
    return !*end;
}

static void pad(FILE *stream, size_t count)
{
    while (count--)
        putc(' ', stream);
}

static void print_row(const struct table *table, char *const *cells)
{
    for (size_t i = 0; i < table->columns; i++) {
        const struct column *column = &table->column[i];
        size_t width = text_width(cells[i]), missing = width < column->width ? column->width - width : 0;

        if (i)
            fputs("  ", table->stream);
        if (column->right)
            pad(table->stream, missing);
        text_show(table->stream, cells[i]);
        if (!column->right && i + 1 < table->columns)
            pad(table->stream, missing);
    }
    putc('\n', table->stream);
}

static void print_titles(const struct table *table)
{
    if (table->colour)
        text_put_raw(table->stream, "\033[1m");
    for (size_t i = 0; i < table->columns; i++) {
        const struct column *column = &table->column[i];
        size_t width = text_width(column->title), missing = width < column->width ? column->width - width : 0;

        if (i)
            fputs("  ", table->stream);
        if (column->right)
            pad(table->stream, missing);
        text_show(table->stream, column->title);
        if (!column->right && i + 1 < table->columns)
            pad(table->stream, missing);
    }
    text_put_raw(table->stream, table->colour ? "\033[0m\n" : "\n");
}

/* Sizes the columns by the rows held back, and prints them. */
static void start_streaming(struct table *table)
{
    for (size_t i = 0; i < table->columns; i++) {
        struct column *column = &table->column[i];

        column->width = text_width(column->title);
        for (size_t row = 0; row < table->held; row++) {
            const char *cell = table->cells[row * table->columns + i];
            size_t width = text_width(cell);

            if (width > column->width && (width <= WIDEST || column->right))
                column->width = width;
            if (column->if_numbers && !is_number(cell))
                column->right = false;
        }
        if (column->if_numbers && !table->held)
            column->right = false;
    }
    print_titles(table);
    for (size_t row = 0; row < table->held; row++)
        print_row(table, table->cells + row * table->columns);
    for (size_t i = 0; i < table->held * table->columns; i++) {
        free(table->cells[i]);
        table->cells[i] = NULL;
    }
    table->held = 0;
    table->streaming = true;
}

static void end_row(struct table *table)
{
    table->at = 0;
    if (!table->streaming) {
        if (++table->held == HELD_ROWS)
            start_streaming(table);
        return;
    }
    print_row(table, table->cells);
    for (size_t i = 0; i < table->columns; i++) {
        free(table->cells[i]);
        table->cells[i] = NULL;
    }
}

void table_cell(struct table *table, const char *text)
{
    char *copy;

    if (!table || table->failed)
        return;
    copy = text_printable(text);
    if (!copy) {
        table->failed = true;
        return;
    }
    table->cells[table->held * table->columns + table->at] = copy;
    if (++table->at == table->columns)
        end_row(table);
}

void table_cell_count(struct table *table, uint64_t count)
{
    char text[32];

    text_count(count, text, sizeof(text));
    table_cell(table, text);
}

void table_cell_format(struct table *table, const char *format, ...)
{
    AUTO_FREE char *text = NULL;
    va_list args;
    int length;

    va_start(args, format);
    length = vasprintf(&text, format, args);
    va_end(args);
    if (length < 0) {
        text = NULL;
        if (table)
            table->failed = true;
        return;
    }
    table_cell(table, text);
}

int table_free(struct table *table)
{
    int r;

    if (!table)
        return -ENOMEM;
    if (!table->failed && !table->streaming)
        start_streaming(table);
    r = table->failed ? -ENOMEM : 0;
    for (size_t i = 0; table->cells && i < (table->columns + 1) * HELD_ROWS; i++)
        free(table->cells[i]);
    for (size_t i = 0; table->column && i < table->columns; i++)
        free(table->column[i].title);
    free(table->column);
    free(table->cells);
    free(table);
    return r;
}
