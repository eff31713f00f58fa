/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A library is opened, called (and calls back), closed, and opened again, at another address if something
 * took its place; and once on a second thread. */
#include <dlfcn.h>
#include <libgen.h>
#include <pthread.h>
#include <sys/mman.h>

#include "harm.h"

static char library[4096];

CALLED static long back(long n)
{
    return n + 1;
}

CALLED static long once(long n)
{
    void *handle = dlopen(library, RTLD_NOW);
    long (*run)(long, long (*)(long)) = NULL;
    long result = -1;

    if (handle)
        *(void **)&run = dlsym(handle, "plugin_run");
    if (run)
        result = run(n, back);
    if (handle)
        dlclose(handle);
    return result;
}

CALLED static void *on_thread(void *n)
{
    return (void *)once((long)n);
}

CALLED static long threaded(long n)
{
    pthread_t thread;
    void *value = NULL;

    if (!pthread_create(&thread, NULL, on_thread, (void *)n))
        pthread_join(thread, &value);
    return (long)value;
}

static long work(void)
{
    char path[4000] = "";
    long sum = 0;

    if (readlink("/proc/self/exe", path, sizeof(path) - 1) < 0)
        return -1;
    snprintf(library, sizeof(library), "%s/%s", dirname(path), PLUGIN);
    for (long i = 0; i < 8; i++) {
        void *place = mmap(NULL, 5 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        sum += once(i);
        if (i % 2)
            munmap(place, 5 * 4096);
    }
    return sum + threaded(100);
}

/* 4n + 1 for 0 to 7 and 100. */
HARM_MAIN(4 * 28L + 8 + 401)
