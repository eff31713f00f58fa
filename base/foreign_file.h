/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files that somebody else has chosen: programs of other users, debug files that they name, files to import.
 *
 * Only regular files are opened. A FIFO waits for ever, a device may do something when it is opened, and both
 * may have no end. The size of a regular file is a claim too: a file of terabytes may be a hole.
 */
#ifndef TRACECTL_BASE_FOREIGN_FILE_H
#define TRACECTL_BASE_FOREIGN_FILE_H

#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

struct error;

/* Opens the regular file at `path` for reading, close-on-exec. Nothing else is opened, not even to see what
 * it is. Returns the descriptor, -EINVAL if it is no regular file, or another negative errno.
 *
 * What is reached by way of another process (/proc/PID/...) is opened aside (base/aside.h): -ETIMEDOUT. A
 * file there is refused with -EREMOTE if a user's program serves its file system (FUSE): whoever reads it
 * later, the kernel on behalf of a probe too, may wait for that program for ever. */
int foreign_file_open(const char *path);

/* The same for `path` in the file system that begins at `root`; symbolic links stay in it. */
int foreign_file_open_below(const char *root, const char *path);

/* stat(2), within the same limit: 0 or a negative errno. */
int foreign_file_stat(const char *path, struct stat *ret_file);

/* The same as a stream. `doing`, such as "opening", and the path begin the error line. A file that is nearly
 * all hole is refused as well (foreign_file_plausible). */
int foreign_file_stream(const char *path, const char *doing, FILE **ret_file, struct error *err);

/* The same as a descriptor. */
int foreign_file_read(const char *path, const char *doing, int *ret_fd, struct error *err);

/* How many bytes may be read on behalf of the file behind `fd`, of which `file` tells: its size, or what the
 * blocks that it has on disk can plausibly hold, if that is less. File systems that compress hold several
 * bytes in one. */
uint64_t foreign_file_plausible(int fd, const struct stat *file);

#endif
