/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TRACECTL_BASE_PATH_H
#define TRACECTL_BASE_PATH_H

#include <string.h>

/* What stands behind the last slash, all of it where nothing does: a part of `path`. */
static inline const char *path_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

#endif
