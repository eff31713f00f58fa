/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/images/image_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "collector/go/program.h"
#include "collector/images/image_catalog.h"
#include "collector/images/image_table_state.h"
#include "collector/memory/code_mover.h"
#include "collector/process/target_file.h"

int image_table_new(const struct image_table_options *options, struct image_table **ret_table,
                    struct error *err)
{
    struct image_table *table = calloc(1, sizeof(*table));

    if (!table)
        return error_no_memory(err);
    table->options = *options;
    *ret_table = table;
    return 0;
}

static void image_free(struct traced_image *image)
{
    struct known_site *site = NULL, *next = NULL;

    if (!image)
        return;
    HASH_ITER (hh, image->sites, site, next) {
        HASH_DEL(image->sites, site);
        free(site);
    }
    caller_frames_release(&image->callers);
    plan_free(image->plan);
    inline_image_free(image->inlined);
    free(image->not_inlined);
    go_program_free(image->go);
    free(image->go_refusal);
    free(image->go_refused_by_kernel);
    image_functions_free(image->functions, image->function_count);
    elf_image_free(image->elf);
    free(image->offsets);
    free(image->cookies);
    free(image->refused_by_kernel);
    free(image->differs);
    free(image->overwritten);
    free(image->path);
    free(image->refusal);
    free(image);
}

DEFINE_CLEANUP(cleanup_image, struct traced_image *, image_free)

void image_table_free(struct image_table *table)
{
    struct traced_image *next;

    if (!table)
        return;
    for (struct traced_image *image = table->images; image; image = next) {
        next = image->next;
        image_free(image);
    }
    free(table->functions);
    free(table->probes);
    free(table);
}

uint32_t image_table_count(const struct image_table *table)
{
    return table->image_count;
}

struct traced_image *image_table_images(const struct image_table *table)
{
    return table->images;
}

/* ------------------------------------------------------------------------------------ new images */

struct traced_image *image_table_known(const struct image_table *table, const struct stat *file)
{
    for (struct traced_image *image = table->images; image; image = image->next)
        if (image->file.st_dev == file->st_dev && image->file.st_ino == file->st_ino &&
            image->file.st_size == file->st_size && image->file.st_mtim.tv_sec == file->st_mtim.tv_sec &&
            image->file.st_mtim.tv_nsec == file->st_mtim.tv_nsec)
            return image;
    return NULL;
}

static int read_image(struct image_table *table, struct traced_image *image,
                      const struct image_source_file *source, struct error *err)
{
    int r = elf_image_open_fd(source->file->fd, image->path, &image->elf, err);
    if (!r && table->options.returns == PLAN_RETURNS_PROBE)
        image->stack_reader = image_stack_reader(image->elf);
    if (!r && source->root)
        r = elf_image_set_debug_root(image->elf, source->root);
    image->translates = !r && source->kind == IMAGE_MAIN && code_mover_translates(image->elf);
    if (image->translates)
        return error_say(err, -ENOTSUP, "cannot trace %s: it runs other programs from copies of their code",
                         image->path);
    if (!r && table->options.goroutines && !table->options.go_functions)
        image->chosen &= !elf_image_facts(image->elf)->is_go;
    if (!r && image->chosen)
        r = image_plan_make(table, image, err);
    return image->elf && image_plan_judge(table, image, err) ? error_no_memory(err) : r;
}

/* Errors that say something about the image and not about us. */
static bool is_refusal(int code)
{
    return code != -ENOMEM && code != -EPERM && code != -EACCES && code != -EMFILE && code != -ENFILE;
}

/* Reads what the goroutines of a Go program need. That it cannot be done is an answer. */
static int read_goroutines(struct image_table *table, struct traced_image *image, struct error *err)
{
    const struct go_program_options options = {
        .detail = table->options.goroutines,
        .delays = table->options.go_delays,
        .program = (uint8_t)table->go_programs,
        .first_probe = table->go_probes,
    };
    struct error why = {0};
    int r;

    if (!table->options.goroutines || !image->elf || image->kind != IMAGE_MAIN ||
        !elf_image_facts(image->elf)->is_go)
        return 0;
    if (table->go_programs >= MAX_GO_PROGRAMS)
        r = error_say(&why, -E2BIG, "%s: too many Go programs in one recording", image->path);
    else
        r = go_program_read(image->elf, &options, &image->go, &why);
    if (!r && table->go_probes + go_program_targets(image->go)->count > MAX_GO_PROBES) {
        r = error_say(&why, -E2BIG, "%s: too many places to probe in one recording", image->path);
        go_program_free(image->go);
        image->go = NULL;
    }
    if (!r) {
        table->go_programs++;
        go_detail_policy_start(&image->go_detail_policy, &table->options.go_budget,
                               table->options.goroutines);
        table->go_probes += (unsigned)go_program_targets(image->go)->count;
        return 0;
    }
    if (err && !is_refusal(r))
        *err = why;
    image->go_refusal = is_refusal(r) ? strdup(why.message) : NULL;
    return is_refusal(r) ? 0 : r;
}

static bool is_chosen(const struct image_table *table, const char *name, enum image_kind kind)
{
    if (!table->options.want_image)
        return kind == IMAGE_MAIN;
    return table->options.want_image(table->options.context, name, kind);
}

int image_table_get(struct image_table *table, const struct image_source_file *source,
                    struct traced_image **ret_image, struct error *err)
{
    CLEANUP(cleanup_image) struct traced_image *image = NULL;
    struct error why = {0};
    int r;

    *ret_image = image_table_known(table, &source->file->stat);
    if (*ret_image &&
        ((*ret_image)->chosen || (*ret_image)->go || !is_chosen(table, source->name, source->kind)))
        return 0;
    image = calloc(1, sizeof(*image));
    if (!image)
        return error_no_memory(err);
    image->file = source->file->stat;
    image->number = table->image_count++;
    image->kind = source->kind;
    image->shared = source->shared;
    image->only_inline = table->options.only_inline;
    image->chosen = is_chosen(table, source->name, source->kind);
    image->path = strdup(source->name);
    if (!image->path)
        return error_no_memory(err);
    r = read_image(table, image, source, &why);
    if (r && !is_refusal(r)) {
        if (err)
            *err = why;
        return r;
    }
    if (r) {
        image->refusal = strdup(why.message);
        if (!image->refusal)
            return error_no_memory(err);
    }
    r = read_goroutines(table, image, err);
    if (r)
        return r;
    image->next = table->images;
    table->images = image;
    *ret_image = take_pointer(image);
    return 0;
}

int image_table_attach(struct backend *backend, struct traced_image *image, pid_t pid, struct error *err)
{
    const struct probe_sites sites = {
        .file = elf_image_fd(image->elf),
        .name = image->path,
        .offsets = image->offsets,
        .cookies = image->cookies,
        .count = image->site_count,
        .part = PROBE_IMAGE_PART(image->number),
        .refused = image->refused_by_kernel,
    };
    int r;

    if (image->everywhere)
        return 0;
    if (!image->site_count) { /* all of its functions have inline probes */
        image->everywhere = !pid;
        return 0;
    }
    r = backend->of->attach_sites(backend, &sites, pid, err);
    if (!r && !pid)
        image->everywhere = true;
    return r;
}

/* ------------------------------------------------------------------------------------ the catalog */

int image_table_image_id(struct trace_writer *writer, struct traced_image *image, int64_t *ret_image_id,
                         struct error *err)
{
    int r = image_catalog_image(writer, image, err);

    if (!r)
        *ret_image_id = image->image_id;
    return r;
}

uint32_t image_table_probed_function(const struct image_table *table, uint32_t index)
{
    return index < table->probe_count ? table->probes[index] : NO_FUNCTION;
}

bool image_table_place(const struct image_table *table, uint32_t function, struct function_place *ret_place)
{
    const struct traced_image *image;
    const struct image_function *found;

    if (function >= table->function_count)
        return false;
    image = table->functions[function].image;
    found = &image->functions[function - image->first_function];
    *ret_place = (struct function_place){image, found->address, found->size};
    return true;
}

int image_table_function_id(struct image_table *table, struct trace_writer *writer, uint32_t function,
                            uint32_t *ret_function_id, struct error *err)
{
    struct known_function *known;
    int r = 0;

    if (function >= table->function_count)
        return error_say(err, -ENOENT, "a record names an unknown probe");
    known = &table->functions[function];
    if (!known->function_id)
        r = image_catalog_function(writer, known->image,
                                   &known->image->functions[function - known->image->first_function],
                                   &known->function_id, err);
    if (!r)
        *ret_function_id = known->function_id;
    return r;
}

static int catalog_site(struct image_table *table, struct trace_writer *writer, struct traced_image *image,
                        struct known_site *site, struct error *err)
{
    struct trace_call_site_description description = {.address = site->address};
    uint32_t function = NO_FUNCTION;
    unsigned line = 0;
    int r = image_catalog_image(writer, image, err);

    if (!r && image_is_traced(image))
        function = image_table_find(table, image, site->address - 1);
    if (!r && function != NO_FUNCTION)
        r = image_table_function_id(table, writer, function, &description.function_id, err);
    /* A return address points behind the call, which may be the line's last instruction. */
    if (image_source_line(image->elf, site->address - 1, &description.file, &line))
        description.line = (int)line;
    description.image_id = image->image_id;
    return r ? r : trace_writer_call_site(writer, &description, &site->site_id, err);
}

int image_table_site_id(struct image_table *table, struct trace_writer *writer, struct traced_image *image,
                        uint64_t address, uint32_t *ret_site_id, struct error *err)
{
    struct known_site *site;
    int r;

    HASH_FIND(hh, image->sites, &address, sizeof(address), site);
    if (!site) {
        site = calloc(1, sizeof(*site));
        if (!site)
            return error_no_memory(err);
        site->address = address;
        r = catalog_site(table, writer, image, site, err);
        if (r) {
            free(site);
            return r;
        }
        HASH_ADD(hh, image->sites, address, sizeof(site->address), site);
    }
    *ret_site_id = site->site_id;
    return 0;
}

int image_table_store_blind(struct image_table *table, struct trace_writer *writer, struct error *err)
{
    int r = 0;

    for (struct traced_image *image = table->images; image && !r; image = image->next)
        r = image_catalog_blind(image, table->options.inlined, writer, err);
    return r;
}

uint32_t image_table_find(const struct image_table *table, const struct traced_image *image, uint64_t address)
{
    const struct image_function *function =
        image_functions_owner(image->functions, image->function_count, address);
    uint32_t number;

    if (!function)
        return NO_FUNCTION;
    number = image->first_function + (uint32_t)(function - image->functions);
    return table->functions[number].probed ? number : NO_FUNCTION;
}
