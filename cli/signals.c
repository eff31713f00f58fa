/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/signals.h"

#include <signal.h>

static struct recorder *running;
static volatile sig_atomic_t interrupts_until_stop, came;

static void on_signal(int number)
{
    came = 1;
    if (number == SIGINT && interrupts_until_stop-- > 0)
        return;
    if (running)
        recorder_stop(running);
}

void signals_stop(struct recorder *recorder, bool with_command)
{
    struct sigaction action = {.sa_handler = on_signal};

    running = recorder;
    interrupts_until_stop = with_command;
    came = 0;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static void on_commit(int number)
{
    if (running)
        recorder_commit(running);
}

/* A handler, which programs that are executed do not inherit, and not SIG_IGN, which they would. */
void signals_commit(void)
{
    const struct sigaction action = {.sa_handler = on_commit, .sa_flags = SA_RESTART};

    sigaction(SIGUSR1, &action, NULL);
}

void signals_ignore(void)
{
    signal(SIGUSR1, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
}

bool signals_came(void)
{
    return came;
}
