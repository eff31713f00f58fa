/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/image_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "bpf/wire.h"

struct probe_entry {
    struct traced_image *image;
    uint32_t function_id; /* 0: not in the catalog yet */
};

struct image_table {
    struct image_table_options options;
    struct traced_image *images;
    struct probe_entry *probes;
    size_t probe_count, probe_capacity;
};

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
    if (!image)
        return;
    plan_free(image->plan);
    image_functions_free(image->functions, image->function_count);
    elf_image_free(image->elf);
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
    free(table->probes);
    free(table);
}

const struct traced_image *image_table_images(const struct image_table *table)
{
    return table->images;
}

static struct traced_image *find_file(const struct image_table *table, const struct stat *file)
{
    for (struct traced_image *image = table->images; image; image = image->next)
        if (image->device == file->st_dev && image->inode == file->st_ino)
            return image;
    return NULL;
}

/* Whether some function's returns must be inferred, so that calls have to tell where they come from. The
 * entry point does not matter: it never returns. */
static bool infers_returns(const struct plan *plan)
{
    return plan->return_probes + plan->by_no_return[PLAN_RETURN_ENTRY_POINT] < plan->count;
}

static void note_landmarks(struct traced_image *image, const struct image_function *function, uint32_t index)
{
    if (function->flags & IMAGE_FUNCTION_ENTRY_POINT)
        image->entry_index = index;
    if (!strcmp(function->name, "main"))
        image->main_index = index;
}

/* Gives the plan's probes their indexes and attaches them, all in one link. */
static int attach_image(struct image_table *table, struct uprobe_backend *backend, struct traced_image *image,
                        const char *path, struct error *err)
{
    const struct plan *plan = image->plan;
    AUTO_FREE unsigned long *offsets = calloc(plan->count, sizeof(*offsets));
    AUTO_FREE uint64_t *cookies = calloc(plan->count, sizeof(*cookies));
    uint64_t flags = infers_returns(plan) ? COOKIE_WANT_RETURN_ADDRESS : 0;

    if (!offsets || !cookies ||
        array_reserve(&table->probes, &table->probe_capacity, table->probe_count + plan->count))
        return error_no_memory(err);
    image->first_index = (uint32_t)table->probe_count;
    image->entry_index = image->main_index = IMAGE_NO_PROBE;
    for (size_t i = 0; i < plan->count; i++) {
        offsets[i] = plan->probes[i].file_offset;
        cookies[i] =
            (image->first_index + i) | flags | (plan->probes[i].return_probe ? 0 : COOKIE_ENTRY_ONLY);
        table->probes[image->first_index + i] = (struct probe_entry){image, 0};
        note_landmarks(image, &image->functions[plan->probes[i].function], image->first_index + (uint32_t)i);
    }
    table->probe_count += plan->count;
    return uprobe_backend_attach(backend, path, offsets, cookies, plan->count, err);
}

/* Reads the image's functions, plans its probes and attaches them. A refusal is returned as an error of the
 * image. */
static int probe_image(struct image_table *table, struct uprobe_backend *backend, struct traced_image *image,
                       const char *path, struct error *err)
{
    struct plan_options options = {
        .want = table->options.want,
        .ctx = table->options.context,
        .returns = table->options.returns,
    };
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    int r;

    if (fd < 0)
        return error_set(err, -errno, NULL, "cannot trace %s", image->path);
    r = elf_image_open_fd(fd, image->path, &image->elf, err);
    if (r)
        return r;
    r = image_functions(image->elf, &image->functions, &image->function_count, err);
    if (r)
        return r;
    if (!image_functions_own(image->functions, image->function_count))
        return error_say(err, -ENODATA,
                         "cannot trace %s: it has no function symbols (use a binary that is not "
                         "stripped)",
                         image->path);
    r = plan_make(image->elf, image->functions, image->function_count, &options, &image->plan, err);
    if (r)
        return r;
    if (!image->plan->count)
        return error_say(err, -ENODATA,
                         "cannot trace %s: none of its %zu functions is wanted and can be probed",
                         image->path, image->function_count);
    image->returns = image->plan->return_probes ? TRACE_RETURNS_PROBED : TRACE_RETURNS_INFERRED;
    return attach_image(table, backend, image, path, err);
}

/* Errors that say something about the image and not about us. */
static bool is_refusal(int code)
{
    return code != -ENOMEM && code != -EPERM && code != -EACCES && code != -EMFILE && code != -ENFILE;
}

int image_table_get(struct image_table *table, struct uprobe_backend *backend, const char *path,
                    const char *name, struct traced_image **ret_image, struct error *err)
{
    CLEANUP(cleanup_image) struct traced_image *image = NULL;
    struct error why = {0};
    struct stat file;
    int r;

    if (stat(path, &file))
        return error_set(err, -errno, NULL, "cannot trace %s", name);
    *ret_image = find_file(table, &file);
    if (*ret_image)
        return 0;
    image = calloc(1, sizeof(*image));
    if (!image)
        return error_no_memory(err);
    image->device = file.st_dev;
    image->inode = file.st_ino;
    image->path = strdup(name);
    if (!image->path)
        return error_no_memory(err);
    r = probe_image(table, backend, image, path, &why);
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
    image->next = table->images;
    table->images = image;
    *ret_image = take_pointer(image);
    return 0;
}

/* Puts the image into the catalog, once. */
static int catalog_image(struct trace_writer *writer, struct traced_image *image, struct error *err)
{
    const char *build_id = elf_image_facts(image->elf)->build_id;
    const struct trace_image_description description = {
        .path = image->path,
        .build_id = build_id ? build_id : "",
        .kind = "main",
    };

    return image->image_id ? 0 : trace_writer_image(writer, &description, &image->image_id, err);
}

static int catalog_function(struct trace_writer *writer, struct traced_image *image,
                            const struct image_function *function, uint32_t *ret_function_id,
                            struct error *err)
{
    const struct trace_function_description description = {
        .name = function->name,
        .demangled = function->demangled,
        .address = function->address,
        .size = function->size,
        .file = function->file,
        .line = (int)function->line,
    };
    int r = catalog_image(writer, image, err);

    return r ? r : trace_writer_function(writer, image->image_id, &description, ret_function_id, err);
}

int image_table_function_id(struct image_table *table, struct trace_writer *writer, uint32_t index,
                            uint32_t *ret_function_id, struct error *err)
{
    struct probe_entry *probe;
    int r = 0;

    if (index >= table->probe_count)
        return error_say(err, -ENOENT, "a record names probe %u of %zu", index, table->probe_count);
    probe = &table->probes[index];
    if (!probe->function_id) {
        struct traced_image *image = probe->image;
        size_t function = image->plan->probes[index - image->first_index].function;

        r = catalog_function(writer, image, &image->functions[function], &probe->function_id, err);
    }
    if (!r)
        *ret_function_id = probe->function_id;
    return r;
}

/* A .cold fragment is a part of a function that is probed, an indirect function's address is its resolver's,
 * and start-up code is nobody's: none of them is a blind spot. */
static bool is_blind(enum site_refusal reason)
{
    return reason != SITE_FRAGMENT && reason != SITE_IFUNC && reason != SITE_START_UP;
}

static int store_blind_functions(struct traced_image *image, struct trace_writer *writer, struct error *err)
{
    for (size_t i = 0; i < image->plan->refusal_count; i++) {
        const struct plan_refusal *refusal = &image->plan->refusals[i];
        uint32_t function_id;
        int r;

        if (!is_blind(refusal->reason))
            continue;
        r = catalog_function(writer, image, &image->functions[refusal->function], &function_id, err);
        if (!r)
            r = trace_writer_blind(writer, function_id, 0, 0, site_refusal_text(refusal->reason), 0, err);
        if (r)
            return r;
    }
    return 0;
}

int image_table_store_blind(struct image_table *table, struct trace_writer *writer, struct error *err)
{
    for (struct traced_image *image = table->images; image; image = image->next) {
        AUTO_FREE char *key = NULL;
        int r;

        if (image->refusal && asprintf(&key, "untraced:%s", image->path) < 0)
            return error_no_memory(err);
        r = image->refusal ? trace_writer_tag(writer, key, image->refusal, err)
                           : store_blind_functions(image, writer, err);
        if (r)
            return r;
    }
    return 0;
}

uint32_t image_table_find(const struct traced_image *image, uint64_t address)
{
    const struct image_function *function =
        image_functions_find(image->functions, image->function_count, address);
    size_t low = 0, high = image->plan->count, wanted;

    if (!function)
        return IMAGE_NO_PROBE;
    wanted = (size_t)(function - image->functions);
    while (low < high) { /* probes stand in the order of their functions */
        size_t middle = low + (high - low) / 2;

        if (image->plan->probes[middle].function < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == image->plan->count || image->plan->probes[low].function != wanted)
        return IMAGE_NO_PROBE;
    return image->first_index + (uint32_t)low;
}
