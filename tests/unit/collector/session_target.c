/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "session_target.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "collector/process/process.h"

#define NOINLINE __attribute__((noinline, noclone))
#define THREADS 3
#define SPINS 20000
#define PATIENCE_US 60000000u

struct session_target session_target;

/* What the target tells. */
static struct shared {
    atomic_ulong rounds[THREADS];
    atomic_uint wrong; /* a number of a line below */
} * shared;

static enum session_kind kind_of_target;
static int pipe_ends[2]; /* what a thread of the target waits for */
static unsigned descriptors;
static char signals[THREADS][128];
static unsigned long before[THREADS];

static void must(bool condition, unsigned line)
{
    if (!condition)
        atomic_store(&shared->wrong, line);
}

#define MUST(condition) must(condition, __LINE__)

/* ------------------------------------------------------------------------------------ in the target */

static volatile uint64_t sum;

NOINLINE static uint64_t probed_one(uint64_t n)
{
    sum = sum + n;
    return n * 3 + 1;
}

NOINLINE static uint64_t probed_two(uint64_t n)
{
    sum = sum ^ n;
    return probed_one(n) + 2;
}

/* Holds registers that a call would not have to keep, through a loop in which nothing else happens. */
static void spin(uint64_t value)
{
    uint64_t vector[4] = {value, ~value, value * 3, value * 5}, vector_after[4];
    uint64_t r11 = value, r8 = ~value, count = SPINS;

    __asm__ volatile(
        "vmovdqu %[vector], %%ymm9\n"
        "mov %[r11], %%r11\n"
        "mov %[r8], %%r8\n"
        "std\n"
        "1: dec %[count]\n"
        "jnz 1b\n"
        "cld\n"
        "mov %%r11, %[r11]\n"
        "mov %%r8, %[r8]\n"
        "vmovdqu %%ymm9, %[after]\n"
        : [after] "=m"(vector_after), [count] "+r"(count), [r11] "+m"(r11), [r8] "+m"(r8)
        : [vector] "m"(vector)
        : "r11", "r8", "xmm9", "cc", "memory");
    MUST(r11 == value && r8 == ~value);
    MUST(!memcmp(vector, vector_after, sizeof(vector)));
}

static void call(uint64_t n)
{
    MUST(probed_two(n) == n * 3 + 3);
}

static void *compute(void *ignored)
{
    (void)ignored;
    for (uint64_t n = 1;; n++) {
        spin(n);
        call(n);
        atomic_fetch_add(&shared->rounds[0], 1);
    }
    return NULL;
}

/* Reads a byte that comes from nobody else, which takes its time. */
static void *wait_in_read(void *ignored)
{
    (void)ignored;
    for (uint64_t n = 1;; n++) {
        char byte = 0;

        call(n);
        MUST(read(pipe_ends[0], &byte, 1) == 1 && byte == 'x');
        atomic_fetch_add(&shared->rounds[0], 1);
    }
    return NULL;
}

/* A short time, and a call that tells when it has been interrupted: it must not be, but at the very instant
 * at which the thread is made to stop. */
static void *wait_in_epoll(void *ignored)
{
    int set = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event;

    (void)ignored;
    for (uint64_t n = 1;; n++) {
        int r = epoll_wait(set, &event, 1, 5);

        MUST(!r || (r < 0 && errno == EINTR));
        call(n);
        atomic_fetch_add(&shared->rounds[1], 1);
    }
    return NULL;
}

static void *wait_in_sleep(void *ignored)
{
    (void)ignored;
    for (uint64_t n = 1;; n++) {
        struct timespec time = {0, 3000000};

        MUST(!clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL));
        MUST(!poll(NULL, 0, 2));
        call(n);
        atomic_fetch_add(&shared->rounds[2], 1);
    }
    return NULL;
}

static void target_main(enum session_kind kind)
{
    pthread_t ignored;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pthread_create(&ignored, NULL, wait_in_epoll, NULL);
    pthread_create(&ignored, NULL, wait_in_sleep, NULL);
    if (kind == SESSION_WAITS)
        wait_in_read(NULL);
    compute(NULL);
}

/* ------------------------------------------------------------------------------------ a Go program */

static const char go_text[] =
    "package main\n"
    "import (\"os\"; \"time\")\n"
    "func fib(n int) int { if n < 2 { return n }; return fib(n-1) + fib(n-2) }\n"
    "func main() {\n"
    "  c := make(chan int)\n"
    "  for i := 0; i < 3; i++ { go func() { for { c <- fib(15) } }() }\n"
    "  for { for i := 0; i < 50; i++ { if <-c != 610 { os.Exit(1) } }\n"
    "    os.Stdout.Write([]byte(\"r\")); time.Sleep(time.Millisecond) }\n"
    "}\n";

static void go_main(int output)
{
    char folder[] = "/tmp/session_go.XXXXXX", command[256], path[64];
    FILE *file;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!mkdtemp(folder) || chdir(folder) || !(file = fopen("main.go", "we")) || fputs(go_text, file) < 0 ||
        fclose(file))
        _exit(126);
    snprintf(command, sizeof(command),
             "GOTOOLCHAIN=local GO111MODULE=off /usr/lib/go-1.19/bin/go build -o main main.go");
    snprintf(path, sizeof(path), "%s/main", folder);
    if (system(command)) // NOLINT(bugprone-command-processor,cert-env33-c)
        _exit(125);
    dup2(output, STDOUT_FILENO);
    execl(path, path, NULL);
    _exit(127);
}

/* ------------------------------------------------------------------------------------ in the test */

static unsigned count_descriptors(void)
{
    char path[64];
    unsigned count = 0;
    DIR *directory;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)session_target.pid);
    directory = opendir(path);
    cr_assert_not_null(directory);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

/* A line of the status of a thread. Empty: it is gone. */
static void read_status(pid_t tid, const char *name, char *ret_line, size_t size)
{
    char path[64], line[128];
    AUTO_FCLOSE FILE *status = NULL;

    *ret_line = '\0';
    snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
    status = fopen(path, "re");
    while (status && fgets(line, sizeof(line), status))
        if (!strncmp(line, name, strlen(name)))
            snprintf(ret_line, size, "%s", line);
}

/* In a Go program they are those of the main thread alone; others come and go. */
static bool signals_are(bool take)
{
    AUTO_FREE pid_t *tids = NULL;
    size_t count;
    char now[128];

    cr_assert_eq(process_threads(session_target.pid, &tids, &count, NULL), 0);
    if (kind_of_target == SESSION_GO)
        count = 1;
    cr_assert_leq(count, THREADS);
    for (size_t i = 0; i < count; i++) {
        read_status(tids[i], "SigBlk:", now, sizeof(now));
        if (take)
            memcpy(signals[i], now, sizeof(now));
        else if (strcmp(signals[i], now) != 0)
            return false;
    }
    return true;
}

static bool has_got_on(void)
{
    char bytes[4096];
    ssize_t got;

    if (kind_of_target == SESSION_WAITS)
        cr_assert_eq(write(pipe_ends[1], "x", 1), 1);
    if (kind_of_target == SESSION_GO) {
        got = read(pipe_ends[0], bytes, sizeof(bytes));
        before[0] += got > 0 ? (unsigned long)got : 0;
        return before[0] > 3;
    }
    for (unsigned i = 0; i < THREADS; i++)
        if (atomic_load(&shared->rounds[i]) < before[i] + 3)
            return false;
    return true;
}

static void wait_for_rounds(size_t at)
{
    for (unsigned waited = 0; !has_got_on(); waited += 500) {
        cr_assert_eq(waitpid(session_target.pid, NULL, WNOHANG), 0, "instant %zu: the target has died", at);
        cr_assert_lt(waited, PATIENCE_US, "instant %zu: the target stands still", at);
        usleep(500);
    }
}

static void forget_rounds(void)
{
    char bytes[4096];

    for (unsigned i = 0; i < THREADS; i++)
        before[i] = kind_of_target == SESSION_GO ? 0 : atomic_load(&shared->rounds[i]);
    while (kind_of_target == SESSION_GO && read(pipe_ends[0], bytes, sizeof(bytes)) == sizeof(bytes))
        continue;
}

void session_target_begin(enum session_kind kind)
{
    kind_of_target = kind;
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(shared, MAP_FAILED);
    cr_assert_eq(pipe(pipe_ends), 0);
    session_target.pid = fork();
    if (!session_target.pid && kind == SESSION_GO)
        go_main(pipe_ends[1]);
    if (!session_target.pid)
        target_main(kind);
    if (kind == SESSION_GO)
        cr_assert_eq(fcntl(pipe_ends[0], F_SETFL, O_NONBLOCK), 0);
    wait_for_rounds(0);
    descriptors = count_descriptors();
    signals_are(true);
}

/* Signals and descriptors are as before once a thread that has restored itself has run; that takes a moment.
 */
void session_target_expect_whole(size_t at)
{
    char tracer[128];
    unsigned waited = 0;

    forget_rounds();
    wait_for_rounds(at);
    cr_assert_eq(atomic_load(&shared->wrong), 0, "instant %zu: wrong in line %u", at,
                 atomic_load(&shared->wrong));
    while ((count_descriptors() != descriptors || !signals_are(false)) && waited < PATIENCE_US / 10) {
        usleep(500);
        waited += 500;
    }
    cr_assert_eq(count_descriptors(), descriptors, "instant %zu: other descriptors", at);
    cr_assert(signals_are(false), "instant %zu: other signals are blocked", at);
    read_status(session_target.pid, "TracerPid:", tracer, sizeof(tracer));
    cr_assert_str_eq(tracer, "TracerPid:\t0\n", "instant %zu", at);
}

void session_target_read(uint64_t address, void *bytes, size_t size)
{
    char path[64];
    AUTO_CLOSE int memory = -1;

    snprintf(path, sizeof(path), "/proc/%d/mem", (int)session_target.pid);
    memory = open(path, O_RDONLY | O_CLOEXEC);
    cr_assert_eq(pread(memory, bytes, size, (off_t)address), (ssize_t)size);
}

size_t session_watched(const struct image_function *functions, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strncmp(functions[i].name, SESSION_WATCHED, strlen(SESSION_WATCHED)))
            return i;
    cr_assert_fail("no function is watched");
    return 0;
}

void session_target_end(void)
{
    kill(session_target.pid, SIGKILL);
    waitpid(session_target.pid, NULL, 0);
    munmap(shared, sizeof(*shared));
}
