/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The journal: the open segments of all threads, as the flushes committed them (docs/trace-format.md).
 *
 * A flush appends one row for all threads with new events. Its chunk for a thread says from which byte on
 * each section of the thread's open segment is replaced, and by what. A reader replays the chunks of one
 * thread in order. Chunks of a segment that has become a row of `segments` are stale and are skipped.
 */
#ifndef TRACESTORE_JOURNAL_H
#define TRACESTORE_JOURNAL_H

#include "store/segment/numbering.h"
#include "store/segment/segment.h"

#define JOURNAL_VERSION 1

struct sqlite3;

/* How much of the open segment is in the journal already: where the next chunk's sections begin. */
struct journal_mark {
    size_t offsets[SECTION_COUNT];
    size_t next_offsets[SECTION_COUNT]; /* once the chunk added last is committed */
    uint64_t event_count;
    uint32_t *calls; /* of each local id */
    size_t call_count, call_capacity;
};

void journal_mark_release(struct journal_mark *mark);

/* Begins a row in the empty `row`. -ENOMEM. */
int journal_row_begin(struct bytes *row);

/* Appends the chunk that leads from `mark` to the builder's state, with ids in place of numbers. What the
 * builder counts must be settled. The mark stays where it is (it is only prepared for journal_advance).
 * -ENOMEM. */
int journal_add_chunk(struct bytes *row, int64_t thread_id, const struct segment_builder *builder,
                      const struct numbering numberings[NUMBER_KINDS], struct journal_mark *mark);

/* Moves `mark` to the builder's state, once the row with the chunk just added is committed. */
void journal_advance(struct journal_mark *mark, const struct segment_builder *builder);
/* Nothing of the open segment is in the journal. */
void journal_mark_reset(struct journal_mark *mark);

/* A chunk taken apart; it borrows the row. */
struct journal_chunk {
    int64_t thread_id;
    uint64_t first_seq, event_count;
    uint8_t codec, flags;
    uint64_t first_ns; /* of the segment, 0: no times */
    uint64_t offsets[SECTION_COUNT];
    struct section sections[SECTION_COUNT];
    struct section calls; /* pairs (local id - that of the pair before, calls since the last chunk) */
};

/* Checks the row's version and sets `reader` to its first chunk. -EBADMSG, -ENOTSUP. */
int journal_row_open(const uint8_t *data, size_t size, struct bytes_reader *ret_reader);
/* 0 with the next chunk (of that thread; 0: of any), 1 at the end of the row, -EBADMSG. */
int journal_next_chunk(struct bytes_reader *reader, int64_t only_thread, struct journal_chunk *ret_chunk);

/* The open segment of one thread, put together from chunks. */
struct journal_tail {
    uint64_t first_seq, event_count; /* 0 events: there is none */
    uint64_t first_ns, until_ns;     /* 0: no times; all its events happened before until_ns */
    uint8_t codec, flags;
    struct bytes sections[SECTION_COUNT];
    uint64_t *calls; /* of local id i + 1 */
    size_t call_count, call_capacity;
};

void journal_tail_release(struct journal_tail *tail);

/* Applies the thread's next chunk. -EBADMSG: it does not follow from what is there; -ENOMEM. */
int journal_tail_apply(struct journal_tail *tail, const struct journal_chunk *chunk);

/* The sections of the tail, borrowed. */
struct segment_parts journal_tail_parts(const struct journal_tail *tail);

/* Reads the tail of a thread that begins at event `first_seq`, that is, behind its last segment. A damaged
 * row gives -EBADMSG, and what stood before it in `ret_tail`. The tail must be zeroed; release it in any
 * case. */
int journal_read_tail(struct sqlite3 *db, int64_t thread_id, uint64_t first_seq, struct journal_tail *tail,
                      struct error *err);

/* Calls `visit` with the tail of every thread of a run that has one. A non-zero result ends the walk and is
 * returned. Memory: all tails of the run. */
int journal_visit_tails(struct sqlite3 *db, int64_t run_id,
                        int (*visit)(void *context, int64_t thread_id, const struct journal_tail *tail),
                        void *context, struct error *err);

#endif
