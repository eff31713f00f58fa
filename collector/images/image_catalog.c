/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/images/image_catalog.h"
#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "collector/go/program.h"

int image_catalog_image(struct trace_writer *writer, struct traced_image *image, struct error *err)
{
    const char *build_id = elf_image_facts(image->elf)->build_id;
    const struct trace_image_description description = {
        .path = image->path,
        .build_id = build_id ? build_id : "",
        .kind = image->kind == IMAGE_MAIN ? "main" : "library",
    };

    return image->image_id ? 0 : trace_writer_image(writer, &description, &image->image_id, err);
}

int image_catalog_function(struct trace_writer *writer, struct traced_image *image,
                           const struct image_function *function, uint32_t *ret_function_id,
                           struct error *err)
{
    struct trace_function_description description = {
        .name = function->name,
        .demangled = function->demangled,
        .address = function->address,
        .size = function->size,
        .aliases = function->aliases,
    };
    int r = image_catalog_image(writer, image, err);
    unsigned line;

    if (image_function_source(image->elf, function, &description.file, &line))
        description.line = (int)line;
    return r ? r : trace_writer_function(writer, image->image_id, &description, ret_function_id, err);
}

/* ------------------------------------------------------------------------------------ what is not seen */

/* A .cold fragment is a part of a function that is probed, an indirect function's address is its resolver's,
 * and start-up code belongs to no source: none of them is a blind spot. */
static bool is_blind(enum site_refusal reason)
{
    return reason != SITE_FRAGMENT && reason != SITE_IFUNC && reason != SITE_START_UP;
}

static int store_blind_from(struct traced_image *image, size_t function, uint64_t from_ns, const char *why,
                            struct trace_writer *writer, struct error *err)
{
    uint32_t function_id;
    int r = image_catalog_function(writer, image, &image->functions[function], &function_id, err);

    return r ? r : trace_writer_blind(writer, function_id, from_ns, 0, why, 0, err);
}

static int store_blind_function(struct traced_image *image, size_t function, const char *why,
                                struct trace_writer *writer, struct error *err)
{
    return store_blind_from(image, function, 0, why, writer, err);
}

/* What had probes until a program was about to change its code. */
static int store_left(struct traced_image *image, struct trace_writer *writer, struct error *err)
{
    AUTO_FREE bool *had = calloc(image->function_count + 1, sizeof(*had));
    int r = 0;

    if (!had)
        return error_no_memory(err);
    for (size_t i = 0; i < image->plan->count; i++)
        had[image->plan->probes[i].function] = true;
    for (size_t i = 0; i < image->function_count && !r; i++)
        if ((had[i] || (image->inlined && image->inlined->chosen[i])) &&
            !(image->differs && image->differs[i]))
            r = store_blind_from(image, i, image->left_ns, image->left_reason, writer, err);
    return r;
}

static int store_blind_functions(struct traced_image *image, struct trace_writer *writer, struct error *err)
{
    const struct plan *plan = image->plan;
    int r = 0;

    for (size_t i = 0; !r && i < plan->refusal_count; i++)
        if (is_blind(plan->refusals[i].reason) &&
            !(image->inlined && image->inlined->chosen[plan->refusals[i].function]))
            r = store_blind_function(image, plan->refusals[i].function,
                                     site_refusal_text(plan->refusals[i].reason), writer, err);
    for (size_t i = 0; !r && image->differs && i < image->function_count; i++)
        if (image->differs[i])
            r = store_blind_function(image, i, "a process has other code there than the file", writer, err);
    for (size_t i = 0; !r && i < image->site_count; i++) {
        size_t probe = (uint32_t)image->cookies[i] - image->first_index;

        if (image->refused_by_kernel[i])
            r = store_blind_function(image, plan->probes[probe].function,
                                     image->only_inline ? "it has no inline probe, and others need BPF"
                                                        : "the kernel refuses its instruction",
                                     writer, err);
    }
    return r;
}

/* A place in a Go program that has no probe although it should. */
static int store_blind_place(struct traced_image *image, size_t target, struct trace_writer *writer,
                             struct error *err)
{
    struct go_source_function function = {0};
    int r = image_catalog_image(writer, image, err);

    if (!r)
        r = go_program_function(image->go, writer, image->image_id,
                                go_program_targets(image->go)->items[target].address, &function, err);
    return r || !function.function_id
               ? r
               : trace_writer_blind(writer, function.function_id, 0, 0,
                                    "the kernel refuses a place where goroutines are seen", 0, err);
}

static int store_blind_goroutines(struct traced_image *image, struct trace_writer *writer, struct error *err)
{
    AUTO_FREE char *key = NULL;
    int r = 0;

    if (image->go_refusal && asprintf(&key, "goroutines not recorded:%s", image->path) < 0)
        return key = NULL, error_no_memory(err), -ENOMEM;
    if (key)
        r = trace_writer_tag(writer, key, image->go_refusal, err);
    for (size_t i = 0; !r && image->go_refused_by_kernel && i < go_program_targets(image->go)->count; i++)
        if (image->go_refused_by_kernel[i])
            r = store_blind_place(image, i, writer, err);
    return r;
}

/* What records the calls of the image's functions, as a tag "backend:PATH". */
static int store_backend(const struct traced_image *image, struct trace_writer *writer, struct error *err)
{
    AUTO_FREE char *key = NULL, *value = NULL;
    int r;

    if (!image_is_traced(image))
        return 0;
    if (image->inlined)
        r = (value = inline_image_summary(image->inlined, image->plan)) ? 0 : -1;
    else
        r = asprintf(&value, "%s: %s", image->only_inline ? "none" : "the kernel's probes",
                     image->not_inlined ? image->not_inlined : "");
    if (r < 0 || asprintf(&key, "backend:%s", image->path) < 0)
        return error_no_memory(err);
    return trace_writer_tag(writer, key, value, err);
}

/* What is not known of the image because it was not read, as a tag "not read:PATH". */
static int store_given_up(const struct traced_image *image, struct trace_writer *writer, struct error *err)
{
    const char *what = image->elf ? elf_image_given_up(image->elf) : NULL;
    AUTO_FREE char *key = NULL;

    if (what && asprintf(&key, "not read:%s", image->path) < 0)
        return key = NULL, error_no_memory(err);
    return key ? trace_writer_tag(writer, key, what, err) : 0;
}

/* Why return probes that were asked for are not in the image, or in no process that maps it, as a tag "no
 * return probes:PATH". */
static int store_no_returns(const struct traced_image *image, struct trace_writer *writer, struct error *err)
{
    const char *why = image->stack_reader.reach == STACK_PROCESS ? image->stack_reader.what
                      : image_is_traced(image)                   ? image->plan->no_returns
                                                                 : NULL;
    AUTO_FREE char *key = NULL;

    if (why && asprintf(&key, "no return probes:%s", image->path) < 0)
        return key = NULL, error_no_memory(err);
    return key ? trace_writer_tag(writer, key, why, err) : 0;
}

int image_catalog_blind(struct traced_image *image, bool report_backend, struct trace_writer *writer,
                        struct error *err)
{
    AUTO_FREE char *key = NULL;
    int r = store_blind_goroutines(image, writer, err);

    if (!r && report_backend)
        r = store_backend(image, writer, err);
    if (!r)
        r = store_no_returns(image, writer, err);
    if (!r)
        r = store_given_up(image, writer, err);
    if (r)
        return r;
    if (!image->chosen || image_selects_nothing(image))
        return 0;
    if (image->refusal && asprintf(&key, "untraced:%s", image->path) < 0)
        return key = NULL, error_no_memory(err);
    if (key)
        r = trace_writer_tag(writer, key, image->refusal, err);
    if (r || !image->plan)
        return r;
    r = store_blind_functions(image, writer, err);
    return r || !image->left_ns ? r : store_left(image, writer, err);
}
