/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rows of the catalog that the next flush writes, in the order in which they came, in the transaction of the
 * events that need them: nothing is committed one by one, and a store that another process keeps locked
 * delays them like it delays events.
 */
#ifndef TRACESTORE_CATALOG_QUEUE_H
#define TRACESTORE_CATALOG_QUEUE_H

#include "store/db/db.h"
#include "store/segment/numbering.h"

#define CATALOG_VALUES 10 /* that a statement binds, at most */

/* A statement as the queue keeps it. Its address is its identity: make it static. */
struct catalog_statement {
    const char *what; /* "cannot write a process": for the error */
    const char *sql;
    const char
        *find; /* NULL, or a query with the same parameters: when it gives an id, nothing is inserted */
    /* Of db_bind i, z, n, t, T and d; and numbers, which become ids (0: NULL): m image, f function, s site, p
     * process, h thread. */
    const char *types;
    bool gives_id; /* it returns one row, the id of number `gives` */
    enum number_kind gives;
};

union catalog_value {
    int64_t number;
    double real;
    char *text; /* owned */
};

struct catalog_row {
    const struct catalog_statement *statement;
    int64_t number; /* of which it gives the id */
    union catalog_value values[CATALOG_VALUES];
};

struct prepared_statement {
    const struct catalog_statement *statement;
    sqlite3_stmt *row, *find; /* find NULL: it has none */
};

/* Zero-initialised: empty. */
struct catalog_queue {
    struct catalog_row *rows;
    size_t count, capacity;
    struct prepared_statement *prepared;
    size_t prepared_count, prepared_capacity;
};

/* Appends a row; the values, of which texts are copied, as the statement's types spell them: int64_t, double
 * or const char *. `number` is that of which it gives the id, 0 when it gives none. -ENOMEM. */
int catalog_queue_add(struct catalog_queue *queue, const struct catalog_statement *statement, int64_t number,
                      ...);

/* Takes the last row back. */
void catalog_queue_drop_last(struct catalog_queue *queue);

/* Writes all rows, within the caller's transaction, and tells `numberings` the ids. The rows stay until
 * catalog_queue_clear: after a rollback they are written anew. */
int catalog_queue_write(struct catalog_queue *queue, sqlite3 *db, struct numbering numberings[NUMBER_KINDS],
                        struct error *err);

/* Once they are committed. */
void catalog_queue_clear(struct catalog_queue *queue);
void catalog_queue_release(struct catalog_queue *queue);

#endif
