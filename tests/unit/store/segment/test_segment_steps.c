/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Steps make the segments that their events make one by one, to the last byte. */
#include <criterion/criterion.h>

#include "base/error.h"
#include "store/segment/segment.h"
#include "tests/unit/store/fixture.h"

enum assumed_kind { ASSUMED_NONE, ASSUMED_ALL, ASSUMED_RARE, ASSUMED_STRETCHES };
#define ASSUMED_KINDS 4

static bool draw_assumed(struct generator *generator, enum assumed_kind kind, size_t at)
{
    return kind == ASSUMED_ALL || (kind == ASSUMED_RARE && generator_below(generator, 20) == 0) ||
           (kind == ASSUMED_STRETCHES && at / 50 % 2);
}

struct steps {
    struct thread_step *steps;
    size_t count;
};

/* The stream up to its last call. */
static struct steps steps_of(const struct stream *stream, enum assumed_kind kind)
{
    struct steps result = {.steps = calloc(stream->count + 1, sizeof(*result.steps))};
    struct generator generator = {11};
    uint32_t returns = 0;

    for (size_t i = 0; i < stream->count; i++) {
        if (stream->events[i] == TRACESTORE_LOST_FUNCTION)
            continue;
        if (!stream->events[i]) {
            returns++;
            continue;
        }
        result.steps[result.count++] = (struct thread_step){
            .returns = returns,
            .function_id = stream->events[i],
            .assumed = draw_assumed(&generator, kind, i),
        };
        returns = 0;
    }
    return result;
}

static void append_one_by_one(struct segment_builder *builder, const struct thread_step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (uint32_t r = 0; r < steps[i].returns; r++)
            cr_assert_eq(segment_builder_return(builder), 0);
        cr_assert_eq(segment_builder_call(builder, steps[i].function_id, 0, steps[i].assumed), 0);
    }
}

static void expect_same(const struct segment_builder *a, const struct segment_builder *b)
{
    cr_assert_eq(a->event_count, b->event_count);
    cr_assert_eq(a->depth, b->depth);
    for (size_t i = 0; i < a->depth; i++) {
        cr_assert_eq(a->open[i].seq, b->open[i].seq);
        cr_assert_eq(a->open[i].ns, b->open[i].ns);
        cr_assert_eq(a->open[i].function, b->open[i].function);
        cr_assert_eq(a->open[i].assumed, b->open[i].assumed);
    }
}

static void close_both(struct segment_builder *a, struct segment_builder *b)
{
    struct closed_segment *one, *other;

    cr_assert_eq(segment_builder_close(a, &one), 0);
    cr_assert_eq(segment_builder_close(b, &other), 0);
    cr_assert_eq(one->payload.size, other->payload.size);
    cr_assert_arr_eq(one->payload.data, other->payload.data, one->payload.size);
    cr_assert_eq(one->function_count, other->function_count);
    for (size_t i = 0; i < one->function_count; i++) {
        cr_assert_eq(one->functions[i].function, other->functions[i].function);
        cr_assert_eq(one->functions[i].calls, other->functions[i].calls);
    }
    closed_segment_free(one);
    closed_segment_free(other);
}

/* In pieces of any length, closed now and then, with times between. */
static void compare(const struct codec *codec, const struct steps *steps, uint64_t seed)
{
    struct generator generator = {seed};
    struct segment_builder plain, quick;
    size_t done;

    segment_builder_init(&plain, codec, 0);
    segment_builder_init(&quick, codec, 0);
    for (size_t i = 0; i < steps->count; i += done) {
        size_t piece = 1 + generator_below(&generator, 700), left = steps->count - i;
        uint64_t ns = 1000 + i * 10;

        piece = piece < left ? piece : left;
        cr_assert_eq(segment_builder_steps(&quick, &steps->steps[i], piece, &done), 0);
        cr_assert_eq(done, piece);
        append_one_by_one(&plain, &steps->steps[i], piece);
        expect_same(&plain, &quick);
        if (generator_below(&generator, 3) == 0) {
            cr_assert_eq(segment_builder_anchor(&plain, ns), 0);
            cr_assert_eq(segment_builder_anchor(&quick, ns), 0);
        }
        if (generator_below(&generator, 5) == 0)
            close_both(&plain, &quick);
    }
    close_both(&plain, &quick);
    segment_builder_release(&plain);
    segment_builder_release(&quick);
}

Test(segment_steps, make_the_same_segments)
{
    for (int kind = 0; kind < STREAM_KINDS; kind++) {
        struct stream stream = {0};

        stream_generate(&stream, (enum stream_kind)kind, 5, 20000);
        for (int assumed = 0; assumed < ASSUMED_KINDS; assumed++) {
            struct steps steps = steps_of(&stream, (enum assumed_kind)assumed);

            for (unsigned seed = 1; seed <= 2; seed++)
                compare(CODEC_DEFAULT, &steps, seed);
            free(steps.steps);
        }
        stream_release(&stream);
    }
}

Test(segment_steps, what_cannot_be_is_refused)
{
    const struct thread_step too_many = {.returns = 2, .function_id = 7}, nothing = {.function_id = 0},
                             lost = {.function_id = TRACESTORE_LOST_FUNCTION};
    const struct thread_step calls[] = {{.function_id = 5}, {.returns = 2, .function_id = 6}};
    struct segment_builder builder;
    size_t done;

    segment_builder_init(&builder, CODEC_DEFAULT, 0);
    cr_assert_eq(segment_builder_steps(&builder, calls, 2, &done), -EINVAL);
    cr_assert_eq(done, 1);
    cr_assert_eq(builder.event_count, 1);
    cr_assert_eq(segment_builder_steps(&builder, &too_many, 1, &done), -EINVAL);
    cr_assert_eq(segment_builder_steps(&builder, &nothing, 1, &done), -EINVAL);
    cr_assert_eq(segment_builder_steps(&builder, &lost, 1, &done), -EINVAL);
    cr_assert_eq(builder.event_count, 1);
    segment_builder_release(&builder);

    segment_builder_init(&builder, CODEC_DEFAULT, SEGMENT_CALL_SITES);
    cr_assert_eq(segment_builder_steps(&builder, calls, 1, &done), -EINVAL);
    segment_builder_release(&builder);

    segment_builder_init(&builder, CODEC_DEFAULT, SEGMENT_CALLS_ONLY);
    cr_assert_eq(segment_builder_steps(&builder, calls, 1, &done), 0);
    cr_assert_eq(segment_builder_steps(&builder, &too_many, 1, &done), -EINVAL, "nothing is open");
    segment_builder_release(&builder);
}

/* More functions than a segment can name, and segments that are full: the writer begins others. */
Test(segment_steps, a_stream_goes_over_several_segments)
{
    const struct trace_writer_options options = {.segment_bytes = 3000, .segment_events = 50000};
    enum { COUNT = 70000 };
    struct fixture fixture;
    struct stream stream = {0};
    struct thread_writer *thread;
    struct steps steps;
    struct error err = {0};

    fixture_open(&fixture, &options);
    fixture_functions(&fixture, COUNT);
    for (uint32_t i = 1; i <= COUNT; i++) {
        stream_add(&stream, i);
        if (i % 3)
            stream_add(&stream, 0);
    }
    stream_add(&stream, 1);
    steps = steps_of(&stream, ASSUMED_NONE);
    thread = fixture_thread(&fixture, "0.0", TRACE_RETURNS_PROBED);
    cr_assert_eq(thread_writer_steps(thread, steps.steps, steps.count), 0);
    cr_assert_eq(thread_writer_events(thread), stream.count);
    cr_assert_eq(trace_writer_flush(fixture.writer, 1, &err), 0, "%s", err.message);
    expect_stream(fixture.store, thread_writer_id(thread), &stream, stream.count);
    free(steps.steps);
    stream_release(&stream);
    fixture_close(&fixture);
}
