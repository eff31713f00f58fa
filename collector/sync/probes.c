/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/sync/probes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "collector/sync/targets.h"

/* Processes that a C library is probed in at once: the library's few places are gone through in all of them
 * whenever a program starts (collector/recording/loader.c has the same for whole libraries). */
#define PROCESSES_MAX 128

/* What is known of an image. */
struct known_image {
    const struct traced_image *image;
    struct sync_targets library, declared;
    bool has_library; /* locks of a C library are seen in it */
    bool everywhere;  /* its probes are in all processes that run it */
    struct known_image *next;
};

/* An image that is probed in one process. */
struct placement {
    pid_t pid;
    struct known_image *known;
};

struct sync_probes {
    struct uprobe_backend *backend;
    struct streams *streams;
    struct sync_function_spec *declared;
    size_t declared_count;
    struct known_image *images;
    struct placement *placements;
    size_t placement_count, placement_capacity;
};

DEFINE_CLEANUP(cleanup_probes, struct sync_probes *, sync_probes_free)

static int describe_calls(struct uprobe_backend *backend, struct error *err)
{
    int r = 0;

    for (unsigned number = 0; !r && number < SYNC_CALLS; number++) {
        const struct sync_call call = sync_call_by_number(number);

        if (call.shape != SYNC_SHAPE_NONE)
            r = uprobe_backend_sync_call(backend, number, &call, err);
    }
    return r;
}

int sync_probes_new(struct uprobe_backend *backend, struct streams *streams,
                    const struct sync_declaration *declarations, size_t count,
                    struct sync_probes **ret_probes, struct error *err)
{
    CLEANUP(cleanup_probes) struct sync_probes *probes = calloc(1, sizeof(*probes));
    int r;

    if (!probes)
        return error_no_memory(err), -ENOMEM;
    probes->backend = backend;
    probes->streams = streams;
    probes->declared = calloc(count + 1, sizeof(*probes->declared));
    if (!probes->declared)
        return error_no_memory(err), -ENOMEM;
    probes->declared_count = count;
    for (size_t i = 0; i < count; i++)
        probes->declared[i] = sync_declaration_spec(&declarations[i], (uint16_t)(i + 1));
    r = describe_calls(backend, err);
    if (!r)
        *ret_probes = take_pointer(probes);
    return r;
}

void sync_probes_free(struct sync_probes *probes)
{
    if (!probes)
        return;
    for (struct known_image *known = probes->images, *next; known; known = next) {
        next = known->next;
        sync_targets_release(&known->library);
        sync_targets_release(&known->declared);
        free(known);
    }
    free(probes->declared);
    free(probes->placements);
    free(probes);
}

/* ------------------------------------------------------------------------------------------ images */

static bool is_c_library(const struct traced_image *image)
{
    const char *name = path_file_name(image->path);

    return !strncmp(name, "libc.", 5) || !strncmp(name, "libc-", 5) || !strncmp(name, "libpthread", 10) ||
           !strncmp(name, "ld-musl", 7);
}

static int look_into(struct sync_probes *probes, struct known_image *known, struct error *err)
{
    const struct traced_image *image = known->image;
    int r = 0;

    if (image->kind == IMAGE_MAIN || is_c_library(image))
        /* In glibc before 2.34 libc.so hands these functions on to libpthread, which makes the threads. */
        r = sync_targets_find(image->elf, sync_library_functions, sync_library_function_count,
                              "pthread_create", &known->library, err);
    if (!r && probes->declared_count && !is_c_library(image))
        r = sync_targets_find(image->elf, probes->declared, probes->declared_count, NULL, &known->declared,
                              err);
    known->has_library = known->library.found;
    return r;
}

/* What is known of an image, which is looked into when it is new. */
static int know(struct sync_probes *probes, const struct traced_image *image, struct known_image **ret_known,
                struct error *err)
{
    struct known_image *known = probes->images;

    while (known && known->image != image)
        known = known->next;
    *ret_known = known;
    if (known)
        return 0;
    known = calloc(1, sizeof(*known));
    if (!known)
        return error_no_memory(err), -ENOMEM;
    known->image = image;
    known->next = probes->images;
    probes->images = known;
    *ret_known = known;
    return look_into(probes, known, err);
}

/* ------------------------------------------------------------------------------------------ processes */

static bool is_placed(const struct sync_probes *probes, const struct known_image *known, pid_t pid)
{
    for (size_t i = 0; i < probes->placement_count; i++)
        if (probes->placements[i].known == known && probes->placements[i].pid == pid)
            return true;
    return false;
}

static size_t processes_of(const struct sync_probes *probes, const struct known_image *known)
{
    size_t count = 0;

    for (size_t i = 0; i < probes->placement_count; i++)
        count += probes->placements[i].known == known;
    return count;
}

static int attach(struct sync_probes *probes, const struct traced_image *image,
                  const struct sync_targets *targets, pid_t pid, struct error *err)
{
    const struct probe_sites sites = {.file = elf_image_fd(image->elf),
                                      .name = image->path,
                                      .offsets = targets->offsets,
                                      .cookies = targets->cookies,
                                      .count = targets->count,
                                      .refused = targets->refused};

    return targets->count ? uprobe_backend_attach_sync(probes->backend, &sites, pid, err) : 0;
}

/* Probes a library in one process. */
static int place(struct sync_probes *probes, struct known_image *known, pid_t pid, struct sync_survey *survey,
                 struct error *err)
{
    int r;

    if (is_placed(probes, known, pid)) {
        survey->own = true;
        return 0;
    }
    if (processes_of(probes, known) >= PROCESSES_MAX) {
        survey->skipped = true;
        return 0;
    }
    if (array_reserve(&probes->placements, &probes->placement_capacity, probes->placement_count + 1))
        return error_no_memory(err), -ENOMEM;
    r = attach(probes, known->image, &known->library, pid, err);
    if (!r)
        r = attach(probes, known->image, &known->declared, pid, err);
    if (r)
        return r;
    probes->placements[probes->placement_count++] = (struct placement){pid, known};
    survey->updates = survey->own = true;
    return 0;
}

/* Probes a program in all processes that run it. */
static int place_everywhere(struct sync_probes *probes, struct known_image *known, struct sync_survey *survey,
                            struct error *err)
{
    int r;

    if (known->everywhere)
        return 0;
    r = attach(probes, known->image, &known->library, 0, err);
    if (!r)
        r = attach(probes, known->image, &known->declared, 0, err);
    known->everywhere = !r;
    survey->updates |= !r;
    return r;
}

int sync_probes_image(struct sync_probes *probes, struct traced_image *image, pid_t pid,
                      struct sync_survey *survey, struct error *err)
{
    struct known_image *known;
    int r = image->elf && !elf_image_facts(image->elf)->is_go ? know(probes, image, &known, err) : 1;

    if (r)
        return r < 0 ? r : 0;
    if (!known->library.count && !known->declared.count)
        return 0;
    r = image->kind == IMAGE_MAIN ? place_everywhere(probes, known, survey, err)
                                  : place(probes, known, pid, survey, err);
    return r || !known->has_library || survey->skipped
               ? r
               : streams_set_sync_library(probes->streams, pid, image->path, known->library.missed, err);
}

int sync_probes_fork(struct sync_probes *probes, pid_t parent, pid_t child, struct sync_survey *survey,
                     struct error *err)
{
    size_t count = probes->placement_count; /* those of the child come behind */
    int r = 0;

    for (size_t i = 0; !r && i < count; i++) {
        struct known_image *known = probes->placements[i].known;

        if (probes->placements[i].pid != parent)
            continue;
        r = place(probes, known, child, survey, err);
        if (r == -ESRCH) /* it is gone already */
            r = 0;
    }
    return r;
}

void sync_probes_end(struct sync_probes *probes, pid_t pid)
{
    size_t kept = 0;

    for (size_t i = 0; i < probes->placement_count; i++)
        if (probes->placements[i].pid != pid)
            probes->placements[kept++] = probes->placements[i];
    probes->placement_count = kept;
}
