/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Appending events: the hot path. */
#include "base/debug.h"
#include "base/error.h"
#include "store/writer/writer.h"

void writer_queue_segment(struct thread_writer *thread, struct closed_segment *closed)
{
    struct trace_writer *writer = thread->writer;

    closed->thread = thread->number;
    closed->owner = thread;
    *writer->closed_end = closed;
    writer->closed_end = &closed->next;
    writer->closed_bytes += closed->payload.size;
    thread->window.queued++;
}

int writer_close_segment(struct thread_writer *thread)
{
    struct trace_writer *writer = thread->writer;
    struct closed_segment *closed;
    int code = segment_builder_close(&thread->builder, &closed);

    if (code)
        return code;
    debug_log("thread %lld: segment of %zu bytes", (long long)thread->number, closed->payload.size);
    writer_queue_segment(thread, closed);
    thread->window.opened_ns = 0;
    writer->journal_live -= thread->journal_bytes;
    thread->journal_bytes = 0;
    journal_mark_reset(&thread->mark);
    if (closed->first_ns)
        thread->unbounded = closed;
    return 0;
}

/* The calls that are open at its start are repeated in each segment, with their sites; when they are many,
 * the segment gets longer so that they are at most half of it. */
static inline bool is_full(const struct thread_writer *thread)
{
    const struct trace_writer *writer = thread->writer;
    size_t bytes = segment_builder_bytes(&thread->builder);

    return thread->builder.event_count >= writer->segment_events ||
           (bytes >= writer->segment_bytes && bytes >= 2 * thread->builder.first_bytes);
}

/* After an event was appended. A segment that cannot be closed for lack of memory is closed later. */
static inline void appended(struct thread_writer *thread)
{
    writer_mark_dirty(thread);
    if (is_full(thread))
        writer_close_segment(thread);
    if (segment_builder_tables(&thread->builder) > thread->charged_tables)
        writer_charge(thread);
}

static inline int append_call(struct thread_writer *thread, uint32_t function_id, uint32_t site_id,
                              bool assumed)
{
    int code = segment_builder_call(&thread->builder, function_id, site_id, assumed);

    if (code == -E2BIG) {
        code = writer_close_segment(thread);
        if (!code)
            code = segment_builder_call(&thread->builder, function_id, site_id, assumed);
    }
    if (code)
        return code;
    appended(thread);
    return 0;
}

int thread_writer_call(struct thread_writer *thread, uint32_t function_id)
{
    return append_call(thread, function_id, 0, false);
}

int thread_writer_call_from(struct thread_writer *thread, uint32_t function_id, uint32_t site_id)
{
    return append_call(thread, function_id, site_id, false);
}

int thread_writer_call_assumed(struct thread_writer *thread, uint32_t function_id, uint32_t site_id)
{
    return append_call(thread, function_id, site_id, true);
}

int thread_writer_return(struct thread_writer *thread)
{
    int code = segment_builder_return(&thread->builder);

    if (code)
        return code;
    appended(thread);
    return 0;
}

#define STEPS_AT_ONCE 256 /* by so much a segment may become too long */

int thread_writer_steps(struct thread_writer *thread, const struct thread_step *steps, size_t count)
{
    size_t done = 0, appended_now;
    int code = 0;

    while (!code && done < count) {
        size_t piece = count - done < STEPS_AT_ONCE ? count - done : STEPS_AT_ONCE;

        code = segment_builder_steps(&thread->builder, &steps[done], piece, &appended_now);
        done += appended_now;
        if (appended_now)
            appended(thread);
        if (code == -E2BIG)
            code = writer_close_segment(thread);
    }
    return code;
}

int thread_writer_keep(struct thread_writer *thread, const struct thread_step *steps, size_t count,
                       struct kept_steps *ret_kept)
{
    size_t done;
    int code;

    *ret_kept = (struct kept_steps){0};
    if (count > KEPT_STEPS_AT_ONCE)
        return -EINVAL;
    if (!count)
        return 0;
    code = segment_builder_keep(&thread->builder, steps, count, &done, ret_kept);
    if (done)
        appended(thread);
    if (code != -E2BIG)
        return code;
    code = writer_close_segment(thread);
    return code ? code : thread_writer_steps(thread, &steps[done], count - done);
}

int thread_writer_again(struct thread_writer *thread, const struct kept_steps *steps)
{
    uint64_t events = segment_builder_words(&thread->builder, steps);
    int code;

    if (thread->builder.event_count + events > thread->writer->segment_events) {
        code = writer_close_segment(thread);
        return code ? code : -ESTALE;
    }
    code = segment_builder_again(&thread->builder, steps);
    if (!code)
        appended(thread);
    return code;
}

static void set_bound(struct thread_writer *thread, uint64_t ns)
{
    uint64_t least = thread->builder.anchor_ns;

    if (thread->unbounded)
        thread->unbounded->last_ns = ns > least ? ns : least;
    thread->unbounded = NULL;
}

int thread_writer_anchor(struct thread_writer *thread, uint64_t ns)
{
    set_bound(thread, ns);
    return segment_builder_anchor(&thread->builder, ns);
}

static int append_loss(struct thread_writer *thread, uint64_t ns, const struct lost_events *lost,
                       const char *cause, struct error *err)
{
    struct trace_writer *writer = thread->writer;
    int64_t seq = (int64_t)(thread->builder.first_seq + thread->builder.event_count);
    int code = writer_queue_loss(writer, thread->number, seq, ns, lost, cause);

    if (code)
        return error_no_memory(err);
    code = segment_builder_lost(&thread->builder);
    if (code == -E2BIG) {
        code = writer_close_segment(thread);
        if (!code)
            code = segment_builder_lost(&thread->builder);
    }
    if (code) {
        catalog_queue_drop_last(&writer->catalog);
        return error_no_memory(err);
    }
    appended(thread);
    return 0;
}

int thread_writer_lost(struct thread_writer *thread, uint64_t ns, uint64_t count, const char *cause,
                       struct error *err)
{
    const struct lost_events lost = {.count = count, .calls = -1, .returns = -1};

    return append_loss(thread, ns, &lost, cause, err);
}

int thread_writer_lost_by_kind(struct thread_writer *thread, uint64_t ns, uint64_t calls, uint64_t returns,
                               const char *cause, struct error *err)
{
    const struct lost_events lost = {
        .count = calls + returns, .calls = (int64_t)calls, .returns = (int64_t)returns};

    return append_loss(thread, ns, &lost, cause, err);
}

int thread_writer_end(struct thread_writer *thread, uint64_t ns, struct error *err)
{
    if (writer_queue_thread_end(thread, ns) || (thread->builder.event_count && writer_close_segment(thread)))
        return error_no_memory(err);
    set_bound(thread, ns);
    segment_builder_rest(&thread->builder);
    writer_discharge(thread);
    journal_mark_release(&thread->mark);
    writer_mark_dirty(thread);
    thread->window.ended_ns = ns;
    return 0;
}
