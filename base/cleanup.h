/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Cleanup attributes: a variable declared with one of these releases what it holds when it goes out of scope,
 * on every path, so that functions need no goto ladders. take_pointer() and take_fd() hand the thing on.
 */
#ifndef TRACECTL_BASE_CLEANUP_H
#define TRACECTL_BASE_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(function) __attribute__((cleanup(function)))

/* Defines the static function NAME, which calls RELEASE on the variable's value when that is not NULL.
 * Used without a semicolon: DEFINE_CLEANUP(cleanup_run, struct run *, run_free) */
#define DEFINE_CLEANUP(name, type, release) \
    static inline void name(type *variable) \
    { \
        if (*variable) \
            release(*variable); \
    }

static inline void cleanup_free(void *variable)
{
    free(*(void **)variable);
}

static inline void cleanup_close(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static inline void cleanup_fclose(FILE **file)
{
    if (*file)
        fclose(*file);
}

#define AUTO_FREE CLEANUP(cleanup_free)
#define AUTO_CLOSE CLEANUP(cleanup_close)
#define AUTO_FCLOSE CLEANUP(cleanup_fclose)

/* Returns the pointer and leaves NULL behind, so that its cleanup has nothing left to release. */
#define take_pointer(pointer) \
    ({ \
        __typeof__(pointer) taken_ = (pointer); \
        (pointer) = NULL; \
        taken_; \
    })

static inline int take_fd(int *fd)
{
    int taken = *fd;

    *fd = -1;
    return taken;
}

#endif
