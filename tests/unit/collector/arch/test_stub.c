/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Functions with probes on them do what they did without: written by hand for every form of instruction that
 * moves, and made at random; with any registers, flags, stack and red zone; and with a signal between any two
 * instructions of the stub, whose handler runs into stubs itself.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include "base/array.h"
#include "collector/arch/stub.h"
#include "tests/unit/collector/stub_machine.h"

#define CODE "\n    .pushsection .text.subjects, \"ax\", @progbits\n"

/* Functions to be probed. %r10 points to subject_pointers, %r11 to subject_helper. */
#define SUBJECTS(X) \
    X(frame, "push %rbp; mov %rsp, %rbp; lea (%rdi, %rsi), %rax; pop %rbp; ret") \
    X(frame_of_subtraction, "sub $24, %rsp; mov %rdi, 8(%rsp); mov 8(%rsp), %rax; add $24, %rsp; ret") \
    X(pushes, "push %r15; push %r14; push %rbx; pop %rax; pop %r14; pop %r15; ret") \
    X(reads_flags, "adc %rsi, %rdi; mov %rdi, %rax; ret") \
    X(keeps_flags, "mov %rdi, %rax; mov %rsi, %rdx; ret") \
    X(pushes_flags, "pushfq; pop %rax; and $0x8d5, %eax; ret") \
    X(reads_red_zone, "mov -8(%rsp), %rax; mov -16(%rsp), %rdx; mov -128(%rsp), %rcx; ret") \
    X(reads_stack, "mov 8(%rsp), %rax; mov 16(%rsp), %rcx; ret") \
    X(reads_odd_registers, "lea (%r8, %r9), %rax; add %r12, %rax; xor %r13, %rax; ret") \
    X(endbr, "endbr64; mov %rdi, %rax; mov %rsi, %rcx; ret") \
    X(only_a_return, "ret") \
    X(short_and_padded, "mov %edi, %eax; ret") \
    X(loads_from_data, "mov subject_data(%rip), %rax; ret") \
    X(stores_to_data, "mov %rdi, subject_data + 8(%rip); ret") \
    X(immediate_behind, "cmpl $0x11223344, subject_data(%rip); sete %al; ret") \
    X(stores_immediate, "movq $0x11223344, subject_data + 16(%rip); ret") \
    X(short_immediate_behind, "addb $5, subject_data(%rip); ret") \
    X(address_of_data, "lea subject_data(%rip), %rax; ret") \
    X(locked, "lock xadd %rdi, subject_data(%rip); mov %rdi, %rax; ret") \
    X(three_byte_opcode, "pshufb subject_data(%rip), %xmm0; movq %xmm0, %rax; pxor %xmm0, %xmm0; ret") \
    X(three_bytes_and_immediate, "palignr $3, subject_data(%rip), %xmm0; pxor %xmm0, %xmm0; ret") \
    X(vector, "movdqu subject_data(%rip), %xmm0; movq %xmm0, %rax; ret") \
    X(branch_first, "jc 1f; mov $1, %eax; ret; 1: mov $2, %eax; ret") \
    X(branch_long, "jo 1f; mov $1, %eax; ret; .skip 200, 0x90; 1: mov $2, %eax; ret") \
    X(branch_second, "test %dil, %dil; jle 1f; mov $1, %eax; ret; 1: mov $2, %eax; ret") \
    X(two_branches, "js 1f; jp 1f; jz 2f; xor %eax, %eax; ret; 1: mov $1, %eax; ret; 2: mov $2, %eax; ret") \
    X(branches_away, "test %rdi, %rdi; js subject_helper; xor %eax, %eax; ret") \
    X(rcx_zero, "jrcxz 1f; mov $1, %eax; dec %rcx; ret; 1: mov $2, %eax; ret") \
    X(ecx_zero, "jecxz 1f; mov $1, %eax; ret; 1: mov $2, %eax; ret") \
    X(loops_once, "loop 1f; mov $1, %eax; ret; 1: mov $2, %eax; ret") \
    X(loops_while_equal, "loope 1f; loopne 1f; mov $1, %eax; ret; 1: mov $2, %eax; ret") \
    X(jumps_short, "jmp 1f; .balign 16, 0x90; 1: mov %rdi, %rax; ret") \
    X(jumps_long, "jmp subject_helper") \
    X(jumps_behind, "nop; nop; jmp 1f; .skip 200, 0xcc; 1: mov %rdi, %rax; ret") \
    X(jumps_by_table, "jmp *subject_pointers(%rip)") \
    X(jumps_by_register, "jmp *%r11") \
    X(calls, "call subject_helper; mov %rax, %rdx; ret") \
    X(calls_behind_push, "push %rbx; call subject_helper; pop %rbx; ret") \
    X(calls_by_table, "call *subject_pointers(%rip); mov %rax, %rdx; ret") \
    X(calls_by_address, "call *8(%r10, %rax, 0x1); ret") \
    X(calls_by_displacement, "call *0x100(%r10); mov %rax, %rdx; ret") \
    X(calls_by_register, "mov %rdi, %rax; call *%r11; mov %rax, %rdx; ret") \
    X(calls_next, "call 1f; 1: pop %rax; mov %rax, %rdx; ret")

#define DECLARE(name, code) extern uint8_t subject_##name[], subject_##name##_end[];
SUBJECTS(DECLARE)
extern uint8_t subject_helper[], subjects_begin[], subjects_end[];

/* The helper shows what it was called with: its return address, which must be in the original. */
#define DEFINE(name, code) \
    ".balign 16, 0x90\nsubject_" #name ": " code "\nsubject_" #name "_end: .globl subject_" #name \
    ", subject_" #name "_end\n"
__asm__(CODE ".balign 4096, 0x90\n"
             "subjects_begin: .globl subjects_begin, subjects_end, subject_helper\n"
             "subject_helper: mov (%rsp), %rax; xor %rdi, %rcx; ret\n" SUBJECTS(DEFINE)
             ".balign 4096, 0x90\n"
             "subjects_end: .popsection\n");

uint64_t subject_data[8];
void *subject_pointers[64];

struct subject {
    const char *name;
    uint8_t *begin, *end;
};

#define ENTER(name, code) {#name, subject_##name, subject_##name##_end},
static const struct subject subjects[] = {SUBJECTS(ENTER)};

/* ---------------------------------------------------------------------------------------------- comparing */

#define ROUNDS 40

static void set_data(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(subject_data); i++)
        subject_data[i] = 0x0706050403020100 * (i + 1);
    for (size_t i = 0; i < ARRAY_SIZE(subject_pointers); i++)
        subject_pointers[i] = subject_helper;
}

/* Half of the states have few turns left in rcx. */
static void make_state(struct machine_state *state, uint64_t *seed)
{
    machine_randomise(state, seed);
    if (machine_random(seed) % 2)
        state->registers[RCX] = machine_random(seed) % 3;
    state->registers[RAX] &= 0xf8;
    state->registers[10] = (uint64_t)subject_pointers;
    state->registers[11] = (uint64_t)subject_helper;
}

struct outcome {
    struct machine_state state;
    uint64_t data[ARRAY_SIZE(subject_data)];
};

static void run(struct outcome *outcome, const struct machine_state *state, const void *function)
{
    set_data();
    outcome->state = *state;
    machine_run(&outcome->state, function);
    memcpy(outcome->data, subject_data, sizeof(subject_data));
}

static void expect_same(const struct outcome *is, const struct outcome *was, const char *name)
{
    for (size_t i = 0; i < REGISTERS; i++)
        cr_assert_eq(is->state.registers[i], was->state.registers[i], "%s: register %zu is %lx, was %lx",
                     name, i, is->state.registers[i], was->state.registers[i]);
    cr_assert_eq(is->state.flags, was->state.flags, "%s: flags are %lx, were %lx", name, is->state.flags,
                 was->state.flags);
    cr_assert_arr_eq(is->state.red_zone, was->state.red_zone, sizeof(was->state.red_zone), "%s", name);
    cr_assert_arr_eq(is->state.above, was->state.above, sizeof(was->state.above), "%s", name);
    cr_assert_arr_eq(is->data, was->data, sizeof(was->data), "%s", name);
}

static void expect_record(const struct agent_record *record, uint32_t number, const char *name)
{
    cr_assert_eq(record->function, number, "%s", name);
    cr_assert_eq(agent_record_sp(record), machine_entry_sp(), "%s", name);
    cr_assert_eq(record->sp >> AGENT_TICK_SHIFT, 0x4321, "%s", name);
    cr_assert_eq(record->return_address, (uint32_t)machine_return_address(), "%s", name);
}

/* With room for a record, and without. */
static void compare(const struct subject *subject, const struct displacement *displacement, uint32_t number,
                    uint64_t *seed)
{
    struct outcome was[ROUNDS], is;
    struct machine_state states[ROUNDS];
    struct machine_probe probe;

    for (size_t i = 0; i < ROUNDS; i++) {
        make_state(&states[i], seed);
        run(&was[i], &states[i], subject->begin);
    }
    machine_probe(&probe, subject->begin, displacement, number);
    for (size_t i = 0; i < ROUNDS; i++) {
        bool has_room = i % 4 != 0;

        machine_give_room(has_room ? 1 : 0);
        run(&is, &states[i], subject->begin);
        expect_same(&is, &was[i], subject->name);
        cr_assert_eq(machine_slow_calls[number], has_room ? 0 : 1, "%s", subject->name);
        if (has_room)
            expect_record(machine_records(), number, subject->name);
        cr_assert_eq(machine_records()[has_room].function, 0, "%s: more than one record", subject->name);
    }
    machine_unprobe(&probe);
    run(&is, &states[0], subject->begin);
    expect_same(&is, &was[0], subject->name);
}

static void open_subjects(void)
{
    machine_make_writable(subjects_begin, subjects_end);
    machine_open_area(subjects_begin);
}

static struct displacement displace(const struct subject *subject)
{
    struct displacement displacement;
    enum displace_refusal refusal =
        machine_displace(subject->begin, (size_t)(subject->end - subject->begin),
                         ((size_t)(subject->end - subject->begin) + 15) / 16 * 16, &displacement);

    cr_assert_eq(refusal, DISPLACE_OK, "%s: %s", subject->name, displace_refusal_text(refusal));
    return displacement;
}

Test(stub, every_form_does_what_it_did)
{
    uint64_t seed = 1;

    open_subjects();
    for (size_t i = 0; i < ARRAY_SIZE(subjects); i++) {
        struct displacement displacement = displace(&subjects[i]);

        compare(&subjects[i], &displacement, (uint32_t)i + 1, &seed);
    }
}

Test(stub, every_form_does_what_it_did_with_times)
{
    uint64_t seed = 4, before = __builtin_ia32_rdtsc(), last;

    open_subjects();
    machine_keep_times();
    for (size_t i = 0; i < ARRAY_SIZE(subjects); i++) {
        struct displacement displacement = displace(&subjects[i]);

        compare(&subjects[i], &displacement, (uint32_t)i + 1, &seed);
        cr_assert_geq(machine_times()[0], before, "%s", subjects[i].name);
        for (size_t call = 0; machine_records()[call].function; call++) {
            last = machine_times()[call];
            cr_assert_geq(last, before, "%s", subjects[i].name);
            before = last;
        }
        cr_assert_leq(before, __builtin_ia32_rdtsc(), "%s", subjects[i].name);
    }
}

/* A thread that is losing calls: they are counted without the agent, which is asked once in a tick. */
Test(stub, a_lost_call_is_counted_and_does_what_it_did)
{
    uint64_t seed = 6;

    open_subjects();
    for (size_t i = 0; i < ARRAY_SIZE(subjects); i++) {
        struct displacement displacement = displace(&subjects[i]);
        struct machine_probe probe;
        struct machine_state state;
        struct outcome was, is;

        make_state(&state, &seed);
        run(&was, &state, subjects[i].begin);
        machine_probe(&probe, subjects[i].begin, &displacement, 1);
        machine_lose_calls();
        run(&is, &state, subjects[i].begin);
        expect_same(&is, &was, subjects[i].name);
        cr_assert_eq(machine_losses, 1, "%s", subjects[i].name);
        cr_assert_eq(machine_slow_calls[1], 0, "%s", subjects[i].name);
        cr_assert_eq(machine_records()[0].function, 0, "%s", subjects[i].name);
        machine_begin_tick();
        run(&is, &state, subjects[i].begin);
        expect_same(&is, &was, subjects[i].name);
        cr_assert_eq(machine_losses, 1, "%s", subjects[i].name);
        cr_assert_eq(machine_slow_calls[1], 1, "%s", subjects[i].name);
        machine_unprobe(&probe);
    }
}

/* ---------------------------------------------------------------------------------------------- at random */

/* Pieces without a way out, in which every register field may be any but rsp. */
static const struct {
    uint8_t length, code[8];
    int8_t modrm; /* where it is, with random registers; -1: none */
} pieces[] = {
    {3, {0x48, 0x01, 0xc0}, 2},              /* add */
    {3, {0x48, 0x11, 0xc0}, 2},              /* adc */
    {3, {0x48, 0x19, 0xc0}, 2},              /* sbb */
    {2, {0x39, 0xc0}, 1},                    /* cmp */
    {2, {0x31, 0xc0}, 1},                    /* xor */
    {3, {0x4d, 0x89, 0xc0}, 2},              /* mov, r8 to r15 */
    {4, {0x48, 0x0f, 0x42, 0xc0}, 3},        /* cmovb */
    {4, {0x48, 0x0f, 0xaf, 0xc0}, 3},        /* imul */
    {3, {0x48, 0xd3, 0xc0}, -1},             /* rol %cl, %rax */
    {1, {0xf5}, -1},                         /* cmc */
    {1, {0x90}, -1},                         /* nop */
    {5, {0x48, 0x89, 0x44, 0x24, 0xf0}, -1}, /* mov %rax, -16(%rsp) */
    {5, {0x48, 0x03, 0x44, 0x24, 0x88}, -1}, /* add -120(%rsp), %rax */
    {2, {0x53, 0x5b}, -1},                   /* push %rbx; pop %rbx */
    {2, {0x72, 0x00}, -1},                   /* jb to the next */
    {6, {0x0f, 0x84, 0, 0, 0, 0}, -1},       /* je to the next */
    {5, {0x05, 0x12, 0x34, 0x56, 0x78}, -1}, /* add $..., %eax */
    /* what overwrites a register or the flags, and what only seems to */
    {3, {0x0f, 0xb6, 0xc0}, 2},                    /* movzbl */
    {4, {0x48, 0x0f, 0xbf, 0xc0}, 3},              /* movswq */
    {4, {0x66, 0x0f, 0xbe, 0xc0}, 3},              /* movsbw */
    {3, {0x48, 0x63, 0xc0}, 2},                    /* movslq */
    {2, {0x88, 0xc0}, 1},                          /* movb, also of ah to bh */
    {2, {0x8a, 0xc0}, 1},                          /* the same */
    {3, {0x40, 0x88, 0xc0}, 2},                    /* movb, of sil and dil */
    {3, {0x66, 0x89, 0xc0}, 2},                    /* movw */
    {2, {0x8b, 0xc0}, 1},                          /* movl */
    {3, {0x44, 0x8b, 0xc0}, 2},                    /* movl to r8 to r15 */
    {2, {0x84, 0xc0}, 1},                          /* testb */
    {3, {0x48, 0x85, 0xc0}, 2},                    /* testq */
    {2, {0x30, 0xc0}, 1},                          /* xorb */
    {2, {0x33, 0xc0}, 1},                          /* xorl */
    {3, {0x4d, 0x29, 0xc0}, 2},                    /* subq, r8 to r15 */
    {3, {0x66, 0x31, 0xc0}, 2},                    /* xorw */
    {3, {0x0f, 0x94, 0xc0}, 2},                    /* sete */
    {3, {0x48, 0xf7, 0xd8}, -1},                   /* neg %rax */
    {2, {0xf6, 0xd1}, -1},                         /* not %cl */
    {3, {0x83, 0xe2, 0x70}, -1},                   /* and $112, %edx */
    {3, {0x80, 0xce, 0x11}, -1},                   /* or $17, %dh */
    {2, {0xa8, 0x40}, -1},                         /* test $64, %al */
    {2, {0x34, 0x21}, -1},                         /* xor $33, %al */
    {2, {0xb1, 0x07}, -1},                         /* mov $7, %cl */
    {5, {0xb8, 0x44, 0x33, 0x22, 0x11}, -1},       /* mov $..., %eax */
    {6, {0x41, 0xb9, 0x44, 0x33, 0x22, 0x11}, -1}, /* mov $..., %r9d */
    {4, {0x8d, 0x4c, 0x32, 0x05}, -1},             /* lea 5(%rdx, %rsi), %ecx */
    {4, {0x4f, 0x8d, 0x14, 0x1a}, -1},             /* lea (%r10, %r11), %r10 */
    {5, {0x0f, 0xb6, 0x44, 0x24, 0xf0}, -1},       /* movzbl -16(%rsp), %eax */
    {5, {0x44, 0x8b, 0x44, 0x24, 0xe8}, -1},       /* mov -24(%rsp), %r8d */
    {4, {0x8a, 0x54, 0x24, 0xf0}, -1},             /* mov -16(%rsp), %dl */
    {8, {0xc7, 0x44, 0x24, 0xd8, 1, 2, 3, 4}, -1}, /* movl $..., -40(%rsp) */
};

static size_t append_piece(uint8_t *code, uint64_t *seed)
{
    size_t chosen = machine_random(seed) % ARRAY_SIZE(pieces);

    memcpy(code, pieces[chosen].code, pieces[chosen].length);
    if (pieces[chosen].modrm >= 0) {
        uint64_t reg = machine_random(seed) % 8, rm = machine_random(seed) % 8;

        code[pieces[chosen].modrm] = (uint8_t)(0xc0 | (reg == RSP ? 0 : reg) << 3 | (rm == RSP ? 0 : rm));
    }
    return pieces[chosen].length;
}

Test(stub, functions_made_at_random_do_what_they_did)
{
    uint64_t seed = 2;
    size_t compared = 0;

    open_subjects();
    for (uint32_t i = 0; i < 4000; i++) {
        struct subject subject = {"random", subjects_begin, subjects_begin};
        struct displacement displacement;

        for (int piece = 0; piece < 8; piece++)
            subject.end += append_piece(subject.end, &seed);
        *subject.end++ = 0xc3;
        if (machine_displace(subject.begin, (size_t)(subject.end - subject.begin), 64, &displacement) !=
            DISPLACE_OK)
            continue; /* a branch to the next one within the first bytes */
        compare(&subject, &displacement, 1 + i % 60, &seed);
        compared++;
    }
    cr_assert_gt(compared, 2500);
}

/* ---------------------------------------------------------------------------------------------- signals */

static const struct machine_probe *stepped;
static void (*nested)(void);
static uint64_t steps_inside, nested_calls;

/* After every instruction of the stub. The handler's own calls go through a stub on the same slots. */
static void on_step(int number, siginfo_t *info, void *context)
{
    uint64_t pc = (uint64_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

    if (pc - (uint64_t)stepped->code >= stepped->stub.size &&
        pc - (uint64_t)stepped->aside >= stepped->stub.aside)
        return;
    steps_inside++;
    for (int i = 0; i < 2; i++) {
        nested_calls++;
        nested();
    }
}

static void count_records(uint64_t *own, uint64_t *others, size_t room)
{
    *own = machine_slow_calls[1];
    *others = machine_slow_calls[2];
    for (size_t i = 0; i < room; i++) {
        *own += machine_records()[i].function == 1;
        *others += machine_records()[i].function == 2;
    }
}

static void step_through(const struct subject *subject, size_t room, uint64_t *seed)
{
    struct displacement displacement = displace(subject);
    struct machine_probe probe;
    struct outcome was, is;
    struct machine_state state;
    uint64_t own, others;

    make_state(&state, seed);
    run(&was, &state, subject->begin);
    machine_probe(&probe, subject->begin, &displacement, 1);
    stepped = &probe;
    steps_inside = nested_calls = 0;
    machine_give_room(room);
    state.flags |= MACHINE_TRAP;
    run(&is, &state, subject->begin);
    machine_unprobe(&probe);
    expect_same(&is, &was, subject->name);
    count_records(&own, &others, room);
    cr_assert_eq(own, 1, "%s: %lu records of one call", subject->name, own);
    cr_assert_eq(others, nested_calls, "%s: %lu of %lu calls", subject->name, others, nested_calls);
    cr_assert_geq(steps_inside, 14, "%s", subject->name);
}

/* The trap flag gives a signal between any two instructions. With little room the chunk runs full at each of
 * these places in turn. */
static void step_through_all(uint64_t seed)
{
    const struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    static const struct subject nested_subject = {"nested", subject_reads_odd_registers,
                                                  subject_reads_odd_registers_end};
    struct displacement displacement = displace(&nested_subject);
    struct machine_probe probe;

    cr_assert_eq(sigaction(SIGTRAP, &action, NULL), 0);
    machine_probe(&probe, nested_subject.begin, &displacement, 2);
    nested = (void (*)(void))nested_subject.begin;
    for (size_t i = 0; i < ARRAY_SIZE(subjects); i++)
        if (subjects[i].begin != nested_subject.begin && subjects[i].begin != subject_pushes_flags)
            step_through(&subjects[i], AREA_RECORDS, &seed);
    for (size_t room = 0; room < 80; room++)
        step_through(&subjects[0], room, &seed);
    machine_unprobe(&probe);
}

Test(stub, a_signal_between_any_two_instructions_loses_nothing)
{
    open_subjects();
    step_through_all(3);
}

Test(stub, a_signal_between_any_two_instructions_loses_no_time)
{
    open_subjects();
    machine_keep_times();
    step_through_all(5);
}

/* ---------------------------------------------------------------------------------------------- bounds */

Test(stub, another_threads_slots_are_not_used)
{
    struct displacement displacement = displace(&subjects[0]);
    const uint32_t other = 1;
    struct machine_state state;
    struct machine_probe probe;
    uint64_t seed = 4;

    open_subjects();
    machine_probe(&probe, subjects[0].begin, &displacement, 1);
    machine_give_room(10);
    __asm__ volatile("movl %0, %%fs:(%1)" : : "r"(other), "r"((uint64_t)AGENT_OWNER) : "memory");
    make_state(&state, &seed);
    machine_run(&state, subjects[0].begin);
    cr_assert_eq(machine_slow_calls[1], 1);
    cr_assert_eq(machine_records()[0].function, 0);
    cr_assert_eq(machine_slow_return, machine_return_address());
    machine_unprobe(&probe);
}

Test(stub, says_when_it_does_not_fit)
{
    const uint8_t load[] = {0x48, 0x8b, 0x05, 0, 0, 0, 0}; /* mov 0(%rip), %rax */
    struct displacement displacement = {.length = sizeof(load), .count = 1, .falls = true};
    struct stub_order order = {.number = 1,
                               .address = 0x10000000,
                               .aside = 0x10100000,
                               .function = 0x20000000,
                               .head = 0x0ff00000,
                               .code = load,
                               .displacement = &displacement};
    uint8_t bytes[512], aside[512];
    struct stub stub = {.size = 77};

    cr_assert_eq(stub_emit(&order, bytes, 40, aside, &stub), -ENOSPC);
    order.function = 0x110000000;
    cr_assert_eq(stub_emit(&order, bytes, sizeof(bytes), aside, &stub), -ERANGE);
    order.function = 0x20000000;
    order.head = 0x110000000;
    cr_assert_eq(stub_emit(&order, bytes, sizeof(bytes), aside, &stub), -ERANGE);
    cr_assert_eq(stub.size, 77, "untouched");
    order.head = 0x0ff00000;
    cr_assert_eq(stub_emit(&order, bytes, sizeof(bytes), aside, &stub), 0);
    cr_assert_eq(stub_patch(0, 0x80000004, bytes), 0);
    cr_assert_eq(stub_patch(0, 0x80000005, bytes), -ERANGE);
}
