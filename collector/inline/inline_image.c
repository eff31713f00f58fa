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
#include "base/path.h"
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

/* Libraries that run where a thread has no control block yet, or that watch over all others' memory, threads and
 * stacks. */
static const struct {
    const char *name; /* how the file's begins */
    const char *why;
} unfit[] = {
    {"ld-", "the dynamic linker: it runs before threads have their control blocks"},
    {"ld.so", "the dynamic linker: it runs before threads have their control blocks"},
    {"libc.so", "the C library: it runs where threads have no control blocks"},
    {"libc-2.", "the C library: it runs where threads have no control blocks"},
    {"libpthread", "a part of the C library: it runs where threads have no control blocks"},
    {"libdl.so", "a part of the C library: it runs where threads have no control blocks"},
    {"libdl-2.", "a part of the C library: it runs where threads have no control blocks"},
    {"librt.so", "a part of the C library: it runs where threads have no control blocks"},
    {"librt-2.", "a part of the C library: it runs where threads have no control blocks"},
    {"libc_malloc_debug", "a part of the C library: it runs where threads have no control blocks"},
    {"libasan", "the run time of a sanitizer"},
    {"libtsan", "the run time of a sanitizer"},
    {"liblsan", "the run time of a sanitizer"},
    {"libhwasan", "the run time of a sanitizer"},
    {"libubsan", "the run time of a sanitizer"},
    {"libclang_rt", "the run time of a sanitizer"},
};

const char *inline_library_refusal(const char *path)
{
    const char *name = path_file_name(path);

    for (size_t i = 0; i < ARRAY_SIZE(unfit); i++)
        if (!strncmp(name, unfit[i].name, strlen(unfit[i].name)))
            return unfit[i].why;
    return NULL;
}

bool inline_may_lock(struct elf_image *image)
{
    return image_imports(image, callers_of_anything) != NULL;
}

void inline_image_free(struct inline_image *inlined)
{
    if (!inlined)
        return;
    free(inlined->sites);
    free(inlined->places);
    free(inlined->exact);
    displace_exits_free(inlined->exits);
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
        inlined->chosen[i] &=
            inlined->sites[i].refusal == DISPLACE_OK && (plan->ungated || !rewrite_gate_is(&functions[i]));
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

/* How many bytes at a place are replaced, or move. */
static size_t place_bytes(const struct inline_image *inlined, const struct inline_place *place)
{
    return place->exit ? displace_exit_bytes(place->exit) : patched_bytes(&inlined->sites[place->function]);
}

static void add_up(struct inline_image *inlined)
{
    size_t stubs = inlined->chosen_count + (inlined->exits ? inlined->exits->count : 0);

    inlined->low = UINT64_MAX;
    for (size_t i = 0; i < inlined->place_count; i++) {
        const struct inline_place *place = &inlined->places[i];
        uint64_t end = place->address + place_bytes(inlined, place);

        if (place->address < inlined->low)
            inlined->low = place->address;
        if (end > inlined->high)
            inlined->high = end;
    }
    inlined->aside_at = stubs * aligned(stub_max);
    inlined->stub_bytes = inlined->aside_at + stubs * aligned(stub_aside_max);
}

static int compare_places(const void *left, const void *right)
{
    const struct inline_place *a = left, *b = right;

    return (a->address > b->address) - (a->address < b->address);
}

static int list_places(struct inline_image *inlined, struct error *err)
{
    size_t most = inlined->count + (inlined->exits ? inlined->exits->count : 0), exits;

    inlined->places = calloc(most + 1, sizeof(*inlined->places));
    if (!inlined->places)
        return error_no_memory(err);
    for (size_t i = 0; i < inlined->count; i++) {
        if (!inlined->chosen[i])
            continue;
        inlined->chosen_count++;
        inlined->places[inlined->place_count++] =
            (struct inline_place){.address = inlined->sites[i].address, .function = i};
        for (const struct displace_exit *exit = displace_exits_of(inlined->exits, i, &exits); exits;
             exit++, exits--)
            if (!exit->in_entry)
                inlined->places[inlined->place_count++] =
                    (struct inline_place){.address = exit->address, .function = i, .exit = exit};
    }
    qsort(inlined->places, inlined->place_count, sizeof(*inlined->places), compare_places);
    return 0;
}

static const uint8_t *keep(uint8_t **next, const uint8_t *bytes, size_t size)
{
    const uint8_t *kept = memcpy(*next, bytes, size);

    *next += size;
    return kept;
}

/* Of an entry with what is before the jump; of an exit with the padding behind it. */
static size_t site_bytes(const struct displace_site *site)
{
    return site->displacement.offset + patched_bytes(site);
}

static size_t exit_bytes(const struct displace_exit *exit)
{
    return exit->in_entry ? exit->displacement.length : displace_exit_bytes(exit);
}

/* Copies the code that stubs and patches are made of: a process may get its probes long after the image's file was
 * put away (elf_image_forget). */
static int keep_code(struct inline_image *inlined, struct error *err)
{
    size_t bytes = 0, exits = inlined->exits ? inlined->exits->count : 0;
    uint8_t *next;

    for (size_t i = 0; i < inlined->count; i++)
        bytes += inlined->chosen[i] ? site_bytes(&inlined->sites[i]) : 0;
    for (size_t i = 0; i < exits; i++)
        bytes += exit_bytes(&inlined->exits->items[i]);
    inlined->code = next = malloc(bytes + 1);
    if (!next)
        return error_no_memory(err);
    for (size_t i = 0; i < inlined->count; i++) {
        struct displace_site *site = &inlined->sites[i];

        site->code = inlined->chosen[i] ? keep(&next, site->code, site_bytes(site)) : NULL;
    }
    for (size_t i = 0; i < exits; i++) {
        struct displace_exit *exit = &inlined->exits->items[i];

        exit->code = keep(&next, exit->code, exit_bytes(exit));
    }
    return 0;
}

/* ------------------------------------------------------------------------------------ exits */

static void mark_recorded(const struct inline_image *inlined, const struct plan *plan, bool *recorded)
{
    memcpy(recorded, inlined->chosen, inlined->count * sizeof(*recorded));
    for (size_t i = 0; i < plan->count; i++)
        recorded[plan->probes[i].function] = true;
}

/* No exit where a uprobe stands. */
static void part_exits(struct inline_image *inlined, const struct plan *plan, size_t function)
{
    size_t count;

    for (const struct displace_exit *exit = displace_exits_of(inlined->exits, function, &count); count;
         exit++, count--) {
        size_t low = 0, high = plan->count;

        while (low < high) {
            size_t middle = low + (high - low) / 2;

            if (plan->probes[middle].address < exit->address)
                low = middle + 1;
            else
                high = middle;
        }
        for (; low < plan->count && plan->probes[low].address - exit->address < displace_exit_bytes(exit);
             low++)
            if (!inlined->chosen[plan->probes[low].function])
                displace_exits_refuse(inlined->exits, function, EXIT_SHARED);
    }
}

static int choose_exits(struct elf_image *image, const struct image_function *functions,
                        const struct plan *plan, struct inline_image *inlined, struct error *err)
{
    AUTO_FREE bool *recorded = calloc(inlined->count + 1, sizeof(*recorded));
    const struct displace_entries entries = {inlined->sites, inlined->chosen, recorded, plan->map};
    int r;

    if (!plan->exact)
        return 0;
    inlined->exact = calloc(inlined->count + 1, sizeof(*inlined->exact));
    if (!recorded || !inlined->exact)
        return error_no_memory(err);
    mark_recorded(inlined, plan, recorded);
    r = displace_exits_new(image, functions, inlined->count, &entries, &inlined->exits, err);
    for (size_t i = 0; !r && i < inlined->count; i++) {
        part_exits(inlined, plan, i);
        inlined->exact[i] = inlined->exits->refusals[i] == EXIT_OK;
    }
    return r;
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

#define LIMITS_ITSELF "it limits its own address space (RLIMIT_AS)"

const char *inline_program_refusal(struct elf_image *image, const struct image_function *functions,
                                   size_t count, bool reports_slot_sharing)
{
    const char *refusal = inline_image_refusal(image, reports_slot_sharing);

    return refusal || !limits_itself(image, functions, count) ? refusal : LIMITS_ITSELF;
}

int inline_image_new(struct elf_image *image, const struct image_function *functions, size_t count,
                     const struct plan *plan, struct inline_image **ret_inlined, struct error *err)
{
    CLEANUP(cleanup_inline_image) struct inline_image *inlined = calloc(1, sizeof(*inlined));
    int r;

    if (!inlined)
        return error_no_memory(err);
    if (limits_itself(image, functions, count))
        return error_say(err, -ENODATA, LIMITS_ITSELF);
    inlined->count = count;
    inlined->may_lock = inline_may_lock(image);
    inlined->chosen = calloc(count + 1, sizeof(*inlined->chosen));
    if (!inlined->chosen)
        return error_no_memory(err);
    r = displace_image(image, functions, count, plan->map, &inlined->sites, err);
    if (r)
        return r;
    choose(inlined, functions, plan);
    while (part(inlined, functions, plan))
        ;
    r = choose_exits(image, functions, plan, inlined, err);
    if (!r)
        r = list_places(inlined, err);
    if (r)
        return r;
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

/* Of how many functions the returns are seen, and why not of the others. */
static void print_exits(FILE *out, const struct inline_image *inlined)
{
    size_t counts[EXIT_REFUSALS] = {0};
    const char *before = ": ";

    if (!inlined->exits)
        return;
    for (size_t i = 0; i < inlined->count; i++)
        counts[inlined->exits->refusals[i]]++;
    fprintf(out, "; exact returns of %zu, inferred of %zu", counts[EXIT_OK],
            inlined->chosen_count - counts[EXIT_OK]);
    for (size_t i = EXIT_NO_ENTRY + 1; i < EXIT_REFUSALS; i++) {
        if (!counts[i])
            continue;
        fprintf(out, "%s%zu because %s", before, counts[i], displace_exit_refusal_text((enum exit_refusal)i));
        before = ", ";
    }
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
    print_exits(out, inlined);
    if (!fclose(out))
        return text;
    free(text);
    return NULL;
}

/* ------------------------------------------------------------------------------------ stubs */

/* Writes a stub behind those that are in the extent. */
static int emit_stub(const struct inline_order *order, struct stub_order *wanted,
                     struct inline_extent *extent, struct stub *ret_stub)
{
    int r;

    wanted->address = order->head + AGENT_STUBS_OFFSET + extent->end;
    wanted->aside = order->head + AGENT_STUBS_OFFSET + extent->aside_end;
    wanted->head = order->head;
    wanted->timed = order->timed;
    r = stub_emit(wanted, order->stubs + extent->end, stub_max, order->stubs + extent->aside_end, ret_stub);
    if (r)
        return r;
    extent->end += aligned(ret_stub->size);
    extent->aside_end += aligned(ret_stub->aside);
    return 0;
}

static struct stub_order exit_order(const struct inline_order *order, const struct displace_exit *exit,
                                    size_t function)
{
    return (struct stub_order){
        .number = (order->first_number + (uint32_t)function) | AGENT_EXIT,
        .at_exit = true,
        .function = exit->address + order->load_bias,
        .code = exit->code,
        .displacement = &exit->displacement,
    };
}

/* The stub of an exit that the entry's stub continues in; 0: there is none. */
static int emit_exit_in_entry(const struct inline_image *inlined, const struct inline_order *order,
                              size_t function, struct inline_extent *extent, uint64_t *ret_address)
{
    size_t count;

    *ret_address = 0;
    for (const struct displace_exit *exit = displace_exits_of(inlined->exits, function, &count); count;
         exit++, count--) {
        struct stub_order wanted = exit_order(order, exit, function);
        struct stub stub;
        int r;

        if (!exit->in_entry)
            continue;
        r = emit_stub(order, &wanted, extent, &stub);
        if (r)
            return r;
        *ret_address = wanted.address;
    }
    return 0;
}

static int emit_place(const struct inline_image *inlined, const struct inline_order *order,
                      const struct inline_place *place, struct inline_extent *extent,
                      struct inline_patch *patch)
{
    const struct displace_site *site = &inlined->sites[place->function];
    const struct displacement *displacement = place->exit ? &place->exit->displacement : &site->displacement;
    const uint8_t *code = place->exit ? place->exit->code : site->code;
    struct stub_order wanted = {
        .number = order->first_number + (uint32_t)place->function,
        .function = order->functions[place->function].address + order->load_bias,
        .code = code,
        .displacement = displacement,
    };
    struct stub stub;
    int r = 0;

    if (place->exit)
        wanted = exit_order(order, place->exit, place->function);
    else
        r = emit_exit_in_entry(inlined, order, place->function, extent, &wanted.exit);
    if (!r)
        r = emit_stub(order, &wanted, extent, &stub);
    if (r)
        return r;
    patch->address = place->address + order->load_bias;
    patch->function = place->function;
    patch->stub = wanted.address;
    patch->count = displacement->count;
    memcpy(patch->moved, stub.moved, sizeof(patch->moved));
    memcpy(patch->starts, displacement->starts, sizeof(patch->starts));
    memcpy(patch->old, code + displacement->offset, sizeof(patch->old));
    return stub_patch(patch->address, wanted.address, patch->new);
}

int inline_image_emit(const struct inline_image *inlined, const struct inline_order *order,
                      struct inline_patch *patches, struct inline_extent *ret_extent)
{
    int r = 0;

    *ret_extent = (struct inline_extent){.aside_end = inlined->aside_at};
    for (size_t i = 0; i < inlined->place_count && !r; i++)
        r = emit_place(inlined, order, &inlined->places[i], ret_extent, &patches[i]);
    return r;
}
