/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: churn THREADS FORKS
 *
 * Threads that begin and end, children that are forked, and a signal a thousand times a second through all of
 * it. Every function counts its calls itself, in memory that children share; at the end they are printed.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))
#define AT_ONCE 8

struct calls {
    atomic_ulong step, turn, on_thread, on_child, on_tick;
};

static struct calls *calls;

NOINLINE static void step(volatile unsigned long *sum)
{
    atomic_fetch_add(&calls->step, 1);
    *sum = *sum * 3 + 1;
}

NOINLINE static unsigned long turn(int count)
{
    volatile unsigned long sum = 0;

    atomic_fetch_add(&calls->turn, 1);
    for (int i = 0; i < count; i++)
        step(&sum);
    return sum;
}

NOINLINE static void *on_thread(void *result)
{
    atomic_fetch_add(&calls->on_thread, 1);
    *(unsigned long *)result = turn(50);
    return result;
}

NOINLINE static int on_child(void)
{
    atomic_fetch_add(&calls->on_child, 1);
    return turn(30) == 0;
}

static void on_tick(int signal)
{
    (void)signal;
    atomic_fetch_add(&calls->on_tick, 1);
}

/* Returns how many went wrong. */
static int some_threads(int count, unsigned long expected)
{
    pthread_t threads[AT_ONCE];
    unsigned long results[AT_ONCE] = {0};
    int started = 0, wrong = 0;

    while (started < count && !pthread_create(&threads[started], NULL, on_thread, &results[started]))
        started++;
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
        wrong += results[i] != expected;
    }
    return wrong + count - started;
}

static int one_child(void)
{
    int status;
    pid_t pid = fork();

    if (!pid)
        _exit(on_child());
    while (pid > 0 && waitpid(pid, &status, 0) < 0)
        ;
    return pid < 0 || status != 0;
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 1000, forks = argc > 2 ? atoi(argv[2]) : 100, wrong = 0;
    const struct itimerval timer = {{0, 1000}, {0, 1000}}, none = {{0, 0}, {0, 0}};
    const struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    unsigned long expected;

    calls = mmap(NULL, sizeof(*calls), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (calls == MAP_FAILED || sigaction(SIGALRM, &action, NULL))
        return 2;
    expected = turn(50);
    setitimer(ITIMER_REAL, &timer, NULL);
    for (int done = 0, forked = 0; done < threads || forked < forks;) {
        int count = threads - done < AT_ONCE ? threads - done : AT_ONCE;

        wrong += some_threads(count, expected);
        done += count;
        if (forked < forks && (done >= threads || (long)forked * threads < (long)done * forks)) {
            wrong += one_child();
            forked++;
        }
    }
    setitimer(ITIMER_REAL, &none, NULL);
    printf("calls step %lu\ncalls turn %lu\ncalls on_thread %lu\ncalls on_child %lu\ncalls on_tick %lu\n",
           atomic_load(&calls->step), atomic_load(&calls->turn), atomic_load(&calls->on_thread),
           atomic_load(&calls->on_child), atomic_load(&calls->on_tick));
    return wrong != 0;
}
