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

void agent_slow(uint32_t function, const uint64_t *frame);

/* ------------------------------------------------------------------------------------ the thread's slots */

static inline uint32_t own_tid(void)
{
    uint32_t tid;

    __asm__ volatile("movl %%fs:%c1,%0" : "=r"(tid) : "i"(AGENT_TID));
    return tid;
}

static inline uint32_t owner(void)
{
    uint32_t tid;

    __asm__ volatile("movl %%fs:%c1,%0" : "=r"(tid) : "i"(AGENT_OWNER));
    return tid;
}

static inline void set_owner(uint32_t tid)
{
    __asm__ volatile("movl %0,%%fs:%c1" : : "r"(tid), "i"(AGENT_OWNER) : "memory");
}

static inline int64_t cursor(void)
{
    int64_t value;

    __asm__ volatile("movq %%fs:%c1,%0" : "=r"(value) : "i"(AGENT_CURSOR));
    return value;
}

/* The cursor as it was before: negative when there was room. */
static inline int64_t take_record(void)
{
    int64_t value = (int64_t)AGENT_ONE_RECORD;

    __asm__ volatile("xaddq %0,%%fs:%c1" : "+r"(value) : "i"(AGENT_CURSOR) : "memory", "cc");
    return value;
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
    while (owner() != tid) {
        int64_t stale = cursor();

        if (owner() != tid && swap_cursor(stale, 0))
            set_owner(tid);
    }
}

/* ------------------------------------------------------------------------------------ chunks */

static struct agent_chunk *chunk_at(uint32_t offset)
{
    return (struct agent_chunk *)(agent_head.chunks + offset);
}

/* Offset of the end of the chunk that a cursor is of. */
static uint32_t chunk_end(int64_t value)
{
    return (uint32_t)value - (uint32_t)(value >> 32) * (uint32_t)sizeof(struct agent_record);
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

    return (int64_t)((uint64_t)-records << 32 | start);
}

/* While there is no chunk for it, a thread asks for one at every so many calls. Until then the high half of
 * its cursor is ASKED and how many it has made since. A thread whose chunk is only full has less there: a
 * handler that comes before it could ask does so itself. */
#define ASKED (1 << 16)
#define ASK_EVERY 16

static int has_just_asked(int64_t value)
{
    int64_t calls = value >> 32;

    return calls > ASKED && calls < ASKED + ASK_EVERY;
}

/* The thread has room again, or else 0: the recording has ended, or the collector does not keep up. */
static int next_chunk(uint32_t tid)
{
    int64_t full = cursor();
    struct agent_chunk *last = last_chunk(full), *chunk;
    uint32_t number;

    if (full < 0)
        return 1; /* a handler has got one */
    number = take_chunk();
    if (number >= agent_head.chunk_count) {
        /* It has asked, and never counts up to being negative. */
        swap_cursor(full, ASKED * (int64_t)AGENT_ONE_RECORD + (int64_t)chunk_end(full));
        return 0;
    }
    chunk = chunk_at(number * agent_head.chunk_bytes);
    if (last) /* before the thread is seen to have another one */
        __atomic_store_n(&last->state, AGENT_CHUNK_FULL, __ATOMIC_RELEASE);
    __atomic_store_n(&chunk->tid, tid, __ATOMIC_RELEASE);
    if (!swap_cursor(full, cursor_into(number)))
        __atomic_store_n(&chunk->state, AGENT_CHUNK_UNUSED, __ATOMIC_RELEASE);
    return 1;
}

/* Where the collector will find it at the right place: behind the last record that there was room for. Only
 * the thread and its signal handlers write there: one instruction that need not be locked. */
static void count_loss(void)
{
    struct agent_chunk *last = last_chunk(cursor());

    if (agent_head.quiet) /* the recording is over */
        return;
    if (last)
        __asm__ volatile("incq %0" : "+m"(last->lost_after) : : "cc");
    else
        __atomic_fetch_add(&agent_head.unplaced, 1, __ATOMIC_RELAXED);
}

/* `frame`: the stack pointer of the stub. */
void agent_slow(uint32_t function, const uint64_t *frame)
{
    struct agent_record *record;
    uint32_t tid = own_tid();
    int64_t place;

    if (tid)
        claim(tid);
    do {
        if (!tid || has_just_asked(cursor()) || !next_chunk(tid)) {
            count_loss();
            return;
        }
        place = take_record();
    } while (place >= 0);
    record = (struct agent_record *)(agent_head.chunks + (uint32_t)place);
    record->sp = (uint64_t)frame | (uint64_t)agent_head.tick << AGENT_TICK_SHIFT;
    if (agent_head.times)
        *(uint64_t *)agent_time_at(agent_head.times, (uint64_t)record) = __builtin_ia32_rdtsc();
    record->return_address = (uint32_t)frame[AGENT_FRAME_BYTES / sizeof(*frame)];
    __atomic_store_n(&record->function, function, __ATOMIC_RELEASE);
}
