/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "collector/inline/reader_state.h"

/* ------------------------------------------------------------------------------------ looking */

static const struct agent_record *records_of(const struct agent_reader *reader,
                                             const struct reader_thread *thread, size_t chunk)
{
    return agent_chunk_records(agent_area_chunk(reader->area, thread->chunks[chunk].number));
}

static void look_at(const struct agent_reader *reader, struct reader_thread *thread)
{
    size_t last = thread->count - 1, records = agent_area_records(reader->area), i;

    if (thread->first == thread->count)
        return;
    i = thread->looked == last ? thread->sampled_records : 0;
    if (last == thread->first && i < thread->position)
        i = thread->position;
    while (i < records && is_written(&records_of(reader, thread, last)[i]))
        i++;
    thread->looked = last;
    thread->sampled_records = i;
    thread->looked_lost = __atomic_load_n(
        &agent_area_chunk(reader->area, thread->chunks[last].number)->lost_after, __ATOMIC_ACQUIRE);
}

static void sample_nameless(const struct agent_reader *reader, struct nameless_chunk *chunk)
{
    const struct agent_chunk *memory = agent_area_chunk(reader->area, chunk->number);
    size_t records = agent_area_records(reader->area);

    while (chunk->sampled_records < records &&
           is_written(&agent_chunk_records(memory)[chunk->sampled_records]))
        chunk->sampled_records++;
    chunk->looked_lost = __atomic_load_n(&memory->lost_after, __ATOMIC_ACQUIRE);
}

int agent_reader_sample(struct agent_reader *reader, uint64_t now)
{
    struct reader_thread *thread = NULL, *next = NULL;
    int r = reader->fault ? -EBADMSG : reader_place_new_chunks(reader);

    reader->now = now;
    if (!r && !reader->frozen)
        HASH_ITER (hh, reader->threads, thread, next)
            look_at(reader, thread);
    for (size_t i = 0; !r && !reader->frozen && i < reader->nameless_count; i++)
        sample_nameless(reader, &reader->nameless[i]);
    return reader_result(reader, r);
}

int agent_reader_freeze(struct agent_reader *reader, uint64_t now)
{
    int r = agent_reader_sample(reader, now);

    reader->frozen = true;
    return r;
}

/* ------------------------------------------------------------------------------------ reading */

static int tell_loss(struct agent_reader *reader, struct reader_thread *thread)
{
    struct agent_chunk *chunk = agent_area_chunk(reader->area, thread->chunks[thread->first].number);
    uint64_t lost = __atomic_load_n(&chunk->lost_after, __ATOMIC_ACQUIRE), more;
    int r;

    if (reader->frozen && thread->first == thread->looked)
        lost = thread->looked_lost;
    r = reader_check_count(reader, thread->lost_reported, lost);
    if (r)
        return r;
    more = lost - thread->lost_reported;
    thread->lost_reported = lost;
    return more ? reader->sink.lost(reader->sink.context, thread->of, more) : 0;
}

/* How long the thread has waited behind its first chunk. The time is what the target says: no more is
 * believed than has passed. */
static void add_wait(const struct agent_reader *reader, struct reader_thread *thread)
{
    const struct agent_chunk *chunk = agent_area_chunk(reader->area, thread->chunks[thread->first].number);
    uint64_t waited = __atomic_load_n(&chunk->waited_after, __ATOMIC_RELAXED), most;

    if (!waited)
        return;
    most = clock_ns(CLOCK_MONOTONIC) - reader->since - thread->waited;
    thread->waited += waited < most ? waited : most;
}

/* The first chunk has been read to its end. */
static int leave_chunk(struct agent_reader *reader, struct reader_thread *thread)
{
    struct held_chunk *chunk = &thread->chunks[thread->first];
    const struct agent_chunk *memory = agent_area_chunk(reader->area, chunk->number);
    uint32_t state = __atomic_load_n(&memory->state, __ATOMIC_ACQUIRE);
    int r = tell_loss(reader, thread);

    add_wait(reader, thread);
    if (state == AGENT_CHUNK_OPEN)
        chunk->has_hole = true; /* its taker may still be on the way to it */
    thread->position = thread->last_at = thread->lost_reported = thread->hole_since = 0;
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
        thread->sampled_records = 0;
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
    size_t from = thread->position, count = 0;
    int r = reader_check_chunk(reader, thread);

    if (!r && limit > from)
        r = reader_copy_records(reader, &records[from], limit - from, &count);
    if (r || !count)
        return r;
    thread->position += count;
    thread->last = reader->records[count - 1];
    thread->last_at = thread->position;
    thread->hole_since = 0;
    return reader->sink.calls(reader->sink.context, thread->of, reader->records,
                              reader->area->times ? reader->times : NULL, count);
}

/* Reads the first chunk, which others follow. Returns 1 when it is read and left, 0 when a record of it is
 * waited for. `final`: none will be written. */
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
        if (thread->position >= records || !full) {
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
    int r = reader->fault ? -EBADMSG : 0;

    HASH_ITER (hh, reader->threads, thread, next)
        if (!r && thread->looked >= thread->first && thread->looked < thread->count)
            r = read_thread(reader, thread, thread->chunks[thread->looked].number, thread->sampled_records,
                            false);
    return reader_result(reader, r);
}

bool agent_reader_starves(const struct agent_reader *reader)
{
    const struct agent_area *area = reader->area;

    if (area->seen != area->given || reader->nameless_count)
        return false;
    for (const struct reader_thread *thread = reader->threads; thread; thread = thread->hh.next)
        if (thread->count - thread->first > 1)
            return false;
    return true;
}

static bool has_chunk(const struct reader_thread *thread, uint32_t number)
{
    for (size_t i = thread->first; i < thread->count; i++)
        if (thread->chunks[i].number == number)
            return true;
    return false;
}

int agent_reader_read_to(struct agent_reader *reader, uint32_t tid, uint32_t offset)
{
    /* Behind its last record a chunk's cursor is at the beginning of the next one. */
    size_t chunk_bytes = reader->area->chunk_bytes, in_chunk = (offset - 1) % chunk_bytes + 1;
    uint32_t number = (uint32_t)((offset - 1) / chunk_bytes);
    struct reader_thread *thread;
    int r = reader->fault ? -EBADMSG : reader_place_new_chunks(reader);

    thread = r ? NULL : reader_thread_find(reader, tid);
    if (thread && offset && in_chunk >= sizeof(struct agent_chunk) && has_chunk(thread, number))
        r = read_thread(reader, thread, number,
                        (in_chunk - sizeof(struct agent_chunk)) / sizeof(struct agent_record), false);
    return reader_result(reader, r);
}

int agent_reader_share_slots(struct agent_reader *reader, uint32_t tid, uint32_t of)
{
    int r = reader->fault ? -EBADMSG : reader_place_new_chunks(reader);
    struct reader_thread *thread = r ? NULL : reader_thread_for(reader, tid);

    if (!r && !thread)
        r = -ENOMEM;
    if (!r && thread->first < thread->count) /* what has been lost so far is not `of`'s */
        r = tell_loss(reader, thread);
    if (!r)
        thread->of = of;
    return reader_result(reader, r);
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
                        reader->frozen ? thread->sampled_records : agent_area_records(reader->area));
}

static int end_thread(struct agent_reader *reader, struct reader_thread *thread)
{
    int r = read_rest(reader, thread);

    if (thread->first < thread->count) {
        add_wait(reader, thread);
        if (!r)
            r = tell_loss(reader, thread);
    }
    if (!r && thread->waited && reader->sink.waited)
        r = reader->sink.waited(reader->sink.context, thread->tid, thread->waited);
    for (size_t i = 0; i < thread->count; i++)
        agent_area_give(reader->area, thread->chunks[i].number);
    reader_tickets_remove(reader, thread->tid);
    reader_thread_remove(reader, thread);
    return r;
}

int agent_reader_end(struct agent_reader *reader, uint32_t tid)
{
    struct reader_thread *thread;
    int r = reader->fault ? -EBADMSG : reader_place_new_chunks(reader);

    thread = r ? NULL : reader_thread_find(reader, tid);
    if (!thread)
        reader_tickets_remove(reader, tid);
    return reader_result(reader, thread ? end_thread(reader, thread) : r);
}

int agent_reader_end_all(struct agent_reader *reader)
{
    struct reader_thread *thread = NULL, *next = NULL;
    int r = reader->fault ? -EBADMSG : reader_place_new_chunks(reader);

    HASH_ITER (hh, reader->threads, thread, next)
        if (!r)
            r = end_thread(reader, thread);
    return reader_result(reader, r);
}

uint64_t agent_reader_take_unplaced(struct agent_reader *reader)
{
    uint64_t lost = __atomic_load_n(&reader->area->counts->unplaced, __ATOMIC_RELAXED), more;

    if (reader->fault || reader_check_count(reader, reader->unplaced_seen, lost))
        return 0;
    reader->unplaced_seen = lost;
    for (size_t i = 0; i < reader->nameless_count; i++) {
        if (!reader->frozen)
            sample_nameless(reader, &reader->nameless[i]);
        reader->strays += reader->nameless[i].sampled_records + reader->nameless[i].looked_lost;
    }
    reader->nameless_count = 0;
    more = lost + reader->strays - reader->unplaced_reported;
    reader->unplaced_reported += more;
    return more;
}

uint64_t agent_reader_take_shared(struct agent_reader *reader)
{
    uint64_t lost = __atomic_load_n(&reader->area->counts->shared, __ATOMIC_RELAXED);
    uint64_t more = lost - reader->shared_reported;

    if (reader->fault || reader_check_count(reader, reader->shared_reported, lost))
        return 0;
    reader->shared_reported = lost;
    return more;
}
