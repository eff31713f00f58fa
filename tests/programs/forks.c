/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Child processes of every kind, one after the other: fork alone, fork and exec, vfork and exec, posix_spawn,
 * and a fork inside a forked child. Executed children are this program with an argument. Each child's exit
 * status says whether its sum was right.
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define NOINLINE __attribute__((noinline, noclone))

static volatile long sum;

NOINLINE static void step(int n)
{
    sum = sum + n;
}

/* Calls step `count` times; 0 when the sum is right. Every kind of child has a function of its own name. */
#define DEFINE_WORK(NAME) \
    NOINLINE static int NAME(int count) \
    { \
        sum = 0; \
        for (int i = 1; i <= count; i++) \
            step(i); \
        return sum != (long)count * (count + 1) / 2; \
    }
DEFINE_WORK(work_parent)
DEFINE_WORK(work_forked)
DEFINE_WORK(work_grandchild)
DEFINE_WORK(work_fork_exec)
DEFINE_WORK(work_vforked)
DEFINE_WORK(work_vfork_exec)
DEFINE_WORK(work_spawned)

static int wait_for(pid_t pid)
{
    int status;

    return pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

static int run_forked(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        int failed = work_forked(100);
        pid_t grandchild = fork();

        if (grandchild == 0)
            _exit(work_grandchild(50));
        _exit(failed | wait_for(grandchild));
    }
    return wait_for(pid);
}

static int run_fork_exec(char *self)
{
    pid_t pid = fork();

    if (pid == 0) {
        execl(self, self, "fork_exec", (char *)NULL);
        _exit(127);
    }
    return wait_for(pid);
}

/* The child calls on its parent's stack. */
static int run_vforked(void)
{
    pid_t pid = vfork();

    if (pid == 0)
        _exit(work_vforked(60));
    return wait_for(pid);
}

static int run_vfork_exec(char *self)
{
    pid_t pid = vfork();

    if (pid == 0) {
        execl(self, self, "vfork_exec", (char *)NULL);
        _exit(127);
    }
    return wait_for(pid);
}

static int run_spawned(char *self)
{
    char word[] = "spawned";
    char *argv[] = {self, word, NULL};
    pid_t pid;

    return posix_spawn(&pid, self, NULL, NULL, argv, environ) || wait_for(pid);
}

static int report(const char *what, int failed)
{
    printf("%s %s\n", what, failed ? "FAILED" : "ok");
    fflush(stdout);
    return failed;
}

int main(int argc, char **argv)
{
    static char self[] = "/proc/self/exe";
    char path[4096];
    ssize_t length;
    int failed = 0;

    if (argc > 1 && !strcmp(argv[1], "fork_exec"))
        return work_fork_exec(70);
    if (argc > 1 && !strcmp(argv[1], "vfork_exec"))
        return work_vfork_exec(80);
    if (argc > 1 && !strcmp(argv[1], "spawned"))
        return work_spawned(90);
    length = readlink(self, path, sizeof(path) - 1);
    if (length < 0)
        return 1;
    path[length] = '\0';
    failed |= report("parent", work_parent(10));
    failed |= report("forked", run_forked());
    failed |= report("fork_exec", run_fork_exec(path));
    failed |= report("vforked", run_vforked());
    failed |= report("vfork_exec", run_vfork_exec(path));
    failed |= report("spawned", run_spawned(path));
    return failed;
}
