/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Wire records on their way from the process that traces to the collector, which share their memory. */
#ifndef TRACECTL_COLLECTOR_TRACER_RECORD_QUEUE_H
#define TRACECTL_COLLECTOR_TRACER_RECORD_QUEUE_H

#include <pthread.h>
#include <stdint.h>

#include "collector/backend/life_cycle_source.h"

struct record_queue {
    pthread_mutex_t mutex;
    int wakeup; /* eventfd: readable when there is a record */
    struct queued_record *records, *reading;
    size_t count, capacity, reading_at, reading_count;
    uint64_t lost, bytes; /* records that found no memory; bytes of the others */
};

/* -EMFILE. */
int record_queue_init(struct record_queue *queue);
void record_queue_release(struct record_queue *queue);

/* Appends a record of a life cycle, and wakes the reader. There is no limit but memory: what makes it is
 * slowed down by being traced. Returns false when it is lost. */
bool record_queue_put(struct record_queue *queue, const void *record, size_t size);

/* As life_cycle_operations.consume. */
int record_queue_consume(struct record_queue *queue, unsigned limit, wire_handler handle, void *context);

/* So many records were lost so far, and so many bytes were not. */
uint64_t record_queue_lost(struct record_queue *queue);
uint64_t record_queue_bytes(struct record_queue *queue);

#endif
