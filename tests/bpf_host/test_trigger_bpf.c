/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Windows of a trigger, without a kernel. */
#include <criterion/criterion.h>
#include <stdint.h>

#include "bpf/wire.h"
#include "tests/bpf_host/kernel_side.h"

#define SP 0x7ffd12345678u
#define FLAGS (COOKIE_ENTRY_ONLY | COOKIE_CALLS_ONLY)
#define HOME 0x401000u

enum { TRIGGER = 3, OTHER = 4, DEEP = 5, TGID = 7 };

static void begin(void)
{
    kernel_reset();
    kernel_trace(TGID);
    kernel_set_trigger(UINT32_MAX);
    kernel_budget_slot(TRIGGER)->trigger = 1;
}

TestSuite(trigger_side, .init = begin);

/* A call whose slot on the stack holds `home`. */
static void call_from(uint32_t function, uint64_t sp, uint64_t home)
{
    kernel_set_stack_word(sp, home);
    kernel_call(TGID, TGID, sp, function | FLAGS);
}

static void call(uint32_t function, uint64_t sp)
{
    call_from(function, sp, HOME + function);
}

static const struct wire_call *last(void)
{
    cr_assert_gt(kernel_records(), 0);
    return kernel_record(kernel_records() - 1);
}

static void expect_call(uint32_t function)
{
    cr_assert_eq(last()->header.kind, WIRE_CALL);
    cr_assert_eq(last()->function, function);
}

static uint64_t outside(uint32_t function)
{
    return kernel_budget_slot(function)->outside;
}

/* The record before `behind` others at the end says that a window with that frame is over. */
static void expect_end(uint64_t sp, size_t behind)
{
    const struct wire_call *record = kernel_record(kernel_records() - 1 - behind);

    cr_assert_eq(record->header.kind, WIRE_RETURN);
    cr_assert_eq(((uint64_t)record->header.sp_high << 32 | record->sp_low), sp + 8);
    cr_assert_neq(record->header.ns, 0);
}

Test(trigger_side, calls_outside_are_counted_and_those_inside_recorded)
{
    call(OTHER, SP);
    call(DEEP, SP - 64);
    cr_assert_eq(kernel_records(), 0);
    cr_assert_eq(outside(OTHER), 1);
    cr_assert_eq(outside(DEEP), 1);
    call(TRIGGER, SP - 32);
    expect_call(TRIGGER);
    cr_assert_neq(last()->header.ns, 0);
    call(DEEP, SP - 96);
    expect_call(DEEP);
    call(OTHER, SP - 64);
    expect_call(OTHER);
    cr_assert_eq(kernel_records(), 3);
    cr_assert_eq(outside(OTHER), 1);
    cr_assert_eq(outside(TRIGGER), 0);
}

Test(trigger_side, a_window_ends_when_its_frame_is_left)
{
    call(TRIGGER, SP - 32);
    call(DEEP, SP - 96);
    call(OTHER, SP); /* out of a frame further out */
    cr_assert_eq(kernel_records(), 3);
    expect_end(SP - 32, 0);
    cr_assert_eq(outside(OTHER), 1);
    call(DEEP, SP - 96);
    cr_assert_eq(kernel_records(), 3, "it is said once");
    cr_assert_eq(outside(DEEP), 1);
}

Test(trigger_side, another_call_in_its_place_ends_it)
{
    call(TRIGGER, SP);
    call(OTHER, SP);
    expect_end(SP, 0);
    cr_assert_eq(outside(OTHER), 1);
}

/* Nobody saw the call in its place, but one inside it. */
Test(trigger_side, a_slot_that_holds_something_else_ends_it)
{
    call(TRIGGER, SP);
    call(DEEP, SP - 64);
    expect_call(DEEP);
    kernel_set_stack_word(SP, HOME + 999);
    call(DEEP, SP - 64);
    expect_end(SP, 0);
    cr_assert_eq(outside(DEEP), 1);
}

Test(trigger_side, windows_follow_each_other)
{
    for (unsigned i = 0; i < 10; i++) {
        call(TRIGGER, SP);
        expect_call(TRIGGER);
        if (i)
            expect_end(SP, 1);
        call(DEEP, SP - 64);
    }
    cr_assert_eq(kernel_records(), 10 * 3 - 1);
    cr_assert_eq(outside(DEEP), 0);
}

Test(trigger_side, recursion_is_one_window)
{
    call(TRIGGER, SP);
    call(TRIGGER, SP - 64);
    call(TRIGGER, SP - 136);
    call(OTHER, SP - 64); /* the inner two have returned */
    expect_call(OTHER);
    cr_assert_eq(kernel_records(), 4);
    call(OTHER, SP);
    expect_end(SP, 0);
    cr_assert_eq(kernel_records(), 5);
}

/* Every other one; what is called again inside one that is left out is left out, too. */
Test(trigger_side, a_share_of_the_times)
{
    kernel_set_trigger(UINT32_MAX / 2);
    for (unsigned i = 0; i < 20; i++) {
        call(TRIGGER, SP);
        call(TRIGGER, SP - 64);
        call(OTHER, SP - 136);
    }
    cr_assert_eq(outside(TRIGGER), 20);
    cr_assert_eq(outside(OTHER), 10);
    cr_assert_eq(kernel_records(), 10 * 3 + 10, "ten windows of three calls, and ten ends");
}

Test(trigger_side, a_handler_is_inside_and_the_way_back_is_not_the_end)
{
    call(TRIGGER, SP);
    kernel_set_signal_stack(0x10000, 0x2000);
    call(OTHER, 0x11000);
    expect_call(OTHER);
    call(DEEP, SP - 64);
    expect_call(DEEP);
    cr_assert_eq(kernel_records(), 3);
}

Test(trigger_side, a_window_in_a_handler_ends_with_it)
{
    kernel_set_signal_stack(0x10000, 0x2000);
    call(TRIGGER, 0x11000);
    call(DEEP, 0x10f08);
    expect_call(DEEP);
    call(OTHER, SP);
    expect_end(0x11000, 0);
    cr_assert_eq(outside(OTHER), 1);
}

Test(trigger_side, a_coroutine_is_inside)
{
    call(TRIGGER, SP);
    call(OTHER, SP + (64ull << 20));
    expect_call(OTHER);
    call(OTHER, SP - (64ull << 20));
    expect_call(OTHER);
}

Test(trigger_side, a_probed_return_is_the_end)
{
    kernel_set_main_stack(SP + 4096);
    kernel_set_stack_word(SP, HOME);
    cr_assert_eq(kernel_call(TGID, TGID, SP, TRIGGER), 0, "its return is caught");
    kernel_set_stack_word(SP, 0x7fffffffe000); /* the kernel's trampoline */
    call(DEEP, SP - 64);
    expect_call(DEEP);
    kernel_return(TGID, TGID, SP + 8, TRIGGER);
    cr_assert_eq(last()->header.kind, WIRE_RETURN);
    call(OTHER, SP - 64);
    cr_assert_eq(kernel_records(), 3);
    cr_assert_eq(outside(OTHER), 1);
}

Test(trigger_side, an_instruction_that_returns_is_the_end)
{
    call(TRIGGER, SP);
    kernel_call(TGID, TGID, SP, TRIGGER | FLAGS | COOKIE_AT_RETURN);
    cr_assert_eq(kernel_records(), 2);
    cr_assert_eq(last()->header.kind, WIRE_RETURN);
    kernel_call(TGID, TGID, SP - 64, OTHER | FLAGS | COOKIE_AT_RETURN);
    cr_assert_eq(kernel_records(), 2, "returns outside are left out");
    cr_assert_eq(outside(OTHER), 0, "and are no calls");
}

Test(trigger_side, the_call_behind_an_entry_shares_its_fate)
{
    call(OTHER, SP);
    kernel_set_instruction(0x401000);
    kernel_call(TGID, TGID, SP, OTHER | FLAGS | COOKIE_NEXT_CALL);
    cr_assert_eq(outside(OTHER), 2);
    cr_assert_eq(outside(DEEP), 1);
    call(TRIGGER, SP);
    kernel_call(TGID, TGID, SP - 64, OTHER | FLAGS | COOKIE_NEXT_CALL);
    cr_assert_eq(kernel_records(), 3);
    expect_call(DEEP);
}

Test(trigger_side, threads_and_programs_that_end_take_their_windows_along)
{
    call(TRIGGER, SP);
    kernel_exec(TGID, TGID);
    call(OTHER, SP - 64);
    cr_assert_eq(outside(OTHER), 1);
    call(TRIGGER, SP);
    kernel_fork(TGID, TGID, TGID, 8);
    kernel_set_stack_word(SP, HOME);
    kernel_call(TGID, 8, SP, TRIGGER | FLAGS);
    kernel_exit(TGID, 8, 0, 0, 0);
    kernel_fork(TGID, TGID, TGID, 8);
    kernel_call(TGID, 8, SP - 64, OTHER | FLAGS);
    cr_assert_eq(outside(OTHER), 2);
}

/* A hit that two links have is one. */
Test(trigger_side, probes_that_change_links_open_one_window)
{
    struct budget_slot *slot = kernel_budget_slot(TRIGGER);

    kernel_set_budget(1000000000);
    kernel_set_relinking(1);
    slot->tag = 1;
    kernel_set_stack_word(SP, HOME);
    kernel_call(TGID, TGID, SP,
                TRIGGER | FLAGS | 2ull << COOKIE_TAG_SHIFT); /* the newer one, not yet its turn */
    kernel_call(TGID, TGID, SP, TRIGGER | FLAGS | 1ull << COOKIE_TAG_SHIFT);
    cr_assert_eq(kernel_records(), 1);
    slot->tag = 2;
    kernel_call(TGID, TGID, SP, TRIGGER | FLAGS | 2ull << COOKIE_TAG_SHIFT);
    kernel_call(TGID, TGID, SP, TRIGGER | FLAGS | 1ull << COOKIE_TAG_SHIFT);
    cr_assert_eq(kernel_records(), 3, "the end of the first, and the second");
}

Test(trigger_side, a_window_that_cannot_be_remembered_is_not_opened)
{
    kernel_set_map_room(0);
    call(TRIGGER, SP);
    call(OTHER, SP - 64);
    cr_assert_eq(kernel_records(), 0);
    cr_assert_eq(outside(TRIGGER), 1);
    cr_assert_eq(outside(OTHER), 1);
}
