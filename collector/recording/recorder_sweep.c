/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/recording/recorder_sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "collector/memory/text_diff.h"
#include "collector/memory/text_sites.h"
#include "collector/process/proc_numbers.h"
#include "collector/process/process.h"
#include "collector/process/target_file.h"

#define NAMED_MOST 3

struct sweep {
    struct recorder *recorder;
    struct text_sites code;
    pid_t pid;
};

/* The first mapping of the file; the process has one. */
static const struct code_mapping *mapping_of(const struct text_sites *code,
                                             const struct placed_probes *former)
{
    const struct code_mapping *mapping = code->mappings;

    while (mapping->device != former->device || mapping->inode != former->inode)
        mapping++;
    return mapping;
}

/* Those former places that still have a breakpoint, which neither the file nor another tool's probe of all
 * processes has there. Their number. */
static size_t find_left(const struct sweep *sweep, const struct placed_probes *former, int file,
                        unsigned long *left)
{
    AUTO_FREE enum text_site *found = calloc(former->count + 1, sizeof(*found));
    size_t count = 0;

    if (!found)
        return 0;
    text_sites_read(&sweep->code, former->device, former->inode, former->offsets, former->count, found);
    for (size_t i = 0; i < former->count; i++)
        if (found[i] == TEXT_SITE_PROBED && !text_diff_is_probed(file, former->offsets[i]))
            left[count++] = former->offsets[i];
    return count;
}

/* The function at a place of a file, or NULL. */
static const char *name_at(const struct recorder *recorder, const struct placed_probes *former,
                           unsigned long offset)
{
    for (const struct traced_image *image = image_table_images(recorder->images); image; image = image->next)
        for (size_t i = 0; image->file.st_dev == former->device && image->file.st_ino == former->inode &&
                           i < image->site_count;
             i++)
            if (image->offsets[i] == offset)
                return image
                    ->functions[image->plan->probes[(uint32_t)image->cookies[i] - image->first_index]
                                    .function]
                    .name;
    return NULL;
}

static void report(const struct sweep *sweep, const struct placed_probes *former, const unsigned long *left,
                   size_t count)
{
    AUTO_FREE char *key = NULL, *value = NULL;
    AUTO_FCLOSE FILE *text = NULL;
    size_t size;

    if (!sweep->recorder->writer ||
        asprintf(&key, "breakpoints left:%s", mapping_of(&sweep->code, former)->path) < 0) {
        key = NULL;
        return;
    }
    text = open_memstream(&value, &size);
    if (!text)
        return;
    fprintf(text, "%zu in process %d, which the kernel could not take away, or another tool's:", count,
            (int)sweep->pid);
    for (size_t i = 0; i < count && i < NAMED_MOST; i++) {
        const char *name = name_at(sweep->recorder, former, left[i]);

        fprintf(text, "%s %s at 0x%lx", i ? "," : "", name ? name : "a place", left[i]);
    }
    if (!fflush(text))
        recorder_tag(sweep->recorder, key, value, NULL);
}

static int sweep_file(void *context, const struct placed_probes *former)
{
    struct sweep *sweep = context;
    AUTO_TARGET_FILE struct target_file file = TARGET_FILE_NONE;
    AUTO_FREE unsigned long *left = NULL;
    size_t count;

    if (!text_sites_have(&sweep->code, former->device, former->inode) ||
        target_file_of_mapping(mapping_of(&sweep->code, former), &file))
        return 0;
    left = calloc(former->count + 1, sizeof(*left));
    count = left ? find_left(sweep, former, file.fd, left) : 0;
    if (!count)
        return 0;
    sweep->recorder->in_files->of->touch(sweep->recorder->in_files, file.fd, sweep->pid, left, count);
    count = find_left(sweep, former, file.fd, left);
    if (count)
        report(sweep, former, left, count);
    return 0;
}

static void sweep_process(struct recorder *recorder, pid_t pid)
{
    struct sweep sweep = {.recorder = recorder, .pid = pid};

    if (text_sites_open(pid, &sweep.code))
        return;
    if (sweep.code.count && !process_may_have_breakpoints(pid))
        recorder->in_files->of->former(recorder->in_files, sweep_file, &sweep);
    text_sites_close(&sweep.code);
}

void recorder_sweep_probes(struct recorder *recorder)
{
    AUTO_PROC_NUMBERS pids = {NULL};
    pid_t pid;

    if (recorder->in_files->of->had_probes(recorder->in_files))
        proc_numbers_open(&pids, "/proc");
    while ((pid = proc_numbers_next(&pids)) > 0)
        if (pid != getpid())
            sweep_process(recorder, pid);
    recorder->in_files->of->forget_former(recorder->in_files);
}
