/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For uftrace: threads, a child, recursion, and functions left by exit. Built with -pg. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int sum;

__attribute__((noinline)) static void leaf(int i)
{
    sum += i;
}

__attribute__((noinline)) static void middle(int count)
{
    for (int i = 0; i < count; i++)
        leaf(i);
}

__attribute__((noinline)) static int nested(int depth)
{
    leaf(depth);
    return depth ? nested(depth - 1) + 1 : 0;
}

__attribute__((noinline)) static void *work(void *argument)
{
    for (int i = 0; i < 5; i++)
        middle(*(int *)argument);
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    int counts[3] = {2, 3, 4};
    pid_t child;

    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, &counts[i]);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    sum += nested(20);
    child = fork();
    if (child == 0) {
        middle(7);
        exit(0);
    }
    waitpid(child, NULL, 0);
    printf("%d\n", sum);
    exit(3);
}
