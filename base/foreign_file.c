/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/foreign_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"

#define BLOCK 512u /* of st_blocks, whatever the file system's own blocks are */
/* File systems that compress (btrfs, zfs, squashfs) hold at most so many bytes of a program in one on disk.
 */
#define PACKED_MOST 16u
/* Small files may lie in their inodes. */
#define ALWAYS_PLAUSIBLE ((uint64_t)1 << 20)

int foreign_file_reopen(int place)
{
    struct stat file;
    char path[64];
    int fd;

    if (fstat(place, &file))
        return -errno;
    if (!S_ISREG(file.st_mode))
        return -EINVAL;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    return fd < 0 ? -errno : fd;
}

int foreign_file_open(const char *path)
{
    AUTO_CLOSE int place = open(path, O_PATH | O_CLOEXEC);

    return place < 0 ? -errno : foreign_file_reopen(place);
}

/* Whether the file is one hole. */
static bool is_hole(int fd)
{
    off_t data = lseek(fd, 0, SEEK_DATA);
    bool hole = data < 0 && errno == ENXIO;

    lseek(fd, 0, SEEK_SET);
    return hole;
}

uint64_t foreign_file_plausible(int fd, const struct stat *file)
{
    uint64_t size = file->st_size > 0 ? (uint64_t)file->st_size : 0;
    uint64_t blocks = file->st_blocks > 0 ? (uint64_t)file->st_blocks : 0;
    uint64_t most = ALWAYS_PLAUSIBLE;

    if (blocks > size / BLOCK)
        return size;
    if (!blocks && !is_hole(fd))
        return size; /* a file system that does not tell */
    most += blocks * BLOCK * PACKED_MOST;
    return size < most ? size : most;
}

int foreign_file_read(const char *path, const char *doing, int *ret_fd, struct error *err)
{
    AUTO_CLOSE int fd = foreign_file_open(path);
    struct stat file;

    if (fd == -EINVAL)
        return error_say(err, -EINVAL, "%s %s: not a regular file (copy what it gives into one)", doing,
                         path);
    if (fd < 0)
        return error_set(err, fd, NULL, "%s %s", doing, path);
    if (fstat(fd, &file))
        return error_set(err, -errno, NULL, "%s %s", doing, path);
    if (foreign_file_plausible(fd, &file) < (uint64_t)file.st_size)
        return error_say(err, -EFBIG,
                         "%s %s: nearly all of its %lld bytes are a hole (is the file complete?)", doing,
                         path, (long long)file.st_size);
    *ret_fd = take_fd(&fd);
    return 0;
}

int foreign_file_stream(const char *path, const char *doing, FILE **ret_file, struct error *err)
{
    AUTO_CLOSE int fd = -1;
    int r = foreign_file_read(path, doing, &fd, err);

    if (r < 0)
        return r;
    *ret_file = fdopen(fd, "r");
    if (!*ret_file)
        return error_set(err, -errno, NULL, "%s %s", doing, path);
    take_fd(&fd);
    return 0;
}
