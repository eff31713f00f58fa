/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A fleet: one PostgreSQL database with the runs of many hosts.
 *
 * A run is known by the host, the recorder and its start, which never come twice, so that a run is in the fleet once
 * however often it is shipped, and by whom. Images and functions are rows that all runs share. Everything else of a run
 * is kept as its store had it, segments byte for byte: a run that is pulled has the same events, and all analyses work.
 *
 * The schema is `tracectl` of the database (schema.c); docs/fleet.md describes its tables.
 */
#ifndef TRACECTL_FLEET_H
#define TRACECTL_FLEET_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

struct error;
struct tracestore;

struct fleet {
    PGconn *connection;
};

/* Connects to the database that `url` names, as libpq has it: "postgresql://HOST/DATABASE", "service=NAME", ... A password
 * in `url` is refused, since every user can read it there: it belongs into ~/.pgpass or a service file. -EINVAL;
 * -ECONNREFUSED: no connection; -ENOTSUP: the server is older than PostgreSQL 15, or its encoding is not UTF-8. */
int fleet_open(const char *url, struct fleet *ret_fleet, struct error *err);
/* The same with a schema of this version. -ENOENT: there is none. */
int fleet_open_initialised(const char *url, struct fleet *ret_fleet, struct error *err);
void fleet_close(struct fleet *fleet);

/* Creates the schema; nothing where it is there already. */
int fleet_init(struct fleet *fleet, struct error *err);

/* Runs one statement with `count` parameters, each a text or NULL. *ret_result (may be NULL) gets what it returned, to be
 * freed with PQclear(). Errors are "WHAT: WHY". -EIO, -ECONNRESET: the connection is lost. */
int fleet_query(struct fleet *fleet, const char *what, PGresult **ret_result, struct error *err,
                const char *sql, int count, const char *const *values);
/* Statements without parameters and results. */
int fleet_execute(struct fleet *fleet, const char *what, struct error *err, const char *sql);
/* The error of a result (NULL: of the connection). Frees it. */
int fleet_fail(struct fleet *fleet, PGresult *result, struct error *err, const char *what);

/* Adds the ended run of the store at `path` to the fleet; *ret_new says whether it was not there. */
int fleet_ship_run(struct fleet *fleet, const char *path, int64_t run_id, bool *ret_new, struct error *err);

/* Adds run `run_id` of the fleet to a store, where it gets a number of its own: that of the newest run, unless the run was
 * there already. Every segment is decoded. -ENOENT: there is no such run. */
int fleet_pull_run(struct fleet *fleet, int64_t run_id, struct tracestore *store, bool *ret_new,
                   struct error *err);

#endif
