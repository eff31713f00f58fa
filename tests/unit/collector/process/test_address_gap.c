/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where there is room in a process, and what it may map: nothing is taken that its heap would grow into. */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/process/address_gap.h"
#include "collector/process/limits.h"

#define PAGE 4096ull
#define BYTES (1ull << 20)
#define FAR (3ull << 30) /* further than a jump reaches */

/* A child and the heap that it has; both sides find its addresses the same, as it is forked. */
struct child {
    pid_t pid;
    uint64_t heap_start, heap_end;
};

/* The first mapping of this process's heap, or where one would begin. */
static void find_heap(struct child *child)
{
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");

    cr_assert_not_null(maps);
    while (fgets(line, sizeof(line), maps))
        if (strstr(line, "[heap]"))
            cr_assert_eq(sscanf(line, "%lx-%lx", &child->heap_start, &child->heap_end), 2);
    fclose(maps);
    cr_assert_neq(child->heap_end, 0);
}

/* Takes all addresses from `start` on, but for what is mapped there. */
static void take(uint64_t start, uint64_t bytes)
{
    for (uint64_t at = start; at < start + bytes; at += BYTES)
        mmap((void *)at, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
             -1, 0);
}

static struct child begin(bool full_below)
{
    struct child child = {0};
    int ready[2];
    char byte;

    cr_assert_neq((intptr_t)sbrk(PAGE), -1);
    find_heap(&child);
    cr_assert_eq(pipe(ready), 0);
    child.pid = fork();
    if (!child.pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (full_below)
            take((child.heap_start - FAR) & ~(BYTES - 1), FAR - BYTES);
        if (write(ready[1], "", 1) == 1)
            pause();
        _exit(1);
    }
    cr_assert_eq(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return child;
}

static void end(const struct child *child)
{
    kill(child->pid, SIGKILL);
    cr_assert_eq(waitpid(child->pid, NULL, 0), child->pid);
}

Test(room, is_below_where_there_is_some)
{
    struct child child = begin(false);
    uint64_t address = 0;

    cr_assert_eq(
        address_gap_near(child.pid, child.heap_start - PAGE, child.heap_start, BYTES, &address, NULL), 0);
    cr_assert_leq(address + BYTES, child.heap_start - PAGE);
    cr_assert_gt(address, child.heap_start - FAR);
    end(&child);
}

Test(room, is_never_behind_the_heap)
{
    struct child child = begin(true);
    uint64_t address = 0;
    int r = address_gap_near(child.pid, child.heap_start - PAGE, child.heap_start, BYTES, &address, NULL);

    cr_assert(r == -ENOSPC || address + BYTES <= child.heap_start, "0x%lx, and the heap begins at 0x%lx",
              address, child.heap_start);
    end(&child);
}

Test(room, nothing_is_known_of_a_process_that_is_gone)
{
    struct child child = begin(false);
    uint64_t address;

    end(&child);
    cr_assert_eq(
        address_gap_near(child.pid, child.heap_start - PAGE, child.heap_start, BYTES, &address, NULL),
        -ESRCH);
    cr_assert_not(process_has_address_limit(child.pid));
    cr_assert_eq(process_locked_bytes(child.pid), 0);
}

Test(limits, of_addresses_and_what_is_locked)
{
    struct rlimit limit;

    cr_assert_eq(getrlimit(RLIMIT_AS, &limit), 0);
    cr_assert_eq(process_has_address_limit(getpid()), limit.rlim_cur != RLIM_INFINITY);
    limit.rlim_cur = limit.rlim_max = 1ul << 46; /* sanitizers reserve some */
    cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
    cr_assert(process_has_address_limit(getpid()));
    cr_assert_eq(process_locked_bytes(getpid()), 0);
    cr_assert_eq(process_has_lock_limit(getpid()), geteuid() != 0);
    cr_assert_eq(syscall(SYS_mlock, &limit, 1), 0); /* sanitizers leave mlock() out */
    cr_assert_eq(process_locked_bytes(getpid()), PAGE);
}
