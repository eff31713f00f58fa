/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Prints what a program inherits from the one that starts it, and what it finds on its standard input. */
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

extern char **environ;

static __attribute__((noinline)) void print_file(const char *path, const char *wanted)
{
    FILE *file = fopen(path, "re");
    char line[4096];

    while (file && fgets(line, sizeof(line), file))
        if (!*wanted || strstr(wanted, (char[]){line[0], line[1], line[2], line[3], '\0'}))
            printf("%s: %s", path, line);
    if (file)
        fclose(file);
}

static __attribute__((noinline)) void print_descriptors(void)
{
    char path[300], target[300];

    for (int fd = 0; fd < 1024; fd++) {
        ssize_t length;

        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        length = readlink(path, target, sizeof(target) - 1);
        if (length < 0)
            continue;
        target[length] = '\0';
        printf("descriptor %d: %s\n", fd, fd == 1 || fd == 2 ? "" : target); /* those the test redirects */
    }
}

static __attribute__((noinline)) void print_scheduling(void)
{
    struct sched_param parameters = {0};

    sched_getparam(0, &parameters);
    printf("policy %d, priority %d, nice %d, timer slack %d\n", sched_getscheduler(0),
           parameters.sched_priority, getpriority(PRIO_PROCESS, 0), prctl(PR_GET_TIMERSLACK));
}

/* But for the two that the C library keeps for itself. */
static __attribute__((noinline)) void print_ignored(void)
{
    struct sigaction action;

    for (int number = 1; number < NSIG; number++)
        if (!sigaction(number, NULL, &action) && action.sa_handler == SIG_IGN)
            printf("ignored %d\n", number);
}

static __attribute__((noinline)) void print_groups(void)
{
    printf("group of its own: %d, session of its own: %d, terminal's group: %d, session %d\n",
           getpgrp() == getpid(), getsid(0) == getpid(), tcgetpgrp(0) == getpgrp(), (int)getsid(0));
}

static __attribute__((noinline)) void print_process(char **argv)
{
    int death = 0, reaper = 0;
    char folder[4096];

    for (int i = 0; argv[i]; i++)
        printf("argument %d: %s\n", i, argv[i]);
    for (char **variable = environ; *variable; variable++)
        if (strncmp(*variable, "_=", 2) != 0) /* bash's: the program that it starts */
            printf("environment: %s\n", *variable);
    printf("folder %s\n", getcwd(folder, sizeof(folder)) ? folder : "?");
    printf("umask %o\n", umask(0));
    prctl(PR_GET_PDEATHSIG, &death);
    prctl(PR_GET_CHILD_SUBREAPER, &reaper);
    printf("death signal %d, reaper %d, dumpable %d, personality %x\n", death, reaper, prctl(PR_GET_DUMPABLE),
           personality(0xffffffff));
}

int main(int argc, char **argv)
{
    char input[256] = "";
    size_t length = argc > 1 && !strcmp(argv[1], "input") ? fread(input, 1, sizeof(input) - 1, stdin) : 0;

    print_process(argv);
    print_file("/proc/self/status", "SigP SigB SigC ShdP CapI CapP CapE CapB CapA NoNe Secc Cpus Mems");
    print_file("/proc/self/limits", "");
    print_file("/proc/self/oom_score_adj", "");
    print_file("/proc/self/coredump_filter", "");
    print_file("/proc/self/cgroup", "");
    print_descriptors();
    print_scheduling();
    print_ignored();
    print_groups();
    printf("input %zu: %s\n", length, input);
    return 0;
}
