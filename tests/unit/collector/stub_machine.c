/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "tests/unit/collector/stub_machine.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collector/arch/stub.h"
#include "image/flow/branch_targets.h"

#define PAGE 4096
#define STUBS_BYTES (256 << 10)
#define CHUNKS_AT (AGENT_STUBS_OFFSET + STUBS_BYTES)
#define TIMES_AT (CHUNKS_AT + (AREA_RECORDS + 16) * sizeof(struct agent_record))
#define AREA_BYTES (TIMES_AT + (AREA_RECORDS + 16) * sizeof(uint64_t))
#define REACH (1UL << 30) /* half of it, to be sure */

static uint8_t stack[MACHINE_STACK] __attribute__((aligned(64)));
static uint8_t *area;
static size_t stubs_used, aside_used;

volatile uint64_t machine_slow_calls[64], machine_slow_return;

/* ---------------------------------------------------------------------------------------------- running */

void machine_enter(uint64_t *registers, uint64_t *flags, const void *function);

/* Vector registers are not part of a state: %xmm0 is all ones. The trap flag must be gone before C goes on.
 */
__asm__(
    ".local machine_saved_rsp, machine_saved_rdi\n"
    ".comm machine_saved_rsp, 8, 8\n"
    ".comm machine_saved_rdi, 8, 8\n"
    ".local machine_registers, machine_flags, machine_function\n"
    ".comm machine_registers, 8, 8\n"
    ".comm machine_flags, 8, 8\n"
    ".comm machine_function, 8, 8\n"
    ".text\n"
    ".globl machine_enter\n"
    "machine_enter:\n"
    "    push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
    "    mov %rsp, machine_saved_rsp(%rip)\n"
    "    mov %rdi, machine_registers(%rip)\n"
    "    mov %rsi, machine_flags(%rip)\n"
    "    mov %rdx, machine_function(%rip)\n"
    "    pcmpeqd %xmm0, %xmm0\n"
    "    mov (%rsi), %rax\n"
    "    mov 32(%rdi), %rsp\n"
    "    mov %rax, -512(%rsp)\n"
    "    mov 0(%rdi), %rax; mov 8(%rdi), %rcx; mov 16(%rdi), %rdx; mov 24(%rdi), %rbx\n"
    "    mov 40(%rdi), %rbp; mov 48(%rdi), %rsi\n"
    "    mov 64(%rdi), %r8; mov 72(%rdi), %r9; mov 80(%rdi), %r10; mov 88(%rdi), %r11\n"
    "    mov 96(%rdi), %r12; mov 104(%rdi), %r13; mov 112(%rdi), %r14; mov 120(%rdi), %r15\n"
    "    mov 56(%rdi), %rdi\n"
    "    lea -512(%rsp), %rsp\n"
    "    popfq\n"
    "    lea 504(%rsp), %rsp\n"
    "    call *machine_function(%rip)\n"
    "    mov %rdi, machine_saved_rdi(%rip)\n"
    "    mov machine_registers(%rip), %rdi\n"
    "    mov %rax, 0(%rdi); mov %rcx, 8(%rdi); mov %rdx, 16(%rdi); mov %rbx, 24(%rdi)\n"
    "    mov %rsp, 32(%rdi); mov %rbp, 40(%rdi); mov %rsi, 48(%rdi)\n"
    "    mov %r8, 64(%rdi); mov %r9, 72(%rdi); mov %r10, 80(%rdi); mov %r11, 88(%rdi)\n"
    "    mov %r12, 96(%rdi); mov %r13, 104(%rdi); mov %r14, 112(%rdi); mov %r15, 120(%rdi)\n"
    "    mov machine_saved_rdi(%rip), %rax\n"
    "    mov %rax, 56(%rdi)\n"
    "    lea -512(%rsp), %rsp\n"
    "    pushfq\n"
    "    pop %rax\n"
    "    mov %rax, %rcx\n"
    "    and $~0x100, %rcx\n"
    "    push %rcx\n"
    "    popfq\n"
    "    mov machine_flags(%rip), %rsi\n"
    "    mov %rax, (%rsi)\n"
    "    mov machine_saved_rsp(%rip), %rsp\n"
    "    pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
    "    cld\n"
    "    ret\n");

/* Where the stack pointer is before the call; what is above it is for the function to see. */
static uint8_t *stack_top(void)
{
    return stack + sizeof(stack) - sizeof(((struct machine_state *)NULL)->above);
}

uint64_t machine_entry_sp(void)
{
    return (uint64_t)(stack_top() - 8);
}

uint64_t machine_return_address(void)
{
    uint64_t address;

    memcpy(&address, stack_top() - 8, sizeof(address));
    return address;
}

void machine_run(struct machine_state *state, const void *function)
{
    uint64_t others;

    __asm__ volatile("pushfq; popq %0" : "=r"(others));
    state->flags = (others & ~(uint64_t)MACHINE_FLAGS) | (state->flags & (MACHINE_FLAGS | MACHINE_TRAP));
    state->registers[RSP] = (uint64_t)stack_top();
    memcpy(stack_top() - 8 - sizeof(state->red_zone), state->red_zone, sizeof(state->red_zone));
    memcpy(stack_top(), state->above, sizeof(state->above));
    machine_enter(state->registers, &state->flags, function);
    state->flags &= MACHINE_FLAGS;
    memcpy(state->red_zone, stack_top() - 8 - sizeof(state->red_zone), sizeof(state->red_zone));
    memcpy(state->above, stack_top(), sizeof(state->above));
}

/* splitmix64 */
uint64_t machine_random(uint64_t *seed)
{
    uint64_t value = *seed += 0x9e3779b97f4a7c15;

    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
    value = (value ^ value >> 27) * 0x94d049bb133111eb;
    return value ^ value >> 31;
}

void machine_randomise(struct machine_state *state, uint64_t *seed)
{
    for (size_t i = 0; i < REGISTERS; i++)
        state->registers[i] = machine_random(seed);
    state->flags = machine_random(seed) & MACHINE_FLAGS;
    for (size_t i = 0; i < sizeof(state->red_zone); i++)
        state->red_zone[i] = (uint8_t)machine_random(seed);
    for (size_t i = 0; i < sizeof(state->above); i++)
        state->above[i] = (uint8_t)machine_random(seed);
}

/* ---------------------------------------------------------------------------------------------- the area */

void machine_slow(void);

__asm__(
    ".text\n"
    ".globl machine_slow\n"
    "machine_slow:\n"
    "    mov (%rdx), %rdx\n"
    "    mov %rdx, machine_slow_return(%rip)\n"
    "    lea machine_slow_calls(%rip), %rdx\n"
    "    and $63, %ecx\n"
    "    incq (%rdx, %rcx, 8)\n"
    "    ret\n");

void machine_make_writable(void *first, void *last)
{
    uint8_t *from = (uint8_t *)((uintptr_t)first / PAGE * PAGE);

    cr_assert_eq(mprotect(from, (size_t)((uint8_t *)last - from), PROT_READ | PROT_WRITE | PROT_EXEC), 0);
}

static uint8_t *map_near(const void *near)
{
    for (uintptr_t distance = 1 << 24; distance < REACH; distance += 1 << 24) {
        void *wanted = (void *)((uintptr_t)near / PAGE * PAGE - distance);
        void *got = mmap(wanted, AREA_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

        if (got != MAP_FAILED)
            return got;
    }
    return NULL;
}

void machine_open_area(const void *near)
{
    static const uint8_t jump_behind[] = {0xff, 0x25, 0, 0, 0, 0}; /* jmp *0(%rip) */
    const uint64_t slow = (uint64_t)machine_slow;
    struct agent_head *head;

    area = map_near(near);
    cr_assert(area);
    head = (struct agent_head *)area;
    head->chunks = (uint64_t)area + CHUNKS_AT;
    head->tick = agent_tick_word(0x54321);
    memcpy(area + AGENT_SLOW_OFFSET, jump_behind, sizeof(jump_behind));
    memcpy(area + AGENT_SLOW_OFFSET + sizeof(jump_behind), &slow, sizeof(slow));
    stubs_used = aside_used = 0;
}

void machine_keep_times(void)
{
    struct agent_head *head = (struct agent_head *)area;

    head->times = (uint64_t)area + TIMES_AT - head->chunks / 2;
}

const uint64_t *machine_times(void)
{
    return (const uint64_t *)(area + TIMES_AT);
}

void machine_give_room(size_t count)
{
    uint64_t cursor = (uint64_t)(-1 - (int64_t)count) << 32;
    uint64_t owner = (uint32_t)gettid();

    memset(area + CHUNKS_AT, 0, AREA_BYTES - CHUNKS_AT);
    memset((void *)machine_slow_calls, 0, sizeof(machine_slow_calls));
    __asm__ volatile("movq %0, %%fs:(%1)" : : "r"(cursor), "r"((uint64_t)AGENT_CURSOR) : "memory");
    __asm__ volatile("movq %0, %%fs:(%1)" : : "r"(owner), "r"((uint64_t)AGENT_OWNER) : "memory");
}

uint64_t machine_losses;

void machine_lose_calls(void)
{
    struct agent_head *head = (struct agent_head *)area;
    uint64_t owners = (uint64_t)gettid() << 32, *counter = &machine_losses;

    machine_give_room(0);
    machine_losses = 0;
    __asm__ volatile("movq %0, %%fs:(%1)" : : "r"(owners), "r"((uint64_t)AGENT_OWNER) : "memory");
    __asm__ volatile("movq %0, %%fs:(%1)" : : "r"(counter), "r"((uint64_t)AGENT_LOST_AT) : "memory");
    __asm__ volatile("movq %0, %%fs:(%1)" : : "r"(head->tick), "r"((uint64_t)AGENT_LOST_IN) : "memory");
}

void machine_begin_tick(void)
{
    ((struct agent_head *)area)->tick += agent_tick_word(1);
}

const struct agent_record *machine_records(void)
{
    return (const struct agent_record *)(area + CHUNKS_AT);
}

/* ---------------------------------------------------------------------------------------------- probes */

enum displace_refusal machine_displace(const uint8_t *function, size_t size, size_t room,
                                       struct displacement *ret_displacement)
{
    AUTO_DISASM struct disasm *disasm = NULL;
    AUTO_FLOW_MAP struct flow_map *map = NULL;
    const struct image_function functions[] = {{.address = (uint64_t)function, .size = size}};
    const struct displace_subject subject = {function, (uint64_t)function, size, room};

    cr_assert_eq(disasm_new(&disasm, NULL), 0);
    cr_assert_eq(flow_map_new(&map), 0);
    cr_assert_eq(flow_map_add(map, function, room, (uint64_t)function), 0);
    cr_assert_eq(flow_map_walk(map, functions, 1, false), 0);
    branch_targets_mark(map);
    return displace_function(disasm, map, &subject, ret_displacement);
}

void machine_put_stub(struct machine_probe *probe, struct stub_order order, bool patches)
{
    uint8_t *stubs = area + AGENT_STUBS_OFFSET;

    order.address = (uint64_t)stubs + stubs_used;
    order.aside = (uint64_t)stubs + STUBS_BYTES / 2 + aside_used;
    order.head = (uint64_t)area;
    order.timed = ((const struct agent_head *)area)->times != 0;
    probe->patched = patches ? (uint8_t *)order.function + order.displacement->offset : NULL;
    probe->code = stubs + stubs_used;
    probe->aside = stubs + STUBS_BYTES / 2 + aside_used;
    cr_assert_eq(stub_emit(&order, probe->code, STUBS_BYTES / 2 - stubs_used, probe->aside, &probe->stub), 0);
    cr_assert_leq(probe->stub.size, stub_max);
    cr_assert_leq(probe->stub.aside, stub_aside_max);
    stubs_used += (probe->stub.size + 15U) / 16 * 16;
    aside_used += (probe->stub.aside + 15U) / 16 * 16;
    if (!patches)
        return;
    memcpy(probe->saved, probe->patched, sizeof(probe->saved));
    cr_assert_eq(stub_patch((uint64_t)probe->patched, order.address, probe->patched), 0);
}

void machine_probe(struct machine_probe *probe, uint8_t *function, const struct displacement *displacement,
                   uint32_t number)
{
    const struct stub_order order = {
        .number = number,
        .function = (uint64_t)function,
        .code = function,
        .displacement = displacement,
    };

    machine_put_stub(probe, order, true);
}

void machine_unprobe(const struct machine_probe *probe)
{
    size_t from = (size_t)(probe->code - (area + AGENT_STUBS_OFFSET));

    if (probe->patched)
        memcpy(probe->patched, probe->saved, sizeof(probe->saved));
    if (from + (probe->stub.size + 15U) / 16 * 16 == stubs_used) { /* no other one behind it */
        stubs_used = from;
        aside_used -= (probe->stub.aside + 15U) / 16 * 16;
    }
}
