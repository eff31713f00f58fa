/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Two threads open, call and close a library again and again, until it is killed. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

__attribute__((noinline)) static void once(void)
{
    void *library = dlopen("libcrypt.so.1", RTLD_NOW);
    char *(*crypt)(const char *, const char *) = NULL;

    if (library)
        *(void **)&crypt = dlsym(library, "crypt");
    if (crypt)
        crypt("x", "ab");
    if (library)
        dlclose(library);
}

static void *again(void *unused)
{
    for (;;)
        once();
    return unused;
}

int main(void)
{
    pthread_t threads[2];

    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, again, NULL))
            return 1;
    puts("ready");
    fflush(stdout);
    for (;;)
        pause();
}
