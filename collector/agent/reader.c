/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/agent/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/array.h"

/* A chunk of a thread. */
struct held_chunk {
    uint32_t number;
    bool has_hole; /* a record was given up: whoever was to write it may still do so */
};

struct reader_thread {
    uint32_t tid;
    uint32_t of; /* whose calls are read now: its own, or those of a child that shares its slots */
    struct held_chunk *chunks; /* in their order, from `first` on; those before are kept for their holes */
    size_t first, count, capacity;
    size_t position;    /* in the first: so many records have been read */
    uint64_t lost_told; /* of its lost_after */
    size_t looked;      /* the last look: so many chunks, and records of the last of them */
    size_t looked_records;
    uint64_t looked_lost; /* lost_after of that chunk */
    uint64_t hole_since;  /* 0: no record is waited for */
    UT_hash_handle hh;
};

/* What slots were taken with, and by whom. */
struct ticket {
    uint32_t number, tid;
    UT_hash_handle hh;
};

/* A chunk of which it is not known yet who has taken it. */
struct nameless_chunk {
    uint32_t number;
    size_t looked_records; /* at the last look */
    uint64_t looked_lost;
};

struct agent_reader {
    struct agent_area *area;
    struct agent_sink sink;
    struct reader_thread *threads;
    struct ticket *tickets;
    struct nameless_chunk *nameless;
    size_t nameless_count, nameless_capacity;
    uint64_t now, unplaced_told, shared_told;
    uint64_t strays; /* calls in chunks that nobody is known to have taken */
    bool frozen;     /* nothing behind the last look is read */
};

int agent_reader_new(struct agent_area *area, const struct agent_sink *sink, struct agent_reader **ret_reader)
{
    struct agent_reader *reader = calloc(1, sizeof(*reader));

    if (!reader)
        return -ENOMEM;
    reader->area = area;
    reader->sink = *sink;
    *ret_reader = reader;
    return 0;
}

static void remove_thread(struct agent_reader *reader, struct reader_thread *thread)
{
    HASH_DEL(reader->threads, thread);
    free(thread->chunks);
    free(thread);
}

/* Those of thread `tid`; 0: of all. */
static void remove_tickets(struct agent_reader *reader, uint32_t tid)
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
        remove_thread(reader, thread);
    remove_tickets(reader, 0);
    free(reader->nameless);
    free(reader);
}

/* ------------------------------------------------------------------------------------ whose chunks */

static struct reader_thread *find_thread(const struct agent_reader *reader, uint32_t tid)
{
    struct reader_thread *thread;

    HASH_FIND(hh, reader->threads, &tid, sizeof(tid), thread);
    return thread;
}

static struct reader_thread *thread_for(struct agent_reader *reader, uint32_t tid)
{
    struct reader_thread *thread = find_thread(reader, tid);

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
    thread = thread_for(reader, ticket->tid);
    if (!thread || array_reserve(&thread->chunks, &thread->capacity, thread->count + 1))
        return -ENOMEM;
    if (reader->frozen) { /* it was known too late for the last look */
        thread->looked = thread->count;
        thread->looked_records = chunk->looked_records;
        thread->looked_lost = chunk->looked_lost;
    }
    thread->chunks[thread->count++] = (struct held_chunk){.number = chunk->number};
    return 1;
}

int agent_reader_claim(struct agent_reader *reader, uint32_t number, uint32_t tid)
{
    struct ticket *ticket;

    HASH_FIND(hh, reader->tickets, &number, sizeof(number), ticket);
    if (!ticket) {
        ticket = calloc(1, sizeof(*ticket));
        if (!ticket)
            return -ENOMEM;
        ticket->number = number;
        HASH_ADD(hh, reader->tickets, number, sizeof(ticket->number), ticket);
    }
    ticket->tid = tid;
    return 0;
}

/* Chunks that were taken stay in their order: one without a name comes before those that are taken later. */
static int place_new_chunks(struct agent_reader *reader)
{
    size_t left = 0;
    uint32_t number;
    int r;

    while (!reader->frozen && agent_area_taken(reader->area, &number)) {
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

/* ------------------------------------------------------------------------------------ looking */

static const struct agent_record *records_of(const struct agent_reader *reader,
                                             const struct reader_thread *thread, size_t chunk)
{
    return agent_chunk_records(agent_area_chunk(reader->area, thread->chunks[chunk].number));
}

static bool is_written(const struct agent_record *record)
{
    return __atomic_load_n(&record->function, __ATOMIC_ACQUIRE) != 0;
}

static void look_at(const struct agent_reader *reader, struct reader_thread *thread)
{
    size_t last = thread->count - 1, records = agent_area_records(reader->area), i;

    if (thread->first == thread->count)
        return;
    i = thread->looked == last ? thread->looked_records : 0;
    if (last == thread->first && i < thread->position)
        i = thread->position;
    while (i < records && is_written(&records_of(reader, thread, last)[i]))
        i++;
    thread->looked = last;
    thread->looked_records = i;
    thread->looked_lost = __atomic_load_n(
        &agent_area_chunk(reader->area, thread->chunks[last].number)->lost_after, __ATOMIC_ACQUIRE);
}

static void look_at_nameless(const struct agent_reader *reader, struct nameless_chunk *chunk)
{
    const struct agent_chunk *memory = agent_area_chunk(reader->area, chunk->number);
    size_t records = agent_area_records(reader->area);

    while (chunk->looked_records < records && is_written(&agent_chunk_records(memory)[chunk->looked_records]))
        chunk->looked_records++;
    chunk->looked_lost = __atomic_load_n(&memory->lost_after, __ATOMIC_ACQUIRE);
}

int agent_reader_look(struct agent_reader *reader, uint64_t now)
{
    struct reader_thread *thread = NULL, *next = NULL;
    int r = place_new_chunks(reader);

    reader->now = now;
    if (!r && !reader->frozen)
        HASH_ITER (hh, reader->threads, thread, next)
            look_at(reader, thread);
    for (size_t i = 0; !r && !reader->frozen && i < reader->nameless_count; i++)
        look_at_nameless(reader, &reader->nameless[i]);
    return r;
}

int agent_reader_freeze(struct agent_reader *reader, uint64_t now)
{
    int r = agent_reader_look(reader, now);

    reader->frozen = true;
    return r;
}

/* ------------------------------------------------------------------------------------ reading */

static int tell_loss(struct agent_reader *reader, struct reader_thread *thread)
{
    struct agent_chunk *chunk = agent_area_chunk(reader->area, thread->chunks[thread->first].number);
    uint64_t lost = __atomic_load_n(&chunk->lost_after, __ATOMIC_ACQUIRE), more;

    if (reader->frozen && thread->first == thread->looked)
        lost = thread->looked_lost;
    more = lost - thread->lost_told;
    thread->lost_told = lost;
    return more ? reader->sink.lost(reader->sink.context, thread->of, more) : 0;
}

/* The first chunk has been read to its end. */
static int leave_chunk(struct agent_reader *reader, struct reader_thread *thread)
{
    struct held_chunk *chunk = &thread->chunks[thread->first];
    const struct agent_chunk *memory = agent_area_chunk(reader->area, chunk->number);
    uint32_t state = __atomic_load_n(&memory->state, __ATOMIC_ACQUIRE);
    int r = tell_loss(reader, thread);

    if (state == AGENT_CHUNK_OPEN)
        chunk->has_hole = true; /* its taker may still be on the way to it */
    thread->position = thread->lost_told = thread->hole_since = 0;
    if (chunk->has_hole) {
        thread->first++;
        return r;
    }
    agent_area_give(reader->area, chunk->number);
    thread->count--;
    memmove(chunk, chunk + 1, (thread->count - thread->first) * sizeof(*chunk));
    if (thread->looked > thread->first)
        thread->looked--;
    else
        thread->looked_records = 0;
    return r;
}

/* A record of the first chunk is not there although others come behind it. Returns true when it has been
 * given up. */
static bool give_up(struct agent_reader *reader, struct reader_thread *thread)
{
    if (!thread->hole_since)
        thread->hole_since = reader->now;
    if (reader->now - thread->hole_since < READER_PATIENCE_NS)
        return false;
    thread->hole_since = 0;
    thread->chunks[thread->first].has_hole = true;
    thread->position++;
    return true;
}

/* Hands on records of the first chunk, at most up to number `limit` of them. */
static int read_records(struct agent_reader *reader, struct reader_thread *thread, size_t limit)
{
    const struct agent_record *records = records_of(reader, thread, thread->first);
    size_t from = thread->position;

    while (thread->position < limit && is_written(&records[thread->position]))
        thread->position++;
    if (thread->position == from)
        return 0;
    thread->hole_since = 0;
    return reader->sink.calls(reader->sink.context, thread->of, &records[from],
                              agent_area_times(reader->area, &records[from]), thread->position - from);
}

/* Reads the first chunk, which others follow. Returns 1 when it is read and left, 0 when a record of it is
 * waited for. `final`: nobody will write one. */
static int read_followed(struct agent_reader *reader, struct reader_thread *thread, bool final)
{
    const struct agent_chunk *chunk = agent_area_chunk(reader->area, thread->chunks[thread->first].number);
    size_t records = agent_area_records(reader->area);
    int r;

    for (;;) {
        bool full = __atomic_load_n(&chunk->state, __ATOMIC_ACQUIRE) == AGENT_CHUNK_FULL;

        r = read_records(reader, thread, records);
        if (r)
            return r;
        if (thread->position == records || !full) {
            r = leave_chunk(reader, thread);
            return r ? r : 1;
        }
        if (final)
            thread->position++; /* the call that it was for never began */
        else if (!give_up(reader, thread))
            return 0;
        else
            r = reader->sink.lost(reader->sink.context, thread->of, 1);
        if (r)
            return r;
    }
}

/* Reads up to record `limit` of chunk `last`. */
static int read_thread(struct agent_reader *reader, struct reader_thread *thread, uint32_t last, size_t limit,
                       bool final)
{
    while (thread->first < thread->count && thread->chunks[thread->first].number != last) {
        int r = thread->first + 1 < thread->count ? read_followed(reader, thread, final) : 0;

        if (r <= 0)
            return r;
    }
    return thread->first < thread->count ? read_records(reader, thread, limit) : 0;
}

int agent_reader_read(struct agent_reader *reader)
{
    struct reader_thread *thread = NULL, *next = NULL;
    int r = 0;

    HASH_ITER (hh, reader->threads, thread, next)
        if (!r && thread->looked >= thread->first && thread->looked < thread->count)
            r = read_thread(reader, thread, thread->chunks[thread->looked].number, thread->looked_records,
                            false);
    return r;
}

int agent_reader_read_to(struct agent_reader *reader, uint32_t tid, uint32_t offset)
{
    size_t chunk_bytes = reader->area->chunk_bytes;
    struct reader_thread *thread;
    int r = place_new_chunks(reader);

    thread = r ? NULL : find_thread(reader, tid);
    if (!thread || !offset)
        return r;
    /* Behind its last record a chunk's cursor is at the beginning of the next one. */
    return read_thread(
        reader, thread, (uint32_t)((offset - 1) / chunk_bytes),
        ((offset - 1) % chunk_bytes + 1 - sizeof(struct agent_chunk)) / sizeof(struct agent_record), false);
}

int agent_reader_lend(struct agent_reader *reader, uint32_t tid, uint32_t of)
{
    int r = place_new_chunks(reader);
    struct reader_thread *thread = r ? NULL : thread_for(reader, tid);

    if (!thread)
        return -ENOMEM;
    if (thread->first < thread->count) /* what has been lost so far is not `of`'s */
        r = tell_loss(reader, thread);
    thread->of = of;
    return r;
}

/* Reads the rest of a thread's chunks, or what there was at the last look. */
static int read_rest(struct agent_reader *reader, struct reader_thread *thread)
{
    int r = 0;

    if (thread->first == thread->count || (reader->frozen && thread->looked < thread->first))
        return 0;
    while (r >= 0 && thread->first < (reader->frozen ? thread->looked : thread->count - 1))
        r = read_followed(reader, thread, true);
    if (r < 0)
        return r;
    return read_records(reader, thread,
                        reader->frozen ? thread->looked_records : agent_area_records(reader->area));
}

static int end_thread(struct agent_reader *reader, struct reader_thread *thread)
{
    int r = read_rest(reader, thread);

    if (!r && thread->first < thread->count)
        r = tell_loss(reader, thread);
    for (size_t i = 0; i < thread->count; i++)
        agent_area_give(reader->area, thread->chunks[i].number);
    remove_tickets(reader, thread->tid);
    remove_thread(reader, thread);
    return r;
}

int agent_reader_end(struct agent_reader *reader, uint32_t tid)
{
    struct reader_thread *thread;
    int r = place_new_chunks(reader);

    thread = r ? NULL : find_thread(reader, tid);
    if (!thread)
        remove_tickets(reader, tid);
    return thread ? end_thread(reader, thread) : r;
}

int agent_reader_end_all(struct agent_reader *reader)
{
    struct reader_thread *thread = NULL, *next = NULL;
    int r = place_new_chunks(reader);

    HASH_ITER (hh, reader->threads, thread, next)
        if (!r)
            r = end_thread(reader, thread);
    return r;
}

uint64_t agent_reader_take_unplaced(struct agent_reader *reader)
{
    uint64_t lost = __atomic_load_n(&reader->area->head->unplaced, __ATOMIC_RELAXED), more;

    for (size_t i = 0; i < reader->nameless_count; i++) {
        if (!reader->frozen)
            look_at_nameless(reader, &reader->nameless[i]);
        reader->strays += reader->nameless[i].looked_records + reader->nameless[i].looked_lost;
    }
    reader->nameless_count = 0;
    more = lost + reader->strays - reader->unplaced_told;
    reader->unplaced_told += more;
    return more;
}

uint64_t agent_reader_take_shared(struct agent_reader *reader)
{
    uint64_t lost = __atomic_load_n(&reader->area->head->shared, __ATOMIC_RELAXED);
    uint64_t more = lost - reader->shared_told;

    reader->shared_told = lost;
    return more;
}
