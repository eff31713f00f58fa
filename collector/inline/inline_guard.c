/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/inline/inline_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "collector/inline/stale_patches.h"

#define TRIES 50 /* the dead collector's memory goes a little later than its descriptors (-EBUSY) */

static void clean_all(pid_t *pids, pid_t collector)
{
    const struct timespec pause = {0, 20 * 1000 * 1000};

    for (size_t i = 0; i < INLINE_GUARD_MAX; i++)
        for (int try = 0; pids[i] && try < TRIES && stale_patches_clean(pids[i], NULL) == -EBUSY; try++)
            nanosleep(&pause, NULL);
    stale_patches_remove_all(collector); /* children that it never heard of */
}

static void guard_main(pid_t *pids, int pipe, pid_t collector)
{
    sigset_t all;
    char byte;

    prctl(PR_SET_NAME, "tracectl-guard");
    setsid(); /* Ctrl-C and the terminal's hang-up are for the collector */
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    if (pipe > 0)
        close_range(0, (unsigned)pipe - 1, 0); /* no pipe of the user's is held open */
    close_range((unsigned)pipe + 1, ~0u, 0);
    while (read(pipe, &byte, 1) < 0 && errno == EINTR)
        ;
    clean_all(pids, collector);
    _exit(0);
}

int inline_guard_start(struct inline_guard *ret_guard, struct error *err)
{
    size_t bytes = INLINE_GUARD_MAX * sizeof(pid_t);
    pid_t *pids = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), pid;
    pid_t collector = getpid();
    int ends[2];

    if (pids == MAP_FAILED)
        return error_no_memory(err);
    if (pipe2(ends, O_CLOEXEC)) {
        munmap(pids, bytes);
        return error_set(err, -errno, NULL, "cannot start the guard");
    }
    pid = fork();
    if (!pid) {
        close(ends[1]);
        guard_main(pids, ends[0], collector);
    }
    close(ends[0]);
    *ret_guard = (struct inline_guard){pid, ends[1], pids};
    if (pid > 0)
        return 0;
    close(ends[1]);
    munmap(pids, bytes);
    *ret_guard = (struct inline_guard){0};
    return error_set(err, -EAGAIN, NULL, "cannot start the guard");
}

static void replace(struct inline_guard *guard, pid_t from, pid_t to)
{
    for (size_t i = 0; i < INLINE_GUARD_MAX; i++) {
        if (guard->pids[i] == from) {
            __atomic_store_n(&guard->pids[i], to, __ATOMIC_RELEASE);
            return;
        }
    }
}

void inline_guard_add(struct inline_guard *guard, pid_t pid)
{
    replace(guard, 0, pid);
}

void inline_guard_remove(struct inline_guard *guard, pid_t pid)
{
    replace(guard, pid, 0);
}

void inline_guard_stop(struct inline_guard *guard)
{
    if (guard->pid <= 0)
        return;
    kill(guard->pid, SIGKILL);
    close(guard->pipe);
    waitpid(guard->pid, NULL, 0);
    munmap(guard->pids, INLINE_GUARD_MAX * sizeof(*guard->pids));
    guard->pid = 0;
}
