/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/process/process.h"
#include "collector/process/thread_progress.h"

#define LONG_NS 60000000000u

static pid_t spawn(void (*work)(void))
{
    pid_t pid = fork();

    if (!pid)
        for (;;)
            work();
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

static void nothing(void)
{
}

static void sleeps(void)
{
    pause();
}

Test(thread_progress, who_runs_gets_on)
{
    pid_t pid = spawn(nothing);
    uint64_t before = process_cpu_ns(pid);

    cr_assert(threads_progress(pid, LONG_NS));
    cr_assert_gt(process_cpu_ns(pid), before);
    end(pid);
}

Test(thread_progress, who_sleeps_stands_still_or_is_gone_is_not_waited_for)
{
    pid_t pid = spawn(sleeps);

    cr_assert(threads_progress(pid, LONG_NS));
    kill(pid, SIGSTOP);
    cr_assert_eq(waitpid(pid, NULL, WUNTRACED), pid);
    cr_assert(threads_progress(pid, LONG_NS));
    end(pid);
    cr_assert(threads_progress(pid, LONG_NS));
}
