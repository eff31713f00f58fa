/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
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

static _Noreturn void *outlive(void *first)
{
    pthread_join(*(pthread_t *)first, NULL);
    for (;;)
        pause();
}

static _Noreturn void end_first_thread(void)
{
    static pthread_t first;
    pthread_t other;

    first = pthread_self();
    if (pthread_create(&other, NULL, outlive, &first))
        _exit(1);
    pthread_exit(NULL);
}

/* The letter that /proc shows for its first thread. */
static char first_thread_state(pid_t pid)
{
    char path[64], state = 0;
    FILE *stat;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    stat = fopen(path, "re");
    if (stat) {
        if (fscanf(stat, "%*d (%*[^)]) %c", &state) != 1)
            state = 0;
        fclose(stat);
    }
    return state;
}

Test(process, runs_until_its_last_thread_has_ended, .timeout = 60)
{
    pid_t pid = fork();

    if (!pid)
        end_first_thread();
    while (first_thread_state(pid) != 'Z')
        usleep(1000);
    cr_assert(process_is_running(pid));
    kill(pid, SIGKILL);
    for (siginfo_t end = {0}; !end.si_pid;)
        cr_assert_eq(waitid(P_PID, (id_t)pid, &end, WEXITED | WNOWAIT), 0);
    cr_assert_not(process_is_running(pid));
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
    cr_assert_not(process_is_running(pid));
}
