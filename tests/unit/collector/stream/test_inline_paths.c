/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is looked up is what call_stack_call() makes of it. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "collector/stream/inline_paths.h"
#include "tests/unit/collector/stream/made_records.h"

#define NEVER_RETURNS 3

/* What a record says, as far as it is looked up by its place: some callers are known, of some the depth. */
static struct call_evidence evidence_of(const struct agent_record *record)
{
    uint32_t kind = record->return_address % 5;

    return (struct call_evidence){
        .sp = agent_record_sp(record),
        .function = record->function - 1,
        .caller = kind < 3 ? record->return_address / 5 % 7 : CALL_STACK_NO_CALLER,
        .caller_depth = kind == 3 ? 40 : 0,
        .return_address = record->return_address,
        .return_unseen = true,
    };
}

static struct thread_step work_out(struct call_stack *stack, const struct agent_record *record)
{
    const struct call_evidence evidence = evidence_of(record);
    struct call_effect effect;

    cr_assert_eq(call_stack_call(stack, &evidence, NEVER_RETURNS, &effect), 0);
    return (struct thread_step){.returns = (uint32_t)effect.closed,
                                .function_id = evidence.function + 100,
                                .assumed = effect.assumed};
}

static void expect_step(const struct thread_step *step, const struct thread_step *expected, size_t at)
{
    cr_assert_eq(step->returns, expected->returns, "record %zu", at);
    cr_assert_eq(step->function_id, expected->function_id, "record %zu", at);
    cr_assert_eq(step->assumed, expected->assumed, "record %zu", at);
}

static void expect_stack(const struct call_stack *stack, const struct call_stack *expected)
{
    cr_assert_eq(stack->depth, expected->depth);
    for (size_t i = 0; i < stack->depth; i++) {
        const struct call_frame *a = &stack->frames[i], *b = &expected->frames[i];

        cr_assert_eq(a->sp, b->sp);
        cr_assert_eq(a->return_address, b->return_address);
        cr_assert_eq(a->function, b->function);
        cr_assert_eq(a->return_unseen, b->return_unseen);
        cr_assert_eq(a->probed, b->probed);
    }
}

/* Something that is not an inline call comes between: a probe of the kernel's, a return, a new epoch. */
static uint64_t disturb(struct generator *generator, struct call_stack *stack, struct call_stack *truth,
                        uint64_t epoch)
{
    uint64_t sp = 90000 + 16 * (uint64_t)below(generator, 600);
    const struct call_evidence probed = {.sp = sp, .function = 5, .caller = CALL_STACK_NO_CALLER};
    struct call_effect effect;

    switch (below(generator, 1500)) {
    case 0:
        cr_assert_eq(call_stack_call(stack, &probed, NEVER_RETURNS, &effect), 0);
        cr_assert_eq(call_stack_call(truth, &probed, NEVER_RETURNS, &effect), 0);
        return epoch;
    case 1:
        cr_assert_eq(call_stack_return(stack, sp, false), call_stack_return(truth, sp, false));
        return epoch;
    case 2: /* of some open calls the returns are not seen any more */
        for (size_t i = 0; i < stack->depth; i++)
            stack->frames[i].return_unseen = truth->frames[i].return_unseen = true;
        return epoch + 1;
    default:
        return epoch;
    }
}

/* Returns how many steps were looked up. */
static size_t compare(uint64_t seed, size_t count, uint32_t variety, size_t memory)
{
    struct generator generator = {seed};
    struct agent_record *records = make_records(&generator, count, variety);
    struct call_stack stack = {0}, truth = {0};
    struct inline_paths paths;
    size_t known = 0, left = memory;
    uint64_t epoch = 0;

    inline_paths_init(&paths, &left);
    for (size_t i = 0; i < count;) {
        struct thread_step steps[64], step;
        uint32_t numbers[ARRAY_SIZE(steps)];
        size_t piece = count - i < ARRAY_SIZE(steps) ? count - i : ARRAY_SIZE(steps), followed;
        uint32_t from;

        epoch = disturb(&generator, &stack, &truth, epoch);
        inline_paths_expect(&paths, &stack, epoch);
        followed = inline_paths_follow(&paths, &stack, &records[i], piece, steps, numbers);
        known += followed;
        for (size_t j = 0; j < followed; j++) {
            step = work_out(&truth, &records[i + j]);
            expect_step(&steps[j], &step, i + j);
        }
        expect_stack(&stack, &truth);
        i += followed;
        if (followed == piece)
            continue;
        from = inline_paths_stack(&paths, &stack);
        step = work_out(&stack, &records[i]);
        work_out(&truth, &records[i]);
        if (from)
            inline_paths_learn(&paths, &stack, from, &records[i], &step);
        i++;
    }
    cr_assert_leq(paths.memory, memory);
    inline_paths_release(&paths);
    cr_assert_eq(left, memory);
    call_stack_release(&stack);
    call_stack_release(&truth);
    free(records);
    return known;
}

Test(inline_paths, steps_are_what_the_call_stack_makes_of_them)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        size_t known = compare(seed, 20000, 5 + (uint32_t)seed * 3, (size_t)64 << 20);

        cr_assert_gt(known, 4000, "%zu of 20000 steps with seed %lu", known, seed);
    }
}

/* More different steps than there may be, and next to no memory: all is forgotten now and then. */
Test(inline_paths, what_does_not_fit_is_worked_out)
{
    compare(1, 400000, 1000000, (size_t)64 << 20);
    compare(2, 50000, 50, 50000);
    cr_assert_eq(compare(3, 5000, 50, 0), 0);
}
