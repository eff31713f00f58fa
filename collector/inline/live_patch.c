/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/inline/live_patch.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/debug.h"
#include "base/error.h"
#include "collector/arch/thread_registers.h"
#include "collector/inline/live_area.h"
#include "collector/inline/stale_patches.h"
#include "collector/inline/text_pages.h"
#include "collector/process/pid_namespace.h"
#include "collector/ptrace/remote.h"

#define PAGE 4096u

/* ------------------------------------------------------------------------------------ the code */

/* The first patch that ends behind `address`. */
static size_t patch_behind(const struct live_patch *patch, uint64_t address)
{
    size_t low = 0, high = patch->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (patch->patches[middle].address + DISPLACE_JUMP <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Whether each patch lies in a mapping of the file, at its place. Both are in ascending order. */
static bool lies_in(const struct live_patch *patch, const struct code_mapping *mappings, size_t count)
{
    const struct live_file *file = &patch->file;
    size_t at = 0;

    for (size_t i = 0; i < patch->count; i++) {
        uint64_t address = patch->patches[i].address;

        while (at < count &&
               (mappings[at].end < address + DISPLACE_JUMP || mappings[at].device != file->device ||
                mappings[at].inode != file->inode || mappings[at].start - mappings[at].offset != file->delta))
            at++;
        if (at == count || mappings[at].start > address)
            return false;
    }
    return true;
}

bool live_patch_is_there(pid_t pid, const struct live_patch *patch)
{
    struct code_mapping *mappings = NULL;
    size_t count = 0;
    bool there;

    if (!patch->file.inode)
        return true;
    if (process_code_mappings(pid, &mappings, &count, NULL))
        return false;
    there = lies_in(patch, mappings, count);
    code_mappings_free(mappings, count);
    return there;
}

/* -ESTALE. */
static int check_place(const struct remote *remote, const struct live_patch *patch, struct error *err)
{
    return live_patch_is_there(remote_pid(remote), patch)
               ? 0
               : error_say(err, -ESTALE, "the library is not mapped any more");
}

/* Where a thread continues that stands in bytes that are about to change: where it is if it does not. 0: it
 * stands where no instruction begins. */
static uint64_t way_out(const struct remote *remote, size_t thread, const struct live_patch *patch)
{
    uint64_t pc = registers_pc(remote_registers(remote, thread));
    size_t index = patch_behind(patch, pc);
    const struct inline_patch *at = &patch->patches[index];

    if (index == patch->count || pc <= at->address)
        return pc;
    for (size_t i = 0; i < at->count; i++)
        if (at->address + at->starts[i] == pc)
            return at->stub + at->moved[i];
    return 0;
}

static int check_threads(const struct remote *remote, const struct live_patch *patch, struct error *err)
{
    for (size_t i = 0; i < remote_thread_count(remote); i++)
        if (!way_out(remote, i, patch))
            return error_say(err, -EBUSY, "thread %d stands inside an instruction that is to be patched",
                             (int)remote_tid(remote, i));
    return 0;
}

/* Moves all threads out of bytes that are about to change; none if one of them cannot be moved. Before the
 * bytes do: what they execute in the stub is what stands here until then. */
static int move_threads(struct remote *remote, const struct live_patch *patch, struct error *err)
{
    int r = check_threads(remote, patch, err);

    for (size_t i = 0; !r && i < remote_thread_count(remote); i++) {
        uint64_t pc = way_out(remote, i, patch);

        if (pc != registers_pc(remote_registers(remote, i)) && remote_set_pc(remote, i, pc))
            r = error_say(err, -ESRCH, "thread %d cannot be moved", (int)remote_tid(remote, i));
    }
    return r;
}

/* The target's code, one page after the other. No place lies in two (DISPLACE_TWO_PAGES), and the kernel
 * copies a page as a whole, whatever happens to this process: each place is always as it was, or as wanted.
 */
struct window {
    struct remote *remote;
    uint64_t base; /* 0: none yet */
    bool changed;
    uint8_t page[PAGE];
};

static int flush_window(struct window *window)
{
    int r = window->base && window->changed
                ? remote_write(window->remote, window->base, window->page, sizeof(window->page))
                : 0;

    window->base = 0;
    window->changed = false;
    return r;
}

/* The bytes of a place, in the window. */
static uint8_t *show(struct window *window, uint64_t address, int *ret_code)
{
    uint64_t base = address & ~(uint64_t)(PAGE - 1);

    *ret_code = 0;
    if (base != window->base) {
        *ret_code = flush_window(window);
        if (!*ret_code)
            *ret_code = remote_read(window->remote, base, window->page, sizeof(window->page));
        window->base = *ret_code ? 0 : base;
    }
    return window->page + (address - base);
}

/* Whether every place has what the file has, or, where the patch varies, the patch. -EBUSY, -EIO. */
static int check_code(struct remote *remote, const struct live_patch *patch, struct error *err)
{
    struct window window = {.remote = remote};
    int r;

    for (size_t i = 0; i < patch->count; i++) {
        const struct inline_patch *at = &patch->patches[i];
        const uint8_t *place = show(&window, at->address, &r);

        if (r)
            return error_say(err, r, "its code cannot be read");
        if (memcmp(place, at->old, sizeof(at->old)) &&
            (!patch->varies || !patch->varies[i] || memcmp(place, at->new, sizeof(at->new))))
            return error_say(err, -EBUSY, "its code at 0x%llx is not what the file has (a breakpoint?)",
                             (unsigned long long)at->address);
    }
    return 0;
}

/* Writes new where old is, or (`restore`) the other way round; where the patch varies, nothing if that has
 * been done, and new never where it is to be out. Returns how many places had something else, or -EIO. */
static int change_code(struct remote *remote, const struct live_patch *patch, bool restore)
{
    struct window window = {.remote = remote};
    int others = 0, r = 0;

    for (size_t i = 0; !r && i < patch->count; i++) {
        const struct inline_patch *at = &patch->patches[i];
        const uint8_t *from = restore ? at->new : at->old, *to = restore ? at->old : at->new;
        uint8_t *place;

        if (!restore && patch->out && patch->out[i])
            continue;
        place = show(&window, at->address, &r);
        if (!r && !memcmp(place, from, DISPLACE_JUMP)) {
            memcpy(place, to, DISPLACE_JUMP);
            window.changed = true;
        } else if (!r && (!patch->varies || !patch->varies[i] || memcmp(place, to, DISPLACE_JUMP))) {
            others++;
        }
    }
    if (!r)
        r = flush_window(&window);
    return r ? r : others;
}

/* ------------------------------------------------------------------------------------ the threads' slots */

/* A program gets its patches before its first instruction, and runs none of them before its threads have
 * control blocks; the functions of a library may run at once. */
static int check_blocks(const struct remote *remote, const struct live_patch *patch, struct error *err)
{
    for (size_t i = 0; patch->file.inode && i < remote_thread_count(remote); i++)
        if (!registers_thread_block(remote_registers(remote, i)))
            return error_say(err, -EBUSY, "thread %d has no thread control block yet",
                             (int)remote_tid(remote, i));
    return 0;
}

/* Empties the slots of all threads; an earlier recording may have left something there. A thread that has no
 * control block yet will get one with zeros. */
static int clear_slots(struct remote *remote, struct error *err)
{
    static const uint8_t empty[AGENT_SLOTS_END - AGENT_CURSOR];

    for (size_t i = 0; i < remote_thread_count(remote); i++) {
        uint64_t block = registers_thread_block(remote_registers(remote, i));
        uint32_t tid = 0;

        if (!block)
            continue;
        if (remote_read(remote, block + AGENT_TID, &tid, sizeof(tid)) ||
            (pid_t)tid != pid_namespace_innermost(remote_tid(remote, i)) ||
            remote_write(remote, block + AGENT_CURSOR, empty, sizeof(empty)))
            return error_say(err, -EBUSY, "thread %d has no thread control block of glibc's",
                             (int)remote_tid(remote, i));
    }
    return 0;
}

/* ------------------------------------------------------------------------------------ the whole */

struct application {
    const struct live_patch *patch;
    bool joins;
};

/* Whether the process may be patched as it stands. */
static int check_all(struct remote *remote, const struct live_patch *patch, struct error *err)
{
    int r = stale_patches_check_vfork_children(remote, err);

    if (!r)
        r = check_place(remote, patch, err);
    if (!r)
        r = check_code(remote, patch, err);
    if (!r)
        r = check_threads(remote, patch, err);
    return r ? r : check_blocks(remote, patch, err);
}

/* A process that has executed another program since has the area no more. -ESTALE. */
static int check_rings(const struct remote *remote, const struct live_patch *patch, struct error *err)
{
    struct stale_area rings;
    bool there = stale_patches_find_rings(remote_pid(remote), patch->area->data_file, &rings) &&
                 rings.apart_start == patch->area->head->chunks - AGENT_COUNTS_BYTES;

    return there ? 0 : error_say(err, -ESTALE, "the probes' buffers are not mapped any more");
}

static int apply(void *context, struct remote *remote, struct error *err)
{
    const struct application *application = context;
    const struct live_patch *patch = application->patch;
    int r = check_all(remote, patch, err);

    if (!r && application->joins)
        r = check_rings(remote, patch, err);
    if (!r && !application->joins)
        r = clear_slots(remote, err);
    if (!r)
        r = live_area_bring(remote, patch, application->joins, err);
    if (!r)
        r = move_threads(remote, patch, err);
    if (!r && change_code(remote, patch, false)) {
        change_code(remote, patch, true);
        r = error_say(err, -EIO, "its code cannot be written");
    }
    if (!application->joins)
        patch->area->head->since = clock_ns(CLOCK_MONOTONIC);
    return r;
}

int live_patch_apply(pid_t pid, const struct live_patch *patch, struct error *err)
{
    struct application application = {.patch = patch};

    debug_log("process %d: %zu functions are patched", (int)pid, patch->count);
    return remote_session(pid, apply, &application, err);
}

int live_patch_join(pid_t pid, const struct live_patch *patch, struct error *err)
{
    struct application application = {.patch = patch, .joins = true};

    debug_log("process %d: %zu functions of a library are patched", (int)pid, patch->count);
    return remote_session(pid, apply, &application, err);
}

/* Which pages of a mapping have a patch, or a part of one. NULL: no memory. The caller frees it. */
static bool *pages_of(const struct live_patch *patch, const struct code_mapping *mapping)
{
    bool *has = calloc((mapping->end - mapping->start) / PAGE + 1, sizeof(*has));

    for (size_t i = 0; has && i < patch->count; i++) {
        uint64_t first = patch->patches[i].address, last = first + DISPLACE_JUMP - 1;

        if (first >= mapping->start && first < mapping->end)
            has[(first - mapping->start) / PAGE] = true;
        if (last >= mapping->start && last < mapping->end)
            has[(last - mapping->start) / PAGE] = true;
    }
    return has;
}

/* The pages of these patches, which were taken out, are the file's again if they have no others. */
static void give_pages_back(struct remote *remote, const struct live_patch *patch)
{
    struct code_mapping *mappings = NULL;
    size_t count = 0;
    uint64_t first, end;

    if (!patch->count || process_code_mappings(remote_pid(remote), &mappings, &count, NULL))
        return;
    first = patch->patches[0].address / PAGE * PAGE;
    end = (patch->patches[patch->count - 1].address + DISPLACE_JUMP + PAGE - 1) / PAGE * PAGE;
    for (size_t i = 0; i < count; i++) {
        struct code_mapping part = mappings[i];
        AUTO_FREE bool *changed = NULL;

        if (part.end <= first || part.start >= end)
            continue;
        if (part.start < first) {
            part.offset += first - part.start;
            part.start = first;
        }
        part.end = part.end < end ? part.end : end;
        changed = pages_of(patch, &part);
        text_pages_give_back(remote, &part, changed);
    }
    code_mappings_free(mappings, count);
}

struct change {
    const struct live_patch *some;
    bool in;
};

static int change(void *context, struct remote *remote, struct error *err)
{
    const struct change *change = context;
    int r = 0;

    if (stale_patches_on_parents_memory(remote))
        return 0; /* its parent's code is changed with the parent */
    r = stale_patches_check_vfork_children(remote, err);
    if (!r)
        r = check_place(remote, change->some, err);
    if (!r && change->in)
        r = check_code(remote, change->some, err);
    if (!r && change->in)
        r = move_threads(remote, change->some, err);
    if (r)
        return r;
    r = change_code(remote, change->some, !change->in);
    if (r < 0)
        return error_say(err, r, "cannot write the code of process %d", (int)remote_pid(remote));
    if (!change->in)
        give_pages_back(remote, change->some);
    return r ? error_say(err, -EBUSY, "%d places in process %d were changed by something else", r,
                         (int)remote_pid(remote))
             : 0;
}

int live_patch_change(pid_t pid, const struct live_patch *some, bool in, struct error *err)
{
    struct change context = {.some = some, .in = in};

    return remote_session(pid, change, &context, err);
}

/* Whether jumps of a library that is not there any more are: it was copied, or may not be executed at present.
 */
static bool has_copies(struct remote *remote, const struct live_patch *patch)
{
    uint8_t place[DISPLACE_JUMP];

    for (size_t i = 0; i < patch->count; i++)
        if (!remote_read(remote, patch->patches[i].address, place, sizeof(place)) &&
            !memcmp(place, patch->patches[i].new, sizeof(place)))
            return true;
    return false;
}

/* Takes one image's patches out. Returns how many places have something else, or a failure. */
static int take_out_one(struct remote *remote, const struct live_patch *patch, struct error *err)
{
    int others;

    if (!live_patch_is_there(remote_pid(remote), patch))
        return has_copies(remote, patch);
    others = change_code(remote, patch, true);
    if (others < 0)
        return error_say(err, others, "cannot write the code of process %d", (int)remote_pid(remote));
    give_pages_back(remote, patch);
    return others;
}

/* Returns 1 when it is unmapped, 0 when a thread may be in it. */
static int unmap_area(struct remote *remote, const struct live_patches *patches, struct error *err)
{
    const struct agent_area *area = patches->items[0]->area;
    uint64_t apart = area->head->chunks - AGENT_COUNTS_BYTES;
    AUTO_FREE struct stale_area *places = calloc(patches->count + 1, sizeof(*places));

    if (!places)
        return error_no_memory(err);
    for (size_t i = 0; i < patches->count; i++)
        places[i] = (struct stale_area){
            .near_start = patches->items[i]->head,
            .near_end = patches->items[i]->head + patches->items[i]->near_bytes,
            .apart_start = apart,
            .apart_end = apart + area->apart_bytes,
        };
    return stale_patches_unmap(remote, places, patches->count);
}

/* Returns 1 when the area is unmapped, too, 0 when a thread may be in it. */
static int take_out(const struct live_patches *patches, struct remote *remote, struct error *err)
{
    int others = 0, r = stale_patches_check_vfork_children(remote, err);

    for (size_t i = 0; r >= 0 && i < patches->count; i++) {
        r = take_out_one(remote, patches->items[i], err);
        others += r > 0 ? r : 0;
    }
    if (r < 0)
        return r;
    if (!others)
        return unmap_area(remote, patches, err);
    return error_say(err, -EBUSY, "%d places in process %d were changed by something else", others,
                     (int)remote_pid(remote));
}

static int restore(void *context, struct remote *remote, struct error *err)
{
    int r;

    if (stale_patches_on_parents_memory(remote))
        return 0; /* its parent's code is restored with the parent */
    r = take_out(context, remote, err);
    return r < 0 ? r : 0;
}

static int part(void *context, struct remote *remote, struct error *err)
{
    const struct live_patches *patches = context;
    int out = take_out(patches, remote, err), r;

    if (out < 0 && out != -EBUSY)
        return out;
    r = live_area_part(remote, patches->items[0]->area, err);
    if (r || out > 0)
        return r;
    return out ? -EAGAIN
               : error_say(err, -EAGAIN, "a thread of process %d may be in a stub", (int)remote_pid(remote));
}

int live_patch_part(pid_t pid, const struct live_patches *patches, struct error *err)
{
    return remote_session(pid, part, (void *)patches, err);
}

int live_patch_restore(pid_t pid, const struct live_patches *patches, struct error *err)
{
    return remote_session(pid, restore, (void *)patches, err);
}
