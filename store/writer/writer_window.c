/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/writer/writer_window.h"

#include <stdio.h>

#include "store/segment/segment_row.h"
#include "store/writer/window.h"
#include "store/writer/writer.h"

#define PARTS 8 /* of the window: how long a segment may stay open */

/* A row of `segments` that the window has. */
struct kept_segment {
    struct thread_writer *thread;
    int64_t segment_id;
    uint64_t until_ns; /* its events happened before it */
    uint64_t behind;   /* seq of the event behind it */
    size_t bytes, events;
    bool has_losses;
};

struct writer_window {
    uint64_t ns;
    size_t bytes_limit; /* SIZE_MAX: none */
    struct kept_segment *kept;
    size_t first, count, capacity; /* the oldest is kept[first] */
    size_t bytes;                  /* of all of them */
    size_t due;                    /* how many of the oldest this flush deletes */
    uint64_t from_ns;              /* from here on everything is kept; 0: from the beginning */
    uint64_t due_from_ns;          /* the same when this flush has been */
    uint64_t flushed_ns;           /* the last flush; the beginning of the run, before it */
    uint64_t dropped_events;
    bool too_much; /* the limit was reached: the window is shorter than it should be */
};

static const char what[] = "cannot shorten the window";

struct writer_window *window_new(uint64_t ns, size_t bytes, uint64_t started_ns)
{
    struct writer_window *window = calloc(1, sizeof(*window));

    if (!window)
        return NULL;
    window->ns = ns;
    window->flushed_ns = started_ns;
    window->bytes_limit = bytes ? bytes : SIZE_MAX;
    return window;
}

void window_free(struct writer_window *window)
{
    if (!window)
        return;
    free(window->kept);
    free(window);
}

struct trace_writer_window trace_writer_window(const struct trace_writer *writer)
{
    const struct writer_window *window = writer->window;

    return (struct trace_writer_window){.from_ns = window->from_ns,
                                        .bytes = window->bytes,
                                        .dropped_events = window->dropped_events,
                                        .too_much = window->too_much};
}

/* ------------------------------------------------------------------------------------------ what goes */

/* Closes the segments that have been open for their part of the window. */
static int close_old(struct trace_writer *writer, uint64_t now_ns)
{
    const struct writer_window *window = writer->window;

    for (struct thread_writer *thread = writer->threads; thread; thread = thread->next) {
        if (!thread->builder.event_count)
            continue;
        if (!thread->window.opened_ns)
            thread->window.opened_ns = window->flushed_ns;
        if (now_ns < thread->window.opened_ns + window->ns / PARTS)
            continue;
        if (writer_close_segment(thread))
            return -ENOMEM;
        writer_mark_dirty(thread);
    }
    return 0;
}

/* The oldest segments, in the order in which they were written: those that are too old, and those that are
 * too much. */
static void choose_due(struct writer_window *window, uint64_t now_ns)
{
    uint64_t from_ns = now_ns > window->ns ? now_ns - window->ns : 0;
    size_t bytes = window->bytes;

    window->due = 0;
    window->due_from_ns = window->from_ns;
    while (window->due < window->count) {
        const struct kept_segment *oldest = &window->kept[window->first + window->due];
        bool too_much = bytes > window->bytes_limit;

        if (oldest->until_ns >= from_ns && !too_much)
            break;
        if (oldest->until_ns >= from_ns)
            window->too_much = true;
        if (oldest->until_ns > window->due_from_ns)
            window->due_from_ns = oldest->until_ns;
        bytes -= oldest->bytes;
        window->due++;
    }
}

static bool has_ended(const struct thread_writer *thread)
{
    return thread->window.ended_ns && !thread->builder.event_count && !thread->window.queued;
}

/* The thread's newest segment goes: another one must say which calls are open. */
static int leave_stack(struct thread_writer *thread)
{
    if (has_ended(thread)) {
        thread->window.is_gone = true;
        return 0;
    }
    if (thread->builder.event_count) {
        writer_mark_dirty(thread);
        return writer_close_segment(thread);
    }
    if (thread->window.queued)
        return 0;
    return segment_builder_close(&thread->builder, &thread->window.resting) ||
                   segment_builder_shrink(&thread->builder)
               ? -ENOMEM
               : 0;
}

/* Takes back what a flush has chosen that was not committed; and threads go that rested when they ended. */
static void begin_choice(struct trace_writer *writer, uint64_t now_ns)
{
    const struct writer_window *window = writer->window;

    for (struct thread_writer *thread = writer->threads; thread; thread = thread->next) {
        closed_segment_free(take_pointer(thread->window.resting));
        thread->window.is_gone =
            thread->window.resting_row && has_ended(thread) && thread->window.ended_ns + window->ns < now_ns;
    }
}

int window_prepare(struct trace_writer *writer, uint64_t now_ns)
{
    struct writer_window *window = writer->window;

    if (close_old(writer, now_ns))
        return -ENOMEM;
    begin_choice(writer, now_ns);
    choose_due(window, now_ns);
    for (size_t i = 0; i < window->due; i++) {
        const struct kept_segment *kept = &window->kept[window->first + i];

        if (kept->thread->window.newest == kept->segment_id && leave_stack(kept->thread))
            return -ENOMEM;
    }
    window->flushed_ns = now_ns;
    return 0;
}

/* ------------------------------------------------------------------------------------------ its rows */

/* A thread that rested continues: the segment that comes has the place of the empty one. */
int window_make_way(struct trace_writer *writer, struct error *err)
{
    int code = 0;

    for (struct closed_segment *closed = writer->closed; closed && !code; closed = closed->next)
        if (closed->owner->window.resting_row)
            code = db_run(writer->db, what, err, "DELETE FROM segments WHERE segment_id = ?1", "i",
                          closed->owner->window.resting_row);
    return code;
}

static int delete_due(struct trace_writer *writer, struct error *err)
{
    const struct writer_window *window = writer->window;
    AUTO_STATEMENT *row = NULL;
    int code = db_prepare(writer->db, "DELETE FROM segments WHERE segment_id = ?1", what, &row, err);

    for (size_t i = 0; i < window->due && !code; i++) {
        const struct kept_segment *kept = &window->kept[window->first + i];

        db_bind(row, "i", kept->segment_id);
        code = db_step(writer->db, row, what, err);
        if (!code && kept->has_losses)
            code = db_run(writer->db, what, err,
                          "DELETE FROM losses WHERE run_id = ?1 AND thread_id = ?2 AND seq < ?3", "iii",
                          writer->run_id, thread_writer_id(kept->thread), (int64_t)kept->behind);
    }
    return code;
}

static int write_resting(struct trace_writer *writer, struct thread_writer *thread,
                         struct segment_inserter *inserter, struct error *err)
{
    struct closed_segment *resting = thread->window.resting;
    AUTO_BYTES payload = {0};
    struct segment_row row = {
        .run_id = writer->run_id,
        .thread_id = thread_writer_id(thread),
        .first_seq = resting->first_seq,
        .first_ns = resting->first_ns,
        .last_ns = writer->window->flushed_ns, /* the calls were before it */
        .codec = resting->codec,
    };
    int code = writer_seal_payload(writer, resting, &payload, err);

    row.payload = (struct section){payload.data, payload.size};
    if (!code)
        code = segment_insert(inserter, &row, what, err);
    resting->segment_id = sqlite3_last_insert_rowid(writer->db);
    return code;
}

static int write_threads(struct trace_writer *writer, struct error *err)
{
    AUTO_SEGMENT_INSERTER inserter = {0};
    int code = segment_inserter_open(&inserter, writer->db, what, err);

    for (struct thread_writer *thread = writer->threads; thread && !code; thread = thread->next) {
        if (thread->window.resting)
            code = write_resting(writer, thread, &inserter, err);
        else if (thread->window.is_gone)
            code = db_run(writer->db, what, err, "DELETE FROM threads WHERE thread_id = ?1", "i",
                          thread_writer_id(thread));
    }
    return code;
}

/* What the catalog says of the time before the window. */
static int delete_older_rows(struct trace_writer *writer, uint64_t from_ns, struct error *err)
{
    static const char *const statements[] = {
        ("DELETE FROM processes WHERE run_id = ?1 AND ended_ns < ?2"
         " AND NOT EXISTS (SELECT 1 FROM threads t WHERE t.process_id = processes.process_id)"),
        "DELETE FROM losses WHERE run_id = ?1 AND ns < ?2 AND thread_id IS NULL AND cause <> 'unfinished'",
        "DELETE FROM blind WHERE run_id = ?1 AND to_ns < ?2",
    };
    int code = 0;

    for (size_t i = 0; i < ARRAY_SIZE(statements) && !code; i++)
        code = db_run(writer->db, what, err, statements[i], "ii", writer->run_id, (int64_t)from_ns);
    return code;
}

static int write_from(struct trace_writer *writer, struct error *err)
{
    const struct writer_window *window = writer->window;
    char from[24];

    snprintf(from, sizeof(from), "%llu", (unsigned long long)window->due_from_ns);
    return db_run(writer->db, what, err,
                  "INSERT OR REPLACE INTO tags VALUES (?1, '" WINDOW_FROM_TAG "', ?2), (?1, '" WINDOW_CUT_TAG
                  "', ?3)",
                  "itt", writer->run_id, from, window->too_much ? "1" : "0");
}

int window_write(struct trace_writer *writer, uint64_t now_ns, struct error *err)
{
    const struct writer_window *window = writer->window;
    int code = delete_due(writer, err);

    if (!code)
        code = write_threads(writer, err);
    if (!code && window->due)
        code = delete_older_rows(writer, window->due_from_ns, err);
    return code || !window->due ? code : write_from(writer, err);
}

/* ------------------------------------------------------------------------------------------ afterwards */

static bool names_losses(const struct closed_segment *closed)
{
    for (size_t i = 0; i < closed->function_count; i++)
        if (closed->functions[i].function == TRACESTORE_LOST_FUNCTION)
            return true;
    return false;
}

/* Forgets the oldest, which are rows no more; the array is moved when half of it is free. */
static void drop_due(struct writer_window *window)
{
    for (size_t i = 0; i < window->due; i++) {
        const struct kept_segment *kept = &window->kept[window->first + i];

        window->bytes -= kept->bytes;
        window->dropped_events += kept->events;
    }
    window->first += window->due;
    window->count -= window->due;
    window->due = 0;
    window->from_ns = window->due_from_ns;
    if (window->first < window->count)
        return;
    if (window->count)
        memmove(window->kept, window->kept + window->first, window->count * sizeof(*window->kept));
    window->first = 0;
}

/* A segment that there is no memory for stays in the store until the recording ends. */
static void keep(struct writer_window *window, const struct closed_segment *closed)
{
    if (array_reserve(&window->kept, &window->capacity, window->first + window->count + 1))
        return;
    window->kept[window->first + window->count++] = (struct kept_segment){
        .thread = closed->owner,
        .segment_id = closed->segment_id,
        .until_ns = closed->last_ns ? closed->last_ns : window->flushed_ns,
        .behind = closed->first_seq + closed->event_count,
        .bytes = closed->stored_bytes,
        .events = closed->event_count,
        .has_losses = names_losses(closed),
    };
    window->bytes += closed->stored_bytes;
}

void window_advance(struct trace_writer *writer)
{
    drop_due(writer->window);
    for (const struct closed_segment *closed = writer->closed; closed; closed = closed->next) {
        keep(writer->window, closed);
        closed->owner->window.newest = closed->segment_id;
        closed->owner->window.resting_row = 0;
    }
    for (struct thread_writer *thread = writer->threads; thread; thread = thread->next) {
        if (!thread->window.resting)
            continue;
        thread->window.resting_row = thread->window.resting->segment_id;
        closed_segment_free(take_pointer(thread->window.resting));
    }
}

void window_forget_threads(struct trace_writer *writer)
{
    struct thread_writer **place = &writer->threads;

    while (*place) {
        struct thread_writer *thread = *place;

        if (!thread->window.is_gone) {
            place = &thread->next;
            continue;
        }
        *place = thread->next;
        if (writer->hand == thread)
            writer->hand = thread->next;
        writer_discharge(thread);
        writer_free_thread(thread);
    }
}
