/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The conductor's process is a child by clone(2) with CLONE_VM and CLONE_FILES, as vfork(2) makes them: of a
 * thread, the host, that is suspended by CLONE_VFORK until the child ends. So the child may run on the host's
 * stack and be the host to the C library (thread-local variables, locks).
 *
 * It dies with the host (PR_SET_PDEATHSIG), and so with the process, however that ends.
 *
 * Others speak to it through a pipe, which takes a request whole or not at all. It answers one of them,
 * CONDUCTOR_SEIZE, by a semaphore. The host posts the same semaphore when the child has died, so that nobody
 * waits for ever.
 */
#include "collector/ptrace/conductor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "collector/ptrace/conductor_state.h"
#include "collector/ptrace/conductor_tracees.h"

#define STACK_BYTES (256 << 10)

/* ------------------------------------------------------------------------------------ the conductor's
 * process
 */

static void answer(struct conductor *conductor, int result)
{
    conductor->answer = result;
    sem_post(&conductor->answered);
}

static void on_request(struct conductor *conductor, const struct conductor_request *request)
{
    switch (request->kind) {
    case CONDUCTOR_SEIZE:
        answer(conductor, tracees_seize(request->tid));
        break;
    case CONDUCTOR_LET_GO:
        tracees_let_go(conductor, request->tid, NULL);
        break;
    case CONDUCTOR_PREEMPT:
        tracees_let_go(conductor, request->tid, &request->preemption);
        break;
    }
}

/* Returns false when there will be no more. */
static bool handle_requests(struct conductor *conductor)
{
    struct conductor_request requests[16];
    ssize_t got = read(conductor->inbox, requests, sizeof(requests));

    for (ssize_t i = 0; i < got / (ssize_t)sizeof(*requests); i++)
        on_request(conductor, &requests[i]);
    return got != 0;
}

/* Waits until something comes or the time (CLOCK_MONOTONIC) is over. */
static void wait_until(struct conductor *conductor, uint64_t end)
{
    struct pollfd sources[] = {{.fd = conductor->child_fd, .events = POLLIN},
                               {.fd = conductor->inbox, .events = POLLIN}};
    uint64_t now = clock_ns(CLOCK_MONOTONIC), left = end > now ? end - now : 0;
    const struct timespec timeout = {(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
    struct signalfd_siginfo signals;

    ppoll(sources, ARRAY_SIZE(sources), end == UINT64_MAX ? NULL : &timeout, NULL);
    if (sources[0].revents) /* one stands for all that came: it is taken before they are looked at */
        (void)!read(conductor->child_fd, &signals, sizeof(signals));
}

/* Ahead of the targets, which may well occupy all processors; and wakes on time. Without the right to the
 * former it is slower. */
static void be_quick(void)
{
    const struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};

    prctl(PR_SET_TIMERSLACK, 1);
    sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &lowest);
}

static int conductor_main(void *argument)
{
    const struct sigaction plain = {.sa_handler = SIG_DFL}; /* an ignored SIGCHLD would not come */
    struct conductor *conductor = argument;
    bool more = true;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != conductor->maker)
        return 0; /* it has died before that */
    prctl(PR_SET_NAME, "tracectl-hold");
    sigaction(SIGCHLD, &plain, NULL);
    be_quick();
    conductor->pid = getpid();
    answer(conductor, 0);
    while (more) { /* in turns, so that a flood of signals holds up neither requests nor the ends of holds */
        uint64_t next = tracees_end_overdue(conductor, clock_ns(CLOCK_MONOTONIC));

        if (!tracees_handle_one(conductor))
            wait_until(conductor, next);
        more = handle_requests(conductor);
    }
    tracees_detach_held(conductor);
    return 0; /* which is _exit(): the kernel lets all others go */
}

/* -------------------------------------------------------------------------------------------------- the host
 */

static void *host_main(void *argument)
{
    _Alignas(16) char stack[STACK_BYTES];
    struct conductor *conductor = argument;
    pid_t pid = clone(conductor_main, stack + sizeof(stack), CLONE_VM | CLONE_FILES | CLONE_VFORK, conductor);

    if (pid < 0) {
        answer(conductor, -errno);
        return NULL;
    }
    while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
        ;
    conductor->gone = true;
    answer(conductor, -ESRCH);
    return NULL;
}

static int wait_for_answer(struct conductor *conductor)
{
    while (sem_wait(&conductor->answered))
        ;
    return conductor->answer;
}

static int start_host(struct conductor *conductor)
{
    sigset_t all, before;
    int r;

    sigfillset(&all); /* what is meant for this process is for its other threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r = -pthread_create(&conductor->host, NULL, host_main, conductor);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r)
        return r;
    r = wait_for_answer(conductor);
    if (r)
        pthread_join(conductor->host, NULL);
    return r;
}

static int open_descriptors(struct conductor *conductor)
{
    sigset_t child;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
        return -errno;
    conductor->inbox = ends[0];
    conductor->requests = ends[1];
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    conductor->child_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    return conductor->child_fd < 0 ? -errno : 0;
}

static void release(struct conductor *conductor)
{
    const int fds[] = {conductor->requests, conductor->inbox, conductor->child_fd};

    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    sem_destroy(&conductor->answered);
    pthread_mutex_destroy(&conductor->seizing);
    free(conductor);
}

/* ------------------------------------------------------------------------------------------ what others call
 */

int conductor_new(const struct conductor_options *options, struct conductor **ret_conductor,
                  struct error *err)
{
    struct conductor *conductor = calloc(1, sizeof(*conductor));
    int r;

    if (!conductor)
        return error_no_memory(err);
    conductor->options = *options;
    conductor->maker = getpid();
    conductor->requests = conductor->inbox = conductor->child_fd = -1;
    sem_init(&conductor->answered, 0, 0);
    pthread_mutex_init(&conductor->seizing, NULL);
    r = open_descriptors(conductor);
    if (!r)
        r = start_host(conductor);
    if (r) {
        release(conductor);
        return error_set(err, r, NULL, "cannot start the process that holds threads");
    }
    *ret_conductor = conductor;
    return 0;
}

pid_t conductor_pid(const struct conductor *conductor)
{
    return conductor->pid;
}

static int post(struct conductor *conductor, const struct conductor_request *request)
{
    if (conductor->gone)
        return -ESRCH;
    return write(conductor->requests, request, sizeof(*request)) < 0 ? -errno : 0;
}

int conductor_seize(struct conductor *conductor, pid_t pid, struct error *err)
{
    const struct conductor_request request = {.kind = CONDUCTOR_SEIZE, .tid = pid};
    const char *remedy;
    int r;

    pthread_mutex_lock(&conductor->seizing);
    r = post(conductor, &request);
    if (!r)
        r = wait_for_answer(conductor);
    pthread_mutex_unlock(&conductor->seizing);
    if (!r)
        return 0;
    remedy = r == -EPERM ? "end the debugger that traces it, or run as root" : NULL;
    return error_set(err, r, remedy, "cannot trace process %d", (int)pid);
}

int conductor_let_go(struct conductor *conductor, pid_t tid)
{
    const struct conductor_request request = {.kind = CONDUCTOR_LET_GO, .tid = tid};

    return post(conductor, &request);
}

int conductor_preempt(struct conductor *conductor, pid_t tid, const struct conductor_preemption *where)
{
    const struct conductor_request request = {.kind = CONDUCTOR_PREEMPT, .tid = tid, .preemption = *where};

    if (getpid() != conductor->pid || !conductor->asked || conductor->asked->tid != tid)
        return post(conductor, &request);
    conductor->asked->preemption = *where;
    return 0;
}

int conductor_registers(const struct conductor_stop *stop, struct user_regs_struct *ret_registers)
{
    return ptrace(PTRACE_GETREGS, stop->tid, NULL, ret_registers) ? -errno : 0;
}

struct conductor_counts conductor_counts(const struct conductor *conductor)
{
    const struct conductor_counters *counts = &conductor->counts;

    return (struct conductor_counts){
        .stops = counts->stops,
        .holds = counts->holds,
        .let_go = counts->let_go,
        .timed_out = counts->timed_out,
        .ended = counts->ended,
        .refused = counts->refused,
        .preempted = counts->preempted,
        .preempt_failed = counts->preempt_failed,
        .foreign = counts->foreign,
        .signals = counts->signals,
        .held_ns = counts->held_ns,
    };
}

void conductor_free(struct conductor *conductor)
{
    if (!conductor)
        return;
    close(conductor->requests);
    conductor->requests = -1;
    pthread_join(conductor->host, NULL);
    release(conductor);
}
