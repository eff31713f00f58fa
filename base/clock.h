/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Clocks in nanoseconds. The store's times are CLOCK_REALTIME; the kernel stamps events in CLOCK_MONOTONIC.
 */
#ifndef TRACECTL_BASE_CLOCK_H
#define TRACECTL_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
