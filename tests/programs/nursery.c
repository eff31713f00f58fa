/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Has a child every so often, as many as are asked for: `nursery CHILDREN`. All of them work until it is
 * killed. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#define EVERY_US 3000u
#define STEP_US 20000u

static volatile unsigned sum;

__attribute__((noinline)) static void work(unsigned step)
{
    for (unsigned i = 0; i < 100; i++)
        sum += i * step;
}

static void live(void)
{
    for (unsigned step = 0;; step++) {
        work(step);
        usleep(STEP_US);
    }
}

int main(int count, char **arguments)
{
    int children = count > 1 ? atoi(arguments[1]) : 1;

    for (int i = 0; i < children; i++) {
        if (!fork()) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            live();
        }
        work((unsigned)i);
        usleep(EVERY_US);
    }
    puts("all there");
    fflush(stdout);
    live();
}
