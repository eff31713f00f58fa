/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A log for those who work on tracectl: what a part decides and why, a line on standard error each, with the
 * seconds since the log began and the file that the line comes from.
 *
 *     tracectl -v -v record ...                          all parts
 *     TRACECTL_DEBUG=collector/budget,store tracectl ... these folders
 *
 * It is off unless a program calls debug_start(): libraries stay silent, and a line costs one branch.
 */
#ifndef TRACECTL_BASE_DEBUG_H
#define TRACECTL_BASE_DEBUG_H

#include <stdbool.h>

extern bool debug_is_on; /* to be read by debug_log() only */

/* Begins the log. `parts`: folders or files, separated by commas, that are logged, copied; NULL: all. */
void debug_start(const char *parts);

/* Writes a line if the part that `file` belongs to is logged. Strings among the values are made printable. */
void debug_write(const char *file, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Logs a line: a format without a line break, and its values, which are computed only if the log is on. */
#define debug_log(...) \
    do { \
        if (__builtin_expect(debug_is_on, false)) \
            debug_write(__FILE__, __VA_ARGS__); \
    } while (0)

#endif
