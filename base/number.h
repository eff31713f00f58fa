/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers as people write them in options, configuration files and SQL arguments: without a sign and without
 * white space. Each function returns false and leaves the output untouched when the text is no such number or
 * too large.
 */
#ifndef TRACECTL_BASE_NUMBER_H
#define TRACECTL_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* "12": decimal digits. */
bool number_parse_count(const char *text, uint64_t *ret_count);

/* The count that the text begins with; *ret_end is behind its last digit. For lists of numbers. */
bool number_parse_count_at(const char *text, uint64_t *ret_count, const char **ret_end);

/* "200ms", "1.5s", "5m", "1h", "7d", "2w": nanoseconds, rounded, up to 10^18. Units are us, ms, s, m, h, d
 * and w; a number without one counts in units of `bare_ns`. */
bool number_parse_duration_in(const char *text, double bare_ns, uint64_t *ret_ns);

/* The same, with seconds as the unit of bare numbers. */
bool number_parse_duration(const char *text, uint64_t *ret_ns);

/* "4096", "64K", "1.5G": bytes, rounded down, up to 2^60. Units are B, K, M, G and T, in either case, by
 * powers of 1024. */
bool number_parse_size(const char *text, uint64_t *ret_bytes);

/* "5", "0.5%": a percentage up to 1000, as a share (0.05, 0.005). */
bool number_parse_share(const char *text, double *ret_share);

#endif
