/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where goroutines can be held up: right before an operation of the source. */
#include <errno.h>

#include "collector/go/targets.h"
#include "collector/go/usages.h"
#include "collector/plan/site.h"
#include "image/go_code.h"

enum { REACH = 6 /* instructions */ };

static bool runs_on(const struct instruction *instruction)
{
    return instruction->kind == INSTRUCTION_OTHER || instruction->kind == INSTRUCTION_NOP ||
           instruction->kind == INSTRUCTION_PUSH;
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

/* A call is itself a place, and a cheap one; no probe can stand on the atomic instruction of an inlined lock.
 * 0: there is no place. <0: -ENOMEM. */
static int find_place(struct elf_image *image, const struct go_site *site, struct go_code *code,
                      uint64_t *ret_address)
{
    uint64_t operation = site->fast.atomic ? site->fast.atomic : site->address;
    size_t index;

    *ret_address = site->address;
    if (!site->fast.atomic && site->callee)
        return 0;
    *ret_address = 0;
    if (go_code_read(image, site->function, operation + 16 - site->function, code))
        return -ENOMEM;
    index = go_code_find(code, operation);
    if (index < code->count)
        *ret_address = place_before(code, index);
    return 0;
}

static int add_usage(struct elf_image *image, const struct go_usage *usage, struct go_code *code,
                     struct go_targets *targets)
{
    for (size_t i = 0; i < usage->site_count; i++) {
        struct go_target *target;
        uint64_t address;
        int r = find_place(image, &usage->sites[i], code, &address);

        if (r)
            return r;
        if (!address)
            continue;
        target = go_targets_add(targets, address, GO_AT_DELAY, go_usage_operation(usage));
        if (!target)
            return -ENOMEM;
        target->probe.place_in_code = 1;
        target->source = usage->sites[i].fast.atomic ? usage->sites[i].fast.atomic : 0;
        target->usage = usage;
    }
    return 0;
}

int go_targets_add_delays(struct elf_image *image, const struct go_model *model, struct go_targets *targets,
                          struct error *err)
{
    struct go_code code = {0};
    int r = 0;

    for (size_t i = 0; !r && i < model->count; i++) {
        enum go_op operation = go_usage_operation(&model->usages[i]);

        if (!model->usages[i].standard && operation != GO_OP_CHAN_MAKE && operation != GO_OP_NONE)
            r = add_usage(image, &model->usages[i], &code, targets);
    }
    go_code_release(&code);
    return r ? (error_no_memory(err), r) : 0;
}
