/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to collector/stream/goroutine_*.c: a process's goroutines, and one record on its way into the
 * store. goroutine_streams.c (the whole), goroutine_records.c (what records mean), goroutine_calls.c (streams
 * of calls). */
#ifndef TRACECTL_COLLECTOR_STREAM_GOROUTINE_STATE_H
#define TRACECTL_COLLECTOR_STREAM_GOROUTINE_STATE_H

#include <uthash.h>

#include "collector/go/program.h"
#include "collector/stream/goroutine_streams.h"
#include "collector/stream/streams_private.h"
#include "store/streams/go_events.h"

struct goroutine {
    uint64_t id;
    char *name;                   /* its function and how it was created: what it is known by in other runs */
    struct thread_writer *writer; /* NULL: no stream */
    uint64_t last_anchor_ns;
    bool open;         /* an operation has been called and not returned */
    bool blocked;      /* since it was parked */
    uint8_t operation; /* the last one, and on what */
    uint64_t object;
    UT_hash_handle hh;
};

/* What a thread reported of a goroutine that it is about to create. */
struct spawn {
    uint32_t tid;
    uint64_t function, place;
    UT_hash_handle hh;
};

struct goroutine_streams {
    struct traced_image *image;
    struct go_program_file *file;
    struct process_writer *writer;
    bool from_start;
    struct goroutine *alive;
    struct spawn *spawns;
    size_t stream_count;
    bool told_cap;
};

/* One record, translated step by step. */
struct translation {
    struct streams *streams;
    struct traced_process *process;
    struct goroutine_streams *goroutines;
    const struct wire_go *record;
    const struct go_target *target;
    uint64_t bias;
    struct process_event event;
};

/* -------------------------------------------------------------------- goroutine_streams.c */

/* Appends at->event, and tells the observer. On failure streams->error is filled, here and below. */
int goroutine_append(struct translation *at);

/* -------------------------------------------------------------------- goroutine_records.c */

/* Translates at->record. */
int goroutine_record(struct translation *at);

/* -------------------------------------------------------------------- goroutine_calls.c */

/* NULL: not known. */
struct goroutine *recorded_goroutine_find(struct goroutine_streams *goroutines, uint64_t id);
/* The goroutine, known from now on; NULL: no memory. */
struct goroutine *recorded_goroutine_meet(struct goroutine_streams *goroutines, uint64_t id);
void recorded_goroutine_forget(struct goroutine_streams *goroutines, struct goroutine *goroutine);

/* "main.worker (main.go:12 < main.go:40)": a function, and the creation sites up to the main goroutine, which
 * the runtime has created (`parent` NULL). -ENOMEM. */
int goroutine_name(struct goroutine *goroutine, const struct goroutine *parent, const char *function,
                   const struct go_source_place *place);

/* Gives a goroutine its stream, which begins with its function (0: not known). */
int goroutine_begin_stream(struct translation *at, struct goroutine *goroutine, uint32_t function_id);
/* The goroutine does what at->event says; `inner`: as a part of another operation. */
int goroutine_operation(struct translation *at, struct goroutine *goroutine, bool inner);
/* `ended`: it has returned from its function; otherwise it is left where it stands. */
int goroutine_end_stream(struct translation *at, struct goroutine *goroutine, bool ended);

#endif
