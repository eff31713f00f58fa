/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The concurrency-usage model (image/go/go_usage.h) in the words of the store (store/streams/go_events.h). */
#ifndef TRACECTL_COLLECTOR_GO_USAGES_H
#define TRACECTL_COLLECTOR_GO_USAGES_H

#include "image/go/go_usage.h"
#include "store/streams/go_events.h"

/* GO_OP_NONE: the store has no word for it. */
enum go_op go_usage_operation(const struct go_usage *usage);

/* Writes the usages of `model`, those of the standard library left out: those are not tested. */
int go_usages_store(const struct go_model *model, struct trace_writer *writer, int64_t image_id,
                    struct error *err);

/* The same as rows whose strings are the model's. -ENOMEM. */
int go_usages_rows(const struct go_model *model, struct go_usage_row **ret_rows, size_t *ret_count);
void go_usages_rows_free(struct go_usage_row *rows, size_t count);

#endif
