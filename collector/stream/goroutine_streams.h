/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The goroutines of one process: records of the kernel side become events of goroutines
 * (store/streams/go_events.h) and, for each goroutine of the program's own, a stream of calls like that of a
 * thread, labelled P.gN: its function, and inside it its operations, each under the name of its place in the
 * source.
 */
#ifndef TRACECTL_COLLECTOR_STREAM_GOROUTINE_STREAMS_H
#define TRACECTL_COLLECTOR_STREAM_GOROUTINE_STREAMS_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/wire.h"
#include "collector/stream/registry.h"
#include "collector/stream/streams.h"

struct goroutine_streams;
struct streams;

/* `image` has a Go program to be recorded; `from_start`: it has just been loaded. */
int goroutine_streams_new(struct streams *streams, struct traced_process *process, struct traced_image *image,
                          bool from_start, struct goroutine_streams **ret_goroutines);
void goroutine_streams_free(struct goroutine_streams *goroutines);

/* A record of `size` bytes; the code of the process is known. */
int goroutine_streams_event(struct streams *streams, struct traced_process *process,
                            const struct wire_go *record, size_t size);

/* `count` records were lost: the ring was full. */
int goroutine_streams_lost(struct streams *streams, struct traced_process *process, uint32_t tid, uint64_t ns,
                           uint64_t count);

/* From now on so much is recorded of the process. `ns`: CLOCK_MONOTONIC. */
int goroutine_streams_detail(struct streams *streams, struct traced_process *process, uint64_t ns,
                             enum go_detail detail);

/* The process has ended with `exit_status` (-1: it continues, or its status is not known) or is not looked at
 * any more: the streams end as they stand. */
int goroutine_streams_end(struct streams *streams, struct traced_process *process, uint64_t ns,
                          int exit_status);

#endif
