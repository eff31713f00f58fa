/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/tracer/record_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/array.h"

#define RECORD_BYTES 48u /* the longest is a fork's */

struct queued_record {
    uint32_t size;
    uint8_t bytes[RECORD_BYTES] __attribute__((aligned(8)));
};

_Static_assert(sizeof(struct wire_fork) <= RECORD_BYTES, "a fork fits");
_Static_assert(sizeof(struct wire_exit) <= RECORD_BYTES, "an exit fits");

int record_queue_init(struct record_queue *queue)
{
    *queue = (struct record_queue){.mutex = PTHREAD_MUTEX_INITIALIZER};
    queue->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return queue->wakeup < 0 ? -errno : 0;
}

void record_queue_release(struct record_queue *queue)
{
    if (queue->wakeup >= 0)
        close(queue->wakeup);
    free(queue->records);
    free(queue->reading);
}

bool record_queue_put(struct record_queue *queue, const void *record, size_t size)
{
    const uint64_t one = 1;
    bool fits = size <= RECORD_BYTES;

    pthread_mutex_lock(&queue->mutex);
    fits = fits && !array_reserve(&queue->records, &queue->capacity, queue->count + 1);
    if (fits) {
        struct queued_record *queued = &queue->records[queue->count++];

        queued->size = (uint32_t)size;
        memcpy(queued->bytes, record, size);
        queue->bytes += size;
    } else {
        queue->lost++;
    }
    pthread_mutex_unlock(&queue->mutex);
    if (write(queue->wakeup, &one, sizeof(one)) < 0)
        return fits; /* the counter is at its limit: it is readable */
    return fits;
}

/* Takes what has come as what is read next. Returns false when there is nothing. */
static bool take(struct record_queue *queue)
{
    uint64_t woken;

    if (queue->reading_at < queue->reading_count)
        return true;
    free(queue->reading);
    (void)!read(queue->wakeup, &woken, sizeof(woken));
    pthread_mutex_lock(&queue->mutex);
    queue->reading = queue->records;
    queue->reading_count = queue->count;
    queue->records = NULL;
    queue->count = queue->capacity = 0;
    pthread_mutex_unlock(&queue->mutex);
    queue->reading_at = 0;
    return queue->reading_count;
}

int record_queue_consume(struct record_queue *queue, unsigned limit, wire_handler handle, void *context)
{
    unsigned count = 0;
    int r = 0;

    while (!r && count < limit && take(queue)) {
        const struct queued_record *record = &queue->reading[queue->reading_at++];

        r = handle(context, record->bytes, record->size);
        count++;
    }
    return r < 0 ? r : (int)count;
}

uint64_t record_queue_lost(struct record_queue *queue)
{
    uint64_t lost;

    pthread_mutex_lock(&queue->mutex);
    lost = queue->lost;
    pthread_mutex_unlock(&queue->mutex);
    return lost;
}

uint64_t record_queue_bytes(struct record_queue *queue)
{
    uint64_t bytes;

    pthread_mutex_lock(&queue->mutex);
    bytes = queue->bytes;
    pthread_mutex_unlock(&queue->mutex);
    return bytes;
}
