/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where goroutines can be held up.
 *
 * - Right before an operation of the source, or an atomic instruction.
 * - Behind a go statement, before anything that its goroutine does next, which may be to read what the new
 *   goroutine writes: at the return of runtime.newproc. The probe at the call remembers which goroutine is to
 *   be stopped there.
 * - At the beginning of a goroutine's function.
 */
#include <errno.h>

#include "base/error.h"
#include "collector/go/targets.h"
#include "collector/go/usages.h"
#include "collector/plan/site.h"
#include "image/go/go_code.h"

enum {
    REACH = 6,        /* instructions */
    ENTRY_BYTES = 64, /* of a function, that its first place is looked for in */
    LONGEST_INSTRUCTION = 16,
};

struct adder {
    struct elf_image *image;
    struct go_code code;
    struct go_targets *targets;
    size_t first; /* of the targets that are added here */
};

static bool runs_on(const struct instruction *instruction)
{
    return !instruction->locked &&
           (instruction->kind == INSTRUCTION_OTHER || instruction->kind == INSTRUCTION_NOP ||
            instruction->kind == INSTRUCTION_PUSH);
}

static bool is_emulated(const struct instruction *instruction)
{
    enum site_refusal refusal;

    return site_classify(instruction, &refusal) == SITE_EMULATED;
}

/* The instruction before the one at `index` that a probe can stand on: the nearest, but a cheap one rather
 * than a dear one; 0: there is none in the straight line. */
static uint64_t place_before(const struct go_code *code, size_t index)
{
    uint64_t nearest = 0;

    for (size_t i = index; i > 0 && index - i < REACH && runs_on(&code->items[i - 1]); i--) {
        enum site_refusal refusal;
        enum site_class class = site_classify(&code->items[i - 1], &refusal);

        if (class == SITE_EMULATED)
            return code->items[i - 1].address;
        if (class == SITE_SINGLE_STEPPED && !nearest)
            nearest = code->items[i - 1].address;
    }
    return nearest;
}

/* The place before an instruction. 0: there is none. */
static int find_place_before(struct adder *adder, uint64_t function, uint64_t address, uint64_t *ret_place)
{
    size_t index;

    *ret_place = 0;
    if (go_code_read(adder->image, function, address + LONGEST_INSTRUCTION - function, &adder->code))
        return -ENOMEM;
    index = go_code_find(&adder->code, address);
    if (adder->code.items && index < adder->code.count)
        *ret_place = place_before(&adder->code, index);
    return 0;
}

static struct go_target *add_place(struct adder *adder, uint64_t address, enum go_op operation,
                                   uint64_t source)
{
    struct go_target *target = go_targets_add(adder->targets, address, GO_AT_DELAY, operation);

    if (!target)
        return NULL;
    target->probe.place_in_code = 1;
    target->source = source;
    return target;
}

/* ------------------------------------------------------------------------------------ operations */

static bool has_target(const struct adder *adder, uint64_t address)
{
    for (size_t i = adder->first; i < adder->targets->count; i++)
        if (adder->targets->items[i].address == address)
            return true;
    return false;
}

/* The beginning of a goroutine's function: its check for stack, or the instruction that makes its frame. */
static int add_beginning(struct adder *adder, const struct go_usage *usage, uint64_t function)
{
    const struct instruction *place = NULL;
    struct go_target *target;

    if (!function || has_target(adder, function))
        return 0;
    if (go_code_read(adder->image, function, ENTRY_BYTES, &adder->code))
        return -ENOMEM;
    for (size_t i = 0; adder->code.items && !place && i < adder->code.count && i < REACH; i++) {
        if (is_emulated(&adder->code.items[i]))
            place = &adder->code.items[i];
        else if (!runs_on(&adder->code.items[i]))
            break;
    }
    if (!place || has_target(adder, place->address))
        return 0;
    target = add_place(adder, place->address, GO_OP_NONE, 0);
    if (!target)
        return -ENOMEM;
    target->probe.at_stack_check = go_is_stack_check(&adder->code, (size_t)(place - adder->code.items));
    target->usage = usage;
    return 0;
}

/* A call is itself a place, and a cheap one; no probe can stand on the atomic instruction of an inlined
 * lock. */
static int add_site(struct adder *adder, const struct go_usage *usage, const struct go_site *site)
{
    uint64_t address = site->address, atomic = site->fast.atomic;
    struct go_target *target;

    if (atomic || !site->callee) {
        int r = find_place_before(adder, site->function, atomic ? atomic : address, &address);

        if (r || !address)
            return r;
    }
    target = add_place(adder, address, go_usage_operation(usage), atomic ? atomic : site->address);
    if (!target)
        return -ENOMEM;
    target->usage = usage;
    target->probe.behind = usage->operation == GO_GO;
    return usage->operation == GO_GO ? add_beginning(adder, usage, site->starts) : 0;
}

static int add_usage(struct adder *adder, const struct go_usage *usage)
{
    enum go_op operation = go_usage_operation(usage);
    int r = 0;

    if (usage->standard || operation == GO_OP_CHAN_MAKE || operation == GO_OP_NONE)
        return 0;
    for (size_t i = 0; !r && i < usage->site_count; i++)
        r = add_site(adder, usage, &usage->sites[i]);
    return r;
}

/* ------------------------------------------------------------------------------------ the others */

static int add_atomic(struct adder *adder, const struct go_atomic *atomic)
{
    uint64_t address;
    int r = find_place_before(adder, atomic->function, atomic->address, &address);

    if (r || !address || has_target(adder, address))
        return r;
    return add_place(adder, address, GO_OP_NONE, atomic->address) ? 0 : -ENOMEM;
}

/* Where runtime.newproc returns. */
static int add_behind_go(struct adder *adder, const struct go_entry_place *newproc)
{
    if (!newproc->name)
        return 0;
    if (go_code_read(adder->image, newproc->address, newproc->size, &adder->code))
        return -ENOMEM;
    for (size_t i = 0; i < adder->code.count; i++) {
        const struct instruction *instruction = &adder->code.items[i];

        if (instruction->kind == INSTRUCTION_RETURN &&
            !go_targets_add(adder->targets, instruction->address, GO_AT_BEHIND_GO, GO_OP_GO))
            return -ENOMEM;
    }
    return 0;
}

int go_targets_add_delays(struct elf_image *image, const struct go_layout *layout,
                          const struct go_model *model, struct go_targets *targets, struct error *err)
{
    struct adder adder = {.image = image, .targets = targets, .first = targets->count};
    int r = add_behind_go(&adder, &layout->entries[GO_NEWPROC]);

    for (size_t i = 0; !r && i < model->count; i++)
        r = add_usage(&adder, &model->usages[i]);
    for (size_t i = 0; !r && i < model->atomic_count; i++)
        r = add_atomic(&adder, &model->atomics[i]);
    go_code_release(&adder.code);
    return r ? (error_no_memory(err), r) : 0;
}
