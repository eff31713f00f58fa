/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel side's limits, and probes that change links, without a kernel. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "bpf/wire.h"
#include "tests/bpf_host/kernel_side.h"

#define SP 0x7ffd12345678u
#define FLAGS (COOKIE_ENTRY_ONLY | COOKIE_CALLS_ONLY)
#define COST 1000
#define TAGGED(tag) (FLAGS | (uint64_t)(tag) << COOKIE_TAG_SHIFT)

/* A CPU may spend 2.5 calls a tick, and save up 20. */
static void begin(void)
{
    kernel_reset();
    kernel_set_budget(2500);
    kernel_trace(7);
    for (uint32_t i = 0; i < 64; i++)
        kernel_budget_slot(i)->cost_ns = COST;
    for (unsigned i = 0; i < 100; i++)
        kernel_tick();
}

TestSuite(budget_side, .init = begin);

static unsigned count_records(uint8_t kind, uint32_t function)
{
    unsigned count = 0;

    for (size_t i = 0; i < kernel_records(); i++) {
        const struct wire_call *record = kernel_record(i);

        if (record && record->header.kind == kind)
            count += kind == WIRE_OVER_BUDGET
                         ? ((const struct wire_over_budget *)kernel_record(i))->function == function
                         : record->function == function;
    }
    return count;
}

static void calls(uint32_t function, unsigned count)
{
    while (count--)
        kernel_call(7, 7, SP, function | FLAGS);
}

Test(budget_side, every_call_is_recorded_or_counted)
{
    const struct budget_slot *hot = kernel_budget_slot(3), *rare = kernel_budget_slot(4);

    for (unsigned tick = 0; tick < 50; tick++) {
        calls(3, 40);
        calls(4, 1);
        kernel_tick();
    }
    cr_assert_eq(hot->recorded + hot->missed, 50 * 40);
    cr_assert_eq(count_records(WIRE_CALL, 3), hot->recorded);
    cr_assert_gt(hot->missed, 50 * 30);
    cr_assert_eq(rare->recorded, 50, "a rare function is complete");
    cr_assert_eq(rare->missed, 0);
    cr_assert_eq(count_records(WIRE_CALL, 4), 50);
}

/* Of whatever process: 9 is not traced. */
Test(budget_side, before_the_recording_hits_are_counted_apart)
{
    const struct budget_slot *hot = kernel_budget_slot(3);

    kernel_enter(PHASE_ATTACHING);
    calls(3, 40);
    kernel_call(9, 9, SP, 3 | FLAGS);
    cr_assert_eq(hot->early, 41);
    cr_assert_eq(hot->recorded + hot->missed, 0);
    cr_assert_eq(kernel_records(), 0);
    kernel_enter(PHASE_RECORDING);
    calls(3, 1);
    kernel_call(9, 9, SP, 3 | FLAGS);
    cr_assert_eq(hot->early, 41);
    cr_assert_eq(hot->recorded, 1);
    kernel_enter(PHASE_CLOSED);
    calls(3, 1);
    cr_assert_eq(hot->early, 41);
}

Test(budget_side, without_a_budget_nothing_is_counted)
{
    kernel_set_budget(0);
    calls(3, 500);
    cr_assert_eq(count_records(WIRE_CALL, 3), 500);
    cr_assert_eq(kernel_budget_slot(3)->recorded, 0);
}

Test(budget_side, calls_may_be_counted_alone)
{
    const struct budget_slot *slot = kernel_budget_slot(3);

    kernel_set_counting(1);
    for (unsigned tick = 0; tick < 50; tick++) {
        calls(3, 40);
        kernel_tick();
    }
    kernel_set_counting(0);
    cr_assert_eq(slot->recorded + slot->missed, 50 * 40);
    cr_assert_gt(slot->missed, 0);
    cr_assert_eq(count_records(WIRE_CALL, 3), 0);
    calls(3, 1);
    cr_assert_eq(slot->recorded + slot->missed, 50 * 40 + 1);
}

Test(budget_side, what_was_saved_up_is_for_bursts_and_one_function_does_not_take_all_of_it)
{
    kernel_budget_slot(3)->limit = 10;
    calls(3, 100);
    cr_assert_eq(kernel_budget_slot(3)->recorded, 10);
    calls(4, 100);
    cr_assert_eq(kernel_budget_slot(4)->recorded, 10);
    kernel_tick();
    calls(5, 100);
    cr_assert_leq(kernel_budget_slot(5)->recorded, 4);
}

Test(budget_side, leaving_out_is_announced_once_before_the_calls_behind_it)
{
    calls(3, 100);
    calls(4, 1);
    cr_assert_eq(count_records(WIRE_OVER_BUDGET, 3), 1);
    cr_assert_eq(((const struct wire_header *)kernel_record(kernel_records() - 2))->kind, WIRE_OVER_BUDGET);
    kernel_budget_slot(3)->reported = 0;
    calls(3, 10);
    cr_assert_eq(count_records(WIRE_OVER_BUDGET, 3), 2);
}

Test(budget_side, what_cannot_be_announced_is_lost)
{
    const struct budget_slot *slot = kernel_budget_slot(3);

    kernel_set_room(20, 0);
    calls(3, 50);
    cr_assert_eq(slot->recorded, 20);
    cr_assert_eq(slot->missed, 0);
    cr_assert_eq(kernel_pending_calls(7), 30);
}

Test(budget_side, a_call_behind_an_entry_shares_its_fate)
{
    kernel_set_instruction(0x401000);
    for (unsigned i = 0; i < 50; i++)
        kernel_call(7, 7, SP, 8 | FLAGS | COOKIE_NEXT_CALL);
    cr_assert_eq(kernel_budget_slot(8)->recorded, kernel_budget_slot(9)->recorded);
    cr_assert_eq(kernel_budget_slot(8)->missed, kernel_budget_slot(9)->missed);
    cr_assert_gt(kernel_budget_slot(9)->missed, 0);
    cr_assert_eq(count_records(WIRE_CALL, 9), kernel_budget_slot(9)->recorded);
    cr_assert_eq(count_records(WIRE_OVER_BUDGET, 9), 1);
}

Test(budget_side, returns_are_never_left_out)
{
    for (unsigned i = 0; i < 50; i++)
        kernel_call(7, 7, SP, 3 | FLAGS | COOKIE_AT_RETURN);
    cr_assert_eq(count_records(WIRE_RETURN, 3), 50);
}

Test(budget_side, a_call_that_is_left_out_has_no_return_probe)
{
    unsigned declined = 0;

    for (unsigned i = 0; i < 50; i++)
        declined += (unsigned)kernel_call(7, 8, SP, 3);
    cr_assert_eq(declined, kernel_budget_slot(3)->missed);
    cr_assert_gt(declined, 0);
}

Test(budget_side, where_exceptions_may_pass_no_return_is_probed)
{
    kernel_trace_as(7, PROCESS_TRACED | PROCESS_CHECK_CALLERS);
    kernel_set_user_word(0x401234, 1); /* out of code that cannot throw */
    cr_assert_eq(kernel_call(7, 8, SP, 3), 1);
    kernel_set_budget(0);
    cr_assert_eq(kernel_call(7, 8, SP, 3), 0);
}

/* One hit with the newer link's program before the older one's, as the kernel runs them. `turn`: the moment
 * when the newer one's turn comes, 0: before, 1: between them, 2: after. */
static void hit(unsigned turn, unsigned older, unsigned newer)
{
    struct budget_slot *slot = kernel_budget_slot(3);

    if (turn == 0)
        slot->tag = (uint8_t)newer;
    kernel_call(7, 7, SP, 3 | TAGGED(newer));
    if (turn == 1)
        slot->tag = (uint8_t)newer;
    kernel_call(7, 7, SP, 3 | TAGGED(older));
    if (turn == 2)
        slot->tag = (uint8_t)newer;
}

Test(budget_side, a_probe_with_two_links_records_each_hit_once)
{
    kernel_set_budget(1000000);
    for (unsigned older = 0; older < 600; older++) { /* the tags come round */
        unsigned newer = (older + 1) & 0xff;

        kernel_budget_slot(3)->tag = (uint8_t)older;
        kernel_set_relinking(1);
        hit(9, older & 0xff, newer);
        hit(older % 3, older & 0xff, newer);
        hit(9, older & 0xff, newer);
        kernel_call(7, 7, SP, 3 | TAGGED(newer)); /* the older link is gone */
        kernel_set_relinking(0);
        kernel_call(7, 7, SP, 3 | TAGGED(newer));
        cr_assert_eq(kernel_budget_slot(3)->recorded, 5 * (older + 1), "tag %u", older);
        kernel_tick();
    }
}

Test(budget_side, a_hit_that_began_before_the_newer_link_is_the_older_ones)
{
    kernel_set_budget(1000000);
    kernel_set_relinking(1);
    kernel_budget_slot(3)->tag = 1;
    hit(9, 0, 1);
    kernel_call(7, 8, SP, 3 | TAGGED(0)); /* another thread, which only met the older one */
    cr_assert_eq(kernel_budget_slot(3)->recorded, 2);
}

Test(budget_side, three_links_record_each_hit_once)
{
    kernel_set_budget(1000000);
    kernel_set_relinking(1);
    for (unsigned turn = 0; turn < 3; turn++) {
        kernel_budget_slot(3)->tag = 1;
        for (unsigned tag = 2; tag + 1 > 0; tag--) {
            if (2 - tag == turn)
                kernel_budget_slot(3)->tag = 2;
            kernel_call(7, 7 + turn, SP, 3 | TAGGED(tag)); /* a thread that knows nothing yet */
        }
        cr_assert_eq(kernel_budget_slot(3)->recorded, turn + 1, "turn %u", turn);
    }
}
