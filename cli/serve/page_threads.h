/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The threads of a run: when each of them was there, as a picture and as a table. */
#ifndef TRACECTL_CLI_SERVE_PAGE_THREADS_H
#define TRACECTL_CLI_SERVE_PAGE_THREADS_H

#include <jansson.h>
#include <stdio.h>

struct error;

/* `run`: what `show` says of it. -ENOMEM. */
int page_threads_put(FILE *out, const json_t *run, struct error *err);

#endif
