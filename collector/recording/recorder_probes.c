/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/recording/recorder_probes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/foreign_file.h"
#include "collector/memory/text_sites.h"
#include "collector/process/process.h"

/* One process a second, unless that is more than one part in LOOK_SHARE of this thread's time. */
#define LOOK_NS 1000000000u
#define LOOK_SHARE 200
/* Between two looks that must agree: a process may be mapping its code, or start another program. */
#define AGAIN_US 1000

struct look {
    struct recorder *recorder;
    pid_t pid;
    struct text_sites code;
    struct stat program; /* what the process runs; zero: not known */
    struct error *err;
};

static void read_program(pid_t pid, struct stat *ret_program)
{
    char link[64];

    process_exe_link(pid, link, sizeof(link));
    if (foreign_file_stat(link, ret_program))
        *ret_program = (struct stat){0};
}

/* ------------------------------------------------------------------------------------ what was found */

/* What is lost with probes that are not for calls. */
static const char *const causes[] = {
    [PROBE_CALLS] = "a process has overwritten probes",
    [PROBE_GOROUTINES] = "a process has overwritten probes on its goroutines",
    [PROBE_SYNC] = "a process has overwritten probes on its synchronisation",
    [PROBE_CLAIMS] = "a process has overwritten a probe on its threads' beginnings",
    [PROBE_GATES] = "a process has overwritten a probe on its changes of code",
    [PROBE_LINKER] = "a process has overwritten a probe on its dynamic linker",
};

static int report_purpose(struct recorder *recorder, enum probe_purpose purpose, struct error *err)
{
    unsigned bit = 1u << purpose;

    if (recorder->probes.reported & bit)
        return 0;
    recorder->probes.reported |= bit;
    return trace_writer_loss(recorder->writer, clock_ns(CLOCK_REALTIME), 0, causes[purpose], err);
}

/* The function is blind, for all processes: nothing tells their calls apart there. */
static int report_function(struct look *look, struct traced_image *image, size_t function)
{
    struct recorder *recorder = look->recorder;
    uint32_t number = image->first_function + (uint32_t)function, id;
    int r;

    if (!image->overwritten)
        image->overwritten = calloc(image->function_count + 1, sizeof(*image->overwritten));
    if (!image->overwritten)
        return error_no_memory(look->err);
    if (image->overwritten[function])
        return 0;
    image->overwritten[function] = true;
    if (streams_function_missed(recorder->streams, number))
        return error_no_memory(look->err);
    r = image_table_function_id(recorder->images, recorder->writer, number, &id, look->err);
    return r ? r
             : trace_writer_blind(recorder->writer, id, recorder->probes.intact_ns, 0,
                                  "a process has overwritten its probe", 0, look->err);
}

static struct traced_image *image_of(const struct recorder *recorder, const struct placed_probes *placed)
{
    struct traced_image *image = image_table_images(recorder->images);

    while (image && (image->file.st_dev != placed->device || image->file.st_ino != placed->inode))
        image = image->next;
    return image;
}

/* The functions of an image that have a probe at the place. */
static int report_place(struct look *look, struct traced_image *image, unsigned long offset)
{
    int r = 0;

    for (size_t i = 0; i < image->site_count && !r; i++)
        if (image->offsets[i] == offset)
            r = report_function(
                look, image, image->plan->probes[(uint32_t)image->cookies[i] - image->first_index].function);
    return r;
}

/* ------------------------------------------------------------------------------------ the kernel's probes */

/* Whether what was found at a place means that the probe is gone. A program's own code is always mapped. */
static bool is_lost(const struct look *look, const struct placed_probes *placed, enum text_site found)
{
    return found == TEXT_SITE_OTHER ||
           (found == TEXT_SITE_UNMAPPED && look->program.st_ino == placed->inode &&
            look->program.st_dev == placed->device);
}

/* Looks once more, with the process's mappings as they are now, and leaves those that are still lost. One
 * that is ending has no program any more, and nothing is lost. */
static void look_again(struct look *look, const struct placed_probes *placed, enum text_site *first,
                       enum text_site *second)
{
    AUTO_TEXT_SITES struct text_sites code = {0};
    bool lives;

    usleep(AGAIN_US);
    lives = !text_sites_open(look->pid, &code);
    text_sites_read(&code, placed->device, placed->inode, placed->offsets, placed->count, second);
    read_program(look->pid, &look->program);
    for (size_t i = 0; i < placed->count; i++)
        if (!lives || !look->program.st_ino || !is_lost(look, placed, second[i]))
            first[i] = TEXT_SITE_PROBED;
}

static int report_lost(struct look *look, const struct placed_probes *placed, const enum text_site *found)
{
    struct traced_image *image = placed->purpose == PROBE_CALLS ? image_of(look->recorder, placed) : NULL;
    bool any = false;
    int r = 0;

    for (size_t i = 0; i < placed->count && !r; i++) {
        if (!is_lost(look, placed, found[i]))
            continue;
        any = true;
        r = image ? report_place(look, image, placed->offsets[i]) : 0;
    }
    return r || !any ? r : report_purpose(look->recorder, placed->purpose, look->err);
}

static int look_at_link(void *context, const struct placed_probes *placed)
{
    struct look *look = context;
    AUTO_FREE enum text_site *found = NULL, *again = NULL;
    bool any = false, is_program = look->program.st_ino == placed->inode;

    if ((placed->pid && placed->pid != look->pid) ||
        (!is_program && !text_sites_have(&look->code, placed->device, placed->inode)))
        return 0;
    found = calloc(placed->count + 1, sizeof(*found));
    again = calloc(placed->count + 1, sizeof(*again));
    if (!found || !again)
        return error_no_memory(look->err);
    text_sites_read(&look->code, placed->device, placed->inode, placed->offsets, placed->count, found);
    for (size_t i = 0; i < placed->count && !any; i++)
        any = is_lost(look, placed, found[i]);
    if (!any)
        return 0;
    look_again(look, placed, found, again);
    return report_lost(look, placed, found);
}

/* ------------------------------------------------------------------------------------ inline probes */

/* Of one image in the process. 1: there are no more. */
static int look_at_jumps(struct look *look, size_t index)
{
    struct recorder *recorder = look->recorder;
    const struct backend *backend = recorder->in_processes;
    AUTO_FREE bool *lost = NULL;
    const struct inline_image *inlined;
    bool any = false;
    int r = backend ? backend->of->overwritten(backend, look->pid, index, &inlined, &lost) : 0;

    if (r)
        return error_no_memory(look->err);
    if (!lost)
        return 1;
    for (struct traced_image *image = image_table_images(recorder->images); lost && image && !r;
         image = image->next)
        for (size_t i = 0; image->inlined == inlined && i < inlined->count && !r; i++) {
            any |= lost[i];
            r = lost[i] ? report_function(look, image, i) : 0;
        }
    return r || !any ? r : report_purpose(recorder, PROBE_CALLS, look->err);
}

/* ------------------------------------------------------------------------------------ when */

static int look_at(struct recorder *recorder, pid_t pid, struct error *err)
{
    struct look look = {.recorder = recorder, .pid = pid, .err = err};
    int r = text_sites_open(pid, &look.code);

    if (r || !look.code.count) { /* none: it has ended */
        text_sites_close(&look.code);
        return r == -ENOMEM ? error_no_memory(err) : 0;
    }
    read_program(pid, &look.program);
    r = recorder->in_files->of->placed(recorder->in_files, look_at_link, &look);
    text_sites_close(&look.code);
    for (size_t i = 0; !r; i++)
        r = look_at_jumps(&look, i);
    return r < 0 ? r : 0;
}

/* The list of all processes, to go through. */
static int begin_round(struct recorder *recorder, struct error *err)
{
    struct probe_watch *watch = &recorder->probes;

    recorder_probes_release(watch);
    watch->round_ns = clock_ns(CLOCK_REALTIME);
    return streams_processes(recorder->streams, &watch->pids, &watch->count) ? error_no_memory(err) : 0;
}

int recorder_check_probes(struct recorder *recorder, uint64_t now, struct error *err)
{
    struct probe_watch *watch = &recorder->probes;
    uint64_t taken;
    int r = 0;

    if (!watch->due_ns) { /* the recording begins: all have just been given their probes */
        watch->intact_ns = clock_ns(CLOCK_REALTIME);
        watch->due_ns = now + LOOK_NS;
    }
    if (now < watch->due_ns)
        return 0;
    if (watch->next == watch->count) {
        if (watch->round_ns)
            watch->intact_ns = watch->round_ns;
        r = begin_round(recorder, err);
    }
    if (!r && watch->next < watch->count)
        r = look_at(recorder, watch->pids[watch->next++], err);
    taken = (clock_ns(CLOCK_MONOTONIC) - now) * LOOK_SHARE;
    watch->due_ns = now + (taken > LOOK_NS ? taken : LOOK_NS);
    return r;
}

int recorder_check_all_probes(struct recorder *recorder, struct error *err)
{
    struct probe_watch *watch = &recorder->probes;
    int r = begin_round(recorder, err);

    while (!r && watch->next < watch->count)
        r = look_at(recorder, watch->pids[watch->next++], err);
    return r;
}

void recorder_probes_release(struct probe_watch *watch)
{
    free(watch->pids);
    watch->pids = NULL;
    watch->next = watch->count = 0;
}
