/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads and processes that use every means of synchronisation, and count what they do. Prints, for each
 * object, "OBJECT|KIND|PHASE|COUNT" as the table sync_events names them, and "bytes DIRECTION COUNT" for its
 * connections.
 *
 *     sync_counts [ROUNDS [SECONDS]]     SECONDS: repeat, with all threads new, for so long
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 3

static int rounds = 50;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;
static int waits, ready, beats, events;

/* Declared as sink, handler and enqueue by the test. */
__attribute__((noinline)) void heartbeat(int number)
{
    __atomic_fetch_add(&beats, number >= 0, __ATOMIC_SEQ_CST);
}

__attribute__((noinline)) void put_event(void *queue, long event)
{
    __atomic_fetch_add(&events, queue || event, __ATOMIC_SEQ_CST);
}

/* Ends with a jump into another function. */
__attribute__((noinline)) void handle_event(int number)
{
    heartbeat(number);
}

static void *work(void *argument)
{
    long self = (long)argument;
    struct timespec soon;

    pthread_barrier_wait(&barrier);
    for (int i = 0; i < rounds; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        if (self == 0 || i % 2)
            pthread_rwlock_rdlock(&rwlock);
        else
            pthread_rwlock_wrlock(&rwlock);
        pthread_rwlock_unlock(&rwlock);
        pthread_spin_lock(&spin);
        pthread_spin_unlock(&spin);
        sem_wait(&semaphore);
        sem_post(&semaphore);
        put_event(&mutex, i + 100);
        handle_event(i);
    }
    clock_gettime(CLOCK_REALTIME, &soon);
    pthread_mutex_timedlock(&other, &soon); /* the main thread holds it */
    pthread_mutex_lock(&mutex);
    while (!ready) {
        __atomic_fetch_add(&waits, 1, __ATOMIC_SEQ_CST);
        pthread_cond_wait(&cond, &mutex);
    }
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static int rounds_of_threads;

static void run_threads(void)
{
    pthread_t threads[THREADS];
    int before = waits;

    ready = 0;
    pthread_mutex_trylock(&other);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    while (__atomic_load_n(&waits, __ATOMIC_SEQ_CST) < before + THREADS)
        usleep(1000);
    pthread_mutex_trylock(&other);
    pthread_mutex_lock(&mutex);
    ready = 1;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_unlock(&other);
    rounds_of_threads++;
}

/* ---- a connection */

static void send_all(int fd, size_t size)
{
    static const char bytes[4096];

    while (size) {
        ssize_t sent = write(fd, bytes, size < sizeof(bytes) ? size : sizeof(bytes));

        if (sent < 0)
            exit(3);
        size -= (size_t)sent;
    }
}

static size_t receive_all(int fd, size_t size)
{
    char bytes[1000];
    size_t all = 0;

    while (all < size) {
        ssize_t got = recv(fd, bytes, sizeof(bytes), 0);

        if (got <= 0)
            exit(4);
        all += (size_t)got;
    }
    return all;
}

/* Small messages are sent at once. */
static void hurry(int fd)
{
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
}

static void client(struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (connect(fd, (struct sockaddr *)address, sizeof(*address)))
        exit(5);
    hurry(fd);
    for (int i = 0; i < rounds; i++) {
        send_all(fd, 5000);
        receive_all(fd, 300);
    }
    close(fd);
    _exit(0);
}

static void talk(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM, 0), pair[2], pipes[2], fd, status;
    pid_t child;

    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&address, &size) ||
        socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || pipe(pipes))
        exit(2);
    child = fork();
    if (!child) {
        receive_all(pair[1], 70);
        send_all(pipes[1], 900);
        client(&address);
    }
    send_all(pair[0], 70);
    if (read(pipes[0], (char[900]){0}, 900) != 900)
        exit(6);
    fd = accept(listener, NULL, NULL);
    hurry(fd);
    for (int i = 0; i < rounds; i++) {
        receive_all(fd, 5000);
        send_all(fd, 300);
    }
    waitpid(child, &status, 0);
    close(fd);
    if (status)
        exit(7);
}

static void print(const void *object, const char *kind, const char *phase, int count)
{
    printf("%lu|%s|%s|%d\n", (unsigned long)object, kind, phase, count);
}

static void print_counts(void)
{
    int all = rounds_of_threads * THREADS, inner = all * rounds, writers = 0;

    for (int i = 0; i < rounds; i++)
        writers += i % 2 == 0;
    writers *= rounds_of_threads * (THREADS - 1);
    print(&mutex, "mutex lock", "begin", inner + all + rounds_of_threads);
    print(&mutex, "mutex unlock", "at", inner + all + rounds_of_threads);
    print(&other, "mutex timedlock", "begin", all);
    print(&other, "mutex timedlock", "end", all);
    print(&other, "mutex trylock", "end", 2 * rounds_of_threads);
    print(&rwlock, "rwlock rdlock", "begin", inner - writers);
    print(&rwlock, "rwlock wrlock", "begin", writers);
    print(&rwlock, "rwlock unlock", "at", inner);
    print((const void *)&spin, "spin lock", "begin", inner);
    print((const void *)&spin, "spin unlock", "at",
          inner + 1); /* glibc's pthread_spin_init is the same code */
    print(&semaphore, "sem wait", "begin", inner);
    print(&semaphore, "sem wait", "end", inner);
    print(&semaphore, "sem post", "at", inner);
    print(&barrier, "barrier wait", "end", all);
    print(&cond, "cond wait", "begin", waits);
    print(&cond, "cond wait", "end", waits);
    print(&cond, "cond broadcast", "at", rounds_of_threads);
}

int main(int argc, char **argv)
{
    time_t end = time(NULL) + (argc > 2 ? atoi(argv[2]) : 0);

    if (argc > 1)
        rounds = atoi(argv[1]);
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    pthread_barrier_init(&barrier, NULL, THREADS);
    sem_init(&semaphore, 0, 2);
    do
        run_threads();
    while (time(NULL) < end);
    talk();
    print_counts();
    printf("beats %d\nevents %d\n", beats, events);
    return 0;
}
