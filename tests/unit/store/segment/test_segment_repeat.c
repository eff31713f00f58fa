/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Stretches of kept steps make the segments that their events make one by one, to the last byte. */
#include <criterion/criterion.h>

#include "base/array.h"
#include "base/error.h"
#include "store/segment/segment.h"
#include "tests/unit/store/fixture.h"

#define FUNCTIONS 5

/* The functions that are open, four bits each, the innermost lowest. */
typedef uint64_t stack;

static unsigned depth_of(stack open)
{
    return open ? (67 - (unsigned)__builtin_clzll(open)) / 4 : 0;
}

static stack stack_behind(stack open, const struct thread_step *step)
{
    return (step->returns < 16 ? open >> 4 * step->returns : 0) << 4 | step->function_id;
}

/* What is kept, by number. */
struct model_step {
    struct thread_step step;
    stack before, behind;
};

struct model {
    struct generator generator;
    unsigned assumed_of; /* one of so many calls is assumed otherwise than its function says; 0: none is */
    unsigned depth;      /* how deep calls go */
    struct segment_builder plain, quick;
    stack open;
    struct model_step *steps;
    size_t count, capacity;
    uint64_t generation;
    size_t repeated, stale;
};

static uint32_t draw(struct model *model, uint32_t below)
{
    return generator_below(&model->generator, below);
}

static struct thread_step draw_step(struct model *model, stack open)
{
    unsigned deep = depth_of(open), returns = draw(model, 3) ? draw(model, 3) : draw(model, 6);
    struct thread_step step = {.function_id = 2 + draw(model, FUNCTIONS)};

    step.returns = returns < deep ? returns : deep;
    while (deep - step.returns + 1 > model->depth)
        step.returns++;
    if (model->assumed_of)
        step.assumed = (step.function_id == 3) != (draw(model, model->assumed_of) == 0);
    return step;
}

static void append_plain(struct model *model, const struct thread_step *step)
{
    for (uint32_t i = 0; i < step->returns; i++)
        cr_assert_eq(segment_builder_return(&model->plain), 0);
    cr_assert_eq(segment_builder_call(&model->plain, step->function_id, 0, step->assumed), 0);
    model->open = stack_behind(model->open, step);
}

static void keep_some(struct model *model)
{
    struct thread_step steps[40];
    struct model_step made[40];
    size_t count = 1 + draw(model, 40), done;
    struct kept_steps kept;

    for (size_t i = 0; i < count; i++) {
        steps[i] = draw_step(model, model->open);
        made[i] = (struct model_step){.step = steps[i], .before = model->open};
        append_plain(model, &steps[i]);
        made[i].behind = model->open;
    }
    cr_assert_eq(segment_builder_keep(&model->quick, steps, count, &done, &kept), 0);
    cr_assert_eq(done, count);
    if (kept.generation != model->generation || !kept.count)
        model->count = 0;
    model->generation = kept.generation;
    if (!kept.count)
        return;
    cr_assert_eq(kept.first, model->count);
    cr_assert_eq(kept.count, count);
    cr_assert_eq(array_reserve(&model->steps, &model->capacity, model->count + count), 0);
    memcpy(&model->steps[model->count], made, count * sizeof(*made));
    model->count += count;
}

static void repeat_some(struct model *model)
{
    size_t first = model->count ? draw(model, (uint32_t)model->count) : 0, most = 1 + draw(model, 200), end;
    struct kept_steps stretch = {.generation = model->generation, .first = (uint32_t)first};
    int code;

    while (first < model->count && model->steps[first].before != model->open)
        first++;
    if (first >= model->count)
        return;
    for (end = first + 1; end < model->count && end - first < most; end++)
        if (model->steps[end].before != model->steps[end - 1].behind)
            break;
    stretch.first = (uint32_t)first;
    stretch.count = (uint32_t)(end - first);
    code = segment_builder_again(&model->quick, &stretch);
    if (code == -ESTALE) { /* nothing has changed */
        model->stale++;
        model->count = 0;
        return;
    }
    cr_assert_eq(code, 0);
    model->repeated += end - first;
    for (size_t i = first; i < end; i++)
        append_plain(model, &model->steps[i].step);
}

/* Events that come by themselves. */
static void append_other(struct model *model)
{
    switch (draw(model, 4)) {
    case 0:
        if (!model->open)
            break;
        cr_assert_eq(segment_builder_return(&model->plain), 0);
        cr_assert_eq(segment_builder_return(&model->quick), 0);
        model->open >>= 4;
        break;
    case 1: {
        struct thread_step step = draw_step(model, model->open);

        if (step.returns)
            break;
        append_plain(model, &step);
        cr_assert_eq(segment_builder_call(&model->quick, step.function_id, 0, step.assumed), 0);
        break;
    }
    case 2:
        cr_assert_eq(segment_builder_lost(&model->plain), 0);
        cr_assert_eq(segment_builder_lost(&model->quick), 0);
        break;
    default:
        cr_assert_eq(segment_builder_anchor(&model->plain, model->plain.event_count * 10 + 1000), 0);
        cr_assert_eq(segment_builder_anchor(&model->quick, model->quick.event_count * 10 + 1000), 0);
        break;
    }
}

static void expect_same(struct model *model)
{
    const struct segment_builder *a = &model->plain, *b = &model->quick;

    segment_builder_settle(&model->quick);
    cr_assert_eq(a->event_count, b->event_count);
    cr_assert_eq(a->depth, b->depth);
    cr_assert_eq(a->low_depth, b->low_depth);
    for (size_t i = 0; i < a->depth; i++) {
        cr_assert_eq(a->open[i].seq, b->open[i].seq);
        cr_assert_eq(a->open[i].ns, b->open[i].ns);
        cr_assert_eq(a->open[i].function, b->open[i].function);
        cr_assert_eq(a->open[i].assumed, b->open[i].assumed);
        cr_assert_eq(a->open[i].local, b->open[i].local);
    }
    cr_assert_eq(a->functions.count, b->functions.count);
    for (size_t i = 0; i < a->functions.count; i++)
        if (a->functions.ids[i] != TRACESTORE_LOST_FUNCTION)
            cr_assert_eq(a->calls[i], b->calls[i]);
}

static void close_both(struct model *model)
{
    struct closed_segment *one, *other;

    cr_assert_eq(segment_builder_close(&model->plain, &one), 0);
    cr_assert_eq(segment_builder_close(&model->quick, &other), 0);
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

static struct model start(uint64_t seed, unsigned assumed_of, unsigned depth)
{
    struct model model = {.generator = {seed}, .assumed_of = assumed_of, .depth = depth};

    segment_builder_init(&model.plain, CODEC_DEFAULT, 0);
    segment_builder_init(&model.quick, CODEC_DEFAULT, 0);
    return model;
}

static void stop(struct model *model)
{
    segment_builder_release(&model->plain);
    segment_builder_release(&model->quick);
    free(model->steps);
}

static void compare(uint64_t seed, unsigned assumed_of, unsigned depth)
{
    struct model model = start(seed, assumed_of, depth);

    for (int round = 0; round < 3000; round++) {
        uint32_t choice = draw(&model, 100);

        if (choice < 20 || !model.count)
            keep_some(&model);
        else if (choice < 94)
            repeat_some(&model);
        else
            append_other(&model);
        if (choice == 99)
            expect_same(&model);
        if (draw(&model, 400) == 0)
            close_both(&model);
        if (draw(&model, 900) == 0) {
            close_both(&model);
            cr_assert_eq(segment_builder_shrink(&model.quick), 0);
        }
    }
    expect_same(&model);
    close_both(&model);
    cr_assert_gt(model.repeated, 20000);
    stop(&model);
}

Test(segment_repeat, makes_the_same_segments)
{
    static const unsigned assumed_of[] = {0, 1000000, 300, 7};

    for (size_t i = 0; i < ARRAY_SIZE(assumed_of); i++)
        for (unsigned depth = 2; depth <= 14; depth += 4)
            compare(10 * i + depth, assumed_of[i], depth);
}

Test(segment_repeat, what_cannot_be_is_refused)
{
    static const struct thread_step steps[] = {{.function_id = 2}, {.function_id = 3}, {.function_id = 4}};
    struct model model = start(1, 0, 4);
    struct segment_builder *builder = &model.quick;
    struct closed_segment *closed;
    struct kept_steps kept, too_many;
    size_t done;

    cr_assert_eq(segment_builder_keep(builder, steps, 3, &done, &kept), 0);
    cr_assert_eq(kept.count, 3);
    cr_assert_eq(segment_builder_again(builder, &kept), -EINVAL, "three calls are open, not none");
    for (int i = 0; i < 3; i++)
        cr_assert_eq(segment_builder_return(builder), 0);
    too_many = (struct kept_steps){.generation = kept.generation, .first = 1, .count = UINT32_MAX};
    cr_assert_eq(segment_builder_again(builder, &too_many), -ESTALE);
    cr_assert_eq(segment_builder_words(builder, &too_many), 0);
    cr_assert_eq(segment_builder_words(builder, &kept), 3);
    cr_assert_eq(segment_builder_again(builder, &kept), 0);
    cr_assert_eq(builder->event_count, 9);
    cr_assert_eq(segment_builder_close(builder, &closed), 0);
    cr_assert_eq(closed->functions[0].calls, 2);
    closed_segment_free(closed);
    cr_assert_eq(segment_builder_again(builder, &kept), -ESTALE, "the segment is another one");
    cr_assert_eq(builder->event_count, 0);
    stop(&model);
}

/* A thread that never does the same takes no more for what is kept than it may. */
Test(segment_repeat, memory_is_bounded)
{
    struct model model = start(3, 0, 14);
    struct thread_step steps[KEPT_STEPS_AT_ONCE];
    struct kept_steps kept;
    size_t done;

    for (uint32_t i = 0; i < 3 * STEP_HISTORY_MOST / KEPT_STEPS_AT_ONCE; i++) {
        for (uint32_t j = 0; j < KEPT_STEPS_AT_ONCE; j++)
            steps[j] = (struct thread_step){.returns = i || j, .function_id = 2 + (i * 7 + j * j) % 1000};
        cr_assert_eq(segment_builder_keep(&model.quick, steps, KEPT_STEPS_AT_ONCE, &done, &kept), 0);
        cr_assert_eq(kept.count, KEPT_STEPS_AT_ONCE);
        cr_assert_leq(step_history_memory(&model.quick.kept), (size_t)1 << 20);
    }
    cr_assert_geq(segment_builder_memory(&model.quick), step_history_memory(&model.quick.kept));
    cr_assert_eq(segment_builder_shrink(&model.plain), 0);
    stop(&model);
}
