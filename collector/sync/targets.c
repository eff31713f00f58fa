/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/sync/targets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "collector/plan/return_sites.h"
#include "collector/plan/site.h"
#include "image/arch/effects.h"
#include "image/arch/operands.h"
#include "image/flow/flow_image.h"
#include "image/functions/functions.h"

#define TAIL_CALLS_MAX 3 /* so many jumps from function to function are followed for their returns */

struct finder {
    struct elf_image *image;
    struct image_function *functions;
    size_t count;
    struct flow_map *map;
    struct disasm *disasm;
    struct return_sites returns; /* of one function */
    struct sync_targets *targets;
    size_t capacity;
};

static void finder_release(struct finder *finder)
{
    image_functions_free(finder->functions, finder->count);
    flow_map_free(finder->map);
    disasm_free(finder->disasm);
    return_sites_release(&finder->returns);
}

void sync_targets_release(struct sync_targets *targets)
{
    free(targets->offsets);
    free(targets->cookies);
    free(targets->refused);
    free(targets->missed);
    *targets = (struct sync_targets){0};
}

/* ------------------------------------------------------------------------------------------ places */

/* A place that has a probe already keeps it. */
static int add_place(struct finder *finder, uint64_t address, uint64_t cookie)
{
    struct sync_targets *targets = finder->targets;
    size_t capacity = finder->capacity;
    uint64_t offset;

    if (elf_image_file_offset(finder->image, address, &offset))
        return 0;
    for (size_t i = 0; i < targets->count; i++)
        if (targets->offsets[i] == offset)
            return 0;
    if (array_reserve(&targets->offsets, &finder->capacity, targets->count + 1) ||
        array_reserve(&targets->cookies, &capacity, targets->count + 1))
        return -ENOMEM;
    targets->offsets[targets->count] = offset;
    targets->cookies[targets->count++] = cookie;
    return 0;
}

/* Whether a register holds one of the arguments up to this number. */
static bool holds_argument(int written, unsigned arguments)
{
    static const enum machine_register registers[] = {REGISTER_ARGUMENT_1, REGISTER_ARGUMENT_2,
                                                      REGISTER_ARGUMENT_3, REGISTER_ARGUMENT_4,
                                                      REGISTER_ARGUMENT_5, REGISTER_ARGUMENT_6};

    for (unsigned i = 0; i < arguments && i < ARRAY_SIZE(registers); i++)
        if (written == (int)registers[i])
            return true;
    return false;
}

/* Whether the arguments are certainly the same at `end` as at the function's first instruction. */
static bool arguments_survive(struct finder *finder, const struct image_function *function, uint64_t end,
                              unsigned arguments)
{
    struct instruction instruction;

    for (uint64_t at = function->address; at < end; at += instruction.length) {
        size_t size = 0;
        const uint8_t *code = flow_map_code(finder->map, at, &size);
        int written;

        if (!code || disasm_decode(finder->disasm, code, size, at, &instruction))
            return false;
        written = instruction_written_register(&instruction);
        if (written < 0 || holds_argument(written, arguments))
            return false;
    }
    return true;
}

/* A function that begins with an instruction that must not be probed, such as the locked decrement of a spin
 * lock, and branches on its result to come back later: it is seen at the branch, when that is not taken. */
static bool place_behind_lock(struct finder *finder, const struct image_function *function,
                              uint64_t *ret_address)
{
    struct instruction lock, branch;
    size_t size = 0;
    const uint8_t *code = flow_map_code(finder->map, function->address, &size);

    if (disasm_decode(finder->disasm, code, size, function->address, &lock) || !lock.locked ||
        disasm_decode(finder->disasm, code + lock.length, size - lock.length, function->address + lock.length,
                      &branch) ||
        instruction_condition(&branch) != BRANCH_IF_NOT_ZERO)
        return false;
    *ret_address = branch.address;
    return true;
}

/* Where the function's call is seen, and what its cookie has besides. False: nowhere. */
static bool entry_place(struct finder *finder, const struct image_function *function, unsigned arguments,
                        uint64_t *ret_address, uint64_t *ret_cookie)
{
    struct instruction instruction;
    enum site_refusal refusal;
    struct sites sites;
    size_t size = 0;
    const uint8_t *code = flow_map_code(finder->map, function->address, &size);

    if (!code || function->flags & (IMAGE_FUNCTION_IFUNC | IMAGE_FUNCTION_FRAGMENT | IMAGE_FUNCTION_PLT))
        return false;
    site_choose(finder->disasm, finder->map, code, size < function->size ? size : function->size,
                function->address, &sites);
    if (sites.any.class != SITE_REFUSED &&
        arguments_survive(finder, function, function->address + sites.any.offset, arguments)) {
        *ret_address = function->address + sites.any.offset;
        *ret_cookie = (uint64_t)(sites.any.sp_offset / 8) << COOKIE_SP_SHIFT;
        return true;
    }
    *ret_cookie = 0;
    if (place_behind_lock(finder, function, ret_address)) {
        *ret_cookie = SYNC_COOKIE_IF_ZERO;
        return true;
    }
    *ret_address = function->address;
    return sites.any.refusal != SITE_LOOP &&
           !disasm_decode(finder->disasm, code, size, function->address, &instruction) &&
           site_classify(&instruction, &refusal) != SITE_REFUSED;
}

/* ------------------------------------------------------------------------------------------ returns */

static int add_returns(struct finder *finder, size_t index, unsigned depth);

/* The returns of the functions that this one jumps to at its end. */
static int follow_tail_calls(struct finder *finder, const struct image_function *function, unsigned depth)
{
    struct instruction instruction;

    for (uint64_t at = function->address; at < function->address + function->size; at += instruction.length) {
        size_t size = 0;
        const uint8_t *code = flow_map_code(finder->map, at, &size);
        const struct image_function *to;
        int r;

        if (!code || disasm_skim(code, size, at, &instruction))
            return 0;
        if ((instruction.kind != INSTRUCTION_JUMP && instruction.kind != INSTRUCTION_BRANCH) ||
            instruction.target - function->address < function->size)
            continue;
        to = image_functions_find(finder->functions, finder->count, instruction.target);
        if (!to || to->address != instruction.target || to->flags & IMAGE_FUNCTION_FRAGMENT)
            continue;
        r = add_returns(finder, (size_t)(to - finder->functions), depth + 1);
        if (r)
            return r;
    }
    return 0;
}

static int add_returns(struct finder *finder, size_t index, unsigned depth)
{
    const uint64_t cookie = (uint64_t)SYNC_WIRE_RETURN << SYNC_COOKIE_PHASE_SHIFT;
    int r;

    if (depth > TAIL_CALLS_MAX)
        return 0;
    r = return_sites_find(finder->disasm, finder->map, finder->functions, finder->count, index,
                          &finder->returns);
    if (r == -EILSEQ)
        return 0; /* some ends will be missing */
    for (size_t i = 0; !r && i < finder->returns.count; i++)
        r = add_place(finder, finder->returns.items[i], cookie);
    return r ? r : follow_tail_calls(finder, &finder->functions[index], depth);
}

/* ------------------------------------------------------------------------------------------ functions */

/* Whether the name is the wanted one, or the wanted one with parameters behind it. */
static bool names(const char *name, const char *wanted)
{
    size_t length = strlen(wanted);

    return name && !strncmp(name, wanted, length) && (!name[length] || name[length] == '(');
}

static bool is_wanted(const struct image_function *function, const char *wanted)
{
    if (names(function->name, wanted) || names(function->demangled, wanted))
        return true;
    for (char **alias = function->aliases; alias && *alias; alias++)
        if (names(*alias, wanted))
            return true;
    return false;
}

static uint64_t cookie_of(const struct sync_function_spec *spec)
{
    uint64_t phase = spec->phase == SYNC_AT ? SYNC_WIRE_AT : SYNC_WIRE_BEGIN;

    return spec->kind | phase << SYNC_COOKIE_PHASE_SHIFT |
           (uint64_t)spec->object << SYNC_COOKIE_OBJECT_SHIFT |
           (uint64_t)spec->other << SYNC_COOKIE_OTHER_SHIFT |
           (uint64_t)spec->declared << SYNC_COOKIE_DECLARED_SHIFT;
}

static int note_missed(struct finder *finder, const char *name)
{
    char *before = finder->targets->missed, *text = NULL;

    if (asprintf(&text, "%s%s%s", before ? before : "", before ? ", " : "", name) < 0)
        return -ENOMEM;
    free(before);
    finder->targets->missed = text;
    return 0;
}

static int add_function(struct finder *finder, size_t index, const struct sync_function_spec *spec)
{
    unsigned arguments = spec->object > spec->other ? spec->object : spec->other;
    uint64_t address, cookie;
    int r;

    if (!entry_place(finder, &finder->functions[index], arguments, &address, &cookie))
        return note_missed(finder, spec->name);
    r = add_place(finder, address, cookie | cookie_of(spec));
    finder->targets->found++;
    return r || !spec->returns ? r : add_returns(finder, index, 0);
}

/* Whether any is there, before the code is looked at. */
static bool has_any(const struct finder *finder, const struct sync_function_spec *wanted, size_t count,
                    const char *beside)
{
    bool has_beside = !beside;

    for (size_t i = 0; i < finder->count && !has_beside; i++)
        has_beside = is_wanted(&finder->functions[i], beside);
    for (size_t i = 0; i < finder->count && has_beside; i++)
        for (size_t j = 0; j < count; j++)
            if (is_wanted(&finder->functions[i], wanted[j].name))
                return true;
    return false;
}

static int find_all(struct finder *finder, const struct sync_function_spec *wanted, size_t count,
                    struct error *err)
{
    bool all_taken;
    int r = flow_image_map(finder->image, finder->functions, finder->count, &finder->map, &all_taken, err);

    if (!r)
        r = disasm_new(&finder->disasm, err);
    if (r)
        return r;
    for (size_t i = 0; i < finder->count; i++)
        for (size_t j = 0; j < count; j++)
            if (is_wanted(&finder->functions[i], wanted[j].name) && add_function(finder, i, &wanted[j]))
                return error_no_memory(err), -ENOMEM;
    finder->targets->refused = calloc(finder->targets->count + 1, sizeof(bool));
    return finder->targets->refused ? 0 : error_no_memory(err);
}

int sync_targets_find(struct elf_image *image, const struct sync_function_spec *wanted, size_t count,
                      const char *beside, struct sync_targets *ret_targets, struct error *err)
{
    CLEANUP(finder_release) struct finder finder = {.image = image, .targets = ret_targets};
    int r;

    *ret_targets = (struct sync_targets){0};
    r = image_functions(image, &finder.functions, &finder.count, err);
    return r || !has_any(&finder, wanted, count, beside) ? r : find_all(&finder, wanted, count, err);
}
