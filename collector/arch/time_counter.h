/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The processor's counter of time, which a program can read without the kernel. */
#ifndef TRACECTL_COLLECTOR_ARCH_TIME_COUNTER_H
#define TRACECTL_COLLECTOR_ARCH_TIME_COUNTER_H

#include <stdint.h>

static inline uint64_t read_counter(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
#error "the counter of this instruction set is not known"
#endif
}

#endif
