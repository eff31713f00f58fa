/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls the library that tests/e2e/inline_libraries.sh builds, which is the second argument, and says how often its
 * functions were called:
 *
 *     threads     on four threads, and in a forked child
 *     reload      twenty times, opened and closed each time, at the same address and at others; another library
 *                 takes its place in between, and a forked child opens it for itself
 *     copies      two copies of it, one in a namespace of its own
 *     forever     until SIGTERM, on two threads
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define TURNS 20
#define LEAVES 1000L
#define EVER 16

typedef long (*work_function)(long n);

static work_function work;
static volatile sig_atomic_t ended;
static atomic_long turns, wrong;

static void die(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, dlerror());
    exit(2);
}

static void *open_library(const char *path, work_function *ret_work)
{
    void *library = dlopen(path, RTLD_NOW);

    if (!library || !(*(void **)ret_work = dlsym(library, "library_work")))
        die(path);
    return library;
}

static void check(work_function function, long n)
{
    if (function(n) != n * (n + 1) / 2)
        wrong++;
    turns++;
}

static void *thread(void *unused)
{
    check(work, LEAVES);
    return unused;
}

static void say(long constructed)
{
    printf("library_leaf %ld\nlibrary_work %ld\n", (turns * LEAVES) + 2 * constructed, (long)turns);
    fflush(stdout);
}

static int threads(const char *path)
{
    pthread_t ids[THREADS];
    pid_t child;

    open_library(path, &work);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&ids[i], NULL, thread, NULL))
            return 2;
    for (int i = 0; i < THREADS; i++)
        pthread_join(ids[i], NULL);
    child = fork();
    if (!child) {
        check(work, LEAVES);
        _exit(wrong != 0);
    }
    if (waitpid(child, NULL, 0) != child)
        return 2;
    turns++;
    say(1);
    return wrong != 0;
}

static void once(const char *path)
{
    work_function function;
    void *library = open_library(path, &function);

    check(function, LEAVES);
    dlclose(library);
}

static int reload(const char *path)
{
    pid_t child;

    for (long i = 0; i < TURNS; i++) {
        void *other = i % 3 == 1 ? dlopen("libcrypt.so.1", RTLD_NOW) : NULL, *place = MAP_FAILED;

        if (i % 3 == 2)
            place = mmap(NULL, 5 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        once(path);
        if (other)
            dlclose(other);
        if (place != MAP_FAILED && i % 2)
            munmap(place, 5 * 4096);
    }
    child = fork();
    if (!child) {
        once(path);
        _exit(wrong != 0);
    }
    if (waitpid(child, NULL, 0) != child)
        return 2;
    once(path); /* where the child has had it, too */
    turns++;
    say(turns);
    return wrong != 0;
}

static int copies(const char *path)
{
    work_function second = NULL;
    void *library = dlmopen(LM_ID_NEWLM, path, RTLD_NOW);

    open_library(path, &work);
    if (!library || !(*(void **)&second = dlsym(library, "library_work")) || second == work)
        die("dlmopen");
    check(work, LEAVES);
    check(second, LEAVES);
    check(work, LEAVES);
    say(2);
    return wrong != 0;
}

static void end(int number)
{
    ended = number;
}

static void *ever(void *unused)
{
    while (!ended)
        check(work, EVER);
    return unused;
}

static int forever(const char *path)
{
    pthread_t second;

    signal(SIGTERM, end);
    open_library(path, &work);
    if (pthread_create(&second, NULL, ever, NULL))
        return 2;
    puts("ready");
    fflush(stdout);
    ever(NULL);
    pthread_join(second, NULL);
    puts(wrong ? "wrong" : "unharmed");
    return wrong != 0;
}

int main(int argc, char **argv)
{
    const char *how = argc == 3 ? argv[1] : "";

    if (!strcmp(how, "threads"))
        return threads(argv[2]);
    if (!strcmp(how, "reload"))
        return reload(argv[2]);
    if (!strcmp(how, "copies"))
        return copies(argv[2]);
    if (!strcmp(how, "forever"))
        return forever(argv[2]);
    fputs("usage: uses_library threads|reload|copies|forever LIBRARY\n", stderr);
    return 2;
}
