/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/plan/return_rules.h"

#include <fnmatch.h>
#include <string.h>

#include "base/array.h"
#include "image/arch/operands.h"

/* ---------------------------------------------------------------------------------------------- names */

/* Patterns are tried without leading underscores, version and @plt. */
static const char *const no_return_patterns[] = {
    /* returns twice, or never to here */
    "setjmp", "sigsetjmp", "bsd_setjmp", "savectx", "vfork", "libc_vfork", "vforkx", "longjmp", "siglongjmp",
    "longjmp_chk", "libc_longjmp", "libc_siglongjmp", "longjmp_unwind", "getcontext", "setcontext",
    "swapcontext", "makecontext", "start_context", "setcontext_*", "getcontext_*",
    /* the thread that comes out of it has another stack */
    "clone", "clone2", "clone3", "clone_internal*", "start_thread", "libc_start_main*",
    "libc_start_call_main*", "rfork", "restore_rt", "sigreturn", "rt_sigreturn", "kernel_*sigreturn",
    "fiber_switch", "coroutine_switch", "swapstack", "jump_fcontext", "make_fcontext", "ontop_fcontext",
    "coro_transfer", "co_switch", "morestack*",
    /* unwinds */
    "Unwind_*", "cxa_throw", "cxa_rethrow", "cxa_end_catch", "cxa_bad_*", "cxa_throw_bad_*",
    "gxx_personality*", "gcc_personality*", "rust_eh_personality", "pthread_exit", "pthread_unwind*",
    "pthread_cancel", "pthread_testcancel", "do_cancel", "thrd_exit", "unw_*", "ULx86_64_*", "Ux86_64_*",
    "backtrace", "register_frame*", "deregister_frame*", "objc_exception_throw", "objc_exception_rethrow",
    /* looks at the address it was called from */
    "dlopen", "dlmopen", "dlsym", "dlvsym", "libc_dlopen*", "libc_dlsym*", "dl_iterate_phdr", "dl_runtime_*",
    "dl_start*", "dl_tlsdesc_*", "tls_get_addr*", "mcount*", "fentry*", "cyg_profile_func_*", "gmon_start*",
    "asan_*", "hwasan_*", "tsan_*", "msan_*", "lsan_*", "ubsan_*", "sanitizer_*", "x86_return_thunk",
    "x86_indirect_*", "llvm_retpoline_*"};

bool return_name_forbids(const char *name)
{
    char plain[128];
    size_t length;

    name += strspn(name, "_");
    length = strcspn(name, "@");
    if (length >= sizeof(plain))
        return false; /* no pattern can mean such a name but by its beginning, and those names are short */
    memcpy(plain, name, length);
    plain[length] = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(no_return_patterns); i++)
        if (fnmatch(no_return_patterns[i], plain, 0) == 0)
            return true;
    return false;
}

/* ---------------------------------------------------------------------------------------------- code */

/* What a walk through a function's code knows. The return address lies at the entry's rsp. */
struct walk {
    bool knows_stack;
    int64_t sp_offset; /* how far rsp lies below the entry's, if knows_stack */
    bool has_frame;    /* rbp lies 8 bytes below the entry's rsp */
    bool is_foreign;   /* rsp was copied from a register that is not rbp */
    uint32_t eax;      /* the immediate that was last put there */
};

static bool is_mov(const struct instruction *instruction)
{
    return !instruction->vex && (instruction->opcode[0] == 0x89 || instruction->opcode[0] == 0x8b);
}

static bool is_lea(const struct instruction *instruction)
{
    return !instruction->vex && instruction->opcode[0] == 0x8d;
}

static bool is_pop(const struct instruction *instruction)
{
    uint8_t opcode = instruction->opcode[0];

    return !instruction->vex && ((opcode >= 0x58 && opcode <= 0x5f) || opcode == 0x8f || opcode == 0x9d);
}

/* Source and destination of a mov between registers. */
static bool is_copy(const struct instruction *instruction, enum machine_register *ret_from,
                    enum machine_register *ret_to)
{
    enum machine_register reg = flow_reg_operand(instruction), rm = flow_rm_operand(instruction);

    if (!is_mov(instruction) || rm == REGISTER_NONE)
        return false;
    *ret_from = instruction->opcode[0] == 0x89 ? reg : rm;
    *ret_to = instruction->opcode[0] == 0x89 ? rm : reg;
    return true;
}

/* Whether the operand reaches the return address. A `lea` reaches what it points to. */
static bool reaches_return_address(const struct walk *walk, const struct instruction *instruction)
{
    struct memory_operand memory;
    int64_t from_entry;

    if (instruction->kind == INSTRUCTION_NOP || !instruction_memory(instruction, &memory) ||
        memory.index != REGISTER_NONE)
        return false;
    if (memory.base == REGISTER_STACK && walk->knows_stack)
        from_entry = memory.displacement - walk->sp_offset;
    else if (memory.base == REGISTER_FRAME && walk->has_frame)
        from_entry = memory.displacement - 8;
    else
        return false;
    return is_lea(instruction) ? from_entry == 0 : from_entry >= 0 && from_entry < 8;
}

/* Whether rsp comes from, or goes to, memory outside the frame, or is exchanged. */
static bool trades_stack(const struct instruction *instruction)
{
    uint8_t opcode = instruction->opcode[0];
    struct memory_operand memory;

    if (instruction->vex)
        return false;
    if (opcode == 0x94 && !(instruction->rex & 1))
        return true;
    if (opcode == 0x87 &&
        (flow_reg_operand(instruction) == REGISTER_STACK || flow_rm_operand(instruction) == REGISTER_STACK))
        return true;
    return is_mov(instruction) && flow_reg_operand(instruction) == REGISTER_STACK &&
           instruction_memory(instruction, &memory) && memory.base != REGISTER_FRAME &&
           memory.base != REGISTER_STACK;
}

/* rt_sigreturn, clone, vfork, clone3 */
static bool is_special_call(const struct walk *walk, const struct instruction *instruction)
{
    if (instruction->vex || instruction->opcode[0] != 0x0f || instruction->opcode[1] != 0x05)
        return false;
    return walk->eax == 15 || walk->eax == 56 || walk->eax == 58 || walk->eax == 435;
}

static bool is_harmful(const struct walk *walk, const struct instruction *instruction)
{
    bool at_entry = walk->knows_stack && walk->sp_offset == 0;
    enum machine_register from, to;

    if (at_entry && is_pop(instruction))
        return true;
    if (at_entry && is_copy(instruction, &from, &to) && from == REGISTER_STACK)
        return true;
    if (walk->is_foreign && (is_pop(instruction) || instruction->kind == INSTRUCTION_RETURN ||
                             instruction->kind == INSTRUCTION_JUMP_INDIRECT))
        return true;
    return reaches_return_address(walk, instruction) || trades_stack(instruction) ||
           is_special_call(walk, instruction);
}

/* leave, or lea N(%rbp), %rsp */
static bool finds_frame(const struct instruction *instruction)
{
    struct memory_operand memory;

    if (instruction->vex)
        return false;
    return instruction->opcode[0] == 0xc9 ||
           (is_lea(instruction) && flow_reg_operand(instruction) == REGISTER_STACK &&
            instruction_memory(instruction, &memory) && memory.base == REGISTER_FRAME);
}

/* Where rsp came from: a register, or the frame. */
static void follow_origin(struct walk *walk, const struct instruction *instruction)
{
    enum machine_register from, to;

    if (finds_frame(instruction))
        walk->is_foreign = false;
    if (!is_copy(instruction, &from, &to))
        return;
    if (to == REGISTER_STACK)
        walk->is_foreign = from != REGISTER_FRAME;
    if (from == REGISTER_STACK && to == REGISTER_FRAME && walk->knows_stack && walk->sp_offset == 8)
        walk->has_frame = true;
}

static void follow(struct walk *walk, const struct instruction *instruction)
{
    const uint8_t *immediate = instruction->code + instruction->length - sizeof(walk->eax);
    int64_t bytes;

    if (!instruction->vex && instruction->length >= 5 &&
        ((instruction->opcode[0] == 0xb8 && !(instruction->rex & 1)) ||
         (instruction->opcode[0] == 0xc7 && instruction->modrm == 0xc0)))
        memcpy(&walk->eax, immediate, sizeof(walk->eax));
    follow_origin(walk, instruction);
    if (instruction_stack_effect(instruction, &bytes) == STACK_LOST)
        walk->knows_stack = false;
    walk->sp_offset -= bytes;
    switch (instruction->kind) {
    case INSTRUCTION_JUMP:
    case INSTRUCTION_JUMP_INDIRECT:
    case INSTRUCTION_RETURN:
    case INSTRUCTION_TRAP:
        walk->knows_stack = walk->is_foreign = false;
        break;
    default:
        break;
    }
}

bool return_code_forbids(const uint8_t *code, size_t size, uint64_t address)
{
    struct walk walk = {.knows_stack = true};
    struct instruction instruction;

    for (size_t at = 0; at < size; at += instruction.length) {
        if (disasm_skim(code + at, size - at, address + at, &instruction) < 0 ||
            is_harmful(&walk, &instruction))
            return true;
        follow(&walk, &instruction);
    }
    return false;
}

/* ---------------------------------------------------------------------------------------------- traits */

#define SYSTEM_CALL_PRCTL 157
#define SET_SYSCALL_USER_DISPATCH 59 /* PR_SET_SYSCALL_USER_DISPATCH of include/uapi/linux/prctl.h */

/* `mov %rbp, REG`, `mov (%rbp), REG` behind a prologue: what __builtin_frame_address() becomes. The ends of
 * functions pop the saved frame pointer. */
static bool takes_frame(const struct walk *walk, const struct instruction *instruction)
{
    enum machine_register from, to;
    struct memory_operand memory;

    if (!walk->has_frame || instruction->vex)
        return false;
    if (is_copy(instruction, &from, &to))
        return from == REGISTER_FRAME && to != REGISTER_STACK;
    return instruction->opcode[0] == 0x8b && instruction_memory(instruction, &memory) &&
           memory.base == REGISTER_FRAME && memory.index == REGISTER_NONE && memory.displacement == 0;
}

/* The last constants that went into the registers of the first two arguments, since the last call. */
struct constants {
    uint32_t edi, esi;
};

/* `mov $N, %edi` and `mov $N, %esi`, as 32-bit or sign-extended immediates. */
static void note_constant(struct constants *constants, const struct instruction *instruction)
{
    uint8_t opcode = instruction->opcode[0], modrm = instruction->modrm;
    uint32_t immediate;

    if (instruction->vex || instruction->rex & 1 || instruction->length < 5)
        return;
    memcpy(&immediate, instruction->code + instruction->length - sizeof(immediate), sizeof(immediate));
    if (opcode == 0xbf || (opcode == 0xc7 && modrm == 0xc7))
        constants->edi = immediate;
    if (opcode == 0xbe || (opcode == 0xc7 && modrm == 0xc6))
        constants->esi = immediate;
}

static bool is_call(const struct instruction *instruction)
{
    return instruction->kind == INSTRUCTION_CALL || instruction->kind == INSTRUCTION_CALL_INDIRECT ||
           instruction->kind == INSTRUCTION_JUMP || instruction->kind == INSTRUCTION_JUMP_INDIRECT;
}

/* Whether the program asks to be handed system calls: prctl(59, ...), syscall(157, 59, ...), or by itself. */
static bool dispatches(const struct walk *walk, const struct constants *constants,
                       const struct instruction *instruction, uint64_t prctl)
{
    bool is_system_call =
        !instruction->vex && instruction->opcode[0] == 0x0f && instruction->opcode[1] == 0x05;

    if (is_system_call)
        return walk->eax == SYSTEM_CALL_PRCTL && constants->edi == SET_SYSCALL_USER_DISPATCH;
    if (!is_call(instruction))
        return false;
    return (prctl && instruction->target == prctl && constants->edi == SET_SYSCALL_USER_DISPATCH) ||
           (constants->edi == SYSTEM_CALL_PRCTL && constants->esi == SET_SYSCALL_USER_DISPATCH);
}

unsigned return_code_traits(const uint8_t *code, size_t size, uint64_t address, uint64_t prctl)
{
    struct walk walk = {.knows_stack = true};
    struct constants constants = {0};
    struct instruction instruction;
    unsigned traits = 0;

    for (size_t at = 0; at < size; at += instruction.length) {
        if (disasm_skim(code + at, size - at, address + at, &instruction) < 0)
            break;
        if (takes_frame(&walk, &instruction))
            traits |= RETURN_CODE_WALKS;
        if (dispatches(&walk, &constants, &instruction, prctl))
            traits |= RETURN_CODE_DISPATCHES;
        note_constant(&constants, &instruction);
        if (is_call(&instruction))
            constants = (struct constants){0};
        follow(&walk, &instruction);
    }
    return traits;
}
