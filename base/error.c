/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* strerror's text with a lower-case first letter, as the error line wants it ("No such file" -> "no such
 * file"). */
static void reason_of(int code, char *text, size_t size)
{
    char buffer[128];
    const char *reason = strerror_r(-code, buffer, sizeof(buffer));

    snprintf(text, size, "%s", reason);
    if (text[0] >= 'A' && text[0] <= 'Z' && !(text[1] >= 'A' && text[1] <= 'Z'))
        text[0] = (char)(text[0] - 'A' + 'a');
}

int error_set(struct error *err, int code, const char *remedy, const char *what, ...)
{
    char why[128], line[320];
    va_list args;

    if (!err)
        return code;
    va_start(args, what);
    vsnprintf(line, sizeof(line), what, args);
    va_end(args);
    reason_of(code, why, sizeof(why));
    err->code = code;
    if (remedy)
        snprintf(err->message, sizeof(err->message), "%s: %s (%s)", line, why, remedy);
    else
        snprintf(err->message, sizeof(err->message), "%s: %s", line, why);
    return code;
}

int error_say(struct error *err, int code, const char *line, ...)
{
    va_list args;

    if (!err)
        return code;
    err->code = code;
    va_start(args, line);
    vsnprintf(err->message, sizeof(err->message), line, args);
    va_end(args);
    return code;
}

int error_no_memory(struct error *err)
{
    return error_say(err, -ENOMEM, "out of memory");
}
