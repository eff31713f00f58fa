/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/plan/return_rules.h"

#include <fnmatch.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/array.h"
#include "image/arch/effects.h"
#include "image/arch/operands.h"
#include "image/arch/stack_effect.h"

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

/* What a walk through a function's code knows. The return address lies at the entry's stack pointer. */
struct walk {
    bool knows_stack;
    int64_t sp_offset;    /* how far the stack pointer lies below the entry's, if knows_stack */
    bool has_frame;       /* the frame pointer lies a word below the entry's stack pointer */
    bool is_foreign;      /* the stack pointer was copied from a register that is not the frame pointer */
    uint32_t call_number; /* that was last loaded */
};

/* Whether the operand reaches the return address. Where an address is made it reaches what that points to. */
static bool reaches_return_address(const struct walk *walk, const struct instruction *instruction)
{
    struct memory_operand memory;
    enum machine_register reg;
    int64_t from_entry;

    if (instruction->kind == INSTRUCTION_NOP || !instruction_memory(instruction, &memory) ||
        memory.index != REGISTER_NONE)
        return false;
    if (memory.base == REGISTER_STACK && walk->knows_stack)
        from_entry = memory.displacement - walk->sp_offset;
    else if (memory.base == REGISTER_FRAME && walk->has_frame)
        from_entry = memory.displacement - CALL_PUSHES;
    else
        return false;
    if (instruction_makes_address(instruction, &reg, &memory))
        return from_entry == 0;
    return from_entry >= 0 && from_entry < CALL_PUSHES;
}

/* Whether the stack pointer comes from, or goes to, memory outside the frame, or is exchanged. */
static bool trades_stack(const struct instruction *instruction)
{
    enum machine_register reg;
    struct memory_operand memory;

    return instruction_exchanges_stack(instruction) ||
           (instruction_accesses(instruction, &reg, &memory) && reg == REGISTER_STACK &&
            memory.base != REGISTER_FRAME && memory.base != REGISTER_STACK);
}

static bool is_special_call(const struct walk *walk, const struct instruction *instruction)
{
    static const uint32_t special[] = {SYS_rt_sigreturn, SYS_clone, SYS_vfork, SYS_clone3};

    for (size_t i = 0; i < ARRAY_SIZE(special); i++)
        if (walk->call_number == special[i])
            return instruction_is_system_call(instruction);
    return false;
}

static bool is_harmful(const struct walk *walk, const struct instruction *instruction)
{
    bool at_entry = walk->knows_stack && walk->sp_offset == 0;
    enum machine_register from, to;

    if (at_entry && instruction_pops(instruction))
        return true;
    if (at_entry && instruction_copies(instruction, &from, &to) && from == REGISTER_STACK)
        return true;
    if (walk->is_foreign && (instruction_pops(instruction) || instruction->kind == INSTRUCTION_RETURN ||
                             instruction->kind == INSTRUCTION_JUMP_INDIRECT))
        return true;
    return reaches_return_address(walk, instruction) || trades_stack(instruction) ||
           is_special_call(walk, instruction);
}

/* Whether the stack pointer is made of the frame pointer. */
static bool finds_frame(const struct instruction *instruction)
{
    enum machine_register reg;
    struct memory_operand memory;

    return instruction_leaves_frame(instruction) || (instruction_makes_address(instruction, &reg, &memory) &&
                                                     reg == REGISTER_STACK && memory.base == REGISTER_FRAME);
}

/* Where the stack pointer came from: a register, or the frame. */
static void follow_origin(struct walk *walk, const struct instruction *instruction)
{
    enum machine_register from, to;

    if (finds_frame(instruction))
        walk->is_foreign = false;
    if (!instruction_copies(instruction, &from, &to))
        return;
    if (to == REGISTER_STACK)
        walk->is_foreign = from != REGISTER_FRAME;
    if (from == REGISTER_STACK && to == REGISTER_FRAME && walk->knows_stack && walk->sp_offset == CALL_PUSHES)
        walk->has_frame = true;
}

static void follow(struct walk *walk, const struct instruction *instruction)
{
    enum machine_register reg;
    int64_t bytes, number;

    if (instruction_loads_number(instruction, &reg, &number) && reg == REGISTER_CALL_NUMBER)
        walk->call_number = (uint32_t)number;
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

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59 /* include/uapi/linux/prctl.h */
#endif

/* The frame pointer, or the saved one that it points to, gets into a register behind a prologue: what
 * __builtin_frame_address() becomes. The ends of functions pop the saved frame pointer. */
static bool takes_frame(const struct walk *walk, const struct instruction *instruction)
{
    enum machine_register from, to;
    struct memory_operand memory;

    if (!walk->has_frame)
        return false;
    if (instruction_copies(instruction, &from, &to))
        return from == REGISTER_FRAME && to != REGISTER_STACK;
    return instruction_loads(instruction, true, &to, &memory) && memory.base == REGISTER_FRAME &&
           memory.index == REGISTER_NONE && memory.displacement == 0;
}

/* The last constants that were loaded as the first two arguments, since the last call. */
struct constants {
    uint32_t first, second;
};

static void note_constant(struct constants *constants, const struct instruction *instruction)
{
    enum machine_register reg;
    int64_t number;

    if (!instruction_loads_number(instruction, &reg, &number))
        return;
    if (reg == REGISTER_ARGUMENT_1)
        constants->first = (uint32_t)number;
    if (reg == REGISTER_ARGUMENT_2)
        constants->second = (uint32_t)number;
}

static bool is_call(const struct instruction *instruction)
{
    return instruction_is_call(instruction) || instruction->kind == INSTRUCTION_JUMP ||
           instruction->kind == INSTRUCTION_JUMP_INDIRECT;
}

/* Whether the program asks to be handed system calls: by prctl(), syscall() or itself. */
static bool dispatches(const struct walk *walk, const struct constants *constants,
                       const struct instruction *instruction, uint64_t prctl)
{
    if (instruction_is_system_call(instruction))
        return walk->call_number == SYS_prctl && constants->first == PR_SET_SYSCALL_USER_DISPATCH;
    if (!is_call(instruction))
        return false;
    return (prctl && instruction->target == prctl && constants->first == PR_SET_SYSCALL_USER_DISPATCH) ||
           (constants->first == SYS_prctl && constants->second == PR_SET_SYSCALL_USER_DISPATCH);
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
