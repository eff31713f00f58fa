/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/inline/inline_image.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "collector/arch/record.h"
#include "collector/plan/rewrite_gates.h"
#include "image/elf/imports.h"
#include "image/flow/constant_calls.h"

#define STUB_ALIGNMENT 16u

/* A child that is made by these works on its maker's slots while that stands still. */
static const char *const vforks[] = {"vfork", "__vfork", NULL};

/* What keeps all of its memory from being paged out would count and keep ours, too. */
static const char *const lockers[] = {"mlockall", NULL};

/* By these it may, without saying so. */
static const char *const callers_of_anything[] = {"syscall", "dlsym", "dlvsym", NULL};

const char *inline_image_refusal(struct elf_image *image, bool reports_slot_sharing)
{
    const struct elf_image_facts *facts = elf_image_facts(image);

    if (facts->is_go)
        return "a Go program";
    if (facts->is_static)
        return "a static program";
    if (facts->interpreter && !strstr(facts->interpreter, "/ld-linux-x86-64.so"))
        return "its C library is not glibc";
    if (facts->relocates_code)
        return "its code is relocated when it is loaded";
    if (!facts->has_sections)
        return "it has no section headers";
    if (image_imports(image, lockers))
        return "it locks its memory (mlockall)";
    if (!reports_slot_sharing && image_imports(image, vforks))
        return "it uses vfork, and this kernel does not tell when the child ends";
    return NULL;
}

void inline_image_free(struct inline_image *inlined)
{
    if (!inlined)
        return;
    free(inlined->sites);
    free(inlined->code);
    free(inlined->chosen);
    free(inlined);
}

DEFINE_CLEANUP(cleanup_inline_image, struct inline_image *, inline_image_free)

/* What the plan sees, or would if there were a place for a uprobe; but for what has one of another kind. */
static void choose(struct inline_image *inlined, const struct image_function *functions,
                   const struct plan *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        inlined->chosen[plan->probes[i].function] = true;
    for (size_t i = 0; i < plan->refusal_count; i++)
        inlined->chosen[plan->refusals[i].function] = true;
    for (size_t i = 0; i < inlined->count; i++)
        inlined->chosen[i] &= inlined->sites[i].refusal == DISPLACE_OK && !rewrite_gate_is(&functions[i]);
}

static size_t patched_bytes(const struct displace_site *site)
{
    size_t moved = site->displacement.length;

    return moved > DISPLACE_JUMP ? moved : DISPLACE_JUMP;
}

/* Leaves functions to their uprobes where one of those that stay would stand in their patched bytes. Returns
 * whether there were any: they have uprobes themselves now. */
static bool part(struct inline_image *inlined, const struct image_function *functions,
                 const struct plan *plan)
{
    bool changed = false;

    for (size_t i = 0; i < plan->count; i++) {
        const struct plan_probe *probe = &plan->probes[i];
        const struct image_function *around;
        size_t index;

        if (inlined->chosen[probe->function])
            continue;
        around = image_functions_find(functions, inlined->count, probe->address);
        index = around ? (size_t)(around - functions) : 0;
        if (!around || !inlined->chosen[index] ||
            probe->address - inlined->sites[index].address >= patched_bytes(&inlined->sites[index]))
            continue;
        inlined->chosen[index] = false;
        changed = true;
    }
    return changed;
}

static size_t aligned(size_t size)
{
    return (size + STUB_ALIGNMENT - 1) & ~(size_t)(STUB_ALIGNMENT - 1);
}

static void add_up(struct inline_image *inlined)
{
    inlined->low = UINT64_MAX;
    for (size_t i = 0; i < inlined->count; i++) {
        const struct displace_site *site = &inlined->sites[i];

        if (!inlined->chosen[i])
            continue;
        inlined->chosen_count++;
        if (site->address < inlined->low)
            inlined->low = site->address;
        if (site->address + patched_bytes(site) > inlined->high)
            inlined->high = site->address + patched_bytes(site);
    }
    inlined->aside_at = inlined->chosen_count * aligned(stub_max);
    inlined->stub_bytes = inlined->aside_at + inlined->chosen_count * aligned(stub_aside_max);
}

/* Copies the code that stubs and patches are made of: a process may get its probes long after the image's file was
 * put away (elf_image_forget). */
static int keep_code(struct inline_image *inlined, struct error *err)
{
    size_t bytes = 0;
    uint8_t *next;

    for (size_t i = 0; i < inlined->count; i++)
        if (inlined->chosen[i])
            bytes += inlined->sites[i].displacement.offset + patched_bytes(&inlined->sites[i]);
    inlined->code = next = malloc(bytes + 1);
    if (!next)
        return error_no_memory(err);
    for (size_t i = 0; i < inlined->count; i++) {
        struct displace_site *site = &inlined->sites[i];
        size_t size = site->displacement.offset + patched_bytes(site);

        site->code = inlined->chosen[i] ? memcpy(next, site->code, size) : NULL;
        next += inlined->chosen[i] ? size : 0;
    }
    return 0;
}

/* Once its address space is limited, the area takes a part of it. */
static bool limits_itself(struct elf_image *image, const struct image_function *functions, size_t count)
{
    static const struct constant_call limits[] = {
        {"setrlimit@plt", 0, RLIMIT_AS},
        {"setrlimit64@plt", 0, RLIMIT_AS},
        {"prlimit@plt", 1, RLIMIT_AS},
        {"prlimit64@plt", 1, RLIMIT_AS},
    };

    for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
        if (image_calls_with(image, functions, count, &limits[i]))
            return true;
    return false;
}

int inline_image_new(struct elf_image *image, const struct image_function *functions, size_t count,
                     const struct plan *plan, struct inline_image **ret_inlined, struct error *err)
{
    CLEANUP(cleanup_inline_image) struct inline_image *inlined = calloc(1, sizeof(*inlined));
    int r;

    if (!inlined)
        return error_no_memory(err);
    if (limits_itself(image, functions, count))
        return error_say(err, -ENODATA, "it limits its own address space (RLIMIT_AS)");
    inlined->count = count;
    inlined->may_lock = image_imports(image, callers_of_anything) != NULL;
    inlined->chosen = calloc(count + 1, sizeof(*inlined->chosen));
    if (!inlined->chosen)
        return error_no_memory(err);
    r = displace_image(image, functions, count, &inlined->sites, err);
    if (r)
        return r;
    choose(inlined, functions, plan);
    while (part(inlined, functions, plan))
        ;
    add_up(inlined);
    if (!inlined->chosen_count)
        return error_say(err, -ENODATA, "none of its functions can be patched");
    r = keep_code(inlined, err);
    if (r)
        return r;
    *ret_inlined = take_pointer(inlined);
    return 0;
}

/* ------------------------------------------------------------------------------------ saying why */

const char *inline_image_reason(const struct inline_image *inlined, size_t function)
{
    enum displace_refusal refusal = inlined->sites[function].refusal;

    if (inlined->chosen[function])
        return NULL;
    return refusal == DISPLACE_OK ? "a probe of the kernel's stands in its first bytes"
                                  : displace_refusal_text(refusal);
}

/* Counts the functions that have the kernel's probes, by what is against inline ones. */
static size_t count_others(const struct inline_image *inlined, const struct plan *plan,
                           size_t counts[DISPLACE_REFUSALS])
{
    AUTO_FREE bool *seen = calloc(inlined->count + 1, sizeof(*seen));
    size_t count = 0;

    for (size_t i = 0; seen && i < plan->count; i++) {
        size_t function = plan->probes[i].function;

        if (inlined->chosen[function] || seen[function])
            continue;
        seen[function] = true;
        counts[inlined->sites[function].refusal]++;
        count++;
    }
    return count;
}

char *inline_image_summary(const struct inline_image *inlined, const struct plan *plan)
{
    size_t counts[DISPLACE_REFUSALS] = {0}, others = count_others(inlined, plan, counts), size;
    const char *before = ": ";
    char *text = NULL;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    fprintf(out, "%zu functions by inline probes, %zu by the kernel's", inlined->chosen_count, others);
    for (size_t i = 0; i < DISPLACE_REFUSALS; i++) {
        if (!counts[i])
            continue;
        fprintf(out, "%s%zu because %s", before, counts[i],
                i == DISPLACE_OK ? "a probe of the kernel's stands in its first bytes"
                                 : displace_refusal_text((enum displace_refusal)i));
        before = ", ";
    }
    if (!fclose(out))
        return text;
    free(text);
    return NULL;
}

/* ------------------------------------------------------------------------------------ stubs */

/* One function's stub and patch, behind those that are in the extent. */
static int emit_one(const struct inline_order *order, const struct displace_site *site, size_t index,
                    struct inline_extent *extent, struct inline_patch *patch)
{
    const struct displacement *displacement = &site->displacement;
    const struct stub_order wanted = {
        .number = order->first_number + (uint32_t)index,
        .address = order->head + AGENT_STUBS_OFFSET + extent->end,
        .aside = order->head + AGENT_STUBS_OFFSET + extent->aside_end,
        .function = order->functions[index].address + order->load_bias,
        .head = order->head,
        .timed = order->timed,
        .code = site->code,
        .displacement = displacement,
    };
    struct stub stub;
    int r = stub_emit(&wanted, order->stubs + extent->end, stub_max, order->stubs + extent->aside_end, &stub);

    if (r)
        return r;
    patch->address = site->address + order->load_bias;
    patch->stub = wanted.address;
    patch->count = displacement->count;
    memcpy(patch->moved, stub.moved, sizeof(patch->moved));
    memcpy(patch->starts, displacement->starts, sizeof(patch->starts));
    memcpy(patch->old, site->code + displacement->offset, sizeof(patch->old));
    extent->end += aligned(stub.size);
    extent->aside_end += aligned(stub.aside);
    return stub_patch(patch->address, wanted.address, patch->new);
}

int inline_image_emit(const struct inline_image *inlined, const struct inline_order *order,
                      struct inline_patch *patches, struct inline_extent *ret_extent)
{
    size_t count = 0;
    int r = 0;

    *ret_extent = (struct inline_extent){.aside_end = inlined->aside_at};
    for (size_t i = 0; i < inlined->count && !r; i++)
        if (inlined->chosen[i])
            r = emit_one(order, &inlined->sites[i], i, ret_extent, &patches[count++]);
    return r;
}
