/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/memory/text_diff.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "base/foreign_file.h"
#include "collector/memory/page_map.h"
#include "collector/process/process.h"
#include "collector/process/target_memory.h"
#include "image/arch/code_bytes.h"

#define PAGE PAGE_MAP_PAGE

void text_diff_release(struct text_diff *diff)
{
    free(diff->mapped.items);
    free(diff->different.items);
    free(diff->breakpoints.items);
    *diff = (struct text_diff){0};
}

/* ------------------------------------------------------------------------------------ stretches */

static int compare_stretches(const void *left, const void *right)
{
    const struct text_stretch *a = left, *b = right;

    return (a->start > b->start) - (a->start < b->start);
}

/* Appends a stretch, or makes the last one longer. */
static int add(struct text_stretches *stretches, uint64_t start, uint64_t end)
{
    if (stretches->count && stretches->items[stretches->count - 1].end == start) {
        stretches->items[stretches->count - 1].end = end;
        return 0;
    }
    if (array_reserve(&stretches->items, &stretches->capacity, stretches->count + 1))
        return -ENOMEM;
    stretches->items[stretches->count++] = (struct text_stretch){start, end};
    return 0;
}

/* Sorts, and joins what overlaps: a file may be mapped several times. */
static void put_in_order(struct text_stretches *stretches)
{
    size_t kept = 0;

    if (stretches->count)
        qsort(stretches->items, stretches->count, sizeof(*stretches->items), compare_stretches);
    for (size_t i = 0; i < stretches->count; i++) {
        const struct text_stretch next = stretches->items[i];
        struct text_stretch *last = kept ? &stretches->items[kept - 1] : NULL;

        if (last && next.start <= last->end)
            last->end = next.end > last->end ? next.end : last->end;
        else
            stretches->items[kept++] = next;
    }
    stretches->count = kept;
}

bool text_stretches_overlap(const struct text_stretches *stretches, uint64_t start, uint64_t end)
{
    size_t low = 0, high = stretches->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (stretches->items[middle].end <= start)
            low = middle + 1;
        else
            high = middle;
    }
    return low < stretches->count && stretches->items[low].start < end;
}

/* ------------------------------------------------------------------------------------ one page */

struct comparison {
    struct text_diff *diff;
    pid_t pid;
    int file;
    bool may_be_own; /* a breakpoint may be the program's or its debugger's */
};

bool text_diff_is_probed(int file, uint64_t offset)
{
    uint64_t page = offset / PAGE * PAGE;
    const uint8_t *bytes = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, (off_t)page);
    bool probed;

    if (bytes == MAP_FAILED)
        return false;
    probed = code_is_trap(bytes + offset - page);
    munmap((void *)bytes, PAGE);
    return probed;
}

/* The page is a copy of the process's own. One that cannot be compared is taken for different. */
static int compare_page(struct comparison *comparison, uint64_t address, uint64_t offset)
{
    uint8_t now[PAGE], wanted[PAGE] = {0};
    ssize_t length = target_proc_read(comparison->pid, "mem", address, now, PAGE);
    int r = 0;

    if (!length || length == -ENOENT || length == -ESRCH)
        return 0; /* the process has ended */
    if (length != PAGE || pread(comparison->file, wanted, PAGE, (off_t)offset) <= 0)
        return add(&comparison->diff->different, offset, offset + PAGE);
    for (uint32_t i = 0; i < PAGE && !r; i++) {
        bool breakpoint = code_is_trap(&now[i]) &&
                          (!comparison->may_be_own || text_diff_is_probed(comparison->file, offset + i));

        if (now[i] != wanted[i])
            r = add(breakpoint ? &comparison->diff->breakpoints : &comparison->diff->different, offset + i,
                    offset + i + 1);
    }
    return r;
}

/* ------------------------------------------------------------------------------------ a process */

static int compare_mapping(pid_t pid, const struct code_mapping *mapping, struct comparison *comparison)
{
    uint64_t size = mapping->end - mapping->start;
    AUTO_FREE uint64_t *words = page_map_read(pid, mapping->start, mapping->end);
    int r = add(&comparison->diff->mapped, mapping->offset, mapping->offset + size);

    if (!r && mapping->writable)
        return add(&comparison->diff->different, mapping->offset, mapping->offset + size);
    for (uint64_t at = 0; at < size && !r; at += PAGE) /* all pages, where nothing tells which are copies */
        if (!words || page_map_is_copy(words[at / PAGE]))
            r = compare_page(comparison, mapping->start + at, mapping->offset + at);
    return r;
}

static int compare_file(pid_t pid, const struct code_mapping *mapping, struct comparison *comparison)
{
    AUTO_CLOSE int file = foreign_file_open(mapping->link);

    comparison->file = file;
    return file < 0 ? 0 : compare_mapping(pid, mapping, comparison);
}

int text_diff_read(pid_t pid, dev_t device, ino_t inode, struct text_diff *ret_diff)
{
    AUTO_TEXT_DIFF struct text_diff diff = {0};
    struct comparison comparison = {.diff = &diff, .pid = pid};
    struct code_mapping *mappings;
    size_t count;
    int r = process_code_mappings(pid, &mappings, &count, NULL);

    if (r)
        return r;
    comparison.may_be_own = process_may_have_breakpoints(pid);
    for (size_t i = 0; i < count && !r; i++)
        if (mappings[i].device == device && mappings[i].inode == inode)
            r = compare_file(pid, &mappings[i], &comparison);
    code_mappings_free(mappings, count);
    if (r)
        return r;
    put_in_order(&diff.mapped);
    put_in_order(&diff.different);
    put_in_order(&diff.breakpoints);
    *ret_diff = diff;
    diff = (struct text_diff){0};
    return 0;
}
