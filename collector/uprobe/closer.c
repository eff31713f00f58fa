/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/uprobe/closer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "collector/uprobe/proxy.h"

void closer_close_once(int *fd)
{
    int own = *fd;

    *fd = -1;
    if (own >= 0)
        close(own);
}

static int close_one(void *context)
{
    closer_close_once(context);
    return 0;
}

static void *close_all(void *context)
{
    struct closer *closer = context;
    int fd;

    while (read(closer->pipe[0], &fd, sizeof(fd)) == (ssize_t)sizeof(fd)) {
        while (proxy_do(close_one, &fd) == -EINTR)
            ; /* it was killed */
        __atomic_fetch_sub(&closer->pending, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* One thread more. Returns whether there is any. */
static bool start(struct closer *closer)
{
    sigset_t all, before;

    if (!closer->count && pipe2(closer->pipe, O_CLOEXEC))
        return false;
    sigfillset(&all); /* signals are for the thread that records */
    pthread_sigmask(SIG_BLOCK, &all, &before);
    if (!pthread_create(&closer->threads[closer->count], NULL, close_all, closer))
        closer->count++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (closer->count)
        return true;
    close(closer->pipe[0]);
    close(closer->pipe[1]);
    return false;
}

void closer_close(struct closer *closer, int fd)
{
    bool busy = closer_pending(closer) >= closer->count && closer->count < CLOSER_THREADS;

    if (busy && !start(closer)) {
        close(fd);
        return;
    }
    __atomic_fetch_add(&closer->pending, 1, __ATOMIC_RELAXED);
    if (write(closer->pipe[1], &fd, sizeof(fd)) == (ssize_t)sizeof(fd))
        return;
    __atomic_fetch_sub(&closer->pending, 1, __ATOMIC_RELAXED);
    close(fd);
}

unsigned closer_pending(const struct closer *closer)
{
    return __atomic_load_n(&closer->pending, __ATOMIC_RELAXED);
}

void closer_release(struct closer *closer)
{
    if (!closer->count)
        return;
    close(closer->pipe[1]);
    while (closer->count)
        pthread_join(closer->threads[--closer->count], NULL);
    close(closer->pipe[0]);
}
