/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/recording/loader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/foreign_file.h"
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

#define SERVED "a user's program serves its file system and may stop answering: copy the file elsewhere"

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

/* Whether the process has any of its own. */
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

    while (any && loader_closing(loader))
        usleep(LOADER_POLL_US);
}

/* ------------------------------------------------------------------------------------ processes */

/* Whether the process is going to run a copy of its program's code. Where neither arguments nor environment
 * are read, any may. One that runs has done so already. */
static bool is_going_to_move(const struct loader *loader, const struct traced_image *image, pid_t pid)
{
    return code_mover_moves(image->elf) ||
           (code_mover_can_move(image->elf) &&
            (loader->options.skip_environment || code_mover_is_configured(pid)));
}

/* Probes the program that a process runs. */
static int probe_program(struct loader *loader, struct traced_image *image, pid_t pid, bool starting,
                         struct error *err)
{
    bool placed;
    int r;

    if (image->translates && starting)
        return loader_translator(loader, pid, err);
    if (!image_is_traced(image))
        return 0;
    if (starting && is_going_to_move(loader, image, pid))
        return loader_leave(loader, image, pid, "the program moves its code to other memory", err);
    r = loader_attach_inline(loader, image, pid, NULL, &placed, err);
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
    struct loader_updates updates;
    int r;

    program.exe = process_exe(pid);
    program.argv = loader->options.keep_arguments ? process_command_line(pid) : process_exe(pid);
    process_exe_link(pid, link, sizeof(link));
    process_root_link(pid, root, sizeof(root));
    source.file = &file;
    source.name = program.exe ? program.exe : link;
    source.root = root;
    background = background_begin(
        starting ? 0 : budget_share(loader->options.budget)); /* a starting program is held */
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
    return r ? r
             : loader_survey(loader, pid, &image->file, starting ? SURVEY_EXEC : SURVEY_PRESENT, &updates,
                             err);
}

int loader_libraries(struct loader *loader, pid_t pid, bool starting, struct loader_updates *ret_updates,
                     struct error *err)
{
    struct stat program;
    char link[64];

    *ret_updates = (struct loader_updates){0};
    process_exe_link(pid, link, sizeof(link));
    if (foreign_file_stat(link, &program))
        return 0; /* it has ended */
    return loader_survey(loader, pid, &program, starting ? SURVEY_PRESENT : SURVEY_LOADED, ret_updates, err);
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

    *ret_updates |= survey.updates;
    loader->skipped |= survey.skipped;
    return r;
}

/* Gives a process inline probes in the libraries that it has mapped. */
static int give_to_libraries(struct loader *loader, pid_t pid, bool *ret_updates, struct error *err)
{
    struct code_mapping *mappings;
    size_t count;
    int r = 0;

    if (!loader->options.libraries || process_code_mappings(pid, &mappings, &count, NULL))
        return 0;
    for (size_t i = 0; !r && i < count; i++) {
        struct traced_image *image;
        struct stat file;
        bool placed;

        image = foreign_file_stat(mappings[i].link, &file) ? NULL
                                                           : image_table_known(loader->options.images, &file);
        if (!image || !image->inlined || image->kind != IMAGE_LIBRARY)
            continue;
        r = loader_attach_inline(loader, image, pid, &mappings[i], &placed, err);
        *ret_updates |= placed;
    }
    code_mappings_free(mappings, count);
    return r == -ESRCH ? 0 : r;
}

int loader_give_inline(struct loader *loader, pid_t pid, bool *ret_updates, struct error *err)
{
    struct traced_image *image;
    struct stat program;
    bool placed = false;
    char link[64];
    int r = 0;

    if (!loader->options.in_processes)
        return 0;
    process_exe_link(pid, link, sizeof(link));
    image = foreign_file_stat(link, &program) ? NULL : image_table_known(loader->options.images, &program);
    if (image && image->inlined && !loader_has_inline(loader, pid)) /* else it has executed another program */
        r = loader_attach_inline(loader, image, pid, NULL, &placed, err);
    *ret_updates |= placed;
    if (!r)
        r = give_to_libraries(loader, pid, ret_updates, err);
    return r == -ESRCH ? 0 : r;
}

int loader_fork(struct loader *loader, pid_t parent, pid_t child, bool *ret_updates, struct error *err)
{
    struct code_mapping *mappings;
    bool given = false;
    size_t count;
    int r = 0;

    *ret_updates = false;
    if (loader->options.sync)
        r = fork_sync(loader, parent, child, ret_updates, err);
    if (!r)
        r = loader_give_inline(loader, child, &given, err);
    /* Of a parent without any it is another program's by now, that the child has executed. */
    *ret_updates |= given && loader_has_inline(loader, parent);
    if (r || !loader->attachments || process_code_mappings(child, &mappings, &count, NULL))
        return r; /* nothing to bring, or the process is gone */
    for (size_t i = 0; !r && i < count; i++) {
        struct traced_image *image = attached_image(loader, parent, &mappings[i]);

        if (!image || loader_is_attached(loader, image, child))
            continue;
        *ret_updates = true;
        r = loader_attach(loader, image, child, false, err);
    }
    if (!r && loader_probes_libraries(loader))
        r = loader_watch_linker(loader, child, mappings, count, err);
    code_mappings_free(mappings, count);
    return r > 0 || r == -ESRCH || r == -ENOENT ? 0 : r;
}
