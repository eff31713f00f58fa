/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The image table: the plan of an image's probes, and what the kernel is given of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "bpf/wire.h"
#include "collector/images/image_table_state.h"
#include "image/arch/code_bytes.h"
#include "image/functions/function_names.h"

/* Whether some function's returns must be inferred, so that calls have to tell where they come from. The
 * entry point does not matter: it never returns. */
static bool infers_returns(const struct plan *plan)
{
    return plan->return_probes + plan->by_no_return[PLAN_RETURN_ENTRY_POINT] +
               plan->by_no_return[PLAN_RETURN_SITES] <
           plan->functions;
}

static enum trace_returns image_returns(const struct image_table *table, const struct traced_image *image)
{
    if (table->options.returns == PLAN_RETURNS_NONE || elf_image_facts(image->elf)->is_go)
        return TRACE_RETURNS_NONE;
    return infers_returns(image->plan) ? TRACE_RETURNS_INFERRED : TRACE_RETURNS_PROBED;
}

static uint64_t cookie_flags(const struct traced_image *image, const struct plan_probe *probe,
                             const bool *return_seen, bool call_sites)
{
    uint64_t flags = (uint64_t)(probe->sp_offset / 8) << COOKIE_SP_SHIFT;

    if (!probe->return_probe || image->shared)
        flags |= COOKIE_ENTRY_ONLY;
    if (image->returns == TRACE_RETURNS_INFERRED || call_sites)
        flags |= COOKIE_WANT_RETURN_ADDRESS;
    if (image->returns == TRACE_RETURNS_NONE)
        flags |= COOKIE_CALLS_ONLY;
    if (probe->kind == PLAN_AT_CALL)
        flags |= COOKIE_AT_CALL | (uint64_t)(probe->call_length - CODE_CALL_BYTES) << COOKIE_SP_SHIFT;
    if (probe->kind == PLAN_AT_RETURN)
        flags |= COOKIE_AT_RETURN;
    else if (return_seen[probe->function])
        flags |= COOKIE_RETURN_SEEN;
    return flags;
}

/* Functions whose every RET is probed (PLAN_RETURNS_SITES). */
static void mark_return_sites(const struct plan *plan, bool *return_seen)
{
    for (size_t i = 0; i < plan->count; i++)
        if (plan->probes[i].kind == PLAN_AT_RETURN)
            return_seen[plan->probes[i].function] = true;
}

static void note_landmarks(struct traced_image *image, size_t function)
{
    if (image->functions[function].flags & IMAGE_FUNCTION_ENTRY_POINT)
        image->entry_function = image->first_function + (uint32_t)function;
    if (!strcmp(image->functions[function].name, "main"))
        image->main_function = image->first_function + (uint32_t)function;
}

/* Spells out the probes for the kernel: those of functions that have no inline probe. */
static int list_sites(const struct image_table *table, struct traced_image *image, struct error *err)
{
    const struct plan *plan = image->plan;
    AUTO_FREE bool *return_seen = calloc(image->function_count + 1, sizeof(*return_seen));
    const struct plan_probe *last = NULL;

    if (!return_seen)
        return error_no_memory(err);
    mark_return_sites(plan, return_seen);
    image->site_count = 0;
    for (size_t i = 0; i < plan->count; i++) {
        const struct plan_probe *probe = &plan->probes[i];

        if ((image->inlined && image->inlined->chosen[probe->function]) ||
            (image->differs && image->differs[probe->function]))
            continue;
        if (last && probe->file_offset == last->file_offset) {
            image->cookies[image->site_count - 1] |=
                probe->kind == PLAN_AT_JUMP ? COOKIE_NEXT_JUMP : COOKIE_NEXT_CALL;
        } else {
            image->offsets[image->site_count] = probe->file_offset;
            image->cookies[image->site_count++] =
                (image->first_index + i) | cookie_flags(image, probe, return_seen, table->options.call_sites);
        }
        last = probe;
    }
    return 0;
}

/* Numbers the image's functions and probes. */
static int enter_plan(struct image_table *table, struct traced_image *image, struct error *err)
{
    const struct plan *plan = image->plan;

    image->offsets = calloc(plan->count, sizeof(*image->offsets));
    image->cookies = calloc(plan->count, sizeof(*image->cookies));
    image->refused_by_kernel = calloc(plan->count, sizeof(*image->refused_by_kernel));
    if (!image->offsets || !image->cookies || !image->refused_by_kernel ||
        array_reserve(&table->probes, &table->probe_capacity, table->probe_count + plan->count) ||
        array_reserve(&table->functions, &table->function_capacity,
                      table->function_count + image->function_count))
        return error_no_memory(err);
    image->first_function = (uint32_t)table->function_count;
    image->first_index = (uint32_t)table->probe_count;
    image->entry_function = image->main_function = NO_FUNCTION;
    for (size_t i = 0; i < image->function_count; i++)
        table->functions[table->function_count++] = (struct known_function){.image = image};
    for (size_t i = 0; i < plan->count; i++) {
        const struct plan_probe *probe = &plan->probes[i];
        uint32_t function = image->first_function + (uint32_t)probe->function;

        table->probes[table->probe_count++] = function;
        table->functions[function].probed = true;
        note_landmarks(image, probe->function);
    }
    for (size_t i = 0; image->inlined && i < image->function_count; i++)
        table->functions[image->first_function + i].probed |= image->inlined->chosen[i];
    return list_sites(table, image, err);
}

/* Why no function of the image gets an inline probe; NULL: some may. */
static const char *refuses_inline(const struct image_table *table, const struct traced_image *image)
{
    const char *refusal = table->options.not_inlined;

    if (!refusal && image->kind == IMAGE_LIBRARY)
        refusal = inline_library_refusal(image->path);
    return refusal ? refusal : inline_image_refusal(image->elf, table->options.reports_slot_sharing);
}

int image_plan_judge(const struct image_table *table, struct traced_image *image, struct error *err)
{
    struct image_function *functions = image->functions, *own = NULL;
    size_t count = image->function_count;
    int r = 0;

    if (!table->options.inlined || !table->options.want_image || image->kind != IMAGE_MAIN)
        return 0;
    if (!functions) {
        r = image_functions(image->elf, &own, &count, err);
        functions = own;
    }
    if (!r) {
        image->against_inline =
            inline_program_refusal(image->elf, functions, count, table->options.reports_slot_sharing);
        image->may_lock = inline_may_lock(image->elf);
    }
    if (own)
        image_functions_free(own, count);
    return r;
}

/* Which functions get inline probes. That none can is an answer. */
static int plan_inline(const struct image_table *table, struct traced_image *image, struct error *err)
{
    const char *refusal = refuses_inline(table, image);
    struct error why = {0};
    int r;

    if (!table->options.inlined)
        return 0;
    if (!refusal) {
        image->plan->ungated = table->options.only_inline;
        r = inline_image_new(image->elf, image->functions, image->function_count, image->plan,
                             &image->inlined, &why);
        if (r && r != -ENODATA) {
            if (err)
                *err = why;
            return r;
        }
        refusal = r ? why.message : NULL;
    }
    image->not_inlined = refusal ? strdup(refusal) : NULL;
    return refusal && !image->not_inlined ? error_no_memory(err) : 0;
}

static int show_asked_name(const struct image_table *table, struct traced_image *image, size_t function)
{
    const struct image_table_options *options = &table->options;
    struct image_function *shown = &image->functions[function];
    const char *name;

    if (!options->asked_name || !shown->aliases)
        return 0;
    name = options->asked_name(options->context, image->elf, shown);
    return strcmp(name, shown->name) != 0 ? image_function_show_as(shown, name) : 0;
}

/* Wanted functions are shown by the names by which they were asked for. -ENOMEM. */
static int show_asked_names(const struct image_table *table, struct traced_image *image)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < image->plan->count; i++)
        r = show_asked_name(table, image, image->plan->probes[i].function);
    for (size_t i = 0; r == 0 && i < image->plan->refusal_count; i++)
        r = show_asked_name(table, image, image->plan->refusals[i].function);
    return r;
}

/* Why the image has no probes. */
static int refuse_empty_plan(const struct traced_image *image, struct error *err)
{
    const struct plan *plan = image->plan;
    const struct plan_refusal *first = plan->refusals;

    if (!plan->wanted)
        return error_say(err, -ENODATA, "no function of %s is selected (of %zu)", image->path,
                         image->function_count);
    return error_say(
        err, -ENODATA, "cannot trace %s: none of the %zu selected functions can be probed (%s: %s)",
        image->path, plan->wanted, image_function_display_name(&image->functions[first->function]),
        site_refusal_text(first->reason));
}

int image_plan_make(struct image_table *table, struct traced_image *image, struct error *err)
{
    struct plan_options options = {
        .want = table->options.want,
        .ctx = table->options.context,
        .timed = table->options.timed,
        .timed_ctx = table->options.timed_context,
        .returns = table->options.returns,
    };
    int r = image_functions(image->elf, &image->functions, &image->function_count, err);

    if (r)
        return r;
    if (image->shared && options.returns == PLAN_RETURNS_PROBE)
        options.returns = PLAN_RETURNS_INFER;
    if (!image_functions_own(image->functions, image->function_count))
        return error_say(err, -ENODATA, "cannot trace %s: no symbols and no unwind information", image->path);
    r = plan_make(image->elf, image->functions, image->function_count, &options, &image->plan, err);
    if (r)
        return r;
    if (show_asked_names(table, image))
        return error_no_memory(err);
    if (!image->plan->count) {
        plan_forget_map(image->plan);
        return refuse_empty_plan(image, err);
    }
    image->returns = image_returns(table, image);
    r = plan_inline(table, image, err);
    plan_forget_map(image->plan);
    return r ? r : enter_plan(table, image, err);
}

int image_table_leave_inline(struct image_table *table, struct traced_image *image, const char *why,
                             struct error *err)
{
    inline_image_free(image->inlined);
    image->inlined = NULL;
    image->not_inlined = strdup(why);
    return image->not_inlined ? list_sites(table, image, err) : error_no_memory(err);
}

int image_table_share(struct image_table *table, struct traced_image *image, struct error *err)
{
    image->shared = true;
    if (image->returns == TRACE_RETURNS_PROBED)
        image->returns = TRACE_RETURNS_INFERRED;
    return list_sites(table, image, err);
}

int image_table_leave_differing(struct image_table *table, struct traced_image *image, struct error *err)
{
    for (size_t i = 0; i < image->function_count; i++)
        if (image->differs[i])
            table->functions[image->first_function + i].probed = false;
    return image->inlined
               ? image_table_leave_inline(table, image, "its code in memory is not that of the file", err)
               : list_sites(table, image, err);
}
