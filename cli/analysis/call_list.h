/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl calls with times: one line for each call that a filter leaves, in the order of their beginnings. */
#ifndef TRACECTL_CLI_ANALYSIS_CALL_LIST_H
#define TRACECTL_CLI_ANALYSIS_CALL_LIST_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/api/tracestore.h"

struct error;

struct call_filter {
    bool wanted;             /* a list is wanted instead of the tree: some option asks for one */
    uint64_t min_ns;         /* calls that certainly took at least this long, and those that never returned */
    uint64_t from_ns, to_ns; /* calls that began in between, since the run began; to_ns 0: to the end */
    uint64_t depth;          /* so many levels from the outermost on; 0: all */
    const char *function;    /* of this name, as the image spells it or demangled; NULL: any */
};

/* Keys of the options that ask for a list. */
enum {
    CALL_FILTER_DURATIONS = 256,
    CALL_FILTER_MIN_TIME,
    CALL_FILTER_DEPTH,
    CALL_FILTER_FROM,
    CALL_FILTER_TO,
    CALL_FILTER_FUNCTION
};

/* Takes one of these options; a usage error where its argument is wrong. False: it is none of them. */
bool call_filter_parse(int key, char *arg, const struct argp_state *state, struct call_filter *filter);

/* Prints the calls of one thread. With --json, objects of an array, without its brackets. */
int call_list_print(struct tracestore *store, const struct tracestore_run *run,
                    const struct tracestore_thread *thread, const struct call_filter *filter,
                    struct error *err);

#endif
