/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Globs for the paths of images and of source files, as people write them: `libc*`, `src/net/`. */
#ifndef TRACECTL_ANALYZER_SYMBOLS_PATH_GLOB_H
#define TRACECTL_ANALYZER_SYMBOLS_PATH_GLOB_H

#include <stdbool.h>

/* A glob without a slash is matched against the file name, one with a slash against the whole path. */
bool path_glob_image(const char *glob, const char *path);

/* Matched against the path, or against any file or folder at its end: "src/net" and "src/net/" match
 * "/build/x/src/net/tcp.c". A star does not match a slash. */
bool path_glob_source(const char *glob, const char *path);

#endif
