/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to analyzer/order/: the functions of a recorded run by id and by address, and whether calls of one
 * are seen. */
#ifndef TRACECTL_ANALYZER_ORDER_RECORDED_FUNCTIONS_H
#define TRACECTL_ANALYZER_ORDER_RECORDED_FUNCTIONS_H

#include "analyzer/order/sample.h"
#include "store/api/tracestore.h"

struct recorded_function {
    uint32_t id;
    uint32_t image; /* of the set */
    uint64_t address;
    uint32_t name; /* text of the set: as people call it, without "@plt" */
    bool called;   /* at least once in this run */
    bool blind;    /* not all of its calls were seen */
    uint32_t file,
        line; /* of an operation of a goroutine, which is a place and no function: text, and number; else 0 */
};

struct recorded_functions {
    struct recorded_function *items; /* by image and address */
    size_t count, capacity;
    uint32_t *by_id; /* indexes of items, sorted by id */
    bool attached;   /* processes were running when the recording began: what they had called before is not
                        known */
    bool chosen;     /* the run was recorded with a choice of functions: what was not called may not have been
                        seen */
};

/* All functions of the images that the run called functions of; images and names become part of `set`.
 * -ENOMEM, or what the store says. To be released in any case. */
int recorded_functions_read(struct tracestore *store, int64_t run_id, struct sample_set *set,
                            struct recorded_functions *functions, struct error *err);
void recorded_functions_release(struct recorded_functions *functions);

/* NULL: the run does not know it. */
const struct recorded_function *recorded_functions_by_id(const struct recorded_functions *functions,
                                                         uint32_t id);
const struct recorded_function *recorded_functions_at(const struct recorded_functions *functions,
                                                      uint32_t image, uint64_t address);

#endif
