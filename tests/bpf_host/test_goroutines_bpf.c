/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the kernel side tells of goroutines: bpf/goroutines.h, without a kernel and without a Go program. */
#include <criterion/criterion.h>
#include <string.h>

#include "bpf/wire.h"
#include "tests/bpf_host/kernel_side.h"

enum { TGID = 7, TID = 8, PROBE = 3, PROGRAM = 2 };

/* A piece of the target's memory, by words; the runtime's structs and a stack are in it. */
enum {
    MEMORY = 0xc000000000,
    G = 0,
    G0 = 16,
    M = 32,
    OTHER_G = 48,
    STACK = 64,
    FRAME = 80,
    CALLER_FRAME = 88,
    DATA = 96
};
static uint64_t memory[160];

static const struct go_fields fields = {.g_goid = 32, .g_m = 16, .m_curg = 24};

static uint64_t at_word(unsigned word)
{
    return MEMORY + word * sizeof(memory[0]);
}

/* Goroutine 5 runs on the thread; goroutine 9 is another one. */
static void begin(void)
{
    kernel_reset();
    kernel_trace(TGID);
    memset(memory, 0, sizeof(memory));
    memory[G + 4] = 5;
    memory[G + 2] = memory[G0 + 2] = at_word(M);
    memory[M + 3] = at_word(G);
    memory[OTHER_G + 4] = 9;
    memory[STACK] = 0x401234;
    memory[STACK + 3] = 0x405678;
    memory[FRAME] = at_word(CALLER_FRAME);
    memory[FRAME + 1] = 0x40aaaa;
    memory[CALLER_FRAME + 1] = 0x40bbbb;
    kernel_set_memory(MEMORY, memory, sizeof(memory));
    kernel_set_go_program(PROGRAM, &fields);
}

TestSuite(goroutines, .init = begin);

static struct kernel_registers registers(void)
{
    return (struct kernel_registers){.ax = 0xa1,
                                     .bx = 0xb1,
                                     .cx = 0xc1,
                                     .di = 0xd1,
                                     .si = 0xe1,
                                     .r8 = 0xf1,
                                     .r14 = at_word(G),
                                     .sp = at_word(STACK),
                                     .bp = at_word(FRAME),
                                     .ip = 0x400100};
}

static const struct wire_go *hit_probe(const struct go_probe *probe, const struct kernel_registers *at)
{
    size_t before = kernel_records();

    kernel_set_go_probe(PROBE, probe);
    kernel_go_hit(TGID, TID, PROBE, at);
    return kernel_records() > before ? kernel_record(kernel_records() - 1) : NULL;
}

/* What a place of this kind tells; there must be a record. */
static const struct wire_go *hit_kind(enum go_place_kind kind, const struct kernel_registers *at)
{
    const struct go_probe probe = {.kind = (uint8_t)kind, .program = PROGRAM};
    const struct wire_go *record = hit_probe(&probe, at);

    cr_assert_not_null(record);
    return record;
}

static void assert_words(const struct wire_go *record, uint64_t goroutine, uint64_t object, uint64_t value,
                         uint64_t other)
{
    cr_expect_eq(record->goroutine, goroutine, "goroutine %llu", record->goroutine);
    cr_expect_eq(record->object, object, "object %#llx", record->object);
    cr_expect_eq(record->value, value, "value %#llx", record->value);
    cr_expect_eq(record->other, other, "other %#llx", record->other);
}

/* ------------------------------------------------------------------------------------ who, and where */

Test(goroutines, a_record_tells_the_thread_the_probe_and_the_time)
{
    const struct kernel_registers at = registers();
    const struct wire_go *record = hit_kind(GO_AT_PANIC, &at);

    cr_assert_eq(record->header.kind, WIRE_GO);
    cr_assert_eq(record->header.flags, 0);
    cr_assert_eq(record->header.sp_high, 0);
    cr_assert_eq(record->header.tid, TID);
    cr_assert_neq(record->header.ns, 0);
    cr_assert_eq(record->probe, PROBE);
    cr_assert_eq(record->cases, 0);
    cr_assert_not(kernel_record_woke(0), "it must not wake the collector");
}

Test(goroutines, processes_that_are_not_traced_leave_nothing)
{
    const struct go_probe probe = {.kind = GO_AT_PANIC, .program = PROGRAM};
    const struct kernel_registers at = registers();

    kernel_set_go_probe(PROBE, &probe);
    kernel_go_hit(TGID + 1, TID + 1, PROBE, &at);
    kernel_go_hit(TGID, TID, PROBE + 1, &at);
    cr_assert_eq(kernel_records(), 0, "another process, and a probe that nobody has described");
    kernel_go_hit(TGID, TID, PROBE, &at);
    cr_assert_eq(kernel_records(), 1);
}

Test(goroutines, on_a_system_stack_the_one_acts_for_which_the_thread_schedules)
{
    struct kernel_registers at = registers();

    at.r14 = at_word(G0);
    cr_expect_eq(hit_kind(GO_AT_PANIC, &at)->goroutine, 5);
    memory[M + 3] = 0;
    cr_expect_eq(hit_kind(GO_AT_PANIC, &at)->goroutine, 0, "nobody");
    memory[G0 + 2] = 0;
    cr_expect_eq(hit_kind(GO_AT_PANIC, &at)->goroutine, 0, "no m");
    at.r14 = 0;
    cr_expect_eq(hit_kind(GO_AT_PANIC, &at)->goroutine, 0, "no g");
    kernel_set_user_word(0, 0);
    at.r14 = at_word(G);
    cr_expect_eq(hit_kind(GO_AT_PANIC, &at)->goroutine, 0, "memory that cannot be read");
}

Test(goroutines, the_place_is_the_return_address_or_the_instruction)
{
    struct go_probe probe = {.kind = GO_AT_PANIC, .program = PROGRAM};
    const struct kernel_registers at = registers();

    cr_expect_eq(hit_probe(&probe, &at)->place, 0x401234);
    probe.sp_offset = 24;
    cr_expect_eq(hit_probe(&probe, &at)->place, 0x405678);
    probe.place_in_code = 1;
    cr_expect_eq(hit_probe(&probe, &at)->place, 0x400100);
}

Test(goroutines, a_function_that_will_begin_again_is_not_told)
{
    struct go_probe probe = {.kind = GO_AT_PANIC, .program = PROGRAM, .at_stack_check = 1};
    struct kernel_registers at = registers();

    for (at.flags = 0; at.flags < 0x1000; at.flags++) {
        bool again = at.flags & 1 || at.flags & 0x40; /* below or equal */
        size_t before = kernel_records();

        cr_assert_eq(hit_probe(&probe, &at) == NULL, again, "flags %#lx", (unsigned long)at.flags);
        cr_assert_eq(kernel_records() - before, !again);
    }
    probe.at_stack_check = 0;
    at.flags = 0x41;
    cr_assert_not_null(hit_probe(&probe, &at), "elsewhere the flags mean nothing");
}

/* ------------------------------------------------------------------------------------ kinds of places */

Test(goroutines, creation_tells_the_function_and_then_the_goroutine)
{
    struct kernel_registers at = registers();

    memory[DATA] = 0x409000; /* a closure: its first word is the code */
    at.ax = at_word(DATA);
    assert_words(hit_kind(GO_AT_SPAWN, &at), 5, 0, 0x409000, 0);
    at.r14 = at_word(G0);
    at.bx = at_word(OTHER_G);
    assert_words(hit_kind(GO_AT_SPAWNED, &at), 5, 9, at.bx, 0);
}

Test(goroutines, the_scheduler_tells_of_the_goroutine_that_it_is_handed)
{
    static const enum go_place_kind kinds[] = {GO_AT_EXECUTE, GO_AT_END, GO_AT_QUEUE};
    struct kernel_registers at = registers();

    at.ax = at_word(OTHER_G);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        assert_words(hit_kind(kinds[i], &at), 9, at.ax, 0xb1, 0);
    assert_words(hit_kind(GO_AT_READY, &at), 5, 9, 0xb1, 0);
}

Test(goroutines, parking_tells_the_reason_which_is_a_byte)
{
    struct kernel_registers at = registers();

    at.cx = 0xffffff0e;
    assert_words(hit_kind(GO_AT_PARK, &at), 5, 0, 0x0e, 0);
}

Test(goroutines, operations_tell_the_object_and_where_their_caller_returns_to)
{
    struct kernel_registers at = registers();

    assert_words(hit_kind(GO_AT_OPERATION, &at), 5, 0xa1, 0xb1, 0x40aaaa);
    assert_words(hit_kind(GO_AT_TIMER_STOP, &at), 5, 0xa1, 0xb1, 0);
    assert_words(hit_kind(GO_AT_RESULT, &at), 5, 0xa1, 0xb1, 0);
    assert_words(hit_kind(GO_AT_FATAL_PANIC, &at), 5, 0xa1, 0xb1, 0);
}

Test(goroutines, channels_tell_whether_the_operation_may_wait_and_the_users_place)
{
    struct kernel_registers at = registers();
    const struct wire_go *record;

    at.di = 0x402222;
    at.cx = 1;
    record = hit_kind(GO_AT_SEND, &at);
    assert_words(record, 5, 0xa1, 1, 0);
    cr_expect_eq(record->place, 0x402222);
    at.cx = 0xfe00; /* a bool is the low byte; the rest is rubbish */
    record = hit_kind(GO_AT_RECV, &at);
    assert_words(record, 5, 0xa1, 0, 0);
    cr_expect_eq(record->place, 0x40aaaa);
}

static void assert_timer(enum go_place_kind kind, const struct kernel_registers *at, uint64_t function,
                         uint64_t argument)
{
    const struct wire_go_select *record = (const struct wire_go_select *)hit_kind(kind, at);

    assert_words(&record->go, 5, at->ax, 777, 888);
    cr_expect_eq(record->go.cases, 0);
    cr_expect_eq(record->go.place, 0x40bbbb, "the caller of package time's function");
    cr_expect_eq(record->cases[0].element, function);
    cr_expect_eq(record->cases[0].channel, argument);
}

Test(goroutines, timers_tell_when_how_often_and_what_they_do)
{
    struct kernel_registers at = registers();

    memory[DATA] = 0x409000; /* the timer's function, a closure */
    at.bx = 777;
    at.cx = 888;
    at.di = at_word(DATA);
    at.r8 = 0xc4a7;
    assert_timer(GO_AT_TIMER, &at, 0x409000, 0xc4a7);
    at.di = 0;
    assert_timer(GO_AT_TIMER, &at, 0, 0xc4a7);

    at = registers();
    memory[DATA + 9] = 777;
    memory[DATA + 10] = 888;
    memory[DATA + 11] = at_word(DATA);
    memory[DATA + 13] = 0xc4a8;
    at.ax = at_word(DATA + 8);
    assert_timer(GO_AT_TIMER_STRUCT, &at, 0x409000, 0xc4a8);
}

Test(goroutines, tests_fatal_errors_and_exits)
{
    struct kernel_registers at = registers();

    memory[DATA] = 0x409000;
    at.bx = at_word(DATA);
    assert_words(hit_kind(GO_AT_TEST, &at), 5, 0xa1, 0x409000, 0);
    memcpy(&memory[DATA + 1], "all goroutines are asleep", 8);
    at.ax = at_word(DATA + 1);
    at.bx = 37;
    assert_words(hit_kind(GO_AT_FATAL, &at), 5, memory[DATA + 1], 37, 0);
    memory[STACK + 1] = 0xabcd00000002; /* an int32 on the stack */
    assert_words(hit_kind(GO_AT_EXIT, &at), 5, at.ax, 2, 0);
}

/* ------------------------------------------------------------------------------------ selects */

static const struct wire_go_select *hit_select(uint64_t sends, uint64_t receives, uint64_t block)
{
    struct kernel_registers at = registers();

    for (unsigned i = 0; i < 24; i++) {
        memory[DATA + 2 * i] = 0x1000 + i;
        memory[DATA + 2 * i + 1] = 0x2000 + i;
    }
    at.ax = at_word(DATA);
    at.di = sends;
    at.si = receives;
    at.r8 = block;
    return (const struct wire_go_select *)hit_kind(GO_AT_SELECT, &at);
}

Test(goroutines, a_select_brings_its_cases)
{
    const struct wire_go_select *record = hit_select(2, 1, 0xff01);

    assert_words(&record->go, 5, 2, 1, 0);
    cr_expect_eq(record->go.cases, 3);
    cr_expect_eq(record->go.place, 0x401234);
    for (unsigned i = 0; i < 3; i++) {
        cr_expect_eq(record->cases[i].channel, 0x1000 + i);
        cr_expect_eq(record->cases[i].element, 0x2000 + i);
    }
    cr_expect_eq(hit_select(0, 1, 0xff00)->go.value, 0, "it has a default");
}

Test(goroutines, of_a_select_with_more_cases_than_fit_the_first_are_told_and_how_many_there_are)
{
    const struct wire_go_select *record = hit_select(0, 24, 1);

    cr_expect_eq(record->go.cases, 24);
    for (unsigned i = 0; i < GO_CASES_MAX; i++)
        cr_expect_eq(record->cases[i].channel, 0x1000 + i);
}

Test(goroutines, a_select_whose_cases_cannot_be_read_has_none)
{
    struct kernel_registers at = registers();

    at.di = 0;
    at.si = 2;
    kernel_set_user_word(0, 0);
    cr_expect_eq(hit_kind(GO_AT_SELECT, &at)->cases, 0);
}

/* ------------------------------------------------------------------------------------ inlined locks */

Test(goroutines, the_address_of_a_lock_comes_from_any_register)
{
    struct go_probe probe = {.kind = GO_AT_LOCK, .program = PROGRAM, .index = 0xff};
    struct kernel_registers at;
    uint64_t *all = &at.ax;

    for (unsigned i = 0; i < 16; i++) {
        at = registers();
        all[i] = 0x5000;
        probe.base = (uint8_t)i;
        probe.displacement = -16;
        cr_expect_eq(hit_probe(&probe, &at)->object, 0x5000 - 16, "[register %u - 16]", i);
    }
    for (unsigned i = 0; i < 16; i++) {
        at = registers();
        at.bx = 0x100000;
        all[i] = 0x30;
        probe.base = i == 3 ? 2 : 3; /* [rbx + index * 8 + 64], once [rdx + rbx * 8 + 64] */
        at.dx = i == 3 ? 0x100000 : at.dx;
        probe.index = (uint8_t)i;
        probe.scale = 8;
        probe.displacement = 64;
        if (i != 2)
            cr_expect_eq(hit_probe(&probe, &at)->object, 0x100000 + 0x30 * 8 + 64, "index register %u", i);
    }
    probe.base = 0xff;
    probe.index = 0xff;
    probe.displacement = 0x5ff000;
    cr_expect_eq(hit_probe(&probe, &at)->object, 0x5ff000, "an absolute address");
}

/* What the processor does at a conditional branch (Intel's manual, volume 2, Jcc). */
static bool is_taken(unsigned condition, uint64_t flags)
{
    bool cf = flags & 1, pf = flags & 4, zf = flags & 0x40, sf = flags & 0x80, of = flags & 0x800;
    const bool holds[] = {of, !of, cf, !cf, zf,       !zf,      cf || zf,       !cf && !zf,
                          sf, !sf, pf, !pf, sf != of, sf == of, zf || sf != of, !zf && sf == of};

    return holds[condition];
}

Test(goroutines, every_condition_tells_whether_the_slow_path_is_taken)
{
    static const uint64_t bits[] = {1, 4, 0x40, 0x80, 0x800};
    struct go_probe probe = {.kind = GO_AT_LOCK, .program = PROGRAM, .base = 1, .index = 0xff};
    struct kernel_registers at = registers();

    for (unsigned condition = 0; condition < 16; condition++)
        for (unsigned set = 0; set < 32; set++)
            for (unsigned slow_taken = 0; slow_taken < 2; slow_taken++) {
                at.flags = 0;
                for (unsigned i = 0; i < 5; i++)
                    at.flags |= set >> i & 1 ? bits[i] : 0;
                probe.condition = (uint8_t)condition;
                probe.slow_taken = (uint8_t)slow_taken;
                cr_assert_eq(hit_probe(&probe, &at)->value, is_taken(condition, at.flags) == slow_taken,
                             "condition %u, flags %#lx", condition, (unsigned long)at.flags);
            }
}

/* ------------------------------------------------------------------------------------ losses */

Test(goroutines, lost_records_are_counted_and_told_before_the_next)
{
    const struct go_probe probe = {.kind = GO_AT_PANIC, .program = PROGRAM};
    const struct go_probe select = {.kind = GO_AT_SELECT, .program = PROGRAM};
    const struct kernel_registers at = registers();
    const struct wire_lost *lost;

    kernel_set_room(0, 0);
    cr_assert_null(hit_probe(&probe, &at));
    cr_assert_null(hit_probe(&select, &at));
    kernel_call(TGID, TID, 0x7ffd12345678, 1);
    cr_assert_eq(kernel_pending_go(TID), 2);
    cr_assert_eq(kernel_pending_calls(TID), 1);
    cr_assert_eq(kernel_losing_threads(), 1);
    kernel_set_room(1, 0); /* enough for the report, not for the record */
    hit_probe(&probe, &at);
    lost = kernel_record(0);
    cr_assert_not_null(lost);
    cr_assert_eq(lost->header.kind, WIRE_LOST);
    cr_assert_eq(lost->header.tid, TID);
    cr_assert_eq(lost->go, 2);
    cr_assert_eq(lost->calls, 1);
    cr_assert_eq(lost->returns, 0);
    cr_assert_eq(kernel_pending_go(TID), 1, "the record itself found no room");
    kernel_set_room(2, 0);
    cr_assert_eq(hit_probe(&probe, &at)->header.kind, WIRE_GO);
    lost = kernel_record(1);
    cr_assert_eq(lost->header.kind, WIRE_LOST);
    cr_assert_eq(lost->go, 1);
    cr_assert_eq(lost->calls, 0);
    cr_assert_eq(kernel_losing_threads(), 0);
}

Test(goroutines, what_a_thread_has_lost_at_its_end_is_told)
{
    const struct go_probe probe = {.kind = GO_AT_PANIC, .program = PROGRAM};
    const struct kernel_registers at = registers();
    const struct wire_lost *lost;

    kernel_set_room(0, 0);
    hit_probe(&probe, &at);
    kernel_set_room(8, 8);
    kernel_exit(TGID, TID, 0, 0, 0);
    lost = kernel_record(0);
    cr_assert_eq(lost->header.kind, WIRE_LOST);
    cr_assert_eq(lost->go, 1);
}

/* ------------------------------------------------------------------------------------ delays */

static const struct go_probe delay_probe = {.kind = GO_AT_DELAY, .program = PROGRAM, .place_in_code = 1};

static void begin_execution(uint32_t number, int32_t left)
{
    kernel_go_schedule(0)->execution = number;
    kernel_go_schedule(0)->left = left;
}

static void set_chance(uint32_t chance)
{
    kernel_set_go_delay(PROBE, &(struct go_delay){0});
    kernel_go_schedule(0)->chance = chance;
}

/* Which of so many hits are held up, as a set of bits; the records tell the same. */
static uint64_t held_hits(unsigned count)
{
    const struct kernel_registers at = registers();
    uint64_t set = 0;

    for (unsigned i = 0; i < count; i++) {
        unsigned before = kernel_threads_held();
        const struct wire_go *record = hit_probe(&delay_probe, &at);

        cr_assert_eq(kernel_threads_held() - before, record != NULL);
        if (!record)
            continue;
        cr_assert_eq(record->object, i, "hit %u is told as %llu", i, record->object);
        cr_assert_eq(record->place, at.ip);
        set |= 1ull << i;
    }
    return set;
}

Test(goroutines, nobody_is_held_up_unless_that_is_wanted)
{
    set_chance(UINT32_MAX);
    cr_assert_eq(held_hits(8), 0, "no execution");
    begin_execution(1, 0);
    cr_assert_eq(held_hits(8), 0, "none is left");
    begin_execution(2, 8);
    set_chance(0);
    cr_assert_eq(held_hits(8), 0, "no chance");
}

Test(goroutines, no_more_than_the_bound_are_held_up_in_an_execution)
{
    begin_execution(1, 3);
    set_chance(UINT32_MAX);
    cr_assert_eq(held_hits(8), 7);
    cr_assert_eq(kernel_go_schedule(0)->left, 0);
    begin_execution(2, 1);
    cr_assert_eq(held_hits(8), 1, "hits are counted anew");
}

Test(goroutines, a_list_is_followed_hit_by_hit)
{
    struct go_schedule *schedule = kernel_go_schedule(0);

    begin_execution(1, 8);
    set_chance(UINT32_MAX);
    schedule->choice_count = 3;
    schedule->choices[0].probe = PROBE;
    schedule->choices[0].hit = 2;
    schedule->choices[1].probe = PROBE + 1;
    schedule->choices[1].hit = 3;
    schedule->choices[2].probe = PROBE;
    schedule->choices[2].hit = 5;
    schedule->choices[3].probe = PROBE; /* behind the end of the list */
    schedule->choices[3].hit = 6;
    cr_assert_eq(held_hits(8), 1u << 2 | 1u << 5);
    schedule->choice_count = GO_CHOICES_MAX;
    schedule->choices[GO_CHOICES_MAX - 1].probe = PROBE;
    schedule->choices[GO_CHOICES_MAX - 1].hit = 7;
    begin_execution(2, 8);
    cr_assert_eq(held_hits(8), 1u << 2 | 1u << 5 | 1u << 6 | 1u << 7,
                 "all of a full list, which its last is in");
}

Test(goroutines, a_choice_may_follow_the_one_before_it)
{
    struct go_schedule *schedule = kernel_go_schedule(0);

    begin_execution(1, 8);
    set_chance(0);
    schedule->choice_count = 3;
    schedule->choices[0] = (struct go_choice){PROBE, GO_HIT_FOLLOWING}; /* nothing comes before it */
    schedule->choices[1] = (struct go_choice){PROBE, 3};
    schedule->choices[2] = (struct go_choice){PROBE, GO_HIT_FOLLOWING | 2};
    cr_assert_eq(held_hits(12), 1u << 3 | 1u << 6, "the third behind hit 3");
    cr_assert_eq(schedule->taken, 6);
}

/* The hit of a go statement, and the return of runtime.newproc in the goroutine at `g`. */
static const struct wire_go *make_goroutine(uint64_t g, unsigned *ret_held)
{
    const struct go_probe statement = {
        .kind = GO_AT_DELAY, .program = PROGRAM, .place_in_code = 1, .behind = 1};
    const struct go_probe behind = {.kind = GO_AT_BEHIND_GO, .program = PROGRAM};
    struct kernel_registers at = registers();
    unsigned before = kernel_threads_held();
    size_t records;

    hit_probe(&statement, &at);
    *ret_held = kernel_threads_held() - before;
    at.r14 = g;
    records = kernel_records();
    kernel_set_go_probe(PROBE + 1, &behind);
    kernel_go_hit(TGID, TID, PROBE + 1, &at);
    return kernel_records() > records ? kernel_record(kernel_records() - 1) : NULL;
}

Test(goroutines, a_go_statement_is_a_place_before_it_and_one_behind_it)
{
    struct go_schedule *schedule = kernel_go_schedule(0);
    const struct wire_go *record;
    unsigned held;

    begin_execution(1, 8);
    set_chance(0);
    schedule->choice_count = 3;
    for (unsigned i = 0; i < 3; i++)
        schedule->choices[i].probe = PROBE;
    schedule->choices[0].hit = 1; /* behind the first one */
    schedule->choices[1].hit = 2; /* before the second one */
    schedule->choices[2].hit = 5; /* behind the third one */
    record = make_goroutine(at_word(G), &held);
    cr_assert_eq(held, 0);
    cr_assert_not_null(record);
    cr_assert_eq(record->probe, PROBE);
    cr_assert_eq(record->object, 1);
    cr_assert_eq(record->value, at_word(G));
    cr_assert_null(make_goroutine(at_word(G), &held));
    cr_assert_eq(held, 1, "before the second one, and not behind it");
    cr_assert_null(make_goroutine(at_word(OTHER_G), &held), "another goroutine returns");
    cr_assert_eq(kernel_threads_held(), 2);
}

Test(goroutines, chance_repeats_itself_with_the_same_seed)
{
    struct go_schedule *schedule = kernel_go_schedule(0);
    uint64_t first, second, other;
    unsigned held = 0;

    set_chance(1u << 30); /* one in four */
    schedule->seed = 12345;
    begin_execution(1, 64);
    first = held_hits(64);
    begin_execution(2, 64);
    second = held_hits(64);
    cr_assert_eq(first, second);
    schedule->seed = 12346;
    begin_execution(3, 64);
    other = held_hits(64);
    cr_assert_neq(first, other);
    for (uint64_t seed = 0; seed < 16; seed++) {
        schedule->seed = seed;
        begin_execution((uint32_t)(4 + seed), 64);
        held += (unsigned)__builtin_popcountll(held_hits(64));
    }
    cr_assert(held > 196 && held < 316, "%u of 1024 with a chance of a quarter", held);
}

Test(goroutines, executions_beside_each_other_have_their_own_hits_and_bounds)
{
    begin_execution(1, 2);
    set_chance(UINT32_MAX);
    *kernel_go_schedule(5) =
        (struct go_schedule){.execution = 2, .left = 4, .choice_count = 1, .choices = {{PROBE, 1}}};
    cr_assert_eq(held_hits(1), 1);
    kernel_set_go_worker(TGID, 5);
    cr_assert_eq(held_hits(4), 2, "the list of worker 5, from its first hit");
    kernel_set_go_worker(TGID, 0);
    cr_assert_eq(kernel_go_schedule(0)->left, 1);
    cr_assert_eq(kernel_go_schedule(5)->left, 3);
}

Test(goroutines, the_end_of_a_process_is_held_up_only_if_that_is_wanted)
{
    const struct kernel_registers at = registers();

    hit_kind(GO_AT_EXIT, &at);
    cr_assert_eq(kernel_threads_held(), 0);
    kernel_go_schedule(0)->stop_exit = 1;
    hit_kind(GO_AT_EXIT, &at);
    cr_assert_eq(kernel_threads_held(), 1);
    hit_kind(GO_AT_PANIC, &at);
    cr_assert_eq(kernel_threads_held(), 1, "nothing else is");
}
