/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What all pages have: their head with the ways to the others, texts and numbers. Beside these the pages use
 * analyzer/report/html.h. */
#ifndef TRACECTL_CLI_SERVE_PAGE_H
#define TRACECTL_CLI_SERVE_PAGE_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

/* Any bytes, escaped. */
void page_text(FILE *out, const char *text);

void page_begin(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void page_end(FILE *out);

/* A whole page about what went wrong. */
void page_error(FILE *out, const char *reason);

/* "<td ...>12,345</td>" */
void page_count_cell(FILE *out, uint64_t count);
/* A time of `ns`, or "?" when it is negative: not known. */
void page_time_cell(FILE *out, int64_t ns);

/* The name, as a link to the function's page of the run. */
void page_function_link(FILE *out, const char *run, const char *name);

/* A picture that is a document of its own, with its scripts, loaded when it comes into sight. */
void page_frame(FILE *out, const char *title, const char *address);

/* A member of a document as text ("" where there is none), or as a number (`otherwise` where it is null). */
const char *page_member(const json_t *object, const char *key);
int64_t page_number(const json_t *object, const char *key, int64_t otherwise);

/* A value in Prometheus' text format, with what it is. */
void metrics_put(FILE *out, const char *name, const char *type, const char *help, uint64_t value);

#endif
