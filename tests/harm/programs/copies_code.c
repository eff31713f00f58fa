/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Copies a function of its own and calls the copy, as programs do that move their code to huge pages. */
#include <sys/mman.h>

#include "harm.h"

CALLED static long original(long n)
{
    return n * 3 + 1;
}

static long work(void)
{
    long (*function)(long) = original;
    void *copy = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long result;

    if (copy == MAP_FAILED)
        return -1;
    memcpy(copy, (void *)function, 64);
    memcpy(&function, &copy, sizeof(function));
    result = function(12) + original(0) + 2;
    munmap(copy, 4096);
    return result;
}

HARM_MAIN(40)
