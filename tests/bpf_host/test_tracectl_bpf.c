/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel side's logic, without a kernel and without privileges. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "bpf/wire.h"
#include "tests/bpf_host/kernel_side.h"

#define SP 0x7ffd12345678u

TestSuite(kernel_side, .init = kernel_reset);

static const struct wire_header *header_at(size_t index)
{
    const struct wire_header *header = kernel_record(index);

    cr_assert_not_null(header, "record %zu was not submitted", index);
    return header;
}

Test(kernel_side, untraced_process_leaves_nothing_and_gets_no_return_probe)
{
    cr_assert_eq(kernel_call(7, 7, SP, 3), 1);
    kernel_return(7, 7, SP, 3);
    kernel_exec(7, 7);
    kernel_exit(7, 7, 1, 0, 0);
    cr_assert_eq(kernel_records(), 0);
    cr_assert_eq(kernel_stops_sent(), 0);
}

Test(kernel_side, call_and_return_carry_thread_function_and_stack)
{
    const struct wire_call *call, *ret;

    kernel_trace(7);
    cr_assert_eq(kernel_call(7, 8, SP, 41), 0);
    kernel_tick();
    kernel_return(7, 8, SP + 8, 41);
    cr_assert_eq(kernel_records(), 2);
    call = kernel_record(0);
    ret = kernel_record(1);
    cr_assert_eq(call->header.kind, WIRE_CALL);
    cr_assert_eq(call->header.tid, 8);
    cr_assert_eq(call->header.flags, 0);
    cr_assert_eq(call->function, 41);
    cr_assert_eq(wire_sp(call), SP);
    cr_assert_eq(ret->header.kind, WIRE_RETURN);
    cr_assert_eq(wire_sp(ret), SP + 8);
    cr_assert_lt(call->header.ns, ret->header.ns);
    cr_assert_not(kernel_record_woke(0), "calls must not wake the collector");
}

Test(kernel_side, entry_only_probe_declines_the_return)
{
    kernel_trace(7);
    cr_assert_eq(kernel_call(7, 7, SP, 5 | COOKIE_ENTRY_ONLY), 1);
    cr_assert_eq(header_at(0)->kind, WIRE_CALL_FROM, "its return is inferred");
}

Test(kernel_side, return_address_is_sent_when_wanted_and_0_when_unreadable)
{
    const struct wire_call_from *record;

    kernel_trace(7);
    kernel_set_user_word(0x401234, 1);
    kernel_call(7, 7, SP, 5 | COOKIE_WANT_RETURN_ADDRESS | COOKIE_ENTRY_ONLY);
    kernel_set_user_word(0, 0);
    kernel_call(7, 7, SP, 5 | COOKIE_WANT_RETURN_ADDRESS | COOKIE_ENTRY_ONLY);
    record = kernel_record(0);
    cr_assert_eq(record->call.header.kind, WIRE_CALL_FROM);
    cr_assert_eq(record->call.function, 5);
    cr_assert_eq(record->return_address, 0x401234);
    record = kernel_record(1);
    cr_assert_eq(record->return_address, 0);
}

static uint64_t gone_at(size_t index)
{
    return ((const struct wire_call_from *)kernel_record(index))->gone;
}

Test(kernel_side, an_overwritten_return_slot_tells_that_its_call_is_gone)
{
    const uint64_t flags = COOKIE_ENTRY_ONLY | COOKIE_WANT_RETURN_ADDRESS;

    kernel_trace(7);
    kernel_set_stack_word(SP, 0x401000);
    kernel_set_stack_word(SP - 16, 0x402000);
    kernel_set_stack_word(SP - 32, 0x403000);
    kernel_call(7, 7, SP, 1 | flags);
    kernel_call(7, 7, SP - 16, 2 | flags);
    cr_assert_eq(gone_at(1), 0, "the slot of the first call is as it was");
    kernel_set_stack_word(SP - 16, 0xdead);
    kernel_call(7, 7, SP - 32, 3 | flags);
    cr_assert_eq(gone_at(2), SP - 16, "the second has returned, the first may be open");
    kernel_set_stack_word(SP, 0xdead);
    kernel_set_stack_word(SP - 48, 0x404000);
    kernel_call(7, 7, SP - 48, 4 | flags);
    cr_assert_eq(gone_at(3), 0, "the innermost slot says nothing, so nobody looks further out");
    kernel_set_stack_word(SP - 32, 0xdead);
    kernel_set_stack_word(SP - 48, 0xdead);
    kernel_set_stack_word(SP - 64, 0x405000);
    kernel_call(7, 7, SP - 64, 5 | flags);
    cr_assert_eq(gone_at(4), SP, "all of them");
}

Test(kernel_side, slots_of_another_stack_or_another_program_say_nothing)
{
    const uint64_t flags = COOKIE_ENTRY_ONLY | COOKIE_WANT_RETURN_ADDRESS;

    kernel_trace(7);
    kernel_set_stack_word(SP, 0x401000);
    kernel_call(7, 7, SP, 1 | flags);
    kernel_set_stack_word(SP, 0xdead);
    kernel_call(7, 7, SP - (64u << 20), 2 | flags);
    cr_assert_eq(gone_at(1), 0, "a coroutine's stack, far away");
    kernel_set_stack_word(SP, 0x401000);
    kernel_call(7, 8, SP, 1 | flags);
    kernel_exec(8, 8);
    kernel_call(7, 7, SP, 1 | flags);
    kernel_exec(7, 7);
    kernel_set_stack_word(SP, 0xdead);
    kernel_call(7, 7, SP - 16, 1 | flags);
    cr_assert_eq(gone_at(kernel_records() - 1), 0, "before exec it was another stack");
}

Test(kernel_side, slots_on_a_signal_stack_say_nothing_about_the_ordinary_one)
{
    const uint64_t flags = COOKIE_ENTRY_ONLY | COOKIE_WANT_RETURN_ADDRESS;

    kernel_trace(7);
    kernel_set_signal_stack(SP, 4096);
    kernel_set_stack_word(SP + 64, 0x401000);
    kernel_call(7, 7, SP + 64, 1 | flags);
    kernel_set_stack_word(SP + 64, 0xdead);
    kernel_call(7, 7, SP - 160, 2 | flags);
    cr_assert_eq(gone_at(1), 0);
}

Test(kernel_side, a_return_probe_overwrites_the_slot_itself)
{
    kernel_trace(7);
    kernel_set_main_stack(SP + 4096);
    kernel_set_stack_word(SP, 0x401000);
    kernel_set_stack_word(SP - 16, 0x402000);
    kernel_call(7, 7, SP, 1 | COOKIE_WANT_RETURN_ADDRESS);
    kernel_set_stack_word(SP, 0x7fffffffe000); /* the trampoline */
    kernel_call(7, 7, SP - 16, 2 | COOKIE_WANT_RETURN_ADDRESS);
    cr_assert_eq(gone_at(1), 0);
}

Test(kernel_side, deep_stacks_remember_the_innermost_slots)
{
    const uint64_t flags = COOKIE_ENTRY_ONLY | COOKIE_WANT_RETURN_ADDRESS;
    size_t last;

    kernel_trace(7);
    for (uint64_t i = 0; i < 100; i++) {
        kernel_set_stack_word(SP - 8 * i, 0x401000 + i);
        kernel_call(7, 7, SP - 8 * i, 1 | flags);
    }
    for (uint64_t i = 92; i < 100; i++)
        kernel_set_stack_word(SP - 8 * i, 0xdead);
    kernel_set_stack_word(SP - 8 * 100, 0x402000);
    kernel_call(7, 7, SP - 8 * 100, 1 | flags);
    last = kernel_records() - 1;
    cr_assert_eq(gone_at(last), SP - 8 * 92, "eight are known");
}

Test(kernel_side, signal_stack_is_flagged_at_its_edges)
{
    kernel_trace(7);
    kernel_set_signal_stack(0x1000, 0x100);
    kernel_call(7, 7, 0xfff, 1);
    kernel_call(7, 7, 0x1000, 1);
    kernel_call(7, 7, 0x10ff, 1);
    kernel_call(7, 7, 0x1100, 1);
    cr_assert_not(header_at(0)->flags & WIRE_ON_SIGNAL_STACK);
    cr_assert(header_at(1)->flags & WIRE_ON_SIGNAL_STACK);
    cr_assert(header_at(2)->flags & WIRE_ON_SIGNAL_STACK);
    cr_assert_not(header_at(3)->flags & WIRE_ON_SIGNAL_STACK);
}

Test(kernel_side, no_return_probe_on_a_signal_stack_even_if_it_lies_in_the_threads_own)
{
    kernel_trace(7);
    kernel_set_main_stack(SP + 4096);
    kernel_set_signal_stack(SP - 1000, 2000);
    cr_assert_eq(kernel_call(7, 7, SP, 1), 1);
    cr_assert(header_at(0)->flags & WIRE_RETURN_UNSEEN);
    cr_assert_eq(kernel_call(7, 7, SP - 1001, 1), 0);
    cr_assert_not(header_at(1)->flags & WIRE_RETURN_UNSEEN);
}

/* A return probe on a stack that the thread was not born with would kill it (see bpf/tracectl.bpf.c). */
Test(kernel_side, main_thread_gets_return_probes_on_its_own_stack_only)
{
    kernel_trace(7);
    kernel_set_main_stack(SP + 4096);
    cr_assert_eq(kernel_call(7, 7, SP, 1), 0);
    cr_assert_eq(header_at(0)->kind, WIRE_CALL);
    cr_assert_eq(kernel_call(7, 7, SP - (200u << 20), 1), 1, "a coroutine's stack in the heap");
    cr_assert_eq(header_at(1)->kind, WIRE_CALL_FROM, "its returns are inferred");
    cr_assert_eq(kernel_call(7, 7, SP + 8192, 1), 1, "above the stack's end");
}

/* A return probe is a system call: not where that would go to a handler (bit 5) or a tracer (2, 3). */
Test(kernel_side, threads_whose_system_calls_are_watched_get_no_return_probes)
{
    static const unsigned watched[] = {2, 3, 5};

    kernel_trace(7);
    kernel_set_main_stack(SP + 4096);
    for (size_t i = 0; i < sizeof(watched) / sizeof(*watched); i++) {
        kernel_set_syscall_work(1ul << watched[i]);
        cr_assert_eq(kernel_call(7, 7, SP, 1), 1, "bit %u", watched[i]);
        cr_assert(header_at(i)->flags & WIRE_RETURN_UNSEEN);
    }
    kernel_set_syscall_work(1ul << 0 | 1ul << 4); /* seccomp, audit */
    cr_assert_eq(kernel_call(7, 7, SP, 1), 0);
}

/* Threads of an area do not wait for the collector any more once a system call of one of them would go to a
 * filter (bit 0), a tracer or a handler. */
Test(kernel_side, threads_whose_system_calls_are_filtered_do_not_wait)
{
    static const unsigned filtered[] = {0, 2, 3, 5};

    for (uint32_t i = 0; i < sizeof(filtered) / sizeof(*filtered); i++) {
        uint32_t area = i + 1;

        kernel_give_area(7, area);
        kernel_set_syscall_work(1ul << 4); /* audit */
        kernel_ask(7, area);
        cr_assert(kernel_may_wait(area));
        kernel_set_syscall_work(1ul << filtered[i]);
        kernel_ask(7, area);
        cr_assert_not(kernel_may_wait(area), "bit %u", filtered[i]);
        kernel_set_syscall_work(0);
        kernel_ask(7, area);
        cr_assert_not(kernel_may_wait(area));
    }
}

#define FILTER (1ul << 0)

/* Where the filter allows to wait (futex, and restart_syscall for waits that are interrupted), they do. */
Test(kernel_side, threads_wait_under_a_filter_that_allows_it)
{
    static const unsigned both[] = {202, 219}, others[] = {201, 203, 218, 220};

    kernel_give_area(7, 1);
    kernel_set_syscall_work(FILTER);
    kernel_set_allowed_calls(both, 2);
    kernel_ask(7, 1);
    cr_assert(kernel_may_wait(1));
    kernel_set_allowed_calls(both, 1);
    kernel_ask(7, 1);
    cr_assert_not(kernel_may_wait(1), "one that is interrupted could not continue");
    kernel_give_area(8, 2);
    kernel_set_allowed_calls(others, 4);
    kernel_ask(8, 2);
    cr_assert_not(kernel_may_wait(2));
}

/* A process that could mark the area of others would make them lose calls. */
Test(kernel_side, a_process_marks_the_area_that_it_has_and_no_other)
{
    kernel_set_syscall_work(FILTER);
    kernel_give_area(7, 3);
    kernel_ask(7, 4);
    cr_assert(kernel_may_wait(4));
    cr_assert_not(kernel_may_wait(3));
    kernel_ask(8, 5);
    cr_assert(kernel_may_wait(5), "it has none");
}

/* All that have an area can ask for it: children that are not traced, and theirs; but no later program. */
Test(kernel_side, children_inherit_the_area_until_they_exec_or_end)
{
    kernel_give_area(7, 3);
    kernel_give_area(17, 4);
    kernel_give_area(27, 5);
    kernel_fork(7, 7, 8, 8);
    kernel_fork(8, 8, 9, 9);
    kernel_fork(17, 17, 18, 18);
    kernel_exec(18, 18);
    kernel_fork(27, 27, 28, 28);
    kernel_exit(28, 28, 1, 0, 0);
    kernel_set_syscall_work(FILTER);
    kernel_ask(18, 4);
    cr_assert(kernel_may_wait(4));
    kernel_ask(28, 5);
    cr_assert(kernel_may_wait(5));
    kernel_ask(9, 3);
    cr_assert_not(kernel_may_wait(3));
}

enum { SETGID = 6, SETUID = 7, SETPCAP = 8, NET_ADMIN = 12, SYS_ADMIN = 21 };

static void expect_rights(size_t index, uint32_t pid, bool held)
{
    const struct wire_rights *rights = kernel_record(index);

    cr_assert_eq(header_at(index)->kind, WIRE_RIGHTS);
    cr_assert_eq(rights->tgid, pid);
    cr_assert_eq(rights->header.flags, held ? WIRE_HELD : 0);
}

Test(kernel_side, a_process_that_may_change_its_rights_is_held_before_it_does_once)
{
    static const int capabilities[] = {SETUID, SETGID, SETPCAP};

    for (uint32_t i = 0; i < 3; i++) {
        uint32_t parent = 10 + 2 * i, child = parent + 1;

        kernel_trace_as(parent, PROCESS_TRACED | PROCESS_INLINE);
        kernel_fork_process(parent, child, 0);
        kernel_capability(child, NET_ADMIN, 0);
        kernel_capability(child, SYS_ADMIN, 0);
        cr_assert_eq(kernel_records(), 2 * i + 1, "what it asks for is not more rights");
        kernel_capability(child, capabilities[i], 0);
        kernel_capability(child, capabilities[i], 0);
        cr_assert_eq(kernel_records(), 2 * i + 2);
        expect_rights(2 * i + 1, child, true);
    }
}

Test(kernel_side, a_process_that_enters_a_user_namespace_or_is_born_in_one_is_reported)
{
    kernel_trace_as(7, PROCESS_TRACED | PROCESS_INLINE);
    kernel_capability(7, SYS_ADMIN, 1);
    cr_assert_eq(kernel_records(), 0, "it shares nothing");
    kernel_fork_process(7, 8, 1);
    cr_assert_eq(kernel_records(), 2);
    expect_rights(1, 8, true);
    kernel_capability(7, SYS_ADMIN, 1);
    cr_assert_eq(kernel_records(), 3);
    expect_rights(2, 7, true);
}

/* It is not known here whether it has been parted. */
Test(kernel_side, a_process_that_is_not_traced_and_has_an_area_is_reported_each_time)
{
    kernel_give_area(7, 3);
    kernel_capability(8, SETUID, 0);
    cr_assert_eq(kernel_records(), 0);
    kernel_capability(7, SETUID, 0);
    kernel_capability(7, SETUID, 0);
    cr_assert_eq(kernel_records(), 2);
    expect_rights(1, 7, true);
}

Test(kernel_side, nobody_waits_where_a_child_has_no_place_in_the_table_of_areas)
{
    kernel_give_area(7, 3);
    kernel_set_map_room(1);
    kernel_fork(7, 7, 8, 8);
    cr_assert_not(kernel_may_wait(3));
}

Test(kernel_side, processes_that_look_at_return_addresses_get_no_return_probes)
{
    kernel_trace_as(7, PROCESS_TRACED | PROCESS_NO_RETURNS);
    kernel_set_main_stack(SP + 4096);
    cr_assert_eq(kernel_call(7, 7, SP, 1), 1);
    cr_assert(header_at(0)->flags & WIRE_RETURN_UNSEEN);
}

#define PROBE_PAGE_AT 0x7fffffffe000u

/* Another recorder's return probes: what they have replaced is the return address, and a slot that holds the
 * kernel's page by now says nothing about its call. */
Test(kernel_side, return_addresses_that_others_have_replaced_are_the_true_ones)
{
    const struct wire_call_from *call;
    size_t count = 0;

    kernel_trace(7);
    kernel_set_probe_page(PROBE_PAGE_AT);
    kernel_set_stack_word(SP, 0x401000);
    kernel_call(7, 7, SP, 1 | COOKIE_ENTRY_ONLY); /* before the other one's probe has its turn */
    kernel_set_stack_word(SP, PROBE_PAGE_AT);
    kernel_add_return_probe(SP, 0x401000);
    kernel_set_stack_word(SP - 40, PROBE_PAGE_AT);
    kernel_add_return_probe(SP - 40, 0x401234);
    kernel_call(7, 7, SP - 40, 2 | COOKIE_ENTRY_ONLY); /* behind it */
    kernel_set_stack_word(SP - 80, PROBE_PAGE_AT);
    kernel_call(7, 7, SP - 80, 3 | COOKIE_ENTRY_ONLY); /* not in the list */
    kernel_set_stack_word(SP - 120, 0x402000);
    kernel_call(7, 7, SP - 120, 4 | COOKIE_ENTRY_ONLY);
    for (size_t i = 0; i < kernel_records(); i++) {
        static const uint64_t expected[] = {0x401000, 0x401234, 0, 0x402000};

        cr_assert_eq(header_at(i)->kind, WIRE_CALL_FROM);
        call = kernel_record(i);
        cr_expect_eq(call->return_address, expected[count], "call %zu", count);
        cr_expect_eq(call->gone, 0, "call %zu", count);
        count++;
    }
    cr_assert_eq(count, 4);
}

/* The slot is another call's by now, and that call's return is probed by somebody else. */
Test(kernel_side, a_replaced_slot_of_another_call_gives_the_old_one_away)
{
    const struct wire_call_from *call;

    kernel_trace(7);
    kernel_set_probe_page(PROBE_PAGE_AT);
    kernel_set_stack_word(SP, 0x401000);
    kernel_call(7, 7, SP, 1 | COOKIE_ENTRY_ONLY);
    kernel_set_stack_word(SP, PROBE_PAGE_AT);
    kernel_add_return_probe(SP, 0x405000);
    kernel_set_stack_word(SP - 64, 0x401234);
    kernel_call(7, 7, SP - 64, 2 | COOKIE_ENTRY_ONLY);
    call = kernel_record(1);
    cr_assert_eq(call->gone, SP);
}

Test(kernel_side, other_threads_get_return_probes_on_the_stack_that_holds_their_block)
{
    kernel_trace(7);
    kernel_set_mapping(SP - 400000, SP + 4096, SP + 2048);
    cr_assert_eq(kernel_call(7, 8, SP, 1), 0);
    cr_assert_eq(kernel_mapping_lookups(), 0, "closely below the thread's block");
    cr_assert_eq(kernel_call(7, 8, SP - 200000, 1), 0);
    cr_assert_eq(kernel_call(7, 8, SP - 200064, 1), 0);
    cr_assert_eq(kernel_mapping_lookups(), 1, "the stack is remembered");
    cr_assert_eq(kernel_call(7, 8, SP + 3000, 1), 1, "behind the thread's block");
    cr_assert_eq(kernel_call(7, 8, SP - 500000, 1), 1);
    kernel_exit(7, 8, 0, 0, 0);
    kernel_set_mapping(SP + 1000000, SP + 2000000, SP + 1900000);
    cr_assert_eq(kernel_call(7, 8, SP + 1500000, 1), 0, "a new thread with an old number");
    cr_assert_eq(kernel_call(7, 9, SP, 1), 1, "a stack in no mapping");
}

Test(kernel_side, a_mapping_without_the_threads_block_is_not_its_stack)
{
    kernel_trace(7);
    kernel_set_mapping(SP - 4096, SP + 4096, SP + 900000);
    cr_assert_eq(kernel_call(7, 8, SP, 1), 1);
}

Test(kernel_side, loss_is_reported_before_the_next_record_of_its_thread)
{
    const struct wire_lost *lost;

    kernel_trace(7);
    kernel_set_room(0, 0);
    kernel_call(7, 8, SP, 1);
    kernel_call(7, 8, SP - 16, 1);
    kernel_return(7, 8, SP - 8, 1);
    kernel_call(7, 9, SP, 1);
    cr_assert_eq(kernel_losing_threads(), 2);
    kernel_set_room(10, 10);
    kernel_call(7, 10, SP, 2); /* a thread without losses reports none */
    kernel_call(7, 8, SP, 3);
    cr_assert_eq(kernel_records(), 3);
    cr_assert_eq(header_at(0)->kind, WIRE_CALL);
    lost = kernel_record(1);
    cr_assert_eq(lost->header.kind, WIRE_LOST);
    cr_assert_eq(lost->header.tid, 8);
    cr_assert_eq(lost->calls, 2);
    cr_assert_eq(lost->returns, 1);
    cr_assert_eq(header_at(2)->tid, 8);
    cr_assert_eq(kernel_pending_calls(8), 0);
    cr_assert_eq(kernel_pending_calls(9), 1);
    cr_assert_eq(kernel_losing_threads(), 1);
}

Test(kernel_side, a_record_never_overtakes_the_loss_before_it)
{
    const struct wire_lost *lost;

    kernel_trace(7);
    kernel_set_room(0, 0);
    kernel_call(7, 8, SP, 1);
    kernel_set_room(1, 0); /* room for the report, not for the call that follows it */
    kernel_call(7, 8, SP, 2);
    cr_assert_eq(kernel_records(), 1);
    lost = kernel_record(0);
    cr_assert_eq(lost->calls, 1);
    cr_assert_eq(kernel_pending_calls(8), 1, "the second call is the next loss");
}

Test(kernel_side, losses_without_a_place_are_still_counted)
{
    kernel_trace(7);
    kernel_set_room(0, 0);
    kernel_set_map_room(1);
    kernel_call(7, 8, SP, 1);
    kernel_call(7, 9, SP, 1);
    kernel_call(7, 9, SP, 1);
    cr_assert_eq(kernel_pending_calls(8), 1);
    cr_assert_eq(kernel_unplaced(), 2);
}

/* Whatever the ring's room does, sent + reported + pending + unplaced is what happened, for each thread. */
Test(kernel_side, no_loss_is_silent_under_random_room)
{
    enum { THREADS = 5, STEPS = 1500 };
    uint64_t made[THREADS] = {0}, seen[THREADS] = {0};

    srand(4711);
    kernel_trace(7);
    for (int step = 0; step < STEPS; step++) {
        unsigned thread = (unsigned)rand() % THREADS;

        if (step % 7 == 0)
            kernel_set_room((size_t)rand() % 6, 0);
        if (rand() % 2)
            kernel_call(7, 100 + thread, SP, 1);
        else
            kernel_return(7, 100 + thread, SP, 1);
        made[thread]++;
    }
    for (size_t i = 0; i < kernel_records(); i++) {
        const struct wire_header *header = header_at(i);

        if (header->kind == WIRE_LOST) {
            const struct wire_lost *lost = kernel_record(i);

            seen[header->tid - 100] += lost->calls + lost->returns;
        } else {
            seen[header->tid - 100]++;
        }
    }
    for (unsigned thread = 0; thread < THREADS; thread++)
        cr_assert_eq(made[thread], seen[thread] + kernel_pending_calls(100 + thread) +
                                       kernel_pending_returns(100 + thread));
}

Test(kernel_side, fork_of_a_process_enters_the_map_before_it_runs)
{
    const struct wire_fork *record;

    kernel_trace(7);
    kernel_fork(7, 8, 20, 20);
    cr_assert(kernel_is_traced(20));
    record = kernel_record(0);
    cr_assert_eq(record->header.kind, WIRE_FORK);
    cr_assert_eq(record->header.tid, 20);
    cr_assert_eq(record->tgid, 20);
    cr_assert_eq(record->parent_tid, 8);
    cr_assert_eq(record->parent_tgid, 7);
}

/* A thread control block whose slots have been at work up to `cursor`. */
static uint8_t *thread_block(uint64_t cursor, uint32_t tid)
{
    static uint8_t block[1024];

    memcpy(block + 0x80, &cursor, sizeof(cursor));
    memcpy(block + 0x88, &tid, sizeof(tid));
    memcpy(block + 0x2d0, &tid, sizeof(tid));
    return block;
}

Test(kernel_side, a_child_that_shares_slots_says_where_its_calls_begin_and_end)
{
    const struct wire_slots *lent;
    const struct wire_inline *back;

    kernel_trace_as(7, PROCESS_TRACED | PROCESS_INLINE);
    kernel_fork(7, 8, 20, 20);
    lent = kernel_record(0);
    cr_assert_eq(lent->header.kind, WIRE_SLOTS_SHARED);
    cr_assert_eq(lent->header.tid, 20);
    cr_assert_eq(lent->parent_tid, 8);
    cr_assert(lent->followed);
    cr_assert_eq(((const struct wire_header *)kernel_record(1))->kind, WIRE_FORK);
    kernel_exit(20, 20, 1, 0, 0);
    back = kernel_record(2);
    cr_assert_eq(back->header.kind, WIRE_SLOTS_BACK);
    cr_assert_eq(back->header.tid, 20);
    cr_assert_eq(((const struct wire_header *)kernel_record(3))->kind, WIRE_EXIT);
    kernel_exit(7, 8, 0, 0, 0);
    cr_assert_eq(kernel_records(), 5, "the parent had nothing to give back");
}

#define CLONE_VM_ 0x100 /* of linux/sched.h */
#define CLONE_VFORK_ 0x4000

Test(kernel_side, a_thread_on_its_makers_block_stands_still)
{
    const struct wire_fork *record;

    kernel_trace_as(7, PROCESS_TRACED | PROCESS_INLINE);
    kernel_clone(7, 8, 7, 21, CLONE_VM_);
    record = kernel_record(0);
    cr_assert_eq(record->header.kind, WIRE_FORK);
    cr_assert_eq(record->shares, FORK_SHARES_MEMORY | FORK_SHARES_BLOCK);
    cr_assert(record->header.flags & WIRE_HELD);
    cr_assert_eq(kernel_records(), 1);
}

Test(kernel_side, a_process_on_its_makers_block_borrows_it_only_while_that_stands_still)
{
    const struct wire_fork *record;

    kernel_trace_as(7, PROCESS_TRACED | PROCESS_INLINE);
    kernel_clone(7, 8, 20, 20, CLONE_VM_ | CLONE_VFORK_);
    cr_assert_eq(((const struct wire_header *)kernel_record(0))->kind, WIRE_SLOTS_SHARED);
    record = kernel_record(1);
    cr_assert_eq(record->shares, FORK_SHARES_MEMORY);
    kernel_clone(7, 8, 21, 21, CLONE_VM_);
    record = kernel_record(2);
    cr_assert_eq(record->header.kind, WIRE_FORK);
    cr_assert_eq(record->shares, FORK_SHARES_MEMORY | FORK_SHARES_BLOCK);
}

Test(kernel_side, who_shares_a_block_does_not_matter_without_inline_probes)
{
    const struct wire_fork *record;

    kernel_trace(7);
    kernel_clone(7, 8, 7, 21, CLONE_VM_);
    record = kernel_record(0);
    cr_assert_eq(record->shares, FORK_SHARES_MEMORY);
    cr_assert_not(record->header.flags & WIRE_HELD);
}

Test(kernel_side, who_takes_slots_is_told_whether_it_is_traced_or_not)
{
    const struct wire_claim *claim;

    kernel_trace_as(7, PROCESS_TRACED | PROCESS_INLINE);
    kernel_claim(7, 8, 41, 3);
    kernel_claim(900, 901, 42, 3);
    claim = kernel_record(0);
    cr_assert_eq(claim->header.kind, WIRE_CLAIM);
    cr_assert_eq(claim->header.tid, 8);
    cr_assert_eq(claim->ticket, 41);
    cr_assert_eq(claim->area, 3);
    claim = kernel_record(1);
    cr_assert_eq(claim->header.tid, 901);
}

Test(kernel_side, a_new_thread_shares_no_slots)
{
    kernel_trace_as(7, PROCESS_TRACED | PROCESS_INLINE);
    kernel_fork(7, 7, 7, 21);
    cr_assert_eq(((const struct wire_header *)kernel_record(0))->kind, WIRE_FORK);
    cr_assert_eq(kernel_records(), 1);
}

Test(kernel_side, a_place_among_inline_calls_is_that_of_the_thread_block)
{
    uint8_t *block = thread_block(0x1234, 55);
    const struct wire_inline *place;

    kernel_trace_as(7, PROCESS_TRACED | PROCESS_INLINE);
    kernel_set_memory(0x9000, block, 1024);
    kernel_set_mapping(0x1000, 0x2000, 0x9000);
    kernel_call(7, 56, 0x5000, 3); /* a child of thread 55 that shares its slots */
    place = kernel_record(0);
    cr_assert_eq(place->header.kind, WIRE_INLINE);
    cr_assert_eq(place->header.tid, 56);
    cr_assert_eq(place->cursor, 0x1234);
    memset(block + 0x88, 0, sizeof(uint32_t));
    memcpy(block + 0x8c, block + 0x2d0, sizeof(uint32_t)); /* it is losing calls */
    kernel_call(7, 57, 0x5000, 3);
    place = kernel_record(2);
    cr_assert_eq(place->cursor, 0x1234);
    memset(block + 0x8c, 0, sizeof(uint32_t)); /* an earlier thread's */
    kernel_call(7, 58, 0x5000, 3);
    place = kernel_record(4);
    cr_assert_eq(place->cursor, 0);
}

Test(kernel_side, children_of_others_are_not_followed)
{
    kernel_trace(7);
    kernel_fork(6, 6, 20, 20);
    cr_assert_not(kernel_is_traced(20));
    cr_assert_eq(kernel_records(), 0);
}

Test(kernel_side, a_child_that_finds_no_room_in_the_map_is_counted)
{
    kernel_trace(7);
    kernel_set_map_room(1);
    kernel_fork(7, 7, 20, 20);
    cr_assert_eq(kernel_processes_lost(), 1);
    cr_assert_eq(kernel_records(), 0);
}

Test(kernel_side, exec_holds_the_process_and_wakes_the_collector)
{
    kernel_trace(7);
    kernel_exec(7, 9);
    cr_assert(kernel_is_held(7));
    cr_assert_eq(kernel_stops_sent(), 1);
    cr_assert_eq(header_at(0)->kind, WIRE_EXEC);
    cr_assert_eq(((const struct wire_exec *)kernel_record(0))->old_tid, 9);
    cr_assert(kernel_record_woke(0));
}

Test(kernel_side, nobody_is_stopped_whose_parent_would_take_it_for_something_else)
{
    kernel_trace(7);
    kernel_exec_as(7, 7, PARENT_SHELL);
    kernel_exec_as(7, 7, PARENT_DEBUGGER);
    cr_assert_eq(kernel_stops_sent(), 0);
    cr_assert_not(kernel_is_held(7));
    cr_assert_eq(header_at(0)->kind, WIRE_EXEC);
    cr_assert_not(header_at(0)->flags & WIRE_HELD);
    cr_assert_not(header_at(1)->flags & WIRE_HELD);
    cr_assert(kernel_process_flags(7) & PROCESS_CHECK_CALLERS, "its libraries are not known");
    kernel_exec_as(7, 7, PARENT_ORDINARY);
    cr_assert_not(kernel_process_flags(7) & PROCESS_CHECK_CALLERS);
    kernel_exec_as(7, 7, PARENT_DAEMON);
    kernel_exec_as(7, 7, PARENT_THREAD_HOLDER);
    cr_assert_eq(kernel_stops_sent(), 3);
    for (size_t i = 2; i < 5; i++)
        cr_assert(header_at(i)->flags & WIRE_HELD);
}

Test(kernel_side, nobody_is_stopped_who_could_not_be_found_again)
{
    kernel_trace(7);
    kernel_set_map_room(0);
    kernel_exec(7, 7);
    cr_assert_eq(kernel_stops_sent(), 0);
}

Test(kernel_side, life_cycle_records_overflow_and_then_are_counted)
{
    kernel_trace(7);
    kernel_set_room(0, 1);
    kernel_exec(7, 7);
    cr_assert_eq(kernel_records(), 1);
    kernel_fork(7, 7, 7, 30);
    cr_assert_eq(kernel_life_cycle_lost(), 1);
}

Test(kernel_side, exit_reports_losses_first_and_the_last_thread_ends_the_process)
{
    const struct wire_exit *record;

    kernel_trace(7);
    kernel_set_room(0, 0);
    kernel_call(7, 8, SP, 1);
    kernel_set_room(10, 10);
    kernel_exit(7, 8, 0, 0, 0);
    cr_assert_eq(header_at(0)->kind, WIRE_LOST);
    record = kernel_record(1);
    cr_assert_eq(record->header.kind, WIRE_EXIT);
    cr_assert_eq(record->header.flags, 0);
    cr_assert_str_eq(record->comm, "worker");
    cr_assert(kernel_is_traced(7));
    kernel_exit(7, 7, 1, 9, 1);
    record = kernel_record(2);
    cr_assert_eq(record->header.flags, WIRE_LAST_THREAD);
    cr_assert_eq(record->exit_code, 9, "the group's exit code");
    cr_assert_not(kernel_is_traced(7));
}

Test(kernel_side, exit_code_of_a_process_whose_threads_ended_one_by_one_is_its_leaders)
{
    kernel_trace(7);
    kernel_exit(7, 7, 1, 0x300, 0);
    cr_assert_eq(((const struct wire_exit *)kernel_record(0))->exit_code, 0x300);
}

/* ------------------------------------------------------------------------------------ where probes stand */

Test(kernel_side, a_probe_behind_pushes_gives_the_entrys_stack_pointer_and_return_address)
{
    const uint64_t flags = COOKIE_ENTRY_ONLY | COOKIE_WANT_RETURN_ADDRESS;
    const struct wire_call_from *record;

    kernel_trace(7);
    kernel_set_stack_word(SP, 0x401234);
    cr_assert_eq(kernel_call(7, 7, SP - 40, 5 | flags | 5ull << COOKIE_SP_SHIFT), 1);
    record = kernel_record(0);
    cr_assert_eq(wire_sp(&record->call), SP);
    cr_assert_eq(record->return_address, 0x401234);
    cr_assert_eq(record->call.function, 5);
}

Test(kernel_side, a_probe_on_a_call_knows_the_callees_stack_pointer_and_return_address)
{
    const struct wire_call_from *record;

    kernel_trace(7);
    kernel_set_instruction(0x401000);
    kernel_set_user_word(0xdead, 1);
    cr_assert_eq(kernel_call(7, 7, SP, 5 | COOKIE_AT_CALL | COOKIE_ENTRY_ONLY | COOKIE_WANT_RETURN_ADDRESS),
                 1);
    record = kernel_record(0);
    cr_assert_eq(record->call.header.kind, WIRE_CALL_FROM);
    cr_assert_eq(wire_sp(&record->call), SP - 8);
    cr_assert_eq(record->return_address, 0x401005);
    cr_assert(record->call.header.flags & WIRE_RETURN_UNSEEN);
}

/* call *slot(%rip) has 6 bytes. */
Test(kernel_side, a_probe_on_a_longer_call_knows_where_it_returns_to)
{
    const uint64_t flags = COOKIE_AT_CALL | COOKIE_ENTRY_ONLY | COOKIE_WANT_RETURN_ADDRESS;
    const struct wire_call_from *record;

    kernel_trace(7);
    kernel_set_instruction(0x401000);
    cr_assert_eq(kernel_call(7, 7, SP, 5 | flags | 1ull << COOKIE_SP_SHIFT), 1);
    record = kernel_record(0);
    cr_assert_eq(wire_sp(&record->call), SP - 8);
    cr_assert_eq(record->return_address, 0x401006);
}

Test(kernel_side, a_probe_on_a_call_that_a_function_begins_with_tells_both)
{
    const uint64_t flags = COOKIE_ENTRY_ONLY | COOKIE_WANT_RETURN_ADDRESS;
    const struct wire_call_from *first, *second;

    kernel_trace(7);
    kernel_set_instruction(0x401000);
    kernel_set_stack_word(SP, 0x402222);
    kernel_call(7, 7, SP - 8, 5 | flags | COOKIE_NEXT_CALL | 1ull << COOKIE_SP_SHIFT);
    cr_assert_eq(kernel_records(), 2);
    first = kernel_record(0);
    second = kernel_record(1);
    cr_assert_eq(first->call.function, 5);
    cr_assert_eq(wire_sp(&first->call), SP);
    cr_assert_eq(first->return_address, 0x402222);
    cr_assert_eq(second->call.function, 6);
    cr_assert_eq(wire_sp(&second->call), SP - 16);
    cr_assert_eq(second->return_address, 0x401005);
    kernel_call(7, 7, SP, 5 | flags | COOKIE_NEXT_JUMP);
    second = kernel_record(3);
    cr_assert_eq(second->call.function, 6);
    cr_assert_eq(wire_sp(&second->call), SP, "a tail call takes the frame over");
    cr_assert_eq(second->return_address, 0x402222);
}

Test(kernel_side, a_probe_on_ret_is_a_return)
{
    const struct wire_call *record;

    kernel_trace(7);
    cr_assert_eq(kernel_call(7, 7, SP, 5 | COOKIE_AT_RETURN | COOKIE_ENTRY_ONLY), 1);
    record = kernel_record(0);
    cr_assert_eq(record->header.kind, WIRE_RETURN);
    cr_assert_eq(wire_sp(record), SP + 8, "just above the slot");
    kernel_call(7, 7, SP, 5 | COOKIE_ENTRY_ONLY | COOKIE_RETURN_SEEN);
    cr_assert_not(header_at(1)->flags & WIRE_RETURN_UNSEEN, "its RET is probed");
}

Test(kernel_side, calls_only_are_the_small_record)
{
    kernel_trace(7);
    cr_assert_eq(kernel_call(7, 7, SP, 5 | COOKIE_ENTRY_ONLY | COOKIE_CALLS_ONLY), 1);
    cr_assert_eq(header_at(0)->kind, WIRE_CALL);
}

/* ------------------------------------------------------------------------------------ what a CPU remembers
 */

Test(kernel_side, one_record_in_four_has_a_time_and_the_first_one_after_a_tick_or_another_thread)
{
    static const bool stamped[] = {true, false, false, false, true, false, true, true, true, false};

    kernel_trace(7);
    for (int i = 0; i < 6; i++)
        kernel_call(7, 7, SP, 1);
    kernel_tick();
    kernel_call(7, 7, SP, 1);
    kernel_call(7, 8, SP, 1);
    kernel_call(7, 7, SP, 1);
    kernel_call(7, 7, SP, 1);
    for (size_t i = 0; i < 10; i++)
        cr_expect_eq(header_at(i)->ns != 0, stamped[i], "record %zu", i);
}

Test(kernel_side, what_is_remembered_ends_with_every_change_of_the_processes)
{
    kernel_call(7, 7, SP, 1);
    cr_assert_eq(kernel_records(), 0);
    kernel_trace(7);
    kernel_call(7, 7, SP, 1);
    cr_assert_eq(kernel_records(), 1, "traced from now on");
    kernel_fork(7, 7, 8, 8);
    kernel_call(8, 8, SP, 1);
    cr_assert_eq(kernel_records(), 3);
    kernel_exit(8, 8, 1, 0, 0);
    kernel_call(8, 8, SP, 1);
    cr_assert_eq(kernel_records(), 4, "another process with its number is not traced");
}

Test(kernel_side, nothing_is_recorded_after_the_end)
{
    kernel_trace(7);
    kernel_enter(PHASE_CLOSED);
    cr_assert_eq(kernel_call(7, 7, SP, 1), 1);
    kernel_return(7, 7, SP + 8, 1);
    cr_assert_eq(kernel_records(), 0);
}

Test(kernel_side, no_call_is_recorded_before_all_probes_are_placed)
{
    kernel_trace(7);
    kernel_enter(PHASE_ATTACHING);
    cr_assert_eq(kernel_call(7, 7, SP, 1), 1, "nor is its return caught");
    cr_assert_eq(kernel_records(), 0);
    kernel_enter(PHASE_RECORDING);
    kernel_call(7, 7, SP, 1);
    cr_assert_eq(kernel_records(), 1);
}

/* In these phases the collector may be in the kernel for longer than anybody may stand still. */
static void check_that_nobody_is_stopped(uint32_t phase)
{
    kernel_trace_as(7, PROCESS_TRACED | PROCESS_CAN_LOAD | PROCESS_OWN_PROBES);
    kernel_enter(phase);
    kernel_fork(7, 7, 9, 9);
    kernel_exec(7, 7);
    cr_assert_eq(kernel_records(), 2, "the collector hears of both");
    cr_assert_eq(kernel_children_stopped() + kernel_stops_sent(), 0);
    cr_assert_not(kernel_is_held(7) || kernel_is_held(9));
    cr_assert(kernel_is_traced(9));
}

Test(kernel_side, nobody_is_stopped_while_probes_are_placed)
{
    check_that_nobody_is_stopped(PHASE_ATTACHING);
}

Test(kernel_side, nobody_is_stopped_while_probes_are_removed)
{
    check_that_nobody_is_stopped(PHASE_CLOSED);
}

Test(kernel_side, new_libraries_are_told_but_not_waited_for_while_probes_are_placed)
{
    kernel_trace_as(7, PROCESS_TRACED | PROCESS_CAN_LOAD | PROCESS_WATCHED);
    kernel_enter(PHASE_ATTACHING);
    kernel_libraries(7, 8, 2, 0);
    kernel_libraries(7, 7, 1, 0);
    cr_assert_eq(kernel_records(), 2);
    cr_assert_eq(kernel_stops_sent(), 0);
    cr_assert_not(kernel_is_waiting(8) || kernel_is_held(7));
    cr_assert(kernel_process_flags(7) & PROCESS_CHECK_CALLERS, "nobody knows the callers in them");
}

/* ------------------------------------------------------------------------------------ code that can throw */

Test(kernel_side, no_return_probe_in_a_callback_out_of_code_that_can_throw)
{
    kernel_trace_as(7, PROCESS_TRACED | PROCESS_CHECK_CALLERS);
    kernel_set_main_stack(SP + 4096);
    kernel_set_stack_word(SP, 0x401000);
    cr_assert_eq(kernel_call(7, 7, SP, 1), 0, "called from quiet code");
    kernel_set_stack_word(SP - 104, 0x7f0000001000);
    cr_assert_eq(kernel_call(7, 7, SP - 104, 2), 1, "called back");
    kernel_set_stack_word(SP - 160, 0x401100);
    cr_assert_eq(kernel_call(7, 7, SP - 160, 3), 1, "called inside the callback");
    kernel_set_stack_word(SP - 96, 0x401100);
    cr_assert_eq(kernel_call(7, 7, SP - 96, 4), 0, "the callback is over");
    kernel_set_stack_word(SP - 160, 0x401100);
    cr_assert_eq(kernel_call(7, 7, SP - 160, 5), 0);
}

Test(kernel_side, a_caller_that_cannot_be_read_may_throw)
{
    kernel_trace_as(7, PROCESS_TRACED | PROCESS_CHECK_CALLERS);
    kernel_set_main_stack(SP + 4096);
    kernel_set_user_word(0, 0);
    cr_assert_eq(kernel_call(7, 7, SP, 1), 1);
}

/* ------------------------------------------------------------------------------------ new libraries */

#define LOADS (PROCESS_TRACED | PROCESS_CAN_LOAD)

Test(kernel_side, only_processes_that_load_announce_libraries)
{
    kernel_libraries(7, 7, 1, 0);
    kernel_trace(7);
    kernel_libraries(7, 7, 1, 0);
    cr_assert_eq(kernel_records(), 0);
}

Test(kernel_side, libraries_that_are_not_probed_are_announced_and_their_calls_taken_for_callbacks)
{
    kernel_trace_as(7, LOADS);
    kernel_libraries(7, 7, 1, 0);
    cr_assert_eq(header_at(0)->kind, WIRE_LIBRARIES);
    cr_assert_eq(header_at(0)->flags, 0);
    cr_assert_eq(kernel_stops_sent(), 0);
    cr_assert_eq(kernel_process_flags(7), LOADS | PROCESS_CHECK_CALLERS);
}

Test(kernel_side, the_linkers_call_before_its_change_is_passed_over)
{
    kernel_trace_as(7, LOADS);
    kernel_set_user_word(1, 1); /* RT_ADD */
    kernel_libraries(7, 7, 1, 0x2000);
    cr_assert_eq(kernel_records(), 0);
    kernel_set_user_word(0, 1); /* RT_CONSISTENT */
    kernel_libraries(7, 7, 1, 0x2000);
    cr_assert_eq(kernel_records(), 1);
}

Test(kernel_side, a_process_with_one_thread_is_stopped_at_its_libraries)
{
    kernel_trace_as(7, LOADS | PROCESS_WATCHED);
    kernel_libraries(7, 7, 1, 0);
    cr_assert_eq(header_at(0)->flags, WIRE_HELD);
    cr_assert(kernel_record_woke(0));
    cr_assert(kernel_is_held(7));
    cr_assert_eq(kernel_stops_sent(), 1);
    cr_assert_not(kernel_is_waiting(7));
}

Test(kernel_side, every_program_waits_when_it_starts)
{
    kernel_trace_as(7, LOADS | PROCESS_STARTING);
    kernel_libraries(7, 7, 1, 0);
    cr_assert_eq(header_at(0)->flags, WIRE_HELD);
}

Test(kernel_side, one_of_several_threads_waits_until_it_is_let_go)
{
    kernel_trace_as(7, LOADS | PROCESS_WATCHED);
    kernel_set_let_go(20);
    kernel_libraries(7, 8, 2, 0);
    cr_assert_eq(header_at(0)->flags, WIRE_WAITING);
    cr_assert_eq(kernel_stops_sent(), 0, "all its threads would see a stop");
    cr_assert_not(kernel_is_waiting(8));
}

Test(kernel_side, nobody_waits_for_ever)
{
    kernel_trace_as(7, LOADS | PROCESS_WATCHED);
    kernel_libraries(7, 8, 2, 0);
    cr_assert_not(kernel_is_waiting(8), "it has deleted the entry itself: the collector comes too late");
}

Test(kernel_side, exec_forgets_what_was_known_of_the_code)
{
    kernel_trace_as(7, LOADS | PROCESS_WATCHED);
    kernel_fork(7, 7, 8, 8);
    cr_assert_eq(kernel_process_flags(8), LOADS | PROCESS_WATCHED | PROCESS_CHECK_CALLERS,
                 "a child has its parent's code, and nobody watches its linker");
    kernel_exec(7, 7);
    cr_assert_eq(kernel_process_flags(7), PROCESS_TRACED | PROCESS_STARTING);
}

Test(kernel_side, a_child_that_needs_probes_of_its_own_is_stopped_before_it_runs)
{
    kernel_trace_as(7, LOADS | PROCESS_OWN_PROBES);
    kernel_fork(7, 7, 7, 8);
    cr_assert_eq(kernel_children_stopped(), 0, "a thread is no child");
    kernel_fork(7, 7, 9, 9);
    cr_assert_eq(kernel_children_stopped(), 1);
    cr_assert(kernel_is_held(9));
    cr_assert_eq(header_at(1)->flags, WIRE_HELD);
    cr_assert(kernel_record_woke(1));
    kernel_set_terminal(1);
    kernel_fork(7, 7, 10, 10);
    cr_assert_eq(kernel_children_stopped(), 1, "it may become a shell's job");
    cr_assert_not(kernel_is_held(10));
}
