/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Export of a run to the formats of other tools. Each is a stream: events are read, written and forgotten, in
 * memory that does not grow with their number (docs/export.md says what each format makes of them).
 *
 * What is not known is written as such. A loss is a mark at its place; calls without a return have no end and
 * say whether they are open or unknown; functions that were not observed for a time are marks of the run.
 */
#ifndef TRACESTORE_EXPORT_FORMATS_H
#define TRACESTORE_EXPORT_FORMATS_H

#include <stdbool.h>
#include <stdio.h>

#include "store/api/tracestore.h"

/* What a folded stack counts. */
enum export_weight {
    EXPORT_CALLS, /* calls of the innermost function */
    EXPORT_TIME,  /* nanoseconds spent in it and not in what it called */
};

struct export_options {
    const char *thread;           /* label of the only thread wanted, NULL: all */
    uint64_t first_seq, last_seq; /* events of each thread, both included; last_seq 0: to the end */
    uint64_t from_ns, to_ns;      /* events placed in this time, both included; to_ns 0: to the end */
    enum export_weight weight;    /* of folded stacks */
    const char *directory;        /* of a format that makes one; must not exist yet, or be empty */
};

struct export_totals {
    uint64_t threads, events, lost, damaged; /* damaged: stretches that could not be read */
};

struct export_format {
    const char *name;
    const char *summary;
    bool makes_directory; /* writes to options->directory; otherwise to a file */
    int (*write)(struct tracestore *store, const struct tracestore_run *run,
                 const struct export_options *options, FILE *out, struct export_totals *ret_totals,
                 struct error *err);
};

/* All formats, in the order in which people should see them; the last has a NULL name. */
extern const struct export_format *const export_formats[];

/* NULL: there is none of that name. */
const struct export_format *export_format_find(const char *name);

/* Writes the run. `out` is not flushed or closed, and not used by a format that makes a directory. Fails with
 * -ENOENT (no such thread), -EINVAL (times asked for of a run that kept none), -EIO (`out` refuses), -EEXIST
 * (the directory is not empty), or what reading the store met. A damaged stretch of a thread becomes a mark
 * like a loss, is counted, and the export continues after it. */
int export_write(const struct export_format *format, struct tracestore *store,
                 const struct tracestore_run *run, const struct export_options *options, FILE *out,
                 struct export_totals *ret_totals, struct error *err);

#endif
