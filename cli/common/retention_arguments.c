/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/common/retention_arguments.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/number.h"

enum { KEY_KEEP_SIZE = 1024, KEY_KEEP_AGE, KEY_KEEP_RUNS };

static const struct argp_option options[] = {
    {"keep-size", KEY_KEEP_SIZE, "BYTES", 0,
     "Delete the oldest runs until the store is no larger than this: 500M, 10G (units K, M, G, T)", 6},
    {"keep-age", KEY_KEEP_AGE, "TIME", 0,
     "Delete runs that ended longer ago than this: 30m, 12h, 7d (units s, m, h, d, w)", 6},
    {"keep-runs", KEY_KEEP_RUNS, "NUMBER", 0, "Keep only the newest NUMBER runs", 6},
    {0},
};

/* Always false: a usage error ends the program. */
static bool bad(const char *text, const char *kind, const struct argp_state *state)
{
    argp_error(state, "'%s' is not %s", text, kind);
    return false;
}

uint64_t cli_parse_bytes(const char *text, struct argp_state *state)
{
    uint64_t bytes = 0;

    return (number_parse_size(text, &bytes) && bytes) || bad(text, "a size like 500M or 10G", state) ? bytes
                                                                                                     : 0;
}

static uint64_t parse_age_ns(const char *text, struct argp_state *state)
{
    uint64_t ns = 0;

    return (number_parse_duration(text, &ns) && ns) || bad(text, "a time like 12h or 7d", state) ? ns : 0;
}

static uint64_t parse_runs(const char *text, struct argp_state *state)
{
    uint64_t runs = 0;

    return (number_parse_count(text, &runs) && runs) || bad(text, "a number of runs", state) ? runs : 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct trace_retention *keep = state->input;

    switch (key) {
    case KEY_KEEP_SIZE:
        keep->bytes = cli_parse_bytes(arg, state);
        return 0;
    case KEY_KEEP_AGE:
        keep->age_ns = parse_age_ns(arg, state);
        return 0;
    case KEY_KEEP_RUNS:
        keep->runs = parse_runs(arg, state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp retention_argp = {.options = options, .parser = parse};
