/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/go/go_slowdown.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

enum { MANY_HITS = 10000, POLL_US = 200 };

void go_slowdown_add(struct go_slowdown *slowdown, uint64_t hits, uint64_t took_ns)
{
    slowdown->hits += hits;
    slowdown->took_ns += took_ns;
    slowdown->executions++;
}

/* In the child. */
static void execute(char *const *command)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(nothing, STDOUT_FILENO) < 0 ||
        dup2(nothing, STDERR_FILENO) < 0)
        _exit(127);
    execvp(command[0], command);
    _exit(127);
}

/* How long the command takes; `longest_ns` where it takes longer and is ended; 0: it could not be run. */
static uint64_t run_once(char *const *command, uint64_t longest_ns)
{
    uint64_t begun = clock_ns(CLOCK_MONOTONIC), took = 0;
    pid_t pid = fork(), ended = 0;
    int status = 0;

    if (!pid)
        execute(command);
    while (pid > 0 && !ended && took < longest_ns) {
        usleep(POLL_US);
        ended = waitpid(pid, &status, WNOHANG);
        took = clock_ns(CLOCK_MONOTONIC) - begun;
    }
    if (pid < 0 || ended < 0)
        return 0;
    if (ended)
        return took;
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return longest_ns;
}

double go_slowdown_measure(const struct go_slowdown *slowdown, char *const *command)
{
    uint64_t observed, without;

    if (!slowdown->executions || slowdown->hits / slowdown->executions < MANY_HITS)
        return 0;
    observed = slowdown->took_ns / slowdown->executions;
    without = run_once(command, observed);
    if (!without)
        return 0;
    return without < observed ? (double)observed / (double)without : 1;
}
