/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Text for other tools: strings that are valid in their format whatever bytes a name has, and numbers written
 * without printf, which an export of millions of events would mostly wait for. Errors stay in the FILE.
 */
#ifndef TRACESTORE_EXPORT_TEXT_H
#define TRACESTORE_EXPORT_TEXT_H

#include <stdint.h>
#include <stdio.h>

/* The text as a JSON string with its quotes, in memory from malloc; NULL: out of memory. */
char *text_json(const char *text);

/* What text_put_csv (base/text.h) writes; the same. */
char *text_csv(const char *text);

void text_put(FILE *out, const char *text);
void text_put_number(FILE *out, uint64_t number);
/* Nanoseconds as microseconds with three digits behind the point. */
void text_put_microseconds(FILE *out, uint64_t ns);
/* text_json without the allocation. */
void text_put_json(FILE *out, const char *text);

#endif
