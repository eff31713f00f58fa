/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Like a just-in-time compiler: writes code into pages that are writable, then executable, calls it, and lets
 * it call back; and makes the page of one of its own functions writable and executable again, and writes its
 * bytes anew.
 */
#include <stdint.h>
#include <sys/mman.h>

#include "harm.h"

enum { PAGE = 4096 };

CALLED static long back(long n)
{
    return n * 2;
}

/* mov rax, back; sub rsp, 8; call rax; add rsp, 8; ret */
CALLED static void emit(unsigned char *code)
{
    static const unsigned char rest[] = {0x48, 0x83, 0xec, 8, 0xff, 0xd0, 0x48, 0x83, 0xc4, 8, 0xc3};
    long (*target)(long) = back;

    code[0] = 0x48;
    code[1] = 0xb8;
    memcpy(code + 2, &target, sizeof(target));
    memcpy(code + 10, rest, sizeof(rest));
}

CALLED static long generated(long n)
{
    unsigned char *code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long (*function)(long), result;

    if (code == MAP_FAILED)
        return -1;
    emit(code);
    if (mprotect(code, PAGE, PROT_READ | PROT_EXEC))
        return -1;
    memcpy(&function, &code, sizeof(function));
    result = function(n);
    munmap(code, PAGE);
    return result;
}

CALLED static long touch_own_code(void)
{
    long (*function)(long) = back;
    unsigned char *page = (unsigned char *)((uintptr_t)function & ~(uintptr_t)(PAGE - 1));

    if (mprotect(page, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC))
        return -1;
    *(volatile unsigned char *)page = *page;
    return mprotect(page, PAGE, PROT_READ | PROT_EXEC);
}

static long work(void)
{
    long sum = 0;

    for (long i = 0; i < 50; i++) {
        sum += generated(i);
        sum += back(1);
        if (i % 10 == 0)
            sum += touch_own_code();
    }
    return sum;
}

HARM_MAIN(2 * 1225L + 100)
