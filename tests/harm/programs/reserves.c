/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reserves 64 TiB at addresses of its own choice, and all that is left of the low 2 GiB, as virtual machines
 * do. */
#define TERABYTE (1ul << 40)
#define MEGABYTE (1ul << 20)
#define FIRST (16 * TERABYTE)
#define COUNT 64

#include <sys/mman.h>

#include "harm.h"

/* Nothing may be there. */
CALLED static long reserve(unsigned long address, unsigned long bytes)
{
    return mmap((void *)address, bytes, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) == (void *)address;
}

CALLED static void give_back(unsigned long address, unsigned long bytes)
{
    munmap((void *)address, bytes);
}

static long work(void)
{
    long reserved = 0;

    for (unsigned long i = 0; i < COUNT; i++)
        reserved += reserve(FIRST + i * TERABYTE, TERABYTE);
    for (unsigned long i = 0; i < COUNT; i++)
        give_back(FIRST + i * TERABYTE, TERABYTE);
    for (unsigned long at = MEGABYTE; at < 2048 * MEGABYTE; at += MEGABYTE)
        reserved += reserve(at, MEGABYTE);
    for (unsigned long at = MEGABYTE; at < 2048 * MEGABYTE; at += MEGABYTE)
        give_back(at, MEGABYTE);
    return reserved;
}

HARM_MAIN(COUNT + 2047)
