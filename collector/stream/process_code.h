/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The code that a traced process has mapped: which image an address belongs to, and how returns come to be
 * known there. */
#ifndef TRACECTL_COLLECTOR_STREAM_PROCESS_CODE_H
#define TRACECTL_COLLECTOR_STREAM_PROCESS_CODE_H

#include "collector/stream/registry.h"
#include "collector/stream/streams.h"

/* Replaces the process's code by a copy of `code`, and finds out its `returns`. -ENOMEM. */
int process_code_set(struct traced_process *process, const struct stream_code *code, size_t count);

/* The mapping that holds `address`, NULL if none does. O(log count). */
const struct stream_code *process_code_find(const struct traced_process *process, uint64_t address);

/* What is added to the image's link-time addresses in the process. False: it is not mapped. */
bool process_code_bias(const struct traced_process *process, const struct traced_image *image,
                       uint64_t *ret_load_bias);

/* Marks the images that the process has mapped, its program among them (traced_image.in_use). */
void process_code_mark_images(const struct traced_process *process);

/* The address in the process's code whose low half this is; 0: there is none, or more than one. */
uint64_t process_code_complete(const struct traced_process *process, uint32_t low);

#endif
