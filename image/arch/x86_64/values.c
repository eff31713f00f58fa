/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/arch/values.h"

#include <capstone/capstone.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "image/arch/operands.h"

struct value_machine {
    csh handle;
    cs_insn *scratch;
};

/* One step: the state that is changed and what is noted meanwhile. */
struct step {
    const struct flow_slot *slots;
    size_t slot_count;
    struct flow_value *state;
    struct frame_touch *touches;
    size_t touch_count;
    bool lost;
};

static const struct flow_value unknown = {.kind = FLOW_VALUE_UNKNOWN};

int value_machine_new(struct value_machine **ret_machine, struct error *err)
{
    struct value_machine *machine = calloc(1, sizeof(*machine));

    if (!machine)
        return error_no_memory(err), -ENOMEM;
    if (cs_open(CS_ARCH_X86, CS_MODE_64, &machine->handle) != CS_ERR_OK ||
        cs_option(machine->handle, CS_OPT_DETAIL, CS_OPT_ON) != CS_ERR_OK ||
        !(machine->scratch = cs_malloc(machine->handle))) {
        value_machine_free(machine);
        return error_say(err, -ENOTSUP,
                         "cannot start the disassembler (is libcapstone built with x86 support?)");
    }
    *ret_machine = machine;
    return 0;
}

void value_machine_free(struct value_machine *machine)
{
    if (!machine)
        return;
    if (machine->scratch)
        cs_free(machine->scratch, 1);
    if (machine->handle)
        cs_close(&machine->handle);
    free(machine);
}

/* ---------------------------------------------------------------------------------------------- registers */

/* Capstone's registers in the order of the machine code, by width. */
static const x86_reg names[][4] = {
    {X86_REG_RAX, X86_REG_EAX, X86_REG_AX, X86_REG_AL},
    {X86_REG_RCX, X86_REG_ECX, X86_REG_CX, X86_REG_CL},
    {X86_REG_RDX, X86_REG_EDX, X86_REG_DX, X86_REG_DL},
    {X86_REG_RBX, X86_REG_EBX, X86_REG_BX, X86_REG_BL},
    {X86_REG_RSP, X86_REG_ESP, X86_REG_SP, X86_REG_SPL},
    {X86_REG_RBP, X86_REG_EBP, X86_REG_BP, X86_REG_BPL},
    {X86_REG_RSI, X86_REG_ESI, X86_REG_SI, X86_REG_SIL},
    {X86_REG_RDI, X86_REG_EDI, X86_REG_DI, X86_REG_DIL},
    {X86_REG_R8, X86_REG_R8D, X86_REG_R8W, X86_REG_R8B},
    {X86_REG_R9, X86_REG_R9D, X86_REG_R9W, X86_REG_R9B},
    {X86_REG_R10, X86_REG_R10D, X86_REG_R10W, X86_REG_R10B},
    {X86_REG_R11, X86_REG_R11D, X86_REG_R11W, X86_REG_R11B},
    {X86_REG_R12, X86_REG_R12D, X86_REG_R12W, X86_REG_R12B},
    {X86_REG_R13, X86_REG_R13D, X86_REG_R13W, X86_REG_R13B},
    {X86_REG_R14, X86_REG_R14D, X86_REG_R14W, X86_REG_R14B},
    {X86_REG_R15, X86_REG_R15D, X86_REG_R15W, X86_REG_R15B},
};

/* The number of a general register, or -1; its bytes in *ret_size. */
static int number_of(unsigned reg, uint8_t *ret_size)
{
    static const uint8_t sizes[] = {8, 4, 2, 1};
    static const x86_reg high[] = {X86_REG_AH, X86_REG_CH, X86_REG_DH, X86_REG_BH};

    for (int i = 0; i < 16; i++)
        for (int k = 0; k < 4; k++)
            if (names[i][k] == reg) {
                *ret_size = sizes[k];
                return i;
            }
    *ret_size = 1;
    for (int i = 0; i < 4; i++)
        if (high[i] == reg)
            return i;
    return -1;
}

static void forget_register(struct step *step, unsigned reg)
{
    uint8_t size;
    int number = number_of(reg, &size);

    if (number >= 0)
        step->state[number] = unknown;
}

/* ---------------------------------------------------------------------------------------------- values */

static struct flow_value constant(int64_t value, uint8_t size)
{
    return (struct flow_value){.kind = FLOW_VALUE_CONSTANT, .constant = value, .size = size};
}

/* Of no more than `size` bytes; less than four are not followed. */
static struct flow_value narrowed(struct flow_value value, uint8_t size)
{
    if (size < 4 && value.kind == FLOW_VALUE_SUM)
        return unknown;
    if (size < value.size && value.kind != FLOW_VALUE_UNKNOWN)
        value.size = size < 4 ? 4 : size;
    return value;
}

static struct flow_value sum(struct flow_value value, struct flow_value other, int sign)
{
    if (value.kind == FLOW_VALUE_CONSTANT && sign > 0) {
        struct flow_value swapped = value;

        value = other;
        other = swapped;
    }
    if (value.kind == FLOW_VALUE_UNKNOWN || other.kind != FLOW_VALUE_CONSTANT)
        return unknown;
    value.constant = (int64_t)((uint64_t)value.constant + (uint64_t)(sign * other.constant));
    return narrowed(value, other.size);
}

/* ---------------------------------------------------------------------------------------------- memory */

enum reach {
    REACH_ELSEWHERE, /* not in the frame, as far as one can see */
    REACH_FRAME,     /* at a known place of it */
    REACH_INDEXED,   /* in the frame, from a known place on */
    REACH_LOST,      /* by a stack pointer that is not known */
};

static enum reach reach_of(const struct step *step, const x86_op_mem *memory, int64_t *ret_offset)
{
    uint8_t size;
    int base = number_of(memory->base, &size);
    const struct flow_value *value = base >= 0 ? &step->state[base] : NULL;

    if (base == REGISTER_STACK && value->kind != FLOW_VALUE_SUM)
        return REACH_LOST;
    if (!value || value->kind != FLOW_VALUE_SUM || value->place != FLOW_PLACE_FRAME)
        return REACH_ELSEWHERE;
    *ret_offset = value->constant + memory->disp;
    return memory->index == X86_REG_INVALID ? REACH_FRAME : REACH_INDEXED;
}

static void touch(struct step *step, int64_t offset, uint8_t size, bool write)
{
    if (step->touch_count < 2)
        step->touches[step->touch_count++] = (struct frame_touch){offset, size, write};
}

static struct flow_value load_frame(struct step *step, int64_t offset, uint8_t size)
{
    touch(step, offset, size, false);
    for (size_t i = 0; i < step->slot_count; i++)
        if (step->slots[i].offset == offset && size >= 4)
            return size <= step->slots[i].size ? narrowed(step->state[FLOW_PLACE_SLOTS + i], size) : unknown;
    return unknown;
}

/* Slots that overlap what is written are forgotten; the one that is just there gets the value. */
static void store_frame(struct step *step, int64_t offset, uint8_t size, struct flow_value value)
{
    touch(step, offset, size, true);
    for (size_t i = 0; i < step->slot_count; i++) {
        const struct flow_slot *slot = &step->slots[i];

        if (slot->offset == offset && slot->size == size)
            step->state[FLOW_PLACE_SLOTS + i] = narrowed(value, size);
        else if (slot->offset < offset + size && offset < slot->offset + slot->size)
            step->state[FLOW_PLACE_SLOTS + i] = unknown;
    }
}

/* ---------------------------------------------------------------------------------------------- operands */

static struct flow_value read_operand(struct step *step, const cs_x86_op *operand)
{
    int64_t offset;
    uint8_t size;
    int number;

    switch (operand->type) {
    case X86_OP_IMM:
        return constant(operand->imm, operand->size < 4 ? 4 : operand->size);
    case X86_OP_REG:
        number = number_of(operand->reg, &size);
        return number < 0 || size < 4 ? unknown : narrowed(step->state[number], size);
    case X86_OP_MEM:
        switch (reach_of(step, &operand->mem, &offset)) {
        case REACH_FRAME:
            return load_frame(step, offset, operand->size);
        case REACH_INDEXED:
            touch(step, offset, 0, false);
            break;
        case REACH_LOST:
            step->lost = true;
            break;
        case REACH_ELSEWHERE:
            break;
        }
        return unknown;
    default:
        return unknown;
    }
}

static void write_operand(struct step *step, const cs_x86_op *operand, struct flow_value value)
{
    int64_t offset;
    uint8_t size;
    int number;

    if (operand->type == X86_OP_REG) {
        number = number_of(operand->reg, &size);
        if (number >= 0)
            step->state[number] = size < 4 ? unknown : narrowed(value, size);
        return;
    }
    if (operand->type != X86_OP_MEM)
        return;
    switch (reach_of(step, &operand->mem, &offset)) {
    case REACH_FRAME:
        store_frame(step, offset, operand->size, value);
        break;
    case REACH_INDEXED:
        touch(step, offset, 0, true);
        break;
    case REACH_LOST:
        step->lost = true;
        break;
    case REACH_ELSEWHERE:
        break;
    }
}

/* An address in the frame that gets into a register other than the stack pointers may get anywhere. */
static void note_address(struct step *step, const cs_x86_op *to, struct flow_value value)
{
    if (value.kind != FLOW_VALUE_SUM || value.place != FLOW_PLACE_FRAME)
        return;
    if (to->type == X86_OP_REG && (to->reg == X86_REG_RSP || to->reg == X86_REG_RBP))
        return;
    touch(step, value.constant, 0, false);
}

/* ---------------------------------------------------------------------------------------------- instructions
 */

static void do_move(struct step *step, const cs_x86 *x86)
{
    struct flow_value value = read_operand(step, &x86->operands[1]);

    value = narrowed(value, x86->operands[1].size);
    note_address(step, &x86->operands[0], value);
    write_operand(step, &x86->operands[0], value);
}

static void do_lea(struct step *step, const cs_x86 *x86)
{
    const x86_op_mem *memory = &x86->operands[1].mem;
    struct flow_value value = unknown;
    int64_t offset;
    uint8_t size;
    int base = number_of(memory->base, &size);

    if (base >= 0 && memory->index == X86_REG_INVALID)
        value = sum(step->state[base], constant(memory->disp, 8), 1);
    else if (reach_of(step, memory, &offset) == REACH_INDEXED)
        touch(step, offset, 0, false);
    note_address(step, &x86->operands[0], value);
    write_operand(step, &x86->operands[0], value);
}

static void do_add(struct step *step, const cs_x86 *x86, int sign)
{
    struct flow_value left = read_operand(step, &x86->operands[0]), right;

    right = x86->op_count > 1 ? read_operand(step, &x86->operands[1]) : constant(1, 8);
    left = sum(left, right, sign);
    if (x86->operands[0].type != X86_OP_REG || x86->operands[0].reg != X86_REG_RSP)
        note_address(step, &x86->operands[0], left);
    write_operand(step, &x86->operands[0], narrowed(left, x86->operands[0].size));
}

static void move_stack(struct step *step, int64_t bytes)
{
    step->state[REGISTER_STACK] = sum(step->state[REGISTER_STACK], constant(bytes, 8), 1);
}

static void do_push(struct step *step, const cs_x86 *x86)
{
    struct flow_value value = read_operand(step, &x86->operands[0]);

    /* `push %rbp` of a frame pointer is no escape: what it points at is above the locals. */
    move_stack(step, -8);
    if (step->state[REGISTER_STACK].kind == FLOW_VALUE_SUM)
        store_frame(step, step->state[REGISTER_STACK].constant, 8, value);
}

static void do_pop(struct step *step, const cs_x86_op *to)
{
    struct flow_value value = unknown;

    if (step->state[REGISTER_STACK].kind == FLOW_VALUE_SUM)
        value = load_frame(step, step->state[REGISTER_STACK].constant, 8);
    move_stack(step, 8);
    if (to)
        write_operand(step, to, value);
    else
        step->state[REGISTER_FRAME] = value;
}

static void do_call(struct step *step, bool calls_keep)
{
    static const uint8_t changed[] = {0, 1, 2, 6, 7, 8, 9, 10, 11};
    static const uint8_t kept[] = {3, 12, 13, 14, 15};

    for (size_t i = 0; i < ARRAY_SIZE(changed); i++)
        step->state[changed[i]] = unknown;
    for (size_t i = 0; !calls_keep && i < ARRAY_SIZE(kept); i++)
        step->state[kept[i]] = unknown;
}

/* Everything else: what it writes is not known any more. Of memory operands Capstone does not always say how
 * they are used; then they are taken to be written. */
static void do_other(struct step *step, csh handle, const cs_insn *insn)
{
    const cs_x86 *x86 = &insn->detail->x86;
    uint8_t read_count, write_count;
    cs_regs read, write;

    if (cs_regs_access(handle, insn, read, &read_count, write, &write_count) == CS_ERR_OK)
        for (uint8_t i = 0; i < write_count; i++)
            forget_register(step, write[i]);
    for (uint8_t i = 0; i < x86->op_count; i++) {
        const cs_x86_op *operand = &x86->operands[i];

        if (operand->type == X86_OP_MEM && operand->access == CS_AC_READ)
            read_operand(step, operand);
        else if (operand->type == X86_OP_MEM || (operand->access & CS_AC_WRITE))
            write_operand(step, operand, unknown);
    }
}

static bool is_cleared(const cs_x86 *x86)
{
    return x86->op_count == 2 && x86->operands[0].type == X86_OP_REG && x86->operands[1].type == X86_OP_REG &&
           x86->operands[0].reg == x86->operands[1].reg;
}

static void do_instruction(struct step *step, csh handle, const cs_insn *insn, bool calls_keep)
{
    const cs_x86 *x86 = &insn->detail->x86;

    switch (insn->id) {
    case X86_INS_MOV:
    case X86_INS_MOVABS:
    case X86_INS_MOVSXD:
        do_move(step, x86);
        break;
    case X86_INS_CDQE: /* what is true of the lower half of rax stays so */
        step->state[0] = narrowed(step->state[0], 4);
        break;
    case X86_INS_LEA:
        do_lea(step, x86);
        break;
    case X86_INS_ADD:
    case X86_INS_INC:
        do_add(step, x86, 1);
        break;
    case X86_INS_SUB:
    case X86_INS_DEC:
        if (insn->id == X86_INS_SUB && is_cleared(x86))
            write_operand(step, &x86->operands[0], constant(0, 8));
        else
            do_add(step, x86, -1);
        break;
    case X86_INS_XOR:
        if (is_cleared(x86))
            write_operand(step, &x86->operands[0], constant(0, 8));
        else
            do_other(step, handle, insn);
        break;
    case X86_INS_PUSH:
        do_push(step, x86);
        break;
    case X86_INS_POP:
        do_pop(step, &x86->operands[0]);
        break;
    case X86_INS_LEAVE:
        step->state[REGISTER_STACK] = step->state[REGISTER_FRAME];
        do_pop(step, NULL);
        break;
    case X86_INS_CALL:
        do_call(step, calls_keep);
        break;
    case X86_INS_CMP:
    case X86_INS_TEST:
        read_operand(step, &x86->operands[0]);
        read_operand(step, &x86->operands[1]);
        break;
    case X86_INS_NOP:
    case X86_INS_ENDBR64:
        break;
    default:
        do_other(step, handle, insn);
    }
}

size_t value_machine_step(struct value_machine *machine, const struct instruction *instruction,
                          const struct flow_slot *slots, size_t slot_count, bool calls_keep,
                          struct flow_value *state, struct frame_touch ret_touches[2], bool *ret_lost)
{
    struct step step = {.slots = slots, .slot_count = slot_count, .state = state, .touches = ret_touches};
    const uint8_t *code = instruction->code;
    size_t size = instruction->length;
    uint64_t address = instruction->address;

    if (cs_disasm_iter(machine->handle, &code, &size, &address, machine->scratch))
        do_instruction(&step, machine->handle, machine->scratch, calls_keep);
    else
        for (size_t i = 0; i < FLOW_PLACE_SLOTS + slot_count; i++)
            state[i] = unknown;
    *ret_lost |= step.lost;
    return step.touch_count;
}
