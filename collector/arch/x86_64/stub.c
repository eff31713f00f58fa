/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stubs of x86-64. The layout of what they write, and what they do, is in collector/arch/record.h; here is
 * how their code is cut.
 *
 *     lea    -128(%rsp), %rsp         } behind the red zone: what the function may still read
 *     push   %rax;  push %rcx;  ...   } of two registers, and of rax for the flags
 *     lahf;  seto %al                 }
 *     (take a record, or else go aside; write it)
 *     add    $127, %al;  sahf         }
 *     pop    ...                      }
 *     lea    128(%rsp), %rsp          }
 *     the displaced instructions
 *     jmp    FUNCTION + their length
 *
 * Every register and flag that the function may read has its value again before the first displaced
 * instruction: gcc's -fipa-ra keeps values of the caller in registers that a callee is known not to touch,
 * r10, r11 and the vector registers among them. Those that it overwrites first need not be saved
 * (liveness.h): most functions leave some, and where two registers
 * and the flags are left the stub touches no stack at all. The red zone is not changed. Below it 24 bytes of
 * stack are written, as a signal frame would at any time; more on the way to the agent.
 *
 * A stub at an exit begins with the displaced instructions but the RET, so that the stack pointer is at the
 * return address where the record is taken; what the caller may look at (all registers and flags, for gcc's
 * -fipa-ra applies here as well) is saved, and then comes the RET.
 *
 * What calls run through for which the buffer is full lies aside, so that the stubs that do get one lie
 * closer.
 *
 * Signals. A handler may run between any two instructions, and the functions that it calls have stubs, which
 * work on the same slots of the same thread. Nothing is lost and nothing wrong, because
 *
 * - what the interrupted stub has saved lies on the stack above rsp, where the handler does not write, and
 *   what it has at hand lies in registers, which the kernel restores. No slot is used for either: the first
 *   instruction of a nested stub would have to overwrite it before it could know that it is nested. (Garbage
 *   collectors that stop threads by signals look for pointers on the stack and in its signal frames: they
 *   find the saved registers, too.)
 * - the record is taken by one instruction, which a signal comes before or after. Before: the handler's
 *   records come first, and the interrupted stub takes the one behind them. After: the record is the stub's
 *   own, whatever the handler appends, and its place says that it came before. A load and a store instead,
 *   which is what leaving the flags alone would take, would take back what the handler appended in between.
 *   (Without `lock` xadd is one instruction for signals, not for other processors; but the slots are the
 *   thread's own.)
 * - the same instruction brings the answer whether it was full. A limit in a second slot could be that of
 *   another chunk by the time it is read. Several stubs may find the chunk full before the first of them has
 *   come to the slow path: each gets a number that is not negative.
 * - the owner's check comes before, but a handler in between does not change whose slots they are; it may
 * only have given the thread another chunk, or found none. A call that is being counted as lost then counts
 * where the thread stood before the handler, or, past the agent, behind it. If it forks, the child continues in
 * the interrupted stub as well, and writes the record that the parent writes, in the same place with the same
 * content. Every later stub of the child takes the slow path: the kernel has wiped the key.
 * - a handler may leave by longjmp and never come back to the stub: registers and stack pointer are those of
 *   setjmp then. If a record had been taken it stays unwritten; the reader of the chunk counts it.
 * - a chunk that runs full during the handler is handed over with the interrupted stub's record not yet
 *   written. Its number is 0 until it is, since chunks are all zero when they are given out.
 *
 * The agent is called with the number in %ecx and the address of the return address in %rdx. It keeps
 * everything but %rcx, %rdx and the flags (%ax has the function's), copes with any alignment of the stack and
 * with DF set, appends the record itself or counts it, and returns with ret.
 *
 * LAHF and SAHF are missing in 64-bit mode from the first x86-64 processors, of 2003 to 2005.
 */
#include "collector/arch/stub.h"

#include <string.h>

#include "collector/arch/record.h"
#include "collector/arch/relocate.h"
#include "image/arch/disasm.h"

#define RED_ZONE 128

/* What a stub has besides what it displaces. Of that, all but the last instruction have four bytes at most:
 * two times `loop` is what grows most. The fuzzer looks for longer ones. */
#define APPEND_BYTES 181
#define ASIDE_MAX 112
const size_t stub_max = APPEND_BYTES + 2 * 9 + RELOCATED_BYTES, stub_aside_max = ASIDE_MAX;

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11 };

/* What a stub works with, and what of it is the function's and has to be saved. */
struct scratch {
    uint8_t pointer, data; /* registers */
    bool flags;            /* they are saved, in rax */
    uint8_t saved[3], count;
};

/* ---------------------------------------------------------------------------------------------- forms */

#define REX_W 0x48
#define REX_R 0x44
#define REX_B 0x41

/* The prefix of an instruction whose ModRM names `reg` and `rm`; `wide`: of 64 bits. */
static void rex(struct machine_code *code, bool wide, uint8_t reg, uint8_t rm)
{
    uint8_t prefix = (uint8_t)((wide ? REX_W : 0) | (reg >= R8 ? REX_R : 0) | (rm >= R8 ? REX_B : 0));

    if (prefix)
        EMIT(code, prefix);
}

static uint8_t modrm(uint8_t mod, uint8_t reg, uint8_t rm)
{
    return (uint8_t)(mod << 6 | (reg & 7) << 3 | (rm & 7));
}

static uint8_t registers(uint8_t reg, uint8_t rm)
{
    return modrm(3, reg, rm);
}

static void push(struct machine_code *code, uint8_t reg)
{
    EMIT(code, (uint8_t)(0x50 + reg)); /* of rax to rdi */
}

static void pop(struct machine_code *code, uint8_t reg)
{
    EMIT(code, (uint8_t)(0x58 + reg));
}

/* lea DISTANCE(%rsp), %rsp */
static void move_stack(struct machine_code *code, int32_t distance)
{
    EMIT(code, 0x48, 0x8d, 0xa4, 0x24);
    machine_code_u32(code, (uint32_t)distance);
}

/* ModRM, SIB and displacement of FRAME(%rsp, %INDEX), or without an index where that is RSP. */
static void stack_operand(struct machine_code *code, uint8_t reg, uint8_t index, uint32_t frame)
{
    EMIT(code, modrm(frame ? 2 : 0, reg, RSP), (uint8_t)((index & 7) << 3 | RSP));
    if (frame)
        machine_code_u32(code, frame);
}

/* An instruction with a register and %fs:SLOT: 8B is mov, 3B cmp; `wide`: of 64 bits. */
static void with_slot(struct machine_code *code, bool wide, uint8_t opcode, uint8_t reg, uint32_t slot)
{
    EMIT(code, 0x64);
    rex(code, wide, reg, 0);
    EMIT(code, opcode, modrm(0, reg, RSP), 0x25);
    machine_code_u32(code, slot);
}

static void exchange_add(struct machine_code *code, uint8_t reg, uint32_t slot)
{
    EMIT(code, 0x64); /* xadd %REG, %fs:SLOT */
    rex(code, true, reg, 0);
    EMIT(code, 0x0f, 0xc1, modrm(0, reg, RSP), 0x25);
    machine_code_u32(code, slot);
}

static void load_number(struct machine_code *code, uint32_t number)
{
    EMIT(code, 0xb9); /* mov $NUMBER, %ecx */
    machine_code_u32(code, number);
}

static void load_one_record(struct machine_code *code, uint8_t to)
{
    const uint64_t one = AGENT_ONE_RECORD;

    rex(code, true, 0, to); /* movabs $ONE, %TO */
    EMIT(code, (uint8_t)(0xb8 + (to & 7)));
    machine_code_bytes(code, &one, sizeof(one));
}

/* add ADDRESS(%rip), %TO: 03; mov: 8B */
static void from_memory(struct machine_code *code, uint8_t opcode, uint8_t to, uint64_t address)
{
    rex(code, true, to, 0);
    EMIT(code, opcode, modrm(0, to, RBP));
    machine_code_distance(code, address, 0);
}

/* Makes a thread's name of its id. */
static void add_key(struct machine_code *code, uint8_t to, uint64_t address)
{
    rex(code, false, to, 0); /* add KEY(%rip), %TO, of 32 bits */
    EMIT(code, 0x03, modrm(0, to, RBP));
    machine_code_distance(code, address, 0);
}

/* Of an offset in the chunks, whose high half is something else. */
static void make_address(struct machine_code *code, uint8_t pointer, uint64_t chunks)
{
    rex(code, false, pointer, pointer); /* mov %POINTER, %POINTER, of 32 bits */
    EMIT(code, 0x89, registers(pointer, pointer));
    from_memory(code, 0x03, pointer, chunks);
}

/* The stack pointer at the function's entry, and the tick above it. */
static void store_stack_pointer(struct machine_code *code, const struct scratch *use, uint32_t frame,
                                uint64_t tick)
{
    from_memory(code, 0x8b, use->data, tick);
    EMIT(code, (uint8_t)(REX_W | (use->data >= R8 ? 0x46 : 0)), 0x8d); /* lea FRAME(%rsp, %DATA), %DATA */
    stack_operand(code, use->data, use->data, frame);
    rex(code, true, use->data, use->pointer); /* mov %DATA, SP(%POINTER) */
    EMIT(code, 0x89, modrm(1, use->data, use->pointer), offsetof(struct agent_record, sp));
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

/* One word of return address and number: the record is whole with it. */
static void store_call(struct machine_code *code, const struct scratch *use, uint32_t frame, uint32_t number)
{
    rex(code, false, use->data, 0); /* mov FRAME(%rsp), %DATA, of 32 bits */
    EMIT(code, 0x8b);
    stack_operand(code, use->data, RSP, frame);
    rex(code, true, 0, use->data); /* shl $32, %DATA */
    EMIT(code, 0xc1, registers(4, use->data), 32);
    rex(code, true, 0, use->data); /* add $NUMBER, %DATA */
    EMIT(code, 0x81, registers(0, use->data));
    machine_code_u32(code, number);
    rex(code, true, use->data, use->pointer); /* mov %DATA, (%POINTER) */
    EMIT(code, 0x89, modrm(0, use->data, use->pointer));
}

_Static_assert(offsetof(struct agent_record, function) == 0, "store_call() has no displacement");
_Static_assert(offsetof(struct agent_record, return_address) == 4, "store_call() makes one word of both");

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

enum condition { NOT_EQUAL = 5, NOT_NEGATIVE = 9 };

/* jCC rel32 to a place that land() says. */
static size_t branch(struct machine_code *code, enum condition condition)
{
    EMIT(code, 0x0f, (uint8_t)(0x80 | condition), 0, 0, 0, 0);
    return code->size;
}

/* The branch of `from` leads to where `to`, which may be the same, has come. */
static void land(struct machine_code *from, size_t branch, const struct machine_code *to)
{
    int64_t distance = (int64_t)(machine_code_here(to) - (from->address + branch));
    int32_t place = (int32_t)distance;

    if (from->error || to->error)
        return;
    if (distance != place)
        from->error = -ERANGE;
    memcpy(from->bytes + branch - sizeof(place), &place, sizeof(place));
}

/* ---------------------------------------------------------------------------------------------- stubs */

static void save(struct scratch *use, uint8_t reg)
{
    use->saved[use->count++] = reg;
}

/* A register that is the function's no more, of those that are not `taken`; else `otherwise`, saved. */
static uint8_t choose(struct scratch *use, uint16_t *dead, uint8_t otherwise)
{
    static const uint8_t order[] = {RAX, RCX, RDX, RSI, RDI, R11, R10, R9, R8};

    for (size_t i = 0; i < sizeof(order); i++)
        if (*dead >> order[i] & 1) {
            *dead &= (uint16_t) ~(1u << order[i]);
            return order[i];
        }
    save(use, otherwise);
    return otherwise;
}

/* The time stamp counter comes in rax and rdx. */
static struct scratch choose_scratch(const struct stub_order *order)
{
    const struct liveness *liveness = &order->displacement->liveness;
    uint16_t dead = liveness->dead;
    struct scratch use = {0};

    if (order->timed || !liveness->flags_dead)
        return (struct scratch){
            .pointer = RCX, .data = RDX, .flags = true, .saved = {RAX, RCX, RDX}, .count = 3};
    use.pointer = choose(&use, &dead, RCX);
    use.data = choose(&use, &dead, use.pointer == RDX ? RCX : RDX);
    return use;
}

/* How far above the stack pointer the return address is, once the registers are saved below the red zone. */
static uint32_t frame_of(const struct stub_order *order, const struct scratch *use)
{
    return order->displacement->pushed + (use->count ? RED_ZONE + use->count * 8u : 0);
}

static void enter(struct machine_code *code, const struct scratch *use)
{
    if (use->count)
        move_stack(code, -RED_ZONE);
    for (size_t i = 0; i < use->count; i++)
        push(code, use->saved[i]);
    if (use->flags)
        EMIT(code, 0x9f, 0x0f, 0x90, 0xc0); /* lahf; seto %al */
}

/* 127 and the 1 that seto left overflow, 127 and 0 do not; sahf sets the other five. */
static void leave(struct machine_code *code, const struct scratch *use)
{
    if (use->flags)
        EMIT(code, 0x04, 0x7f, 0x9e); /* add $127, %al; sahf */
    for (size_t i = use->count; i > 0; i--)
        pop(code, use->saved[i - 1]);
    if (use->count)
        move_stack(code, RED_ZONE);
}

/* A call of a thread that is losing them, and has asked for a chunk in this tick. */
static void emit_lost(struct machine_code *code, const struct stub_order *order, const struct scratch *use,
                      uint64_t leaving, size_t *ret_slow)
{
    uint8_t reg = use->pointer;

    with_slot(code, false, 0x3b, reg, AGENT_LOSER); /* cmp: it has the thread's name */
    ret_slow[0] = branch(code, NOT_EQUAL);
    from_memory(code, 0x8b, reg, order->head + offsetof(struct agent_head, tick));
    with_slot(code, true, 0x3b, reg, AGENT_LOST_IN);
    ret_slow[1] = branch(code, NOT_EQUAL);
    with_slot(code, true, 0x8b, reg, AGENT_LOST_AT);
    rex(code, true, 0, reg); /* incq (%POINTER) */
    EMIT(code, 0xff, modrm(0, 0, reg));
    jump(code, leaving);
}

/* Calls the agent, which changes rcx, rdx and the flags, with the number in ecx and the function's stack
 * pointer in rdx. */
static void emit_slow(struct machine_code *code, const struct stub_order *order, const struct scratch *use,
                      uint64_t leaving)
{
    uint32_t frame = frame_of(order, use) + (use->count ? 0 : RED_ZONE);

    if (!use->count)
        move_stack(code, -RED_ZONE);
    push(code, RCX);
    push(code, RDX);
    EMIT(code, 0x48, 0x8d); /* lea FRAME(%rsp), %rdx */
    stack_operand(code, RDX, RSP, frame + 2 * sizeof(uint64_t));
    load_number(code, order->number);
    call(code, order->head + AGENT_SLOW_OFFSET);
    pop(code, RDX);
    pop(code, RCX);
    if (!use->count)
        move_stack(code, RED_ZONE);
    jump(code, leaving);
}

/* Where the slow ways begin. */
struct branches {
    size_t not_owner, no_room;
};

static struct branches emit_append(struct machine_code *code, const struct stub_order *order,
                                   const struct scratch *use)
{
    uint32_t frame = frame_of(order, use);
    struct branches branches;

    with_slot(code, false, 0x8b, use->pointer, AGENT_TID);
    add_key(code, use->pointer, order->head + AGENT_KEY_OFFSET + offsetof(struct agent_key, key));
    with_slot(code, false, 0x3b, use->pointer, AGENT_OWNER);
    branches.not_owner = branch(code, NOT_EQUAL);
    load_one_record(code, use->pointer);
    exchange_add(code, use->pointer, AGENT_CURSOR);
    branches.no_room = branch(code, NOT_NEGATIVE);
    make_address(code, use->pointer, order->head + offsetof(struct agent_head, chunks));
    store_stack_pointer(code, use, frame, order->head + offsetof(struct agent_head, tick));
    if (order->timed)
        store_time(code, order->head + offsetof(struct agent_head, times));
    store_call(code, use, frame, order->number);
    return branches;
}

/* The displaced instructions from number `from` up to `to`, each where `stub->moved` says. The lengths were
 * agreed upon when they were chosen. */
static void emit_displaced(struct machine_code *code, const struct stub_order *order, size_t from, size_t to,
                           struct stub *stub)
{
    const struct displacement *displacement = order->displacement;
    const uint8_t *bytes = order->code + displacement->offset;
    uint64_t address = order->function + displacement->offset;
    struct instruction instruction;

    for (size_t i = from; i < to && !code->error; i++) {
        size_t at = displacement->starts[i];

        stub->moved[i] = (uint16_t)code->size;
        if (disasm_skim(bytes + at, displacement->length - at, address + at, &instruction) < 0)
            code->error = -EINVAL;
        else if (order->exit && instruction.kind == INSTRUCTION_RETURN)
            jump(code, order->exit);
        else
            relocate(code, &instruction);
    }
}

static void emit_way_back(struct machine_code *code, const struct stub_order *order)
{
    const struct displacement *displacement = order->displacement;

    if (displacement->falls)
        jump(code, order->exit ? order->exit : order->function + displacement->offset + displacement->length);
}

int stub_emit(const struct stub_order *order, uint8_t *bytes, size_t room, uint8_t *aside_bytes,
              struct stub *ret_stub)
{
    struct machine_code code = {.bytes = bytes, .room = room, .address = order->address};
    struct machine_code aside = {.bytes = aside_bytes, .room = ASIDE_MAX, .address = order->aside};
    const struct scratch use = choose_scratch(order);
    const size_t count = order->displacement->count, before = order->at_exit ? count - 1 : 0;
    struct branches branches;
    struct stub stub = {0};
    uint16_t recording;
    uint64_t leaving;
    size_t slow[2];

    emit_displaced(&code, order, 0, before, &stub);
    recording = (uint16_t)code.size;
    enter(&code, &use);
    branches = emit_append(&code, order, &use);
    leaving = machine_code_here(&code);
    leave(&code, &use);
    emit_displaced(&code, order, before, count, &stub);
    emit_way_back(&code, order);
    if (order->at_exit)
        stub.moved[before] = recording;
    land(&code, branches.not_owner, &aside);
    emit_lost(&aside, order, &use, leaving, slow);
    land(&code, branches.no_room, &aside);
    land(&aside, slow[0], &aside);
    land(&aside, slow[1], &aside);
    emit_slow(&aside, order, &use, leaving);
    if (code.error || aside.error)
        return code.error ? code.error : aside.error;
    stub.size = (uint16_t)code.size;
    stub.aside = (uint16_t)aside.size;
    *ret_stub = stub;
    return 0;
}

int stub_patch(uint64_t from, uint64_t to, uint8_t *bytes)
{
    struct machine_code code = {.bytes = bytes, .room = DISPLACE_JUMP, .address = from};

    jump(&code, to);
    return code.error;
}
