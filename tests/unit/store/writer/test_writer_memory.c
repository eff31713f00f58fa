/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The limit on the memory of open segments: it holds, it takes from whom it should, and nothing is lost. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/error.h"
#include "store/bytes/codec.h"
#include "store/writer/writer.h"
#include "tests/unit/store/fixture.h"

#define THREADS 40
#define EVENTS 12000
#define SMALL_SHARE \
    ((size_t)32 << 10) /* what is left to each thread with events, as writer_memory.c has it */

struct crowd {
    struct fixture fixture;
    struct thread_writer *threads[THREADS];
    struct stream streams[THREADS];
};

static void flush(struct crowd *crowd, uint64_t ns)
{
    struct error err = {0};

    cr_assert_eq(trace_writer_flush(crowd->fixture.writer, ns, &err), 0, "%s", err.message);
}

/* Irregular streams, but for every fourth. */
static void crowd_open(struct crowd *crowd, size_t memory_bytes)
{
    const struct trace_writer_options options = {.memory_bytes = memory_bytes};

    fixture_open(&crowd->fixture, &options);
    for (unsigned i = 0; i < THREADS; i++) {
        char label[16];

        snprintf(label, sizeof(label), "0.%u", i);
        crowd->threads[i] = fixture_thread(&crowd->fixture, label, TRACE_RETURNS_PROBED);
        crowd->streams[i] = (struct stream){0};
        stream_generate(&crowd->streams[i], i % 4 ? STREAM_RANDOM : STREAM_LOOPS, i + 1, EVENTS);
        crowd->streams[i].count = EVENTS; /* without the returns that would end it */
    }
}

static void crowd_close(struct crowd *crowd)
{
    for (unsigned i = 0; i < THREADS; i++)
        stream_release(&crowd->streams[i]);
    fixture_close(&crowd->fixture);
}

static void write_to_all(struct crowd *crowd, size_t from, size_t to)
{
    for (unsigned i = 0; i < THREADS; i++)
        write_events(crowd->threads[i], &crowd->streams[i], from, to);
}

/* All threads by turns; the streams are read back, and what it took is returned. */
static struct trace_writer_memory record_all(size_t memory_bytes)
{
    struct crowd crowd;
    struct trace_writer_memory memory;

    crowd_open(&crowd, memory_bytes);
    for (size_t at = 0; at < EVENTS; at += 100) {
        write_to_all(&crowd, at, at + 100);
        if (at % 3000 == 0)
            flush(&crowd, 1000 + at);
    }
    cr_assert_eq(trace_writer_end(crowd.fixture.writer, 99000, 0, NULL), 0);
    memory = trace_writer_memory(crowd.fixture.writer);
    for (unsigned i = 0; i < THREADS; i++)
        expect_stream(crowd.fixture.store, thread_writer_id(crowd.threads[i]), &crowd.streams[i],
                      crowd.streams[i].count);
    crowd_close(&crowd);
    return memory;
}

Test(writer_memory, a_limit_holds_and_loses_nothing)
{
    const size_t limit = (size_t)4 << 20;
    struct trace_writer_memory free = record_all(0), limited = record_all(limit);

    cr_assert_eq(free.closed_early, 0);
    cr_assert_gt(free.peak_bytes, 4 * limit, "%zu bytes: nothing had to be limited", free.peak_bytes);
    cr_assert_gt(limited.closed_early, 0);
    cr_assert_leq(limited.peak_bytes, limit + limit / 8, "%zu bytes", limited.peak_bytes);
}

/* However small the limit is, the segments do not become single events. */
Test(writer_memory, a_limit_that_is_too_small)
{
    struct trace_writer_memory limited = record_all(1);

    cr_assert_leq(limited.peak_bytes, THREADS * 2 * SMALL_SHARE, "%zu bytes", limited.peak_bytes);
    cr_assert_gt(limited.closed_early, THREADS);
    cr_assert_lt(limited.closed_early, THREADS * EVENTS / 50);
}

/* What is charged covers what the segments take, and is given back with them. */
Test(writer_memory, what_is_charged)
{
    struct crowd crowd;
    struct trace_writer *writer;

    crowd_open(&crowd, 0);
    writer = crowd.fixture.writer;
    for (size_t at = 0; at < EVENTS; at += 1000) {
        size_t taken = 0, charged = 0;

        write_to_all(&crowd, at, at + 1000);
        for (unsigned i = 0; i < THREADS; i++) {
            cr_assert_leq(segment_builder_tables(&crowd.threads[i]->builder),
                          crowd.threads[i]->charged_tables);
            taken += segment_builder_memory(&crowd.threads[i]->builder);
            charged += crowd.threads[i]->memory;
        }
        cr_assert_eq(charged, writer->memory);
        cr_assert_leq(taken, charged + charged / 8);
        cr_assert_leq(charged, taken + taken / 2);
        cr_assert_eq(writer->charged_threads, THREADS);
    }
    for (unsigned i = 0; i < THREADS; i++)
        cr_assert_eq(thread_writer_end(crowd.threads[i], 5000, NULL), 0);
    cr_assert_eq(writer->memory, 0);
    cr_assert_eq(writer->charged_threads, 0);
    crowd_close(&crowd);
}

/* Half of the threads stop. At a flush with three quarters of the limit taken they give way, not the others.
 */
Test(writer_memory, the_idle_give_way_first)
{
    struct crowd crowd;
    size_t taken = 0;

    crowd_open(&crowd, 0);
    write_to_all(&crowd, 0, 8000);
    flush(&crowd, 1000);
    crowd.fixture.writer->memory_limit = crowd.fixture.writer->memory / 8 * 9;
    for (unsigned i = THREADS / 2; i < THREADS; i++) {
        taken += crowd.threads[i]->memory;
        write_events(crowd.threads[i], &crowd.streams[i], 8000, 8010);
    }
    flush(&crowd, 2000);
    cr_assert_gt(trace_writer_memory(crowd.fixture.writer).closed_early, 0);
    cr_assert_leq(trace_writer_memory(crowd.fixture.writer).closed_early, THREADS / 2);
    for (unsigned i = THREADS / 2; i < THREADS; i++)
        cr_assert_gt(crowd.threads[i]->builder.event_count, 8000);
    cr_assert_leq(crowd.fixture.writer->memory, taken + taken / 4 + crowd.fixture.writer->memory_limit / 2);
    for (unsigned i = 0; i < THREADS; i++)
        expect_stream(crowd.fixture.store, thread_writer_id(crowd.threads[i]), &crowd.streams[i],
                      i < THREADS / 2 ? 8000 : 8010);
    crowd_close(&crowd);
}

/* ------------------------------------------------------------------------------------------ address space */

#ifndef __SANITIZE_ADDRESS__ /* its shadow needs more than any limit */
static size_t address_space(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    size_t pages = 0;

    cr_assert_eq(fscanf(file, "%zu", &pages), 1);
    fclose(file);
    return pages * 4096;
}

/* Tables reserve the memory that they may come to need, but can do without. */
Test(writer_memory, tables_do_not_need_what_they_reserve)
{
    struct generator generator = {5};
    struct codec_encoder *encoder = codec_prediction.encoder_new();
    size_t least = address_space() + ((size_t)2 << 20);
    const struct rlimit limit = {least, least};

    cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
    for (int i = 0; i < 4000; i++)
        cr_assert_eq(codec_prediction.encode(encoder, (uint16_t)(1 + generator_below(&generator, 300))), 0,
                     "word %d, with %zu bytes", i, encoder->memory);
    cr_assert_gt(encoder->memory, 300000);
    codec_prediction.encoder_free(encoder);
}
#endif
