/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Call-stack correction: small cases by hand, then random programs against the truth. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "collector/stream/call_stack.h"

#define NONE CALL_STACK_NO_CALLER
#define ENTRY 99 /* never returns */

static size_t call_with(struct call_stack *stack, struct call_evidence call)
{
    struct call_effect effect;

    cr_assert_eq(call_stack_call(stack, &call, NONE, &effect), 0);
    return effect.closed;
}

static bool is_assumed(struct call_stack *stack, struct call_evidence call)
{
    struct call_effect effect;

    cr_assert_eq(call_stack_call(stack, &call, ENTRY, &effect), 0);
    return effect.assumed;
}

static bool unprobed_assumed(struct call_stack *stack, uint64_t sp, uint32_t function, uint32_t caller)
{
    return is_assumed(stack, (struct call_evidence){
                                 .sp = sp, .function = function, .caller = caller, .return_unseen = true});
}

static bool probed_assumed(struct call_stack *stack, uint64_t sp, uint32_t function, uint32_t caller)
{
    return is_assumed(stack, (struct call_evidence){.sp = sp, .function = function, .caller = caller});
}

static size_t call(struct call_stack *stack, uint64_t sp, uint32_t function)
{
    return call_with(stack, (struct call_evidence){.sp = sp, .function = function, .caller = NONE});
}

Test(call_stack, nested_calls_and_returns)
{
    struct call_stack stack = {0};

    cr_assert_eq(call(&stack, 1000, 1), 0);
    cr_assert_eq(call(&stack, 900, 2), 0);
    cr_assert_eq(call_stack_return(&stack, 908, false), 1);
    cr_assert_eq(call(&stack, 900, 3), 0);
    cr_assert_eq(stack.depth, 2);
    cr_assert_eq(call_stack_return(&stack, 908, false), 1);
    cr_assert_eq(call_stack_return(&stack, 1008, false), 1);
    cr_assert_eq(call_stack_return(&stack, 1108, false), 0, "of a call that was not recorded");
    call_stack_release(&stack);
}

Test(call_stack, tail_call_takes_the_frame_over)
{
    struct call_stack stack = {0};

    call(&stack, 1000, 1);
    call(&stack, 900, 2);
    cr_assert_eq(call(&stack, 900, 3), 1);
    cr_assert_eq(stack.depth, 2);
    cr_assert_eq(stack.frames[1].function, 3);
    /* Both return probes fire, one after the other, with the same stack pointer. */
    cr_assert_eq(call_stack_return(&stack, 908, false), 1);
    cr_assert_eq(call_stack_return(&stack, 908, false), 0);
    call_stack_release(&stack);
}

Test(call_stack, an_exit_ends_its_own_call_only)
{
    struct call_stack stack = {0};

    cr_assert_eq(call(&stack, 1000, 1), 0);
    cr_assert_eq(call(&stack, 900, 2), 0);
    cr_assert_eq(call(&stack, 800, 3), 0);
    cr_assert_eq(call_stack_exit(&stack, 900, 3, false), 0, "of another function");
    cr_assert_eq(call_stack_exit(&stack, 950, 2, false), 0, "at another place");
    cr_assert_eq(call_stack_exit(&stack, 1100, 1, false), 0, "of a call that was not recorded");
    cr_assert_eq(call_stack_exit(&stack, 900, 2, true), 0, "on another stack");
    cr_assert_eq(stack.depth, 3);
    cr_assert_eq(call_stack_exit(&stack, 900, 2, false), 2, "with what it had called");
    cr_assert_eq(call(&stack, 900, 4), 0);
    cr_assert_eq(call(&stack, 900, 5), 1, "a tail call");
    cr_assert_eq(call_stack_exit(&stack, 900, 4, false), 0, "ended by the tail call");
    cr_assert_eq(call_stack_exit(&stack, 900, 5, false), 1);
    cr_assert_eq(call_stack_exit(&stack, 1000, 1, false), 1);
    cr_assert_eq(call_stack_exit(&stack, 1000, 1, false), 0);
    call_stack_release(&stack);
}

Test(call_stack, longjmp_leaves_frames_behind)
{
    struct call_stack stack = {0};

    call(&stack, 1000, 1);
    for (uint64_t sp = 900; sp > 500; sp -= 100)
        call(&stack, sp, 2);
    cr_assert_eq(call(&stack, 900, 3), 4);
    cr_assert_eq(stack.depth, 2);
    call_stack_release(&stack);
}

Test(call_stack, a_missed_return_shows_at_the_next_return)
{
    struct call_stack stack = {0};

    call(&stack, 1000, 1);
    call(&stack, 900, 2);
    call(&stack, 800, 3);
    cr_assert_eq(call_stack_return(&stack, 908, false), 2);
    call_stack_release(&stack);
}

Test(call_stack, the_caller_tells_what_the_stack_pointer_does_not)
{
    struct call_stack stack = {0};
    /* 1 calls 2, which returns unseen; 1 has pushed arguments since and calls 3 from deeper down. */
    call(&stack, 1000, 1);
    call(&stack, 900, 2);
    cr_assert_eq(call_with(&stack, (struct call_evidence){.sp = 880, .function = 3, .caller = 1}), 1);
    /* A caller that is not open says nothing. */
    cr_assert_eq(call_with(&stack, (struct call_evidence){.sp = 700, .function = 4, .caller = 77}), 0);
    call_stack_release(&stack);
}

Test(call_stack, where_the_callers_frame_begins_tells_it_too)
{
    struct call_stack stack = {0};
    /* Nobody sees the function that calls 2, which returns unseen, and then, with arguments pushed, 3. Its
     * frame begins at 960. */
    call(&stack, 1000, 1);
    call(&stack, 900, 2);
    cr_assert_eq(
        call_with(&stack,
                  (struct call_evidence){.sp = 880, .function = 3, .caller = NONE, .caller_depth = 72}),
        1);
    /* Another activation of it, called from inside 3, begins at 860: 3 is open still. */
    cr_assert_eq(
        call_with(&stack,
                  (struct call_evidence){.sp = 780, .function = 3, .caller = NONE, .caller_depth = 72}),
        0);
    cr_assert_eq(stack.depth, 3);
    call_stack_release(&stack);
}

Test(call_stack, an_overwritten_return_slot_gives_its_call_away)
{
    struct call_stack stack = {0};

    /* A library calls 2 back, 2 returns and leaves a call inside it open, the library calls 2 again from
     * deeper. */
    call(&stack, 1000, 1);
    call(&stack, 900, 2);
    call(&stack, 800, 3);
    cr_assert_eq(
        call_with(&stack, (struct call_evidence){.sp = 700, .function = 2, .caller = NONE, .gone = 900}), 2);
    cr_assert_eq(stack.depth, 2);
    call_stack_release(&stack);
}

Test(call_stack, signal_stack_above_and_below_the_ordinary_one)
{
    const uint64_t places[] = {5000, 50};

    for (size_t i = 0; i < 2; i++) {
        struct call_stack stack = {0};
        struct call_evidence handler = {
            .sp = places[i], .on_signal_stack = true, .function = 7, .caller = NONE};

        call(&stack, 1000, 1);
        call(&stack, 900, 2);
        cr_assert_eq(call_with(&stack, handler), 0);
        handler.sp -= 10;
        cr_assert_eq(call_with(&stack, handler), 0);
        cr_assert_eq(stack.depth, 4);
        cr_assert_eq(call_stack_return(&stack, places[i] - 2, true), 1);
        /* The handler leaves by siglongjmp: the next thing happens on the ordinary stack. */
        cr_assert_eq(call(&stack, 800, 3), 1);
        cr_assert_eq(stack.depth, 3);
        call_stack_release(&stack);
    }
}

Test(call_stack, calls_without_a_return_probe_leave_doubt)
{
    struct call_stack stack = {0};

    call_with(&stack,
              (struct call_evidence){.sp = 1000, .function = 0, .caller = NONE, .return_unseen = true});
    call(&stack, 900, 1);
    cr_assert_not(call_stack_is_uncertain(&stack, 0), "the entry point never returns");
    call_with(&stack,
              (struct call_evidence){.sp = 800, .function = 2, .caller = NONE, .return_unseen = true});
    cr_assert(call_stack_is_uncertain(&stack, 0));
    call_stack_return(&stack, 908, false);
    cr_assert_not(call_stack_is_uncertain(&stack, 0));
    for (uint64_t i = 0; i < 64; i++)
        call(&stack, 800 - i, 1);
    cr_assert_not(call_stack_is_uncertain(&stack, 0));
    call(&stack, 700, 1);
    cr_assert(call_stack_is_uncertain(&stack, 0), "the kernel nests 64 return probes");
    call_stack_release(&stack);
}

Test(call_stack, a_call_on_another_stack_is_only_assumed_to_be_where_pointers_put_it)
{
    struct call_stack stack = {0};
    const uint64_t own = 0x7ffd00000000, low = 0x10000000, middle = 0x550000000000;

    cr_assert_not(probed_assumed(&stack, own, ENTRY, NONE));
    cr_assert_not(probed_assumed(&stack, own - 100, 1, ENTRY));
    cr_assert(probed_assumed(&stack, low, 1, 1));
    cr_assert_not(probed_assumed(&stack, low - 100, 2, 1), "on the same stack again");
    cr_assert(probed_assumed(&stack, middle, 1, 1), "those on the low one count as returned");
    cr_assert_not(probed_assumed(&stack, middle - 100, 2, 1));
    cr_assert(probed_assumed(&stack, low - 100, 2, 1), "back on the low one");
    call_stack_release(&stack);
}

Test(call_stack, frames_of_a_deep_stack_are_no_other_stack)
{
    struct call_stack stack = {0};

    cr_assert_not(probed_assumed(&stack, CALL_STACK_MOST + 1000, 1, NONE));
    cr_assert_not(probed_assumed(&stack, 1000, 2, 1));
    call_stack_release(&stack);
}

Test(call_stack, a_call_is_assumed_to_be_inside_one_that_may_have_returned)
{
    struct call_stack stack = {0};

    cr_assert_not(unprobed_assumed(&stack, 900, ENTRY, NONE), "inside nothing");
    cr_assert_not(unprobed_assumed(&stack, 800, 1, NONE), "ENTRY never returns");
    cr_assert_not(unprobed_assumed(&stack, 700, 2, 1), "1 has called it");
    cr_assert(unprobed_assumed(&stack, 600, 3, NONE), "called back");
    cr_assert_not(probed_assumed(&stack, 500, 4, 3), "3 has called it");
    cr_assert_not(unprobed_assumed(&stack, 400, 5, NONE), "4 has a probe");
    cr_assert(unprobed_assumed(&stack, 300, 6, 77), "its caller is not open");
    cr_assert(is_assumed(&stack, (struct call_evidence){.sp = 5000,
                                                        .on_signal_stack = true,
                                                        .function = 7,
                                                        .caller = NONE,
                                                        .return_unseen = true}),
              "a signal in 6, or not");
    cr_assert_not(is_assumed(&stack, (struct call_evidence){.sp = 4900,
                                                            .on_signal_stack = true,
                                                            .function = 8,
                                                            .caller = 7,
                                                            .return_unseen = true}),
                  "7 has called it");
    /* 1 calls again: all that it had called is closed, and what is left is its caller. */
    cr_assert_not(unprobed_assumed(&stack, 250, 9, 1), "1 has called it");
    cr_assert_eq(stack.depth, 3);
    call_stack_release(&stack);
}

Test(call_stack, what_is_told_of_a_call_decides_about_the_one_that_is_left)
{
    struct call_stack stack = {0};

    probed_assumed(&stack, 900, 1, NONE);
    unprobed_assumed(&stack, 800, 2, 1);
    cr_assert_not(unprobed_assumed(&stack, 800, 3, NONE), "2's frame is gone");
    cr_assert_not(
        is_assumed(&stack,
                   (struct call_evidence){
                       .sp = 700, .function = 4, .caller = NONE, .return_unseen = true, .gone = 800}),
        "3's slot tells it");
    cr_assert(unprobed_assumed(&stack, 650, 5, NONE), "4 may be gone");
    call_stack_release(&stack);
}

Test(call_stack, too_deep_for_return_probes)
{
    struct call_stack stack = {0};

    for (uint64_t i = 0; i < 65; i++)
        cr_assert_not(probed_assumed(&stack, 9000 - i, 1, NONE), "%d", (int)i);
    cr_assert(probed_assumed(&stack, 8000, 1, NONE), "the 65th has no probe");
    cr_assert_not(probed_assumed(&stack, 7000, 2, 1), "1 has called it");
    call_stack_return(&stack, 9000 - 60, false);
    cr_assert_not(probed_assumed(&stack, 8000, 1, NONE));
    call_stack_release(&stack);
}

Test(call_stack, calls_from_before_a_new_program)
{
    struct call_stack stack = {0};

    call(&stack, 1000, 1);
    call_stack_replace(&stack, ENTRY);
    cr_assert_eq(stack.depth, 0);
    cr_assert_not(call_stack_is_uncertain(&stack, ENTRY));
    cr_assert_not(unprobed_assumed(&stack, 2000, 2, NONE), "inside 1");
    call(&stack, 1900, 3);
    call_stack_replace(&stack, ENTRY);
    cr_assert(call_stack_is_uncertain(&stack, ENTRY), "2 may have returned");
    cr_assert_not(unprobed_assumed(&stack, 2000, ENTRY, NONE), "inside 3");
    call_stack_return(&stack, 3000, false);
    cr_assert_eq(stack.depth, 0);
    unprobed_assumed(&stack, 2000, 4, NONE);
    call_stack_replace(&stack, ENTRY);
    cr_assert(unprobed_assumed(&stack, 2000, ENTRY, NONE), "inside 4, or not");
    cr_assert_not(unprobed_assumed(&stack, 1900, 5, NONE));
    call_stack_release(&stack);
}

/* A program in a test tube: it knows which calls are open; some of its returns are not told. What the stack
 * believes is open always contains the truth, and equals it wherever the rules can know. */
Test(call_stack, random_programs_with_missed_returns)
{
    for (unsigned seed = 1; seed <= 200; seed++) {
        struct call_stack stack = {0};
        uint64_t truth[64];
        uint32_t functions[64];
        size_t depth = 0, balance = 0;

        srand(seed);
        for (int step = 0; step < 2000; step++) {
            if (depth && (depth == 64 || rand() % 2)) {
                bool told = rand() % 10 != 0;

                depth--;
                if (told) {
                    balance -= call_stack_return(&stack, truth[depth] + 8, false);
                    cr_assert_eq(stack.depth, depth, "a return that was seen settles everything below");
                }
            } else {
                uint64_t top = depth ? truth[depth - 1] : 1000000;

                truth[depth] = top - 16;
                functions[depth] = (uint32_t)rand() % 5;
                balance += 1 - call(&stack, truth[depth], functions[depth]);
                depth++;
                /* All frames have the same size here, so that rule 1 sees every missed return. */
                cr_assert_eq(stack.depth, depth);
                for (size_t d = 0; d < depth; d++)
                    cr_assert_eq(stack.frames[d].function, functions[d]);
            }
            cr_assert_eq(balance, stack.depth);
        }
        call_stack_release(&stack);
    }
}

/* An open call of a program in a test tube. */
struct true_call {
    uint64_t sp, low; /* at its entry; as far down as its frame reaches by now */
    uint32_t function;
};

/* Tells the stack of a call, now and then with its caller. Returns whether it was put into the right one. */
static bool tell_call(struct call_stack *stack, const struct true_call *call, const struct true_call *caller,
                      bool *ret_assumed)
{
    const uint32_t parent = caller ? caller->function : NONE;

    *ret_assumed = is_assumed(stack, (struct call_evidence){.sp = call->sp,
                                                            .function = call->function,
                                                            .caller = rand() % 3 ? NONE : parent,
                                                            .return_unseen = call->function % 2});
    return (stack->depth > 1 ? stack->frames[stack->depth - 2].function : NONE) == parent;
}

/* Frames grow now, and half of the functions have no return probe. Where the stack is wrong it says so, and
 * it does not say so of calls inside one whose return it would have seen. */
Test(call_stack, wrong_nesting_is_never_certain)
{
    size_t wrong = 0, certain = 0;

    for (unsigned seed = 1; seed <= 200; seed++) {
        struct call_stack stack = {0};
        struct true_call calls[60];
        size_t depth = 0;

        srand(seed);
        for (uint32_t step = 0; step < 1000; step++) {
            struct true_call *caller = depth ? &calls[depth - 1] : NULL;
            bool assumed, right;

            if (depth == 60 || (depth && rand() % 2)) {
                if (caller->function % 2 == 0)
                    call_stack_return(&stack, caller->sp + 8, false);
                depth--;
                continue;
            }
            if (caller)
                caller->low -= (uint64_t)(rand() % 3) * 64;
            calls[depth].sp = calls[depth].low = (caller ? caller->low : 10000000) - 8;
            calls[depth].function = 100 + step; /* none is recursive */
            right = tell_call(&stack, &calls[depth], caller, &assumed);
            cr_assert(right || assumed, "seed %u, step %u", seed, step);
            cr_assert(!assumed || stack.frames[stack.depth - 2].return_unseen);
            wrong += !right;
            certain += !assumed;
            depth++;
        }
        call_stack_release(&stack);
    }
    cr_assert_gt(wrong, 100);
    cr_assert_gt(certain, 10000);
}
