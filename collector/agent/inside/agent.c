// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The agent: what a stub calls when it has no room for its record, or when the slots are not its thread's.
 *
 * It runs inside the target, on the target's stack, between two instructions of it: no system call, no lock,
 * no C library, no register but the general ones (agent_entry.S keeps those). A signal handler may interrupt
 * it anywhere, run stubs of its own and come here again, and may never come back: so every step leaves the
 * slots whole. Other threads, and processes that forked children run in, take chunks at the same time.
 */
#include "collector/agent/record.h"

/* Where this code is mapped the head lies right before it (agent.ld). */
extern struct agent_head agent_head __attribute__((visibility("hidden")));

void agent_slow(uint32_t function, const uint32_t *stack);

/* ------------------------------------------------------------------------------------ the thread's slots */

static inline uint32_t own_tid(void)
{
    uint32_t tid;

    __asm__ volatile("movl %%fs:%c1,%0" : "=r"(tid) : "i"(AGENT_TID));
    return tid;
}

/* AGENT_OWNER in the low half and AGENT_LOSER in the high one, which change together. */
static inline uint64_t owners(void)
{
    uint64_t value;

    __asm__ volatile("movq %%fs:%c1,%0" : "=r"(value) : "i"(AGENT_OWNER));
    return value;
}

static inline void set_owners(uint64_t value)
{
    __asm__ volatile("movq %0,%%fs:%c1" : : "r"(value), "i"(AGENT_OWNER) : "memory");
}

static inline int is_owner(uint32_t tid)
{
    return owners() == tid || owners() == (uint64_t)tid << 32;
}

static inline int64_t cursor(void)
{
    int64_t value;

    __asm__ volatile("movq %%fs:%c1,%0" : "=r"(value) : "i"(AGENT_CURSOR));
    return value;
}

/* The offset of the record in the chunks; UINT32_MAX: there was no room. */
static inline uint32_t take_record(void)
{
    uint64_t value = AGENT_ONE_RECORD;

    __asm__ volatile("xaddq %0,%%fs:%c1" : "+r"(value) : "i"(AGENT_CURSOR) : "memory", "cc");
    return (int64_t)(value + AGENT_ONE_RECORD) < 0 ? (uint32_t)value : UINT32_MAX;
}

/* Returns false when the cursor was not `from`, because a handler has changed it. */
static inline int swap_cursor(int64_t from, int64_t to)
{
    int64_t found = from;

    __asm__ volatile("cmpxchgq %1,%%fs:%c2" : "+a"(found) : "r"(to), "i"(AGENT_CURSOR) : "memory", "cc");
    return found == from;
}

/* Makes the slots the thread's own. What an earlier thread, or the parent, had in them is worth nothing. */
static void claim(uint32_t tid)
{
    while (!is_owner(tid)) {
        int64_t stale = cursor();

        if (!is_owner(tid) && swap_cursor(stale, 0))
            set_owners(tid);
    }
}

/* ------------------------------------------------------------------------------------ chunks */

static struct agent_chunk *chunk_at(uint32_t offset)
{
    return (struct agent_chunk *)(agent_head.chunks + offset);
}

static int has_room(int64_t value)
{
    return value >> 32 < -1;
}

/* Offset of the end of the chunk that a cursor is of; 0: of none. */
static uint32_t chunk_end(int64_t value)
{
    uint32_t offset = agent_cursor_offset((uint64_t)value);

    if (has_room(value))
        offset += (uint32_t)(-1 - (value >> 32)) * (uint32_t)sizeof(struct agent_record);
    return offset;
}

/* The chunk that the thread has filled last; NULL: none yet. */
static struct agent_chunk *last_chunk(int64_t value)
{
    uint32_t end = chunk_end(value);

    return end ? chunk_at(end - agent_head.chunk_bytes) : 0;
}

/* Takes the number of a free chunk; UINT32_MAX: there is none. */
static uint32_t take_chunk(void)
{
    uint64_t taken = __atomic_load_n(&agent_head.taken, __ATOMIC_ACQUIRE);
    uint32_t number;

    do {
        if (agent_head.quiet || taken == __atomic_load_n(&agent_head.given, __ATOMIC_ACQUIRE))
            return UINT32_MAX;
        number = agent_head.free[taken % agent_head.chunk_count];
    } while (!__atomic_compare_exchange_n(&agent_head.taken, &taken, taken + 1, 0, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    return number;
}

static int64_t cursor_into(uint32_t number)
{
    uint32_t start = number * agent_head.chunk_bytes + (uint32_t)sizeof(struct agent_chunk);
    uint32_t records = (agent_head.chunk_bytes - (uint32_t)sizeof(struct agent_chunk)) /
                       (uint32_t)sizeof(struct agent_record);

    return (int64_t)((uint64_t)(-records - 1) << 32 | start);
}

/* The thread has room again, or else 0: the recording has ended, or the collector does not keep up. */
static int next_chunk(uint32_t tid)
{
    int64_t full = cursor();
    struct agent_chunk *last = last_chunk(full), *chunk;
    uint32_t number;

    if (has_room(full))
        return 1; /* a handler has got one */
    number = take_chunk();
    if (number >= agent_head.chunk_count)
        return 0;
    chunk = chunk_at(number * agent_head.chunk_bytes);
    if (last) /* before the thread is seen to have another one */
        __atomic_store_n(&last->state, AGENT_CHUNK_FULL, __ATOMIC_RELEASE);
    __atomic_store_n(&chunk->tid, tid, __ATOMIC_RELEASE);
    if (!swap_cursor(full, cursor_into(number)))
        __atomic_store_n(&chunk->state, AGENT_CHUNK_UNUSED, __ATOMIC_RELEASE);
    return 1;
}

/* ------------------------------------------------------------------------------------ losing calls */

/* Where a call that found no room is counted, for the collector to find it at the right place: behind the
 * last record that there was room for. Only the thread and its signal handlers write there: one instruction
 * that need not be locked. NULL: the thread never had a chunk. */
static uint64_t *loss_counter(void)
{
    struct agent_chunk *last = last_chunk(cursor());
    uint64_t *self;

    if (!agent_head.quiet)
        return last ? &last->lost_after : 0;
    __asm__ volatile("movq %%fs:0,%0" : "=r"(self)); /* the thread control block's own address */
    return self + AGENT_UNCOUNTED / sizeof(*self);
}

/* Counts a call that found no room. From now on the thread's stubs count for themselves, up to the next tick:
 * that is when the collector has put back what it had to read. */
static void lose(uint32_t tid, uint64_t tick)
{
    uint64_t *counter = loss_counter();

    if (!counter) {
        __atomic_fetch_add(&agent_head.unplaced, 1, __ATOMIC_RELAXED);
        return;
    }
    __asm__ volatile("incq %0" : "+m"(*counter) : : "cc");
    if (!tid)
        return;
    __asm__ volatile("movq %0,%%fs:%c1" : : "r"(counter), "i"(AGENT_LOST_AT) : "memory");
    __asm__ volatile("movq %0,%%fs:%c1" : : "r"(tick), "i"(AGENT_LOST_IN) : "memory");
    set_owners((uint64_t)tid << 32);
    if (has_room(cursor())) /* a handler has got a chunk */
        set_owners(tid);
}

/* ------------------------------------------------------------------------------------ the slow path */

/* `stack`: the stack pointer at the function's entry. */
void agent_slow(uint32_t function, const uint32_t *stack)
{
    uint64_t tick = agent_head.tick;
    struct agent_record *record;
    uint32_t tid = own_tid();
    uint32_t place;

    if (tid)
        claim(tid);
    do {
        if (!tid || !next_chunk(tid)) {
            lose(tid, tick);
            return;
        }
        set_owners(tid);
        place = take_record();
    } while (place == UINT32_MAX);
    record = (struct agent_record *)(agent_head.chunks + place);
    record->sp = (uint64_t)stack | tick;
    if (agent_head.times)
        *(uint64_t *)agent_time_at(agent_head.times, (uint64_t)record) = __builtin_ia32_rdtsc();
    record->return_address = *stack;
    __atomic_store_n(&record->function, function, __ATOMIC_RELEASE);
}
