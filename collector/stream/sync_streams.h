/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the threads of a process do to each other: records of the kernel side become events of
 * synchronisation (store/streams/sync_events.h).
 *
 * The operations of a thread that have begun and not ended are kept, so that an end belongs to the right one:
 * a function's return by where its return address lies, a system call's by its kind. What is found to have
 * been left (an exception, longjmp) gets no end.
 *
 * On failure streams->error is filled and its code returned.
 */
#ifndef TRACECTL_COLLECTOR_STREAM_SYNC_STREAMS_H
#define TRACECTL_COLLECTOR_STREAM_SYNC_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/wire.h"
#include "collector/stream/registry.h"
#include "collector/stream/streams.h"

struct sync_stream; /* of a process */
struct sync_thread; /* of a thread */

/* A record of `size` bytes. */
int sync_stream_record(struct streams *streams, struct traced_thread *thread, const struct wire_sync *record,
                       size_t size);

/* A thread, or a process (`is_process`), that the registry knows already. */
int sync_stream_fork(struct streams *streams, const struct wire_fork *record, bool is_process);
/* The thread continues with another program, alone. */
int sync_stream_exec(struct streams *streams, struct traced_thread *thread, uint64_t ns);
int sync_stream_exit(struct streams *streams, struct traced_thread *thread, const struct wire_exit *record);

/* `count` records were lost: the ring was full. */
int sync_stream_lost(struct streams *streams, struct traced_thread *thread, uint64_t ns, uint64_t count);

void sync_stream_free(struct sync_stream *sync); /* accepts NULL, as the next one */
void sync_thread_free(struct sync_thread *thread);

#endif
