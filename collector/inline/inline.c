/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/inline/inline_state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "collector/inline/call_filters.h"
#include "collector/inline/stale_patches.h"
#include "collector/process/frozen.h"
#include "collector/process/limits.h"
#include "collector/ptrace/remote.h"

#define FILTERED 2 /* SECCOMP_MODE_FILTER */
#define RING_BYTES (32u << 20)
#define ATTEMPTS \
    3 /* to map the area where there was an address gap a moment ago; to stop a process in the end */

/* ------------------------------------------------------------------------------------ families */

static void family_free(struct family *family)
{
    struct patched_image *image;

    if (!family)
        return;
    agent_reader_free(family->reader);
    agent_area_free(family->area);
    while ((image = family->images)) {
        family->images = image->next;
        inline_free_image(image);
    }
    free(family->open_claims);
    free(family);
}

DEFINE_CLEANUP(cleanup_family, struct family *, family_free)

struct member *inline_find_member(const struct inline_backend *backend, pid_t pid)
{
    struct member *member;

    HASH_FIND(hh, backend->members, &pid, sizeof(pid), member);
    return member;
}

static bool has(const struct backend *backend, pid_t pid)
{
    return inline_find_member(inline_of(backend), pid) != NULL;
}

int inline_add_member(struct inline_backend *backend, struct family *family, pid_t pid, pid_t shares,
                      uint64_t since_ns)
{
    struct member *member = calloc(1, sizeof(*member));

    if (!member)
        return -ENOMEM;
    member->pid = pid;
    member->family = family;
    member->shares = shares;
    member->since_ns = since_ns;
    family->members++;
    HASH_ADD(hh, backend->members, pid, sizeof(member->pid), member);
    if (!shares)
        inline_guard_add(&backend->guard, pid);
    return 0;
}

/* A process has gone, but not its memory, if it was killed while it waited for its child. */
static void leave_memory(struct inline_backend *backend, pid_t pid)
{
    struct member *member = NULL, *next = NULL;

    HASH_ITER (hh, backend->members, member, next) {
        if (member->shares != pid)
            continue;
        member->shares = 0;
        inline_inherit_images(member); /* without memory the guard takes them out */
        inline_guard_add(&backend->guard, member->pid);
    }
}

void inline_remove_member(struct inline_backend *backend, struct member *member)
{
    struct family *family = member->family;

    HASH_DEL(backend->members, member);
    inline_guard_remove(&backend->guard, member->pid);
    leave_memory(backend, member->pid);
    free(member->images);
    free(member);
    if (--family->members)
        return;
    backend->unplaced += agent_reader_take_unplaced(family->reader);
    backend->shared += agent_reader_take_shared(family->reader);
    inline_remove_shared_slots(backend, family);
    pulse_remove(backend->pulse, family->area);
    family_free(family);
}

/* ------------------------------------------------------------------------------------ attaching */

/* What /proc/PID/status says against it. */
static const char *status_refusal(pid_t pid, const char *line)
{
    unsigned real, effective;
    int value;

    if (sscanf(line, "TracerPid: %d", &value) == 1 && value && value != remote_tracer_pid())
        return "a debugger traces it";
    if (sscanf(line, "Seccomp: %d", &value) == 1 && value && (value != FILTERED || !call_filters_allow(pid)))
        return "seccomp restricts its system calls";
    if (sscanf(line, "Uid: %u %u", &real, &effective) == 2 && real != effective)
        return "it runs with another user's rights (set-user-id)";
    if (!strncmp(line, "x86_Thread_features:", 20) && strstr(line, "shstk"))
        return "it has a shadow stack";
    return NULL;
}

const char *inline_lock_refusal(pid_t pid)
{
    return process_has_lock_limit(pid)
               ? "it could lock its memory, which is limited (ulimit -l), and the probes' buffers would be a "
                 "part of it"
               : NULL;
}

const char *inline_memory_refusal(pid_t pid, const struct inline_image *inlined)
{
    if (process_has_address_limit(pid))
        return "its address space is limited (ulimit -v), and the probes' buffers would be a part of it";
    return inlined->may_lock ? inline_lock_refusal(pid) : NULL;
}

int inline_refusal(pid_t pid, const struct inline_image *inlined, const char **ret_reason, struct error *err)
{
    AUTO_FCLOSE FILE *status = NULL;
    char path[64], line[512];

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    status = fopen(path, "re");
    if (!status)
        return error_set(err, -ESRCH, NULL, "cannot read %s", path);
    *ret_reason = NULL;
    while (!*ret_reason && fgets(line, sizeof(line), status))
        *ret_reason = status_refusal(pid, line);
    if (!*ret_reason && process_is_frozen(pid))
        *ret_reason = "its control group is frozen";
    if (!*ret_reason)
        *ret_reason = inline_memory_refusal(pid, inlined);
    return 0;
}

struct family *inline_family_of(const struct inline_backend *backend, pid_t pid)
{
    uint64_t inode = stale_patches_area_of(pid, getpid());

    for (struct member *member = backend->members; inode && member; member = member->hh.next)
        if (member->family->inode == inode)
            return member->family;
    return NULL;
}

static int make_reader(struct inline_backend *backend, const struct backend_target *target,
                       struct family *family)
{
    const struct agent_sink sink = inline_reader_sink(backend);
    const struct agent_expected expected = {
        .first = 1 + target->first_function,
        .functions = target->inlined->count,
        .has_stub = target->inlined->chosen,
        .has_exits = target->inlined->exact,
        .begins = backend->times,
    };

    return agent_reader_new(family->area, &sink, &expected, &family->reader);
}

/* Whether CLOCK_MONOTONIC is the same in the process as here. */
static bool has_our_clock(pid_t pid)
{
    struct stat own, other;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/ns/time", (int)pid);
    return stat("/proc/self/ns/time", &own) || (!stat(path, &other) && own.st_ino == other.st_ino);
}

int inline_set_area(const struct inline_backend *backend, pid_t pid, uint32_t area)
{
    return backend->set_area ? backend->set_area(backend->sink.context, pid, area) : -ENOTSUP;
}

_Static_assert(AREAS_THAT_WAIT * sizeof(uint64_t) == AGENT_FILTERED_BYTES, "as many marks as numbers");

/* Where it has no number of its own by which it could be marked nobody waits. */
static void number_area(struct inline_backend *backend, pid_t pid, struct family *family)
{
    bool numbered = backend->number_area && !backend->number_area(backend->sink.context, &family->number);

    if (!numbered)
        family->number = AREAS_THAT_WAIT + backend->unnumbered++;
    family->area->head->area = family->number;
    numbered &= !inline_set_area(backend, pid, family->number);
    family->waits = numbered && backend->waits && has_our_clock(pid);
}

static int make_area(struct inline_backend *backend, const struct backend_target *target,
                     struct family *family, struct error *err)
{
    struct stat file;
    int r = agent_area_new(backend->ring_bytes, backend->timed, &family->area, err);

    if (!r && process_has_other_cgroups(target->pid))
        r = agent_area_fill(family->area, err);
    if (r)
        return r;
    if (fstat(family->area->head_fd, &file))
        return error_set(err, -errno, NULL, "cannot read the memory file");
    family->inode = file.st_ino;
    r = process_credentials(target->pid, &family->credentials);
    if (r)
        return error_set(err, r, NULL, "cannot read the rights of process %d", (int)target->pid);
    number_area(backend, target->pid, family);
    family->area->head->first_only = backend->first_only;
    family->area->head->tick = agent_tick_word(backend->tick);
    return make_reader(backend, target, family) ? error_no_memory(err) : 0;
}

/* From now on threads of the process wait for the collector where they would lose calls. */
static int let_wait(struct inline_backend *backend, struct family *family, struct error *err)
{
    int r = 0;

    if (!family->waits)
        return 0;
    if (!backend->pulse)
        r = pulse_start(&backend->pulse, err);
    if (r)
        return r;
    return pulse_add(backend->pulse, family->area) ? error_no_memory(err) : 0;
}

/* Patches a process that has no area yet. */
static int begin_family(struct inline_backend *backend, const struct backend_target *target,
                        struct family *family, struct error *err)
{
    struct patched_image *image = NULL;
    int r = make_area(backend, target, family, err);

    if (!r)
        r = inline_make_image(backend, family, target, &image, err);
    if (r)
        return r;
    inline_add_image(family, image);
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        r = attempt ? inline_place_image(backend, target, image, err) : 0;
        if (!r)
            r = live_patch_apply(target->pid, &image->patch, err);
        if (r != -EEXIST)
            break;
    }
    return r;
}

/* The process is patched, and the first of its family, which is freed if it cannot be noted. */
static int add_first_member(struct inline_backend *backend, struct family *family, pid_t pid,
                            struct error *err)
{
    const struct live_patch *patch = &family->images->patch;
    struct member *member;
    int r = let_wait(backend, family, err);

    if (!r && ((backend->by_notes && inline_note_own_ids(backend, pid)) ||
               inline_add_member(backend, family, pid, 0, family->area->head->since)))
        r = error_no_memory(err);
    if (r) {
        pulse_remove(backend->pulse, family->area);
        live_patch_restore(pid, &(struct live_patches){&patch, 1}, NULL);
        family_free(family);
        return r;
    }
    member = inline_find_member(backend, pid);
    if (!inline_note_image(member, family->images))
        return 0;
    live_patch_restore(pid, &(struct live_patches){&patch, 1}, NULL);
    inline_remove_member(backend, member); /* and the family */
    return error_no_memory(err);
}

/* A process that was forked from a patched one a moment ago. */
static int adopt(struct inline_backend *backend, struct family *family, pid_t pid, struct error *err)
{
    if (inline_add_member(backend, family, pid, 0, 0) ||
        inline_inherit_images(inline_find_member(backend, pid)))
        return error_no_memory(err);
    return 0;
}

static int attach(struct backend *base, const struct backend_target *target, struct error *err)
{
    struct inline_backend *backend = inline_of(base);
    struct member *member = inline_find_member(backend, target->pid);
    struct family *parents = member ? NULL : inline_family_of(backend, target->pid); /* forked a moment ago */
    CLEANUP(cleanup_family) struct family *family = NULL;
    int r = parents ? adopt(backend, parents, target->pid, err) : 0;

    if (r)
        return r;
    if (member || parents)
        return inline_join(backend, inline_find_member(backend, target->pid), target, err);
    family = calloc(1, sizeof(*family));
    if (!family)
        return error_no_memory(err);
    r = stale_patches_clean(target->pid, err);
    if (!r)
        r = begin_family(backend, target, family, err);
    if (!r)
        r = add_first_member(backend, take_pointer(family), target->pid, err);
    if (r)
        inline_set_area(backend, target->pid, 0);
    return r;
}

/* ------------------------------------------------------------------------------------ the end */

static int make_quiet(struct inline_backend *backend, struct family *family)
{
    agent_area_quiet(family->area);
    return 0;
}

static int end_family(struct inline_backend *backend, struct family *family)
{
    int r = inline_take_claims(backend, family, true);

    return r ? r : inline_was_read(backend, family, agent_reader_end_all(family->reader));
}

/* A thread that waits for its child by vfork() does not stop: that passes. */
static int restore_member(const struct member *member, struct error *err)
{
    const struct timespec pause = {0, 200 * 1000 * 1000};
    AUTO_FREE const struct live_patch **items = inline_patches_of(member);
    const struct live_patches patches = {items, member->image_count};
    int r;

    if (!items)
        return error_no_memory(err);
    r = live_patch_restore(member->pid, &patches, err);
    for (int attempt = 1; r == -ETIMEDOUT && attempt < ATTEMPTS; attempt++) {
        nanosleep(&pause, NULL);
        r = live_patch_restore(member->pid, &patches, err);
    }
    return r;
}

int inline_detach(struct backend *base, struct error *err)
{
    struct inline_backend *backend = inline_of(base);
    struct member *member = NULL, *next = NULL;
    struct error first = {0};
    int r;

    inline_for_each_family(backend, make_quiet);
    HASH_ITER (hh, backend->members, member, next) {
        struct error why = {0};

        if (member->restored || member->shares || !member->image_count)
            continue;
        member->restored = true;
        r = restore_member(member, &why);
        if (r && r != -ESRCH && !first.code)
            first = why;
    }
    stale_patches_remove_all(getpid()); /* children that were not reported yet */
    if (first.code && err)
        *err = first;
    return first.code;
}

int inline_finish(struct backend *backend)
{
    return inline_for_each_family(inline_of(backend), end_family);
}

/* Of calls that no thread's stream tells of: those of threads that never had a chunk, and of those that share
 * a control block. */
static int losses(struct backend *base, int (*handle)(void *context, uint64_t calls, const char *cause),
                  void *context)
{
    struct inline_backend *backend = inline_of(base);
    struct member *member = NULL, *next = NULL;
    int r;

    HASH_ITER (hh, backend->members, member, next) {
        backend->unplaced += agent_reader_take_unplaced(member->family->reader);
        backend->shared += agent_reader_take_shared(member->family->reader);
    }
    r = backend->unplaced ? handle(context, backend->unplaced, "ring full, thread unknown") : 0;
    return r || !backend->shared ? r
                                 : handle(context, backend->shared, "threads with one thread control block");
}

static void free_backend(struct backend *base)
{
    struct inline_backend *backend = inline_of(base);
    struct member *member = NULL, *next = NULL;
    struct own_id *own = NULL, *after = NULL;

    HASH_ITER (hh, backend->members, member, next)
        inline_remove_member(backend, member);
    pulse_stop(backend->pulse);
    inline_forget_blocks(backend);
    HASH_ITER (hh, backend->own_ids, own, after)
        inline_forget_own_id(backend, own->tid);
    inline_guard_stop(&backend->guard);
    close(backend->agent);
    free(backend);
}

/* ------------------------------------------------------------------------------------ the table */

static const struct backend_operations operations = {
    .name = "inline",
    .refusal = inline_refusal,
    .attach_process = attach,
    .has = has,
    .has_image = inline_has_image,
    .choose = inline_choose,
    .overwritten = inline_overwritten,
    .separate = inline_separate,
    .changed = inline_changed,
    .share_block = inline_share_block,
    .busiest = inline_busiest,
    .ran = inline_ran,
    .sample = inline_sample,
    .note = inline_note,
    .read = inline_read,
    .awaited = inline_awaited,
    .freeze = inline_freeze,
    .detach = inline_detach,
    .finish = inline_finish,
    .losses = losses,
    .free = free_backend,
};

int inline_backend_new(const struct inline_options *options, const struct backend_sink *sink,
                       struct backend **ret_backend, struct error *err)
{
    struct inline_backend *backend = calloc(1, sizeof(*backend));
    int r;

    if (!backend)
        return error_no_memory(err);
    backend->backend.of = &operations;
    remote_filtered_by(call_filters_allow_thread);
    backend->agent = agent_file_new();
    r = backend->agent < 0
            ? error_set(err, backend->agent, NULL, "cannot create memory to share with the target")
            : inline_guard_start(&backend->guard, err);
    if (r) {
        if (backend->agent >= 0)
            close(backend->agent);
        free(backend);
        return r;
    }
    backend->ring_bytes = options->ring_bytes ? options->ring_bytes : RING_BYTES;
    backend->timed = options->timed;
    backend->by_notes = options->by_notes;
    backend->waits = options->waits;
    backend->first_only = options->first_only;
    backend->filtered = options->filtered;
    backend->number_area = options->number_area;
    backend->set_area = options->set_area;
    backend->sink = *sink;
    inline_begin_tick(backend, 1);
    *ret_backend = &backend->backend;
    return 0;
}

int inline_agent(const struct backend *backend)
{
    return inline_of(backend)->agent;
}
