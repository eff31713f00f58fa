/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: incident ROUNDS [slow|rare|crash|exit|child]
 *
 * Serves a hundred requests a round, a round every ten milliseconds, ROUNDS times (0: until SIGTERM). Behind
 * the last one, or at each SIGUSR2, the incident comes: a request that takes 0.3 s, a call of rare(),
 * SIGSEGV, exit status 3, or a child that dies by SIGSEGV.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

enum { REQUESTS = 100, ROUND_US = 10000, SLOW_US = 300000 };

static volatile sig_atomic_t told;
static volatile unsigned long answers;

NOINLINE static void answer(void)
{
    answers++;
}

NOINLINE static void request(useconds_t takes)
{
    answer();
    if (takes)
        usleep(takes);
    answers++;
}

NOINLINE static void rare(void)
{
    answers++;
}

NOINLINE static void crash(void)
{
    raise(SIGSEGV);
    answers++;
}

NOINLINE static void incident(const char *kind)
{
    pid_t child = 0;

    if (!strcmp(kind, "slow"))
        request(SLOW_US);
    else if (!strcmp(kind, "rare"))
        rare();
    else if (!strcmp(kind, "crash"))
        crash();
    else if (!strcmp(kind, "exit"))
        exit(3);
    else if (!strcmp(kind, "child") && !(child = fork()))
        crash();
    if (child > 0)
        waitpid(child, NULL, 0);
    answers++;
}

NOINLINE static void serve(unsigned long rounds, const char *kind)
{
    for (unsigned long round = 0; !rounds || round < rounds; round++) {
        for (int i = 0; i < REQUESTS; i++)
            request(0);
        usleep(ROUND_US);
        if (!told)
            continue;
        told = 0;
        incident(kind);
    }
}

static void on_signal(int number)
{
    told = 1;
}

int main(int argc, char **argv)
{
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    const char *kind = argc > 2 ? argv[2] : "none";

    sigaction(SIGUSR2, &action, NULL);
    serve(argc > 1 ? strtoul(argv[1], NULL, 10) : 0, kind);
    incident(kind);
    return 0;
}
