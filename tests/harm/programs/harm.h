/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * main() of the targets of the harm matrix. A target defines work(), which computes a number and always the
 * same one. "TARGET" prints it, and ends with status 1 if it is not EXPECTED. "TARGET loop" repeats the work
 * until SIGTERM, and tells then whether it ever was another one: for recordings that begin and end meanwhile.
 */
#ifndef TESTS_HARM_PROGRAMS_HARM_H
#define TESTS_HARM_PROGRAMS_HARM_H

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Neither inlined nor cloned nor known to be without effect: every call in the source is a call. */
#define CALLED __attribute__((noipa))

static volatile sig_atomic_t harm_stop;

CALLED static void harm_on_term(int number)
{
    harm_stop = 1;
}

static long work(void);

CALLED static int harm_loop(long expected)
{
    long rounds = 0, wrong = 0;

    printf("ready\n");
    fflush(stdout);
    for (; !harm_stop; rounds++) {
        wrong += work() != expected;
        usleep(1000);
    }
    printf("%s: %ld of %ld rounds were wrong\n", wrong ? "HARMED" : "unharmed", wrong, rounds);
    return wrong != 0;
}

#define HARM_MAIN(EXPECTED) \
    int main(int argc, char **argv) \
    { \
        struct sigaction action; \
        long result; \
        memset(&action, 0, sizeof(action)); \
        action.sa_handler = harm_on_term; \
        action.sa_flags = SA_RESTART; \
        sigaction(SIGTERM, &action, NULL); \
        if (argc > 1 && !strcmp(argv[1], "loop")) \
            return harm_loop(EXPECTED); \
        result = work(); \
        printf("result %ld\n", result); \
        fflush(stdout); \
        return result != (EXPECTED); \
    }

#endif
