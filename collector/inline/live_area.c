/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/inline/live_area.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "collector/inline/stale_patches.h"
#include "collector/process/limits.h"
#include "collector/process/proc_numbers.h"
#include "collector/process/process.h"

#define PAGE 4096u

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL /* Linux 6.9 */
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

/* What messages are put together in, in the target. */
struct letter {
    struct msghdr header;
    struct iovec text;
    char byte;
    int sockets[2];
    char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));
};

_Static_assert(sizeof(struct letter) <= REMOTE_SCRATCH_BYTES, "a letter fits");

/* Sends the descriptor `fd` through the target's own socket `theirs`. -ENOTSUP: its first thread has ended, and before
 * Linux 6.9 others cannot be named. */
static int send_descriptor(pid_t pid, int theirs, int fd)
{
    pid_t shown = process_shown_thread(pid);
    AUTO_CLOSE int process = (int)syscall(SYS_pidfd_open, shown, shown == pid ? 0 : PIDFD_THREAD),
                   socket = -1;
    char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = {0}, byte = 0;
    struct iovec text = {&byte, 1};
    struct msghdr header = {
        .msg_iov = &text, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    struct cmsghdr *message = CMSG_FIRSTHDR(&header);

    if (process < 0)
        return errno == EINVAL ? -ENOTSUP : -errno;
    socket = (int)syscall(SYS_pidfd_getfd, process, theirs, 0);
    if (socket < 0)
        return -errno;
    message->cmsg_level = SOL_SOCKET;
    message->cmsg_type = SCM_RIGHTS;
    message->cmsg_len = CMSG_LEN(sizeof(fd));
    memcpy(CMSG_DATA(message), &fd, sizeof(fd));
    return sendmsg(socket, &header, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Lets the target receive it, at once: a process that shares its descriptors might have been faster. `page`
 * is memory of its own. */
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
    struct cmsghdr message = {0};
    int64_t result;
    int r;

    if (remote_write(remote, page, &letter, sizeof(letter)))
        return error_say(err, -EIO, "cannot write to process %d", (int)remote_pid(remote));
    r = call(remote, "cannot receive the shared memory", &result, err, SYS_recvmsg, (uint64_t)socket, page,
             MSG_CMSG_CLOEXEC | MSG_DONTWAIT, 0, 0, 0);
    if (r)
        return r;
    if (remote_read(remote, page + offsetof(struct letter, control), &message, sizeof(message)) ||
        remote_read(remote, page + offsetof(struct letter, control) + CMSG_LEN(0), ret_fd, sizeof(*ret_fd)))
        return error_say(err, -EIO, "cannot read process %d", (int)remote_pid(remote));
    if (message.cmsg_len != CMSG_LEN(sizeof(int)) || message.cmsg_type != SCM_RIGHTS)
        return error_say(err, -EMFILE, "process %d has received no descriptor", (int)remote_pid(remote));
    return 0;
}

/* ------------------------------------------------------------------------------------ descriptors */

/* The descriptors that a target has for a moment: it gets the lowest numbers that are free, and closes them
 * should this process be killed. */
enum file { FILE_HEAD, FILE_AGENT, FILE_STUBS, FILE_DATA, FILE_FILTERED, FILES };

struct descriptors {
    uint64_t page;       /* the target's memory for letters */
    int free[2 + FILES]; /* two sockets, and the files */
    size_t count;        /* how many of them are used */
    int ours[FILES];     /* -1: the target does not get that file */
    uint64_t theirs[FILES];
};

static int compare_numbers(const void *a, const void *b)
{
    const int *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

/* The lowest numbers that are not in use as descriptors. -ENOMEM or -ESRCH. */
static int find_free(pid_t pid, pid_t tid, int *ret_free, size_t count)
{
    AUTO_FREE int *used = NULL;
    size_t used_count = 0, capacity = 0, found = 0, at = 0;
    AUTO_PROC_NUMBERS numbers;
    char path[64];
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/fd", (int)pid, (int)tid);
    if (proc_numbers_open(&numbers, path))
        return -ESRCH;
    while ((fd = proc_numbers_next(&numbers)) >= 0) {
        if (array_reserve(&used, &capacity, used_count + 1))
            return -ENOMEM;
        used[used_count++] = fd;
    }
    if (used_count)
        qsort(used, used_count, sizeof(*used), compare_numbers);
    for (int number = 0; found < count; number++) {
        if (at < used_count && used[at] == number)
            at++;
        else
            ret_free[found++] = number;
    }
    return 0;
}

/* Whether another process has the same table of descriptors as a thread: it could take what is sent there, or
 * put something else in its place. */
static bool shares_descriptors(pid_t pid, pid_t tid)
{
    AUTO_PROC_NUMBERS pids;
    pid_t other;

    proc_numbers_open(&pids, "/proc");
    while ((other = proc_numbers_next(&pids)) > 0)
        if (other != pid && !syscall(SYS_kcmp, tid, other, KCMP_FILES, 0, 0))
            return true;
    return false;
}

/* Prepares the closing of a descriptor. */
static int will_close(struct remote *remote, int fd, struct error *err)
{
    const uint64_t arguments[6] = {(uint64_t)fd};

    return remote_undo(remote, SYS_close, arguments, err);
}

static void close_in_target(struct remote *remote, int fd)
{
    int64_t ignored;

    call(remote, "cannot close a descriptor", &ignored, NULL, SYS_close, (uint64_t)fd, 0, 0, 0, 0, 0);
    remote_undo_drop(remote);
}

/* Opens a file of ours in the target, as the descriptor that is `expected`. By way of a message, since the
 * target may have other rights, or another /proc, than the collector. */
static int bring_descriptor(struct remote *remote, const struct descriptors *descriptors, int fd,
                            int expected, struct error *err)
{
    pid_t pid = remote_pid(remote);
    int64_t ignored;
    int got = -1, r = send_descriptor(pid, descriptors->free[0], fd);

    if (r)
        return error_set(err, r, NULL, "cannot send shared memory to process %d", (int)pid);
    r = receive_descriptor(remote, descriptors->page, descriptors->free[1], &got, err);
    if (r || got == expected)
        return r;
    call(remote, "cannot close a descriptor", &ignored, NULL, SYS_close, (uint64_t)got, 0, 0, 0, 0, 0);
    return error_say(err, -EBUSY, "something else opens files in process %d", (int)pid);
}

static int bring_files(struct remote *remote, const struct descriptors *descriptors, struct error *err)
{
    int r = 0;

    for (size_t i = 0; !r && i < FILES; i++)
        if (descriptors->ours[i] >= 0)
            r = bring_descriptor(remote, descriptors, descriptors->ours[i], (int)descriptors->theirs[i], err);
    return r;
}

static int make_sockets(struct remote *remote, const struct descriptors *descriptors, struct error *err)
{
    uint64_t address = descriptors->page + offsetof(struct letter, sockets);
    int sockets[2] = {-1, -1};
    int64_t ignored;
    int r = call(remote, "cannot create sockets", &ignored, err, SYS_socketpair, AF_UNIX,
                 SOCK_DGRAM | SOCK_CLOEXEC, 0, address, 0, 0);

    if (r)
        return r;
    if (remote_read(remote, address, sockets, sizeof(sockets)))
        return error_say(err, -EIO, "cannot read process %d", (int)remote_pid(remote));
    if (memcmp(sockets, descriptors->free, sizeof(sockets)) != 0)
        return error_say(err, -EBUSY, "something else opens files in process %d", (int)remote_pid(remote));
    return 0;
}

/* The page that forked children have zeros in. `key`: what it has at first. */
static int map_key(struct remote *remote, const struct live_patch *patch, const struct agent_key *key,
                   struct error *err)
{
    uint64_t page = patch->head + AGENT_KEY_OFFSET;
    int64_t result;
    int r = call(remote, "cannot map the key", &result, err, SYS_mmap, page, AGENT_KEY_BYTES,
                 PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, UINT64_MAX, 0);

    if (!r)
        r = call(remote, "cannot have the key wiped", &result, err, SYS_madvise, page, AGENT_KEY_BYTES,
                 MADV_WIPEONFORK, 0, 0, 0);
    if (!r && remote_write(remote, page, key, sizeof(*key)))
        r = error_say(err, -EIO, "cannot write to process %d", (int)remote_pid(remote));
    return r;
}

static void unmap_near(struct remote *remote, uint64_t start, size_t bytes)
{
    int64_t ignored;

    call(remote, "cannot unmap the stubs", &ignored, NULL, SYS_munmap, start, bytes, 0, 0, 0, 0);
}

/* A part of what lies near the code, by offsets from the head. */
struct part {
    const char *what; /* could not be done */
    uint64_t at;
    size_t bytes;
    unsigned rights, flags;
    uint64_t offset; /* in its file */
};

/* Maps a file over it. */
static int map_part(struct remote *remote, const struct live_patch *patch, const struct descriptors *files,
                    enum file file, const struct part *part, struct error *err)
{
    int64_t ignored;

    return call(remote, part->what, &ignored, err, SYS_mmap, patch->head + part->at, part->bytes,
                part->rights, part->flags | MAP_FIXED, files->theirs[file], part->offset);
}

/* Head and stubs cannot be made writable: see area.h. The whole place is the head's at first: it is found by
 * that, should this process be killed. */
static int map_near(struct remote *remote, const struct live_patch *patch, const struct descriptors *files,
                    const struct agent_key *key, struct error *err)
{
    const struct part agent = {"cannot map the agent", AGENT_SLOW_OFFSET, AGENT_CODE_BYTES,
                               PROT_READ | PROT_EXEC,  MAP_PRIVATE,       0};
    const struct part stubs = {
        "cannot map the stubs", AGENT_STUBS_OFFSET, patch->near_bytes - AGENT_STUBS_OFFSET,
        PROT_READ | PROT_EXEC,  MAP_SHARED,         AGENT_STUBS_OFFSET};
    const struct part marks = {"cannot map the kernel side's marks",
                               AGENT_FILTERED_OFFSET,
                               AGENT_FILTERED_BYTES,
                               PROT_READ,
                               MAP_SHARED,
                               0};
    int64_t place;
    int r = call(remote, "cannot map the head", &place, err, SYS_mmap, patch->head, patch->near_bytes,
                 PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE, files->theirs[FILE_HEAD], 0);

    if (r)
        return r;
    if ((uint64_t)place != patch->head)
        r = error_say(err, -EEXIST, "process %d has other memory there", (int)remote_pid(remote));
    if (!r)
        r = map_key(remote, patch, key, err);
    if (!r)
        r = map_part(remote, patch, files, FILE_AGENT, &agent, err);
    if (!r)
        r = map_part(remote, patch, files, FILE_STUBS, &stubs, err);
    if (!r && files->ours[FILE_FILTERED] >= 0)
        r = map_part(remote, patch, files, FILE_FILTERED, &marks, err);
    if (r)
        unmap_near(remote, (uint64_t)place, patch->near_bytes);
    return r;
}

/* The rings go where the kernel puts whatever a program maps: elsewhere they may be in the way of memory that
 * it wants at addresses of its own choice (the shadow of sanitizers, reserved heaps). */
static int map_rings(struct remote *remote, const struct live_patch *patch, const struct descriptors *files,
                     struct error *err)
{
    int64_t rings = 0;
    int r = call(remote, "cannot map the rings", &rings, err, SYS_mmap, 0, patch->area->apart_bytes,
                 PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, files->theirs[FILE_DATA], 0);

    if (r)
        unmap_near(remote, patch->head, patch->near_bytes);
    else
        agent_area_placed(patch->area, (uint64_t)rings, patch->head);
    return r;
}

/* The key that the process has by now. */
static int read_key(struct remote *remote, const struct live_patch *patch, struct agent_key *ret_key,
                    struct error *err)
{
    return remote_read(remote, patch->area->head->first_key, ret_key, sizeof(*ret_key))
               ? error_say(err, -EIO, "cannot read process %d", (int)remote_pid(remote))
               : 0;
}

static int map_area(struct remote *remote, const struct live_patch *patch, const struct descriptors *files,
                    bool joins, struct error *err)
{
    struct agent_key key = {.key = 1u << AGENT_KEY_SHIFT, .first = 1};
    int r = joins ? read_key(remote, patch, &key, err) : 0;

    if (!r)
        r = map_near(remote, patch, files, &key, err);
    return r || joins ? r : map_rings(remote, patch, files, err);
}

/* Which files the target gets. */
static void list_files(const struct live_patch *patch, bool joins, struct descriptors *descriptors)
{
    descriptors->ours[FILE_HEAD] = patch->area->head_fd;
    descriptors->ours[FILE_AGENT] = patch->agent;
    descriptors->ours[FILE_STUBS] = patch->stubs;
    descriptors->ours[FILE_DATA] = joins ? -1 : patch->area->data_fd;
    descriptors->ours[FILE_FILTERED] = patch->waits ? patch->filtered : -1;
}

/* Finds out which numbers the descriptors will have. */
static int expect_descriptors(struct remote *remote, struct descriptors *descriptors, struct error *err)
{
    pid_t pid = remote_pid(remote), tid = 0;
    int r = remote_caller(remote, &tid, &descriptors->page, err);

    if (r)
        return r;
    if (shares_descriptors(pid, tid))
        return error_say(err, -EBUSY, "process %d shares its descriptors with another process", (int)pid);
    r = find_free(pid, tid, descriptors->free, ARRAY_SIZE(descriptors->free));
    if (r)
        return error_set(err, r, NULL, "cannot read the descriptors of process %d", (int)pid);
    descriptors->count = 2;
    for (size_t i = 0; i < FILES; i++)
        if (descriptors->ours[i] >= 0)
            descriptors->theirs[i] = (uint64_t)descriptors->free[descriptors->count++];
    return 0;
}

/* Has the target open the files. It has all of the descriptors then, or none. */
static int open_files(struct remote *remote, const struct descriptors *descriptors, struct error *err)
{
    size_t prepared = 0;
    int r = 0;

    while (!r && prepared < descriptors->count) {
        r = will_close(remote, descriptors->free[prepared], err);
        prepared += !r;
    }
    if (!r)
        r = make_sockets(remote, descriptors, err);
    if (!r)
        r = bring_files(remote, descriptors, err);
    while (r && prepared)
        close_in_target(remote, descriptors->free[--prepared]);
    return r;
}

/* Whether what it maps is locked in memory: then the rings would all be there from the start. The first page
 * of the area tells, at its place: should this process be killed just then, the area is found by it. */
static int check_locking(struct remote *remote, const struct live_patch *patch, int fd, struct error *err)
{
    uint64_t locked = process_locked_bytes(remote_pid(remote));
    int64_t page, ignored;
    int r = call(remote, "cannot map a page", &page, err, SYS_mmap, patch->head, PAGE, PROT_READ,
                 MAP_SHARED | MAP_FIXED_NOREPLACE, (uint64_t)fd, 0);

    if (r)
        return r;
    if (process_locked_bytes(remote_pid(remote)) > locked)
        r = error_say(err, -ENOTSUP, "all that it maps is locked in memory (mlockall)");
    call(remote, "cannot unmap a page", &ignored, NULL, SYS_munmap, (uint64_t)page, PAGE, 0, 0, 0, 0);
    return r;
}

int live_area_bring(struct remote *remote, const struct live_patch *patch, bool joins, struct error *err)
{
    struct descriptors descriptors = {0};
    int r;

    list_files(patch, joins, &descriptors);
    r = expect_descriptors(remote, &descriptors, err);
    if (!r)
        r = open_files(remote, &descriptors, err);
    if (r)
        return r;
    r = check_locking(remote, patch, (int)descriptors.theirs[FILE_HEAD], err);
    if (!r)
        r = map_area(remote, patch, &descriptors, joins, err);
    for (size_t i = descriptors.count; i-- > 0;)
        close_in_target(remote, descriptors.free[i]);
    return r;
}

int live_area_part(struct remote *remote, const struct agent_area *area, struct error *err)
{
    pid_t pid = remote_pid(remote);
    struct stale_area rings;
    int64_t ignored;
    int r = 0;

    while (!r && stale_patches_find_rings(pid, area->data_file, &rings))
        r = call(remote, "cannot map memory of its own", &ignored, err, SYS_mmap, rings.apart_start,
                 rings.apart_end - rings.apart_start, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, UINT64_MAX, 0);
    return r;
}
