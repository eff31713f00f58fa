/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/inline/stale_patches.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/kcmp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/foreign_file.h"
#include "collector/arch/displacement.h"
#include "collector/arch/record.h"
#include "collector/arch/thread_registers.h"
#include "collector/inline/text_pages.h"
#include "collector/process/map_lines.h"
#include "collector/process/maps.h"
#include "collector/process/proc_numbers.h"
#include "collector/process/process.h"
#include "collector/process/target_memory.h"
#include "collector/ptrace/remote_place.h"
#include "image/arch/code_bytes.h"

#define PAGE 4096u
#define STACK_MAX (16u << 20) /* more of a stack than that is not looked through */
#define JUMP DISPLACE_JUMP

/* One place where an area is mapped near code. */
struct found_area {
    uint64_t inode; /* of its head */
    struct stale_area addresses;
};

/* Head and stubs; the rings have another name, and the head says which they are. */
static const char area_name[] = "/memfd:" AGENT_MAGIC " (deleted)";

static bool is_area(const struct map_line *mapping)
{
    return !strcmp(mapping->name, area_name);
}

/* Whether a memory file with that name was made by a recorder: any program can give the name, but its owner
 * is its maker, and code files are sealed. Who may not look takes it for one. */
static bool is_made_by_recorder(pid_t pid, uint64_t start, uint64_t end, uint64_t inode)
{
    struct stat file;
    char link[96];
    int r;

    process_mapped_link(pid, start, end, link, sizeof(link));
    r = foreign_file_stat(link, &file);
    return r == -EPERM || (!r && file.st_ino == inode && file.st_uid == geteuid());
}

bool stale_patches_has_probe_code(pid_t pid, const struct code_mapping *mapping)
{
    return (!strcmp(mapping->path, "/memfd:" AGENT_MAGIC) ||
            !strcmp(mapping->path, "/memfd:" AGENT_CODE_NAME)) &&
           is_made_by_recorder(pid, mapping->start, mapping->end, mapping->inode);
}

/* The areas that a process has mapped near its code, each place of each; the caller frees them. A place begins
 * with the head, and each piece of it behind that lies at its offset. */
static int find_areas(pid_t pid, struct found_area **ret_areas, size_t *ret_count)
{
    AUTO_MAP_LINES struct map_lines maps = {0};
    AUTO_FREE struct found_area *areas = NULL;
    size_t count = 0, capacity = 0;
    struct map_line mapping;

    if (map_lines_open(pid, &maps))
        return -ESRCH;
    for (bool any = map_lines_mention(&maps, area_name); any && map_lines_next(&maps, &mapping);) {
        struct stale_area *last = count ? &areas[count - 1].addresses : NULL;

        if (!is_area(&mapping) || !is_made_by_recorder(pid, mapping.start, mapping.end, mapping.inode))
            continue;
        if (last && mapping.offset && mapping.start - last->near_start == mapping.offset) {
            last->near_end = mapping.end;
        } else if (!mapping.offset) {
            if (array_reserve(&areas, &capacity, count + 1))
                return -ENOMEM;
            areas[count++] =
                (struct found_area){mapping.inode, {.near_start = mapping.start, .near_end = mapping.end}};
        }
    }
    *ret_areas = take_pointer(areas);
    *ret_count = count;
    return 0;
}

bool stale_patches_find_rings(pid_t pid, uint64_t file, struct stale_area *ret_area)
{
    AUTO_MAP_LINES struct map_lines maps = {0};
    struct map_line mapping;

    if (map_lines_open(pid, &maps))
        return false;
    while (map_lines_next(&maps, &mapping)) {
        if (mapping.inode != file || strcmp(mapping.name, "/memfd:" AGENT_DATA_NAME " (deleted)") != 0)
            continue;
        ret_area->apart_start = mapping.start;
        ret_area->apart_end = mapping.end;
        return true;
    }
    return false;
}

/* The collector that made an area, as its head says, which also says where its rings are; 0: it cannot be
 * read. */
static pid_t collector_of(pid_t pid, struct found_area *area)
{
    struct agent_head head;

    if (target_memory_read(pid, area->addresses.near_start, &head, sizeof(head)) != sizeof(head))
        return 0;
    stale_patches_find_rings(pid, head.data_file, &area->addresses);
    return (pid_t)head.collector;
}

uint64_t stale_patches_area_of(pid_t pid, pid_t collector)
{
    AUTO_FREE struct found_area *areas = NULL;
    size_t count = 0;

    if (find_areas(pid, &areas, &count))
        return 0;
    for (size_t i = 0; i < count; i++)
        if (collector_of(pid, &areas[i]) == collector)
            return areas[i].inode;
    return 0;
}

/* Whether that collector still has the area. */
static bool is_alive(const struct found_area *area, pid_t collector)
{
    AUTO_MAP_LINES struct map_lines maps = {0};
    struct map_line mapping;

    if (collector <= 0 || map_lines_open(collector, &maps))
        return false;
    while (map_lines_next(&maps, &mapping))
        if (is_area(&mapping) && mapping.inode == area->inode)
            return true;
    return false;
}

/* ------------------------------------------------------------------------------------ threads inside */

static bool is_in(uint64_t address, const struct stale_area *areas, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (address >= areas[i].near_start && address < areas[i].near_end)
            return true;
    return false;
}

/* The end of the mapping that `address` lies in, or 0. */
static uint64_t mapping_end(pid_t pid, uint64_t address)
{
    AUTO_MAP_LINES struct map_lines maps = {0};
    struct map_line mapping;

    if (map_lines_open(pid, &maps))
        return 0;
    while (map_lines_next(&maps, &mapping))
        if (address >= mapping.start && address < mapping.end)
            return mapping.end;
    return 0;
}

static bool is_sigreturn(const struct remote *remote, uint64_t address)
{
    uint8_t code[CODE_SIGRETURN_BYTES];

    return !remote_read(remote, address, code, sizeof(code)) && code_is_sigreturn(code);
}

/* From a handler's return address to the place that its signal interrupted: a kernel's struct rt_sigframe. */
#define INTERRUPTED_WORDS (1 + offsetof(ucontext_t, uc_mcontext.gregs[REG_RIP]) / sizeof(uint64_t))

/* Who is not in the area comes back to it only from signal handlers. Other words on a stack that name places
 * there are what stubs have left behind. True also when the stack cannot be read. */
static bool may_be_inside(const struct remote *remote, size_t thread, const struct stale_area *areas,
                          size_t area_count)
{
    const struct user_regs_struct *registers = remote_registers(remote, thread);
    uint64_t start = registers_stack(registers) & ~7ull, end = mapping_end(remote_pid(remote), start);
    size_t count = (end - start) / sizeof(uint64_t);
    AUTO_FREE uint64_t *words = NULL;

    if (is_in(registers_pc(registers), areas, area_count) || end <= start || end - start > STACK_MAX)
        return true;
    words = malloc(end - start);
    if (!words || remote_read(remote, start, words, end - start))
        return true;
    for (size_t i = 0; i + INTERRUPTED_WORDS < count; i++)
        if (is_in(words[i + INTERRUPTED_WORDS], areas, area_count) && is_sigreturn(remote, words[i]))
            return true;
    return false;
}

static void unmap(struct remote *remote, uint64_t start, uint64_t end)
{
    const uint64_t arguments[6] = {start, end - start};
    int64_t ignored;

    if (end > start)
        remote_call(remote, SYS_munmap, arguments, &ignored, NULL);
}

bool stale_patches_unmap(struct remote *remote, const struct stale_area *areas, size_t count)
{
    for (size_t i = 0; i < remote_thread_count(remote); i++)
        if (may_be_inside(remote, i, areas, count))
            return false;
    unmap(remote, areas[0].apart_start, areas[0].apart_end);
    for (size_t i = 0; i < count; i++) /* last: the area is found by them */
        unmap(remote, areas[i].near_start, areas[i].near_end);
    return true;
}

/* ------------------------------------------------------------------------------------ jumps */

struct cleaning {
    pid_t pid;
    struct found_area *areas;
    size_t count;
    struct code_mapping *mappings; /* of the program */
    size_t mapping_count;
};

static bool leads_to_area(const struct cleaning *cleaning, uint64_t address, const uint8_t *jump)
{
    if (!code_is_jump(jump))
        return false;
    for (size_t i = 0; i < cleaning->count; i++)
        if (is_in(code_call_target(jump, address), &cleaning->areas[i].addresses, 1))
            return true;
    return false;
}

/* Puts back what the file has where a jump leads to an area. */
static int restore_mapping(const struct cleaning *cleaning, struct remote *remote,
                           const struct code_mapping *mapping)
{
    size_t size = mapping->end - mapping->start;
    AUTO_FREE uint8_t *now = malloc(size), *file = calloc(1, size);
    AUTO_CLOSE int fd = foreign_file_open(mapping->link);
    bool changed = false;
    int r = 0;

    if (!now || !file)
        return -ENOMEM;
    if (fd < 0 || pread(fd, file, size, (off_t)mapping->offset) < 0 ||
        remote_read(remote, mapping->start, now, size))
        return -EIO;
    for (size_t i = 0; !r && i + JUMP <= size; i++) {
        if (i % PAGE == 0 && i + PAGE + JUMP <= size && !memcmp(now + i, file + i, PAGE + JUMP)) {
            i += PAGE - 1;
        } else if (memcmp(now + i, file + i, JUMP) && leads_to_area(cleaning, mapping->start + i, now + i)) {
            r = remote_write(remote, mapping->start + i, file + i, JUMP);
            changed = true;
            i += JUMP - 1;
        }
    }
    if (!r && changed)
        text_pages_give_back(remote, mapping, NULL);
    return r;
}

static bool share_memory(pid_t one, pid_t other)
{
    return !syscall(SYS_kcmp, one, other, KCMP_VM, 0, 0);
}

bool stale_patches_on_parents_memory(const struct remote *remote)
{
    return share_memory(remote_pid(remote), process_parent(remote_pid(remote)));
}

int stale_patches_check_vfork_children(const struct remote *remote, struct error *err)
{
    AUTO_FREE pid_t *children = NULL;
    size_t count = 0;
    int r = process_children(remote_pid(remote), &children, &count, err);

    for (size_t i = 0; !r && i < count; i++)
        if (share_memory(remote_pid(remote), children[i]))
            r = error_say(err, -EBUSY, "process %d shares its memory with process %d, which does not stop",
                          (int)remote_pid(remote), (int)children[i]);
    return r;
}

/* What the process has now that it stands still. Until then it may have mapped and unmapped memory, and a
 * thread that a killed session has left may have undone what that had done. */
static int look_again(struct cleaning *cleaning, const struct remote *remote, struct error *err)
{
    AUTO_FREE struct found_area *now = NULL;
    struct agent_head head;
    size_t count = 0, kept = 0;
    int r = find_areas(cleaning->pid, &now, &count);

    if (r)
        return error_set(err, r, NULL, "cannot read the memory of process %d", (int)cleaning->pid);
    for (size_t i = 0; i < cleaning->count; i++) {
        for (size_t k = 0; k < count; k++) {
            if (now[k].inode != cleaning->areas[i].inode ||
                now[k].addresses.near_start != cleaning->areas[i].addresses.near_start)
                continue;
            if (!remote_read(remote, now[k].addresses.near_start, &head, sizeof(head)))
                stale_patches_find_rings(cleaning->pid, head.data_file, &now[k].addresses);
            cleaning->areas[kept++] = now[k];
            break;
        }
    }
    cleaning->count = kept;
    return process_code_mappings(cleaning->pid, &cleaning->mappings, &cleaning->mapping_count, err);
}

/* Unmaps the places of each area together. -ENOMEM. */
static int unmap_areas(struct remote *remote, const struct cleaning *cleaning)
{
    AUTO_FREE struct stale_area *places = calloc(cleaning->count + 1, sizeof(*places));

    if (!places)
        return -ENOMEM;
    for (size_t i = 0; i < cleaning->count; i++) {
        size_t count = 0, first = 0;

        while (cleaning->areas[first].inode != cleaning->areas[i].inode)
            first++;
        for (size_t k = i; first == i && k < cleaning->count; k++)
            if (cleaning->areas[k].inode == cleaning->areas[i].inode)
                places[count++] = cleaning->areas[k].addresses;
        if (count)
            stale_patches_unmap(remote, places, count);
    }
    return 0;
}

static int clean(void *context, struct remote *remote, struct error *err)
{
    struct cleaning *cleaning = context;
    int r = 0;

    if (stale_patches_on_parents_memory(remote))
        return error_say(err, -EBUSY, "process %d runs on its parent's memory", (int)cleaning->pid);
    r = stale_patches_check_vfork_children(remote, err);
    if (!r)
        r = look_again(cleaning, remote, err);
    for (size_t i = 0; !r && i < cleaning->mapping_count; i++)
        r = restore_mapping(cleaning, remote, &cleaning->mappings[i]);
    if (r)
        return error_set(err, r, NULL, "cannot remove the probes of an earlier recording from process %d",
                         (int)cleaning->pid);
    return unmap_areas(remote, cleaning) ? error_no_memory(err) : 0;
}

static bool has_areas(pid_t pid)
{
    AUTO_FREE struct found_area *areas = NULL;
    size_t count = 0;

    return !find_areas(pid, &areas, &count) && count;
}

/* Leaves out the areas that are in use by this process. -EBUSY: one is in use by another. */
static int check_owners(struct cleaning *cleaning, struct error *err)
{
    size_t kept = 0;

    for (size_t i = 0; i < cleaning->count; i++) {
        struct found_area *area = &cleaning->areas[i];
        pid_t collector = collector_of(cleaning->pid, area);
        bool alive = is_alive(area, collector);

        if (!collector)
            return error_say(err, has_areas(cleaning->pid) ? -EIO : -ESRCH,
                             "cannot read the memory of process %d", (int)cleaning->pid);
        if (alive && collector != getpid())
            return error_say(
                err, -EBUSY,
                "process %d has inline probes of tracectl, process %d (end that recording first)",
                (int)cleaning->pid, (int)collector);
        if (!alive)
            cleaning->areas[kept++] = *area;
    }
    cleaning->count = kept;
    return 0;
}

static void cleaning_release(struct cleaning *cleaning)
{
    free(cleaning->areas);
    code_mappings_free(cleaning->mappings, cleaning->mapping_count);
}

int stale_patches_clean(pid_t pid, struct error *err)
{
    CLEANUP(cleaning_release) struct cleaning cleaning = {.pid = pid};
    int r = find_areas(pid, &cleaning.areas, &cleaning.count);

    if (r)
        return error_set(err, r, NULL, "cannot read the memory of process %d", (int)pid);
    r = check_owners(&cleaning, err);
    return r || !cleaning.count ? r : remote_session(pid, clean, &cleaning, err);
}

/* ------------------------------------------------------------------------------------ all processes */

/* Does something to each process, until that fails. */
static int for_each_process(int (*function)(void *context, pid_t pid, struct error *err), void *context,
                            struct error *err)
{
    AUTO_PROC_NUMBERS pids;
    int r = proc_numbers_open(&pids, "/proc");
    pid_t pid;

    if (r)
        return error_set(err, r, NULL, "cannot read /proc");
    while (!r && (pid = proc_numbers_next(&pids)) > 0)
        if (pid != getpid())
            r = function(context, pid, err);
    return r;
}

static int clean_if_mapped(void *context, pid_t pid, struct error *err)
{
    const struct stat *file = context;
    int r = 0;

    if (has_areas(pid) && file_is_mapped(pid, file->st_dev, file->st_ino))
        r = stale_patches_clean(pid, err);
    return r == -ESRCH ? 0 : r;
}

int stale_patches_clean_all(dev_t device, ino_t inode, struct error *err)
{
    struct stat file = {.st_dev = device, .st_ino = inode};

    return for_each_process(clean_if_mapped, &file, err);
}

struct taking_back {
    pid_t collector;
    pid_t *done; /* an area stays mapped while a thread may be in it */
    size_t count, capacity;
    bool found;
};

static bool is_done(const struct taking_back *taking, pid_t pid)
{
    for (size_t i = 0; i < taking->count; i++)
        if (taking->done[i] == pid)
            return true;
    return false;
}

static int take_back(void *context, pid_t pid, struct error *err)
{
    struct taking_back *taking = context;
    CLEANUP(cleaning_release) struct cleaning cleaning = {.pid = pid};
    size_t kept = 0;

    (void)err;
    if (is_done(taking, pid) || find_areas(pid, &cleaning.areas, &cleaning.count))
        return 0;
    for (size_t i = 0; i < cleaning.count; i++)
        if (collector_of(pid, &cleaning.areas[i]) == taking->collector)
            cleaning.areas[kept++] = cleaning.areas[i];
    cleaning.count = kept;
    if (!kept)
        return 0;
    if (array_reserve(&taking->done, &taking->capacity, taking->count + 1))
        return -ENOMEM;
    taking->done[taking->count++] = pid;
    taking->found = true;
    remote_session(pid, clean, &cleaning, NULL);
    return 0;
}

void stale_patches_remove_all(pid_t collector)
{
    struct taking_back taking = {.collector = collector};

    do { /* until a look finds none that was forked from one that had not been cleaned yet */
        taking.found = false;
    } while (!for_each_process(take_back, &taking, NULL) && taking.found);
    free(taking.done);
}
