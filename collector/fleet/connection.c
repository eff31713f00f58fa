/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "collector/fleet/fleet.h"
#include "collector/fleet/fleet_tables.h"

#define OLDEST_SERVER 150000 /* as PQserverVersion() counts: NULLS NOT DISTINCT, MERGE */

/* The first line of libpq's message. */
static void first_line(const char *message, char *line, size_t size)
{
    size_t length = message ? strcspn(message, "\n") : 0;

    if (length >= size)
        length = size - 1;
    memcpy(line, message ? message : "", length);
    line[length] = '\0';
}

/* Whether the error means that the connection has ended or is about to: one of libpq itself, which has no SQLSTATE, and
 * the classes 08, connection exceptions, and 57P, the server shuts down (PostgreSQL's manual, "Error Codes"). */
static bool is_lost(const struct fleet *fleet, const PGresult *result)
{
    const char *state = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;

    return PQstatus(fleet->connection) != CONNECTION_OK || !state || !strncmp(state, "08", 2) ||
           !strncmp(state, "57P", 3);
}

int fleet_fail(struct fleet *fleet, PGresult *result, struct error *err, const char *what)
{
    const char *why = result ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    bool lost = is_lost(fleet, result);
    char line[300];

    first_line(why ? why : PQerrorMessage(fleet->connection), line, sizeof(line));
    PQclear(result);
    return error_say(err, lost ? -ECONNRESET : -EIO, "%s: %s%s", what,
                     *line ? line : "the server has not answered",
                     lost ? " (the connection is lost: try again)" : "");
}

int fleet_query(struct fleet *fleet, const char *what, PGresult **ret_result, struct error *err,
                const char *sql, int count, const char *const *values)
{
    PGresult *result = PQexecParams(fleet->connection, sql, count, NULL, values, NULL, NULL, 0);
    ExecStatusType status = PQresultStatus(result);

    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        return fleet_fail(fleet, result, err, what);
    if (ret_result)
        *ret_result = result;
    else
        PQclear(result);
    return 0;
}

int fleet_execute(struct fleet *fleet, const char *what, struct error *err, const char *sql)
{
    PGresult *result = PQexec(fleet->connection, sql);
    ExecStatusType status = PQresultStatus(result);

    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        return fleet_fail(fleet, result, err, what);
    PQclear(result);
    return 0;
}

/* ------------------------------------------------------------------------------------------ connecting */

static void ignore_notice(void *context, const char *message)
{
}

/* -EINVAL: it is no URL, or it has a password. */
static int check_url(const char *url, struct error *err)
{
    char *message = NULL;
    PQconninfoOption *options = PQconninfoParse(url, &message);
    bool secret = false;
    char line[200];

    if (!options) {
        first_line(message, line, sizeof(line));
        PQfreemem(message);
        return error_say(err, -EINVAL,
                         "cannot read the fleet's address '%.100s': %s (postgresql://HOST/DATABASE)", url,
                         line);
    }
    for (const PQconninfoOption *option = options; option->keyword; option++)
        secret |= option->val && *option->val &&
                  (!strcmp(option->keyword, "password") || !strcmp(option->keyword, "sslpassword"));
    PQconninfoFree(options);
    return secret
               ? error_say(
                     err, -EINVAL,
                     "cannot use a fleet's address with a password in it: other users can read it (put it into "
                     "~/.pgpass or a service file)")
               : 0;
}

static int check_server(struct fleet *fleet, struct error *err)
{
    const char *encoding = PQparameterStatus(fleet->connection, "server_encoding");

    if (PQserverVersion(fleet->connection) < OLDEST_SERVER)
        return error_say(err, -ENOTSUP,
                         "cannot use the fleet's server: it is PostgreSQL %d (15 is the oldest that works)",
                         PQserverVersion(fleet->connection) / 10000);
    if (!encoding || strcmp(encoding, "UTF8") != 0)
        return error_say(err, -ENOTSUP,
                         "cannot use the fleet's database: its encoding is %s (create it with UTF8)",
                         encoding ? encoding : "unknown");
    return fleet_execute(
        fleet, "cannot set up the connection to the fleet", err,
        "SET client_encoding = 'UTF8'; SET extra_float_digits = 3; SET application_name = 'tracectl'");
}

int fleet_open(const char *url, struct fleet *ret_fleet, struct error *err)
{
    struct fleet fleet;
    char line[300];
    int code = check_url(url, err);

    if (code)
        return code;
    fleet.connection = PQconnectdb(url);
    if (!fleet.connection)
        return error_no_memory(err);
    if (PQstatus(fleet.connection) != CONNECTION_OK) {
        first_line(PQerrorMessage(fleet.connection), line, sizeof(line));
        code = error_say(err, -ECONNREFUSED, "cannot connect to the fleet: %s", line);
    } else {
        PQsetNoticeProcessor(fleet.connection, ignore_notice, NULL);
        code = check_server(&fleet, err);
    }
    if (code)
        fleet_close(&fleet);
    else
        *ret_fleet = fleet;
    return code;
}

int fleet_open_initialised(const char *url, struct fleet *ret_fleet, struct error *err)
{
    static const char what[] = "cannot read the fleet";
    PGresult *result = NULL;
    char version[32] = "";
    int code = fleet_open(url, ret_fleet, err);

    if (code)
        return code;
    code = fleet_query(
        ret_fleet, what, &result, err,
        "SELECT to_regclass('tracectl.fleet') IS NOT NULL AND has_table_privilege('tracectl.fleet', 'SELECT')",
        0, NULL);
    if (!code && strcmp(PQgetvalue(result, 0, 0), "t") != 0)
        code =
            error_say(err, -ENOENT, "%s: the database has none (create it with tracectl fleet init)", what);
    PQclear(result);
    result = NULL;
    if (!code)
        code = fleet_query(ret_fleet, what, &result, err, "SELECT version FROM tracectl.fleet", 0, NULL);
    if (!code && PQntuples(result))
        snprintf(version, sizeof(version), "%s", PQgetvalue(result, 0, 0));
    PQclear(result);
    if (!code && strcmp(version, FLEET_VERSION) != 0)
        code = error_say(err, -ENOTSUP, "%s: it has version %s, this program reads %s", what, version,
                         FLEET_VERSION);
    if (code)
        fleet_close(ret_fleet);
    return code;
}

void fleet_close(struct fleet *fleet)
{
    PQfinish(fleet->connection);
    fleet->connection = NULL;
}
