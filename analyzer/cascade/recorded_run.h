/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* All that the analysis of cascades knows of one run, and the places of its events for people. */
#ifndef TRACECTL_ANALYZER_CASCADE_RECORDED_RUN_H
#define TRACECTL_ANALYZER_CASCADE_RECORDED_RUN_H

#include "analyzer/cascade/contention.h"
#include "analyzer/cascade/frames.h"
#include "analyzer/cascade/origin.h"

/* Where a function was called from. */
struct site_name {
    uint32_t site_id;
    char *function, *file; /* "": not known */
    int line;
};

struct recorded_run {
    struct trace_parts parts;
    struct cascade_trace trace;
    struct handlers handlers;
    struct causality causality;
    struct contention contention;
    struct origins origins;
    struct frames frames;
    struct tracestore_function *functions; /* by function_id, not all of them */
    size_t function_count;
    struct frame_function *kinds; /* by function_id */
    size_t kind_count;
    struct site_name *sites; /* by site_id, not all of them */
    size_t site_count, site_capacity;
};

/* Reads a run, or those that are parts of one, and finds what must and what may come before what; the sink is
 * the function of that name, demangled or not, with or without its parameters. NULL: none. `recognise`:
 * handlers of events that nobody has declared, too (event_loops.h). -ENODATA: it has no sync events. Release
 * in any case. */
int recorded_run_read(struct recorded_run *run, struct tracestore *store, const struct trace_parts *parts,
                      const char *sink, bool recognise, struct error *err);
void recorded_run_release(struct recorded_run *run);

/* The name of a function for people, without "@plt"; "?" where there is none. Borrowed; stubs' names are put
 * into `text`. */
const char *recorded_run_function(const struct recorded_run *run, uint32_t function, char *text, size_t size);
const struct tracestore_function *recorded_run_find(const struct recorded_run *run, uint32_t function);

/* Where an event happened: borrowed strings, "" and 0 where that is not known. */
struct event_place {
    const char *function, *file;
    int line;
};
struct event_place recorded_run_place(const struct recorded_run *run, uint32_t event);

#endif
