/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The images that a recording probes: each file once, with its plan, and the meaning of the indexes that its
 * probes carry in their cookies.
 */
#ifndef TRACECTL_COLLECTOR_IMAGE_TABLE_H
#define TRACECTL_COLLECTOR_IMAGE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "collector/backend/uprobe.h"
#include "collector/plan/plan.h"
#include "store/tracestore.h"

struct image_table;

#define IMAGE_NO_PROBE UINT32_MAX

struct traced_image {
    dev_t device;
    ino_t inode;
    char *path;            /* as the first process that ran it saw it */
    char *refusal;         /* why it is not probed; NULL: it is */
    struct elf_image *elf; /* from here on: unset when refused */
    struct image_function *functions;
    size_t function_count;
    struct plan *plan;
    uint32_t first_index; /* of its probes; probe i of the plan has index first_index + i */
    enum trace_returns returns;
    uint32_t entry_index; /* of the probe on the entry point (_start), IMAGE_NO_PROBE if there is none */
    uint32_t main_index;  /* of the probe on main() */
    int64_t image_id;     /* in the catalog, 0: not yet */
    struct traced_image *next;
};

struct image_table_options {
    bool (*want)(void *context, const struct image_function *function); /* NULL: every function */
    void *context;
    enum plan_returns returns;
};

int image_table_new(const struct image_table_options *options, struct image_table **ret_table,
                    struct error *err);
void image_table_free(struct image_table *table);

/* The image in `path` (through which it is opened: "/proc/PID/exe") known to people as `name`; probes it when
 * it is new. An image that cannot be traced is an answer, not an error: `refusal` is set. Errors are failures
 * of ours: no memory, no permission to probe. */
int image_table_get(struct image_table *table, struct uprobe_backend *backend, const char *path,
                    const char *name, struct traced_image **ret_image, struct error *err);

/* First of the list of all images. */
const struct traced_image *image_table_images(const struct image_table *table);

/* The store's function_id of probe `index`; the function enters the catalog when it is first asked for.
 * -ENOENT: no such probe. */
int image_table_function_id(struct image_table *table, struct trace_writer *writer, uint32_t index,
                            uint32_t *ret_function_id, struct error *err);

/* Stores which wanted functions carry no probe, and as tags "untraced:PATH" which images carry none, with the
 * reasons. */
int image_table_store_blind(struct image_table *table, struct trace_writer *writer, struct error *err);

/* The index of the probe on the function of `image` that `address` (link-time) lies in, or IMAGE_NO_PROBE. */
uint32_t image_table_find(const struct traced_image *image, uint64_t address);

#endif
