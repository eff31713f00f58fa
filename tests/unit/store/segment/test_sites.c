/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Call sites: what was written is read, whatever the streams and wherever they are cut. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "store/segment/event_iter.h"
#include "store/segment/segment.h"
#include "tests/unit/repeats.h"
#include "tests/unit/store/fixture.h"

static const struct trace_writer_options small_segments = {.segment_bytes = 300, .segment_events = 5000};

/* How a call's site follows from the stream: as in a program, by the caller's place; at random; or never the
 * same again. */
enum site_kind { SITES_OF_PROGRAM, SITES_RANDOM, SITES_NEW, SITES_UNKNOWN };
#define SITE_KINDS 4

static uint32_t draw_site(struct generator *generator, enum site_kind kind, const struct stream *stream,
                          size_t at)
{
    uint32_t before = at ? stream->events[at - 1] % 1000 : 0;

    switch (kind) {
    case SITES_OF_PROGRAM:
        return stream->events[at] % 1000 * 1000 + before + 1;
    case SITES_RANDOM:
        return generator_below(generator, 10) ? generator_below(generator, 5) : 0xffffffff;
    case SITES_NEW:
        return (uint32_t)at * 77 + 5;
    default:
        return 0;
    }
}

static bool is_call(uint32_t event)
{
    return event && event != TRACESTORE_LOST_FUNCTION;
}

/* Sites of a stream's events, 0 for those that are no calls. Free with free(). */
static uint32_t *draw_sites(const struct stream *stream, enum site_kind kind)
{
    struct generator generator = {77};
    uint32_t *sites = calloc(stream->count, sizeof(*sites));

    for (size_t i = 0; i < stream->count; i++)
        if (is_call(stream->events[i]))
            sites[i] = draw_site(&generator, kind, stream, i);
    return sites;
}

static void write_with_sites(struct thread_writer *thread, const struct stream *stream, const uint32_t *sites,
                             size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        if (is_call(stream->events[i]))
            cr_assert_eq(thread_writer_call_from(thread, stream->events[i], sites[i]), 0, "event %zu", i);
        else
            write_events(thread, stream, i, i + 1);
    }
}

static void expect_sites(struct tracestore *store, int64_t thread_id, const uint32_t *sites, size_t count)
{
    struct event_iter *iter;
    struct event event;
    struct error err = {0};

    cr_assert_eq(event_iter_open(store, thread_id, 0, &iter, &err), 0, "%s", err.message);
    for (size_t i = 0; i < count; i++) {
        cr_assert_eq(event_iter_next(iter, &event, &err), 0, "event %zu: %s", i, err.message);
        cr_assert_eq(event.call_site, sites[i], "event %zu: %u, not %u", i, event.call_site, sites[i]);
    }
    event_iter_free(iter);
}

/* The calls that are open around each event know their sites, too: the outermost and the innermost are looked
 * at. */
static void expect_open_sites(struct tracestore *store, int64_t thread_id, const uint32_t *sites)
{
    const struct open_call *open;
    struct event_iter *iter;
    struct event event;
    size_t depth;

    cr_assert_eq(event_iter_open(store, thread_id, 0, &iter, NULL), 0);
    while (event_iter_next(iter, &event, NULL) == 0) {
        open = event_iter_open_calls(iter, &depth);
        if (!depth)
            continue;
        cr_assert_eq(open[0].site, sites[open[0].seq]);
        cr_assert_eq(open[depth - 1].site, sites[open[depth - 1].seq]);
    }
    event_iter_free(iter);
}

static struct thread_writer *thread_with_sites(struct fixture *fixture, enum trace_returns returns)
{
    const struct trace_thread_description description = {
        .process_id = fixture->process_id, .tid = 1, .label = "0.0", .returns = returns, .call_sites = true};
    struct thread_writer *thread;
    struct error err = {0};

    cr_assert_eq(trace_writer_thread(fixture->writer, &description, &thread, &err), 0, "%s", err.message);
    return thread;
}

static void flush(struct fixture *fixture, uint64_t ns)
{
    struct error err = {0};

    cr_assert_eq(trace_writer_flush(fixture->writer, ns, &err), 0, "%s", err.message);
}

static void write_and_read(enum stream_kind kind, enum site_kind site_kind,
                           const struct trace_writer_options *options, size_t step)
{
    struct fixture fixture;
    struct stream stream = {0};
    struct thread_writer *thread;
    uint32_t *sites;
    int64_t id = 0;

    fixture_open(&fixture, options);
    thread = thread_with_sites(&fixture, TRACE_RETURNS_PROBED);
    stream_generate(&stream, kind, 5, 8000);
    sites = draw_sites(&stream, site_kind);
    for (size_t at = 0; at < stream.count; at += step) {
        size_t to = at + step < stream.count ? at + step : stream.count;

        write_with_sites(thread, &stream, sites, at, to);
        flush(&fixture, 3000 + to);
        id = thread_writer_id(thread);
        expect_stream(fixture.store, id, &stream, to);
        expect_sites(fixture.store, id, sites, to);
    }
    cr_assert_eq(trace_writer_end(fixture.writer, 99000, 0, NULL), 0);
    cr_assert_eq(trace_writer_memory(fixture.writer).closed_early > 0, options && options->memory_bytes);
    expect_stream(fixture.store, id, &stream, stream.count);
    expect_sites(fixture.store, id, sites, stream.count);
    expect_open_sites(fixture.store, id, sites);
    fixture_close(&fixture);
    stream_release(&stream);
    free(sites);
}

/* Segments that are closed early for lack of memory: the next ones know where the open calls came from. */
Test(sites, little_memory)
{
    const struct trace_writer_options options = {.memory_bytes = 1};

    write_and_read(STREAM_RANDOM, SITES_OF_PROGRAM, &options, REPEATS(4000));
    write_and_read(STREAM_LOSSES, SITES_RANDOM, &options, REPEATS(4000));
}

Test(sites, every_stream_comes_back, .timeout = 120)
{
    for (int kind = 0; kind < STREAM_KINDS; kind++)
        for (int sites = 0; sites < SITE_KINDS; sites++)
            write_and_read((enum stream_kind)kind, (enum site_kind)sites, NULL, 3333);
}

Test(sites, every_stream_comes_back_in_small_segments, .timeout = 120)
{
    for (int kind = 0; kind < STREAM_KINDS; kind++)
        for (int sites = 0; sites < SITE_KINDS; sites++)
            write_and_read((enum stream_kind)kind, (enum site_kind)sites, &small_segments, 1777);
}

/* A journal row after every event. */
Test(sites, the_journal_may_be_cut_anywhere)
{
    struct fixture fixture;
    struct stream stream = {0};
    struct thread_writer *thread;
    uint32_t *sites;

    fixture_open(&fixture, &small_segments);
    thread = thread_with_sites(&fixture, TRACE_RETURNS_PROBED);
    stream_generate(&stream, STREAM_LOSSES, 2, 400);
    sites = draw_sites(&stream, SITES_RANDOM);
    for (size_t i = 0; i < stream.count; i++) {
        write_with_sites(thread, &stream, sites, i, i + 1);
        flush(&fixture, 5000 + i);
        expect_sites(fixture.store, thread_writer_id(thread), sites, i + 1);
    }
    fixture_close(&fixture);
    stream_release(&stream);
    free(sites);
}

/* Beyond 65,535 sites in one thread, half of them of calls that are still open. */
Test(sites, more_sites_than_local_ids)
{
    struct fixture fixture;
    struct stream stream = {0};
    struct thread_writer *thread;
    uint32_t *sites;

    fixture_open(&fixture, &(struct trace_writer_options){.segment_bytes = 64u << 20});
    thread = thread_with_sites(&fixture, TRACE_RETURNS_PROBED);
    for (uint32_t i = 0; i < 80000; i++) {
        stream_add(&stream, i % 3 + 1);
        if (i % 2)
            stream_add(&stream, 0);
    }
    sites = draw_sites(&stream, SITES_NEW);
    write_with_sites(thread, &stream, sites, 0, stream.count);
    cr_assert_eq(trace_writer_end(fixture.writer, 9000, 0, NULL), 0);
    expect_stream(fixture.store, thread_writer_id(thread), &stream, stream.count);
    expect_sites(fixture.store, thread_writer_id(thread), sites, stream.count);
    cr_assert_eq(ask(tracestore_db(fixture.store), "SELECT count(*) FROM segments"), 2);
    fixture_close(&fixture);
    stream_release(&stream);
    free(sites);
}

Test(sites, threads_without_sites_take_none)
{
    struct fixture fixture;
    struct thread_writer *with, *without;

    fixture_open(&fixture, NULL);
    with = thread_with_sites(&fixture, TRACE_RETURNS_PROBED);
    without = fixture_thread(&fixture, "0.1", TRACE_RETURNS_PROBED);
    cr_assert_eq(thread_writer_call_from(without, 1, 5), -EINVAL);
    cr_assert_eq(thread_writer_call_from(without, 1, 0), 0);
    cr_assert_eq(thread_writer_call(with, 1), 0);
    flush(&fixture, 2000);
    expect_sites(fixture.store, thread_writer_id(without), (uint32_t[]){0}, 1);
    expect_sites(fixture.store, thread_writer_id(with), (uint32_t[]){0}, 1);
    fixture_close(&fixture);
}

/* A thread that goes on behind its end does not know any more where its open calls came from. */
Test(sites, a_thread_goes_on_behind_its_end)
{
    struct fixture fixture;
    struct thread_writer *thread;

    fixture_open(&fixture, NULL);
    thread = thread_with_sites(&fixture, TRACE_RETURNS_PROBED);
    cr_assert_eq(thread_writer_call_from(thread, 1, 11), 0);
    cr_assert_eq(thread_writer_end(thread, 2000, NULL), 0);
    cr_assert_eq(thread_writer_call_from(thread, 2, 12), 0);
    cr_assert_eq(thread_writer_return(thread), 0);
    cr_assert_eq(thread_writer_return(thread), 0);
    flush(&fixture, 3000);
    expect_sites(fixture.store, thread_writer_id(thread), (uint32_t[]){11, 12, 0, 0}, 4);
    fixture_close(&fixture);
}

/* ------------------------------------------------------------------------------------------ size, damage */

/* A segment of the events, and in `ret_plain` the size of the same without sites. `assumed`: the nesting of
 * every fifth call is. */
static struct closed_segment *build(const struct stream *stream, const uint32_t *sites, bool assumed,
                                    size_t *ret_plain)
{
    struct segment_builder with, without;
    struct closed_segment *closed, *plain;

    segment_builder_init(&with, CODEC_DEFAULT, SEGMENT_CALL_SITES);
    segment_builder_init(&without, CODEC_DEFAULT, 0);
    for (size_t i = 0; i < stream->count; i++) {
        bool mark = assumed && i % 5 == 0;

        cr_assert_eq(stream->events[i] ? segment_builder_call(&with, stream->events[i], sites[i], mark)
                                       : segment_builder_return(&with),
                     0);
        cr_assert_eq(stream->events[i] ? segment_builder_call(&without, stream->events[i], 0, mark)
                                       : segment_builder_return(&without),
                     0);
    }
    cr_assert_eq(segment_builder_close(&with, &closed), 0);
    cr_assert_eq(segment_builder_close(&without, &plain), 0);
    segment_builder_release(&with);
    segment_builder_release(&without);
    *ret_plain = plain->payload.size;
    closed_segment_free(plain);
    return closed;
}

/* Sites that follow from the loops cost what is told once: nothing that grows with their turns. */
Test(sites, loops_cost_nothing)
{
    struct stream stream = {0};
    struct closed_segment *closed;
    uint32_t *sites;
    size_t plain;

    for (uint32_t outer = 0; outer < 20000; outer++) {
        for (uint32_t call = 1; call < 5; call++) { /* f1 and f2, each from two places in turn */
            stream_add(&stream, call % 2 + 1);
            stream_add(&stream, 3);
            stream_add(&stream, 0);
            stream_add(&stream, 0);
        }
    }
    sites = calloc(stream.count, sizeof(*sites));
    for (size_t i = 0; i < stream.count; i++)
        sites[i] = stream.events[i] == 3 ? 100 : stream.events[i] ? (uint32_t)(200 + i % 16) : 0;
    closed = build(&stream, sites, false, &plain);
    cr_assert_lt(closed->payload.size, plain + 60, "%zu bytes, %zu without", closed->payload.size, plain);
    closed_segment_free(closed);
    stream_release(&stream);
    free(sites);
}

/* 0 when all events could be decoded. */
static int decode(const struct closed_segment *closed)
{
    AUTO_BYTES room = {0};
    struct segment_parts parts;
    struct segment_decoder *decoder;
    struct event event;
    int code = segment_parse(closed->payload.data, closed->payload.size, &room, &parts);

    if (!code)
        code = segment_decoder_open(&parts, closed->first_seq, closed->event_count, 0, true, &decoder);
    if (code)
        return code;
    while ((code = segment_decoder_next(decoder, &event)) == 0)
        cr_assert(event.kind == EVENT_CALL || !event.call_site);
    segment_decoder_free(decoder);
    return code == 1 ? 0 : code;
}

Test(sites, damage_is_an_error_or_events)
{
    struct stream stream = {0};
    struct closed_segment *closed;
    uint32_t *sites;
    size_t refused = 0, tried = 0, plain;

    stream_generate(&stream, STREAM_RANDOM, 4, 200);
    sites = draw_sites(&stream, SITES_RANDOM);
    closed = build(&stream, sites, true, &plain);
    cr_assert_eq(decode(closed), 0);
    for (size_t at = 0; at < closed->payload.size; at++) {
        for (unsigned change = 1; change < 256; change += 3) {
            int code;

            closed->payload.data[at] ^= (uint8_t)change;
            code = decode(closed);
            cr_assert(code == 0 || code == -EBADMSG || code == -ENOTSUP, "byte %zu: %d", at, code);
            refused += code != 0;
            tried++;
            closed->payload.data[at] ^= (uint8_t)change;
        }
    }
    cr_assert_gt(refused, tried / 2, "%zu of %zu refused", refused, tried);
    for (size_t size = closed->payload.size; size-- > 0;) {
        closed->payload.size = size;
        cr_assert_eq(decode(closed), -EBADMSG, "%zu bytes", size);
    }
    closed_segment_free(closed);
    stream_release(&stream);
    free(sites);
}

/* ------------------------------------------------------------------------------------------ the catalog */

Test(sites, the_catalog_says_where_a_site_is)
{
    struct fixture fixture;
    struct thread_writer *thread;
    struct trace_call_site_description site = {.address = 0x1234, .file = "a.c", .line = 7};
    uint32_t f, g, here, there, again;

    fixture_open(&fixture, NULL);
    f = fixture_function(&fixture, "f");
    g = fixture_function(&fixture, "g");
    site.image_id = fixture.image_id;
    site.function_id = f;
    cr_assert_eq(trace_writer_call_site(fixture.writer, &site, &here, NULL), 0);
    site = (struct trace_call_site_description){.image_id = fixture.image_id, .address = 0x2000};
    cr_assert_eq(trace_writer_call_site(fixture.writer, &site, &there, NULL), 0);
    site.address = 0x1234;
    cr_assert_eq(trace_writer_call_site(fixture.writer, &site, &again, NULL), 0);
    cr_assert_eq(again, here);
    cr_assert_neq(there, here);
    thread = thread_with_sites(&fixture, TRACE_RETURNS_NONE);
    thread_writer_call_from(thread, g, here);
    thread_writer_call_from(thread, g, there);
    thread_writer_call_from(thread, g, here);
    flush(&fixture, 2000);
    cr_assert_eq(ask(tracestore_db(fixture.store),
                     "SELECT count(*) FROM event_sites WHERE name = 'g' AND caller = 'f' AND file = 'a.c'"
                     " AND line = 7 AND address = 0x1234 AND image = '/bin/prog'"),
                 2);
    cr_assert_eq(ask(tracestore_db(fixture.store),
                     "SELECT count(*) FROM event_sites WHERE caller IS NULL AND file IS NULL AND line IS NULL"
                     " AND address = 0x2000"),
                 1);
    cr_assert_eq(tracestore_verify(fixture.store, NULL, NULL, NULL, NULL), 0);
    fixture_close(&fixture);
}

static uint64_t catalog_bytes(struct fixture *fixture, int64_t run_id)
{
    struct tracestore_totals totals;

    cr_assert_eq(tracestore_run_totals(fixture->store, run_id, &totals, NULL), 0);
    return totals.catalog_bytes;
}

/* The next run of the store: f calls itself, in a thread with or without sites, of which one is new, in
 * `function` (0: nobody knows), and calls nothing. */
static void write_run_of_f(struct fixture *fixture, uint32_t f, bool with_sites, uint64_t address,
                           uint32_t function)
{
    static const struct trace_run_description run = {
        .name = "test", .command = "./prog -x", .started_ns = 1000};
    static const struct trace_process_description process = {
        .pid = 77, .rank = -1, .exe = "/bin/prog", .argv = "prog"};
    const struct trace_call_site_description site = {
        .image_id = fixture->image_id, .address = address, .function_id = function};
    struct thread_writer *thread;
    uint32_t id;

    trace_writer_free(fixture->writer);
    cr_assert_eq(trace_writer_begin(fixture->store, &run, NULL, &fixture->writer, NULL), 0);
    cr_assert_eq(trace_writer_process(fixture->writer, &process, &fixture->process_id, NULL), 0);
    thread = with_sites ? thread_with_sites(fixture, TRACE_RETURNS_PROBED)
                        : fixture_thread(fixture, "0.0", TRACE_RETURNS_PROBED);
    cr_assert_eq(thread_writer_call(thread, f), 0);
    if (address)
        cr_assert_eq(trace_writer_call_site(fixture->writer, &site, &id, NULL), 0);
    cr_assert_eq(trace_writer_end(fixture->writer, 5000, 0, NULL), 0);
}

Test(sites, count_as_bytes_of_the_catalog)
{
    struct fixture fixture;
    uint64_t without, with;
    uint32_t f, g;

    fixture_open(&fixture, NULL);
    f = fixture_function(&fixture, "f");
    g = fixture_function(&fixture, "g");
    cr_assert_eq(trace_writer_end(fixture.writer, 5000, 0, NULL), 0);
    write_run_of_f(&fixture, f, false, 0, 0);
    write_run_of_f(&fixture, f, true, 0, 0);
    without = catalog_bytes(&fixture, 2);
    with = catalog_bytes(&fixture, 3);
    write_run_of_f(&fixture, f, false, 0x1000, g);
    cr_assert_eq(catalog_bytes(&fixture, 3), with, "g is not called: its site is not counted");
    write_run_of_f(&fixture, f, false, 0x1010, f);
    /* A row: 2 for its place, its length and id, 7 of header, 1 + 2 + 1 of numbers; an index entry: 2, 1,
     * 4, 3. */
    cr_assert_geq(catalog_bytes(&fixture, 3), with + 18);
    cr_assert_leq(catalog_bytes(&fixture, 3), with + 26);
    with = catalog_bytes(&fixture, 3);
    write_run_of_f(&fixture, f, false, 0x1020, 0);
    cr_assert_geq(catalog_bytes(&fixture, 3), with + 18, "nobody knows whose it is");
    cr_assert_eq(catalog_bytes(&fixture, 2), without, "its neighbour's sites are none of its own");
    fixture_close(&fixture);
}

/* Sites stay as long as a run has any, and go with the last. */
Test(sites, deleted_with_the_last_run_that_has_any)
{
    struct fixture fixture;
    struct trace_call_site_description site = {.address = 0x1234};
    const struct trace_run_description run = {.name = "second", .command = ""};
    const struct trace_process_description process = {.pid = 5, .rank = -1};
    uint32_t id;

    fixture_open(&fixture, NULL);
    site.image_id = fixture.image_id;
    cr_assert_eq(trace_writer_call_site(fixture.writer, &site, &id, NULL), 0);
    thread_writer_call_from(thread_with_sites(&fixture, TRACE_RETURNS_NONE), 9, id);
    cr_assert_eq(trace_writer_end(fixture.writer, 5, 0, NULL), 0);
    trace_writer_free(fixture.writer);
    cr_assert_eq(trace_writer_begin(fixture.store, &run, NULL, &fixture.writer, NULL), 0);
    cr_assert_eq(trace_writer_process(fixture.writer, &process, &fixture.process_id, NULL), 0);
    thread_writer_call(fixture_thread(&fixture, "0.0", TRACE_RETURNS_NONE), 9);
    cr_assert_eq(trace_writer_end(fixture.writer, 5, 0, NULL), 0);
    cr_assert_eq(tracestore_delete_run(fixture.store, 2, NULL), 0);
    cr_assert_eq(ask(tracestore_db(fixture.store), "SELECT count(*) FROM call_sites"), 1);
    cr_assert_eq(tracestore_delete_run(fixture.store, 1, NULL), 0);
    cr_assert_eq(ask(tracestore_db(fixture.store), "SELECT count(*) FROM call_sites"), 0);
    fixture_close(&fixture);
}
