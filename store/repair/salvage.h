/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The salvage of a damaged store, as the files that do it share it (salvage.c, salvage_processes.c). */
#ifndef TRACESTORE_SALVAGE_H
#define TRACESTORE_SALVAGE_H

#include "store/db/store.h"
#include "store/repair/table_reader.h"
#include "store/segment/census.h"

struct salvage {
    sqlite3 *from;
    struct tracestore *to;
    sqlite3 *db; /* of `to` */
    struct trace_salvaged sum;
    uint64_t rows; /* since the last commit */
    struct error *err;

    sqlite3_stmt *insert; /* into the table that is being copied */
    char *types;          /* of the columns copied, for db_row_is(); from malloc */
    bool unknown_lost;    /* segments were lost of which not even their place is known */
    struct census census;
};

/* Where segments of all kinds have these columns, behind those of the run and of the thread or process. */
enum { SALVAGE_FIRST_SEQ = 2, SALVAGE_EVENT_COUNT = 3 };

/* Whether the row says which events the segment has, wherever they are now. If not, that is noted. */
bool salvage_knows_place(struct salvage *salvage, sqlite3_stmt *row);

/* After each row that was written: commits now and then. */
int salvage_row_written(struct salvage *salvage);
/* What can be read of a table's columns, row by row. */
int salvage_copy_table(struct salvage *salvage, const char *table, const char *columns);
/* Runs the statements; adds the rows that they change to `counter`. */
int salvage_execute_all(struct salvage *salvage, const char *const *statements, size_t count,
                        uint64_t *counter);

/* Process events and what the catalog says of them (salvage_processes.c): their tables and the segments that
 * decode; then rows in place of lost ones that these refer to, without those whose process is lost; and
 * losses for the gaps. */
int salvage_processes_copy(struct salvage *salvage);
int salvage_processes_invent(struct salvage *salvage);
int salvage_processes_record_losses(struct salvage *salvage);

#endif
