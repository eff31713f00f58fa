/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The answer to one target, on standard output: what a process of the server does. */
#ifndef TRACECTL_CLI_SERVE_PRINT_H
#define TRACECTL_CLI_SERVE_PRINT_H

#include <stdio.h>

#include "cli/serve/route.h"
#include "store/api/tracestore.h"

struct error;

/* Prints it, errors included, and returns the exit status (enum jobs_exit). */
int serve_print(const char *target);

/* ------------------------------------------------------------------------------------ for serve_print */

/* What a page is made of. Each page is a function that prints all of it, or fails before it has printed
 * anything: -EINVAL is a mistake in what was asked. */
struct print {
    FILE *out;
    const struct route *route;
    struct tracestore *store;
    char runs[2][24]; /* the route's, as arguments of commands */
};

int print_runs(const struct print *print, struct error *err);
int print_live(const struct print *print, struct error *err);
int print_run(const struct print *print, struct error *err);
int print_function(const struct print *print, struct error *err);
int print_timeline(const struct print *print, struct error *err);
int print_compare(const struct print *print, struct error *err);
int print_sql(const struct print *print, struct error *err);
int print_metrics(const struct print *print, struct error *err);

#endif
