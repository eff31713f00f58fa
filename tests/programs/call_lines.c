/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls a function from three lines, and the maths library by name and by dlopen. Prints "LINE CALLS" of the
 * former. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>

static volatile double sink;
static int lines[3];

__attribute__((noinline)) static void called(double x)
{
    sink += cbrt(x + sink);
}

__attribute__((noinline)) static void calls(void)
{
    for (int i = 0; i < 30; i++) {
        called(i);
        lines[0] = __LINE__ - 1;
        if (i % 3 == 0)
            called(1);
        lines[1] = __LINE__ - 1;
    }
    called(2);
    lines[2] = __LINE__ - 1;
    sink += 1; /* no tail call */
}

int main(void)
{
    static const int counts[3] = {30, 10, 1};
    void *library = dlopen("libcrypt.so.1", RTLD_NOW);
    char *(*crypt)(const char *, const char *) =
        library ? (char *(*)(const char *, const char *))dlsym(library, "crypt") : NULL;

    calls();
    for (int i = 0; crypt && i < 7; i++)
        sink += crypt("x", "ab") != NULL;
    for (int i = 0; i < 3; i++)
        printf("%d %d\n", lines[i], counts[i]);
    return 0;
}
