/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads what the stubs of a process, and of its forked children, have written: each thread's calls in their
 * order, and between them what was lost.
 *
 * A thread's chunks come in the order in which they were taken. The last one is read up to its first record
 * that is not written. One that is full, or that another one has followed, is put back when all of its
 * records have been read; a record that is not written there will be yet, by a stub that a signal handler has
 * interrupted. It is waited for, for READER_PATIENCE_NS: a handler that has left by longjmp() never comes
 * back to it. Then it counts as one call lost, and the chunk is kept until its thread has ended, so that
 * nothing is written where others read.
 *
 * A process that has the area mapped may write anything there, at any time. So records are copied before
 * anything looks at them, and each loop is bounded by what the collector has noted itself. What stubs and
 * agent cannot have written (a function that has no stub, a tick that has not been, counts that go back or
 * are too large) ends the reading of the area: agent_reader_fault().
 */
#ifndef TRACECTL_COLLECTOR_INLINE_READER_H
#define TRACECTL_COLLECTOR_INLINE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/inline/area.h"

struct agent_reader;

/* What a record can say of one image. */
struct agent_expected {
    uint32_t first;        /* the number of function 0 in records */
    size_t functions;      /* so many are there */
    const bool *has_stub;  /* of each; NULL: all have one */
    const bool *has_exits; /* of each: returns are recorded, too; NULL: of none */
    const uint64_t
        *begins; /* of each tick by its low 16 bits: when it began, 0: it has not; NULL: any can be; the
                    first image says it for all */
};

#define READER_PATIENCE_NS 1000000000ull

/* Who takes what is read; what they return below 0 ends the reading and is returned, but -ELOOP: that more
 * calls are open than a stack can hold. */
struct agent_sink {
    /* In memory that no target has. `times`: the time stamp counter at each of the calls; NULL: is not kept.
     */
    int (*calls)(void *context, uint32_t tid, const struct agent_record *records, const uint64_t *times,
                 size_t count);
    int (*lost)(void *context, uint32_t tid, uint64_t calls);
    /* At its end: for so many nanoseconds the thread has waited for the collector. NULL: it is not wanted. */
    int (*waited)(void *context, uint32_t tid, uint64_t ns);
    void *context;
};

/* The area, and what `expected` points to, must live as long. -ENOMEM. */
int agent_reader_new(struct agent_area *area, const struct agent_sink *sink,
                     const struct agent_expected *expected, struct agent_reader **ret_reader);
void agent_reader_free(struct agent_reader *reader);

/* Records may be of one more image. -ENOMEM. */
int agent_reader_expect(struct agent_reader *reader, const struct agent_expected *expected);

/* What was found in the area that stubs cannot have written, as a clause; NULL: nothing so far. From then on
 * nothing is read there: all functions below do nothing and return 0. */
const char *agent_reader_fault(const struct agent_reader *reader);

/* Thread `tid`, of a process that has the area, has taken its slots with this ticket: what was recorded with
 * it, and will be, is its. A ticket that another thread has taken stays that one's. -ENOMEM. */
int agent_reader_claim(struct agent_reader *reader, uint32_t ticket, uint32_t tid);

/* Looks how far each thread has come. `now`: CLOCK_MONOTONIC. -ENOMEM. */
int agent_reader_sample(struct agent_reader *reader, uint64_t now);

/* Looks for the last time: what is written from now on is not read. */
int agent_reader_freeze(struct agent_reader *reader, uint64_t now);

/* Hands on everything up to where the last look was. */
int agent_reader_read(struct agent_reader *reader);

/* Whether no chunk is free, and all of them have been read that threads are not filling: then none will be
 * put back before a thread ends. */
bool agent_reader_starves(const struct agent_reader *reader);

/* Hands on what a thread had recorded when its cursor was there (agent_cursor_offset()): it happened before
 * what comes next from elsewhere. A cursor that is in no chunk of the thread's says nothing. */
int agent_reader_read_to(struct agent_reader *reader, uint32_t tid, uint32_t offset);

/* What the thread's slots record behind what has been read is of thread `of`: a child that shares them.
 * -ENOMEM.
 */
int agent_reader_share_slots(struct agent_reader *reader, uint32_t tid, uint32_t of);

/* The thread has ended or stands still permanently: hands on the rest, and puts its chunks back. */
int agent_reader_end(struct agent_reader *reader, uint32_t tid);

/* The same for all threads, when no thread runs stubs of this area any more or the recording has ended. */
int agent_reader_end_all(struct agent_reader *reader);

/* At the end: calls of threads that never had a chunk, or whose ticket has not been told. */
uint64_t agent_reader_take_unplaced(struct agent_reader *reader);

/* Calls of threads that share a thread control block, since this was asked last. */
uint64_t agent_reader_take_shared(struct agent_reader *reader);

#endif
