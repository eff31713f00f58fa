/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/launch/group_witness.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"

static void witness_main(pid_t maker)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    prctl(PR_SET_NAME, "tracectl-group");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != maker)
        _exit(0);           /* it has died before that */
    close_range(0, ~0u, 0); /* no pipe of the user's is held open */
    for (;;)
        pause();
}

int group_witness_start(struct group_witness *ret_witness, struct error *err)
{
    pid_t maker = getpid(), pid = fork();

    if (pid < 0)
        return error_set(err, -errno, NULL, "cannot start a process");
    if (!pid)
        witness_main(maker);
    ret_witness->pid = pid;
    return 0;
}

bool group_witness_saw(const struct group_witness *witness, int signal)
{
    AUTO_FREE char *line = NULL;
    uint64_t pending = 0;
    size_t size = 0;
    char path[40];
    FILE *status;

    if (witness->pid <= 0)
        return false;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)witness->pid);
    status = fopen(path, "re");
    while (status && !pending && getline(&line, &size, status) > 0)
        if (sscanf(line, "ShdPnd: %" SCNx64, &pending) == 1)
            break;
    if (status)
        fclose(status);
    return pending >> (signal - 1) & 1;
}

void group_witness_stop(struct group_witness *witness)
{
    if (witness->pid <= 0)
        return;
    kill(witness->pid, SIGKILL);
    while (waitpid(witness->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    witness->pid = 0;
}
