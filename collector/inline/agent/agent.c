// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The agent: what a stub calls when its buffer is full, or when the slots are not its thread's.
 *
 * It runs inside the target, on the target's stack, between two instructions of it: no system call but the
 * one that waits, no lock, no C library, no register but the general ones (agent_entry.S keeps those). A
 * signal handler may interrupt it anywhere, run stubs of its own and come here again, and may never come
 * back: so every step leaves the slots whole. Other threads, and processes that forked children run in, take
 * chunks at the same time.
 */
#include "collector/arch/agent_slots.h"

/* Where this code is mapped the head and the kernel side's page, which it may only read, and the key's page
 * lie right before it (agent.ld). */
extern const volatile struct agent_head agent_head __attribute__((visibility("hidden")));
extern struct agent_key agent_key __attribute__((visibility("hidden")));
extern const volatile uint64_t agent_filtered[] __attribute__((visibility("hidden")));

static inline struct agent_counts *counts(void)
{
    return (struct agent_counts *)(agent_head.chunks - AGENT_COUNTS_BYTES);
}

void agent_slow(uint32_t function, const uint32_t *stack);

/* The uprobe's place: the kernel side tells the collector which thread has come here with these. */
void agent_claim(uint32_t ticket, uint32_t area) __attribute__((visibility("hidden")));

/* The other uprobe's place: the kernel side marks the area if a system call of this thread would go elsewhere
 * than to the kernel, or not be allowed. */
void agent_ask(uint32_t area) __attribute__((visibility("hidden")));

/* ------------------------------------------------------------------------------------ the thread's slots */

/* The halves change together: AGENT_OWNER is the low one, AGENT_LOSER the high one. */
static inline uint64_t owners(void)
{
    return slot_u64(AGENT_OWNER);
}

static inline void set_owners(uint64_t value)
{
    slot_set_u64(AGENT_OWNER, value);
}

static inline int is_owner(uint32_t name)
{
    return owners() == name || owners() == (uint64_t)name << 32;
}

static inline void set_slot_ticket(uint32_t ticket, uint32_t name)
{
    slot_set_u32(AGENT_TICKET, ticket);
    slot_set_u32(AGENT_NAME, name);
}

static inline int is_shared(void)
{
    return slot_u32(AGENT_SHARED) != 0;
}

static inline int64_t cursor(void)
{
    return (int64_t)slot_u64(AGENT_CURSOR);
}

/* The offset of the record in the chunks; UINT32_MAX: the buffer is full. */
static inline uint32_t take_record(void)
{
    uint64_t value = slot_add(AGENT_CURSOR, AGENT_ONE_RECORD);

    return (int64_t)(value + AGENT_ONE_RECORD) < 0 ? (uint32_t)value : UINT32_MAX;
}

/* Returns false when the cursor was not `from`, because a handler has changed it. */
static inline int swap_cursor(int64_t from, int64_t to)
{
    return slot_swap(AGENT_CURSOR, (uint64_t)from, (uint64_t)to);
}

/* In a child that has just been forked, and has one thread, the slots are its parent's, by a name that could
 * be its own with the next key but so many. Signal handlers may come here at any point, too. */
static uint32_t first_key(struct agent_key *first)
{
    uint32_t none = 0, given;

    if (!__atomic_load_n(&first->key, __ATOMIC_RELAXED)) {
        set_owners(0);
        set_slot_ticket(0, 0);
        slot_set_u32(AGENT_SHARED, 0);
        given = __atomic_fetch_add(&counts()->keys, 1, __ATOMIC_RELAXED) % AGENT_KEYS + 1;
        __atomic_compare_exchange_n(&first->key, &none, given << AGENT_KEY_SHIFT, 0, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED);
    }
    return __atomic_load_n(&first->key, __ATOMIC_RELAXED);
}

/* What the keys of all places follow. */
static struct agent_key *leading_key(void)
{
    struct agent_key *first = (struct agent_key *)agent_head.first_key;

    return first ? first : &agent_key;
}

/* The stubs of this place compare with its own key, which has been wiped with the first one. */
static uint32_t key(void)
{
    if (!__atomic_load_n(&agent_key.key, __ATOMIC_RELAXED))
        __atomic_store_n(&agent_key.key, first_key(leading_key()), __ATOMIC_RELAXED);
    return __atomic_load_n(&agent_key.key, __ATOMIC_RELAXED);
}

/* Whether the process is a child that is not to be recorded. */
static int is_left(void)
{
    return agent_head.first_only && !__atomic_load_n(&leading_key()->first, __ATOMIC_RELAXED);
}

/* Says that the slots are the thread's own. The collector may have marked them as shared meanwhile. */
static void own(uint64_t names)
{
    set_owners(names);
    slot_fence();
    if (is_shared())
        set_owners(0);
}

/* Leaves word of it for a collector that has no kernel side. */
static void note_claim(uint32_t ticket, uint32_t name)
{
    struct agent_claim_note *note = &counts()->claims[ticket % AGENT_CLAIMS];

    note->name = name;
    __atomic_store_n(&note->ticket, ticket, __ATOMIC_RELEASE);
}

/* Makes the slots the thread's own; false: it shares them. What an earlier thread, or the parent, had in them
 * is worth nothing. The ticket comes first: a handler that never comes back leaves slots that have still to
 * be taken. */
static int claim(uint32_t name)
{
    while (!is_owner(name)) {
        int64_t stale = cursor();
        uint32_t ticket;

        if (is_shared())
            return 0;
        if (slot_u32(AGENT_NAME) == name) { /* they were shared for a while */
            own(name);
            continue;
        }
        ticket = __atomic_add_fetch(&counts()->tickets, 1, __ATOMIC_RELAXED);
        note_claim(ticket, name);
        agent_claim(ticket, agent_head.area);
        if (is_owner(name) || !swap_cursor(stale, 0))
            continue;
        set_slot_ticket(ticket, name);
        own(name);
    }
    return 1;
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
    uint64_t taken = __atomic_load_n(&counts()->taken, __ATOMIC_ACQUIRE);
    uint32_t number;

    do {
        if (agent_head.quiet || taken == __atomic_load_n(&agent_head.given, __ATOMIC_ACQUIRE))
            return UINT32_MAX;
        number = agent_head.free[taken % agent_head.chunk_count];
    } while (!__atomic_compare_exchange_n(&counts()->taken, &taken, taken + 1, 0, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    return number;
}

/* Waits until the collector has changed the word from `wakes`. A signal handler may interrupt it, record
 * calls and wait as well: nothing is held meanwhile. The time is known as well as the collector's signs of
 * life come often, so that no clock is needed here. 0: there is no waiting for it. */
static int wait_for_chunk(uint32_t wakes)
{
    uint64_t alive = agent_head.alive, until = alive + AGENT_PATIENCE_NS, waited;
    const struct agent_time time = {(int64_t)(until / 1000000000), (int64_t)(until % 1000000000)};
    struct agent_chunk *last;
    int64_t result;

    if (!agent_head.waits || agent_head.quiet || agent_head.starved)
        return 0;
    agent_ask(agent_head.area);
    if (agent_filtered[agent_head.area % (AGENT_FILTERED_BYTES / sizeof(uint64_t))])
        return 0;
    __atomic_store_n(&counts()->waiting, 1, __ATOMIC_SEQ_CST);
    result = sleep_on(&agent_head.wakes, wakes, &time);
    waited = agent_head.alive - alive;
    if (result == SLEEP_TIME_IS_UP && !waited)
        waited = AGENT_PATIENCE_NS;
    last = last_chunk(cursor()); /* a handler may have filled others meanwhile */
    if (last)
        count_more(&last->waited_after, waited);
    if (result == SLEEP_TIME_IS_UP)
        return agent_head.alive != alive;
    return result == 0 || result == SLEEP_INTERRUPTED || result == SLEEP_CHANGED;
}

static int64_t cursor_into(uint32_t number)
{
    uint32_t start = number * agent_head.chunk_bytes + (uint32_t)sizeof(struct agent_chunk);
    uint32_t records = (agent_head.chunk_bytes - (uint32_t)sizeof(struct agent_chunk)) /
                       (uint32_t)sizeof(struct agent_record);

    return (int64_t)((uint64_t)(-records - 1) << 32 | start);
}

/* The thread has buffer space again, or else 0: the recording has ended, or the collector does not keep up.
 */
static int next_chunk(void)
{
    struct agent_chunk *last, *chunk;
    uint32_t number;
    int64_t full;

    for (;;) {
        uint32_t wakes = __atomic_load_n(&agent_head.wakes, __ATOMIC_ACQUIRE);

        full = cursor();
        if (has_room(full))
            return 1; /* a handler has got one */
        number = take_chunk();
        if (number < agent_head.chunk_count)
            break;
        if (!wait_for_chunk(wakes))
            return 0;
    }
    chunk = chunk_at(number * agent_head.chunk_bytes);
    last = last_chunk(full);
    if (last) /* before the thread is seen to have another one */
        __atomic_store_n(&last->state, AGENT_CHUNK_FULL, __ATOMIC_RELEASE);
    __atomic_store_n(&chunk->ticket, slot_u32(AGENT_TICKET), __ATOMIC_RELEASE);
    if (!swap_cursor(full, cursor_into(number)))
        __atomic_store_n(&chunk->state, AGENT_CHUNK_UNUSED, __ATOMIC_RELEASE);
    return 1;
}

/* ------------------------------------------------------------------------------------ losing calls */

/* Counts what nobody asks for. */
static uint64_t *unread_counter(void)
{
    return (uint64_t *)slot_block() + AGENT_UNCOUNTED / sizeof(uint64_t);
}

/* Where a call that did not fit is counted, for the collector to find it at the right place: behind the
 * last record that did fit. Only the thread and its signal handlers write there: one instruction
 * that need not be locked. NULL: the thread never had a chunk. */
static uint64_t *loss_counter(void)
{
    struct agent_chunk *last = last_chunk(cursor());

    if (!agent_head.quiet)
        return last ? &last->lost_after : 0;
    return unread_counter();
}

/* From now on, up to the next tick, the thread's stubs count there. */
static void count_here(uint32_t name, uint64_t *counter, uint64_t tick)
{
    slot_set_u64(AGENT_LOST_AT, (uint64_t)counter);
    slot_set_u64(AGENT_LOST_IN, tick);
    own((uint64_t)name << 32);
}

/* Counts a call that did not fit. From now on the thread's stubs count for themselves, up to the next tick:
 * that is when the collector has put back what it had to read. */
static void lose(uint32_t name, uint64_t tick)
{
    uint64_t *counter = loss_counter();

    if (!counter) {
        __atomic_fetch_add(&counts()->unplaced, 1, __ATOMIC_RELAXED);
        return;
    }
    count_one(counter);
    count_here(name, counter, tick);
    if (has_room(cursor())) /* a handler has got a chunk */
        own(name);
}

/* ------------------------------------------------------------------------------------ the slow path */

/* `stack`: the stack pointer at the function's entry. */
void agent_slow(uint32_t function, const uint32_t *stack)
{
    uint64_t tick = agent_head.tick;
    struct agent_record *record;
    uint32_t tid = slot_u32(AGENT_TID), name, place;

    if (!tid || !slot_is_block()) {
        if (!is_left())
            __atomic_fetch_add(&counts()->unplaced, 1, __ATOMIC_RELAXED);
        return;
    }
    name = tid + key();
    if (is_left()) {
        count_here(name, unread_counter(), tick);
        return;
    }
    if (!claim(name)) {
        __atomic_fetch_add(&counts()->shared, 1, __ATOMIC_RELAXED);
        return;
    }
    do {
        if (!next_chunk()) {
            lose(name, tick);
            return;
        }
        own(name);
        place = take_record();
    } while (place == UINT32_MAX);
    record = (struct agent_record *)(agent_head.chunks + place);
    record->sp = (uint64_t)stack | agent_head.tick; /* it may have waited since the other one */
    if (agent_head.times)
        *(uint64_t *)agent_time_at(agent_head.times, (uint64_t)record) = read_counter();
    record->return_address = *stack;
    __atomic_store_n(&record->function, function, __ATOMIC_RELEASE);
}
