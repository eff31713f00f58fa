/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Processes and threads that begin in the first milliseconds of a program, and call in another order than
 * that in which they are made. Which comes first is settled by turns, without a call: so the same happens in
 * every run, and the labels must be the same.
 *
 *     0  main thread 0.0, threads 0.1 (never calls anything), 0.2 and 0.3 (calls before it)
 *     1  fork: calls last              3  fork by process 1, while its parent goes on
 *     2  fork: never calls anything    4  fork: calls first
 *     5  vfork, and this program with an argument: a thread of it executes it once more
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLED __attribute__((noipa))

static volatile long sum;
static atomic_int *turn; /* shared by all processes */

#define WORK(NAME) \
    CALLED static void NAME(void) \
    { \
        sum = sum + 1; \
    }
WORK(work_main)
WORK(work_first)
WORK(work_last)
WORK(work_nested)
WORK(work_thread)
WORK(work_executed)

/* A macro: whoever waits calls nothing. */
#define AWAIT(NUMBER) \
    while (atomic_load(turn) < (NUMBER)) \
    __asm__ volatile("pause")
#define NEXT() ((void)atomic_fetch_add(turn, 1))

/* Until a thread has ended: glibc keeps its id there, which the kernel clears. pthread_join() does the same
 * calls then in every run. */
#define AWAIT_END(THREAD) \
    while (*(volatile int *)((char *)(THREAD) + 0x2d0)) \
    __asm__ volatile("pause")

/* Ends the process without a call that could be recorded. */
#define LEAVE() __asm__ volatile("syscall" : : "a"(SYS_exit_group), "D"(0) : "rcx", "r11", "memory")

#define REPEAT(COUNT, FUNCTION) \
    for (int repeat_ = 0; repeat_ < (COUNT); repeat_++) \
    FUNCTION()

/* It lives until all are made: else glibc may have found the program single-threaded again. */
static void *quiet(void *unused)
{
    AWAIT(1);
    return unused;
}

/* The first of two, whose turn comes last. */
CALLED static void *second(void *unused)
{
    AWAIT(2);
    REPEAT(20, work_thread);
    NEXT();
    return unused;
}

CALLED static void *third(void *unused)
{
    AWAIT(1);
    REPEAT(30, work_thread);
    NEXT();
    return unused;
}

static void make_threads(void)
{
    static void *(*const functions[])(void *) = {quiet, second, third};
    pthread_t threads[3];

    for (int i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, functions[i], NULL))
            _exit(1);
    NEXT(); /* 1 */
    AWAIT(3);
    for (int i = 0; i < 3; i++) {
        AWAIT_END(threads[i]);
        pthread_join(threads[i], NULL);
    }
}

static void live_as_first_child(void)
{
    AWAIT(4); /* process 2 is there */
    if (fork() == 0) {
        NEXT(); /* 5 */
        AWAIT(8);
        REPEAT(300, work_nested);
        NEXT(); /* 9 */
        LEAVE();
    }
    AWAIT(9);
    REPEAT(100, work_last);
    NEXT(); /* 10 */
    wait(NULL);
    LEAVE();
}

static void make_processes(char *self)
{
    if (fork() == 0)
        live_as_first_child();
    if (fork() == 0)
        LEAVE();
    NEXT(); /* 4 */
    AWAIT(5);
    if (fork() == 0) {
        NEXT(); /* 6 */
        REPEAT(400, work_first);
        NEXT(); /* 7 */
        LEAVE();
    }
    AWAIT(7);
    if (vfork() == 0) {
        execl(self, self, "thread", (char *)NULL);
        _exit(1);
    }
    NEXT(); /* 8 */
    AWAIT(10);
    while (wait(NULL) > 0)
        ;
}

static atomic_int is_made;

static void *execute(void *self)
{
    while (!atomic_load(&is_made))
        __asm__ volatile("pause");
    REPEAT(5, work_executed);
    execl(self, self, "again", (char *)NULL);
    _exit(1);
}

int main(int argc, char **argv)
{
    pthread_t thread;

    if (argc > 1 && !strcmp(argv[1], "thread")) {
        pthread_create(&thread, NULL, execute, argv[0]);
        atomic_store(&is_made, 1);
        for (;;)
            __asm__ volatile("pause");
    }
    if (argc > 1) {
        REPEAT(50, work_executed);
        return 0;
    }
    turn = mmap(NULL, sizeof(*turn), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REPEAT(10, work_main);
    make_threads();
    make_processes(argv[0]);
    printf("%d turns\n", atomic_load(turn));
    return 0;
}
