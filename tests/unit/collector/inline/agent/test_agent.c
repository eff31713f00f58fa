/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The agent itself, run in this process, and the reader of what it and the stubs write. */
#include <criterion/criterion.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/collector/inline/agent/agent_target.h"

static void expect_told(uint32_t from, uint32_t to)
{
    cr_assert_eq(told_count, to - from + 1, "%zu", told_count);
    for (uint32_t i = from; i <= to; i++)
        cr_assert_eq(told[i - from], i);
    told_count = 0;
}

/* Each call has a time of its own, also behind the end of a chunk and in one that is used again. */
Test(agent, calls_come_with_their_times)
{
    uint64_t before = __builtin_ia32_rdtsc();
    uint32_t calls;

    begin_with(&(struct agent_sink){.calls = on_calls, .lost = on_lost}, true);
    calls = 2 * (uint32_t)agent_area_records(area) + 7;
    for (int round = 0; round < 5; round++) {
        for (uint32_t i = 1; i <= calls; i++)
            call_agent(i);
        read_all(0);
        for (uint32_t i = 0; i < calls; i++) {
            cr_assert_gt(told_at[i], before, "call %u of round %d", i, round);
            before = told_at[i];
        }
        expect_told(1, calls);
    }
    cr_assert_lt(before, __builtin_ia32_rdtsc());
    end();
}

Test(agent, calls_come_in_order_over_chunks)
{
    uint32_t room, calls, done = 0;

    begin();
    room = (uint32_t)agent_area_records(area);
    calls = 10 * room + 7;
    while (done < calls) {
        for (uint32_t i = 0; i < room / 2 && done < calls; i++)
            call_agent(++done);
        read_all(0);
        cr_assert_lt(told_count, CALLS_MAX);
        for (size_t i = 0; i < told_count; i++)
            cr_assert_eq(told[i], done - told_count + i + 1);
        told_count = 0;
    }
    cr_assert_eq(agent_reader_take_unplaced(reader), 0);
    end();
}

Test(agent, a_record_says_where_it_was_called)
{
    const struct agent_record *record;
    uint64_t here = (uint64_t)__builtin_frame_address(0);

    begin();
    area->head->tick = agent_tick_word(77);
    call_agent(5);
    record = agent_chunk_records(agent_area_chunk(area, 0));
    cr_assert_eq(record->function, 5);
    cr_assert_eq(record->sp >> AGENT_TICK_SHIFT, 77);
    cr_assert_lt(here - agent_record_sp(record), 65536u);
    cr_assert_eq(agent_area_chunk(area, 0)->ticket, 1);
    end();
}

Test(agent, what_finds_no_chunk_is_counted_at_its_place)
{
    uint32_t room, lost = 0;

    begin();
    room = (uint32_t)(agent_area_records(area) * area->chunk_count);
    for (uint32_t i = 1; i <= room + 9; i++)
        call_agent(i);
    read_all(0);
    expect_told(1,
                (uint32_t)told_count); /* what stands in the last chunk is read, too; the loss comes behind */
    call_agent(room + 10);             /* there are free chunks now */
    read_all(0);
    for (size_t i = 0; i < told_count; i++)
        lost += told[i] < 0 ? (uint32_t)-told[i] : 0;
    cr_assert_eq(lost, 9);
    cr_assert_eq(told[told_count - 1], room + 10);
    cr_assert_eq(agent_reader_take_unplaced(reader), 0);
    end();
}

/* What a stub does before it calls the agent. */
static void find_no_room(void)
{
    uint64_t cursor = AGENT_ONE_RECORD;

    __asm__ volatile("xaddq %0,%%fs:%c1" : "+r"(cursor) : "i"(AGENT_CURSOR) : "memory", "cc");
    cr_assert_geq((int64_t)(cursor + AGENT_ONE_RECORD), 0);
}

/* What a stub does whose thread is losing calls; false: it calls the agent. */
static bool lose_call(void)
{
    uint64_t *counter, tick;
    uint32_t loser, owner;

    __asm__ volatile("movl %%fs:%c1,%0" : "=r"(owner) : "i"(AGENT_OWNER));
    __asm__ volatile("movl %%fs:%c1,%0" : "=r"(loser) : "i"(AGENT_LOSER));
    __asm__ volatile("movq %%fs:%c1,%0" : "=r"(tick) : "i"(AGENT_LOST_IN));
    __asm__ volatile("movq %%fs:%c1,%0" : "=r"(counter) : "i"(AGENT_LOST_AT));
    if (owner || loser != own_name() || tick != area->head->tick)
        return false;
    ++*counter;
    return true;
}

static void fill_all_chunks(uint32_t room)
{
    for (uint32_t i = 1; i <= room; i++)
        call_agent(i);
}

Test(agent, who_finds_no_chunk_counts_for_itself_up_to_the_next_tick)
{
    uint32_t room, calls, lost = 0, told_calls = 0;

    begin();
    room = (uint32_t)(agent_area_records(area) * area->chunk_count);
    fill_all_chunks(room);
    cr_assert_not(lose_call(), "it has not asked yet");
    call_agent(room + 1);
    for (calls = room + 1; calls < room + 40; calls++)
        cr_assert(lose_call());
    read_all(0); /* there are free chunks now */
    cr_assert(lose_call());
    calls++;
    area->head->tick = agent_tick_word(2);
    cr_assert_not(lose_call(), "it asks again");
    call_agent(++calls);
    cr_assert_not(lose_call(), "it has got a chunk");
    read_all(0);
    for (size_t i = 0; i < told_count; i++) {
        lost += told[i] < 0 ? (uint32_t)-told[i] : 0;
        told_calls += told[i] > 0;
    }
    cr_assert_eq(lost, 41);
    cr_assert_eq(lost + told_calls, calls);
    cr_assert_eq(told[told_count - 1], calls);
    end();
}

/* The end of a recording: what comes behind the last look is neither a call nor a loss. */
Test(agent, nothing_is_lost_behind_the_end)
{
    uint32_t room;

    begin();
    room = (uint32_t)(agent_area_records(area) * area->chunk_count);
    fill_all_chunks(room);
    call_agent(room + 1);
    cr_assert(lose_call());
    tell_claims((uint32_t)syscall(SYS_gettid));
    cr_assert_eq(agent_reader_freeze(reader, 0), 0);
    cr_assert(lose_call());
    agent_area_quiet(area);
    cr_assert_not(lose_call(), "it asks again");
    call_agent(room + 3);
    for (int i = 0; i < 10; i++)
        cr_assert(lose_call());
    cr_assert_eq(agent_area_chunk(area, (uint32_t)area->chunk_count - 1)->lost_after, 3);
    cr_assert_eq(agent_reader_end_all(reader), 0);
    cr_assert_eq(told_count, room + 1);
    cr_assert_eq(told[room], -2);
    cr_assert_eq(agent_reader_take_unplaced(reader), 0);
    end();
}

/* A handler comes between a stub that found its chunk full and the agent's question for another one. */
Test(agent, a_handler_asks_for_the_thread_that_it_interrupts)
{
    uint32_t room;

    begin();
    room = (uint32_t)agent_area_records(area);
    for (uint32_t i = 1; i <= room; i++)
        call_agent(i);
    find_no_room();
    find_no_room();
    call_agent(room + 1); /* of the handler */
    call_agent(room + 2); /* of the one that was interrupted */
    read_all(0);
    expect_told(1, room + 2);
    end();
}

Test(agent, is_quiet_when_told)
{
    begin();
    agent_area_quiet(area);
    for (uint32_t i = 1; i < 100; i++)
        call_agent(i);
    read_all(0);
    cr_assert_eq(told_count, 0);
    cr_assert_eq(agent_reader_take_unplaced(reader), 0);
    end();
}

Test(agent, slots_of_another_thread_are_not_used)
{
    uint32_t other = 1;
    uint64_t cursor = 0xffffff0000000040ull; /* room, in another one's chunk */

    begin();
    __asm__ volatile("movq %0,%%fs:%c1; movl %2,%%fs:%c3"
                     :
                     : "r"(cursor), "i"(AGENT_CURSOR), "r"(other), "i"(AGENT_OWNER)
                     : "memory");
    call_agent(3);
    cr_assert_eq(area->counts->taken, 1);
    read_all(0);
    expect_told(3, 3);
    end();
}

/* However many calls it makes: it takes nothing that the first process needs. */
Test(agent, a_child_that_is_not_recorded_takes_no_chunk)
{
    int status;
    pid_t pid;

    begin();
    area->head->first_only = 1;
    ((struct agent_key *)(head + AGENT_KEY_OFFSET))->first = 1;
    call_agent(1);
    pid = fork();
    if (pid == 0) {
        call_agent(100);
        if (!lose_call())
            _exit(1);
        area->head->tick += agent_tick_word(1);
        if (lose_call())
            _exit(2);
        call_agent(101);
        if (!lose_call())
            _exit(3);
        _exit(0);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert_eq(status, 0);
    call_agent(2);
    read_all(0);
    expect_told(1, 2);
    cr_assert_eq(area->counts->taken, 1);
    cr_assert_eq(area->counts->tickets, 1);
    cr_assert_eq(agent_reader_take_unplaced(reader), 0);
    end();
}

/* The C library still says that the child is its parent. */
Test(agent, a_child_by_a_system_call_of_its_own_has_slots_of_its_own)
{
    int status;
    pid_t pid;

    begin();
    call_agent(1);
    pid = (pid_t)syscall(SYS_fork);
    if (pid == 0) {
        call_agent(100);
        call_agent(101);
        _exit(0);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert_eq(status, 0);
    call_agent(2);
    cr_assert_eq(area->counts->tickets, 2);
    cr_assert_eq(agent_reader_claim(reader, ++told_tickets, 7), 0);
    read_claimed(0);
    expect_told(1, 2);
    cr_assert_eq(told_of[0], 7);
    cr_assert_eq(agent_reader_claim(reader, ++told_tickets, 8), 0);
    read_claimed(0);
    expect_told(100, 101);
    cr_assert_eq(told_of[0], 8);
    end();
}

Test(agent, what_nobody_is_known_to_have_called_is_lost)
{
    begin();
    for (uint32_t i = 1; i <= 9; i++)
        call_agent(i);
    told_tickets = 1; /* the ring was full */
    read_all(0);
    cr_assert_eq(agent_reader_end_all(reader), 0);
    cr_assert_eq(told_count, 0);
    cr_assert_eq(agent_reader_take_unplaced(reader), 9);
    cr_assert_eq(agent_reader_take_unplaced(reader), 0);
    end();
}

Test(agent, a_thread_control_block_of_several_threads_has_no_slots)
{
    const uint32_t shared = 1;

    begin();
    call_agent(1);
    __asm__ volatile("movl %0,%%fs:%c1; movq $0,%%fs:%c2"
                     :
                     : "r"(shared), "i"(AGENT_SHARED), "i"(AGENT_OWNER)
                     : "memory");
    call_agent(2);
    call_agent(3);
    read_all(0);
    expect_told(1, 1);
    cr_assert_eq(agent_reader_take_shared(reader), 2);
    __asm__ volatile("movl $0,%%fs:%c0" : : "i"(AGENT_SHARED) : "memory");
    call_agent(4);
    read_all(0);
    expect_told(4, 4);
    cr_assert_eq(agent_reader_take_shared(reader), 0);
    end();
}

/* A stub that was interrupted behind its reservation, by a handler that runs the chunk full. */
Test(reader, a_record_that_is_written_late_is_waited_for)
{
    struct agent_record *late;
    uint32_t room;

    begin();
    room = (uint32_t)agent_area_records(area);
    for (uint32_t i = 1; i <= room + 1; i++)
        call_agent(i);
    late = (struct agent_record *)agent_chunk_records(agent_area_chunk(area, 0)) + 10;
    late->function = 0;
    read_all(1000);
    expect_told(1, 10);
    late->function = 11;
    read_all(2000);
    expect_told(11, room + 1);
    cr_assert_eq(area->given, area->chunk_count + 1, "the chunk is put back");
    end();
}

Test(reader, a_record_that_never_comes_is_one_call_lost)
{
    uint32_t room;

    begin();
    room = (uint32_t)agent_area_records(area);
    for (uint32_t i = 1; i <= room + 1; i++)
        call_agent(i);
    ((struct agent_record *)agent_chunk_records(agent_area_chunk(area, 0)))[10].function = 0;
    read_all(1000);
    read_all(1000 + READER_PATIENCE_NS);
    cr_assert_eq(told_count, room + 1);
    cr_assert_eq(told[10], -1);
    cr_assert_eq(told[11], 12);
    cr_assert_eq(area->given, area->chunk_count, "somebody may still write to the chunk");
    told_count = 0;
    cr_assert_eq(agent_reader_end(reader, (uint32_t)syscall(SYS_gettid)), 0);
    cr_assert_eq(told_count, 0);
    cr_assert_eq(area->given, area->chunk_count + 2);
    end();
}

Test(reader, reads_up_to_a_cursor)
{
    uint64_t cursor = 0;

    begin();
    for (uint32_t i = 1; i <= 20; i++) {
        call_agent(i);
        if (i == 12)
            __asm__ volatile("movq %%fs:%c1,%0" : "=r"(cursor) : "i"(AGENT_CURSOR));
    }
    tell_claims((uint32_t)syscall(SYS_gettid));
    cr_assert_eq(agent_reader_read_to(reader, (uint32_t)syscall(SYS_gettid), (uint32_t)cursor), 0);
    expect_told(1, 12);
    read_all(0);
    expect_told(13, 20);
    end();
}

Test(reader, slots_that_are_lent_record_for_the_borrower)
{
    uint32_t self = (uint32_t)syscall(SYS_gettid), child = self + 1;
    uint32_t room =
        (uint32_t)((AGENT_CHUNK_BYTES - sizeof(struct agent_chunk)) / sizeof(struct agent_record));
    uint64_t lent = 0, back = 0;

    begin();
    for (uint32_t i = 1; i <= 3 * room; i++) {
        if (i == 6)
            __asm__ volatile("movq %%fs:%c1,%0" : "=r"(lent) : "i"(AGENT_CURSOR));
        if (i == 2 * room)
            __asm__ volatile("movq %%fs:%c1,%0" : "=r"(back) : "i"(AGENT_CURSOR));
        call_agent(i);
    }
    tell_claims(self);
    cr_assert_eq(agent_reader_read_to(reader, self, (uint32_t)lent), 0);
    cr_assert_eq(agent_reader_share_slots(reader, self, child), 0);
    cr_assert_eq(agent_reader_read_to(reader, self, (uint32_t)back), 0);
    cr_assert_eq(agent_reader_share_slots(reader, self, self), 0);
    read_all(0);
    cr_assert_eq(told_count, 3 * room);
    for (uint32_t i = 1; i <= 3 * room; i++) {
        cr_assert_eq(told[i - 1], i);
        cr_assert_eq(told_of[i - 1], i >= 6 && i < 2 * room ? child : self, "call %u", i);
    }
    end();
}

Test(reader, slots_may_be_lent_before_they_are_used)
{
    uint32_t self = (uint32_t)syscall(SYS_gettid);

    begin();
    cr_assert_eq(agent_reader_share_slots(reader, self, self + 1), 0);
    call_agent(1);
    read_all(0);
    cr_assert_eq(told_count, 1);
    cr_assert_eq(told_of[0], self + 1);
    end();
}

/* As when a target takes the memory of its buffers away and gets the same buffer again. */
Test(reader, what_was_read_does_not_change)
{
    struct agent_record *records;

    begin();
    call_agent(1);
    call_agent(2);
    read_all(0);
    cr_assert_eq(told_count, 2);
    cr_assert_not(agent_reader_fault(reader));
    records = (struct agent_record *)agent_chunk_records(agent_area_chunk(area, 0));
    records[1].function = 0;
    read_all(0);
    cr_assert(agent_reader_fault(reader));
    end();
}

Test(reader, a_function_without_exits_has_no_record_of_one)
{
    begin();
    call_agent(1);
    call_agent(1 | AGENT_EXIT);
    read_all(0);
    cr_assert(agent_reader_fault(reader));
    end();
}

Test(reader, a_target_cannot_name_chunks)
{
    begin();
    area->counts->taken = 1000000;
    read_all(0);
    cr_assert(agent_reader_fault(reader));
    cr_assert_eq(told_count, 0);
    end();
}
