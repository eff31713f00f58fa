/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where in the source a goroutine's operations are: what the store says of the sites of its events. */
#ifndef TRACECTL_ANALYZER_GO_PLACES_H
#define TRACECTL_ANALYZER_GO_PLACES_H

#include <stdint.h>

#include "store/api/tracestore.h"

struct go_place {
    const char *function; /* without the ":operation" of a site's name; "" when not known */
    const char *file;     /* "" when not known */
    int line;             /* 0: not known */
};

/* Looks a function_id up; `ret_place` is good as long as the source is. An id that is not known gives an
 * empty place. Fails with -ENOMEM, or with what the store said. */
struct go_place_source {
    int (*find)(void *context, uint32_t function_id, struct go_place *ret_place);
    void *context;
};

/* The functions of a store, each read once. The store must outlive it. */
struct go_places;
int go_places_new(struct tracestore *store, struct go_places **ret_places);
void go_places_free(struct go_places *places);
struct go_place_source go_places_source(struct go_places *places);

#endif
