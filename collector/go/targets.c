/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/go/targets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "collector/go/usages.h"
#include "collector/plan/site.h"
#include "image/arch/effects.h"
#include "image/arch/stack_effect.h"
#include "image/go/go_code.h"

#define BIT(register) (1u << (register))
enum {
    RESULT_REACH = 128, /* so many bytes behind a call its result is looked at */
};
#define ARGUMENT_1 BIT(REGISTER_GO_ARGUMENT_1)
#define ARGUMENT_2 BIT(REGISTER_GO_ARGUMENT_2)
#define ARGUMENT_3 BIT(REGISTER_GO_ARGUMENT_3)
#define ARGUMENT_4 BIT(REGISTER_GO_ARGUMENT_4)
#define ARGUMENT_5 BIT(REGISTER_GO_ARGUMENT_5)
#define ARGUMENT_6 BIT(REGISTER_GO_ARGUMENT_6)
#define OPERATION_REGISTERS (ARGUMENT_1 | BIT(REGISTER_FRAME)) /* the frame leads to the caller's caller */

/* Functions whose entry is probed. `registers`: what a hit is read from, beside the goroutine and the stack.
 * The locking ones are usually inlined (find_locks), but not by the race detector, and they are called
 * through interfaces (sync.Locker). */
static const struct entry_target {
    enum go_entry entry;
    enum go_place_kind kind;
    enum go_op operation;
    uint32_t registers;
    enum go_detail detail;
} entry_targets[] = {
    {GO_NEWPROC, GO_AT_SPAWN, GO_OP_GO, ARGUMENT_1, GO_DETAIL_LIVES},
    {GO_EXECUTE, GO_AT_EXECUTE, GO_OP_NONE, ARGUMENT_1, GO_DETAIL_SCHEDULE},
    {GO_GOEXIT0, GO_AT_END, GO_OP_NONE, ARGUMENT_1, GO_DETAIL_LIVES},
    {GO_GOPARK, GO_AT_PARK, GO_OP_NONE, ARGUMENT_3, GO_DETAIL_SCHEDULE},
    {GO_READY, GO_AT_READY, GO_OP_NONE, ARGUMENT_1, GO_DETAIL_SCHEDULE},
    {GO_GOSCHED_IMPL, GO_AT_QUEUE, GO_OP_NONE, ARGUMENT_1, GO_DETAIL_SCHEDULE},
    {GO_GOYIELD_M, GO_AT_QUEUE, GO_OP_NONE, ARGUMENT_1, GO_DETAIL_SCHEDULE},
    {GO_CHANSEND, GO_AT_SEND, GO_OP_CHAN_SEND, ARGUMENT_1 | ARGUMENT_3 | ARGUMENT_4, GO_DETAIL_WAITING},
    {GO_CHANRECV, GO_AT_RECV, GO_OP_CHAN_RECV, ARGUMENT_1 | ARGUMENT_3 | BIT(REGISTER_FRAME),
     GO_DETAIL_WAITING},
    {GO_CLOSECHAN, GO_AT_OPERATION, GO_OP_CHAN_CLOSE, OPERATION_REGISTERS, GO_DETAIL_WAITING},
    {GO_SELECTGO, GO_AT_SELECT, GO_OP_SELECT, ARGUMENT_1 | ARGUMENT_4 | ARGUMENT_5 | ARGUMENT_6,
     GO_DETAIL_WAITING},
    {GO_BLOCK, GO_AT_OPERATION, GO_OP_BLOCK, BIT(REGISTER_FRAME), GO_DETAIL_WAITING},
    {GO_MUTEX_LOCK, GO_AT_OPERATION, GO_OP_MUTEX_LOCK, OPERATION_REGISTERS, GO_DETAIL_OPERATIONS},
    {GO_MUTEX_LOCK_SLOW, GO_AT_OPERATION, GO_OP_MUTEX_LOCK, OPERATION_REGISTERS, GO_DETAIL_WAITING},
    {GO_MUTEX_TRYLOCK, GO_AT_OPERATION, GO_OP_MUTEX_TRYLOCK, OPERATION_REGISTERS, GO_DETAIL_OPERATIONS},
    {GO_MUTEX_UNLOCK, GO_AT_OPERATION, GO_OP_MUTEX_UNLOCK, OPERATION_REGISTERS, GO_DETAIL_OPERATIONS},
    {GO_MUTEX_UNLOCK_SLOW, GO_AT_OPERATION, GO_OP_MUTEX_UNLOCK, OPERATION_REGISTERS, GO_DETAIL_WAITING},
    {GO_RWMUTEX_LOCK, GO_AT_OPERATION, GO_OP_RWMUTEX_LOCK, OPERATION_REGISTERS, GO_DETAIL_WAITING},
    {GO_RWMUTEX_TRYLOCK, GO_AT_OPERATION, GO_OP_RWMUTEX_TRYLOCK, OPERATION_REGISTERS, GO_DETAIL_OPERATIONS},
    {GO_RWMUTEX_UNLOCK, GO_AT_OPERATION, GO_OP_RWMUTEX_UNLOCK, OPERATION_REGISTERS, GO_DETAIL_WAITING},
    {GO_RWMUTEX_RLOCK, GO_AT_OPERATION, GO_OP_RWMUTEX_RLOCK, OPERATION_REGISTERS, GO_DETAIL_OPERATIONS},
    {GO_RWMUTEX_TRYRLOCK, GO_AT_OPERATION, GO_OP_RWMUTEX_TRYRLOCK, OPERATION_REGISTERS, GO_DETAIL_OPERATIONS},
    {GO_RWMUTEX_RUNLOCK, GO_AT_OPERATION, GO_OP_RWMUTEX_RUNLOCK, OPERATION_REGISTERS, GO_DETAIL_OPERATIONS},
    {GO_WAITGROUP_ADD, GO_AT_OPERATION, GO_OP_WAITGROUP_ADD, OPERATION_REGISTERS | ARGUMENT_2,
     GO_DETAIL_WAITING},
    {GO_WAITGROUP_WAIT, GO_AT_OPERATION, GO_OP_WAITGROUP_WAIT, OPERATION_REGISTERS, GO_DETAIL_WAITING},
    {GO_COND_WAIT, GO_AT_OPERATION, GO_OP_COND_WAIT, OPERATION_REGISTERS, GO_DETAIL_WAITING},
    {GO_COND_SIGNAL, GO_AT_OPERATION, GO_OP_COND_SIGNAL, OPERATION_REGISTERS, GO_DETAIL_WAITING},
    {GO_COND_BROADCAST, GO_AT_OPERATION, GO_OP_COND_BROADCAST, OPERATION_REGISTERS, GO_DETAIL_WAITING},
    {GO_ONCE_DO_SLOW, GO_AT_OPERATION, GO_OP_ONCE_DO, OPERATION_REGISTERS, GO_DETAIL_OPERATIONS},
    {GO_TIME_SLEEP, GO_AT_OPERATION, GO_OP_SLEEP, OPERATION_REGISTERS, GO_DETAIL_SCHEDULE},
    {GO_TIMER_ADD, GO_AT_TIMER_STRUCT, GO_OP_NONE, ARGUMENT_1, GO_DETAIL_WAITING},
    {GO_TIMER_MODIFY, GO_AT_TIMER, GO_OP_NONE, ARGUMENT_1 | ARGUMENT_2 | ARGUMENT_3 | ARGUMENT_4 | ARGUMENT_6,
     GO_DETAIL_WAITING},
    {GO_TIMER_STOP, GO_AT_TIMER_STOP, GO_OP_NONE, ARGUMENT_1, GO_DETAIL_OPERATIONS},
    {GO_TIMER_RUN, GO_AT_TIMER_RUN, GO_OP_NONE, ARGUMENT_1, GO_DETAIL_OPERATIONS},
    {GO_TIMER_RUN_ONE, GO_AT_TIMER_RUN_SECOND, GO_OP_NONE, ARGUMENT_2, GO_DETAIL_OPERATIONS},
    {GO_SIGNAL_NOTIFY, GO_AT_NOTIFY, GO_OP_NONE, ARGUMENT_1, GO_DETAIL_WAITING},
    {GO_TEST_RUNNER, GO_AT_TEST, GO_OP_NONE, ARGUMENT_2, GO_DETAIL_SCHEDULE},
    {GO_GOPANIC, GO_AT_PANIC, GO_OP_NONE, 0, GO_DETAIL_SCHEDULE},
    {GO_FATAL, GO_AT_FATAL, GO_OP_NONE, ARGUMENT_1 | ARGUMENT_2, GO_DETAIL_LIVES},
    {GO_THROW, GO_AT_FATAL, GO_OP_NONE, ARGUMENT_1 | ARGUMENT_2, GO_DETAIL_LIVES},
    {GO_FATALPANIC, GO_AT_FATAL_PANIC, GO_OP_NONE, 0, GO_DETAIL_LIVES},
    {GO_EXIT, GO_AT_EXIT, GO_OP_NONE, 0, GO_DETAIL_LIVES},
};

struct finder {
    struct elf_image *image;
    const struct go_layout *layout;
    struct go_code code;
    struct go_targets *targets;
};

struct go_target *go_targets_add(struct go_targets *targets, uint64_t address, enum go_place_kind kind,
                                 enum go_op operation)
{
    struct go_target *target;

    if (array_reserve(&targets->items, &targets->capacity, targets->count + 1))
        return NULL;
    target = &targets->items[targets->count++];
    *target = (struct go_target){.address = address,
                                 .operation = operation,
                                 .detail = GO_DETAIL_OPERATIONS,
                                 .probe.kind = (uint8_t)kind};
    return target;
}

static struct go_target *add_target(struct finder *finder, uint64_t address, enum go_place_kind kind,
                                    enum go_op operation)
{
    return go_targets_add(finder->targets, address, kind, operation);
}

/* Whether it compares how much stack there is left. */
static bool compares_with_stack_guard(const struct instruction *instruction)
{
    struct memory_operand memory;

    return instruction_compares_with(instruction, &memory) && memory.base == REGISTER_GO_G &&
           memory.index == REGISTER_NONE;
}

bool go_is_stack_check(const struct go_code *code, size_t at)
{
    return at && instruction_condition(&code->items[at]) == BRANCH_IF_NOT_ABOVE &&
           compares_with_stack_guard(&code->items[at - 1]);
}

static bool leaves_registers(const struct instruction *instruction, uint32_t registers)
{
    for (unsigned reg = 0; reg < MACHINE_REGISTERS; reg++)
        if (registers & BIT(reg) && instruction_may_write(instruction, (enum machine_register)reg))
            return false;
    return true;
}

static bool is_emulated(const struct instruction *instruction)
{
    enum site_refusal refusal;

    return site_classify(instruction, &refusal) == SITE_EMULATED;
}

static bool can_step(const struct instruction *instruction)
{
    enum site_refusal refusal;

    return site_classify(instruction, &refusal) == SITE_SINGLE_STEPPED;
}

static bool runs_on(const struct instruction *instruction)
{
    return instruction->kind == INSTRUCTION_OTHER || instruction->kind == INSTRUCTION_NOP ||
           instruction->kind == INSTRUCTION_PUSH;
}

/* The index of the first instruction from `from` on that is emulated and before which none writes
 * `registers`; code->count: there is none in the straight line. `*sp_offset` is moved along. */
static size_t emulated_place(const struct go_code *code, size_t from, uint32_t registers, int64_t *sp_offset)
{
    int64_t moved = 0;

    for (size_t i = from; i < code->count; i++) {
        const struct instruction *instruction = &code->items[i];

        if (is_emulated(instruction))
            return i;
        if (!runs_on(instruction) || !leaves_registers(instruction, registers) ||
            instruction_stack_effect(instruction, &moved) == STACK_LOST)
            break;
        *sp_offset -= moved;
    }
    return code->count;
}

/* Places a probe at the beginning of the function whose code has been read. */
static int add_entry(struct finder *finder, enum go_place_kind kind, enum go_op operation, uint32_t registers)
{
    const struct go_code *code = &finder->code;
    struct go_target *target;
    int64_t sp_offset = 0;
    size_t at = emulated_place(code, 0, registers, &sp_offset);
    bool stepped = at == code->count;

    if (stepped) {
        at = 0;
        sp_offset = 0;
        if (!code->count || !can_step(&code->items[0]))
            return -ENOENT;
    }
    target = add_target(finder, code->items[at].address, kind, operation);
    if (!target)
        return -ENOMEM;
    target->single_stepped = stepped;
    target->probe.sp_offset = (uint32_t)sp_offset;
    target->probe.at_stack_check = go_is_stack_check(code, at);
    return 0;
}

static int missing(const struct finder *finder, enum go_entry entry, struct error *err)
{
    return error_say(err, -ENOTSUP, "%s: no place for a probe in %s of %s", elf_image_name(finder->image),
                     go_entry_name(entry), finder->layout->version.text);
}

/* 0 also for functions that the program does not have. */
static int find_entry(struct finder *finder, const struct entry_target *entry, struct error *err)
{
    const struct go_entry_place *place = &finder->layout->entries[entry->entry];
    int r;

    if (!place->name)
        return 0;
    if (go_code_read(finder->image, place->address, place->size, &finder->code))
        return error_no_memory(err), -ENOMEM;
    r = add_entry(finder, entry->kind, entry->operation, entry->registers);
    if (r == -ENOENT)
        return missing(finder, entry->entry, err);
    if (r)
        return error_no_memory(err), -ENOMEM;
    finder->targets->items[finder->targets->count - 1].detail = entry->detail;
    finder->targets->items[finder->targets->count - 1].slow_path =
        entry->entry == GO_MUTEX_LOCK_SLOW || entry->entry == GO_MUTEX_UNLOCK_SLOW;
    return 0;
}

static int add_spawned(struct finder *finder, uint64_t address, struct error *err)
{
    struct go_target *target = add_target(finder, address, GO_AT_SPAWNED, GO_OP_NONE);

    if (!target)
        return error_no_memory(err), -ENOMEM;
    target->detail = GO_DETAIL_LIVES;
    return 0;
}

/* Behind newproc1 the new goroutine is its result; then it is copied to be an argument of the call of
 * runqput, which is a cheap place. */
static int find_spawned(struct finder *finder, struct error *err)
{
    const struct go_entry_place *closure = &finder->layout->entries[GO_NEWPROC_CLOSURE];
    uint64_t maker = finder->layout->entries[GO_NEWPROC1].address;
    const struct go_code *code = &finder->code;
    bool made = false, copied = false;
    enum machine_register from, to;

    if (!closure->name || go_code_read(finder->image, closure->address, closure->size, &finder->code))
        return missing(finder, GO_NEWPROC_CLOSURE, err);
    for (size_t i = 0; i < code->count; i++) {
        const struct instruction *instruction = &code->items[i];

        if (instruction->kind == INSTRUCTION_CALL && copied)
            return add_spawned(finder, instruction->address, err);
        if (made && instruction_copies(instruction, &from, &to) && from == REGISTER_GO_ARGUMENT_1 &&
            to == REGISTER_GO_ARGUMENT_2)
            copied = true;
        else if (copied && instruction_may_write(instruction, REGISTER_GO_ARGUMENT_2))
            break;
        made |= instruction->kind == INSTRUCTION_CALL && instruction->target == maker;
    }
    return missing(finder, GO_NEWPROC_CLOSURE, err);
}

/* ------------------------------------------------------------------------------------ inlined locks */

static void describe_operand(struct go_probe *probe, const struct go_fast_path *fast)
{
    probe->base = fast->base;
    probe->index = fast->index;
    probe->scale = fast->scale;
    probe->displacement = fast->displacement - fast->field;
    probe->condition = fast->condition;
    probe->slow_taken = fast->slow_taken;
}

static int add_lock(struct finder *finder, const struct go_site *site, const struct go_usage *usage)
{
    const struct go_fast_path *fast = &site->fast;
    uint64_t address = fast->address_kept ? fast->branch : site->before;
    size_t at = go_code_find(&finder->code, address);
    struct go_target *target;

    if (!address || at == finder->code.count)
        return 0;
    if (!fast->address_kept && !leaves_registers(&finder->code.items[at], BIT(fast->base) | BIT(fast->index)))
        return 0;
    target = add_target(finder, address, GO_AT_LOCK, go_usage_operation(usage));
    if (!target)
        return -ENOMEM;
    describe_operand(&target->probe, fast);
    if (!fast->address_kept) { /* before the instruction its result is unknown */
        target->probe.condition = 0;
        target->probe.slow_taken = 0;
        target->single_stepped = !is_emulated(&finder->code.items[at]);
    }
    target->probe.place_in_code = 1;
    target->usage = usage;
    return 0;
}

static bool is_in(const struct go_usage *usage, const char *function)
{
    return !strncmp(usage->function, function, strlen(function));
}

/* What RWMutex.RLocker makes has methods that RLock and RUnlock are inlined into. */
static int add_read_locker(struct finder *finder, const struct go_usage *usage)
{
    for (size_t i = 0; i < usage->site_count; i++) {
        const struct go_site *site = &usage->sites[i];
        int r;

        if (!site->fast.atomic) /* RLock is called, and seen there */
            continue;
        if (go_code_read(finder->image, site->function, site->address - site->function, &finder->code))
            return -ENOMEM;
        r = add_entry(finder, GO_AT_OPERATION, go_usage_operation(usage), OPERATION_REGISTERS);
        if (r == -ENOMEM)
            return r;
    }
    return 0;
}

static int find_locks(struct finder *finder, const struct go_usage *usage)
{
    bool is_lock = usage->object == GO_MUTEX || usage->object == GO_RWMUTEX;

    if (is_lock && is_in(usage, "sync.(*rlocker)."))
        return add_read_locker(finder, usage);
    if (usage->standard &&
        !is_in(usage, "sync.(*Once).doSlow")) /* recursion of Once.Do waits for a lock in it */
        return 0;
    for (size_t i = 0; is_lock && i < usage->site_count; i++) {
        const struct go_site *site = &usage->sites[i];
        uint64_t end = site->address > site->fast.branch ? site->address : site->fast.branch;

        if (!site->fast.atomic)
            continue;
        if (end < site->fast.atomic)
            end = site->fast.atomic;
        if (go_code_read(finder->image, site->function, end + INSTRUCTION_BYTES - site->function,
                         &finder->code) ||
            add_lock(finder, site, usage))
            return -ENOMEM;
    }
    return 0;
}

/* ------------------------------------------------------------------------------------ results */

/* Behind a call whose answer somebody may want, in code of the program's own. */
static int find_results(struct finder *finder, const struct go_usage *usage)
{
    bool makes = usage->operation == GO_MAKE;
    bool answers = makes || usage->operation == GO_SELECT || usage->operation == GO_TRYLOCK ||
                   usage->operation == GO_TRYRLOCK;

    for (size_t i = 0; answers && !usage->standard && i < usage->site_count; i++) {
        const struct go_site *site = &usage->sites[i];
        int64_t sp_offset = 0;
        struct go_target *target;
        size_t call, at;

        if (!site->callee)
            continue;
        if (go_code_read(finder->image, site->function, site->address + RESULT_REACH - site->function,
                         &finder->code) == -ENOMEM)
            return -ENOMEM;
        call = go_code_find(&finder->code, site->address);
        if (call + 1 >= finder->code.count)
            continue;
        at = emulated_place(&finder->code, call + 1, ARGUMENT_1, &sp_offset);
        if (at == finder->code.count && makes && can_step(&finder->code.items[call + 1]))
            at = call + 1; /* a new channel must be known: it is worth the price */
        if (at == finder->code.count)
            continue;
        target = add_target(finder, finder->code.items[at].address, GO_AT_RESULT, go_usage_operation(usage));
        if (!target)
            return -ENOMEM;
        target->single_stepped = !is_emulated(&finder->code.items[at]);
        target->source = site->address;
        target->probe.place_in_code = 1;
        target->usage = usage;
    }
    return 0;
}

/* ------------------------------------------------------------------------------------ all of them */

static int by_address(const void *a, const void *b)
{
    const struct go_target *first = a, *second = b;

    if (first->address != second->address)
        return first->address < second->address ? -1 : 1;
    return (int)first->probe.kind - (int)second->probe.kind;
}

/* One probe for each place: of two that fall together, that of the function which begins there is kept. */
static void sort(struct go_targets *targets)
{
    size_t kept = 0;

    qsort(targets->items, targets->count, sizeof(*targets->items), by_address);
    for (size_t i = 0; i < targets->count; i++)
        if (!kept || targets->items[kept - 1].address != targets->items[i].address)
            targets->items[kept++] = targets->items[i];
    targets->count = kept;
}

static int find_all(struct finder *finder, const struct go_model *model, enum go_detail detail,
                    struct error *err)
{
    int r = find_spawned(finder, err);

    for (size_t i = 0; !r && i < ARRAY_SIZE(entry_targets); i++)
        if (entry_targets[i].detail <= detail)
            r = find_entry(finder, &entry_targets[i], err);
    if (r || detail < GO_DETAIL_OPERATIONS)
        return r;
    for (size_t i = 0; i < model->count; i++)
        if (find_locks(finder, &model->usages[i]) || find_results(finder, &model->usages[i]))
            return error_no_memory(err), -ENOMEM;
    return 0;
}

int go_targets_find(struct elf_image *image, const struct go_layout *layout, const struct go_model *model,
                    enum go_detail detail, struct go_targets *ret_targets, struct error *err)
{
    struct finder finder = {.image = image, .layout = layout, .targets = ret_targets};
    int r;

    *ret_targets = (struct go_targets){0};
    r = find_all(&finder, model, detail, err);
    go_code_release(&finder.code);
    if (!r)
        sort(ret_targets);
    return r;
}

void go_targets_release(struct go_targets *targets)
{
    free(targets->items);
    *targets = (struct go_targets){0};
}
