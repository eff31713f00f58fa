/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * execve without fork: of itself three times, each time out of deeper frames and once with a second thread
 * alive, then of /bin/echo, which writes the result.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CALLED __attribute__((noipa))

static char *self, *result;
static atomic_int asleep;

CALLED static int add(int a, int b)
{
    return a + b;
}

CALLED static void *sleeping(void *unused)
{
    for (;;) {
        asleep = 1;
        pause();
    }
    return NULL;
}

CALLED static void exec_below(int level, int generation)
{
    char number[16], sum[16];

    if (level > 0) {
        exec_below(level - 1, generation);
    } else if (generation < 3) {
        snprintf(number, sizeof(number), "%d", generation + 1);
        snprintf(sum, sizeof(sum), "%d", add(atoi(result), generation));
        execl(self, self, number, sum, (char *)NULL);
    } else {
        execl("/bin/echo", "echo", "result", result, (char *)NULL);
    }
    _exit(111);
}

int main(int argc, char **argv)
{
    static char path[4096], zero[] = "0";
    int generation = argc > 1 ? atoi(argv[1]) : 0;
    pthread_t thread;

    self = path;
    result = argc > 2 ? argv[2] : zero;
    if (readlink("/proc/self/exe", path, sizeof(path) - 1) < 0)
        return 1;
    if (generation == 1 && pthread_create(&thread, NULL, sleeping, NULL))
        return 1;
    while (generation == 1 && !asleep)
        usleep(100);
    exec_below(generation * 3, generation);
    return 1;
}
