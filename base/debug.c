/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/debug.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"

bool debug_is_on;

static char *logged_parts; /* NULL: all */
static uint64_t started_ns;

void debug_start(const char *parts)
{
    free(logged_parts);
    logged_parts = parts ? strdup(parts) : NULL;
    started_ns = clock_ns(CLOCK_MONOTONIC);
    debug_is_on = true;
}

/* Whether a part is the file, without its ending or with it, or a folder above it. */
static bool is_logged(const char *file)
{
    const char *part = logged_parts;

    while (part) {
        size_t length = strcspn(part, ",");

        if (length && !strncmp(file, part, length) && strchr("/.", file[length]))
            return true;
        part = part[length] ? part + length + 1 : NULL;
    }
    return !logged_parts;
}

/* In one write, so that lines of several processes do not mix. */
void debug_write(const char *file, const char *format, ...)
{
    uint64_t us = (clock_ns(CLOCK_MONOTONIC) - started_ns) / 1000;
    AUTO_FREE char *line = NULL;
    size_t size = 0;
    FILE *out;
    va_list values;

    if (!is_logged(file))
        return;
    out = open_memstream(&line, &size);
    if (!out)
        return;
    text_print(out, "%4u.%06u %s: ", (unsigned)(us / 1000000), (unsigned)(us % 1000000), file);
    va_start(values, format);
    text_vprint(out, format, values);
    va_end(values);
    putc('\n', out);
    if (!fclose(out))
        text_put_raw(stderr, line);
}
