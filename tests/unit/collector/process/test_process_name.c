/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/process/process_name.h"

Test(process_name, of_a_first_argument)
{
    static const struct {
        const char *argument, *name;
    } cases[] = {
        {"/usr/bin/redis-server 127.0.0.1:6379", "redis-server"},
        {"./app", "app"},
        {"app", "app"},
        {"postgres: checkpointer", "postgres"},
        {"nginx: master process /usr/sbin/nginx -g daemon off;", "nginx"},
        {"", ""},
        {" ", ""},
        {":", ""},
    };
    char name[32];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        process_name_of_argument(cases[i].argument, name, sizeof(name));
        cr_assert_str_eq(name, cases[i].name, "'%s' for '%s'", name, cases[i].argument);
    }
}

Test(process_name, each_name_matches)
{
    const struct process_name name = {"redis-check-rdb", "redis-server", ""};

    cr_assert(process_name_matches(&name, "redis-check-rdb"));
    cr_assert(process_name_matches(&name, "redis-server"));
    cr_assert(process_name_matches(&name, "redis-s*"));
    cr_assert_not(process_name_matches(&name, "redis"));
    cr_assert_not(process_name_matches(&name, ""), "an unknown name is no name");
}

/* A child with this command name, until it is killed. */
static pid_t child_named(const char *name)
{
    int ready[2];
    char byte;
    pid_t pid;

    cr_assert_eq(pipe(ready), 0);
    pid = fork();
    if (!pid) {
        prctl(PR_SET_NAME, name);
        if (write(ready[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    cr_assert_eq(read(ready[0], &byte, 1), 1);
    return pid;
}

static size_t named(const char *pattern, pid_t first)
{
    pid_t *pids = NULL;
    size_t count;

    cr_assert_eq(processes_named(pattern, &pids, &count, NULL), 0);
    if (count)
        cr_assert_eq(pids[0], first);
    free(pids);
    return count;
}

Test(process_name, processes_are_found)
{
    char name[16];
    pid_t pid;

    snprintf(name, sizeof(name), "n%d", getpid());
    cr_assert_eq(named(name, 0), 0);
    pid = child_named(name);
    cr_assert_eq(named(name, pid), 1);
    kill(pid, SIGKILL);
    waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT);
    cr_assert_eq(named(name, 0), 0, "a zombie is no process to attach to");
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

Test(process_name, a_kernel_thread_is_none)
{
    cr_assert_eq(named("kthreadd", 0), 0);
}
