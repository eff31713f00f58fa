/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/array.h"
#include "base/aside.h"
#include "base/clock.h"
#include "base/error.h"
#include "collector/tracer/tracer_state.h"

#define LOOK_MS 1000 /* for what is held too long */

struct request {
    int (*function)(struct tracer *tracer, void *argument);
    void *argument;
};

/* ------------------------------------------------------------------------------------ the tracer's process */

static void answer(struct tracer *tracer, int result)
{
    tracer->answer = result;
    sem_post(&tracer->answered);
}

/* Returns false when there will be no more. */
static bool handle_request(struct tracer *tracer)
{
    struct request request;
    ssize_t got = read(tracer->inbox, &request, sizeof(request));

    if (got == (ssize_t)sizeof(request))
        answer(tracer, request.function(tracer, request.argument));
    return got != 0;
}

static void wait_for_more(const struct tracer *tracer)
{
    struct pollfd sources[] = {{.fd = tracer->child_fd, .events = POLLIN},
                               {.fd = tracer->inbox, .events = POLLIN}};
    struct signalfd_siginfo signals;

    poll(sources, ARRAY_SIZE(sources), LOOK_MS);
    if (sources[0].revents) /* one stands for all that came: it is taken before they are looked at */
        (void)!read(tracer->child_fd, &signals, sizeof(signals));
}

static int tracer_main(void *context)
{
    struct tracer *tracer = context;
    bool more = true;

    prctl(PR_SET_NAME, "tracectl-trace");
    tracer->pid = getpid();
    answer(tracer, 0);
    while (more) { /* in turns, so that a flood of signals does not hold up requests */
        if (!tracer_handle_one(tracer)) {
            tracer_release_overdue(tracer, clock_ns(CLOCK_MONOTONIC));
            wait_for_more(tracer);
        }
        more = handle_request(tracer);
    }
    return 0; /* the kernel lets all of them go */
}

/* ------------------------------------------------------------------------------------ what others call */

static void on_end(void *context, int why)
{
    struct tracer *tracer = context;

    tracer->gone = true;
    answer(tracer, why ? why : -ESRCH);
}

static int wait_for_answer(struct tracer *tracer)
{
    while (sem_wait(&tracer->answered))
        ;
    return tracer->answer;
}

int tracer_ask(struct tracer *tracer, int (*function)(struct tracer *tracer, void *argument), void *argument)
{
    const struct request request = {function, argument};
    int r;

    if (getpid() == tracer->pid)
        return function(tracer, argument);
    if (tracer->gone)
        return -ESRCH;
    pthread_mutex_lock(&tracer->asking);
    r = write(tracer->requests, &request, sizeof(request)) < 0 ? -errno : wait_for_answer(tracer);
    if (tracer->gone) /* for the next one that asks */
        sem_post(&tracer->answered);
    pthread_mutex_unlock(&tracer->asking);
    return r;
}

static int start(struct tracer *tracer)
{
    sigset_t child;
    int ends[2], r = record_queue_init(&tracer->queue);

    if (r)
        return r;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
        return -errno;
    tracer->inbox = ends[0];
    tracer->requests = ends[1];
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    tracer->child_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    if (tracer->child_fd < 0)
        return -errno;
    tracer->process = (struct shared_process){tracer_main, on_end, tracer, 0, 0};
    r = shared_process_start(&tracer->process);
    if (r)
        return r;
    r = wait_for_answer(tracer);
    if (r)
        shared_process_join(&tracer->process);
    return r;
}

static void release(struct tracer *tracer)
{
    const int fds[] = {tracer->requests, tracer->inbox, tracer->child_fd};

    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    record_queue_release(&tracer->queue);
    tracer_free_table(tracer);
    sem_destroy(&tracer->answered);
    pthread_mutex_destroy(&tracer->asking);
    pthread_mutex_destroy(&tracer->table);
    free(tracer);
}

int tracer_new(bool follow_children, struct tracer **ret_tracer, struct error *err)
{
    struct tracer *tracer = calloc(1, sizeof(*tracer));
    int r;

    if (!tracer)
        return error_no_memory(err);
    tracer->source.of = &tracer_operations;
    tracer->follow_children = follow_children;
    tracer->requests = tracer->inbox = tracer->child_fd = tracer->queue.wakeup = -1;
    sem_init(&tracer->answered, 0, 0);
    pthread_mutex_init(&tracer->asking, NULL);
    pthread_mutex_init(&tracer->table, NULL);
    r = start(tracer);
    if (r) {
        release(tracer);
        return error_set(err, r, NULL, "cannot start the process that traces");
    }
    tracer->visits =
        (struct remote_tracer){.maker = getpid(), .pid = tracer->pid, .with_stopped = tracer_with_stopped};
    aside_share(tracer->pid);
    remote_trace_by(&tracer->visits);
    *ret_tracer = tracer;
    return 0;
}

void tracer_free(struct tracer *tracer)
{
    if (!tracer)
        return;
    remote_trace_by(NULL);
    close(tracer->requests);
    tracer->requests = -1;
    shared_process_join(&tracer->process);
    aside_share(0);
    release(tracer);
}

struct life_cycle_source *tracer_life_cycle(struct tracer *tracer)
{
    return &tracer->source;
}
