/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tables of functions, of one run and of two. */
#ifndef TRACECTL_CLI_SERVE_PAGE_FUNCTIONS_H
#define TRACECTL_CLI_SERVE_PAGE_FUNCTIONS_H

#include <jansson.h>

#include "cli/serve/print.h"

/* The functions of a run as /api/v1/runs/N/top says them, all of them. NULL: they cannot be read. */
json_t *page_functions_read(const char *run);

/* The table for the route's run, sorted and filtered as the route says. -ENOMEM. */
int page_functions_put(const struct print *print, const json_t *top, struct error *err);

/* The table of two runs, old -> new, the functions that changed most first. -ENOMEM. */
int page_functions_compare(const struct print *print, const json_t *before, const json_t *after,
                           struct error *err);

#endif
