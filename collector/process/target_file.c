/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/process/target_file.h"

#include <errno.h>

#include "base/foreign_file.h"

int target_file_open(const char *link, struct target_file *ret_file)
{
    AUTO_CLOSE int fd = foreign_file_open(link);

    if (fd < 0)
        return fd == -ESRCH ? -ENOENT : fd;
    if (fstat(fd, &ret_file->stat))
        return -errno;
    ret_file->fd = take_fd(&fd);
    return 0;
}

int target_file_of_mapping(const struct code_mapping *mapping, struct target_file *ret_file)
{
    int r = target_file_open(mapping->link, ret_file);

    if (r || (ret_file->stat.st_dev == mapping->device && ret_file->stat.st_ino == mapping->inode))
        return r;
    close(take_fd(&ret_file->fd));
    return -ENOENT;
}
