/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Capstone says where an instruction ends and whether it is one; what kind it is follows from prefixes and
 * opcode. Its details are left switched off: they are several times slower and do not say more about those.
 */
#include "image/arch/disasm.h"

#include <capstone/capstone.h>
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "image/arch/x86_64/flow_length.h"
#include "image/arch/x86_64/form.h"

struct disasm {
    csh handle;
    cs_insn *scratch;
};

int disasm_new(struct disasm **ret_disasm, struct error *err)
{
    AUTO_DISASM struct disasm *disasm = calloc(1, sizeof(*disasm));

    if (!disasm)
        return error_no_memory(err);
    if (cs_open(CS_ARCH_X86, CS_MODE_64, &disasm->handle) != CS_ERR_OK)
        return error_say(err, -ENOTSUP,
                         "cannot start the disassembler (is libcapstone built with x86 support?)");
    disasm->scratch = cs_malloc(disasm->handle);
    if (!disasm->scratch)
        return error_no_memory(err);
    *ret_disasm = take_pointer(disasm);
    return 0;
}

void disasm_free(struct disasm *disasm)
{
    if (!disasm)
        return;
    if (disasm->scratch)
        cs_free(disasm->scratch, 1);
    if (disasm->handle)
        cs_close(&disasm->handle);
    free(disasm);
}

/* Takes the legacy prefixes into account. Returns how many there are. */
static size_t read_prefixes(struct instruction *instruction, struct form *form)
{
    size_t at = 0;

    for (; at < instruction->length; at++) {
        switch (instruction->code[at]) {
        case 0xf0:
            instruction->locked = true;
            break;
        case 0x26:
        case 0x2e:
        case 0x36:
        case 0x3e:
            form->segment = true;
            break;
        case 0x66:
            form->operand_size = true;
            break;
        case 0xf2:
        case 0xf3:
            form->repeat = true;
            break;
        case 0x67:
            form->address_size = true;
            break;
        case 0x64:
        case 0x65:
            break;
        default:
            return at;
        }
    }
    return at;
}

/* C4, C5 and 62 are always VEX and EVEX in 64-bit code; 8F is XOP unless it is `pop r/m` (reg field 0). */
static bool is_vex(const uint8_t *code, size_t size)
{
    if (size < 2)
        return false;
    return code[0] == 0xc4 || code[0] == 0xc5 || code[0] == 0x62 || (code[0] == 0x8f && (code[1] & 0x38));
}

static struct form read_form(struct instruction *instruction)
{
    struct form form = {0};
    size_t at = read_prefixes(instruction, &form), end = instruction->length;

    if (at < end && (instruction->code[at] & 0xf0) == 0x40)
        form.rex = instruction->code[at++];
    form.vex = is_vex(instruction->code + at, end - at);
    if (form.vex)
        return form;
    if (at < end)
        form.opcode[0] = instruction->code[at++];
    if (form.opcode[0] == 0x0f && at < end)
        form.opcode[1] = instruction->code[at++];
    form.modrm_at = (uint8_t)at;
    if (at < end)
        form.modrm = instruction->code[at];
    return form;
}

/* System instructions, and those that only look like user ones: what 0F 01 does depends on ModRM alone. */
static bool is_system(uint8_t second)
{
    switch (second) {
    case 0x00: /* sldt, ltr, verr... */
    case 0x01: /* sgdt, lmsw, swapgs, xgetbv... */
    case 0x05: /* syscall */
    case 0x06: /* clts */
    case 0x07: /* sysret */
    case 0x08: /* invd */
    case 0x09: /* wbinvd */
    case 0x20: /* mov %crN */
    case 0x21: /* mov %drN */
    case 0x22:
    case 0x23:
    case 0x30: /* wrmsr */
    case 0x32: /* rdmsr */
    case 0x34: /* sysenter */
    case 0x35: /* sysexit */
    case 0x37: /* getsec */
    case 0x78: /* vmread */
    case 0x79: /* vmwrite */
    case 0xaa: /* rsm */
        return true;
    default:
        return false;
    }
}

static enum instruction_kind kind_of_two_bytes(const struct form *form)
{
    uint8_t second = form->opcode[1];

    if (second == 0x1e && form->repeat && (form->modrm == 0xfa || form->modrm == 0xfb))
        return INSTRUCTION_ENDBR;
    if (second == 0x1f)
        return INSTRUCTION_NOP;
    if (second >= 0x80 && second <= 0x8f)
        return INSTRUCTION_BRANCH;
    if (second == 0x0b || second == 0xb9 || second == 0xff)
        return INSTRUCTION_TRAP; /* ud2, ud1, ud0 */
    return is_system(second) ? INSTRUCTION_PRIVILEGED : INSTRUCTION_OTHER;
}

static enum instruction_kind kind_of_group5(uint8_t group)
{
    switch (group) {
    case 2:
    case 3:
        return INSTRUCTION_CALL_INDIRECT;
    case 4:
    case 5:
        return INSTRUCTION_JUMP_INDIRECT;
    default:
        return INSTRUCTION_OTHER;
    }
}

static enum instruction_kind kind_of(const struct form *form)
{
    uint8_t first = form->opcode[0];

    if (form->vex)
        return INSTRUCTION_OTHER;
    switch (first) {
    case 0x0f:
        return kind_of_two_bytes(form);
    case 0x50 ... 0x57:
        return INSTRUCTION_PUSH;
    case 0x70 ... 0x7f:
    case 0xe0 ... 0xe3:
        return INSTRUCTION_BRANCH;
    case 0x90: /* with REX.B it exchanges %rax and %r8, with F3 it is pause */
        return form->repeat || (form->rex & REX_B) ? INSTRUCTION_OTHER : INSTRUCTION_NOP;
    case 0xc2:
    case 0xc3:
    case 0xca:
    case 0xcb:
        return INSTRUCTION_RETURN;
    case 0xcc:
    case 0xcd:
    case 0xf1:
    case 0xf4:
        return INSTRUCTION_TRAP;
    case 0x6c ... 0x6f: /* ins, outs */
    case 0xcf:          /* iret */
    case 0xe4 ... 0xe7: /* in, out */
    case 0xec ... 0xef:
    case 0xfa: /* cli */
    case 0xfb: /* sti */
        return INSTRUCTION_PRIVILEGED;
    case 0xe8:
        return INSTRUCTION_CALL;
    case 0xe9:
    case 0xeb:
        return INSTRUCTION_JUMP;
    case 0xff:
        return kind_of_group5(form_group(form));
    default:
        return INSTRUCTION_OTHER;
    }
}

/* Relative branches end in their displacement: 4 bytes for E8, E9 and 0F 8x, 1 byte for the others. */
static uint64_t target_of(const struct instruction *instruction, const struct form *form)
{
    const uint8_t *end = instruction->code + instruction->length;
    uint8_t first = form->opcode[0];
    int32_t distance = end[-1] < 0x80 ? end[-1] : end[-1] - 0x100;

    if (instruction->kind != INSTRUCTION_BRANCH && instruction->kind != INSTRUCTION_JUMP &&
        instruction->kind != INSTRUCTION_CALL)
        return 0;
    if ((first == 0xe8 || first == 0xe9 || first == 0x0f) && instruction->length >= 5)
        memcpy(&distance, end - sizeof(distance), sizeof(distance));
    return instruction->address + instruction->length + (uint64_t)(int64_t)distance;
}

/* What follows from where the instruction ends. */
static void classify(struct instruction *instruction)
{
    const struct form form = read_form(instruction);

    memcpy(instruction->form, &form, sizeof(form));
    instruction->kind = kind_of(&form);
    instruction->target = target_of(instruction, &form);
}

int disasm_decode(struct disasm *disasm, const uint8_t *code, size_t size, uint64_t address,
                  struct instruction *ret_instruction)
{
    struct instruction instruction = {.address = address, .code = code};
    const uint8_t *cursor = code;
    uint64_t next = address;

    if (!cs_disasm_iter(disasm->handle, &cursor, &size, &next, disasm->scratch) || disasm->scratch->size == 0)
        return -EILSEQ;
    instruction.length = (uint8_t)disasm->scratch->size;
    classify(&instruction);
    *ret_instruction = instruction;
    return 0;
}

int disasm_skim(const uint8_t *code, size_t size, uint64_t address, struct instruction *ret_instruction)
{
    int length = flow_length(code, size);

    if (length < 0)
        return length;
    *ret_instruction = (struct instruction){.address = address, .code = code, .length = (uint8_t)length};
    classify(ret_instruction);
    return 0;
}

bool disasm_agree(struct disasm *disasm, const uint8_t *code, size_t size, uint64_t address,
                  struct instruction *ret_instruction)
{
    struct instruction skimmed;

    return disasm_decode(disasm, code, size, address, ret_instruction) == 0 &&
           disasm_skim(code, size, address, &skimmed) == 0 && skimmed.length == ret_instruction->length;
}
