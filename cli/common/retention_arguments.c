/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/common/retention_arguments.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

enum { KEY_KEEP_SIZE = 1024, KEY_KEEP_AGE, KEY_KEEP_RUNS };

static const struct argp_option options[] = {
    {"keep-size", KEY_KEEP_SIZE, "BYTES", 0,
     "Delete the oldest runs until the store is no larger than this: 500M, 10G (units K, M, G, T)", 6},
    {"keep-age", KEY_KEEP_AGE, "TIME", 0,
     "Delete runs that ended longer ago than this: 30m, 12h, 7d (units s, m, h, d, w)", 6},
    {"keep-runs", KEY_KEEP_RUNS, "NUMBER", 0, "Keep only the newest NUMBER runs", 6},
    {0},
};

struct unit {
    char letter;
    double factor;
};

/* A number with an optional unit, greater than 0; 0 after a usage error. */
static uint64_t parse_number(const char *text, const struct unit *units, size_t unit_count, double most,
                             const char *kind, struct argp_state *state)
{
    char *end;
    double number = strtod(text, &end), factor = 1;

    for (size_t i = 0; end != text && *end && i < unit_count; i++) {
        if (*end == units[i].letter) {
            factor = units[i].factor;
            end++;
            break;
        }
    }
    number *= factor;
    if (end == text || *end || !(number >= 1) || number > most) {
        argp_error(state, "'%s' is not %s", text, kind);
        return 0;
    }
    return (uint64_t)number;
}

uint64_t cli_parse_bytes(const char *text, struct argp_state *state)
{
    static const struct unit units[] = {
        {'K', 1 << 10}, {'M', 1 << 20}, {'G', 1 << 30}, {'T', (double)(1ull << 40)}};

    return parse_number(text, units, ARRAY_SIZE(units), (double)(1ull << 60), "a size like 500M or 10G",
                        state);
}

static uint64_t parse_age_ns(const char *text, struct argp_state *state)
{
    static const struct unit units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 604800}};

    return 1000000000u * parse_number(text, units, ARRAY_SIZE(units), 3e9, "a time like 12h or 7d", state);
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
        keep->runs = parse_number(arg, NULL, 0, 1e15, "a number of runs", state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp retention_argp = {.options = options, .parser = parse};
