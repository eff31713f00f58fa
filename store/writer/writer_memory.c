/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who is charged for how much memory, and who has to give way. */
#include "store/writer/writer.h"

#define LEAST_SHARE ((size_t)32 << 10) /* threads that take less are left alone while events come */
#define LOOKS 64                       /* so many threads are looked at before one event */
#define CLOSES 2                       /* and so many segments closed */

static void charge(struct thread_writer *thread, size_t memory)
{
    struct trace_writer *writer = thread->writer;

    writer->charged_threads += (memory > 0) - (size_t)(thread->memory > 0);
    writer->memory += memory - thread->memory;
    thread->memory = memory;
    if (writer->memory > writer->memory_peak)
        writer->memory_peak = writer->memory;
}

void writer_discharge(struct thread_writer *thread)
{
    charge(thread, 0);
    thread->charged_tables = 0;
}

/* Closes the thread's segment, if it has events, and frees what it took; without memory for that it stays. */
static void close_early(struct thread_writer *thread)
{
    bool has_events = thread->builder.event_count > 0;

    if (has_events) {
        if (writer_close_segment(thread))
            return;
        writer_mark_dirty(thread);
        thread->writer->closed_early++;
    }
    if (segment_builder_shrink(&thread->builder) == 0)
        writer_discharge(thread);
}

/* The next thread of an endless round. */
static struct thread_writer *next_of_round(struct trace_writer *writer)
{
    struct thread_writer *thread = writer->hand ? writer->hand : writer->threads;

    writer->hand = thread->next;
    return thread;
}

/* Those that take at least the mean give way, in turn. */
static void close_some(struct trace_writer *writer)
{
    size_t share = writer->memory / writer->charged_threads;
    int closes = 0;

    if (share < LEAST_SHARE)
        share = LEAST_SHARE;
    for (int looks = 0; looks < LOOKS && closes < CLOSES && writer->memory > writer->memory_limit; looks++) {
        struct thread_writer *thread = next_of_round(writer);

        if (thread->memory < share)
            continue;
        close_early(thread);
        closes++;
    }
}

/* A quarter more than the tables take now, so that this is not done for every piece that they grow. */
void writer_charge(struct thread_writer *thread)
{
    size_t tables = segment_builder_tables(&thread->builder);

    thread->charged_tables = tables + tables / 4;
    charge(thread, segment_builder_memory(&thread->builder) + tables / 4);
    if (thread->writer->memory > thread->writer->memory_limit)
        close_some(thread->writer);
}

/* Closes segments of threads that had no events in the last `flushes`, until half of the limit is free. */
static void free_older(struct trace_writer *writer, uint64_t flushes)
{
    for (struct thread_writer *thread = writer->threads; thread && writer->memory > writer->memory_limit / 2;
         thread = thread->next)
        if (thread->memory && writer->flushes - thread->active_flush >= flushes)
            close_early(thread);
}

void writer_free_idle(struct trace_writer *writer)
{
    writer->flushes++;
    for (struct thread_writer *thread = writer->dirty; thread; thread = thread->next_dirty)
        thread->active_flush = writer->flushes;
    if (writer->memory <= writer->memory_limit / 4 * 3)
        return;
    free_older(writer, 16);
    free_older(writer, 1);
}
