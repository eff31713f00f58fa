/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/backend/stub_x86_64.h"

#include <elf.h>
#include <string.h>

#include "collector/agent/record.h"
#include "collector/backend/relocate_x86_64.h"
#include "image/disasm.h"

#define RED_ZONE 128
#define SAVED 24 /* three registers */

_Static_assert(AGENT_FRAME_BYTES == RED_ZONE + SAVED, "readers add it to the stack pointer");
_Static_assert(STUB_X86_64_SLOW_FRAME == AGENT_FRAME_BYTES + 8, "a call pushes eight bytes more");

/* What a stub has besides what it displaces. Of that, all but the last instruction have four bytes at most:
 * two times `loop` is what grows most. The fuzzer looks for longer ones. */
#define APPEND_BYTES 160
#define STUB_MAX (APPEND_BYTES + 2 * 9 + RELOCATED_BYTES)

/* ---------------------------------------------------------------------------------------------- forms */

static void save(struct machine_code *code)
{
    EMIT(code, 0x48, 0x8d, 0x64, 0x24, (uint8_t)-RED_ZONE); /* lea -128(%rsp), %rsp */
    EMIT(code, 0x50, 0x51, 0x52);                           /* push %rax; push %rcx; push %rdx */
    EMIT(code, 0x9f, 0x0f, 0x90, 0xc0);                     /* lahf; seto %al */
}

/* 127 and the 1 that seto left overflow, 127 and 0 do not; sahf sets the other five. */
static void restore(struct machine_code *code)
{
    EMIT(code, 0x04, 0x7f, 0x9e);       /* add $127, %al; sahf */
    EMIT(code, 0x5a, 0x59, 0x58);       /* pop %rdx; pop %rcx; pop %rax */
    EMIT(code, 0x48, 0x8d, 0xa4, 0x24); /* lea 128(%rsp), %rsp */
    machine_code_u32(code, RED_ZONE);
}

static void load_slot32(struct machine_code *code, uint32_t slot)
{
    EMIT(code, 0x64, 0x8b, 0x0c, 0x25); /* mov %fs:SLOT, %ecx */
    machine_code_u32(code, slot);
}

static void compare_slot32(struct machine_code *code, uint32_t slot)
{
    EMIT(code, 0x64, 0x3b, 0x0c, 0x25); /* cmp %fs:SLOT, %ecx */
    machine_code_u32(code, slot);
}

static void exchange_add(struct machine_code *code, uint32_t slot)
{
    EMIT(code, 0x64, 0x48, 0x0f, 0xc1, 0x0c, 0x25); /* xadd %rcx, %fs:SLOT */
    machine_code_u32(code, slot);
}

static void load_number(struct machine_code *code, uint32_t number)
{
    EMIT(code, 0xb9); /* mov $NUMBER, %ecx */
    machine_code_u32(code, number);
}

static void load_one_record(struct machine_code *code)
{
    const uint64_t one = AGENT_ONE_RECORD;

    EMIT(code, 0x48, 0xb9); /* movabs $ONE, %rcx */
    machine_code_bytes(code, &one, sizeof(one));
}

static void make_address(struct machine_code *code, uint64_t chunks)
{
    EMIT(code, 0x89, 0xc9);       /* mov %ecx, %ecx */
    EMIT(code, 0x48, 0x03, 0x0d); /* add CHUNKS(%rip), %rcx */
    machine_code_distance(code, chunks, 0);
}

static void store_stack_pointer(struct machine_code *code)
{
    EMIT(code, 0x48, 0x89, 0x61, offsetof(struct agent_record, sp)); /* mov %rsp, SP(%rcx) */
}

static void store_tick(struct machine_code *code, uint64_t tick)
{
    EMIT(code, 0x0f, 0xb7, 0x15); /* movzwl TICK(%rip), %edx */
    machine_code_distance(code, tick, 0);
    EMIT(code, 0x66, 0x89, 0x51, offsetof(struct agent_record, sp) + AGENT_TICK_SHIFT / 8);
}

static void store_return_address(struct machine_code *code)
{
    EMIT(code, 0x8b, 0x94, 0x24); /* mov FRAME(%rsp), %edx */
    machine_code_u32(code, AGENT_FRAME_BYTES);
    EMIT(code, 0x89, 0x51, offsetof(struct agent_record, return_address)); /* mov %edx, ADDRESS(%rcx) */
}

/* The flags, which are in eax, wait where the return address will be stored. */
static void store_time(struct machine_code *code, uint64_t times)
{
    const uint8_t waiting = offsetof(struct agent_record, return_address);

    EMIT(code, 0x89, 0x41, waiting);  /* mov %eax, ADDRESS(%rcx) */
    EMIT(code, 0x0f, 0x31);           /* rdtsc */
    EMIT(code, 0x48, 0xc1, 0xe2, 32); /* shl $32, %rdx */
    EMIT(code, 0x48, 0x09, 0xd0);     /* or %rdx, %rax */
    EMIT(code, 0x48, 0x89, 0xca);     /* mov %rcx, %rdx */
    EMIT(code, 0x48, 0xd1, 0xea);     /* shr %rdx */
    EMIT(code, 0x48, 0x03, 0x15);     /* add TIMES(%rip), %rdx */
    machine_code_distance(code, times, 0);
    EMIT(code, 0x48, 0x89, 0x02);    /* mov %rax, (%rdx) */
    EMIT(code, 0x8b, 0x41, waiting); /* mov ADDRESS(%rcx), %eax */
}

static void store_number(struct machine_code *code, uint32_t number)
{
    EMIT(code, 0xc7, 0x01); /* movl $NUMBER, (%rcx) */
    machine_code_u32(code, number);
}

_Static_assert(offsetof(struct agent_record, function) == 0, "store_number() has no displacement");

static void call(struct machine_code *code, uint64_t target)
{
    EMIT(code, 0xe8);
    machine_code_distance(code, target, 0);
}

static void jump(struct machine_code *code, uint64_t target)
{
    EMIT(code, 0xe9);
    machine_code_distance(code, target, 0);
}

/* jCC rel8 to an earlier place in the stub. */
static void branch_back(struct machine_code *code, uint8_t condition, size_t place)
{
    EMIT(code, 0x70 | condition, (uint8_t)(place - (code->size + 2)));
}

enum condition { NOT_EQUAL = 5, NOT_NEGATIVE = 9 };

/* ---------------------------------------------------------------------------------------------- stubs */

/* Returns where the distance of the last jump lies: to `leave`, which is not yet known. */
static size_t emit_slow(struct machine_code *code, const struct stub_order *order)
{
    load_number(code, order->number);
    call(code, order->head + AGENT_SLOW_OFFSET);
    EMIT(code, 0xe9, 0, 0, 0, 0); /* jmp leave */
    return code->size - 4;
}

static void emit_append(struct machine_code *code, const struct stub_order *order)
{
    save(code);
    load_slot32(code, AGENT_TID);
    compare_slot32(code, AGENT_OWNER);
    branch_back(code, NOT_EQUAL, 0);
    load_one_record(code);
    exchange_add(code, AGENT_CURSOR);
    EMIT(code, 0x48, 0x85, 0xc9); /* test %rcx, %rcx */
    branch_back(code, NOT_NEGATIVE, 0);
    make_address(code, order->head + offsetof(struct agent_head, chunks));
    store_stack_pointer(code);
    store_tick(code, order->head + offsetof(struct agent_head, tick));
    if (order->timed)
        store_time(code, order->head + offsetof(struct agent_head, times));
    store_return_address(code);
    store_number(code, order->number);
}

/* The lengths of the displaced instructions were agreed upon when they were chosen. */
static void emit_displaced(struct machine_code *code, const struct stub_order *order, struct stub *stub)
{
    const struct displacement *displacement = order->displacement;
    const uint8_t *bytes = order->code + displacement->offset;
    uint64_t address = order->function + displacement->offset;
    struct instruction instruction;

    for (size_t i = 0; i < displacement->count && !code->error; i++) {
        size_t at = displacement->starts[i];

        stub->moved[i] = (uint16_t)code->size;
        if (disasm_skim(bytes + at, displacement->length - at, address + at, &instruction) < 0)
            code->error = -EINVAL;
        else
            relocate(code, &instruction);
    }
    if (displacement->falls)
        jump(code, address + displacement->length);
}

static int emit(const struct stub_order *order, uint8_t *bytes, size_t room, struct stub *ret_stub)
{
    struct machine_code code = {.bytes = bytes, .room = room, .address = order->address};
    struct stub stub = {0};
    size_t to_leave = emit_slow(&code, order);

    stub.entry = (uint16_t)code.size;
    emit_append(&code, order);
    if (!code.error) {
        uint32_t distance = (uint32_t)(code.size - (to_leave + sizeof(distance)));

        memcpy(bytes + to_leave, &distance, sizeof(distance));
    }
    restore(&code);
    emit_displaced(&code, order, &stub);
    if (code.error)
        return code.error;
    stub.size = (uint16_t)code.size;
    *ret_stub = stub;
    return 0;
}

static int patch(uint64_t from, uint64_t to, uint8_t *bytes)
{
    struct machine_code code = {.bytes = bytes, .room = DISPLACE_JUMP, .address = from};

    jump(&code, to);
    return code.error;
}

const struct stub_arch stub_x86_64 = {
    .name = "x86-64",
    .machine = EM_X86_64,
    .stub_max = STUB_MAX,
    .patch_size = DISPLACE_JUMP,
    .displace = displace_function,
    .emit = emit,
    .patch = patch,
};
