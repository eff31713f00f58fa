/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls functions of the C library and prints how often: "NAME NUMBER" a line, for tests of stubs of linkers
 * and of functions with several names. One function is called and has its address taken: a PIE has another
 * kind of stub for it, and calls by address pass by that; in other programs the stub is the address. One is
 * reached by a tail call. Build it with -fno-builtin.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __PIE__
#define BY_ADDRESS "strdup 7\n"
#else
#define BY_ADDRESS "strdup 14\n"
#endif

static volatile size_t sink;

static __attribute__((noinline)) pid_t parent(void)
{
    return getppid();
}

static void strings(const char *text)
{
    char *(*volatile copy)(const char *) = strdup;

    for (int i = 0; i < 30; i++) {
        void *block = malloc(10 + (size_t)i);

        sink += strlen(text) + (block != NULL);
        free(block);
    }
    for (int i = 0; i < 7; i++) {
        char *text_copy = strdup(text), *second = copy(text);

        sink += text_copy[0] + second[0];
    }
}

int main(int argc, char **argv)
{
    char buffer[4];
    int file = open("/dev/zero", O_RDONLY);

    (void)argc;
    strings(argv[0]);
    for (int i = 0; i < 20; i++)
        sink += (size_t)parent();
    for (int i = 0; i < 3; i++)
        sink += (size_t)pread64(file, buffer, sizeof(buffer), 0);
    puts(BY_ADDRESS "malloc 30\nstrlen 30\nfree 30\ngetppid 20\npread64 3\nputs 1");
    return 0;
}
