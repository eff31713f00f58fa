/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The memory that the collector shares with a process whose functions are patched: see record.h.
 *
 * It is two memory files of the collector's: when a process is killed what it has written stays, and when the
 * collector is killed the process keeps the memory.
 *
 * The head file has the head. The collector has it mapped for writing; then it is sealed, so that no process
 * makes another such mapping, or writes in another way, and targets get a descriptor that can only read. So no
 * target changes it, for itself or for others. The files of the agent and of stubs (inline_code.h), which are
 * written once, are sealed altogether.
 *
 * A process has the head near each piece of code that is patched, with the agent and the stubs of that code
 * behind it (record.h), and the data file once.
 *
 * The data file has the counts and the chunks. It is sealed against changes of its size alone: who cuts a
 * file short kills whoever reads it. What stands in it is the targets' to destroy, so nothing read from it is
 * believed: numbers of chunks come from the collector's own notes, and addresses and sizes stand in the head.
 */
#ifndef TRACECTL_COLLECTOR_INLINE_AREA_H
#define TRACECTL_COLLECTOR_INLINE_AREA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/arch/record.h"

struct error;

struct agent_area {
    int head_fd, data_fd;        /* for targets to map: the head for reading only */
    struct agent_head *head;     /* the whole head file, as the collector has it mapped */
    struct agent_counts *counts; /* the whole data file, as the collector has it mapped */
    uint8_t *chunks;
    uint64_t *times;    /* behind the chunks, of each 16 bytes of them one word; NULL: none are kept */
    uint64_t data_file; /* inode number of the data file */
    size_t chunk_bytes, chunk_count;
    size_t apart_bytes; /* counts, chunks and times: what is mapped anywhere */
    uint64_t given;     /* so many entries of head->free have been made */
    uint64_t woken;     /* so many of them when threads that wait for a chunk were woken last */
    uint64_t seen;      /* so many of those that were taken have been told by agent_area_taken() */
};

/* The file with the agent's code, of one page, which all areas have in common; a descriptor that can only
 * read. -ENOMEM, -EMFILE. */
int agent_file_new(void);

/* The same with two pieces of stubs; it has `bytes`. What is mapped near code is numbered from the head on:
 * `pieces` lie at offsets from AGENT_STUBS_OFFSET on, and so do the stubs in the file. */
struct agent_piece {
    const uint8_t *bytes;
    size_t offset, size;
};
int agent_stubs_new(const struct agent_piece pieces[2], size_t bytes);

/* What is mapped near code that has `stub_bytes` of stubs, in whole pages. */
size_t agent_near_bytes(size_t stub_bytes);

/* Makes an area of about `ring_bytes` of chunks, all of them free. `timed`: a time is kept of each record.
 * -ENOMEM, -EMFILE. */
int agent_area_new(size_t ring_bytes, bool timed, struct agent_area **ret_area, struct error *err);

/* Takes all of its memory now, on this process's account: memory is counted where it is touched first, which
 * would be the target. -ENOSPC. */
int agent_area_fill(struct agent_area *area, struct error *err);

/* The target has the data file mapped at `apart`, and the head, for the first time, at `near`. */
void agent_area_placed(struct agent_area *area, uint64_t apart, uint64_t near);

/* The target may keep its own mappings. Accepts NULL. */
void agent_area_free(struct agent_area *area);

/* The next chunk that has been taken. Returns 1, 0 when there is none, -EBADMSG when more have been taken
 * than there were, or fewer than before. */
int agent_area_taken(struct agent_area *area, uint32_t *ret_number);

/* Puts a chunk back, zeroed. Nobody may write to it any more. Is a sign of life, and wakes threads that wait
 * for one once there are enough to be worth it. */
void agent_area_give(struct agent_area *area, uint32_t number);

/* Threads may wait for chunks from now on. */
void agent_area_let_wait(struct agent_area *area);

/* The collector lives at `now`, CLOCK_MONOTONIC: for so long that threads may wait for it. Any thread of the
 * collector may call it. */
void agent_area_alive(struct agent_area *area, uint64_t now);

/* Wakes threads that wait, for chunks that have been put back since they were woken last. Returns true when
 * one may have waited. */
bool agent_area_wake(struct agent_area *area);

/* Whether no chunk is free and none will be put back soon: then threads lose calls instead of waiting. */
void agent_area_starve(struct agent_area *area, bool starved);

/* Lets no chunk be taken from now on, and no thread wait for one. */
void agent_area_quiet(struct agent_area *area);

/* The record after the last one of a chunk. */
static inline size_t agent_area_records(const struct agent_area *area)
{
    return (area->chunk_bytes - sizeof(struct agent_chunk)) / sizeof(struct agent_record);
}

static inline struct agent_chunk *agent_area_chunk(const struct agent_area *area, uint32_t number)
{
    return (struct agent_chunk *)(area->chunks + number * area->chunk_bytes);
}

/* Where the times of records from `record` on are kept; NULL: nowhere. */
static inline const uint64_t *agent_area_times(const struct agent_area *area,
                                               const struct agent_record *record)
{
    size_t offset = (size_t)((const uint8_t *)record - area->chunks);

    return area->times ? &area->times[offset / sizeof(*record)] : NULL;
}

static inline const struct agent_record *agent_chunk_records(const struct agent_chunk *chunk)
{
    return (const struct agent_record *)(chunk + 1);
}

#endif
