/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For the agent: the slots of the thread that it runs on (record.h), by offset, each reached by one
 * instruction. What has to be whole for signal handlers is; of other processors only slot_fence() knows. And
 * the system call that it waits by.
 */
#ifndef TRACECTL_COLLECTOR_ARCH_AGENT_SLOTS_H
#define TRACECTL_COLLECTOR_ARCH_AGENT_SLOTS_H

#include "collector/arch/record.h"
#include "collector/arch/time_counter.h"

#define SLOT static inline __attribute__((always_inline))

#if defined(__x86_64__)
SLOT uint32_t slot_u32(uint32_t offset)
{
    uint32_t value;

    __asm__ volatile("movl %%fs:%c1,%0" : "=r"(value) : "i"(offset) : "memory");
    return value;
}

SLOT uint64_t slot_u64(uint32_t offset)
{
    uint64_t value;

    __asm__ volatile("movq %%fs:%c1,%0" : "=r"(value) : "i"(offset));
    return value;
}

SLOT void slot_set_u32(uint32_t offset, uint32_t value)
{
    __asm__ volatile("movl %0,%%fs:%c1" : : "ri"(value), "i"(offset) : "memory");
}

SLOT void slot_set_u64(uint32_t offset, uint64_t value)
{
    __asm__ volatile("movq %0,%%fs:%c1" : : "r"(value), "i"(offset) : "memory");
}

/* Returns what the slot held before. */
SLOT uint64_t slot_add(uint32_t offset, uint64_t value)
{
    __asm__ volatile("xaddq %0,%%fs:%c1" : "+r"(value) : "i"(offset) : "memory", "cc");
    return value;
}

/* Whether it held `from`, and has `to` now. */
SLOT int slot_swap(uint32_t offset, uint64_t from, uint64_t to)
{
    uint64_t found = from;

    __asm__ volatile("cmpxchgq %1,%%fs:%c2" : "+a"(found) : "r"(to), "i"(offset) : "memory", "cc");
    return found == from;
}

/* What was written to slots is seen by other processors before what is read next. */
SLOT void slot_fence(void)
{
    __asm__ volatile("mfence" : : : "memory");
}

/* The address of the thread's control block. */
SLOT uint64_t slot_block(void)
{
    return slot_u64(0);
}

/* Whether that is one of glibc's, which names itself twice: the slots are in none other. */
SLOT int slot_is_block(void)
{
    uint64_t block = slot_block(), self = slot_u64(0x10);

    return block && block == self;
}

SLOT void count_one(uint64_t *counter)
{
    __asm__ volatile("incq %0" : "+m"(*counter) : : "cc");
}

SLOT void count_more(uint64_t *counter, uint64_t more)
{
    __asm__ volatile("addq %1,%0" : "+m"(*counter) : "r"(more) : "cc");
}

struct agent_time {
    int64_t seconds, nanoseconds;
};

/* What sleep_on() returns besides 0. */
#define SLEEP_INTERRUPTED (-4)
#define SLEEP_CHANGED (-11) /* before it began */
#define SLEEP_TIME_IS_UP (-110)

/* futex(FUTEX_WAIT_BITSET): sleeps until `until`, CLOCK_MONOTONIC, while the word is `value`. */
SLOT int64_t sleep_on(const volatile uint32_t *word, uint32_t value, const struct agent_time *until)
{
    register const struct agent_time *timeout __asm__("r10") = until;
    register uint64_t no_word __asm__("r8") = 0;
    register uint64_t any __asm__("r9") = UINT32_MAX;
    int64_t result = 202; /* futex */

    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(word), "S"(9), "d"(value), "r"(timeout), "r"(no_word), "r"(any)
                     : "rcx", "r11", "memory", "cc");
    return result;
}
#else
#error "the agent does not know this instruction set"
#endif

#undef SLOT

#endif
