/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The loader: finds out what code a process has mapped, has it probed, and reports it to the life-cycle
 * source and the streams. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "collector/inline/stale_patches.h"
#include "collector/process/maps.h"
#include "collector/process/process.h"
#include "collector/process/target_file.h"
#include "collector/recording/loader_state.h"

/* ------------------------------------------------------------------------------------ the dynamic linker */

/* `number`: an image's, or LINKER_NUMBER of a linker's place in the loader's list. */
#define LINKER_NUMBER(index) (UINT32_MAX - (uint32_t)(index))

int loader_watch_linker(struct loader *loader, pid_t pid, const struct code_mapping *mappings, size_t count,
                        struct error *err)
{
    const struct code_mapping *mapping = linkers_mapping(mappings, count);
    const struct linker *linker;
    uint32_t number;
    int r;

    if (!mapping)
        return 0;
    r = linkers_find(&loader->linkers, mapping, &linker);
    if (r)
        return r == -ENOMEM ? error_no_memory(err) : 0;
    number = LINKER_NUMBER(linker - loader->linkers.linkers);
    if (loader_has_attachment(loader, number, pid))
        return 1;
    if (!linker->meets || loader_closing(loader) > LOADER_CLOSING_MAX)
        return 0;
    r = loader->options.source->of->watch_linker(loader->options.source, linker->file, mapping->path,
                                                 &linker->sites, pid, err);
    if (!r)
        r = loader_add_attachment(loader, number, NULL, pid, err);
    return r ? r : 1;
}

/* ------------------------------------------------------------------------------------ all of a process */

/* What is found out about a process's code. */
struct survey {
    struct stream_code *code;
    size_t count;
    bool can_throw, reads_stacks, probes_returns, own_probes, watched;
    enum survey_reason reason;
    struct loader_updates updates;
};

static void survey_release(struct survey *survey)
{
    free(survey->code);
}

static bool can_throw(const struct traced_image *image)
{
    const struct elf_image_facts *facts = elf_image_facts(image->elf);

    return facts->needs_unwinder || facts->is_go || facts->is_rust;
}

static bool is_file(const struct code_mapping *mapping, const struct stat *file)
{
    return mapping->device == file->st_dev && mapping->inode == file->st_ino;
}

static bool is_ours(void *context, pid_t pid)
{
    struct loader *loader = context;

    return streams_knows_process(loader->options.streams, pid);
}

/* The image in a mapping's file. */
static int get_image(struct loader *loader, pid_t pid, const struct code_mapping *mapping,
                     const struct target_file *file, enum image_kind kind, struct traced_image **ret_image,
                     struct error *err)
{
    char root[32];
    struct image_source_file source = {.file = file, .name = mapping->path, .root = root, .kind = kind};

    process_root_link(pid, root, sizeof(root));
    if (kind == IMAGE_LIBRARY && loader->options.libraries &&
        !image_table_known(loader->options.images, &file->stat))
        source.shared = file_is_mapped_elsewhere(mapping->device, mapping->inode, is_ours, loader);
    return image_table_get(loader->options.images, &source, ret_image, err);
}

/* The probes on functions of the image that synchronise. */
static int survey_sync(struct loader *loader, pid_t pid, struct traced_image *image, struct survey *survey,
                       struct error *err)
{
    struct sync_survey sync = {0};
    int r = sync_probes_image(loader->options.sync, image, pid, &sync, err);

    survey->updates.images += sync.updates;
    survey->own_probes |= sync.own;
    loader->skipped |= sync.skipped;
    return r;
}

/* The inline probes of a library. One that a program loads later may be unloaded, and come back while other threads
 * run: the kernel's probes are there again by then, inline ones may come too late. */
static int survey_inline(struct loader *loader, pid_t pid, const struct code_mapping *mapping,
                         struct traced_image *image, struct survey *survey, struct error *err)
{
    bool placed;
    int r;

    if (survey->reason == SURVEY_LOADED && !image->patched)
        return image_table_leave_inline(loader->options.images, image, "it was loaded while the program ran",
                                        err);
    r = loader_attach_inline(loader, image, pid, mapping, &placed, err);
    survey->updates.images += placed;
    survey->updates.stopped_for += placed;
    return r;
}

/* Whether the process has just executed this program, and its exec record is still to come: inline probes are placed or
 * refused then, and uprobes now would count as all that the program can have. */
static bool awaits_exec(const struct traced_image *image, enum image_kind kind)
{
    return kind == IMAGE_MAIN && image->inlined;
}

static int survey_mapping(struct loader *loader, pid_t pid, const struct code_mapping *mapping,
                          const struct stat *program, struct survey *survey, struct error *err)
{
    enum image_kind kind = is_file(mapping, program) ? IMAGE_MAIN : IMAGE_LIBRARY;
    struct stream_code *code = &survey->code[survey->count];
    AUTO_TARGET_FILE struct target_file file = TARGET_FILE_NONE;
    struct traced_image *image;
    int r = target_file_of_mapping(mapping, &file);

    if (r == -ENOENT)
        return 0; /* unmapped meanwhile; it is looked at again when it comes back */
    if (r)
        return loader_note_unopened(loader, mapping->path, r, err);
    r = get_image(loader, pid, mapping, &file, kind, &image, err);
    if (r == -EMFILE || r == -ENFILE)
        return loader_note_unopened(loader, mapping->path, r, err);
    if (r || !image->elf)
        return r;
    if (image_is_traced(image) && kind == IMAGE_LIBRARY && image->inlined)
        r = survey_inline(loader, pid, mapping, image, survey, err);
    if (r)
        return r;
    if (image_is_traced(image) && !awaits_exec(image, kind) && !loader_is_attached(loader, image, pid)) {
        survey->updates.images++;
        r = loader_attach(loader, image, pid, false, err);
        if (r == -EMFILE || r == -ENFILE)
            return loader_note_unopened(loader, mapping->path, r, err);
        if (r)
            return r;
    }
    if (elf_image_load_bias(image->elf, mapping->start, mapping->offset, &code->load_bias))
        return 0;
    code->start = mapping->start;
    code->end = mapping->end;
    code->image = image;
    survey->count++;
    survey->can_throw |= can_throw(image);
    survey->reads_stacks |= image->stack_reader.reach == STACK_PROCESS;
    survey->own_probes |= loader_has_attachment(loader, image->number, pid);
    survey->probes_returns |= image_is_traced(image) && image->plan->return_probes && !image->shared;
    return loader->options.sync ? survey_sync(loader, pid, image, survey, err) : 0;
}

static bool is_c_library(const struct traced_image *image)
{
    return !strncmp(path_file_name(image->path), "libc.", 5);
}

/* The ranges that calls come from without an exception behind them: the program's own and the C library's
 * first, then as many others as there is room for. */
static void list_quiet_ranges(const struct survey *survey, struct process_state *state)
{
    size_t used = 0;

    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < survey->count && used < PROCESS_RANGES; i++) {
            const struct traced_image *image = survey->code[i].image;
            bool first = image->kind == IMAGE_MAIN || is_c_library(image);

            if (first == !round && !can_throw(image))
                state->cannot_throw[used++] = (struct code_range){survey->code[i].start, survey->code[i].end};
        }
    }
}

/* Tells the kernel side and the streams what has been found. */
static int tell(struct loader *loader, pid_t pid, struct survey *survey, struct error *err)
{
    struct process_state state = {.flags = PROCESS_TRACED};

    if (loader_probes_libraries(loader) || survey->probes_returns || loader_has_inline(loader, pid))
        state.flags |= PROCESS_CAN_LOAD; /* inline calls have half of their return addresses */
    if (loader_probes_libraries(loader))
        state.flags |= PROCESS_WATCHED;
    if (loader_has_inline(loader, pid))
        state.flags |= PROCESS_INLINE;
    /* Children are watched each on its own, and may load a library at once. */
    if (survey->own_probes || (loader->options.libraries && loader->options.in_processes))
        state.flags |= PROCESS_OWN_PROBES;
    if (survey->reason == SURVEY_EXEC)
        state.flags |= PROCESS_STARTING;
    if (survey->probes_returns && (survey->can_throw || !survey->watched))
        state.flags |= PROCESS_CHECK_CALLERS;
    if (survey->probes_returns && survey->reads_stacks)
        state.flags |= PROCESS_NO_RETURNS;
    list_quiet_ranges(survey, &state);
    loader->options.source->of->set_process(loader->options.source, pid,
                                            &state); /* unless it has ended meanwhile */
    return streams_set_code(loader->options.streams, pid, survey->code, survey->count, err);
}

/* Whether the program runs others: what it maps is theirs, and read, not run. */
static bool translates(const struct loader *loader, const struct stat *program)
{
    const struct traced_image *image = image_table_known(loader->options.images, program);

    return image && image->translates;
}

int loader_survey(struct loader *loader, pid_t pid, const struct stat *program, enum survey_reason reason,
                  struct loader_updates *ret_updates, struct error *err)
{
    CLEANUP(survey_release) struct survey survey = {.reason = reason};
    struct code_mapping *mappings;
    size_t count;
    int r = process_code_mappings(pid, &mappings, &count, err);

    if (r)
        return r;
    if (translates(loader, program)) {
        code_mappings_free(mappings, count);
        count = 0;
        mappings = NULL;
    }
    survey.code = calloc(count ? count : 1, sizeof(*survey.code));
    if (!survey.code) {
        code_mappings_free(mappings, count);
        return error_no_memory(err);
    }
    for (size_t i = 0; !r && i < count; i++)
        if (!stale_patches_has_probe_code(pid, &mappings[i]))
            r = survey_mapping(loader, pid, &mappings[i], program, &survey, err);
    if (!r && (loader_probes_libraries(loader) || survey.probes_returns || loader_has_inline(loader, pid))) {
        r = loader_watch_linker(loader, pid, mappings, count, err);
        survey.watched = r > 0;
    }
    code_mappings_free(mappings, count);
    *ret_updates = survey.updates;
    for (size_t i = 0; r >= 0 && loader_has_inline(loader, pid) && i < survey.count; i++)
        r = is_c_library(survey.code[i].image) ? loader_watch_rights(loader, survey.code[i].image, err) : 0;
    return r < 0 ? r : tell(loader, pid, &survey, err);
}
