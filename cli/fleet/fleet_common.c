/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/common/output.h"
#include "cli/common/table.h"
#include "cli/fleet/fleet_commands.h"

/* ------------------------------------------------------------------------------------------ arguments */

static error_t parse_address(int key, char *arg, struct argp_state *state)
{
    const char **url = state->input;

    if (key != 't')
        return ARGP_ERR_UNKNOWN;
    *url = arg;
    return 0;
}

static const struct argp_option address_options[] = {
    {"fleet", 't', "URL", 0,
     "The fleet's database, as libpq names it: postgresql://HOST/DATABASE, service=NAME (default: $TRACECTL_FLEET). Passwords "
     "belong into ~/.pgpass or a service file",
     1},
    {0},
};
const struct argp fleet_address_argp = {.options = address_options, .parser = parse_address};
const struct argp_child fleet_children[] = {
    {&cli_common_argp, 0, NULL, 0}, {&fleet_address_argp, 0, NULL, 0}, {0}};

error_t fleet_parse_words(int key, char *arg, struct argp_state *state)
{
    struct fleet_arguments *arguments = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[1] = &arguments->url;
        return 0;
    case ARGP_KEY_ARG:
        if (array_reserve(&arguments->words, &arguments->capacity, arguments->count + 1))
            argp_failure(state, EXIT_FAILED, 0, "out of memory");
        arguments->words[arguments->count++] = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int fleet_address(const char *url, const char **ret_url, struct error *err)
{
    *ret_url = url ? url : getenv("TRACECTL_FLEET");
    return *ret_url && **ret_url
               ? 0
               : error_say(err, -EINVAL,
                           "no fleet is named (name its database with -t URL or TRACECTL_FLEET)");
}

int fleet_connect(const char *url, struct fleet *ret_fleet, struct error *err)
{
    int code = fleet_address(url, &url, err);

    return code ? code : fleet_open_initialised(url, ret_fleet, err);
}

int fleet_find_run(struct fleet *fleet, const char *word, int64_t *ret_run, struct error *err)
{
    static const char what[] = "cannot read the fleet";
    PGresult *result;
    int code =
        fleet_query(fleet, what, &result, err,
                    "SELECT run_id FROM tracectl.runs WHERE run_id::text = $1 OR name = $1 OR $1 = 'latest'"
                    " ORDER BY run_id::text = $1 DESC, started_ns DESC LIMIT 1",
                    1, &word);

    if (code)
        return code;
    if (PQntuples(result))
        *ret_run = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    else
        code = error_say(err, -ENOENT, "cannot find run %s in the fleet (list them with tracectl fleet runs)",
                         word);
    PQclear(result);
    return code;
}

/* ------------------------------------------------------------------------------------------ results */

/* Types of numbers by their OIDs, which PostgreSQL never changes (its pg_type.dat). */
static bool is_integer(Oid type)
{
    return type == 20 || type == 21 || type == 23;
}

static bool is_number(Oid type)
{
    return is_integer(type) || type == 700 || type == 701 || type == 1700;
}

static json_t *json_value(const PGresult *result, int row, int column)
{
    const char *text = PQgetvalue(result, row, column);
    Oid type = PQftype(result, column);

    if (PQgetisnull(result, row, column))
        return json_null();
    if (is_integer(type))
        return json_integer(strtoll(text, NULL, 10));
    if (is_number(type))
        return isfinite(strtod(text, NULL)) ? json_real(strtod(text, NULL)) : cli_json_text(text);
    if (type == 16)
        return json_boolean(*text == 't');
    return cli_json_text(text);
}

static void print_json(const PGresult *result)
{
    struct json_array array = {0};

    cli_json_begin(&array);
    for (int row = 0; row < PQntuples(result) && !cli_output_broken(); row++) {
        json_t *item = json_object();

        for (int column = 0; column < PQnfields(result); column++)
            json_object_set_new(item, PQfname(result, column), json_value(result, row, column));
        cli_json_item(&array, item);
    }
    cli_json_end(&array);
    putchar('\n');
}

static void print_table(const PGresult *result)
{
    int columns = PQnfields(result);
    char **titles = calloc((size_t)columns + 1, sizeof(*titles));
    struct table *table = NULL;

    for (int i = 0; titles && i < columns; i++)
        if (asprintf(&titles[i], "%s%s", is_number(PQftype(result, i)) ? ">" : "", PQfname(result, i)) < 0)
            titles[i] = NULL;
    if (titles)
        table = table_new(stdout, (const char *const *)titles, (size_t)columns, cli_colour());
    for (int row = 0; table && row < PQntuples(result); row++)
        for (int column = 0; column < columns; column++)
            table_cell(table, PQgetisnull(result, row, column) ? "-" : PQgetvalue(result, row, column));
    table_free(table);
    for (int i = 0; titles && i < columns; i++)
        free(titles[i]);
    free(titles);
}

void fleet_print(const PGresult *result)
{
    if (cli.json)
        print_json(result);
    else
        print_table(result);
}
