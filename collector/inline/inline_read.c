/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The inline backend: reads what stubs have recorded, and takes note of what happens to threads meanwhile. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "collector/arch/time_counter.h"
#include "collector/inline/inline_state.h"

/* ------------------------------------------------------------------------------------ times */

void inline_begin_tick(struct inline_backend *backend, uint32_t tick)
{
    backend->tick = tick;
    backend->times[tick] = clock_ns(CLOCK_MONOTONIC);
    backend->stamps[tick] = read_counter();
}

static uint32_t next_tick(uint32_t tick)
{
    return tick % (TICKS - 1) + 1; /* never 0 */
}

/* When the time stamp counter was `stamp`, in a call of that tick; CLOCK_MONOTONIC, to the microsecond. */
static uint64_t moment(const struct inline_backend *backend, uint16_t tick, uint64_t stamp)
{
    uint32_t from = tick, to = next_tick(tick);
    uint64_t stamps, times;

    if (from == backend->tick) { /* it has not ended: as long as the one before */
        to = from;
        from = from > 1 ? from - 1 : TICKS - 1;
    }
    stamps = backend->stamps[to] - backend->stamps[from];
    times = backend->times[to] - backend->times[from];
    if (!backend->stamps[from] || backend->stamps[to] <= backend->stamps[from] ||
        backend->times[to] < backend->times[from] || stamp < backend->stamps[tick] ||
        (stamp > backend->stamps[backend->tick] && stamp > read_counter()))
        return backend->times[tick];
    return backend->times[tick] +
           (uint64_t)((double)(stamp - backend->stamps[tick]) * ((double)times / (double)stamps));
}

static uint16_t tick_of(const struct agent_record *record)
{
    return (uint16_t)(record->sp >> AGENT_TICK_SHIFT);
}

bool inline_has_clock(void)
{
    AUTO_FCLOSE FILE *file =
        fopen("/sys/devices/system/clocksource/clocksource0/available_clocksource", "re");
    char text[256] = "";

    /* The kernel takes it off the list when it finds it unstable (kernel/time/clocksource.c). */
    return file && fgets(text, sizeof(text), file) && strstr(text, "tsc");
}

/* ------------------------------------------------------------------------------------ what is read */

/* Hands on a thread's calls: each with its own time, or those of a tick together. */
static int on_calls(void *context, uint32_t tid, const struct agent_record *records, const uint64_t *stamps,
                    size_t count)
{
    const struct inline_backend *backend = context;
    size_t from = 0, to;
    int r = 0;

    for (; !r && from < count; from = to) {
        uint16_t tick = tick_of(&records[from]);

        to = from + 1;
        while (!stamps && to < count && tick_of(&records[to]) == tick)
            to++;
        r = backend->sink.calls(backend->sink.context, tid, &records[from], to - from,
                                stamps ? moment(backend, tick, stamps[from]) : backend->times[tick]);
    }
    return r;
}

static int on_lost(void *context, uint32_t tid, uint64_t calls)
{
    const struct inline_backend *backend = context;

    return backend->sink.lost(backend->sink.context, tid, calls);
}

static int on_waited(void *context, uint32_t tid, uint64_t ns)
{
    const struct inline_backend *backend = context;

    return backend->sink.waited(backend->sink.context, tid, ns);
}

struct agent_sink inline_reader_sink(struct inline_backend *backend)
{
    return (struct agent_sink){.calls = on_calls, .lost = on_lost, .waited = on_waited, .context = backend};
}

int inline_was_read(struct inline_backend *backend, struct family *family, int result)
{
    const char *fault = agent_reader_fault(family->reader);

    if (!fault || family->distrusted)
        return result;
    family->distrusted = true;
    agent_area_quiet(family->area);
    for (struct member *member = backend->members; member && !result; member = member->hh.next)
        if (member->family == family)
            result = backend->sink.distrusted(backend->sink.context, member->pid, fault);
    return result;
}

/* ------------------------------------------------------------------------------------ a round */

int inline_for_each_family(struct inline_backend *backend,
                           int (*function)(struct inline_backend *backend, struct family *family))
{
    struct member *member = NULL, *next = NULL;
    struct family *last = NULL;
    int r = 0;

    HASH_ITER (hh, backend->members, member, next) {
        if (!r && member->family != last)
            r = function(backend, member->family);
        last = member->family;
    }
    return r;
}

static int look(struct inline_backend *backend, struct family *family)
{
    __atomic_store_n(&family->area->head->tick, agent_tick_word(backend->tick), __ATOMIC_RELEASE);
    return inline_was_read(backend, family,
                           agent_reader_sample(family->reader, backend->times[backend->tick]));
}

int inline_sample(struct backend *base)
{
    struct inline_backend *backend = inline_of(base);

    inline_begin_tick(backend, next_tick(backend->tick));
    pulse_round(backend->pulse);
    return inline_for_each_family(backend, look);
}

static int freeze(struct inline_backend *backend, struct family *family)
{
    int r = agent_reader_freeze(family->reader, backend->times[backend->tick]);

    agent_area_quiet(family->area);
    return inline_was_read(backend, family, r);
}

int inline_freeze(struct backend *backend)
{
    return inline_for_each_family(inline_of(backend), freeze);
}

static int read_family(struct inline_backend *backend, struct family *family)
{
    int r = inline_take_claims(backend, family, true);

    if (!r)
        r = inline_was_read(backend, family, agent_reader_read(family->reader));

    agent_area_starve(family->area, agent_reader_starves(family->reader));
    backend->awaited |= agent_area_wake(family->area);
    return r;
}

int inline_read(struct backend *base)
{
    struct inline_backend *backend = inline_of(base);

    backend->awaited = false;
    return inline_for_each_family(backend, read_family);
}

bool inline_awaited(const struct backend *backend)
{
    return inline_of(backend)->awaited;
}

int inline_read_to(struct inline_backend *backend, pid_t pid, uint32_t tid, uint32_t offset)
{
    struct member *member = inline_find_member(backend, pid);
    int r = member ? agent_reader_read_to(member->family->reader, inline_owner_of(backend, tid), offset) : 0;

    return member ? inline_was_read(backend, member->family, r) : 0;
}

int inline_end_thread(struct inline_backend *backend, pid_t pid, uint32_t tid)
{
    struct member *member = inline_find_member(backend, pid);

    inline_leave_blocks(backend, tid);
    return member ? inline_end_owner(backend, member->family, tid) : 0;
}

void inline_end_process(struct inline_backend *backend, pid_t pid)
{
    struct member *member = inline_find_member(backend, pid);

    if (member)
        inline_remove_member(backend, member);
}

/* ------------------------------------------------------------------------------------ what happens to
 * threads */

static pid_t process_of(const struct inline_backend *backend, uint32_t tid)
{
    return backend->sink.process_of(backend->sink.context, tid);
}

static int share_slots(struct inline_backend *backend, const struct wire_slots *record)
{
    const struct inline_slot_sharing sharing = {
        .pid = process_of(backend, record->parent_tid),
        .parent = record->parent_tid,
        .child = record->header.tid,
        .offset = agent_cursor_offset(record->cursor),
        .wanted = record->followed,
    };
    int r = inline_take_claims_of(backend, sharing.pid);

    return r ? r : inline_share_slots(backend, &sharing);
}

static int end_sharing(struct inline_backend *backend, uint32_t tid, uint32_t offset)
{
    int r = inline_take_claims_of(backend, process_of(backend, tid));

    return r ? r : inline_end_sharing(backend, tid, offset);
}

static int join(struct inline_backend *backend, const struct wire_fork *record)
{
    const struct inline_birth birth = {
        .parent = (pid_t)record->parent_tgid,
        .child = (pid_t)record->tgid,
        .ns = record->header.ns,
        .shares_memory = record->shares & FORK_SHARES_MEMORY,
    };
    int r = backend->by_notes
                ? inline_note_own_id(backend, (pid_t)record->tgid, record->header.tid, record->own_tid)
                : 0;
    bool joins = birth.child != birth.parent && !(record->shares & FORK_IS_LEFT);

    return !r && joins ? inline_fork(backend, &birth) : r;
}

/* The thread has ended, and with it (`last`) its process, or the program that this had: its stubs are gone,
 * and it may get others right now. */
static int leave(struct inline_backend *backend, pid_t pid, uint32_t tid, bool last)
{
    int r = inline_take_claims_of(backend, pid);

    if (!r)
        r = inline_end_thread(backend, pid, tid);
    inline_forget_own_id(backend, tid);
    if (last)
        inline_end_process(backend, pid);
    return r;
}

int inline_note(struct backend *base, const void *record)
{
    struct inline_backend *backend = inline_of(base);
    const struct wire_header *header = record;
    const struct wire_exec *exec = record;
    const struct wire_exit *exit = record;
    const struct wire_claim *claim = record;
    const struct wire_inline *place = record;
    uint32_t tid = header->tid;

    switch ((enum wire_kind)header->kind) {
    case WIRE_FORK:
        return join(backend, record);
    case WIRE_EXEC:
        return leave(backend, (pid_t)tid, exec->old_tid, true);
    case WIRE_EXIT:
        return leave(backend, (pid_t)exit->tgid, tid, header->flags & WIRE_LAST_THREAD);
    case WIRE_CLAIM:
        return inline_claim(backend, process_of(backend, tid), tid, claim->ticket, claim->area);
    case WIRE_SLOTS_SHARED:
        return share_slots(backend, record);
    case WIRE_SLOTS_BACK:
        return end_sharing(backend, tid, agent_cursor_offset(place->cursor));
    case WIRE_INLINE:
        return inline_read_to(backend, process_of(backend, tid), tid, agent_cursor_offset(place->cursor));
    default:
        return 0;
    }
}
