/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The thread holder's process shares all memory with its maker's (shared_process.h).
 *
 * Others speak to it through a pipe, which takes a request whole or not at all. It answers one of them,
 * THREAD_HOLDER_SEIZE, by a semaphore. The host posts the same semaphore when the child has died, so that
 * no thread waits for ever.
 */
#include "collector/ptrace/thread_holder.h"

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
#include "base/error.h"
#include "collector/ptrace/thread_holder_state.h"
#include "collector/ptrace/thread_holder_tracees.h"

/* ------------------------------------------------------------------------------------ the thread holder's
 * process
 */

static void answer(struct thread_holder *holder, int result)
{
    holder->answer = result;
    sem_post(&holder->answered);
}

static void on_request(struct thread_holder *holder, const struct thread_holder_request *request)
{
    switch (request->kind) {
    case THREAD_HOLDER_SEIZE:
        answer(holder, tracees_seize(request->tid));
        break;
    case THREAD_HOLDER_LET_GO:
        tracees_let_go(holder, request->tid, NULL);
        break;
    case THREAD_HOLDER_PREEMPT:
        tracees_let_go(holder, request->tid, &request->preemption);
        break;
    }
}

/* Returns false when there will be no more. */
static bool handle_requests(struct thread_holder *holder)
{
    struct thread_holder_request requests[16];
    ssize_t got = read(holder->inbox, requests, sizeof(requests));

    for (ssize_t i = 0; i < got / (ssize_t)sizeof(*requests); i++)
        on_request(holder, &requests[i]);
    return got != 0;
}

/* Waits until something comes or the time (CLOCK_MONOTONIC) is over. */
static void wait_until(struct thread_holder *holder, uint64_t end)
{
    struct pollfd sources[] = {{.fd = holder->child_fd, .events = POLLIN},
                               {.fd = holder->inbox, .events = POLLIN}};
    uint64_t now = clock_ns(CLOCK_MONOTONIC), left = end > now ? end - now : 0;
    const struct timespec timeout = {(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
    struct signalfd_siginfo signals;

    ppoll(sources, ARRAY_SIZE(sources), end == UINT64_MAX ? NULL : &timeout, NULL);
    if (sources[0].revents) /* one stands for all that came: it is taken before they are looked at */
        (void)!read(holder->child_fd, &signals, sizeof(signals));
}

/* Ahead of the targets, which may well occupy all processors; and wakes on time. Without the right to the
 * former it is slower. */
static void be_quick(void)
{
    const struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};

    prctl(PR_SET_TIMERSLACK, 1);
    sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &lowest);
}

static int thread_holder_main(void *argument)
{
    struct thread_holder *holder = argument;
    bool more = true;

    prctl(PR_SET_NAME, "tracectl-hold");
    be_quick();
    holder->pid = getpid();
    answer(holder, 0);
    while (more) { /* in turns, so that a flood of signals holds up neither requests nor the ends of holds */
        uint64_t next = tracees_end_overdue(holder, clock_ns(CLOCK_MONOTONIC));

        if (!tracees_handle_one(holder))
            wait_until(holder, next);
        more = handle_requests(holder);
    }
    tracees_detach_held(holder);
    return 0; /* which is _exit(): the kernel lets all others go */
}

/* ------------------------------------------------------------------------------------ its maker */

static void on_end(void *argument, int why)
{
    struct thread_holder *holder = argument;

    holder->gone = !why;
    answer(holder, why ? why : -ESRCH);
}

static int wait_for_answer(struct thread_holder *holder)
{
    while (sem_wait(&holder->answered))
        ;
    return holder->answer;
}

static int start_host(struct thread_holder *holder)
{
    int r;

    holder->process = (struct shared_process){thread_holder_main, on_end, holder, 0, 0};
    r = shared_process_start(&holder->process);
    if (r)
        return r;
    r = wait_for_answer(holder);
    if (r)
        shared_process_join(&holder->process);
    return r;
}

static int open_descriptors(struct thread_holder *holder)
{
    sigset_t child;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
        return -errno;
    holder->inbox = ends[0];
    holder->requests = ends[1];
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    holder->child_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    return holder->child_fd < 0 ? -errno : 0;
}

static void release(struct thread_holder *holder)
{
    const int fds[] = {holder->requests, holder->inbox, holder->child_fd};

    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    sem_destroy(&holder->answered);
    pthread_mutex_destroy(&holder->seizing);
    free(holder);
}

/* ------------------------------------------------------------------------------------------ what others call
 */

int thread_holder_new(const struct thread_holder_options *options, struct thread_holder **ret_holder,
                      struct error *err)
{
    struct thread_holder *holder = calloc(1, sizeof(*holder));
    int r;

    if (!holder)
        return error_no_memory(err);
    holder->options = *options;
    holder->requests = holder->inbox = holder->child_fd = -1;
    sem_init(&holder->answered, 0, 0);
    pthread_mutex_init(&holder->seizing, NULL);
    r = open_descriptors(holder);
    if (!r)
        r = start_host(holder);
    if (r) {
        release(holder);
        return error_set(err, r, NULL, "cannot start the process that holds threads");
    }
    *ret_holder = holder;
    return 0;
}

pid_t thread_holder_pid(const struct thread_holder *holder)
{
    return holder->pid;
}

static int post(struct thread_holder *holder, const struct thread_holder_request *request)
{
    if (holder->gone)
        return -ESRCH;
    return write(holder->requests, request, sizeof(*request)) < 0 ? -errno : 0;
}

int thread_holder_seize(struct thread_holder *holder, pid_t pid, struct error *err)
{
    const struct thread_holder_request request = {.kind = THREAD_HOLDER_SEIZE, .tid = pid};
    const char *remedy;
    int r;

    pthread_mutex_lock(&holder->seizing);
    r = post(holder, &request);
    if (!r)
        r = wait_for_answer(holder);
    pthread_mutex_unlock(&holder->seizing);
    if (!r)
        return 0;
    remedy = r == -EPERM ? "end the debugger that traces it, or run as root" : NULL;
    return error_set(err, r, remedy, "cannot trace process %d", (int)pid);
}

int thread_holder_let_go(struct thread_holder *holder, pid_t tid)
{
    const struct thread_holder_request request = {.kind = THREAD_HOLDER_LET_GO, .tid = tid};

    return post(holder, &request);
}

int thread_holder_preempt(struct thread_holder *holder, pid_t tid,
                          const struct thread_holder_preemption *where)
{
    const struct thread_holder_request request = {
        .kind = THREAD_HOLDER_PREEMPT, .tid = tid, .preemption = *where};

    if (getpid() != holder->pid || !holder->asked || holder->asked->tid != tid)
        return post(holder, &request);
    holder->asked->preemption = *where;
    return 0;
}

int thread_holder_registers(const struct thread_holder_stop *stop, struct user_regs_struct *ret_registers)
{
    return ptrace(PTRACE_GETREGS, stop->tid, NULL, ret_registers) ? -errno : 0;
}

struct thread_holder_counts thread_holder_counts(const struct thread_holder *holder)
{
    const struct thread_holder_counters *counts = &holder->counts;

    return (struct thread_holder_counts){
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

void thread_holder_free(struct thread_holder *holder)
{
    if (!holder)
        return;
    close(holder->requests);
    holder->requests = -1;
    shared_process_join(&holder->process);
    release(holder);
}
