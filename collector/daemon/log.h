/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The daemon's log: one line for each event, of key=value pairs, on standard error. */
#ifndef TRACECTL_COLLECTOR_DAEMON_LOG_H
#define TRACECTL_COLLECTOR_DAEMON_LOG_H

#include <stddef.h>

/* Writes "time=... level=... event=EVENT KEY=VALUE..."; behind `event` come pairs of strings, then NULL.
 * Values with anything but letters, digits and _./:@%+- are quoted, and lines stay lines whatever is in them.
 */
#define service_log(level, ...) service_log_pairs((level), __VA_ARGS__, (const char *)NULL)
void service_log_pairs(const char *level, const char *event, ...) __attribute__((sentinel));

/* A number as one of those strings: in a buffer of the thread's, of which there are eight in turn. */
const char *service_number(long long number);

#endif
