/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/foreign_file.h"
#include "collector/process/map_lines.h"
#include "collector/process/process.h"
#include "collector/recording/loader_state.h"
#include "collector/recording/text_check.h"

/* The kernel takes some 40 ms to remove probes, and many times that on a busy machine. The process stands still
 * meanwhile: with a breakpoint in what it changes, copies or translates it would die. */
#define REMOVAL_MOST_NS 10000000000u

/* The image that a process has mapped at `address`, whatever it may do with it at present; NULL: none that is
 * known. */
static struct traced_image *image_at(const struct loader *loader, pid_t pid, uint64_t address)
{
    AUTO_MAP_LINES struct map_lines maps = {0};
    struct map_line line;
    struct stat file;
    char link[96];

    if (map_lines_open(pid, &maps))
        return NULL;
    while (map_lines_next(&maps, &line)) {
        if (address < line.start || address >= line.end)
            continue;
        process_mapped_link(pid, line.start, line.end, link, sizeof(link));
        if (!foreign_file_stat(link, &file))
            return image_table_known(loader->options.images, &file);
        process_exe_link(pid, link, sizeof(link)); /* without CAP_CHECKPOINT_RESTORE: the program at least */
        return !foreign_file_stat(link, &file) && file.st_ino == line.inode
                   ? image_table_known(loader->options.images, &file)
                   : NULL;
    }
    return NULL;
}

static bool has_probes(const struct loader *loader, const struct traced_image *image)
{
    bool any = image->everywhere || image->patched;

    for (const struct attachment *attachment = loader->attachments; attachment && !any;
         attachment = attachment->hh.next)
        any = attachment->image == image;
    return any;
}

static void remove_uprobes(struct loader *loader, struct traced_image *image)
{
    struct attachment *attachment = NULL, *next = NULL;

    if (loader->options.budget)
        budget_leave(loader->options.budget, image);
    loader->options.in_files->of->detach_part(loader->options.in_files, PROBE_IMAGE_PART(image->number));
    HASH_ITER (hh, loader->attachments, attachment, next) {
        if (attachment->image != image)
            continue;
        HASH_DEL(loader->attachments, attachment);
        free(attachment);
    }
    image->everywhere = true; /* nothing is to be attached any more */
}

/* What cannot be restored has been changed already, and is left as it is. */
static int remove_inline_probes(struct loader *loader, struct traced_image *image, struct error *err)
{
    AUTO_FREE bool *out = calloc(image->function_count + 1, sizeof(*out));
    const struct backend_choice choice = {.out = out, .out_ahead = out};

    if (!out)
        return error_no_memory(err);
    for (size_t i = 0; i < image->function_count; i++)
        out[i] = true;
    image->inlined->left = true;
    return loader->options.in_processes->of->choose(loader->options.in_processes, image->inlined, &choice,
                                                    err) == -ENOMEM
               ? -ENOMEM
               : 0;
}

/* Its calls and returns are not seen any more. */
static int report_to_streams(struct loader *loader, const struct traced_image *image, struct error *err)
{
    size_t count = image->first_function + image->function_count;
    AUTO_FREE bool *unseen = calloc(count + 1, sizeof(*unseen));
    int r = unseen ? 0 : -ENOMEM;

    for (size_t i = image->first_function; i < count && !r; i++) {
        unseen[i] = true;
        r = streams_function_missed(loader->options.streams, (uint32_t)i);
    }
    return r ? error_no_memory(err) : streams_returns_unseen(loader->options.streams, unseen, count, err);
}

static void wait_for_removal(const struct traced_image *image, pid_t pid)
{
    uint64_t until = clock_ns(CLOCK_MONOTONIC) + REMOVAL_MOST_NS;

    while (text_check_has_probes(image, pid) && clock_ns(CLOCK_MONOTONIC) < until)
        usleep(LOADER_POLL_US);
}

int loader_leave(struct loader *loader, struct traced_image *image, pid_t pid, const char *why,
                 struct error *err)
{
    bool had = has_probes(loader, image);
    int r = 0;

    if (image->left_ns)
        return 0;
    image->left_ns = clock_ns(CLOCK_REALTIME);
    image->left_reason = why;
    if (image->inlined && loader->options.in_processes)
        r = remove_inline_probes(loader, image, err);
    remove_uprobes(loader, image);
    if (!r && had)
        r = report_to_streams(loader, image, err);
    if (had)
        wait_for_removal(image, pid);
    return r;
}

int loader_translator(struct loader *loader, pid_t pid, struct error *err)
{
    uint64_t until = clock_ns(CLOCK_MONOTONIC) + REMOVAL_MOST_NS;
    int r = 0;

    loader_end(loader, pid); /* what the program before it had, linkers and libraries */
    for (struct traced_image *image = image_table_images(loader->options.images); image && !r;
         image = image->next)
        if (image->everywhere && !image->left_ns)
            r = loader_leave(loader, image, pid, "a program that translates code may map it", err);
    while (loader_closing(loader) && clock_ns(CLOCK_MONOTONIC) < until)
        usleep(LOADER_POLL_US);
    return r;
}

int loader_rewrite(struct loader *loader, const struct wire_rewrite *record, bool *ret_left,
                   struct error *err)
{
    pid_t pid = (pid_t)record->tgid;
    struct traced_image *image = image_at(loader, pid, record->address);
    const char *why = record->copies ? "the program makes memory that it could run a copy of its code in"
                                     : "the program changes its code";

    *ret_left = image && image_is_traced(image) && !image->plan->changes && !image->left_ns &&
                has_probes(loader, image);
    return *ret_left ? loader_leave(loader, image, pid, why, err) : 0;
}
