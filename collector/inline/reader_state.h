/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to the reader: what its parts share. */
#ifndef TRACECTL_COLLECTOR_INLINE_READER_STATE_H
#define TRACECTL_COLLECTOR_INLINE_READER_STATE_H

#include <uthash.h>

#include "collector/inline/reader.h"

/* A chunk of a thread. */
struct held_chunk {
    uint32_t number;
    uint32_t ticket; /* that of its owner */
    bool has_hole;   /* a record was given up: its thread may still write it */
};

struct reader_thread {
    uint32_t tid;
    uint32_t of; /* whose calls are read now: its own, or those of a child that shares its slots */
    struct held_chunk *chunks; /* in their order, from `first` on; those before are kept for their holes */
    size_t first, count, capacity;
    size_t position;          /* in the first: so many records have been read */
    struct agent_record last; /* the youngest record that was read of it, its number `last_at` - 1; 0: none */
    size_t last_at;
    uint64_t lost_reported; /* of its lost_after */
    size_t looked;          /* the last look: so many chunks, and records of the last of them */
    size_t sampled_records;
    uint64_t looked_lost; /* lost_after of that chunk */
    uint64_t hole_since;  /* 0: no record is waited for */
    uint64_t waited;      /* nanoseconds in all, for the collector */
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
    size_t sampled_records; /* at the last look */
    uint64_t looked_lost;
};

#define CHUNK_RECORDS ((AGENT_CHUNK_BYTES - sizeof(struct agent_chunk)) / sizeof(struct agent_record))

struct agent_reader {
    struct agent_area *area;
    struct agent_sink sink;
    struct agent_expected *expected; /* of each image */
    size_t expected_count, expected_capacity;
    size_t expected_last; /* the one that the last record was of */
    const char *fault;    /* NULL: the area is believed */
    uint64_t since;       /* CLOCK_MONOTONIC when it was made */
    struct reader_thread *threads;
    struct ticket *tickets;
    struct nameless_chunk *nameless;
    size_t nameless_count, nameless_capacity;
    uint64_t now, unplaced_reported, unplaced_seen, shared_reported;
    uint64_t strays;                            /* calls in chunks whose threads are unknown */
    bool frozen;                                /* nothing behind the last look is read */
    struct agent_record records[CHUNK_RECORDS]; /* copies, of those that are handed on */
    uint64_t times[CHUNK_RECORDS];
};

/* ------------------------------------------------------------------------------------ reader_threads.c */

/* NULL: none. */
struct reader_thread *reader_thread_find(const struct agent_reader *reader, uint32_t tid);

/* Makes it if there is none. NULL: no memory. */
struct reader_thread *reader_thread_for(struct agent_reader *reader, uint32_t tid);

void reader_thread_remove(struct agent_reader *reader, struct reader_thread *thread);

/* Those of thread `tid`; 0: of all. */
void reader_tickets_remove(struct agent_reader *reader, uint32_t tid);

/* Gives chunks that have been taken to their threads, as far as those are known. -ENOMEM, -EBADMSG. */
int reader_place_new_chunks(struct agent_reader *reader);

/* ------------------------------------------------------------------------------------ reader_checks.c */

/* Ends the reading of the area: its memory says what cannot be, `fault`. Returns -EBADMSG, which is what all
 * functions of the reader return on the way out, up to reader_result(). */
int reader_find_fault(struct agent_reader *reader, const char *fault);

/* What a function of the interface returns that has come to `code`. */
int reader_result(struct agent_reader *reader, int code);

/* A count in the area has become `now`: not less than `before`, and no more than there was time for.
 * -EBADMSG. */
int reader_check_count(struct agent_reader *reader, uint64_t before, uint64_t now);

/* The thread's first chunk is still its own, and what was read of it last is still there: nothing writes a
 * record again while a thread has the chunk, so otherwise the memory was taken away, or the thread has got the
 * chunk twice. -EBADMSG. */
int reader_check_chunk(struct agent_reader *reader, const struct reader_thread *thread);

/* Copies records, and their times, into the reader, up to one that is not written, at most `limit`, which is
 * no more than a chunk has behind `records`; checks the copies. -EBADMSG. */
int reader_copy_records(struct agent_reader *reader, const struct agent_record *records, size_t limit,
                        size_t *ret_count);

static inline bool is_written(const struct agent_record *record)
{
    return __atomic_load_n(&record->function, __ATOMIC_ACQUIRE) != 0;
}

#endif
