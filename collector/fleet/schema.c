/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The schema of a fleet: version 1. docs/fleet.md describes it for those who write queries. */
#include <string.h>

#include "base/error.h"
#include "collector/fleet/fleet_tables.h"

/* A table of rows of runs, which go with the run. */
#define OF_RUN(name, columns) \
    "CREATE TABLE tracectl." name \
    " (run_id bigint NOT NULL REFERENCES tracectl.runs ON DELETE CASCADE, " columns ");"

static const char schema[] =
    "CREATE SCHEMA tracectl;"
    "CREATE TABLE tracectl.runs (run_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL,"
    " command text NOT NULL, host text NOT NULL, kernel text NOT NULL, started_ns bigint NOT NULL, ended_ns bigint,"
    " exit_status bigint, options text NOT NULL, tool_version text NOT NULL, recorder text NOT NULL,"
    " threads bigint NOT NULL, events bigint NOT NULL, lost bigint NOT NULL, complete boolean NOT NULL,"
    " stored_bytes bigint NOT NULL, shipped timestamptz NOT NULL DEFAULT now());"
    "CREATE UNIQUE INDEX ON tracectl.runs (host, recorder, started_ns, md5(name));"
    "CREATE INDEX ON tracectl.runs (started_ns);"
    /* What runs share. A long name does not fit into an index, its hash does. */
    "CREATE TABLE tracectl.images (image_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, path text NOT NULL,"
    " build_id text NOT NULL, kind text NOT NULL);"
    "CREATE UNIQUE INDEX ON tracectl.images (md5(path), build_id, kind);"
    "CREATE TABLE tracectl.functions (function_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
    " image_id bigint NOT NULL REFERENCES tracectl.images, name text NOT NULL, demangled text, address bigint NOT NULL,"
    " size bigint NOT NULL, file text, line bigint, aliases text);"
    "CREATE UNIQUE INDEX ON tracectl.functions (image_id, address, md5(name), md5(coalesce(demangled, '')));"
    "CREATE INDEX ON tracectl.functions (md5(name));"
    /* The numbers that the run's own rows and segments have for them, and how often the run calls each function. */
    OF_RUN("run_images", "local_id bigint, image_id bigint NOT NULL REFERENCES tracectl.images, PRIMARY KEY (run_id, local_id)")
    OF_RUN("run_functions", "local_id bigint, function_id bigint NOT NULL REFERENCES tracectl.functions,"
                            " calls bigint NOT NULL, PRIMARY KEY (run_id, local_id)")
    "CREATE INDEX ON tracectl.run_functions (function_id);"
    /* Rows as the run's store had them (docs/trace-format.md, docs/sql.md). */
    OF_RUN("tags", "key text, value text NOT NULL, PRIMARY KEY (run_id, key)")
    OF_RUN("processes", "process_id bigint, pid bigint NOT NULL, parent_process_id bigint, rank bigint, exe text NOT NULL,"
                        " argv text NOT NULL, started_ns bigint NOT NULL, ended_ns bigint, exit_status bigint,"
                        " PRIMARY KEY (run_id, process_id)")
    OF_RUN("threads", "thread_id bigint, process_id bigint NOT NULL, tid bigint NOT NULL, label text NOT NULL,"
                      " name text NOT NULL, started_ns bigint NOT NULL, ended_ns bigint, returns text NOT NULL,"
                      " PRIMARY KEY (run_id, thread_id)")
    OF_RUN("call_sites", "site_id bigint, image_id bigint NOT NULL, address bigint NOT NULL, function_id bigint,"
                         " file text, line bigint, PRIMARY KEY (run_id, site_id)")
    OF_RUN("segments", "thread_id bigint, first_seq bigint, event_count bigint NOT NULL, first_ns bigint, last_ns bigint,"
                       " codec bigint NOT NULL, checksum bigint NOT NULL, raw_bytes bigint NOT NULL,"
                       " functions bytea NOT NULL, data bytea NOT NULL, PRIMARY KEY (run_id, thread_id, first_seq)")
    OF_RUN("losses", "loss_id bigint, thread_id bigint, seq bigint, ns bigint NOT NULL, count bigint, cause text NOT NULL,"
                     " calls bigint, returns bigint, PRIMARY KEY (run_id, loss_id)")
    OF_RUN("blind", "function_id bigint NOT NULL, from_ns bigint NOT NULL, to_ns bigint, cause text NOT NULL,"
                    " calls_per_second double precision, calls_missed bigint")
    OF_RUN("process_segments", "process_id bigint, stream bigint, first_seq bigint, event_count bigint NOT NULL,"
                               " first_ns bigint NOT NULL, last_ns bigint NOT NULL, codec bigint NOT NULL,"
                               " checksum bigint NOT NULL, names bytea NOT NULL, data bytea NOT NULL,"
                               " PRIMARY KEY (run_id, process_id, stream, first_seq)")
    OF_RUN("go_programs", "process_id bigint, image_id bigint NOT NULL, version text NOT NULL, operations bigint NOT NULL,"
                          " from_start bigint NOT NULL, from_ns bigint NOT NULL, PRIMARY KEY (run_id, process_id)")
    OF_RUN("go_wait_reasons", "process_id bigint, number bigint, name text NOT NULL, PRIMARY KEY (run_id, process_id, number)")
    OF_RUN("go_usages", "usage_id bigint, image_id bigint NOT NULL, function text NOT NULL, file text NOT NULL,"
                        " line bigint NOT NULL, operation bigint NOT NULL, standard bigint NOT NULL, blocks bigint NOT NULL,"
                        " PRIMARY KEY (run_id, usage_id)")
    OF_RUN("go_usage_cases", "usage_id bigint, number bigint, line bigint NOT NULL, sends bigint NOT NULL,"
                             " PRIMARY KEY (run_id, usage_id, number)")
    OF_RUN("sync_processes", "process_id bigint, from_ns bigint NOT NULL, from_start bigint NOT NULL, library text,"
                             " why_not text, PRIMARY KEY (run_id, process_id)")
    OF_RUN("sync_channels", "channel bigint, kind bigint NOT NULL, name text NOT NULL, local text NOT NULL,"
                            " remote text NOT NULL, device bigint NOT NULL, inode bigint NOT NULL, net bigint NOT NULL,"
                            " from_start bigint NOT NULL, PRIMARY KEY (run_id, channel)")
    OF_RUN("sync_functions", "number bigint, role text NOT NULL, name text NOT NULL, PRIMARY KEY (run_id, number)")
    OF_RUN("end_nodes", "node bigint, parent bigint, image text, build_id text, function text, file text, line bigint,"
                        " address bigint, entry bigint, flags bigint NOT NULL, depth bigint NOT NULL,"
                        " PRIMARY KEY (run_id, node)")
    OF_RUN("end_iterations", "node bigint, depth bigint, finished bigint NOT NULL, PRIMARY KEY (run_id, node, depth)")
    OF_RUN("end_threads", "thread bigint, pid bigint NOT NULL, tid bigint NOT NULL, rank bigint, label text NOT NULL,"
                          " name text NOT NULL, state text NOT NULL, flags bigint NOT NULL, node bigint,"
                          " PRIMARY KEY (run_id, thread)")
    "CREATE TABLE tracectl.fleet (version text NOT NULL);"
    "INSERT INTO tracectl.fleet VALUES ('" FLEET_VERSION "')";

const struct fleet_table fleet_tables[] = {
    {"tags", "key, value", true},
    {"processes", "process_id, pid, parent_process_id, rank, exe, argv, started_ns, ended_ns, exit_status",
     true},
    {"threads", "thread_id, process_id, tid, label, name, started_ns, ended_ns, returns", true},
    {"call_sites", "site_id, image_id, address, function_id, file, line", false},
    {"segments",
     "thread_id, first_seq, event_count, first_ns, last_ns, codec, checksum, raw_bytes, functions, data",
     true},
    {"losses", "loss_id, thread_id, seq, ns, count, cause, calls, returns", true},
    {"blind", "function_id, from_ns, to_ns, cause, calls_per_second, calls_missed", true},
    {"process_segments",
     "process_id, stream, first_seq, event_count, first_ns, last_ns, codec, checksum, names, data", true},
    {"go_programs", "process_id, image_id, version, operations, from_start, from_ns", true},
    {"go_wait_reasons", "process_id, number, name", false},
    {"go_usages", "usage_id, image_id, function, file, line, operation, standard, blocks", false},
    {"go_usage_cases", "usage_id, number, line, sends", false},
    {"sync_processes", "process_id, from_ns, from_start, library, why_not", true},
    {"sync_channels", "channel, kind, name, local, remote, device, inode, net, from_start", true},
    {"sync_functions", "number, role, name", true},
    {"end_nodes", "node, parent, image, build_id, function, file, line, address, entry, flags, depth", true},
    {"end_iterations", "node, depth, finished", true},
    {"end_threads", "thread, pid, tid, rank, label, name, state, flags, node", true},
};
const size_t fleet_table_count = sizeof(fleet_tables) / sizeof(*fleet_tables);

int fleet_init(struct fleet *fleet, struct error *err)
{
    static const char what[] = "cannot create the fleet";
    PGresult *result;
    bool exists;
    int code = fleet_execute(fleet, what, err, "BEGIN; SELECT pg_advisory_xact_lock(hashtext('tracectl'))");

    if (code)
        return code;
    code =
        fleet_query(fleet, what, &result, err, "SELECT to_regclass('tracectl.fleet') IS NOT NULL", 0, NULL);
    if (code)
        return code;
    exists = !strcmp(PQgetvalue(result, 0, 0), "t");
    PQclear(result);
    if (!exists)
        code = fleet_execute(fleet, what, err, schema);
    if (!code)
        return fleet_execute(fleet, what, err, "COMMIT");
    fleet_execute(fleet, what, NULL, "ROLLBACK");
    return code;
}
