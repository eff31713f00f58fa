/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How much is recorded of Go programs, while it changes (collector/go/detail_policy.h). */
#ifndef TRACECTL_COLLECTOR_STREAM_GOROUTINE_DETAIL_H
#define TRACECTL_COLLECTOR_STREAM_GOROUTINE_DETAIL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collector/images/image_table.h"
#include "collector/stream/streams.h"

/* A Go program whose goroutines are recorded. */
struct go_image_use {
    struct traced_image *image;
    pid_t pid;       /* of one of its processes */
    uint64_t cpu_ns; /* what all of them have used */
};

/* Each program that runs, once. The caller frees them. -ENOMEM. */
int streams_go_images(const struct streams *streams, struct go_image_use **ret_uses, size_t *ret_count);

/* Tells it in the events of all processes of the program. `now_ns`: CLOCK_MONOTONIC. */
int streams_go_detail(struct streams *streams, const struct traced_image *image, enum go_detail detail,
                      uint64_t now_ns);

#endif
