/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/aside.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define LIMIT_AFTER_LOSSES_NS 200000000u
#define LOSSES_IN_PATIENCE 3
#define STARVED_MOST_NS 5000000000u /* that it may want a processor in vain */
#define POLL_MS 50
#define KEPT ((size_t)1 << 20) /* of the reply's memory from one piece of work to the next */

/* What both processes see. */
struct area {
    uint8_t request[ASIDE_REQUEST_MOST];
    uint8_t reply[ASIDE_REPLY_MOST];
};

static struct helper {
    pid_t maker, pid; /* 0: there is none */
    int socket;
    struct area *area;
    unsigned losses;
} helper;

static struct {
    pid_t one, other; /* processes that share this memory; 0: there is one alone */
} sharers;

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

/* ------------------------------------------------------------------------------------ the other side */

/* Sends a number, and a descriptor unless that is -1. */
static bool send_answer(int socket, int answer, int fd)
{
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {&answer, sizeof(answer)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (fd >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof(control);
        *CMSG_FIRSTHDR(&message) = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof(fd)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &fd, sizeof(fd));
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)sizeof(answer);
}

static void serve(int socket, struct area *area)
{
    aside_work work;
    bool good = true;

    while (good && recv(socket, (void *)&work, sizeof(work), 0) == (ssize_t)sizeof(work)) {
        int fd = -1;
        int answer = work(area->request, area->reply, sizeof(area->reply), &fd);

        good = send_answer(socket, answer, fd);
        if (fd >= 0)
            close(fd);
    }
}

/* Out of the way of what is sent to our group, and gone when we are. */
_Noreturn static void helper_main(int socket, struct area *area, pid_t maker)
{
    const struct sched_param first = {.sched_priority = 1};

    setsid();
    prctl(PR_SET_NAME, "tracectl-aside");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sched_setscheduler(0, SCHED_FIFO, &first); /* where it may not, it takes its turn */
    if (socket)
        close_range(0, (unsigned)socket - 1, 0);
    close_range((unsigned)socket + 1, ~0u, 0);
    if (getppid() == maker)
        serve(socket, area);
    _exit(0);
}

/* ------------------------------------------------------------------------------------ this side */

static void forget(void)
{
    munmap(helper.area, sizeof(*helper.area));
    helper = (struct helper){.losses = helper.losses};
}

static bool shares_with(pid_t pid)
{
    return sharers.other && ((pid == sharers.one && getpid() == sharers.other) ||
                             (pid == sharers.other && getpid() == sharers.one));
}

/* Whether we have one; one that our parent had is not ours. Nor may its descriptor be any more. */
static bool is_there(void)
{
    if (helper.maker && helper.maker != getpid() && !shares_with(helper.maker))
        forget();
    return helper.area;
}

/* It may be in the middle of something that cannot be interrupted; then it is reaped with us. */
static void leave_behind(void)
{
    kill(helper.pid, SIGKILL);
    waitpid(helper.pid, NULL, WNOHANG | __WALL);
    close(helper.socket);
    forget();
}

static int start(void)
{
    sigset_t all, before;
    int sockets[2];
    pid_t maker = getpid(), pid;
    struct area *area =
        mmap(NULL, sizeof(*area), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (area == MAP_FAILED || !area)
        return -ENOMEM;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets)) {
        int r = -errno;

        munmap(area, sizeof(*area));
        return r;
    }
    sigfillset(&all); /* no handler of ours runs in it */
    pthread_sigmask(SIG_BLOCK, &all, &before);
    /* It tells nobody when it ends: who waits for commands is not to meet it. */
    pid = (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);
    if (!pid)
        helper_main(sockets[1], area, maker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(sockets[1]);
    if (pid < 0) {
        close(sockets[0]);
        munmap(area, sizeof(*area));
        return -EAGAIN;
    }
    helper = (struct helper){maker, pid, sockets[0], area, helper.losses};
    return 0;
}

/* Whether it is on its way and wants a processor. */
static bool is_running(pid_t pid)
{
    char path[64], text[128] = "";
    const char *name_end;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
        return false;
    name_end = strrchr(text, ')');
    return name_end && !strncmp(name_end, ") R", 3);
}

/* The processor time that it has had; a fault that is served again and again takes it. */
static uint64_t used_ns(pid_t pid)
{
    struct timespec used;
    clockid_t clock;

    if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &used))
        return 0;
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

static uint64_t limit_of(const struct aside_job *job)
{
    uint64_t limit = helper.losses < LOSSES_IN_PATIENCE ? ASIDE_LIMIT_NS : LIMIT_AFTER_LOSSES_NS;

    return job->limit_ns && job->limit_ns < limit ? job->limit_ns : limit;
}

/* Waits for the answer. `*ret_spent`: without the time in which it only waited for a processor. */
static int await(uint64_t limit, uint64_t *ret_spent)
{
    struct pollfd answer = {.fd = helper.socket, .events = POLLIN};
    uint64_t start_ns = clock_ns(CLOCK_MONOTONIC), looked_ns = start_ns, used = 0, spent = 0;

    for (bool first = true;; first = false) {
        int r = poll(&answer, 1, POLL_MS);
        uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), now_used;

        if (first && r > 0) /* as nearly always */
            spent = now_ns - start_ns;
        *ret_spent = spent;
        if (r > 0)
            return 0;
        if (r < 0 && errno != EINTR)
            return -errno;
        now_used = used_ns(helper.pid);
        if (!is_running(helper.pid))
            spent += now_ns - looked_ns;
        else if (!first && now_used > used)
            spent += now_used - used;
        used = now_used;
        looked_ns = now_ns;
        *ret_spent = spent;
        if (spent >= limit || now_ns - start_ns - spent >= STARVED_MOST_NS)
            return -ETIMEDOUT;
    }
}

static int receive(int *ret_fd)
{
    char control[CMSG_SPACE(sizeof(int))] = {0};
    int answer = 0, fd = -1;
    struct iovec part = {&answer, sizeof(answer)};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};

    if (recvmsg(helper.socket, &message, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(answer))
        return -EPIPE; /* it has been killed */
    if (CMSG_FIRSTHDR(&message) && CMSG_FIRSTHDR(&message)->cmsg_type == SCM_RIGHTS)
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
    else if (message.msg_flags & MSG_CTRUNC)
        return -EMFILE;
    if (ret_fd)
        *ret_fd = fd;
    else if (fd >= 0)
        close(fd);
    return answer;
}

/* -EPIPE: there is no helper any more, and the work may be tried again. */
static int try(const struct aside_job *job, uint64_t *ret_spent)
{
    int r = is_there() ? 0 : start();

    if (r || !helper.area)
        return r;
    memcpy(helper.area->request, job->request, job->request_size);
    if (send(helper.socket, (const void *)&job->work, sizeof(job->work), MSG_NOSIGNAL) < 0)
        r = -EPIPE;
    if (!r)
        r = await(limit_of(job), ret_spent);
    if (!r)
        return receive(job->ret_fd);
    helper.losses += r == -ETIMEDOUT;
    return r;
}

static int deliver(const struct aside_job *job, struct area *area, size_t size)
{
    if (size > ASIDE_REPLY_MOST)
        return -EOVERFLOW;
    if (job->reply)
        memcpy(job->reply, area->reply, size < job->room ? size : job->room);
    if (job->ret_text) {
        *job->ret_text = malloc(size + 1);
        if (!*job->ret_text)
            return -ENOMEM;
        memcpy(*job->ret_text, area->reply, size);
        (*job->ret_text)[size] = '\0';
    }
    if (size > KEPT)
        madvise(area->reply, sizeof(area->reply), MADV_REMOVE);
    return (int)size;
}

int aside_do(const struct aside_job *job)
{
    uint64_t spent = 0;
    int r;

    if (job->request_size > ASIDE_REQUEST_MOST)
        return -EINVAL;
    if (job->ret_fd)
        *job->ret_fd = -1;
    pthread_mutex_lock(&turn);
    r = try(job, &spent);
    if (r == -EPIPE) {
        leave_behind();
        r = try(job, &spent);
    }
    if (job->ret_spent_ns)
        *job->ret_spent_ns = spent;
    if (r >= 0 && helper.area)
        r = deliver(job, helper.area, (size_t)r);
    else if (is_there() && (r == -ETIMEDOUT || r == -EPIPE))
        leave_behind();
    pthread_mutex_unlock(&turn);
    return r;
}

void aside_share(pid_t pid)
{
    pthread_mutex_lock(&turn);
    sharers.one = getpid();
    sharers.other = pid;
    pthread_mutex_unlock(&turn);
}

void aside_stop(void)
{
    pthread_mutex_lock(&turn);
    if (is_there())
        leave_behind();
    pthread_mutex_unlock(&turn);
}
