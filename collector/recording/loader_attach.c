/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The loader: the probes of one image go into one process, or into all that run it. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/debug.h"
#include "base/error.h"
#include "base/foreign_file.h"
#include "base/progress.h"
#include "collector/inline/inline.h"
#include "collector/inline/stale_patches.h"
#include "collector/memory/code_mover.h"
#include "collector/plan/rewrite_gates.h"
#include "collector/process/process.h"
#include "collector/process/thread_progress.h"
#include "collector/recording/loader_state.h"
#include "collector/recording/text_check.h"
#include "collector/uprobe/place_lock.h"

/* Processes that one library is probed in at once. Whenever any program maps the library, the kernel goes
 * through all of its probes, and for each through all processes that have it. */
#define LIBRARY_PROCESSES_MAX 8

static uint64_t key_of(uint32_t number, pid_t pid)
{
    return (uint64_t)number << 32 | (uint32_t)pid;
}

bool loader_has_attachment(const struct loader *loader, uint32_t number, pid_t pid)
{
    uint64_t key = key_of(number, pid);
    struct attachment *found;

    HASH_FIND(hh, loader->attachments, &key, sizeof(key), found);
    return found;
}

bool loader_is_attached(const struct loader *loader, const struct traced_image *image, pid_t pid)
{
    return image->everywhere || loader_has_attachment(loader, image->number, pid);
}

int loader_add_attachment(struct loader *loader, uint32_t number, struct traced_image *image, pid_t pid,
                          struct error *err)
{
    struct attachment *attachment = calloc(1, sizeof(*attachment));

    if (!attachment)
        return error_no_memory(err);
    attachment->key = key_of(number, pid);
    attachment->image = image;
    attachment->pid = pid;
    HASH_ADD(hh, loader->attachments, key, sizeof(attachment->key), attachment);
    return 0;
}

static unsigned processes_probed(const struct loader *loader, const struct traced_image *image)
{
    unsigned count = 0;

    for (const struct attachment *attachment = loader->attachments; attachment;
         attachment = attachment->hh.next)
        count += attachment->image == image;
    return count;
}

bool loader_has_inline(const struct loader *loader, pid_t pid)
{
    return backend_has(loader->options.in_processes, pid);
}

/* Whether the process has inline probes of this image. */
static bool loader_has_inline_in(const struct loader *loader, const struct traced_image *image, pid_t pid)
{
    const struct backend *backend = loader->options.in_processes;

    return backend && image->inlined && backend->of->has_image(backend, pid, image->inlined);
}

/* Before an image's uprobes go into all processes that run it, and before the code of these is compared with
 * the file: none of them may be patched by another recorder. If one is, an image whose returns are inferred
 * is probed in one process at a time, as libraries are. */
static int make_way(struct loader *loader, struct traced_image *image, struct error *err)
{
    struct error why = {0};
    int r;

    if (image->everywhere || image->shared)
        return 0;
    r = stale_patches_clean_all(image->file.st_dev, image->file.st_ino, &why);
    if (r == -EBUSY && image->returns != TRACE_RETURNS_PROBED) {
        image->shared = true;
        return 0;
    }
    if (r && err)
        *err = why;
    return r;
}

/* How long to wait for threads that may be changing code already when the gates are placed. */
#define UNDER_WAY_NS 2000000000u

/* Watches whether the image's code is about to be changed, unless its file tells where. Before its other
 * probes are there. */
static int attach_gates(struct loader *loader, const struct traced_image *image, pid_t pid, bool *ret_any,
                        struct error *err)
{
    struct rewrite_gates gates;
    bool refused[REWRITE_GATES_MAX] = {0};
    struct probe_sites sites = {
        .file = elf_image_fd(image->elf),
        .name = image->path,
        .offsets = gates.offsets,
        .cookies = gates.cookies,
        .part = PROBE_IMAGE_PART(image->number),
        .refused = refused,
    };

    rewrite_gates_find(image->functions, image->function_count, &gates);
    sites.count = image->plan->changes ? 0 : gates.count;
    *ret_any = sites.count;
    return loader->options.source->of->watch_rewrites(loader->options.source, &sites, pid, err);
}

/* Looks, once for each image that all processes get, whether those that map it have the file's code. One that
 * a process maps without running it is probed in one process at a time, as libraries are: the other may be
 * about to read the code and translate it; so is one whose processes may move their code. Who is about to
 * change the code is held from here on, so it is looked at again then. */
static int compare_all(struct loader *loader, struct traced_image *image, struct error *err)
{
    bool any, read_elsewhere, gated;
    int r;

    if (image->everywhere || image->shared || image->compared)
        return 0;
    image->compared = true;
    r = text_check_all(image, &any, &read_elsewhere, err);
    if (!r && (read_elsewhere || code_mover_can_move(image->elf)))
        r = image_table_share(loader->options.images, image, err);
    if (!r && !image->shared)
        r = attach_gates(loader, image, 0, &gated, err);
    if (r == -ENOTSUP && image->inlined) /* by ptrace: nothing would hold it before it writes over a probe */
        return image_table_leave_inline(loader->options.images, image, err ? err->message : "", err);
    if (!r && !image->shared && gated) {
        text_check_settle(image, UNDER_WAY_NS);
        r = text_check_all(image, &any, &read_elsewhere, err);
    }
    return r || !any ? r : image_table_leave_differing(loader->options.images, image, err);
}

/* The same for a process that gets an image's probes separately. What differs in the first one has no probe
 * in any; another one that differs has none of the image's. One that we have patched was compared for that.
 */
static int compare_one(struct loader *loader, struct traced_image *image, pid_t pid, bool *ret_differs,
                       struct error *err)
{
    bool first = !image->compared, any = false;
    int r = loader_has_inline_in(loader, image, pid) ? 0 : text_check_process(image, pid, first, &any, err);

    image->compared = true;
    *ret_differs = any && !first;
    return r || !any || !first ? r : image_table_leave_differing(loader->options.images, image, err);
}

/* Attaches an image that other processes map, too, to this one. */
static int attach_shared(struct loader *loader, struct traced_image *image, pid_t pid, struct error *err)
{
    bool differs, gated;
    int r;

    if (image->site_count && (processes_probed(loader, image) >= LIBRARY_PROCESSES_MAX ||
                              loader_closing(loader) > LOADER_CLOSING_MAX)) {
        loader->skipped = true;
        return 0;
    }
    r = attach_gates(loader, image, pid, &gated, err);
    if (r)
        return r;
    if (gated)
        threads_progress(pid, UNDER_WAY_NS);
    r = compare_one(loader, image, pid, &differs, err);
    loader->differing |= differs;
    if (r || differs)
        return r;
    if (loader->options.budget)
        r = budget_enrol(loader->options.budget, image, err);
    if (!r)
        r = image_table_attach(loader->options.in_files, image, pid, err);
    return r ? r : loader_add_attachment(loader, image->number, image, pid, err);
}

/* Another recorder patches a process within a moment; one that places uprobes may take seconds. */
#define PATCHING_MS 10000
#define PLACING_MS 1000

int loader_attach(struct loader *loader, struct traced_image *image, pid_t pid, bool running,
                  struct error *err)
{
    AUTO_CLOSE int lock = PLACE_LOCK_NONE;
    int r;

    if ((image->kind == IMAGE_MAIN || image->inlined) && !image->everywhere &&
        place_lock(image->file.st_dev, image->file.st_ino, false, PATCHING_MS, &lock))
        return error_say(err, -EBUSY, "cannot probe %s: another recording is putting inline probes into it",
                         image->path);
    r = make_way(loader, image, err);
    if (!r)
        r = compare_all(loader, image, err);
    if (!r && loader->options.trigger)
        r = trigger_enrol(loader->options.trigger, image, err);
    if (r)
        return r;
    if (image->shared)
        return attach_shared(loader, image, pid, err);
    return loader->options.budget ? budget_attach(loader->options.budget, image, running, err)
                                  : image_table_attach(loader->options.in_files, image, 0, err);
}

/* What is against it in the process, whatever its other images are; NULL: nothing. -ESRCH. */
static int find_refusal(const struct loader *loader, const struct traced_image *image, pid_t pid,
                        const char **ret_reason, struct error *err)
{
    const struct traced_image *program;
    struct stat file;
    char link[64];
    int r = loader->options.in_processes->of->refusal(pid, image->inlined, ret_reason, err);

    if (r || *ret_reason || image->kind == IMAGE_MAIN)
        return r;
    process_exe_link(pid, link, sizeof(link));
    program = foreign_file_stat(link, &file) ? NULL : image_table_known(loader->options.images, &file);
    if (!program)
        *ret_reason = "its program is not known";
    else if (program->against_inline)
        *ret_reason = program->against_inline;
    else if (program->may_lock)
        *ret_reason = inline_lock_refusal(pid);
    return 0;
}

/* Where the image is in the process. -ENOENT. */
static int find_place(const struct traced_image *image, pid_t pid, const struct code_mapping *mapping,
                      struct backend_target *target)
{
    uint64_t start, offset;
    int r = 0;

    if (mapping) {
        start = mapping->start;
        offset = mapping->offset;
        target->device = mapping->device;
        target->inode = mapping->inode;
        target->delta = start - offset;
    } else {
        r = process_exe_mapping(pid, &start, &offset);
    }
    return r ? r : elf_image_load_bias(image->elf, start, offset, &target->load_bias);
}

/* The source has to know before the process makes its first call with them: a child by vfork works on its parent's
 * slots, and it has to be told whose calls these are. */
static void announce_inline(const struct loader *loader, pid_t pid)
{
    struct life_cycle_source *source = loader->options.source;
    struct process_state state;

    if (!source->of->process(source, pid, &state) || state.flags & PROCESS_INLINE)
        return;
    state.flags |= PROCESS_INLINE;
    source->of->set_process(source, pid, &state);
}

/* Why the image cannot be patched in a process, or an error: -ESRCH, -ENOMEM. Patches it if it can. */
static int patch(struct loader *loader, const struct traced_image *image, pid_t pid,
                 const struct code_mapping *mapping, bool *ret_placed, struct error *ret_why,
                 struct error *err)
{
    AUTO_FREE bool *out = calloc(image->function_count + 1, sizeof(*out));
    struct backend_target target = {
        .pid = pid,
        .inlined = image->inlined,
        .functions = image->functions,
        .first_function = image->first_function,
        .out = out,
    };
    const char *reason;
    int r;

    if (!out)
        return error_no_memory(err);
    r = find_refusal(loader, image, pid, &reason, err);
    if (r)
        return r;
    if (reason)
        return error_say(ret_why, -ENOTSUP, "%s", reason), 0;
    if (find_place(image, pid, mapping, &target))
        return error_say(ret_why, -ENOENT, "its code is not mapped"), 0;
    if (loader->options.budget)
        budget_inline_excluded(loader->options.budget, image, out);
    announce_inline(loader, pid); /* a process that is not traced any more has ended */
    r = loader->options.in_processes->of->attach_process(loader->options.in_processes, &target, ret_why);
    *ret_placed = !r;
    if (r != -ESRCH && r != -ENOMEM)
        return 0;
    if (err)
        *err = *ret_why;
    return r;
}

/* Whether any process has uprobes of the image. */
static bool has_uprobes(const struct loader *loader, const struct traced_image *image)
{
    return image->everywhere || processes_probed(loader, image);
}

int loader_attach_inline(struct loader *loader, struct traced_image *image, pid_t pid,
                         const struct code_mapping *mapping, bool *ret_placed, struct error *err)
{
    AUTO_CLOSE int lock = PLACE_LOCK_NONE;
    struct error why = {0};
    int r = 0;

    *ret_placed = false;
    if (!image->inlined || (!mapping && loader_has_inline_in(loader, image, pid)))
        return 0;
    if (place_lock(image->file.st_dev, image->file.st_ino, true, PLACING_MS, &lock))
        error_say(&why, -EBUSY, "another recording is placing probes in the program");
    else if (!(r = make_way(loader, image, err)))
        r = compare_all(loader, image, err);
    if (r || !image->inlined || image->left_ns)
        return r;
    progress("placing probes", PROGRESS_UNKNOWN);
    if (!why.code)
        r = patch(loader, image, pid, mapping, ret_placed, &why, err);
    image->patched |= !r && !why.code;
    debug_log("process %d: inline probes in %s: %s", (int)pid, image->path,
              why.code      ? why.message
              : *ret_placed ? "placed"
                            : "there already");
    if (r || !why.code || why.code == -ESTALE) /* it was unloaded meanwhile */
        return r;
    if (!image->patched && !has_uprobes(loader, image))
        return image_table_leave_inline(loader->options.images, image, why.message, err);
    loader->unpatched = true;
    return 0;
}
