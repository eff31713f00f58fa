/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program that changes the operand of an instruction of its own while it runs, as programs with static keys
 * and hot patches do: the function's first instruction computes something else from then on.
 */
#include <stdint.h>
#include <sys/mman.h>

#include "harm.h"

enum { PAGE = 4096, FIRST = 0x11223344, SECOND = 0x11220000, SEARCHED = 32 };

#ifdef WRITABLE /* a segment that is executable and writable from the beginning */
#define PLACE __attribute__((section(".writable,\"awx\",@progbits#"), aligned(64)))
#else
#define PLACE __attribute__((aligned(64)))
#endif

/* One instruction with an operand of four bytes, and a return. */
CALLED PLACE static long value(void)
{
    return FIRST;
}

CALLED static int protect(unsigned char *code, int rights)
{
#ifdef WRITABLE
    return 0;
#else
    return mprotect((void *)((uintptr_t)code & ~(uintptr_t)(PAGE - 1)), PAGE, rights);
#endif
}

CALLED static int set_value(int32_t from, int32_t to)
{
    long (*function)(void) = value;
    unsigned char *code;

    memcpy(&code, &function, sizeof(code));
    if (protect(code, PROT_READ | PROT_WRITE | PROT_EXEC))
        return -1;
    for (int i = 0; i < SEARCHED; i++) {
        if (memcmp(code + i, &from, sizeof(from)))
            continue;
        memcpy(code + i, &to, sizeof(to));
        break;
    }
    return protect(code, PROT_READ | PROT_EXEC);
}

static long work(void)
{
    long sum = 0;

    for (int i = 0; i < 100; i++) {
        if (i % 50 == 25 && set_value(i == 25 ? FIRST : SECOND, i == 25 ? SECOND : FIRST))
            return -1;
        sum += value() - SECOND;
    }
    return sum;
}

HARM_MAIN(50L * (FIRST - SECOND))
