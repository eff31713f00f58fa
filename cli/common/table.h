/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Aligned columns. The widths come from the first rows, which are held back; from then on rows are printed as
 * they come, in bounded memory, and a cell that is wider than its column moves what is behind it.
 *
 *     table_cell(table, "..."), one call a column, and the row is done; table_free prints what is held back.
 */
#ifndef TRACECTL_CLI_COMMON_TABLE_H
#define TRACECTL_CLI_COMMON_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct table;

/* `titles`: the columns' heads; one that begins with '>' is aligned to the right (the '>' is not shown), one
 * that begins with '?' when all its cells among the first rows are numbers. NULL: out of memory. */
struct table *table_new(FILE *stream, const char *const *titles, size_t columns, bool colour);

/* The text is made printable. */
void table_cell(struct table *table, const char *text);
void table_cell_count(struct table *table, uint64_t count);
void table_cell_format(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints what is held back and frees. Accepts NULL. Returns -ENOMEM when rows are missing for lack of memory.
 */
int table_free(struct table *table);

#endif
