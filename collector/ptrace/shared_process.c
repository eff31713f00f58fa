/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/ptrace/shared_process.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK_BYTES (256 << 10)

static int child_main(void *argument)
{
    const struct sigaction plain = {.sa_handler = SIG_DFL}; /* an ignored SIGCHLD would not come */
    struct shared_process *process = argument;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != process->maker)
        return 0; /* it has died before that */
    sigaction(SIGCHLD, &plain, NULL);
    return process->main(process->context); /* which is _exit() */
}

static void *host_main(void *argument)
{
    _Alignas(16) char stack[STACK_BYTES];
    struct shared_process *process = argument;
    pid_t pid = clone(child_main, stack + sizeof(stack), CLONE_VM | CLONE_FILES | CLONE_VFORK, process);

    if (pid < 0) {
        process->ended(process->context, -errno);
        return NULL;
    }
    while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
        ;
    process->ended(process->context, 0);
    return NULL;
}

int shared_process_start(struct shared_process *process)
{
    sigset_t all, before;
    int r;

    process->maker = getpid();
    sigfillset(&all); /* what is meant for this process is for its other threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r = -pthread_create(&process->host, NULL, host_main, process);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r;
}

void shared_process_join(struct shared_process *process)
{
    pthread_join(process->host, NULL);
}
