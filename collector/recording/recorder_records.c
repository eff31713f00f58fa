/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/recording/recorder_records.h"

#include <errno.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "collector/recording/recorder_backends.h"
#include "collector/recording/recorder_flight.h"
#include "collector/recording/recorder_rewrites.h"
#include "collector/recording/recorder_rights.h"

/* `*ret_stopped`: see life_cycle_source.h. */
static bool let_go(struct recorder *recorder, const struct wire_header *header, pid_t pid, bool *ret_stopped)
{
    struct life_cycle_source *source = recorder->source;
    bool in_time = false;

    *ret_stopped = false;
    if (header->flags & WIRE_HELD)
        in_time = source->of->release(source, pid);
    if (header->flags & WIRE_WAITING)
        in_time = source->of->end_wait(source, (pid_t)header->tid, ret_stopped);
    return in_time;
}

bool recorder_let_go(struct recorder *recorder, const struct wire_header *header, pid_t pid)
{
    bool stopped;

    return let_go(recorder, header, pid, &stopped);
}

/* A stretch that was not seen, of unknown length. */
static int blind_stretch(struct recorder *recorder, const char *cause)
{
    return trace_writer_loss(recorder->writer, clock_ns(CLOCK_REALTIME), 0, cause, &recorder->failure);
}

int recorder_note_skipped(struct recorder *recorder, struct error *err)
{
    uint64_t now = clock_ns(CLOCK_REALTIME);
    int r = loader_store_unopened(recorder->loader, recorder->writer, err);

    if (!r && loader_consume_unpatched(recorder->loader))
        r = trace_writer_loss(recorder->writer, now, 0, "a process could not be given inline probes", err);
    if (!r && loader_consume_skipped(recorder->loader))
        r = trace_writer_loss(recorder->writer, now, 0, "libraries not probed: too many processes at once",
                              err);
    if (!r && loader_consume_differing(recorder->loader))
        r = trace_writer_loss(recorder->writer, now, 0,
                              "a library not probed: its code in memory is not that of the file", err);
    return r;
}

/* A process was looked at, with the result `code`: the loss that it means, if it means one. */
static int looked_at(struct recorder *recorder, pid_t pid, int code, const struct error *why,
                     const char *cause)
{
    int r = recorder_pass_over(recorder, pid, code, why, &recorder->failure);

    if (!r)
        r = recorder_note_skipped(recorder, &recorder->failure);
    return r || !cause ? r : blind_stretch(recorder, cause);
}

static int to_streams(struct recorder *recorder, const void *record, size_t size)
{
    return streams_handle(recorder->streams, record, size);
}

/* ------------------------------------------------------------------------------------ processes */

/* Brings probes to a child that runs its parent's program. */
static int bring_to_child(struct recorder *recorder, const struct wire_fork *record)
{
    pid_t child = (pid_t)record->tgid;
    bool updates = false, in_time;
    struct error why = {0};
    int r = recorder->closing
                ? 0
                : loader_fork(recorder->loader, (pid_t)record->parent_tgid, child, &updates, &why);

    in_time = recorder_let_go(recorder, &record->header, child);
    return looked_at(recorder, child, r, &why,
                     updates && !in_time ? "a forked child ran before its probes" : NULL);
}

/* Two threads run on one thread control block. The new one stands still, or it may have run on slots that the
 * other one works on. */
static int share_block(struct recorder *recorder, const struct wire_fork *record)
{
    int r = recorder->in_processes->of->share_block(recorder->in_processes, record);
    bool in_time = recorder_let_go(recorder, &record->header, (pid_t)record->tgid);

    if (r == -ENOMEM)
        return error_no_memory(&recorder->failure);
    return r > 0 || (!r && in_time) || recorder->closing
               ? 0
               : blind_stretch(recorder, "threads ran on one thread control block");
}

static int handle_fork(struct recorder *recorder, const void *data, size_t size)
{
    const struct wire_fork *record = data;
    bool is_child = !streams_knows_process(recorder->streams, (pid_t)record->tgid);
    int r = recorder_backends_note(recorder, record);

    if (!r && recorder->in_processes && record->shares & FORK_SHARES_BLOCK)
        r = share_block(recorder, record);
    if (r || record->shares & FORK_IS_LEFT)
        return r;
    r = to_streams(recorder, record, size);
    return r || !is_child ? r : bring_to_child(recorder, record);
}

/* Whether a process that was not held has run without probes: its program was not known before, or has probes
 * that each process gets separately, or it has ended before it could be looked at. */
static bool began_unseen(const struct recorder *recorder, const struct traced_image *newest_before,
                         const struct traced_image *image, bool gone)
{
    const struct traced_image *newest = image_table_images(recorder->images);

    return gone || image->inlined || image->shared || (newest != newest_before && image_is_traced(newest));
}

/* A process has a new program. Whatever happens here, a held one must be let go. */
static int handle_exec(struct recorder *recorder, const void *data, size_t size)
{
    const struct wire_exec *record = data;
    const struct traced_image *newest = image_table_images(recorder->images), *image = NULL;
    pid_t pid = (pid_t)record->header.tid;
    bool held = record->header.flags & WIRE_HELD, unseen = false;
    struct error why = {0};
    int r = recorder_backends_note(recorder, record);

    if (!r)
        r = to_streams(recorder, record, size);
    if (r)
        return r;
    if (record->old_tid != record->header.tid)
        loader_replace_thread(recorder->loader, pid);
    if (!recorder->closing)
        r = loader_program(recorder->loader, pid, true, &image, &why);
    if (!r && !recorder->closing && recorder->watch && held && image->go)
        r = go_watch_seize(recorder->watch, pid, &why);
    held = recorder_let_go(recorder, &record->header, pid) || (held && recorder_is_gone(r));
    if (!held && !recorder->closing && (!r || recorder_is_gone(r)))
        unseen = began_unseen(recorder, newest, image, recorder_is_gone(r));
    return unseen ? blind_stretch(recorder, "a program began before its probes")
                  : looked_at(recorder, pid, r, &why, NULL);
}

/* Recording it would have taken its rights from it. */
static int leave_to_its_rights(struct recorder *recorder, const struct wire_exit *record)
{
    struct error why;

    error_say(&why, -EPERM,
              "%.*s runs with the rights of its file (set-user-id, capabilities), which a tracer of "
              "an ordinary user would take from it",
              (int)sizeof(record->comm), record->comm);
    return recorder_pass_over(recorder, (pid_t)record->tgid, -EPERM, &why, &recorder->failure);
}

static int handle_exit(struct recorder *recorder, const void *data, size_t size)
{
    const struct wire_exit *record = data;
    pid_t pid = (pid_t)record->tgid;
    bool ends = record->header.flags & WIRE_LAST_THREAD && streams_knows_process(recorder->streams, pid);
    int r = recorder_backends_note(recorder, record);

    if (!r)
        r = to_streams(recorder, record, size);
    if (!ends)
        return r;
    if (recorder->options.storage.flight)
        recorder_flight_ended(recorder, pid, (int)record->exit_code);
    loader_end(recorder->loader, pid);
    return r || !(record->header.flags & WIRE_UNFOLLOWED) ? r : leave_to_its_rights(recorder, record);
}

/* ------------------------------------------------------------------------------------ their code */

static int handle_rights(struct recorder *recorder, const void *record, size_t size)
{
    return recorder_handle_rights(recorder, record);
}

/* A library may have been loaded, called and unloaded again before it could be looked at: its uprobes would have
 * been there since it was loaded first, its inline probes are not. */
static const char *library_loss(const struct recorder *recorder, bool updates)
{
    const struct traced_image *image = image_table_images(recorder->images);

    while (image && !(image->kind == IMAGE_LIBRARY && image->patched))
        image = image->next;
    if (updates)
        return "a library ran before its probes";
    return image ? "a library may have run before its probes" : NULL;
}

static int handle_libraries(struct recorder *recorder, const void *data, size_t size)
{
    const struct wire_libraries *record = data;
    pid_t pid = (pid_t)record->tgid;
    bool in_time, stopped;
    struct error why = {0};
    struct loader_updates updates = {0};
    int r = recorder->closing ? 0 : loader_libraries(recorder->loader, pid, record->starting, &updates, &why);

    /* A thread that was stopped for one image's inline probes has not waited for others. */
    in_time = let_go(recorder, &record->header, pid, &stopped) &&
              (!stopped || (updates.images == updates.stopped_for && updates.images <= 1));
    return looked_at(recorder, pid, r, &why, in_time ? NULL : library_loss(recorder, updates.images != 0));
}

static int handle_rewrite(struct recorder *recorder, const void *record, size_t size)
{
    return recorder_note_rewrite(recorder, record, &recorder->failure);
}

/* Calls of a function are not recorded from here on. */
static int handle_over_budget(struct recorder *recorder, const void *data, size_t size)
{
    const struct wire_over_budget *record = data;
    uint32_t function = image_table_probed_function(recorder->images, record->function);

    if (function == NO_FUNCTION)
        return error_say(&recorder->failure, -ENOENT, "a record names an unknown probe");
    if (streams_function_missed(recorder->streams, function))
        return error_no_memory(&recorder->failure);
    return recorder->budget
               ? budget_note_over_budget(recorder->budget, function, record->header.ns, &recorder->failure)
               : 0;
}

/* Concerns the backends alone. */
static int note_only(struct recorder *recorder, const void *record, size_t size)
{
    return recorder_backends_note(recorder, record);
}

/* ------------------------------------------------------------------------------------ all records */

int recorder_handle(void *context, const void *record, size_t size)
{
    static const struct {
        size_t size; /* the least */
        int (*handle)(struct recorder *recorder, const void *record, size_t size);
    } kinds[] = {
        [WIRE_FORK] = {sizeof(struct wire_fork), handle_fork},
        [WIRE_EXEC] = {sizeof(struct wire_exec), handle_exec},
        [WIRE_EXIT] = {sizeof(struct wire_exit), handle_exit},
        [WIRE_LIBRARIES] = {sizeof(struct wire_libraries), handle_libraries},
        [WIRE_REWRITE] = {sizeof(struct wire_rewrite), handle_rewrite},
        [WIRE_OVER_BUDGET] = {sizeof(struct wire_over_budget), handle_over_budget},
        [WIRE_INLINE] = {sizeof(struct wire_inline), note_only},
        [WIRE_SLOTS_SHARED] = {sizeof(struct wire_slots), note_only},
        [WIRE_SLOTS_BACK] = {sizeof(struct wire_inline), note_only},
        [WIRE_CLAIM] = {sizeof(struct wire_claim), note_only},
        [WIRE_RIGHTS] = {sizeof(struct wire_rights), handle_rights},
    };
    const struct wire_header *header = record;
    struct recorder *recorder = context;

    if (size >= sizeof(*header) && header->kind < ARRAY_SIZE(kinds) && kinds[header->kind].handle &&
        size >= kinds[header->kind].size)
        return kinds[header->kind].handle(recorder, record, size);
    return to_streams(recorder, record, size);
}
