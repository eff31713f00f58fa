/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TRACECTL_BASE_PATH_H
#define TRACECTL_BASE_PATH_H

#include <string.h>

/* What stands behind the last slash, all of it where there is none: a part of `path`, as of basename(3) in
 * glibc's <string.h>. */
static inline const char *path_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

#endif
