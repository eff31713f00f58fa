/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Symbols: what nested loop recognition takes for one function.
 *
 * Function ids belong to an image, so the same function has another id after each build. Runs are compared by
 * name: functions of one name are one symbol, in all runs that are compared. A stub is told from the function
 * of its name by the "@plt" of its catalog name only when both occur; otherwise people see the bare name.
 */
#ifndef TRACECTL_ANALYZER_SYMBOLS_SYMBOLS_H
#define TRACECTL_ANALYZER_SYMBOLS_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYMBOL_RETURN 0u          /* every return, as in the traces of the papers */
#define SYMBOL_DROPPED UINT32_MAX /* not a symbol: the filter drops the function */
#define SYMBOL_RETURN_NAME "return"

struct symbol;

/* A table of zeros is an empty table, which symbols_release leaves behind. */
struct symbol_table {
    struct symbol **symbols; /* by number; [0] is NULL, the return */
    size_t count, capacity;
    struct symbol *by_name;
};

void symbols_release(struct symbol_table *table);

/* The symbol of the function with this catalog name, made when it is new; `demangled` is kept for people.
 * Fails with -ENOMEM. */
int symbols_add(struct symbol_table *table, const char *name, const char *demangled, uint32_t *ret_symbol);

/* Says that a function of this catalog name exists in a run, kept by the filter or not: it decides whether
 * "@plt" is shown. Fails with -ENOMEM. */
int symbols_mention(struct symbol_table *table, const char *name);

/* The names to show, without "@plt" where that says nothing. Borrowed from the table, good until it is
 * released. Ask when the names of all runs have been added or mentioned. */
const char *symbols_name(const struct symbol_table *table, uint32_t symbol);
const char *symbols_demangled(const struct symbol_table *table, uint32_t symbol);

/* The length of a catalog name without "@plt" (and without what may follow it). */
size_t symbols_bare_length(const char *name);

#endif
