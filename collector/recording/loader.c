/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/recording/loader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/foreign_file.h"
#include "base/path.h"
#include "collector/launch/background.h"
#include "collector/memory/code_mover.h"
#include "collector/process/maps.h"
#include "collector/process/process.h"
#include "collector/process/target_file.h"
#include "collector/recording/loader_state.h"

int loader_new(const struct loader_options *options, struct loader **ret_loader, struct error *err)
{
    struct loader *loader = calloc(1, sizeof(*loader));

    if (!loader)
        return error_no_memory(err);
    loader->options = *options;
    *ret_loader = loader;
    return 0;
}

void loader_free(struct loader *loader)
{
    struct attachment *attachment = NULL, *next = NULL;
    struct unopened *item = NULL, *following = NULL;

    if (!loader)
        return;
    HASH_ITER (hh, loader->attachments, attachment, next) {
        HASH_DEL(loader->attachments, attachment);
        free(attachment);
    }
    HASH_ITER (hh, loader->unopened, item, following) {
        HASH_DEL(loader->unopened, item);
        free(item->path);
        free(item);
    }
    linkers_release(&loader->linkers);
    free(loader);
}

bool loader_consume_unpatched(struct loader *loader)
{
    bool unpatched = loader->unpatched;

    loader->unpatched = false;
    return unpatched;
}

bool loader_consume_differing(struct loader *loader)
{
    bool differing = loader->differing;

    loader->differing = false;
    return differing;
}

#define SERVED "a program of a user serves its file system, and may stop answering: copy it to another one"

int loader_note_unopened(struct loader *loader, const char *path, int code, struct error *err)
{
    struct unopened *known;

    HASH_FIND_STR(loader->unopened, path, known);
    if (known)
        return 0;
    known = calloc(1, sizeof(*known));
    if (!known || !(known->path = strdup(path))) {
        free(known);
        return error_no_memory(err);
    }
    known->code = code;
    HASH_ADD_KEYPTR(hh, loader->unopened, known->path, strlen(known->path), known);
    loader->unopened_updates = true;
    return 0;
}

int loader_store_unopened(struct loader *loader, struct trace_writer *writer, struct error *err)
{
    int r = 0;

    for (struct unopened *item = loader->unopened_updates ? loader->unopened : NULL; item && !r;
         item = item->hh.next) {
        AUTO_FREE char *key = NULL;
        struct error why = {0};

        if (item->told)
            continue;
        item->told = true;
        if (asprintf(&key, "untraced:%s", item->path) < 0)
            return key = NULL, error_no_memory(err);
        error_set(&why, item->code, item->code == -EREMOTE ? SERVED : NULL, "cannot trace %s", item->path);
        r = trace_writer_tag(writer, key, why.message, err);
    }
    loader->unopened_updates = false;
    return r;
}

bool loader_consume_skipped(struct loader *loader)
{
    bool skipped = loader->skipped;

    loader->skipped = false;
    return skipped;
}

/* Whether the process has any by itself. */
static bool has_own_probes(struct loader *loader, pid_t pid)
{
    struct attachment *attachment = NULL, *next = NULL;
    bool any = false;

    HASH_ITER (hh, loader->attachments, attachment, next) {
        if (attachment->pid != pid)
            continue;
        any = true;
        HASH_DEL(loader->attachments, attachment);
        free(attachment);
    }
    if (loader->options.sync)
        sync_probes_end(loader->options.sync, pid);
    any |= loader->options.sync != NULL;
    if (any)
        loader->options.in_files->of->detach_process(loader->options.in_files, pid);
    return any;
}

void loader_end(struct loader *loader, pid_t pid)
{
    has_own_probes(loader, pid);
}

void loader_replace_thread(struct loader *loader, pid_t pid)
{
    bool any = has_own_probes(loader, pid);

    while (any && loader->options.in_files->of->closing(loader->options.in_files))
        usleep(LOADER_POLL_US);
}

/* ------------------------------------------------------------------------------------ the dynamic linker */

/* `number`: an image's, or LINKER_NUMBER of a linker's place in the loader's list. */
#define LINKER_NUMBER(index) (UINT32_MAX - (uint32_t)(index))

/* Watches the dynamic linker that a process has now, once. 1: it is watched; 0: that is not possible. */
static int watch_linker(struct loader *loader, pid_t pid, const struct code_mapping *mappings, size_t count,
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
    if (!linker->meets ||
        loader->options.in_files->of->closing(loader->options.in_files) > LOADER_CLOSING_MAX)
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
    bool can_throw, reads_stacks, probes_returns, own_probes, watched, news;
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

    snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
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

    survey->news |= sync.news;
    survey->own_probes |= sync.own;
    loader->skipped |= sync.skipped;
    return r;
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
    if (image_is_traced(image) && !loader_is_attached(loader, image, pid)) {
        survey->news = true;
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

static bool probes_libraries(const struct loader *loader)
{
    return loader->options.libraries || loader->options.sync;
}

/* Tells the kernel side and the streams what has been found. */
static int tell(struct loader *loader, pid_t pid, struct survey *survey, bool starting, struct error *err)
{
    struct process_state state = {.flags = PROCESS_TRACED};

    if (probes_libraries(loader) || survey->probes_returns || loader_has_inline(loader, pid))
        state.flags |= PROCESS_CAN_LOAD; /* inline calls have half of their return addresses */
    if (probes_libraries(loader))
        state.flags |= PROCESS_WATCHED;
    if (loader_has_inline(loader, pid))
        state.flags |= PROCESS_INLINE;
    if (survey->own_probes)
        state.flags |= PROCESS_OWN_PROBES;
    if (starting)
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

static int survey_process(struct loader *loader, pid_t pid, const struct stat *program, bool starting,
                          bool *ret_updates, struct error *err)
{
    CLEANUP(survey_release) struct survey survey = {0};
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
        r = survey_mapping(loader, pid, &mappings[i], program, &survey, err);
    if (!r && (probes_libraries(loader) || survey.probes_returns || loader_has_inline(loader, pid))) {
        r = watch_linker(loader, pid, mappings, count, err);
        survey.watched = r > 0;
    }
    code_mappings_free(mappings, count);
    *ret_updates = survey.news;
    for (size_t i = 0; r >= 0 && loader_has_inline(loader, pid) && i < survey.count; i++)
        r = is_c_library(survey.code[i].image) ? loader_watch_rights(loader, survey.code[i].image, err) : 0;
    return r < 0 ? r : tell(loader, pid, &survey, starting, err);
}

/* Whether the process is going to run a copy of its program's code. Where neither arguments nor environment
 * are read, any may. One that runs has done so already. */
static bool is_going_to_move(const struct loader *loader, const struct traced_image *image, pid_t pid)
{
    return code_mover_can_move(image->elf) &&
           (loader->options.skip_environment || code_mover_is_configured(pid));
}

/* Probes the program that a process runs. */
static int probe_program(struct loader *loader, struct traced_image *image, pid_t pid, bool starting,
                         struct error *err)
{
    int r;

    if (image->translates && starting)
        return loader_translator(loader, pid, err);
    if (!image_is_traced(image))
        return 0;
    if (starting && is_going_to_move(loader, image, pid))
        return loader_leave(loader, image, pid, "the program moves its code to other memory", err);
    r = loader_attach_inline(loader, image, pid, err);
    return r || loader_is_attached(loader, image, pid) ? r
                                                       : loader_attach(loader, image, pid, !starting, err);
}

int loader_program(struct loader *loader, pid_t pid, bool starting, const struct traced_image **ret_main,
                   struct error *err)
{
    struct stream_program program = {.rank = loader->options.skip_environment ? -1 : process_rank(pid)};
    struct image_source_file source = {.kind = IMAGE_MAIN};
    AUTO_TARGET_FILE struct target_file file = TARGET_FILE_NONE;
    struct traced_image *image = NULL;
    struct background *background;
    char link[64], root[32];
    bool news;
    int r;

    program.exe = process_exe(pid);
    program.argv = loader->options.keep_arguments ? process_command_line(pid) : process_exe(pid);
    process_exe_link(pid, link, sizeof(link));
    snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
    source.file = &file;
    source.name = program.exe ? program.exe : link;
    source.root = root;
    background =
        background_begin(starting ? 0 : budget_share(loader->options.budget)); /* who starts is held */
    r = target_file_open(link, &file);
    if (r)
        error_set(err, r, r == -EREMOTE ? SERVED : NULL, "cannot trace %s", source.name);
    else
        r = image_table_get(loader->options.images, &source, &image, err);
    background_end(background);
    if (!r)
        r = probe_program(loader, image, pid, starting, err);
    if (!r && image->go)
        r = image_table_attach_go(loader->options.uprobes, image, image->go_detail_policy.detail, err);
    if (r) {
        free(program.exe);
        free(program.argv);
        return r;
    }
    program.image = image_is_traced(image) ? image : NULL;
    program.go = image->go ? image : NULL;
    program.starting = starting;
    *ret_main = image;
    r = streams_set_program(loader->options.streams, pid, &program, err);
    return r ? r : survey_process(loader, pid, &image->file, starting, &news, err);
}

int loader_libraries(struct loader *loader, pid_t pid, bool *ret_updates, struct error *err)
{
    struct stat program;
    char link[64];

    *ret_updates = false;
    process_exe_link(pid, link, sizeof(link));
    if (foreign_file_stat(link, &program))
        return 0; /* it has ended */
    return survey_process(loader, pid, &program, false, ret_updates, err);
}

/* The image of a mapping that is probed in `pid` alone; NULL: none is. */
static struct traced_image *attached_image(const struct loader *loader, pid_t pid,
                                           const struct code_mapping *mapping)
{
    struct attachment *attachment = NULL, *next = NULL;

    HASH_ITER (hh, loader->attachments, attachment, next)
        if (attachment->pid == pid && attachment->image &&
            attachment->image->file.st_dev == mapping->device &&
            attachment->image->file.st_ino == mapping->inode)
            return attachment->image;
    return NULL;
}

static int fork_sync(struct loader *loader, pid_t parent, pid_t child, bool *ret_updates, struct error *err)
{
    struct sync_survey survey = {0};
    int r = sync_probes_fork(loader->options.sync, parent, child, &survey, err);

    *ret_updates |= survey.news;
    loader->skipped |= survey.skipped;
    return r;
}

int loader_give_inline(struct loader *loader, pid_t pid, bool *ret_updates, struct error *err)
{
    struct traced_image *image;
    struct stat program;
    char link[64];
    int r;

    if (!loader->options.in_processes || backend_has(loader->options.in_processes, pid))
        return 0;
    process_exe_link(pid, link, sizeof(link));
    image = foreign_file_stat(link, &program) ? NULL : image_table_known(loader->options.images, &program);
    if (!image || !image->inlined)
        return 0;
    r = loader_attach_inline(loader, image, pid, err);
    *ret_updates |= loader_has_inline(loader, pid);
    return r == -ESRCH ? 0 : r;
}

int loader_fork(struct loader *loader, pid_t parent, pid_t child, bool *ret_updates, struct error *err)
{
    struct code_mapping *mappings;
    size_t count;
    int r = 0;

    *ret_updates = false;
    if (loader->options.sync)
        r = fork_sync(loader, parent, child, ret_updates, err);
    if (!r)
        r = loader_give_inline(loader, child, ret_updates, err);
    if (r || !loader->attachments || process_code_mappings(child, &mappings, &count, NULL))
        return r; /* nothing to bring, or nobody there any more */
    for (size_t i = 0; !r && i < count; i++) {
        struct traced_image *image = attached_image(loader, parent, &mappings[i]);

        if (!image || loader_is_attached(loader, image, child))
            continue;
        *ret_updates = true;
        r = loader_attach(loader, image, child, false, err);
    }
    if (!r && probes_libraries(loader))
        r = watch_linker(loader, child, mappings, count, err);
    code_mappings_free(mappings, count);
    return r > 0 || r == -ESRCH || r == -ENOENT ? 0 : r;
}
