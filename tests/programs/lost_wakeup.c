/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: lost_wakeup [normal | lost [WORKERS]]
 *
 * A server that answers requests in rounds: dispatch() gives each worker a job and waits for all answers
 * before it takes the next requests. Workers wait for jobs in take_job(). Threads: main() dispatches, 1 ...
 * WORKERS work.
 *
 * `lost`: worker BUG_WORKER looks for its job of round BUG_ROUND without holding the lock, sees none, and
 * only then begins to wait; the job came in between, and nobody wakes the worker again. The others have
 * answered and wait for the next round; the dispatcher waits for the last answer. "stuck" is printed when it
 * is so.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "planted.h"

enum { WORKERS_DEFAULT = 8, WORKERS_MAX = 64, ROUNDS = 20, BUG_WORKER = 3, BUG_ROUND = 5 };
#define PART_OF_STACK __attribute__((noinline, noclone))

struct worker {
    pthread_mutex_t lock;
    pthread_cond_t has_job;
    int number;
    int job;              /* 0: none */
    volatile bool looked; /* it has seen that there is no job */
};

static struct worker workers[WORKERS_MAX];
static int worker_count = WORKERS_DEFAULT;
static bool loses;
static pthread_mutex_t answers_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t answered = PTHREAD_COND_INITIALIZER;
static int answers;

PART_OF_STACK static int take_job(struct worker *worker, int round)
{
    bool careless = loses && worker->number == BUG_WORKER && round == BUG_ROUND;
    int job;

    if (careless) {
        worker->looked = true;
        while (*(volatile int *)&worker->job == 0)
            usleep(100);
        usleep(100000); /* here a scheduler might have taken the processor away: the signal goes by */
    }
    pthread_mutex_lock(&worker->lock);
    while (careless || !worker->job)
        pthread_cond_wait(&worker->has_job, &worker->lock);
    job = worker->job;
    worker->job = 0;
    pthread_mutex_unlock(&worker->lock);
    return job;
}

PART_OF_STACK static int answer(int job)
{
    return job * 2;
}

PART_OF_STACK static void give_answer(int value)
{
    pthread_mutex_lock(&answers_lock);
    answers += value != 0;
    pthread_cond_signal(&answered);
    pthread_mutex_unlock(&answers_lock);
}

PART_OF_STACK static void *work(void *argument)
{
    struct worker *worker = argument;

    for (int round = 0; round < ROUNDS; round++)
        give_answer(answer(take_job(worker, round)));
    return NULL;
}

PART_OF_STACK static void give_jobs(int round)
{
    for (int i = 0; i < worker_count; i++) {
        struct worker *worker = &workers[i];

        while (loses && worker->number == BUG_WORKER && round == BUG_ROUND && !worker->looked)
            usleep(100);
        pthread_mutex_lock(&worker->lock);
        worker->job = round + 1;
        pthread_cond_signal(&worker->has_job);
        pthread_mutex_unlock(&worker->lock);
    }
}

PART_OF_STACK static void collect_answers(int round)
{
    pthread_mutex_lock(&answers_lock);
    while (answers < worker_count) {
        if (loses && round == BUG_ROUND && answers == worker_count - 1) {
            puts("stuck");
            fflush(stdout);
        }
        pthread_cond_wait(&answered, &answers_lock);
    }
    answers = 0;
    pthread_mutex_unlock(&answers_lock);
}

PART_OF_STACK static void dispatch(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        give_jobs(round);
        collect_answers(round);
    }
}

int main(int argc, char **argv)
{
    pthread_t threads[WORKERS_MAX];

    loses = argc > 1 && same_word(argv[1], "lost");
    worker_count = argc > 2 ? atoi(argv[2]) : WORKERS_DEFAULT;
    if (worker_count < BUG_WORKER || worker_count > WORKERS_MAX)
        return 2;
    for (int i = 0; i < worker_count; i++) {
        workers[i].number = i + 1;
        pthread_mutex_init(&workers[i].lock, NULL);
        pthread_cond_init(&workers[i].has_job, NULL);
        pthread_create(&threads[i], NULL, work, &workers[i]);
    }
    dispatch();
    for (int i = 0; i < worker_count; i++)
        pthread_join(threads[i], NULL);
    puts("done");
    return 0;
}
