/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * struct g begins with the bounds of its stack, and g.m is followed by g.sched (struct gobuf: sp, pc, g,
 * ...), which points back to its g, and that by g.syscallsp and g.syscallpc (runtime2.go, go 1.17 to 1.26).
 * gobuf has seven words, and six since go 1.25. m.procid, the thread's id, lies behind m.g0, m.morebuf (a
 * gobuf) and a word.
 */
#include "collector/stacks/goroutine_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "collector/process/target_memory.h"
#include "collector/stacks/live_maps.h"
#include "image/go/go_goroutines.h"

enum {
    G_BYTES = 512, /* of a struct g; what is read lies in its first half */
    M_BYTES = 96,
    AT_ONCE = 256, /* structs at once */
    SCAN_BIT = 0x1000,
    SHORT_GOBUF_SINCE = 25,
    GOROUTINES_MAX = 1 << 24,
    SLICE_TRIES = 100,
};

void go_runtime_release(struct go_runtime *runtime)
{
    go_layout_release(&runtime->layout);
}

int go_runtime_find(struct code_image *image, pid_t pid, uint64_t start, uint64_t offset,
                    struct go_runtime *ret_runtime, struct error *err)
{
    int r;

    *ret_runtime = (struct go_runtime){.pid = pid, .image = image};
    if (!elf_image_facts(image->elf)->is_go)
        return -ENOENT;
    r = go_layout_read(image->elf, &ret_runtime->layout, err);
    if (r)
        return r;
    r = go_goroutines_find(image->elf, &ret_runtime->list);
    if (!r)
        r = elf_image_load_bias(image->elf, start, offset, &ret_runtime->bias);
    if (r == -ENOENT)
        return error_say(err, -ENOTSUP, "%s: cannot find the list of goroutines in %s", image->path,
                         ret_runtime->layout.version.text),
               -ENOTSUP;
    ret_runtime->list += ret_runtime->bias;
    return r;
}

void goroutines_release(struct goroutines *list)
{
    free(list->items);
    *list = (struct goroutines){0};
}

/* ------------------------------------------------------------------------------------------------ reading
 */

static uint64_t word_at(const uint8_t *bytes, size_t offset)
{
    uint64_t word;

    memcpy(&word, bytes + offset, sizeof(word));
    return word;
}

static bool has_room(int32_t offset, size_t bytes)
{
    return offset >= 0 && (size_t)offset + bytes <= G_BYTES;
}

static struct goroutine parse(const struct go_runtime *runtime, uint64_t address, const uint8_t *bytes)
{
    const int32_t *offsets = runtime->layout.offsets;
    size_t saved = (size_t)offsets[GO_G_M] + 8;
    size_t called = saved + 8 * (runtime->layout.version.minor < SHORT_GOBUF_SINCE ? 7 : 6);
    struct goroutine goroutine = {.address = address};

    if (!has_room(offsets[GO_G_M], 8 * 12) || !has_room(offsets[GO_G_ATOMICSTATUS], 8) ||
        !has_room(offsets[GO_G_GOID], 8) || !has_room(offsets[GO_G_WAITREASON], 8))
        return goroutine;
    memcpy(&goroutine.status, bytes + offsets[GO_G_ATOMICSTATUS], sizeof(goroutine.status));
    goroutine.status &= ~(uint32_t)SCAN_BIT;
    goroutine.wait_reason = bytes[offsets[GO_G_WAITREASON]];
    goroutine.thread = word_at(bytes, (size_t)offsets[GO_G_M]);
    goroutine.stack_low = word_at(bytes, 0);
    goroutine.stack_high = word_at(bytes, 8);
    if (word_at(bytes, saved + 16) == address) { /* gobuf.g */
        goroutine.saved_sp = word_at(bytes, saved);
        goroutine.saved_pc = word_at(bytes, saved + 8);
    }
    goroutine.called_sp = word_at(bytes, called);
    goroutine.called_pc = word_at(bytes, called + 8);
    if (goroutine.status != GOROUTINE_IDLE && goroutine.status != GOROUTINE_DEAD)
        goroutine.goid = word_at(bytes, (size_t)offsets[GO_G_GOID]);
    return goroutine;
}

/* One that cannot be read has goid 0. -ENOMEM. */
static int read_all(const struct go_runtime *runtime, const uint64_t *addresses, size_t count,
                    struct goroutine *ret_items)
{
    AUTO_FREE uint8_t *bytes = malloc((size_t)AT_ONCE * G_BYTES);
    size_t done = 0;

    if (!bytes)
        return -ENOMEM;
    while (done < count) {
        size_t left = count - done, wanted = left < AT_ONCE ? left : AT_ONCE;
        size_t got = target_memory_read_pieces(runtime->pid, addresses + done, wanted, G_BYTES, bytes);

        for (size_t i = 0; i < got; i++)
            ret_items[done + i] = parse(runtime, addresses[done + i], bytes + i * G_BYTES);
        done += got;
        if (got < wanted) {
            ret_items[done] = (struct goroutine){.address = addresses[done]};
            done++;
        }
    }
    return 0;
}

/* Pointer and length of runtime.allgs. While it grows they are read until they are the same twice. False:
 * they cannot be read. */
static bool read_slice(const struct go_runtime *runtime, uint64_t slice[2])
{
    uint64_t again[2];

    for (int tries = 0; tries < SLICE_TRIES; tries++) {
        if (target_memory_read(runtime->pid, runtime->list, slice, sizeof(again)) != sizeof(again) ||
            target_memory_read(runtime->pid, runtime->list, again, sizeof(again)) != sizeof(again))
            return false;
        if (slice[0] == again[0] && slice[1] == again[1])
            return slice[1] <= GOROUTINES_MAX;
    }
    return false;
}

/* The addresses of all structs g; an array that the list has outgrown stays readable. In memory from malloc;
 * NULL: none left. */
static uint64_t *read_addresses(const struct go_runtime *runtime, size_t *ret_count)
{
    uint64_t slice[2] = {0}, *addresses;
    bool readable = read_slice(runtime, slice);
    size_t size = readable ? slice[1] * sizeof(*addresses) : 0;

    addresses = calloc(1, size + sizeof(*addresses));
    if (addresses)
        *ret_count =
            size ? target_memory_read(runtime->pid, slice[0], addresses, size) / sizeof(*addresses) : 0;
    return addresses;
}

static int compare_addresses(const void *a, const void *b)
{
    const struct goroutine *left = a, *right = b;

    return (left->address > right->address) - (left->address < right->address);
}

const struct goroutine *goroutines_find(const struct goroutines *list, uint64_t address)
{
    const struct goroutine wanted = {.address = address};

    return list->count ? bsearch(&wanted, list->items, list->count, sizeof(wanted), compare_addresses) : NULL;
}

int goroutines_list(const struct go_runtime *runtime, struct goroutines *ret_list)
{
    size_t count = 0, alive = 0;
    AUTO_FREE uint64_t *addresses = read_addresses(runtime, &count);
    struct goroutine *items = addresses ? calloc(count + 1, sizeof(*items)) : NULL;

    if (!items || read_all(runtime, addresses, count, items)) {
        free(items);
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++)
        if (items[i].goid)
            items[alive++] = items[i];
    qsort(items, alive, sizeof(*items), compare_addresses);
    *ret_list = (struct goroutines){items, alive, count + 1};
    return 0;
}

int goroutines_again(const struct go_runtime *runtime, const struct goroutine *before, size_t count,
                     struct goroutine *ret_now)
{
    AUTO_FREE uint64_t *addresses = calloc(count + 1, sizeof(*addresses));

    if (!addresses)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        addresses[i] = before[i].address;
    return read_all(runtime, addresses, count, ret_now);
}

bool goroutine_rests(const struct goroutine *before, const struct goroutine *now)
{
    return before->goid == now->goid && before->status == now->status &&
           before->wait_reason == now->wait_reason && before->thread == now->thread &&
           before->stack_low == now->stack_low && before->stack_high == now->stack_high &&
           before->saved_sp == now->saved_sp && before->saved_pc == now->saved_pc &&
           before->called_sp == now->called_sp && before->called_pc == now->called_pc;
}

/* ------------------------------------------------------------------------------------------------ threads
 */

static int compare_tids(const void *a, const void *b)
{
    const pid_t *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

bool go_thread_find(const struct go_runtime *runtime, uint64_t thread, const pid_t *tids, size_t count,
                    struct go_thread *ret_thread)
{
    size_t words = runtime->layout.version.minor < SHORT_GOBUF_SINCE ? 7 : 6;
    int32_t scheduler = runtime->layout.offsets[GO_M_G0];
    uint64_t bounds[2];
    uint8_t bytes[M_BYTES];
    pid_t tid;

    if (!thread || !count || scheduler < 0 || scheduler > M_BYTES - 8 ||
        target_memory_read(runtime->pid, thread, bytes, sizeof(bytes)) != sizeof(bytes))
        return false;
    tid = (pid_t)word_at(bytes, 8 + 8 * words + 8);
    if (!bsearch(&tid, tids, count, sizeof(*tids), compare_tids) ||
        target_memory_read(runtime->pid, word_at(bytes, (size_t)scheduler), bounds, sizeof(bounds)) !=
            sizeof(bounds))
        return false;
    *ret_thread = (struct go_thread){tid, bounds[0], bounds[1]};
    return true;
}
