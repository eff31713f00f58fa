/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/serve/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"

enum { READ_BYTES = 64 * 1024 };

/* Signals are blocked in the server's threads and ignored there: a child gets them as usual. */
static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, usual;

    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE);
    sigaddset(&usual, SIGINT);
    return posix_spawnattr_setsigmask(attributes, &none) ||
           posix_spawnattr_setsigdefault(attributes, &usual) || posix_spawnattr_setpgroup(attributes, 0) ||
           posix_spawnattr_setflags(attributes,
                                    POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
}

static int start(const char *store, const char *target, int output, pid_t *ret_pid)
{
    char *const arguments[] = {"tracectl", "-d", (char *)store, "serve", "--print", (char *)target, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int r;

    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    r = set_attributes(&attributes);
    if (!r)
        r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!r)
        r = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    if (!r)
        r = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (!r)
        r = posix_spawn(ret_pid, "/proc/self/exe", &actions, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return r;
}

/* Reads to the end. */
static enum child_end read_all(int fd, const struct child_limits *limits, struct child_answer *read_so_far)
{
    uint64_t until = clock_ns(CLOCK_MONOTONIC) + limits->seconds * UINT64_C(1000000000);
    size_t capacity = 0;

    for (;;) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        int r = poll(&ready, 1, limits->check_ms);
        ssize_t size;

        if (r <= 0 && limits->cancelled(limits->context))
            return CHILD_CANCELLED;
        if (clock_ns(CLOCK_MONOTONIC) > until)
            return CHILD_TOO_LONG;
        if (r <= 0)
            continue;
        if (array_reserve(&read_so_far->body, &capacity, read_so_far->size + READ_BYTES) < 0)
            return CHILD_TOO_LARGE;
        size = read(fd, read_so_far->body + read_so_far->size, READ_BYTES);
        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0)
            return size ? CHILD_BROKEN : CHILD_ENDED;
        read_so_far->size += (size_t)size;
        if (read_so_far->size > limits->bytes)
            return CHILD_TOO_LARGE;
    }
}

/* The room behind the end is given back. */
static void trim(struct child_answer *answer)
{
    char *trimmed = answer->size ? realloc(answer->body, answer->size) : NULL;

    if (trimmed)
        answer->body = trimmed;
}

void child_run(const char *store, const char *target, const struct child_limits *limits,
               struct child_answer *ret_answer)
{
    int ends[2], status = 0;
    pid_t pid;

    *ret_answer = (struct child_answer){.end = CHILD_BROKEN};
    if (limits->cancelled(limits->context)) {
        ret_answer->end = CHILD_CANCELLED;
        return;
    }
    if (pipe2(ends, O_CLOEXEC) < 0)
        return;
    if (start(store, target, ends[1], &pid) != 0) {
        close(ends[0]);
        close(ends[1]);
        return;
    }
    close(ends[1]);
    ret_answer->end = read_all(ends[0], limits, ret_answer);
    close(ends[0]);
    if (ret_answer->end != CHILD_ENDED)
        kill(-pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (ret_answer->end == CHILD_ENDED && !WIFEXITED(status))
        ret_answer->end = CHILD_BROKEN;
    ret_answer->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (ret_answer->end != CHILD_ENDED) {
        free(ret_answer->body);
        ret_answer->body = NULL;
        ret_answer->size = 0;
    } else {
        trim(ret_answer);
    }
}
