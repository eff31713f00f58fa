/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: work_server SOCKET [normal | no-unlock | one-wakeup]
 *
 * Answers requests on a Unix socket: one byte a connection, which comes back as the answer; 'q' ends the
 * server. One thread accepts connections and puts them into a queue, WORKERS threads take them out and
 * answer. Threads are made in this order: 1 accepts, 2 ... work.
 *
 *   no-unlock    worker BUG_WORKER leaves the counting of its BUG_JOB-th job without unlocking: all workers
 * come to wait for that lock, and no request is answered any more one-wakeup   at the end one worker is woken
 * in place of all: the others, and main() that joins them, wait on
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "planted.h"

enum { WORKERS = 4, BUG_WORKER = 2, BUG_JOB = 3, QUEUE_SIZE = 64, WORK_US = 3000 };
#define PART_OF_TRACE __attribute__((noinline, noclone))

enum bug { NORMAL, NO_UNLOCK, ONE_WAKEUP, BUGS };

static enum bug bug;
static int listener;

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_changed = PTHREAD_COND_INITIALIZER;
static int queue[QUEUE_SIZE];
static unsigned queue_in, queue_out;
static bool stopping;

static pthread_mutex_t count_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned answered;

PART_OF_TRACE static void put_job(int connection)
{
    pthread_mutex_lock(&queue_lock);
    queue[queue_in++ % QUEUE_SIZE] = connection;
    pthread_cond_signal(&queue_changed);
    pthread_mutex_unlock(&queue_lock);
}

/* False: there will be no more. */
PART_OF_TRACE static bool take_job(int *ret_connection)
{
    bool found;

    pthread_mutex_lock(&queue_lock);
    while (queue_in == queue_out && !stopping)
        pthread_cond_wait(&queue_changed, &queue_lock);
    found = queue_in != queue_out;
    if (found)
        *ret_connection = queue[queue_out++ % QUEUE_SIZE];
    pthread_mutex_unlock(&queue_lock);
    return found;
}

PART_OF_TRACE static void stop_workers(void)
{
    pthread_mutex_lock(&queue_lock);
    stopping = true;
    if (bug == ONE_WAKEUP)
        pthread_cond_signal(&queue_changed);
    else
        pthread_cond_broadcast(&queue_changed);
    pthread_mutex_unlock(&queue_lock);
}

PART_OF_TRACE static void count_job(bool leave_locked)
{
    pthread_mutex_lock(&count_lock);
    answered++;
    if (leave_locked)
        return;
    pthread_mutex_unlock(&count_lock);
}

PART_OF_TRACE static void answer(int connection)
{
    char byte;

    if (read(connection, &byte, 1) == 1) {
        usleep(WORK_US); /* as if there were something to look up: so that all workers get their share */
        (void)!write(connection, &byte, 1);
    }
    close(connection);
}

PART_OF_TRACE static void *work(void *argument)
{
    int number = *(const int *)argument, connection;

    for (int job = 1; take_job(&connection); job++) {
        answer(connection);
        count_job(bug == NO_UNLOCK && number == BUG_WORKER && job == BUG_JOB);
    }
    return NULL;
}

PART_OF_TRACE static void *accept_connections(void *argument)
{
    char byte;

    for (;;) {
        int connection = accept(listener, NULL, NULL);

        if (connection < 0)
            return NULL;
        if (recv(connection, &byte, 1, MSG_PEEK) == 1 && byte == 'q') {
            close(connection);
            return NULL;
        }
        put_job(connection);
    }
}

static int start_listening(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof(address.sun_path))
        return -1;
    strcpy(address.sun_path, path);
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0)
        return -1;
    return listen(listener, QUEUE_SIZE);
}

static enum bug parse_bug(const char *word)
{
    static const char *const words[] = {"normal", "no-unlock", "one-wakeup"};
    unsigned i = 0;

    while (i < BUGS && !same_word(words[i], word))
        i++;
    return (enum bug)i;
}

int main(int argc, char **argv)
{
    pthread_t acceptor, workers[WORKERS];
    int numbers[WORKERS];

    bug = parse_bug(argc > 2 ? argv[2] : "normal");
    if (argc < 2 || bug == BUGS) {
        fprintf(stderr, "usage: work_server SOCKET [normal | no-unlock | one-wakeup]\n");
        return 2;
    }
    if (start_listening(argv[1]) < 0) {
        perror(argv[1]);
        return 1;
    }
    pthread_create(&acceptor, NULL, accept_connections, NULL);
    for (int i = 0; i < WORKERS; i++) {
        numbers[i] = i + 1;
        pthread_create(&workers[i], NULL, work, &numbers[i]);
    }
    pthread_join(acceptor, NULL);
    stop_workers();
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    printf("answered %u requests\n", answered);
    return 0;
}
