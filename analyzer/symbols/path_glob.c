/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/symbols/path_glob.h"

#include <fnmatch.h>
#include <string.h>

#include "base/cleanup.h"

bool path_glob_image(const char *glob, const char *path)
{
    const char *slash = strrchr(path, '/');

    return !fnmatch(glob, strchr(glob, '/') || !slash ? path : slash + 1, 0);
}

/* Whether the glob matches the path as a whole or as a folder that the rest lies in. */
static bool matches_end(const char *glob, const char *path)
{
    if (!fnmatch(glob, path, FNM_PATHNAME | FNM_LEADING_DIR))
        return true;
    for (const char *part = strchr(path, '/'); part; part = strchr(part, '/'))
        if (!fnmatch(glob, ++part, FNM_PATHNAME | FNM_LEADING_DIR))
            return true;
    return false;
}

bool path_glob_source(const char *glob, const char *path)
{
    AUTO_FREE char *copy = NULL;
    size_t length = strlen(glob);

    if (length < 2 || glob[length - 1] != '/')
        return matches_end(glob, path);
    while (length > 1 && glob[length - 1] == '/')
        length--;
    copy = strndup(glob, length);
    return copy && matches_end(copy, path);
}
