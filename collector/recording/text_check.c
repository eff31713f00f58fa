/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/recording/text_check.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/foreign_file.h"
#include "collector/memory/text_diff.h"
#include "collector/process/maps.h"
#include "collector/process/proc_numbers.h"
#include "collector/process/process.h"
#include "collector/process/thread_progress.h"
#include "image/arch/disasm.h"

/* A stretch of code that has to be as in the file. */
static struct text_stretch stretch_of(const struct traced_image *image, const struct plan_probe *probe)
{
    const struct image_function *function = &image->functions[probe->function];
    uint64_t before = probe->kind == PLAN_AT_ENTRY ? probe->address - function->address : 0;
    struct instruction instruction;
    size_t size = 0;
    const uint8_t *code = elf_image_code(image->elf, probe->address, &size);

    if (!code || disasm_skim(code, size, probe->address, &instruction) < 0)
        instruction.length = 1;
    return (struct text_stretch){probe->file_offset - before, probe->file_offset + instruction.length};
}

/* Whether the process runs the image as its program. */
static bool runs(const struct traced_image *image, pid_t pid)
{
    struct stat file;
    char link[64];

    process_exe_link(pid, link, sizeof(link));
    return !foreign_file_stat(link, &file) && file.st_dev == image->file.st_dev &&
           file.st_ino == image->file.st_ino;
}

/* Whether the process maps the image, as it did a moment ago, and runs another program. One that has ended
 * meanwhile, or runs another program since, maps it no more. */
static bool only_reads(const struct traced_image *image, pid_t pid)
{
    return !runs(image, pid) && file_is_mapped(pid, image->file.st_dev, image->file.st_ino);
}

/* Sets `differs` of each function of which the process has other code. Code of its own
 * program that it has not mapped differs, too: it has something else there. Returns whether any does, or
 * -ENOMEM, -ESRCH. */
static int check(const struct traced_image *image, pid_t pid, bool *differs)
{
    AUTO_TEXT_DIFF struct text_diff diff = {0};
    int r = text_diff_read(pid, image->file.st_dev, image->file.st_ino, &diff);
    bool whole = !r && diff.mapped.count && runs(image, pid), any = false;

    if (r || (!whole && !diff.different.count))
        return r;
    for (size_t i = 0; i < image->plan->count; i++) {
        const struct plan_probe *probe = &image->plan->probes[i];
        struct text_stretch stretch = stretch_of(image, probe);

        if (!text_stretches_overlap(&diff.different, stretch.start, stretch.end) &&
            (!whole || text_stretches_overlap(&diff.mapped, stretch.start, stretch.end)))
            continue;
        any = differs[probe->function] = true;
    }
    return any;
}

static int mark_all(const struct traced_image *image, bool *differs, bool *ret_any, bool *ret_read_elsewhere)
{
    AUTO_PROC_NUMBERS pids;
    pid_t pid;

    proc_numbers_open(&pids, "/proc");
    while ((pid = proc_numbers_next(&pids)) > 0) {
        int r;

        if (!file_is_mapped(pid, image->file.st_dev, image->file.st_ino))
            continue;
        r = check(image, pid, differs);
        if (r == -ENOMEM)
            return r;
        *ret_any |= r > 0;
        *ret_read_elsewhere |= image->kind == IMAGE_MAIN && only_reads(image, pid);
    }
    return 0;
}

void text_check_settle(const struct traced_image *image, uint64_t most_ns)
{
    uint64_t until = clock_ns(CLOCK_MONOTONIC) + most_ns, now;
    AUTO_PROC_NUMBERS pids;
    pid_t pid;

    proc_numbers_open(&pids, "/proc");
    while ((pid = proc_numbers_next(&pids)) > 0 && (now = clock_ns(CLOCK_MONOTONIC)) < until)
        if (file_is_mapped(pid, image->file.st_dev, image->file.st_ino))
            threads_progress(pid, until - now);
}

static void keep(struct traced_image *image, bool **differs)
{
    free(image->differs);
    image->differs = take_pointer(*differs);
}

int text_check_all(struct traced_image *image, bool *ret_any, bool *ret_read_elsewhere, struct error *err)
{
    AUTO_FREE bool *differs = calloc(image->function_count + 1, sizeof(*differs));

    *ret_any = *ret_read_elsewhere = false;
    if (!differs || mark_all(image, differs, ret_any, ret_read_elsewhere))
        return error_no_memory(err);
    if (*ret_any)
        keep(image, &differs);
    return 0;
}

int text_check_process(struct traced_image *image, pid_t pid, bool mark, bool *ret_any, struct error *err)
{
    AUTO_FREE bool *differs = calloc(image->function_count + 1, sizeof(*differs));
    int r = differs ? check(image, pid, differs) : -ENOMEM;

    *ret_any = r > 0;
    if (*ret_any && mark)
        keep(image, &differs);
    return r == -ENOMEM ? error_no_memory(err) : 0;
}

bool text_check_has_probes(const struct traced_image *image, pid_t pid)
{
    AUTO_TEXT_DIFF struct text_diff diff = {0};
    int r = text_diff_read(pid, image->file.st_dev, image->file.st_ino, &diff);

    if (r)
        return r != -ESRCH;
    for (size_t i = 0; i < image->site_count; i++)
        if (text_stretches_overlap(&diff.breakpoints, image->offsets[i], image->offsets[i] + 1) ||
            text_stretches_overlap(&diff.different, image->offsets[i], image->offsets[i] + 1))
            return true;
    return false;
}
