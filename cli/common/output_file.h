/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A file that an option names (-o, --svg): the one way to write one.
 *
 * What this process reads is never written to: the store and its -wal, -shm and -journal, by whatever name. A
 * regular file is replaced when the new one is complete, so that an interrupted or failed command leaves the
 * old one, with its owner and permissions; symbolic links stay. Pipes, devices and what standard output is
 * (/dev/stdout) are written directly.
 */
#ifndef TRACECTL_CLI_COMMON_OUTPUT_FILE_H
#define TRACECTL_CLI_COMMON_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdio.h>

struct error;

struct output_file {
    FILE *stream;       /* to write to */
    const char *called; /* as the user named it; borrowed */
    char *path;         /* what is replaced; NULL: written directly */
    char *temporary;    /* the name of what is written; NULL: it has none yet */
};

/* Opens it; `path` is borrowed until it is closed. Stores must be open already. -EINVAL when the file belongs
 * to what is read, otherwise what opening it says. */
int output_file_open(struct output_file *file, const char *path, struct error *err);

/* Closes it. `r` is how the writing went: when it is negative, a file that would be replaced stays as it was,
 * and `r` is returned; otherwise 0, or an error when not everything could be written. Does nothing to a
 * zeroed one. */
int output_file_close(struct output_file *file, int r, struct error *err);

#endif
