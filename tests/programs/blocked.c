/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads that sleep in the kernel in many ways, and one that computes, each some calls deep, with and
 * without optimisation. Says of each call whether it is open:
 *
 *     call TID open|returned|unknown SP START END RETURN_ADDRESS NAME
 *
 * with the stack pointer at its entry and the function's place, then "ready". A question mark behind the word
 * says that the thread runs now and then, so that nothing may be known of it. At a line on standard input the
 * program says how often a system call came back with EINTR and how far the computing threads got,
 * "interrupted N" and "turns N"; at the end of its input it goes. The argument is a number of further
 * threads, which sleep too.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LINES = 16, LINE_SIZE = 160 };

/* What one thread says; main prints it once the thread is where it wants to be. */
struct story {
    pid_t tid;
    int lines;
    char text[LINES][LINE_SIZE];
    void (*sleep)(void);
    void *(*nest)(void *);
    const char *open, *over; /* what is to be said of calls that are open, and of those that are over */
    atomic_bool ready;
};

static atomic_long interrupted, turns;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static int quiet_pipe[2], quiet_epoll, quiet_semaphore;
static _Thread_local struct story *own;

/* Each function lies in a section of its own, whose bounds the linker knows. */
#define PLACED(name) __attribute__((noinline, noclone, section("in_" #name)))
#define SAY(name, verdict) \
    do { \
        extern const char __start_in_##name[], __stop_in_##name[]; \
        say(verdict, (uintptr_t)__builtin_dwarf_cfa() - 8, (uintptr_t)__start_in_##name, \
            (uintptr_t)__stop_in_##name, #name); \
    } while (0)

/* The return address is read here: a function that looks at its own gets no return probe. */
static void say(const char *verdict, uintptr_t sp, uintptr_t start, uintptr_t end, const char *name)
{
    uintptr_t return_address = *(volatile uintptr_t *)sp;

    if (own->lines == LINES)
        abort();
    snprintf(own->text[own->lines++], LINE_SIZE, "call %d %s %#lx %#lx %#lx %#lx %s", (int)own->tid, verdict,
             (unsigned long)sp, (unsigned long)start, (unsigned long)end, (unsigned long)return_address,
             name);
}

/* The same nest of calls at each level of optimisation. What has returned was called from the same place on
 * the stack as what is open then. */
#define NEST(level) \
    __attribute__((optimize(#level))) PLACED(over_##level) static void over_##level(void) \
    { \
        SAY(over_##level, own->over); \
    } \
    __attribute__((optimize(#level))) PLACED(inner_##level) static int inner_##level(int argument) \
    { \
        char buffer[40]; \
        snprintf(buffer, sizeof(buffer), "%d", argument); \
        SAY(inner_##level, own->open); \
        over_##level(); \
        own->sleep(); \
        return buffer[0]; \
    } \
    __attribute__((optimize(#level))) PLACED(middle_##level) static int middle_##level(int argument) \
    { \
        volatile char room[argument * 100]; \
        SAY(middle_##level, own->open); \
        room[0] = (char)argument; \
        over_##level(); \
        return inner_##level(argument + 1) + room[0]; \
    } \
    __attribute__((optimize(#level))) PLACED(outer_##level) static void *outer_##level(void *argument) \
    { \
        own = argument; \
        own->tid = (pid_t)syscall(SYS_gettid); \
        SAY(outer_##level, own->open); \
        return (void *)(intptr_t)(middle_##level(7) + middle_##level(8)); \
    }

NEST(O0)
NEST(O2)

/* Counts interruptions for ever: none of these calls ends otherwise. */
#define FOR_EVER(call) \
    do { \
        own->ready = true; \
        for (;;) \
            if ((call) < 0 && errno == EINTR) \
                interrupted++; \
    } while (0)

static void in_epoll(void)
{
    struct epoll_event event;

    FOR_EVER(epoll_wait(quiet_epoll, &event, 1, -1));
}

static void in_nanosleep(void)
{
    struct timespec long_time = {1000000, 0};

    FOR_EVER(nanosleep(&long_time, NULL));
}

static void in_read(void)
{
    char byte;

    FOR_EVER(read(quiet_pipe[0], &byte, 1));
}

static void in_futex(void)
{
    static int word;

    FOR_EVER(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0));
}

static void in_semop(void)
{
    struct sembuf wait_for_zero = {0, 0, 0};

    FOR_EVER(semop(quiet_semaphore, &wait_for_zero, 1));
}

static void in_sigtimedwait(void)
{
    struct timespec long_time = {1000000, 0};
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    FOR_EVER(sigtimedwait(&set, NULL, &long_time));
}

static void in_condition(void)
{
    pthread_mutex_lock(&lock);
    own->ready = true;
    for (;;)
        pthread_cond_wait(&never, &lock);
}

static void in_computation(void)
{
    own->ready = true;
    for (;;)
        turns++;
}

/* In and out of the kernel all the time, and asleep for moments. */
static void in_short_sleeps(void)
{
    struct epoll_event event;

    own->ready = true;
    for (;;) {
        if (epoll_wait(quiet_epoll, &event, 1, 1) < 0 && errno == EINTR)
            interrupted++;
        turns++;
    }
}

PLACED(on_signal) static void on_signal(int signal)
{
    SAY(on_signal, own->open);
    in_read();
}

static void in_handler(void)
{
    raise(SIGUSR1);
}

/* The handler's stack is another one: nothing is known of any call of the thread then. */
static void in_handler_elsewhere(void)
{
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};

    if (sigaltstack(&stack, NULL))
        abort();
    raise(SIGURG);
}

static void *any_nest(void *argument)
{
    own = argument;
    return own->nest(argument);
}

/* Starts a thread, and passes on what it says once it is where it wants to be. */
static void tell(void (*sleep)(void), void *(*nest)(void *), const char *open, const char *over)
{
    struct story *story = calloc(1, sizeof(*story));
    pthread_t thread;

    story->sleep = sleep;
    story->nest = nest;
    story->open = open;
    story->over = over;
    if (pthread_create(&thread, NULL, any_nest, story))
        abort();
    while (!story->ready)
        usleep(100);
    for (int i = 0; i < story->lines; i++)
        puts(story->text[i]);
}

static void prepare(void)
{
    struct sigaction action = {.sa_handler = on_signal};

    sigaction(SIGUSR1, &action, NULL);
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGURG, &action, NULL);
    quiet_epoll = epoll_create1(0);
    quiet_semaphore = semget(IPC_PRIVATE, 1, 0600);
    if (pipe(quiet_pipe) || quiet_epoll < 0 || quiet_semaphore < 0 || semctl(quiet_semaphore, 0, SETVAL, 1))
        abort();
}

int main(int argc, char **argv)
{
    static void (*const sleeps[])(void) = {in_epoll, in_nanosleep,    in_read,      in_futex,
                                           in_semop, in_sigtimedwait, in_condition, in_handler};
    int more = argc > 1 ? atoi(argv[1]) : 0;
    char line[16];

    prepare();
    for (size_t i = 0; i < sizeof(sleeps) / sizeof(*sleeps); i++) {
        tell(sleeps[i], outer_O0, "open", "returned");
        tell(sleeps[i], outer_O2, "open", "returned");
    }
    for (int i = 0; i < more; i++)
        tell(in_futex, outer_O2, "open", "returned");
    tell(in_handler_elsewhere, outer_O2, "unknown", "unknown");
    tell(in_computation, outer_O0, "open", "returned");
    tell(in_short_sleeps, outer_O2, "open?", "returned?");
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        printf("interrupted %ld\nturns %ld\n", interrupted, turns);
        fflush(stdout);
    }
    semctl(quiet_semaphore, 0, IPC_RMID);
    return 0;
}
