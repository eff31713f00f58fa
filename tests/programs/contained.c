/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: contained [loop]
 *
 * A program with threads and children of all kinds, for pid namespaces: children in its own one, in new ones made by
 * unshare() and clone(), in nested ones, in that of another process (setns), by vfork, and one that executes the
 * program again. Each calls a function of its own kind CALLS times. With `loop` it repeats all but the last two until
 * SIGTERM, and ends with 0.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS 3000
#define STACK 65536

static volatile sig_atomic_t stop;
static volatile unsigned long sum;

#define KIND(name) \
    __attribute__((noinline)) void in_##name(unsigned value) \
    { \
        sum += value; \
        __asm__ volatile("" : : : "memory"); \
    }
KIND(main)
KIND(thread)
KIND(fork)
KIND(childs_thread)
KIND(unshared)
KIND(unshared_thread)
KIND(cloned)
KIND(nested)
KIND(joined)
KIND(vfork)
KIND(executed)

static void call(void (*function)(unsigned))
{
    for (unsigned i = 0; i < CALLS; i++)
        function(i);
}

static void *thread(void *function)
{
    call((void (*)(unsigned))(intptr_t)function);
    return NULL;
}

static void run_thread(void (*function)(unsigned))
{
    pthread_t id;

    if (pthread_create(&id, NULL, thread, (void *)(intptr_t)function) || pthread_join(id, NULL))
        _exit(1);
}

static void wait_for(pid_t pid)
{
    int status;

    if (pid <= 0 || waitpid(pid, &status, 0) != pid || status)
        _exit(2);
}

static void plain_child(void)
{
    pid_t pid = fork();

    if (!pid) {
        call(in_fork);
        run_thread(in_childs_thread);
        _exit(0);
    }
    wait_for(pid);
}

/* Like fork(), in a new namespace; by no function of the C library, whose syscall() could do anything. */
static pid_t fork_into_new_one(void)
{
    register long none __asm__("r10") = 0;
    long result;

    __asm__ volatile("xorl %%r8d,%%r8d; syscall"
                     : "=a"(result)
                     : "a"(SYS_clone), "D"(CLONE_NEWPID | SIGCHLD), "S"(0), "d"(0), "r"(none)
                     : "rcx", "r8", "r11", "memory");
    return (pid_t)result;
}

static void nested_child(void)
{
    pid_t pid = fork_into_new_one();

    if (!pid) {
        call(in_nested);
        _exit(0);
    }
    wait_for(pid);
}

/* In namespaces below that of a child, whose next one comes after it is there: a process for each, as the children of
 * one that has called unshare(CLONE_NEWPID) are all in that namespace. */
static void unshared_children(void)
{
    pid_t pid = fork();

    if (!pid) {
        if (unshare(CLONE_NEWPID))
            _exit(3);
        pid = fork();
        if (!pid) {
            call(in_unshared);
            run_thread(in_unshared_thread);
            nested_child();
            _exit(0);
        }
        wait_for(pid);
        _exit(0);
    }
    wait_for(pid);
}

static int cloned(void *unused)
{
    (void)unused;
    call(in_cloned);
    return 0;
}

static void cloned_child(void)
{
    char *stack = malloc(STACK);

    if (!stack)
        _exit(1);
    wait_for(clone(cloned, stack + STACK, CLONE_NEWPID | SIGCHLD, NULL));
    free(stack);
}

/* A child in the namespace of another process, which holds it while it waits for its pipe. */
static void joined_child(void)
{
    int pipes[2], namespace;
    char path[64], byte;
    pid_t holder, pid;

    if (pipe(pipes))
        _exit(1);
    holder = fork_into_new_one();
    if (!holder) {
        close(pipes[1]);
        _exit(read(pipes[0], &byte, 1) != 0);
    }
    pid = fork();
    if (!pid) {
        snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)holder);
        namespace = open(path, O_RDONLY | O_CLOEXEC);
        if (setns(namespace, CLONE_NEWPID))
            _exit(4);
        pid = fork();
        if (!pid) {
            call(in_joined);
            _exit(0);
        }
        wait_for(pid);
        _exit(0);
    }
    wait_for(pid);
    close(pipes[0]);
    close(pipes[1]);
    wait_for(holder);
}

static void vfork_child(void)
{
    pid_t pid = vfork();

    if (!pid) {
        call(in_vfork);
        _exit(0);
    }
    wait_for(pid);
}

static void executing_child(void)
{
    pid_t pid = fork();

    if (!pid) {
        execl("/proc/self/exe", "contained", "executed", (char *)NULL);
        _exit(5);
    }
    wait_for(pid);
}

static void end(int number)
{
    (void)number;
    stop = 1;
}

int main(int count, char **arguments)
{
    int loops = count > 1 && !strcmp(arguments[1], "loop");

    if (count > 1 && !strcmp(arguments[1], "executed")) {
        call(in_executed);
        return 0;
    }
    if (loops) {
        signal(SIGTERM, end);
        puts("ready");
        fflush(stdout);
    }
    do {
        call(in_main);
        run_thread(in_thread);
        plain_child();
        unshared_children();
        cloned_child();
        joined_child();
        if (!loops) {
            vfork_child();
            executing_child();
        }
    } while (loops && !stop);
    puts("all of them have ended well");
    return 0;
}
