/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which chunk is which thread's: by the tickets that they bear, and that the kernel side has told of. */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "collector/inline/reader_state.h"

int agent_reader_new(struct agent_area *area, const struct agent_sink *sink,
                     const struct agent_expected *expected, struct agent_reader **ret_reader)
{
    struct agent_reader *reader = calloc(1, sizeof(*reader));

    if (!reader)
        return -ENOMEM;
    reader->area = area;
    reader->sink = *sink;
    reader->since = clock_ns(CLOCK_MONOTONIC);
    if (agent_reader_expect(reader, expected)) {
        free(reader);
        return -ENOMEM;
    }
    *ret_reader = reader;
    return 0;
}

int agent_reader_expect(struct agent_reader *reader, const struct agent_expected *expected)
{
    if (array_reserve(&reader->expected, &reader->expected_capacity, reader->expected_count + 1))
        return -ENOMEM;
    reader->expected[reader->expected_count++] = *expected;
    return 0;
}

void reader_thread_remove(struct agent_reader *reader, struct reader_thread *thread)
{
    HASH_DEL(reader->threads, thread);
    free(thread->chunks);
    free(thread);
}

void reader_tickets_remove(struct agent_reader *reader, uint32_t tid)
{
    struct ticket *ticket = NULL, *next = NULL;

    HASH_ITER (hh, reader->tickets, ticket, next) {
        if (tid && ticket->tid != tid)
            continue;
        HASH_DEL(reader->tickets, ticket);
        free(ticket);
    }
}

void agent_reader_free(struct agent_reader *reader)
{
    struct reader_thread *thread = NULL, *next = NULL;

    if (!reader)
        return;
    HASH_ITER (hh, reader->threads, thread, next)
        reader_thread_remove(reader, thread);
    reader_tickets_remove(reader, 0);
    free(reader->expected);
    free(reader->nameless);
    free(reader);
}

/* ------------------------------------------------------------------------------------ whose chunks */

struct reader_thread *reader_thread_find(const struct agent_reader *reader, uint32_t tid)
{
    struct reader_thread *thread;

    HASH_FIND(hh, reader->threads, &tid, sizeof(tid), thread);
    return thread;
}

struct reader_thread *reader_thread_for(struct agent_reader *reader, uint32_t tid)
{
    struct reader_thread *thread = reader_thread_find(reader, tid);

    if (thread)
        return thread;
    thread = calloc(1, sizeof(*thread));
    if (!thread)
        return NULL;
    thread->tid = thread->of = tid;
    HASH_ADD(hh, reader->threads, tid, sizeof(thread->tid), thread);
    return thread;
}

/* Returns 1 when the chunk has found its thread, 0 when that is not known yet. */
static int place_chunk(struct agent_reader *reader, const struct nameless_chunk *chunk)
{
    uint32_t taken_with =
        __atomic_load_n(&agent_area_chunk(reader->area, chunk->number)->ticket, __ATOMIC_ACQUIRE);
    struct reader_thread *thread;
    struct ticket *ticket = NULL;

    if (taken_with)
        HASH_FIND(hh, reader->tickets, &taken_with, sizeof(taken_with), ticket);
    if (!ticket)
        return 0;
    thread = reader_thread_for(reader, ticket->tid);
    if (!thread || array_reserve(&thread->chunks, &thread->capacity, thread->count + 1))
        return -ENOMEM;
    if (reader->frozen) { /* it was known too late for the last look */
        thread->looked = thread->count;
        thread->sampled_records = chunk->sampled_records;
        thread->looked_lost = chunk->looked_lost;
    }
    thread->chunks[thread->count++] = (struct held_chunk){.number = chunk->number, .ticket = taken_with};
    return 1;
}

/* More than one area has threads at a time: each has one, or a few when handlers interrupt it. */
#define TICKETS_MAX (1u << 20)

int agent_reader_claim(struct agent_reader *reader, uint32_t number, uint32_t tid)
{
    struct ticket *ticket;

    if (reader->fault)
        return 0;
    HASH_FIND(hh, reader->tickets, &number, sizeof(number), ticket);
    if (ticket)
        return 0;
    if (HASH_COUNT(reader->tickets) >= TICKETS_MAX)
        return reader_result(reader, reader_find_fault(reader, "it takes its slots for ever"));
    ticket = calloc(1, sizeof(*ticket));
    if (!ticket)
        return -ENOMEM;
    ticket->number = number;
    ticket->tid = tid;
    HASH_ADD(hh, reader->tickets, number, sizeof(ticket->number), ticket);
    return 0;
}

/* Chunks that were taken stay in their order: one without a name comes before those that are taken later. */
int reader_place_new_chunks(struct agent_reader *reader)
{
    size_t left = 0;
    uint32_t number;
    int r;

    while (!reader->frozen && (r = agent_area_taken(reader->area, &number))) {
        if (r < 0)
            return reader_find_fault(reader, "more buffers were taken than there are");
        if (array_reserve(&reader->nameless, &reader->nameless_capacity, reader->nameless_count + 1))
            return -ENOMEM;
        reader->nameless[reader->nameless_count++] = (struct nameless_chunk){.number = number};
    }
    for (size_t i = 0; i < reader->nameless_count; i++) {
        r = place_chunk(reader, &reader->nameless[i]);
        if (r < 0)
            return r;
        if (!r)
            reader->nameless[left++] = reader->nameless[i];
    }
    reader->nameless_count = left;
    return 0;
}
