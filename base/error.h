/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What failed, on what, why, and what the user can do about it.
 *
 * Library functions return 0 (or a positive answer) on success and a negative errno on failure. Those that
 * can say more than the number take a `struct error *` as their last argument and fill it on failure; a NULL
 * pointer means that the caller does not want the text. Libraries never print: cli/ and the daemon do.
 *
 * The text has the form that docs call the error line:  WHAT: WHY (REMEDY)
 * all in lower case, without a final full stop, on one line.
 */
#ifndef TRACECTL_BASE_ERROR_H
#define TRACECTL_BASE_ERROR_H

#include <stdarg.h>

struct error {
    int code;          /* the negative errno, 0 when nothing has failed */
    char message[480]; /* the whole error line, without "tracectl: " */
};

/* Sets `err` (may be NULL) to `code` (negative errno) and "WHAT: WHY (REMEDY)", where WHAT is the formatted
 * text, WHY the C library's words for the code, and REMEDY is left out when NULL. Returns `code`. */
int error_set(struct error *err, int code, const char *remedy, const char *what, ...)
    __attribute__((format(printf, 4, 5)));

/* The same with the reason in the caller's words: the formatted text is the whole line. Returns `code`. */
int error_say(struct error *err, int code, const char *line, ...) __attribute__((format(printf, 3, 4)));

/* error_set for lack of memory. Returns -ENOMEM. */
int error_no_memory(struct error *err);

#endif
