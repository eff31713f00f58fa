/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/times/time_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const units[] = {"ns", "us", "ms", "s"};

/* Returns the unit. */
static const char *number_text(uint64_t ns, char *text, size_t size)
{
    double value = (double)ns;
    int unit = 0, digits;

    if (ns < 1000) {
        snprintf(text, size, "%" PRIu64, ns);
        return units[0];
    }
    while (unit < 3 && value >= 1000) {
        value /= 1000;
        unit++;
    }
    digits = value < 10 ? 3 : value < 100 ? 2 : 1;
    snprintf(text, size, "%.*f", digits, value);
    return units[unit];
}

void time_text(uint64_t ns, char text[TIME_TEXT_SIZE])
{
    char number[32];
    const char *unit = number_text(ns, number, sizeof(number));

    snprintf(text, TIME_TEXT_SIZE, "%s %s", number, unit);
}

void time_range_text(struct time_range range, char text[TIME_TEXT_SIZE])
{
    char least[28], most[28];
    const char *least_unit = number_text(range.min_ns, least, sizeof(least)),
               *most_unit = number_text(range.max_ns, most, sizeof(most));

    if (time_range_is_exact(range))
        snprintf(text, TIME_TEXT_SIZE, "%s %s", least, least_unit);
    else if (range.max_ns == UINT64_MAX)
        snprintf(text, TIME_TEXT_SIZE, range.min_ns ? "over %s %s" : "?", least, least_unit);
    else if (!range.min_ns || !strcmp(least_unit, most_unit))
        snprintf(text, TIME_TEXT_SIZE, "%s to %s %s", least, most, most_unit);
    else
        snprintf(text, TIME_TEXT_SIZE, "%s %s to %s %s", least, least_unit, most, most_unit);
}
