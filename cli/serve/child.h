/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A process that prints one answer: `tracectl -d STORE serve --print TARGET`. */
#ifndef TRACECTL_CLI_SERVE_CHILD_H
#define TRACECTL_CLI_SERVE_CHILD_H

#include <stdbool.h>
#include <stddef.h>

enum child_end {
    CHILD_ENDED, /* it was not killed */
    CHILD_TOO_LONG,
    CHILD_TOO_LARGE,
    CHILD_CANCELLED,
    CHILD_BROKEN, /* it could not be started, or it crashed */
};

struct child_limits {
    unsigned seconds;
    size_t bytes;
    int check_ms; /* how often `cancelled` is asked */
    bool (*cancelled)(void *context);
    void *context;
};

struct child_answer {
    enum child_end end;
    int exit_status;
    char *body; /* from malloc, or NULL: empty. Only of a process that was not killed */
    size_t size;
};

/* Runs it to its end, or kills it where a limit is reached. */
void child_run(const char *store, const char *target, const struct child_limits *limits,
               struct child_answer *ret_answer);

#endif
