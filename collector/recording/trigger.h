/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * record --trigger: which functions open windows (bpf/trigger.h), and what was not recorded outside of them,
 * as rows of `blind`.
 */
#ifndef TRACECTL_COLLECTOR_RECORDING_TRIGGER_H
#define TRACECTL_COLLECTOR_RECORDING_TRIGGER_H

#include <stdbool.h>

#include "collector/backend/backend.h"
#include "collector/images/image_table.h"

struct error;

#define TRIGGER_CAUSE "outside the trigger"

struct trigger;

struct trigger_options {
    /* Whether a function opens windows. */
    bool (*opens)(void *context, struct elf_image *image, const struct image_function *function);
    void *context;
    struct backend *backend; /* of uprobes, opened with a share */
    struct image_table *images;
    struct trace_writer *writer;
    uint64_t from_ns; /* the run's beginning, CLOCK_REALTIME */
};

/* -ENOMEM. */
int trigger_new(const struct trigger_options *options, struct trigger **ret_trigger, struct error *err);

/* Accepts NULL. */
void trigger_free(struct trigger *trigger);

/* Before an image's probes are attached; again, nothing happens. -E2BIG: it has too many. */
int trigger_enrol(struct trigger *trigger, struct traced_image *image, struct error *err);

/* Whether any function that has been met opens windows. */
bool trigger_is_there(const struct trigger *trigger);

/* Reports of which functions calls were not recorded so far. Now and then, so that a recording that is killed
 * says so, too. */
int trigger_sample(struct trigger *trigger, struct error *err);

/* When the last hit has been: says how many. `to_ns`: the end of the run, CLOCK_REALTIME. */
int trigger_finish(struct trigger *trigger, uint64_t to_ns, struct error *err);

#endif
