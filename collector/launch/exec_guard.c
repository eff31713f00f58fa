/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/launch/exec_guard.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"

/* Keeps `keep` and `also`, closes every other descriptor, the standard ones included: the guard must not hold
 * a pipe of the user's open. */
static void close_all_but(int keep, int also)
{
    int low = keep < also ? keep : also, high = keep < also ? also : keep;

    if (low > 0)
        close_range(0, (unsigned)low - 1, 0);
    if (high > low + 1)
        close_range((unsigned)low + 1, (unsigned)high - 1, 0);
    close_range((unsigned)high + 1, ~0u, 0);
}

/* A collector that takes longer than that is stuck, or is dead and still busy with the removal of its probes.
 */
#define HELD_NS_MAX 10000000000ull
#define POLL_MS 1000

static void release_if_older(int held_map_fd, uint32_t pid, uint64_t until)
{
    uint64_t since;

    if (!bpf_map_lookup_elem(held_map_fd, &pid, &since) && since <= until &&
        !bpf_map_delete_elem(held_map_fd, &pid))
        kill((pid_t)pid, SIGCONT);
}

/* Lets go all processes that have stood since `until` (CLOCK_MONOTONIC) or longer. */
static void release_older(int held_map_fd, uint64_t until)
{
    uint32_t pid, next;
    int more = !bpf_map_get_next_key(held_map_fd, NULL, &next);

    while (more) { /* the next one is asked for while this one is still there */
        pid = next;
        more = !bpf_map_get_next_key(held_map_fd, &pid, &next);
        release_if_older(held_map_fd, pid, until);
    }
}

static void guard_main(int held_map_fd, int pipe)
{
    const struct timespec pause = {0, 20 * 1000 * 1000};
    struct pollfd collector = {.fd = pipe, .events = POLLIN};

    prctl(PR_SET_NAME, "tracectl-guard");
    setsid(); /* Ctrl-C and the terminal's hang-up are for the collector */
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    close_all_but(held_map_fd, pipe);
    while (poll(&collector, 1, POLL_MS) <= 0)
        release_older(held_map_fd, clock_ns(CLOCK_MONOTONIC) - HELD_NS_MAX);
    /* The kernel takes the dead collector's programs away a little later; a process may still be stopped in
     * between. */
    for (int i = 0; i < 50; i++) {
        release_older(held_map_fd, UINT64_MAX);
        nanosleep(&pause, NULL);
    }
    _exit(0);
}

int exec_guard_start(int held_map_fd, struct exec_guard *ret_guard, struct error *err)
{
    int ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC))
        return error_set(err, -errno, NULL, "cannot start the guard");
    pid = fork();
    if (pid < 0) {
        int r = -errno;

        close(ends[0]);
        close(ends[1]);
        return error_set(err, r, NULL, "cannot start the guard");
    }
    if (!pid) {
        close(ends[1]);
        guard_main(held_map_fd, ends[0]);
    }
    close(ends[0]);
    *ret_guard = (struct exec_guard){pid, ends[1]};
    return 0;
}

void exec_guard_stop(struct exec_guard *guard)
{
    if (guard->pid <= 0)
        return;
    /* Everything has been let go by now: no need to wait out the guard's second. */
    kill(guard->pid, SIGKILL);
    close(guard->pipe);
    waitpid(guard->pid, NULL, 0);
    guard->pid = 0;
}
