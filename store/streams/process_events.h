/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The events of a process that are not calls: what its goroutines do (store/streams/go_events.h) and what its
 * threads do to each other (store/streams/sync_events.h). Each of these is a stream: one sequence of events
 * for each process. All streams are written, stored, read, verified and salvaged by the same code; they
 * differ in the meaning of an event's fields.
 */
#ifndef TRACECTL_STORE_STREAMS_PROCESS_EVENTS_H
#define TRACECTL_STORE_STREAMS_PROCESS_EVENTS_H

#include <stdint.h>

#include "store/api/tracestore.h"

struct error;

/* Stored: append-only. */
enum process_stream {
    PROCESS_STREAM_GO = 1,
    PROCESS_STREAM_SYNC,
    PROCESS_STREAMS_END,
};

/* One event. Where a field has several names, the first is for code that serves all streams, the others are
 * those of single streams. */
struct process_event {
    uint64_t ns; /* CLOCK_REALTIME; never decreases in a sequence */
    union {
        uint64_t actor;     /* what the event is of */
        uint64_t goroutine; /* goid as the runtime counts them, from 1; 0: none */
        uint64_t thread;    /* T of the label P.T, at most 32 bits; of THREAD_END and the like, whose it is */
    };
    uint64_t
        object; /* address of the channel, mutex... in the process, 0: none, or nil; number of a channel */
    uint64_t other; /* another goroutine or thread, or what the kind of event says */
    union {
        int64_t value;
        int64_t result; /* of a synchronisation event */
    };
    union {
        uint64_t place;
        uint64_t tid;      /* of a goroutine event: the thread that it happened on, at most 32 bits */
        uint64_t position; /* of a synchronisation event: events of the thread's stream of calls before it:
                              the `seq` of the next one there */
    };
    uint32_t site; /* 0: not known. Of a goroutine event: function_id of the place in the source (its name is
                      "FUNCTION:operation", such as "main.send:chan send", with file and line); of a
                      synchronisation event: site_id (call_sites) that the function was called from */
    uint8_t kind;
    union {
        uint8_t detail;
        uint8_t operation; /* enum go_op */
        uint8_t phase;     /* enum sync_phase */
    };
    uint8_t flags; /* enum go_event_flags; 0 in synchronisation events */
};

/* ------------------------------------------------------------------------------------------ writing */

/* Writes a process's stream; from trace_writer_go_program or trace_writer_sync_process. It belongs to the
 * trace_writer, and its events are committed by the same flushes as the calls. */
struct process_writer;

/* Appends one event; -ENOMEM is the only failure. An event whose time is before the last one's is given that
 * time. Of GO_EVENT_CREATE and GO_EVENT_TEST the lowest 32 bits of `value` are kept. */
int process_writer_append(struct process_writer *process, const struct process_event *event);

/* ------------------------------------------------------------------------------------------ reading */

/* Iterates the events of a process's stream in order, in memory bounded by one segment; as event_iter does.
 */
struct process_event_iter;
int process_event_iter_open(struct tracestore *store, enum process_stream stream, int64_t process_id,
                            struct process_event_iter **ret_iter, struct error *err);
/* 0: an event; 1: there is none; <0: events are missing or damaged, reported once: the next call continues
 * behind them. */
int process_event_iter_next(struct process_event_iter *iter, struct process_event *ret_event,
                            struct error *err);
/* Of the event given last: its place in the sequence, from 0. */
uint64_t process_event_iter_seq(const struct process_event_iter *iter);
void process_event_iter_free(struct process_event_iter *iter); /* accepts NULL */

#endif
