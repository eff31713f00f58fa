/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/common/signals.h"

#include <signal.h>

#include "base/array.h"
#include "base/clock.h"

/* timeout(1) sends a signal twice, to the process and to its group; no user presses Ctrl-C twice as fast. */
#define AGAIN_NS 250000000u

static struct recorder *running;
static bool passes_on;
static volatile sig_atomic_t came, stopped_by;
static uint64_t came_ns;

static void on_signal(int number)
{
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    bool first = !came;

    came = 1;
    if (first)
        came_ns = now;
    if (passes_on && first && running)
        recorder_pass_on(running, number);
    if (passes_on && now - came_ns < AGAIN_NS)
        return;
    stopped_by = number;
    if (running)
        recorder_stop(running);
}

static bool is_ignored(int number)
{
    struct sigaction action;

    return !sigaction(number, NULL, &action) && action.sa_handler == SIG_IGN;
}

/* A handler, never SIG_IGN: programs that are executed do not inherit it. */
static void handle(int number, void (*handler)(int), int flags)
{
    const struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

    sigaction(number, &action, NULL);
}

static void on_nothing(int number)
{
}

void signals_stop(struct recorder *recorder, bool with_command)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

    running = recorder;
    passes_on = with_command;
    came = stopped_by = 0;
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
        if (ends[i] == SIGQUIT && !with_command)
            continue;
        if (!is_ignored(ends[i]) || (!with_command && ends[i] != SIGHUP))
            handle(ends[i], on_signal, 0);
    }
    if (!is_ignored(SIGPIPE))
        handle(SIGPIPE, on_nothing, SA_RESTART); /* writing fails then */
}

static void on_commit(int number)
{
    if (running)
        recorder_commit(running);
}

void signals_commit(void)
{
    if (!is_ignored(SIGUSR1))
        handle(SIGUSR1, on_commit, SA_RESTART);
}

void signals_ignore(void)
{
    static const int all[] = {SIGUSR1, SIGINT, SIGTERM, SIGHUP, SIGQUIT};

    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        signal(all[i], SIG_IGN);
}

bool signals_came(void)
{
    return came;
}

int signals_stopped_by(void)
{
    return stopped_by;
}
