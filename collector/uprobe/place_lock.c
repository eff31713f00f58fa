/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/uprobe/place_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"

#define PATH "/run/tracectl.lock"
#define POLL_US 1000

/* Each program has a byte; that others may have the same one costs a wait. */
static off_t byte_of(dev_t device, ino_t inode)
{
    return (off_t)((inode * 31 + device) & 0x3fffffff);
}

int place_lock(dev_t device, ino_t inode, bool alone, unsigned wait_ms, int *ret_fd)
{
    AUTO_CLOSE int fd = open(PATH, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct flock lock = {
        .l_type = alone ? F_WRLCK : F_RDLCK,
        .l_whence = SEEK_SET,
        .l_start = byte_of(device, inode),
        .l_len = 1,
    };

    *ret_fd = PLACE_LOCK_NONE;
    while (fd >= 0 && fcntl(fd, F_OFD_SETLK, &lock)) {
        if (errno != EAGAIN && errno != EACCES && errno != EINTR)
            return 0; /* a file system without locks */
        if (!wait_ms--)
            return -EBUSY;
        usleep(POLL_US);
    }
    *ret_fd = take_fd(&fd);
    return 0;
}
