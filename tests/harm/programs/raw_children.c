/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Processes and threads that no library knows of: made by system calls of the program's own, in every way
 * there is. Each calls a function of its own kind CALLS times, its maker another one meanwhile. Each is told
 * with the process that it is of: "made KIND PID".
 */
#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "harm.h"

enum { CALLS = 3000, STACK = 64 << 10, KINDS = 13 };

/* Shared by all: what was called, and who has ended. */
static struct shared {
    atomic_long calls, ended;
    atomic_int pids[KINDS];
} * shared;

#define KIND(name) \
    CALLED static void in_##name(void) \
    { \
        atomic_fetch_add(&shared->calls, 1); \
    }
KIND(maker)
KIND(fork)
KIND(clone)
KIND(clone3)
KIND(assembler)
KIND(library)
KIND(grandchild)
KIND(new_ids)
KIND(vfork)
KIND(parents)
KIND(memory)
KIND(thread)
KIND(thread_twice)

static void (*const functions[KINDS])(void) = {
    in_maker,   in_fork,  in_clone,   in_clone3, in_assembler, in_library,      in_grandchild,
    in_new_ids, in_vfork, in_parents, in_memory, in_thread,    in_thread_twice,
};
static const char *const names[KINDS] = {
    "in_maker",   "in_fork",  "in_clone",   "in_clone3", "in_assembler", "in_library",      "in_grandchild",
    "in_new_ids", "in_vfork", "in_parents", "in_memory", "in_thread",    "in_thread_twice",
};
enum {
    MAKER,
    FORK,
    CLONE,
    CLONE3,
    ASSEMBLER,
    LIBRARY,
    GRANDCHILD,
    NEW_IDS,
    VFORK,
    PARENTS,
    MEMORY,
    THREAD,
    TWICE
};

static char *stacks[2];

static void call_all(int kind)
{
    for (int i = 0; i < CALLS; i++)
        functions[kind]();
}

/* A child's whole life. No library call: it may have its maker's thread control block. */
static int live(void *kind)
{
    call_all((int)(intptr_t)kind);
    atomic_fetch_add(&shared->ended, 1);
    return 0;
}

static long raw_fork(void)
{
    long result;

    __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_fork) : "rcx", "r11", "memory");
    return result;
}

static long make(int kind)
{
    struct clone_args args;
    long pid;

    memset(&args, 0, sizeof(args));
    args.exit_signal = SIGCHLD;
    switch (kind) {
    case FORK:
        return syscall(SYS_fork);
    case CLONE:
        return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    case CLONE3:
        return syscall(SYS_clone3, &args, sizeof(args));
    case NEW_IDS:
        pid = syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
        return pid < 0 && errno == EPERM ? syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : pid;
    case PARENTS:
        return syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
    case LIBRARY:
        return clone(live, stacks[0] + STACK, SIGCHLD, (void *)(intptr_t)kind);
    case VFORK:
        return clone(live, stacks[0] + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, (void *)(intptr_t)kind);
    case MEMORY:
        return clone(live, stacks[0] + STACK, CLONE_VM | SIGCHLD, (void *)(intptr_t)kind);
    default:
        return raw_fork();
    }
}

static void run_process(int kind)
{
    long pid = make(kind);
    int status;

    if (pid == 0) {
        if (kind == GRANDCHILD) {
            pid = raw_fork();
            if (pid) {
                atomic_store(&shared->pids[kind], (int)pid);
                waitpid((pid_t)pid, &status, 0);
                _exit(0);
            }
        }
        live((void *)(intptr_t)kind);
        _exit(0);
    }
    if (kind != GRANDCHILD)
        atomic_store(&shared->pids[kind], (int)pid);
    call_all(MAKER);
    if (kind != PARENTS)
        waitpid((pid_t)pid, &status, 0);
}

/* One or two threads on the maker's thread control block. */
static void run_threads(int kind, int count)
{
    const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                      CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID;
    static volatile int tids[2];

    atomic_store(&shared->pids[kind], getpid());
    for (int i = 0; i < count; i++) {
        tids[i] = -1;
        clone(live, stacks[i] + STACK, flags, (void *)(intptr_t)kind, NULL, NULL, (void *)&tids[i]);
    }
    call_all(MAKER);
    for (int i = 0; i < count; i++)
        while (tids[i])
            usleep(100);
}

/* How often all of a kind is called, in CALLS. */
static int callers(int kind)
{
    return kind == MAKER ? KINDS - 1 : kind == TWICE ? 2 : 1;
}

static long work(void)
{
    const long children = KINDS - 1 + 1; /* two of the last kind */
    static bool told;
    long calls;

    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 2; i++)
        stacks[i] = malloc(STACK);
    atomic_store(&shared->pids[MAKER], getpid());
    for (int kind = FORK; kind <= MEMORY; kind++)
        run_process(kind);
    run_threads(THREAD, 1);
    run_threads(TWICE, 2);
    while (atomic_load(&shared->ended) < children)
        usleep(100);
    for (int kind = 0; !told && kind < KINDS; kind++)
        printf("made %s %d %d\n", names[kind], atomic_load(&shared->pids[kind]), CALLS * callers(kind));
    told = true;
    calls = atomic_load(&shared->calls);
    munmap(shared, sizeof(*shared));
    for (int i = 0; i < 2; i++)
        free(stacks[i]);
    return calls / CALLS;
}

HARM_MAIN(2 * (KINDS - 1) + 1L)
