/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/cost/isolate.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECONDS_AT_MOST 20

/* Dies with its parent, at the latest after SECONDS_AT_MOST, and without a core file. */
static void become_harmless(void)
{
    const struct rlimit none = {0, 0};

    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGALRM, SIG_DFL);
    alarm(SECONDS_AT_MOST);
}

static int wait_for(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

int isolate(void (*body)(void *answer), void *answer, size_t size)
{
    void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid;
    int r;

    if (shared == MAP_FAILED)
        return -errno;
    memcpy(shared, answer, size);
    pid = fork();
    if (!pid) {
        become_harmless();
        body(shared);
        _exit(0);
    }
    r = pid < 0 ? -errno : wait_for(pid);
    memcpy(answer, shared, size);
    munmap(shared, size);
    return r;
}

int isolate_harm(void (*body)(void))
{
    pid_t pid = fork();

    if (!pid) {
        become_harmless();
        body();
        _exit(0);
    }
    return pid < 0 ? -errno : wait_for(pid);
}
