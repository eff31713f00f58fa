/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The interleaving of goroutines as text (go timeline, go check, go explore). */
#ifndef TRACECTL_CLI_GO_GO_TIMELINE_H
#define TRACECTL_CLI_GO_GO_TIMELINE_H

#include <stdio.h>

#include "analyzer/go/timeline.h"
#include "cli/go/go_verdict.h"

/* Prints the timeline of a judged program: a column a goroutine, or a line a row where `width` characters are
 * not enough for the columns. `options` NULL: the last GO_TIMELINE_ROWS rows of the goroutines that matter.
 */
int go_timeline_text(FILE *out, struct tracestore *store, const struct go_judged *judged,
                     const struct go_timeline_options *options, size_t width, struct error *err);

/* The same of a timeline that has been read. Fails with -ENOMEM, or with what `places` says. */
int go_timeline_print(FILE *out, const struct go_timeline *timeline, const struct go_judged *judged,
                      size_t width);

/* How wide stdout is: the terminal's width, $COLUMNS, or a sheet of paper. */
size_t go_timeline_width(void);

#endif
