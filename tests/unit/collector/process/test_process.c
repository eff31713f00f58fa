/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/process/process.h"

Test(process, that_is_stopped_is_told_from_one_that_sleeps)
{
    pid_t pid = fork();

    if (!pid)
        for (;;)
            pause();
    cr_assert_not(process_is_stopped(pid));
    kill(pid, SIGSTOP);
    cr_assert_eq(waitpid(pid, NULL, WUNTRACED), pid);
    cr_assert(process_is_stopped(pid));
    kill(pid, SIGKILL);
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
    cr_assert_not(process_is_stopped(pid));
}
