/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For the agent: the slots of the thread that it runs on (record.h), by offset, each reached by one
 * instruction. What has to be whole for signal handlers is; of other processors only slot_fence() knows.
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

#else
#error "the agent does not know this instruction set"
#endif

#undef SLOT

#endif
