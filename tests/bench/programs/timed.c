/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: timed FILE COMMAND [ARG...]
 *
 * Runs a command and writes what it took into FILE: "WALL_SECONDS CPU_SECONDS". The CPU time is that of the
 * command and the processes that it waited for: what a probe costs is in it, what starting a tracer costs is
 * not.
 */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

int main(int argc, char **argv)
{
    double begun = now();
    struct rusage usage;
    int status;
    FILE *file;
    pid_t pid;

    if (argc < 3)
        return 2;
    pid = fork();
    if (!pid) {
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    if (pid < 0 || wait4(pid, &status, 0, &usage) != pid)
        return 126;
    file = fopen(argv[1], "w");
    if (!file)
        return 125;
    fprintf(file, "%.6f %.6f\n", now() - begun, seconds(usage.ru_utime) + seconds(usage.ru_stime));
    fclose(file);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 124;
}
