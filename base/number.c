/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/number.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"

#define DURATION_MOST_NS 1e18
#define SIZE_MOST ((double)(1ull << 60))
#define PERCENT_MOST 1000.0

struct unit {
    const char *name;
    double factor;
};

bool number_parse_count_at(const char *text, uint64_t *ret_count, const char **ret_end)
{
    unsigned long long count;
    char *end;

    if (!isdigit((unsigned char)*text))
        return false;
    errno = 0;
    count = strtoull(text, &end, 10);
    if (errno)
        return false;
    *ret_count = count;
    *ret_end = end;
    return true;
}

bool number_parse_count(const char *text, uint64_t *ret_count)
{
    const char *end;
    uint64_t count;

    if (!number_parse_count_at(text, &count, &end) || *end)
        return false;
    *ret_count = count;
    return true;
}

/* A decimal number with one of the units behind it, in units of 1. */
static bool parse_quantity(const char *text, const struct unit *units, size_t count, double most, double *ret)
{
    char *end;
    double number;

    /* strtod() takes "inf", "nan" and hexadecimal numbers as well. */
    if (!isdigit((unsigned char)text[0]) || tolower((unsigned char)text[1]) == 'x')
        return false;
    number = strtod(text, &end);
    for (size_t i = 0; i < count; i++)
        if (!strcasecmp(end, units[i].name) && number * units[i].factor <= most) {
            *ret = number * units[i].factor;
            return true;
        }
    return false;
}

bool number_parse_duration_in(const char *text, double bare_ns, uint64_t *ret_ns)
{
    const struct unit units[] = {{"", bare_ns}, {"us", 1e3},   {"ms", 1e6},    {"s", 1e9},
                                 {"m", 60e9},   {"h", 3600e9}, {"d", 86400e9}, {"w", 604800e9}};
    double ns;

    if (!parse_quantity(text, units, ARRAY_SIZE(units), DURATION_MOST_NS, &ns))
        return false;
    *ret_ns = (uint64_t)(ns + 0.5);
    return true;
}

bool number_parse_duration(const char *text, uint64_t *ret_ns)
{
    return number_parse_duration_in(text, 1e9, ret_ns);
}

bool number_parse_size(const char *text, uint64_t *ret_bytes)
{
    static const struct unit units[] = {{"", 1},        {"B", 1},       {"K", 1 << 10},
                                        {"M", 1 << 20}, {"G", 1 << 30}, {"T", (double)(1ull << 40)}};
    double bytes;

    if (!parse_quantity(text, units, ARRAY_SIZE(units), SIZE_MOST, &bytes))
        return false;
    *ret_bytes = (uint64_t)bytes;
    return true;
}

bool number_parse_share(const char *text, double *ret_share)
{
    static const struct unit units[] = {{"", 0.01}, {"%", 0.01}};

    return parse_quantity(text, units, ARRAY_SIZE(units), PERCENT_MOST / 100, ret_share);
}
