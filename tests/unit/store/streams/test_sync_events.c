/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "store/db/store.h"
#include "store/streams/process_codec.h"
#include "store/streams/sync_events.h"
#include "tests/unit/store/fixture.h"

static struct process_event random_event(struct generator *generator, uint64_t ns)
{
    static const uint64_t extremes[] = {0, 1, 0x7f0000001000, UINT64_MAX, 1ull << 63};

    return (struct process_event){
        .ns = ns + generator_below(generator, 5000),
        .object = extremes[generator_below(generator, 5)] + generator_below(generator, 3),
        .other = extremes[generator_below(generator, 5)],
        .result = (int64_t)extremes[generator_below(generator, 5)],
        .position = generator_next(generator) >> generator_below(generator, 64),
        .thread = generator_below(generator, 5) ? generator_below(generator, 4) : UINT32_MAX,
        .site = generator_below(generator, 30),
        .kind = (uint8_t)(1 + generator_below(generator, SYNC_KINDS - 1)),
        .phase = (uint8_t)generator_below(generator, 3),
    };
}

static bool same(const struct process_event *a, const struct process_event *b)
{
    return a->ns == b->ns && a->object == b->object && a->other == b->other && a->result == b->result &&
           a->position == b->position && a->thread == b->thread && a->site == b->site && a->kind == b->kind &&
           a->phase == b->phase;
}

static void seal(const struct process_encoder *encoder, struct bytes *payload)
{
    struct process_sealed sealed;
    AUTO_BYTES list = {0};

    cr_assert_eq(process_encoder_seal(encoder, &sealed), 0);
    cr_assert_eq(process_sealed_write(&sealed, NULL, payload, &list), 0);
    process_sealed_release(&sealed);
}

static void expect_payload(const struct bytes *payload, const struct process_event *events, size_t count)
{
    struct process_decoder *decoder = NULL;
    struct process_event event;

    cr_assert_eq(process_decoder_open(PROCESS_STREAM_SYNC, payload->data, payload->size, count, &decoder), 0);
    for (size_t i = 0; i < count; i++) {
        cr_assert_eq(process_decoder_next(decoder, &event), 0, "event %zu", i);
        cr_assert(same(&event, &events[i]), "event %zu is another one", i);
    }
    cr_assert_eq(process_decoder_next(decoder, &event), 1);
    process_decoder_free(decoder);
}

/* Every event that can be written comes back, whatever stands in it, from segments of any length, and the
 * encoder goes on after sealing. */
Test(sync_codec, decoding_gives_what_was_encoded)
{
    struct process_encoder *encoder = process_encoder_new(PROCESS_STREAM_SYNC);
    struct process_event events[2000];
    struct generator generator = {11};
    uint64_t ns = 1ull << 60;

    for (size_t count = 0; count < 2000; count++) {
        if (count % 397 == 0) {
            AUTO_BYTES payload = {0};

            seal(encoder, &payload);
            expect_payload(&payload, events, count);
        }
        events[count] = random_event(&generator, ns);
        ns = events[count].ns;
        cr_assert_eq(process_encoder_add(encoder, &events[count]), 0);
    }
    process_encoder_clear(encoder);
    cr_assert_eq(process_encoder_extent(encoder).events, 0);
    process_encoder_free(encoder);
}

/* Threads that take turns with a few locks and send over connections: less than four bytes an event. */
Test(sync_codec, plain_locking_takes_few_bytes)
{
    struct process_encoder *encoder = process_encoder_new(PROCESS_STREAM_SYNC);
    struct generator generator = {12};
    AUTO_BYTES payload = {0};
    uint64_t ns = 5, sent = 0, seq[4] = {0};

    for (size_t i = 0; i < 20000; i++) {
        unsigned thread = generator_below(&generator, 4), at = (unsigned)(seq[thread]++ % 4);
        struct process_event event = {.ns = ns += 200 + generator_below(&generator, 100), .thread = thread};

        event.kind = at == 0 ? SYNC_MUTEX_LOCK : at == 3 ? SYNC_MUTEX_UNLOCK : SYNC_SEND;
        event.phase = at == 1 ? SYNC_BEGIN : at == 2 ? SYNC_END : SYNC_AT;
        event.object = at == 0 || at == 3 ? 0x555500001000 + thread % 2 * 64 : 7;
        event.site = at == 0 || at == 3 ? at + 1 : 0;
        if (at == 2) {
            event.other = sent;
            event.result = 100;
            sent += 100;
        }
        event.position = seq[thread] * 3;
        cr_assert_eq(process_encoder_add(encoder, &event), 0);
    }
    seal(encoder, &payload);
    cr_assert_lt(payload.size, 80000, "%zu bytes", payload.size);
    process_encoder_free(encoder);
}

/* A payload with any byte changed is read without harm; whatever is wrong is told as such. */
Test(sync_codec, damage_is_survived)
{
    struct process_encoder *encoder = process_encoder_new(PROCESS_STREAM_SYNC);
    struct generator generator = {13};
    struct process_event event = {0};
    AUTO_BYTES payload = {0};

    for (size_t i = 0; i < 300; i++) {
        event = random_event(&generator, event.ns);
        cr_assert_eq(process_encoder_add(encoder, &event), 0);
    }
    seal(encoder, &payload);
    for (size_t i = 0; i < payload.size; i++) {
        struct process_decoder *decoder = NULL;
        int code;

        payload.data[i] ^= 0x41;
        code = process_decoder_open(PROCESS_STREAM_SYNC, payload.data, payload.size, 300, &decoder);
        while (!code)
            code = process_decoder_next(decoder, &event);
        cr_assert(code == 1 || code == -EBADMSG || code == -ENOTSUP, "byte %zu: %d", i, code);
        process_decoder_free(decoder);
        payload.data[i] ^= 0x41;
    }
    process_encoder_free(encoder);
}

/* ------------------------------------------------------------------------------------------ in a store */

#define EVENTS 3000

static struct process_event *write_run(struct fixture *fixture)
{
    const struct sync_process_description process = {
        .process_id = fixture->process_id, .from_ns = 7, .from_start = true};
    const struct sync_channel channel = {.kind = SYNC_CHANNEL_TCP,
                                         .name = "",
                                         .local = "127.0.0.1:80",
                                         .remote = "127.0.0.1:4000",
                                         .inode = 99,
                                         .net = 5};
    struct process_event *events = calloc(EVENTS, sizeof(*events));
    struct trace_call_site_description site = {.image_id = fixture->image_id};
    struct generator generator = {14};
    struct process_writer *sync = NULL;
    struct error err = {0};
    uint64_t number = 0;
    uint32_t sites[30] = {0};

    for (unsigned i = 1; i < 30; i++) {
        site.address = 0x1000 + i;
        cr_assert_eq(trace_writer_call_site(fixture->writer, &site, &sites[i], &err), 0, "%s", err.message);
    }
    cr_assert_eq(trace_writer_sync_process(fixture->writer, &process, &sync, &err), 0);
    cr_assert_eq(
        trace_writer_sync_library(fixture->writer, fixture->process_id, "/lib/libc.so.6", NULL, &err), 0);
    cr_assert_eq(trace_writer_sync_channel(fixture->writer, &channel, &number, &err), 0);
    cr_assert_eq(number, 1);
    cr_assert_eq(trace_writer_sync_function(fixture->writer, 1, "sink", "heartbeat", &err), 0);
    for (size_t i = 0; i < EVENTS; i++) {
        events[i] = random_event(&generator, i ? events[i - 1].ns : 1000);
        events[i].site = sites[events[i].site];
        cr_assert_eq(process_writer_append(sync, &events[i]), 0);
        if (i % 700 == 0)
            cr_assert_eq(trace_writer_flush(fixture->writer, events[i].ns, &err), 0, "%s", err.message);
    }
    cr_assert_eq(trace_writer_end(fixture->writer, events[EVENTS - 1].ns, 0, &err), 0, "%s", err.message);
    return events;
}

static void expect_run(struct tracestore *store, const struct process_event *events)
{
    struct sync_process *processes = NULL;
    struct sync_channel *channels = NULL;
    struct sync_function *functions = NULL;
    struct process_event_iter *iter = NULL;
    struct process_event event;
    struct error err = {0};
    size_t count = 0;

    cr_assert_eq(sync_processes(store, 1, &processes, &count, &err), 0, "%s", err.message);
    cr_assert_eq(count, 1);
    cr_assert_str_eq(processes[0].library, "/lib/libc.so.6");
    cr_assert(processes[0].from_start && processes[0].events == EVENTS && !processes[0].why_not);
    cr_assert_eq(sync_channels(store, 1, &channels, &count, &err), 0, "%s", err.message);
    cr_assert_eq(count, 1);
    cr_assert_str_eq(channels[0].remote, "127.0.0.1:4000");
    cr_assert(channels[0].kind == SYNC_CHANNEL_TCP && channels[0].inode == 99 && channels[0].net == 5);
    cr_assert_eq(sync_functions(store, 1, &functions, &count, &err), 0, "%s", err.message);
    cr_assert_eq(count, 1);
    cr_assert_str_eq(functions[0].role, "sink");
    cr_assert_eq(process_event_iter_open(store, PROCESS_STREAM_SYNC, processes[0].process_id, &iter, &err), 0,
                 "%s", err.message);
    for (size_t i = 0; i < EVENTS; i++) {
        cr_assert_eq(process_event_iter_next(iter, &event, &err), 0, "event %zu: %s", i, err.message);
        cr_assert_eq(process_event_iter_seq(iter), i);
        cr_assert(same(&event, &events[i]), "event %zu is another one", i);
    }
    cr_assert_eq(process_event_iter_next(iter, &event, &err), 1);
    process_event_iter_free(iter);
    sync_processes_free(processes, 1);
    sync_channels_free(channels, 1);
    sync_functions_free(functions, 1);
}

Test(sync_events, a_run_is_written_read_and_deleted)
{
    struct fixture fixture;
    struct process_event *events;
    struct error err = {0};
    int64_t left = -1;

    fixture_open(&fixture, NULL);
    events = write_run(&fixture);
    expect_run(fixture.store, events);
    cr_assert_eq(tracestore_verify(fixture.store, NULL, NULL, NULL, &err), 0, "%s", err.message);
    cr_assert_eq(tracestore_delete_run(fixture.store, 1, &err), 0, "%s", err.message);
    cr_assert_eq(
        db_number(fixture.store->db, "test", &left, &err,
                  "SELECT (SELECT count(*) FROM process_segments) + (SELECT count(*) FROM sync_channels)"
                  " + (SELECT count(*) FROM sync_functions) + (SELECT count(*) FROM sync_processes)",
                  ""),
        0);
    cr_assert_eq(left, 0);
    free(events);
    fixture_close(&fixture);
}

/* Damage is found; what is salvaged of a sound store is all of it, and of a damaged one what is sound. */
Test(sync_events, damage_is_found_and_salvaged)
{
    struct fixture fixture;
    struct tracestore *store = NULL;
    struct trace_salvaged salvaged;
    struct process_event *events;
    struct error err = {0};
    char path[128];

    fixture_open(&fixture, NULL);
    events = write_run(&fixture);
    snprintf(path, sizeof(path), "%s/whole.db", fixture.folder);
    cr_assert_eq(tracestore_salvage(fixture.path, path, &salvaged, &err), 0, "%s", err.message);
    cr_assert_eq(tracestore_open(path, TRACESTORE_READ, &store, &err), 0, "%s", err.message);
    expect_run(store, events);
    cr_assert_eq(tracestore_verify(store, NULL, NULL, NULL, &err), 0, "%s", err.message);
    tracestore_free(store);
    unlink(path);
    cr_assert_eq(db_exec(fixture.store->db,
                         "UPDATE process_segments SET data = substr(data, 1, 40) || x'00' || substr(data, 42)"
                         " WHERE segment_id = 1",
                         "test", &err),
                 0);
    cr_assert_gt(tracestore_verify(fixture.store, NULL, NULL, NULL, &err), 0);
    cr_assert_eq(tracestore_salvage(fixture.path, path, &salvaged, &err), 0, "%s", err.message);
    cr_assert_eq(salvaged.lost_segments, 1);
    cr_assert_eq(tracestore_open(path, TRACESTORE_READ, &store, &err), 0, "%s", err.message);
    cr_assert_eq(tracestore_verify(store, NULL, NULL, NULL, &err), 0, "%s", err.message);
    tracestore_free(store);
    unlink(path);
    free(events);
    fixture_close(&fixture);
}
