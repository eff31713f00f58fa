/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/stacks/live_unwind.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <inttypes.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "collector/process/target_memory.h"
#include "image/arch/code_bytes.h"
#include "image/elf/elf_file.h"

#define VDSO_LIMIT (1u << 20) /* two pages where it was looked at */

/* What a call leaves as it was, or what the unwinder knows of itself. It also hands on the others, which the
 * called functions may have changed. */
#define KEPT_REGISTERS (DWARF_KEPT_REGISTERS | 1u << LIVE_SP | 1u << LIVE_PC)

struct module {
    struct live_unwinder *unwinder;
    const struct live_mapping *first;
};

struct live_unwinder {
    pid_t pid;
    const struct live_maps *maps;
    Dwfl *dwfl;
    bool attached;
    struct module *modules; /* libdwfl holds pointers to them */
    size_t module_count;
    void *vdso;
    const struct live_thread *thread; /* the one that is looked at */
    const struct live_copy *copies;   /* the memory that is known of it */
    size_t copy_count;
};

void live_stack_release(struct live_stack *stack)
{
    free(stack->frames);
    *stack = (struct live_stack){0};
}

/* ------------------------------------------------------------------------------------- the process's files
 */

/* The kernel's own object is in no file: it is copied out of the process. */
static Elf *read_vdso(struct live_unwinder *unwinder, const struct live_mapping *mapping)
{
    size_t size = mapping->end - mapping->start;

    if (unwinder->vdso || size > VDSO_LIMIT)
        return NULL;
    unwinder->vdso = malloc(size);
    if (!unwinder->vdso || target_memory_read(unwinder->pid, mapping->start, unwinder->vdso, size) != size)
        return NULL;
    return elf_memory(unwinder->vdso, size);
}

static int find_elf(Dwfl_Module *dwfl_module, void **userdata, const char *name, Dwarf_Addr base,
                    char **ret_path, Elf **ret_elf)
{
    struct module *module = *userdata;
    struct elf_file file;
    AUTO_CLOSE int fd = -1;

    if (module->first->kind == LIVE_VDSO) {
        *ret_elf = read_vdso(module->unwinder, module->first);
        return -1;
    }
    fd = live_mapping_open(module->unwinder->pid, module->first);
    /* libdwfl would map the file, which may be cut off meanwhile, and unpack one that is no ELF file. */
    if (fd < 0 || elf_file_look(fd, &file) || !elf_file_debug_fits(&file) ||
        !(*ret_elf = elf_file_begin(fd, &file)))
        return -1;
    return take_fd(&fd);
}

/* Separate debug files are not looked for: what is needed to unwind is in the file that runs. */
static int find_no_debuginfo(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
                             const char *file, const char *link, GElf_Word crc, char **ret_path)
{
    return -1;
}

static const Dwfl_Callbacks file_callbacks = {.find_elf = find_elf, .find_debuginfo = find_no_debuginfo};

/* Whether a mapping continues with the file that begins in the ones before it. The same file may be mapped
 * anew, which shows by its offset; a file may also begin with several mappings of its first page. */
static bool continues(const struct live_mapping *before, const struct live_mapping *mapping)
{
    return mapping->kind == before->kind && mapping->inode == before->inode &&
           mapping->device == before->device && (mapping->offset || !before->offset);
}

/* Reports the module whose first mapping is `first`, if it is one; returns how many mappings it takes. */
static size_t report_module(struct live_unwinder *unwinder, const struct live_mapping *first, size_t rest)
{
    struct module *module = &unwinder->modules[unwinder->module_count];
    bool executable = first->executable;
    Dwfl_Module *reported;
    size_t count = 1;
    void **userdata;
    char name[64];

    if (first->kind != LIVE_FILE && first->kind != LIVE_VDSO)
        return 1;
    for (; count < rest && continues(&first[count - 1], &first[count]); count++)
        executable |= first[count].executable;
    if (first->offset || !executable)
        return count;
    snprintf(name, sizeof(name), "%" PRIx64, first->start);
    reported = dwfl_report_module(unwinder->dwfl, name, first->start, first[count - 1].end);
    if (!reported)
        return count;
    dwfl_module_info(reported, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
    *module = (struct module){unwinder, first};
    *userdata = module;
    unwinder->module_count++;
    return count;
}

/* --------------------------------------------------------------------------- the thread that is looked at */

static pid_t next_thread(Dwfl *dwfl, void *argument, void **thread_argument)
{
    struct live_unwinder *unwinder = argument;

    if (*thread_argument)
        return 0;
    *thread_argument = unwinder;
    return unwinder->thread->tid;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *argument, void **thread_argument)
{
    *thread_argument = argument;
    return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *ret_word, void *argument)
{
    const struct live_unwinder *unwinder = argument;

    for (size_t i = 0; i < unwinder->copy_count; i++) {
        const struct live_copy *copy = &unwinder->copies[i];
        uint64_t offset = address - copy->address;

        if (copy->size < sizeof(*ret_word) || offset > copy->size - sizeof(*ret_word))
            continue;
        memcpy(ret_word, copy->bytes + offset, sizeof(*ret_word));
        return true;
    }
    return false;
}

static bool set_registers(Dwfl_Thread *thread, void *argument)
{
    struct live_unwinder *unwinder = argument;
    Dwarf_Word registers[LIVE_REGISTERS];

    for (size_t i = 0; i < LIVE_REGISTERS; i++)
        registers[i] = unwinder->thread->registers[i];
    return dwfl_thread_state_registers(thread, 0, LIVE_REGISTERS, registers);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
    .next_thread = next_thread,
    .get_thread = get_thread,
    .memory_read = read_memory,
    .set_initial_registers = set_registers,
};

int live_unwinder_new(pid_t pid, const struct live_maps *maps, struct live_unwinder **ret_unwinder)
{
    struct live_unwinder *unwinder = calloc(1, sizeof(*unwinder));

    if (!unwinder)
        return -ENOMEM;
    unwinder->pid = pid;
    unwinder->maps = maps;
    unwinder->modules = calloc(maps->count + 1, sizeof(*unwinder->modules));
    unwinder->dwfl = dwfl_begin(&file_callbacks);
    if (!unwinder->modules || !unwinder->dwfl) {
        live_unwinder_free(unwinder);
        return -ENOMEM;
    }
    dwfl_report_begin(unwinder->dwfl);
    for (size_t i = 0; i < maps->count;)
        i += report_module(unwinder, &maps->items[i], maps->count - i);
    dwfl_report_end(unwinder->dwfl, NULL, NULL);
    unwinder->attached = dwfl_attach_state(unwinder->dwfl, NULL, pid, &thread_callbacks, unwinder);
    *ret_unwinder = unwinder;
    return 0;
}

void live_unwinder_free(struct live_unwinder *unwinder)
{
    if (!unwinder)
        return;
    if (unwinder->dwfl)
        dwfl_end(unwinder->dwfl);
    free(unwinder->modules);
    free(unwinder->vdso);
    free(unwinder);
}

/* ---------------------------------------------------------------------------------------------- the walk */

struct walk {
    struct live_unwinder *unwinder;
    struct live_stack *stack;
    size_t capacity;
    bool no_memory;
};

/* Whether the information has a rule for the address; `*ret_signal`: it is the kernel's frame of a signal
 * handler. */
static bool covers(Dwarf_CFI *information, Dwarf_Addr address, bool *ret_signal)
{
    AUTO_FREE Dwarf_Frame *frame = NULL;

    return information && !dwarf_cfi_addrframe(information, address, &frame) &&
           dwarf_frame_info(frame, NULL, NULL, ret_signal) >= 0;
}

/* Whether call frame information says how to continue from here. */
static bool can_go_on(struct live_unwinder *unwinder, uint64_t pc, bool *ret_signal)
{
    Dwfl_Module *module = dwfl_addrmodule(unwinder->dwfl, pc);
    Dwarf_Addr bias;
    Dwarf_CFI *information;

    *ret_signal = false;
    if (!module)
        return false;
    information = dwfl_module_eh_cfi(module, &bias);
    if (covers(information, pc - bias, ret_signal))
        return true;
    information = dwfl_module_dwarf_cfi(module, &bias);
    return covers(information, pc - bias, ret_signal);
}

/* The stack pointer in a frame is the CFA of the frame that it called (System V ABI for AMD64, 3.7). */
static bool complete_frame(struct walk *walk, uint64_t sp, uint64_t return_address)
{
    struct live_stack *stack = walk->stack;
    struct live_frame *called = &stack->frames[stack->count - 1];

    if (sp <= stack->complete_to || sp > walk->unwinder->copies->stack_high)
        return false;
    called->cfa = sp;
    called->return_address = return_address;
    stack->complete_to = sp;
    return true;
}

static int visit_frame(Dwfl_Frame *state, void *argument)
{
    struct walk *walk = argument;
    struct live_stack *stack = walk->stack;
    Dwarf_Addr pc;
    Dwarf_Word sp;
    bool at_pc; /* not behind a call */
    bool signal;

    if (!dwfl_frame_pc(state, &pc, &at_pc) || dwfl_frame_reg(state, LIVE_SP, &sp))
        return DWARF_CB_ABORT;
    if (stack->count && !complete_frame(walk, sp, pc))
        return DWARF_CB_ABORT;
    if (array_reserve(&stack->frames, &walk->capacity, stack->count + 1)) {
        walk->no_memory = true;
        return DWARF_CB_ABORT;
    }
    stack->frames[stack->count] = (struct live_frame){.pc = at_pc ? pc : pc - 1};
    return can_go_on(walk->unwinder, stack->frames[stack->count++].pc, &signal) ? DWARF_CB_OK
                                                                                : DWARF_CB_ABORT;
}

/* Whether the walk came to the outermost frame. */
static bool walk_frames(struct live_unwinder *unwinder, const struct live_thread *thread,
                        const struct live_copy *copies, size_t copy_count,
                        int (*visit)(Dwfl_Frame *state, void *argument), void *argument)
{
    bool whole;

    unwinder->thread = thread;
    unwinder->copies = copies;
    unwinder->copy_count = copy_count;
    whole = !dwfl_getthread_frames(unwinder->dwfl, thread->tid, visit, argument);
    unwinder->thread = NULL;
    unwinder->copies = NULL;
    unwinder->copy_count = 0;
    return whole;
}

/* Where a direct call before the return address leads. Its first byte is a breakpoint while a probe stands
 * there. */
static uint64_t called_from(pid_t pid, uint64_t return_address)
{
    uint8_t code[CODE_CALL_BYTES];

    if (target_memory_read(pid, return_address - sizeof(code), code, sizeof(code)) != sizeof(code) ||
        (!code_is_call(code) && !code_is_trap(code)))
        return 0;
    return code_call_target(code, return_address - sizeof(code));
}

int live_unwind(struct live_unwinder *unwinder, const struct live_thread *thread,
                const struct live_copy *copy, struct live_stack *ret_stack)
{
    struct live_stack stack = {.low = copy->stack_low, .complete_to = thread->registers[LIVE_SP]};
    struct walk walk = {.unwinder = unwinder, .stack = &stack};

    if (!unwinder->attached || !copy->size) {
        *ret_stack = (struct live_stack){0};
        return 0;
    }
    stack.whole = walk_frames(unwinder, thread, copy, 1, visit_frame, &walk);
    if (walk.no_memory) {
        live_stack_release(&stack);
        return -ENOMEM;
    }
    for (size_t i = 0; i < stack.count; i++)
        if (stack.frames[i].return_address)
            stack.frames[i].callee = called_from(unwinder->pid, stack.frames[i].return_address);
    *ret_stack = stack;
    return 0;
}

/* ------------------------------------------------------------------------------- the walk with registers */

struct activations {
    struct live_unwinder *unwinder;
    bool (*visit)(void *context, const struct live_activation *activation);
    void *context;
    bool begun;
    bool guessed;   /* from here on */
    bool in_signal; /* the one before was the kernel's frame of a signal handler */
};

/* What leads to something else than code is wrong: a guess, or the call frame information of code that
 * switches stacks. */
static bool is_code(const struct live_unwinder *unwinder, uint64_t pc)
{
    const struct live_mapping *mapping = live_maps_find(unwinder->maps, pc);

    return mapping && mapping->executable;
}

static int visit_activation(Dwfl_Frame *state, void *argument)
{
    struct activations *walk = argument;
    struct live_activation activation = {.guessed = walk->guessed,
                                         .interrupted = !walk->begun || walk->in_signal};
    Dwarf_Word value;
    bool has_rule;

    /* What dwfl_frame_pc() says of activations is true of the signal's frame as well. */
    if (!dwfl_frame_pc(state, &activation.pc, NULL) ||
        (!activation.interrupted && !is_code(walk->unwinder, activation.pc - 1)))
        return DWARF_CB_ABORT;
    for (unsigned i = 0; i < LIVE_REGISTERS; i++) {
        if (dwfl_frame_reg(state, i, &value))
            continue;
        activation.registers[i] = value;
        activation.known |= 1u << i;
    }
    if (!activation.interrupted)
        activation.known &= KEPT_REGISTERS;
    has_rule = can_go_on(walk->unwinder, activation.interrupted ? activation.pc : activation.pc - 1,
                         &walk->in_signal);
    activation.signal_frame = walk->in_signal;
    walk->begun = true;
    walk->guessed = !has_rule;
    return walk->visit(walk->context, &activation) ? DWARF_CB_OK : DWARF_CB_ABORT;
}

bool live_unwind_activations(struct live_unwinder *unwinder, const struct live_thread *thread,
                             const struct live_copy *copies, size_t copy_count,
                             bool (*visit)(void *context, const struct live_activation *activation),
                             void *context)
{
    struct activations walk = {.unwinder = unwinder, .visit = visit, .context = context};

    return unwinder->attached && walk_frames(unwinder, thread, copies, copy_count, visit_activation, &walk);
}
