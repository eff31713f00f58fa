/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The streams of all threads of all runs, read by several workers. A part of loop_summary.c.
 *
 * Each worker has connections, loop tables and builders of its own, and takes one thread after the other, the
 * longest first. Then the tables become one, and each thread's summary is spelled in it. A summary does not
 * depend on what is in the table beside it (Procedure 1 looks at the thread alone), so that it is the same
 * with any number of workers; only the ids of bodies are not, which nobody sees (loop_table_number).
 */
#ifndef TRACECTL_ANALYZER_LOOPS_LOOP_SUMMARY_STREAMS_H
#define TRACECTL_ANALYZER_LOOPS_LOOP_SUMMARY_STREAMS_H

#include "analyzer/loops/loop_summary.h"

/* What a run's functions are to one set of options. */
struct stream_symbols {
    uint32_t *symbols; /* by function id: what filter and blind spots leave of it */
    size_t count;
};

/* What one set of options makes of the events. */
struct stream_view {
    struct loop_summary *summary; /* with the runs' gaps, and without threads */
    struct nlr_options nlr;
    bool with_returns;
    struct stream_symbols *symbols; /* by run */
};

/* Fills in the threads of all runs in all views, in the catalog's order. `workers` 0: as many as the machine
 * has processors and the streams are worth. */
int loop_summary_streams_read(const struct loop_source *sources, size_t runs, const struct stream_view *views,
                              size_t count, unsigned workers, struct error *err);

#endif
