/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The threads of a run that were not seen to end, by tid: no two of them share one. */
#ifndef TRACECTL_ANALYZER_ORDER_LIVING_THREADS_H
#define TRACECTL_ANALYZER_ORDER_LIVING_THREADS_H

#include <stddef.h>
#include <sys/types.h>

#include "store/api/tracestore.h"

struct living_threads {
    const struct tracestore_thread **items; /* ascending by tid; of goroutines that of their process */
    size_t count;
};

/* Those among `threads`, which must outlive them. 0 or -ENOMEM. Release afterwards. */
int living_threads_of(const struct tracestore_thread *threads, size_t count,
                      struct living_threads *ret_living);
void living_threads_release(struct living_threads *living);

/* The first with that tid; NULL: there is none. */
const struct tracestore_thread *living_threads_find(const struct living_threads *living, pid_t tid);

#endif
