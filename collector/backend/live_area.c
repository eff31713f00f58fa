/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/backend/live_area.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "collector/target/limits.h"

#define PAGE 4096u

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

/* A call of the kernel that must not fail. */
static int call(struct remote *remote, const char *what, int64_t *ret_result, struct error *err, long number,
                uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
    const uint64_t arguments[6] = {a, b, c, d, e, f};
    int r = remote_call(remote, number, arguments, ret_result, err);

    if (!r && *ret_result < 0 && *ret_result > -4096)
        r = error_set(err, (int)*ret_result, NULL, "process %d: %s", (int)remote_pid(remote), what);
    return r == -ENOMEM ? -ENOSPC : r; /* it is the target that lacks it, not this process */
}

/* The page in the target that messages are put together in. */
struct letter {
    struct msghdr header;
    struct iovec text;
    char byte;
    int sockets[2];
    char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));
};

/* Sends the descriptor `fd` through the target's own socket `theirs`. */
static int send_descriptor(pid_t pid, int theirs, int fd)
{
    AUTO_CLOSE int process = (int)syscall(SYS_pidfd_open, pid, 0), socket = -1;
    char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = {0}, byte = 0;
    struct iovec text = {&byte, 1};
    struct msghdr header = {
        .msg_iov = &text, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    struct cmsghdr *message = CMSG_FIRSTHDR(&header);

    if (process < 0)
        return -errno;
    socket = (int)syscall(SYS_pidfd_getfd, process, theirs, 0);
    if (socket < 0)
        return -errno;
    message->cmsg_level = SOL_SOCKET;
    message->cmsg_type = SCM_RIGHTS;
    message->cmsg_len = CMSG_LEN(sizeof(fd));
    memcpy(CMSG_DATA(message), &fd, sizeof(fd));
    return sendmsg(socket, &header, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Lets the target receive it; `page` is memory of its own. */
static int receive_descriptor(struct remote *remote, uint64_t page, int socket, int *ret_fd,
                              struct error *err)
{
    struct letter letter = {
        .header = {.msg_iov = (void *)(page + offsetof(struct letter, text)),
                   .msg_iovlen = 1,
                   .msg_control = (void *)(page + offsetof(struct letter, control)),
                   .msg_controllen = sizeof(letter.control)},
        .text = {(void *)(page + offsetof(struct letter, byte)), 1},
    };
    int64_t result;
    int r;

    if (remote_write(remote, page, &letter, sizeof(letter)))
        return error_say(err, -EIO, "cannot write to process %d", (int)remote_pid(remote));
    r = call(remote, "cannot receive the shared memory", &result, err, SYS_recvmsg, (uint64_t)socket, page,
             MSG_CMSG_CLOEXEC, 0, 0, 0);
    if (r)
        return r;
    if (remote_read(remote, page + offsetof(struct letter, control) + CMSG_LEN(0), ret_fd, sizeof(*ret_fd)))
        return error_say(err, -EIO, "cannot read process %d", (int)remote_pid(remote));
    return 0;
}

/* Opens the area in the target: a descriptor that it has for a moment. By way of a message, since the target
 * may have other rights, or another /proc, than the collector. */
static int bring_descriptor(struct remote *remote, uint64_t page, int fd, int *ret_fd, struct error *err)
{
    int64_t ignored;
    int sockets[2];
    int r = call(remote, "cannot make sockets", &ignored, err, SYS_socketpair, AF_UNIX,
                 SOCK_DGRAM | SOCK_CLOEXEC, 0, page + offsetof(struct letter, sockets), 0, 0);

    if (r)
        return r;
    if (remote_read(remote, page + offsetof(struct letter, sockets), sockets, sizeof(sockets)))
        return error_say(err, -EIO, "cannot read process %d", (int)remote_pid(remote));
    r = send_descriptor(remote_pid(remote), sockets[0], fd);
    if (r)
        error_set(err, r, NULL, "cannot send shared memory to process %d", (int)remote_pid(remote));
    else
        r = receive_descriptor(remote, page, sockets[1], ret_fd, err);
    for (int i = 0; i < 2; i++)
        call(remote, "cannot close a socket", &ignored, NULL, SYS_close, (uint64_t)sockets[i], 0, 0, 0, 0, 0);
    return r;
}

/* The page that forked children have zeros in. */
static int map_key(struct remote *remote, const struct live_patch *patch, struct error *err)
{
    const struct agent_key first = {.key = 1u << AGENT_KEY_SHIFT};
    uint64_t page = patch->head + AGENT_KEY_OFFSET;
    int64_t result;
    int r = call(remote, "cannot map the key", &result, err, SYS_mmap, page, AGENT_KEY_BYTES,
                 PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, UINT64_MAX, 0);

    if (!r)
        r = call(remote, "cannot have the key wiped", &result, err, SYS_madvise, page, AGENT_KEY_BYTES,
                 MADV_WIPEONFORK, 0, 0, 0);
    if (!r && remote_write(remote, page, &first, sizeof(first)))
        r = error_say(err, -EIO, "cannot write to process %d", (int)remote_pid(remote));
    return r;
}

/* The files that a target needs, by its own descriptors: it has them for a moment. */
struct files {
    int area, agent;
};

/* The rings go where the kernel puts whatever a program maps: elsewhere they may be in the way of memory that
 * it wants at addresses of its own choice (the shadow of sanitizers, reserved heaps). */
static int map_area(struct remote *remote, const struct live_patch *patch, const struct files *files,
                    struct error *err)
{
    struct agent_area *area = patch->area;
    int64_t stubs = 0, rings = 0, ignored;
    int r = call(remote, "cannot map the stubs", &stubs, err, SYS_mmap, patch->head, area->near_bytes,
                 PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED_NOREPLACE, (uint64_t)files->area, 0);

    if (r)
        return r;
    if ((uint64_t)stubs != patch->head)
        r = error_say(err, -EEXIST, "process %d has other memory there", (int)remote_pid(remote));
    if (!r)
        r = call(remote, "cannot map the head", &ignored, err, SYS_mprotect, patch->head, AGENT_HEAD_BYTES,
                 PROT_READ | PROT_WRITE, 0, 0, 0);
    if (!r)
        r = map_key(remote, patch, err);
    if (!r)
        r = call(remote, "cannot map the agent", &ignored, err, SYS_mmap, patch->head + AGENT_SLOW_OFFSET,
                 AGENT_CODE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, (uint64_t)files->agent, 0);
    if (!r)
        r = call(remote, "cannot map the rings", &rings, err, SYS_mmap, 0, area->apart_bytes,
                 PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, (uint64_t)files->area, area->near_bytes);
    if (r)
        call(remote, "cannot unmap the stubs", &ignored, NULL, SYS_munmap, (uint64_t)stubs, area->near_bytes,
             0, 0, 0, 0);
    else
        agent_area_placed(area, (uint64_t)rings);
    return r;
}

int live_area_bring(struct remote *remote, const struct live_patch *patch, struct error *err)
{
    uint64_t locked = process_locked_bytes(remote_pid(remote));
    struct files files = {-1, -1};
    int64_t page, ignored;
    int r;

    r = call(remote, "cannot map a page", &page, err, SYS_mmap, 0, PAGE, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0);
    if (r)
        return r;
    if (process_locked_bytes(remote_pid(remote)) > locked)
        r = error_say(err, -ENOTSUP, "all that it maps is locked in memory (mlockall)");
    if (!r)
        r = bring_descriptor(remote, (uint64_t)page, patch->area->fd, &files.area, err);
    if (!r)
        r = bring_descriptor(remote, (uint64_t)page, patch->agent, &files.agent, err);
    if (!r)
        r = map_area(remote, patch, &files, err);
    if (files.area >= 0)
        call(remote, "cannot close a file", &ignored, NULL, SYS_close, (uint64_t)files.area, 0, 0, 0, 0, 0);
    if (files.agent >= 0)
        call(remote, "cannot close a file", &ignored, NULL, SYS_close, (uint64_t)files.agent, 0, 0, 0, 0, 0);
    call(remote, "cannot unmap a page", &ignored, NULL, SYS_munmap, (uint64_t)page, PAGE, 0, 0, 0, 0);
    return r;
}
