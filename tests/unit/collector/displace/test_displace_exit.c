/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which functions have exits, and why others have none; and that functions with probes at their entry and at
 * their exits do what they did without, with any registers, flags, stack and red zone, and with a signal
 * between any two instructions of their stubs.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include "base/array.h"
#include "collector/displace/displace_exit.h"
#include "image/flow/flow_image.h"
#include "tests/unit/collector/stub_machine.h"

/* Name, what is said of it, how many exits, code. %r11 points to exit_helper. */
#define SUBJECTS(X) \
    X(frame, EXIT_OK, 1, "push %rbp; mov %rsp, %rbp; lea (%rdi, %rsi), %rax; nop; leave; ret") \
    X(two, EXIT_OK, 2, \
      "test %rdi, %rdi; js 1f; lea 1(%rdi), %rax; add $3, %rax; ret; 1: mov $2, %eax; mov %rsi, %rcx; ret") \
    X(pops, EXIT_OK, 1, \
      "push %r15; push %r14; push %rbx; mov %rdi, %rax; pop %rbx; pop %r14; pop %r15; ret") \
    X(loads, EXIT_OK, 1, "mov %rdi, %rcx; xor %rsi, %rcx; mov exit_data(%rip), %rax; ret") \
    X(sets_flags, EXIT_OK, 1, "mov %rdi, %rax; adc %rsi, %rax; add %rsi, %rax; cmp %rdi, %rax; ret") \
    X(uses_red_zone, EXIT_OK, 1, \
      "mov -8(%rsp), %rax; mov %rdi, -128(%rsp); mov -16(%rsp), %rcx; mov %rcx, %rdx; ret") \
    X(repeated, EXIT_OK, 1, "mov %rdi, %rax; mov %rsi, %rcx; add %rax, %rcx; repz ret") \
    X(with_number, EXIT_OK, 1, "mov %rdi, %rax; mov %rsi, %rcx; add %rax, %rcx; ret $0") \
    X(behind_call, EXIT_OK, 1, "push %rbx; mov %rdi, %rbx; nop; call exit_helper; pop %rbx; ret") \
    X(only_a_return, EXIT_OK, 1, "ret") \
    X(in_entry, EXIT_OK, 1, "mov %edi, %eax; ret") \
    X(behind_entry, EXIT_OK, 1, "mov $1, %eax; ret") \
    X(endbr, EXIT_OK, 1, "endbr64; mov %rdi, %rax; ret") \
    X(led_to, EXIT_OK, 1, "test %rdi, %rdi; jz 1f; mov %rsi, %rax; 1: ret") \
    X(loops, EXIT_OK, 1, "mov %rdi, %rcx; and $7, %ecx; 1: dec %rcx; jns 1b; mov %rsi, %rax; inc %rax; ret") \
    X(leaves_by_tail_call, EXIT_OK, 0, "add %rsi, %rdi; add %rsi, %rdi; jmp exit_helper") \
    X(may_leave_by_tail_call, EXIT_OK, 1, \
      "test %rdi, %rdi; js exit_helper; mov %rdi, %rax; mov %rsi, %rcx; ret") \
    X(no_room, EXIT_SHORT, 0, \
      "test %rdi, %rdi; jz 1f; js 2f; mov %rsi, %rax; 1: ret; 2: mov $5, %eax; jmp 1b") \
    X(led_into, EXIT_SHORT, 0, \
      "test %rdi, %rdi; jz 1f; js 2f; xor %eax, %eax; 1: push %rsi; pop %rcx; ret; 2: mov $5, %eax; jmp 1b") \
    X(anywhere, EXIT_INDIRECT, 0, \
      "test %rdi, %rdi; jz 1f; jmp *%r11; 1: mov %rsi, %rax; mov %rsi, %rcx; ret") \
    X(unseen, EXIT_UNSEEN, 0, \
      "mov %rdi, %rax; mov %rsi, %rdx; jmp 1f; mov $1, %eax; ret; 1: mov %rsi, %rcx; mov %rsi, %rdx; ret") \
    X(falls, EXIT_FALLS, 0, "mov %rdi, %rax; mov %rsi, %rdx; mov %rsi, %rcx") \
    X(leaves, EXIT_TAIL, 0, "add %rsi, %rdi; add %rsi, %rdi; jmp exit_label")

#define DECLARE(name, refusal, exits, code) extern uint8_t exit_##name[];
SUBJECTS(DECLARE)
extern uint8_t exit_helper[], exits_begin[], exits_end[];

#define FUNCTION(name, code) \
    ".balign 16, 0x90\n.globl exit_" #name "\n.type exit_" #name ", @function\nexit_" #name ": " code \
    "\n.size exit_" #name ", . - exit_" #name "\n"
#define DEFINE(name, refusal, exits, code) FUNCTION(name, code)
__asm__("\n    .pushsection .text.exits, \"ax\", @progbits\n"
        ".balign 4096, 0x90\n.globl exits_begin, exits_end\nexits_begin:\n" FUNCTION(
            helper, "lea 8(%rdi), %rax; xor %rdi, %rcx; mov %rcx, %rdx; ret")
            SUBJECTS(DEFINE) ".balign 16, 0x90\nexit_label: mov %rdi, %rax; ret\n"
                             ".balign 4096, 0x90\nexits_end: .popsection\n");

uint64_t exit_data[2];

static const struct subject {
    const char *name;
    uint8_t *code;
    enum exit_refusal refusal;
    size_t exits;
} subjects[] = {
#define ENTER(name, refusal, exits, code) {#name, exit_##name, refusal, exits},
    SUBJECTS(ENTER)};

/* ---------------------------------------------------------------------------------------------- looking */

/* This program, looked at. */
static struct {
    struct elf_image *image;
    struct image_function *functions;
    size_t count;
    struct displace_site *sites;
    bool *chosen;
    struct flow_map *map;
    struct displace_exits *exits;
    uint64_t bias;
} self;

static size_t index_of(const char *name)
{
    char symbol[64];

    snprintf(symbol, sizeof(symbol), "exit_%s", name);
    for (size_t i = 0; i < self.count; i++)
        if (!strcmp(self.functions[i].name, symbol))
            return i;
    cr_assert_fail("%s is no function", symbol);
    return 0;
}

static void look(void)
{
    struct displace_entries entries;
    bool all_taken;

    cr_assert_eq(elf_image_open("/proc/self/exe", &self.image, NULL), 0);
    cr_assert_eq(image_functions(self.image, &self.functions, &self.count, NULL), 0);
    cr_assert_eq(flow_image_map(self.image, self.functions, self.count, &self.map, &all_taken, NULL), 0);
    cr_assert_eq(displace_image(self.image, self.functions, self.count, self.map, &self.sites, NULL), 0);
    self.chosen = calloc(self.count, sizeof(*self.chosen));
    for (size_t i = 0; i < self.count; i++)
        self.chosen[i] = self.sites[i].refusal == DISPLACE_OK;
    entries = (struct displace_entries){self.sites, self.chosen, self.chosen, self.map};
    cr_assert_eq(displace_exits_new(self.image, self.functions, self.count, &entries, &self.exits, NULL), 0);
    self.bias = (uint64_t)exit_helper - self.functions[index_of("helper")].address;
}

static void release(void)
{
    flow_map_free(self.map);
    displace_exits_free(self.exits);
    free(self.chosen);
    free(self.sites);
    image_functions_free(self.functions, self.count);
    elf_image_free(self.image);
}

TestSuite(displace_exit, .init = look, .fini = release);

Test(displace_exit, says_which_functions_have_exits)
{
    for (size_t i = 0; i < ARRAY_SIZE(subjects); i++) {
        size_t count;

        displace_exits_of(self.exits, index_of(subjects[i].name), &count);
        cr_expect_eq(self.exits->refusals[index_of(subjects[i].name)], subjects[i].refusal, "%s: %s",
                     subjects[i].name,
                     displace_exit_refusal_text(self.exits->refusals[index_of(subjects[i].name)]));
        cr_expect_eq(count, subjects[i].exits, "%s: %zu", subjects[i].name, count);
    }
}

Test(displace_exit, returns_at_the_entry_need_no_jump)
{
    static const char *const names[] = {"only_a_return", "in_entry", "behind_entry", "endbr"};
    size_t count;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        cr_expect(displace_exits_of(self.exits, index_of(names[i]), &count)->in_entry, "%s", names[i]);
    cr_expect_not(displace_exits_of(self.exits, index_of("led_to"), &count)->in_entry);
}

Test(displace_exit, moves_no_more_than_the_jump_needs)
{
    size_t count;
    const struct displace_exit *exit = displace_exits_of(self.exits, index_of("pops"), &count);

    cr_expect_eq(exit->displacement.count, 3, "two pops and the return");
    cr_expect_eq(exit->displacement.length, 5);
    exit = displace_exits_of(self.exits, index_of("led_to"), &count);
    cr_expect_eq(exit->displacement.count, 1, "something leads to the return: padding makes up the rest");
    exit = displace_exits_of(self.exits, index_of("behind_call"), &count);
    cr_expect_eq(exit->displacement.count, 2, "a call comes back to what moves first");
}

Test(displace_exit, a_function_without_an_entry_has_no_exits)
{
    struct displace_entries entries = {self.sites, self.chosen, self.chosen, self.map};
    size_t count;

    displace_exits_free(self.exits);
    self.chosen[index_of("frame")] = self.chosen[index_of("helper")] = false;
    cr_assert_eq(displace_exits_new(self.image, self.functions, self.count, &entries, &self.exits, NULL), 0);
    cr_expect_eq(self.exits->refusals[index_of("frame")], EXIT_NO_ENTRY);
    cr_expect_null(displace_exits_of(self.exits, index_of("frame"), &count));
    cr_expect_eq(self.exits->refusals[index_of("leaves_by_tail_call")], EXIT_TAIL);
}

/* ---------------------------------------------------------------------------------------------- running */

#define ENTRY 1
#define EXIT (1 | AGENT_EXIT)
#define PROBES 4

/* The probes of a function: its exits' before its entry's. */
struct probes {
    struct machine_probe probes[PROBES];
    size_t count;
};

static void put_probes(struct probes *probes, const struct subject *subject)
{
    size_t index = index_of(subject->name), exits;
    const struct displace_exit *exit = displace_exits_of(self.exits, index, &exits);
    struct stub_order entry = {.number = ENTRY,
                               .function = (uint64_t)subject->code,
                               .code = subject->code,
                               .displacement = &self.sites[index].displacement};

    probes->count = 0;
    for (; exits; exit++, exits--) {
        struct stub_order order = {.number = EXIT,
                                   .at_exit = true,
                                   .function = exit->address + self.bias,
                                   .code = (const uint8_t *)(exit->address + self.bias),
                                   .displacement = &exit->displacement};

        machine_put_stub(&probes->probes[probes->count], order, !exit->in_entry);
        if (exit->in_entry)
            entry.exit = (uint64_t)probes->probes[probes->count].code;
        probes->count++;
    }
    machine_put_stub(&probes->probes[probes->count++], entry, true);
}

static void remove_probes(const struct probes *probes)
{
    for (size_t i = probes->count; i > 0; i--)
        machine_unprobe(&probes->probes[i - 1]);
}

static void run(struct machine_state *outcome, const struct machine_state *state, const void *function)
{
    exit_data[0] = 0x0706050403020100;
    *outcome = *state;
    machine_run(outcome, function);
}

static void expect_same(const struct machine_state *is, const struct machine_state *was, const char *name)
{
    for (size_t i = 0; i < REGISTERS; i++)
        cr_assert_eq(is->registers[i], was->registers[i], "%s: register %zu", name, i);
    cr_assert_eq(is->flags, was->flags, "%s: flags are %lx, were %lx", name, is->flags, was->flags);
    cr_assert_arr_eq(is->red_zone, was->red_zone, sizeof(was->red_zone), "%s", name);
    cr_assert_arr_eq(is->above, was->above, sizeof(was->above), "%s", name);
}

/* %r11 is for the function that jumps there; half of the numbers are small. */
static void make_state(struct machine_state *state, uint64_t *seed)
{
    machine_randomise(state, seed);
    state->registers[11] = (uint64_t)exit_helper;
    if (machine_random(seed) % 2)
        state->registers[RDI] = machine_random(seed) % 2;
}

static void expect_record(const struct agent_record *record, uint32_t number, const char *name)
{
    cr_assert_eq(record->function, number, "%s", name);
    cr_assert_eq(agent_record_is_exit(record), number == EXIT);
    cr_assert_eq(agent_record_sp(record), machine_entry_sp(), "%s", name);
    cr_assert_eq(record->return_address, (uint32_t)machine_return_address(), "%s", name);
}

static bool leaves_by_tail_call(const struct subject *subject, const struct machine_state *state)
{
    return !subject->exits ||
           (!strcmp(subject->name, "may_leave_by_tail_call") && (int64_t)state->registers[RDI] < 0);
}

/* With room for both records, for one, and for none. */
static void compare(const struct subject *subject, uint64_t *seed)
{
    struct probes probes;

    for (size_t i = 0; i < 60; i++) {
        size_t room = i % 3, expected;
        struct machine_state state, was, is;

        make_state(&state, seed);
        run(&was, &state, subject->code);
        put_probes(&probes, subject);
        machine_give_room(room);
        run(&is, &state, subject->code);
        remove_probes(&probes);
        expect_same(&is, &was, subject->name);
        expected = leaves_by_tail_call(subject, &state) ? 1 : 2;
        for (size_t k = 0; k < room && k < expected; k++)
            expect_record(&machine_records()[k], k ? EXIT : ENTRY, subject->name);
        cr_assert_eq(machine_records()[expected < room ? expected : room].function, 0, "%s: another record",
                     subject->name);
    }
}

static void open_subjects(void)
{
    machine_make_writable(exits_begin, exits_end);
    machine_open_area(exits_begin);
}

Test(displace_exit, functions_do_what_they_did)
{
    uint64_t seed = 1;

    open_subjects();
    for (size_t i = 0; i < ARRAY_SIZE(subjects); i++)
        if (subjects[i].refusal == EXIT_OK)
            compare(&subjects[i], &seed);
}

Test(displace_exit, functions_do_what_they_did_with_times)
{
    uint64_t seed = 2, before = __builtin_ia32_rdtsc();

    open_subjects();
    machine_keep_times();
    for (size_t i = 0; i < ARRAY_SIZE(subjects); i++)
        if (subjects[i].refusal == EXIT_OK)
            compare(&subjects[i], &seed);
    cr_expect_geq(machine_times()[0], before);
    cr_expect_geq(machine_times()[1], machine_times()[0]);
    cr_expect_leq(machine_times()[1], __builtin_ia32_rdtsc());
}

/* Where a thread that stands at a displaced instruction is put, the function ends as it would. */
Test(displace_exit, a_thread_can_be_moved_to_each_instruction)
{
    const struct subject *subject = &subjects[2]; /* pops */
    struct displace_exit exit;
    struct probes probes;
    size_t count;

    cr_assert_str_eq(subject->name, "pops");
    open_subjects();
    exit = *displace_exits_of(self.exits, index_of(subject->name), &count);
    put_probes(&probes, subject);
    for (size_t i = 0; i < exit.displacement.count; i++) {
        /* as many words as it pops, and the return address */
        uint64_t stack[4] = {1, 2, 0, 0}, *sp = &stack[i], returned = 0;
        const void *place = probes.probes[0].code + probes.probes[0].stub.moved[i];

        machine_give_room(1);
        __asm__ volatile(
            "lea 1f(%%rip), %%rax\n\tmov %%rax, %3\n\tmov %%rsp, %%r13\n\tmov %1, %%rsp\n\t"
            "jmp *%2\n1:\tmov %%rsp, %0\n\tmov %%r13, %%rsp"
            : "=&b"(returned)
            : "r"(sp), "r"(place), "m"(stack[2])
            : "rax", "r13", "r14", "r15", "memory", "cc");
        cr_assert_eq(returned, (uint64_t)&stack[3], "instruction %zu", i);
        cr_assert_eq(machine_records()[0].function, EXIT, "instruction %zu", i);
        cr_assert_eq(agent_record_sp(&machine_records()[0]), (uint64_t)&stack[2], "instruction %zu", i);
    }
    remove_probes(&probes);
}

/* ---------------------------------------------------------------------------------------------- signals */

static const struct probes *stepped;
static uint64_t steps_inside, nested_calls;
static void (*nested)(void);

/* After every instruction of the stubs. The handler's own calls have records, too. */
static void on_step(int number, siginfo_t *info, void *context)
{
    uint64_t pc = (uint64_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    bool inside = false;

    for (size_t i = 0; i < stepped->count; i++)
        inside |= pc - (uint64_t)stepped->probes[i].code < stepped->probes[i].stub.size ||
                  pc - (uint64_t)stepped->probes[i].aside < stepped->probes[i].stub.aside;
    if (!inside)
        return;
    steps_inside++;
    nested_calls++;
    nested();
}

static uint64_t count_records(uint32_t number, size_t room)
{
    uint64_t count = 0;

    for (size_t i = 0; i < room; i++)
        count += machine_records()[i].function == number;
    return count;
}

static void step_through(const struct subject *subject, uint64_t *seed)
{
    struct machine_state state, was, is;
    struct probes probes;

    make_state(&state, seed);
    run(&was, &state, subject->code);
    put_probes(&probes, subject);
    stepped = &probes;
    steps_inside = nested_calls = 0;
    machine_give_room(AREA_RECORDS);
    state.flags |= MACHINE_TRAP;
    run(&is, &state, subject->code);
    remove_probes(&probes);
    expect_same(&is, &was, subject->name);
    cr_assert_eq(count_records(ENTRY, AREA_RECORDS), 1, "%s", subject->name);
    cr_assert_eq(count_records(EXIT, AREA_RECORDS), leaves_by_tail_call(subject, &state) ? 0 : 1, "%s",
                 subject->name);
    cr_assert_eq(count_records(2, AREA_RECORDS), nested_calls, "%s", subject->name);
    cr_assert_geq(steps_inside, 14, "%s", subject->name);
}

Test(displace_exit, a_signal_between_any_two_instructions_loses_nothing)
{
    const struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    struct machine_probe probe;
    uint64_t seed = 3;

    open_subjects();
    machine_probe(&probe, exit_helper, &self.sites[index_of("helper")].displacement, 2);
    nested = (void (*)(void))exit_helper;
    cr_assert_eq(sigaction(SIGTRAP, &action, NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(subjects); i++)
        if (subjects[i].refusal == EXIT_OK && strcmp(subjects[i].name, "behind_call") != 0 &&
            !strstr(subjects[i].name, "tail_call")) /* they call what the handler calls */
            step_through(&subjects[i], &seed);
    machine_unprobe(&probe);
}
