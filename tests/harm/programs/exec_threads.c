/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* execve by another thread than the first one, which takes over the process's id; five times. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CALLED __attribute__((noipa))

enum { GENERATIONS = 5 };

CALLED static int add(int a, int b)
{
    return a + b;
}

CALLED static void *execute(void *generation)
{
    char path[4096] = "", number[16];

    snprintf(number, sizeof(number), "%d", add(atoi(generation), 1));
    if (readlink("/proc/self/exe", path, sizeof(path) - 1) > 0)
        execl(path, path, number, (char *)NULL);
    return NULL;
}

int main(int argc, char **argv)
{
    static char zero[] = "0";
    char *generation = argc > 1 ? argv[1] : zero;
    pthread_t thread;
    int sum = 0;

    for (int i = 0; i < 10; i++)
        sum = add(sum, i);
    if (atoi(generation) == GENERATIONS) {
        printf("result %d\n", sum);
        return sum != 45;
    }
    if (!pthread_create(&thread, NULL, execute, generation))
        pthread_join(thread, NULL);
    return 1;
}
