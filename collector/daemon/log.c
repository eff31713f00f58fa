/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/daemon/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

static void write_value(FILE *line, const char *value)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+-";
    AUTO_FREE char *printable = NULL;

    if (*value && !value[strspn(value, plain)]) {
        fputs(value, line);
        return;
    }
    printable = text_printable(value);
    putc('"', line);
    for (const char *c = printable ? printable : "?"; *c; c++) {
        if (*c == '"' || *c == '\\')
            putc('\\', line);
        putc(*c, line);
    }
    putc('"', line);
}

void service_log_pairs(const char *level, const char *event, ...)
{
    char when[32], *text = NULL;
    size_t size = 0;
    FILE *line = open_memstream(&text, &size);
    time_t now = time(NULL);
    struct tm utc;
    const char *key;
    va_list pairs;

    if (!line)
        return;
    strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    fprintf(line, "time=%s level=%s event=%s", when, level, event);
    va_start(pairs, event);
    while ((key = va_arg(pairs, const char *))) {
        fprintf(line, " %s=", key);
        write_value(line, va_arg(pairs, const char *));
    }
    va_end(pairs);
    putc('\n', line);
    /* In one piece, among those of the recorders. */
    if (!fclose(line) && write(STDERR_FILENO, text, size) < 0)
        clearerr(stderr); /* the log is not read: recording continues */
    free(text);
}

const char *service_number(long long number)
{
    static _Thread_local char texts[8][24];
    static _Thread_local unsigned turn;
    char *text = texts[turn++ % 8];

    snprintf(text, sizeof(texts[0]), "%lld", number);
    return text;
}
