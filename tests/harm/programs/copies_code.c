/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Copies a function of its own and calls the copy, as programs do that move their code to huge pages; with
 * COPY_LATER in the environment the memory is made executable later. */
#include <stdlib.h>
#include <sys/mman.h>

#include "harm.h"

CALLED static long original(long n)
{
    return n * 3 + 1;
}

static long work(void)
{
    long (*function)(long) = original;
    int at_once = getenv("COPY_LATER") ? 0 : PROT_EXEC;
    void *copy = mmap(NULL, 4096, PROT_READ | PROT_WRITE | at_once, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long result;

    if (copy == MAP_FAILED)
        return -1;
    memcpy(copy, (void *)function, 64);
    if (!at_once && mprotect(copy, 4096, PROT_READ | PROT_EXEC))
        return -1;
    memcpy(&function, &copy, sizeof(function));
    result = function(12) + original(0) + 2;
    munmap(copy, 4096);
    return result;
}

HARM_MAIN(40)
