/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/go/go_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

enum { TEXT_MAX = 65536, SIZE_MAX_KEPT = 16 << 20 };

/* Opened again by its path, so that whatever writes appends, and the file may be cut at any time. */
int go_output_open(int *ret_fd, struct error *err)
{
    char path[64];
    int created = memfd_create("tracectl-output", MFD_CLOEXEC), fd;

    if (created < 0)
        return error_set(err, -errno, NULL, "cannot keep the output of executions");
    snprintf(path, sizeof(path), "/proc/self/fd/%d", created);
    fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
    if (fd < 0) {
        int r = -errno;

        close(created);
        return error_set(err, r, NULL, "cannot keep the output of executions");
    }
    close(created);
    *ret_fd = fd;
    return 0;
}

void go_output_clear(int fd)
{
    if (ftruncate(fd, 0) < 0)
        return; /* never: it is our own file in memory */
}

static size_t size_of(int fd)
{
    struct stat status;

    return fstat(fd, &status) < 0 ? 0 : (size_t)status.st_size;
}

void go_output_limit(int fd)
{
    if (size_of(fd) > SIZE_MAX_KEPT)
        go_output_clear(fd);
}

char *go_output_text(int fd)
{
    size_t size = size_of(fd), length = size < TEXT_MAX ? size : TEXT_MAX;
    char *text = malloc(length + 1);
    ssize_t got;

    if (!text)
        return NULL;
    got = pread(fd, text, length, (off_t)(size - length));
    text[got < 0 ? 0 : got] = '\0';
    return text;
}
