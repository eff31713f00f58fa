/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a target may have written and what it cannot have: it has the area mapped while this is looked at. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "collector/inline/reader_state.h"

const char *agent_reader_fault(const struct agent_reader *reader)
{
    return reader->fault;
}

int reader_find_fault(struct agent_reader *reader, const char *fault)
{
    reader->fault = fault;
    return -EBADMSG;
}

int reader_result(struct agent_reader *reader, int code)
{
    if (code == -ELOOP)
        code = reader_find_fault(reader, "more calls are open than a stack can hold");
    return code == -EBADMSG && reader->fault ? 0 : code;
}

/* Not even a loop that does nothing else counts faster. */
#define COUNTS_A_NS 8

int reader_check_count(struct agent_reader *reader, uint64_t before, uint64_t now)
{
    if (now < before)
        return reader_find_fault(reader, "a count of lost calls has gone back");
    if (now - before > 1000 && now / COUNTS_A_NS > clock_ns(CLOCK_MONOTONIC) - reader->since)
        return reader_find_fault(reader, "more calls are counted as lost than there was time for");
    return 0;
}

/* Each word is read once: the target may change it meanwhile. Returns false when it is not written. */
static bool copy_record(const struct agent_record *record, struct agent_record *ret_copy)
{
    const uint64_t *words = (const void *)record;
    uint64_t call = __atomic_load_n(&words[0], __ATOMIC_ACQUIRE);

    ret_copy->function = (uint32_t)call;
    ret_copy->return_address = (uint32_t)(call >> 32);
    ret_copy->sp = __atomic_load_n(&words[1], __ATOMIC_RELAXED);
    return ret_copy->function;
}

int reader_check_chunk(struct agent_reader *reader, const struct reader_thread *thread)
{
    const struct held_chunk *chunk = &thread->chunks[thread->first];
    const struct agent_chunk *memory = agent_area_chunk(reader->area, chunk->number);
    struct agent_record record;

    if (__atomic_load_n(&memory->ticket, __ATOMIC_ACQUIRE) != chunk->ticket)
        return reader_find_fault(reader, "a buffer is not that of the thread any more which has taken it");
    if (!thread->last_at)
        return 0;
    copy_record(&agent_chunk_records(memory)[thread->last_at - 1], &record);
    if (record.function != thread->last.function || record.return_address != thread->last.return_address ||
        record.sp != thread->last.sp)
        return reader_find_fault(reader, "a record has changed after it was read");
    return 0;
}

static bool is_of(const struct agent_expected *expected, const struct agent_record *record)
{
    uint32_t function = (record->function & ~AGENT_EXIT) - expected->first;

    return function < expected->functions && (!expected->has_stub || expected->has_stub[function]);
}

static bool has_exits(const struct agent_expected *expected, const struct agent_record *record)
{
    return expected->has_exits && expected->has_exits[(record->function & ~AGENT_EXIT) - expected->first];
}

/* Most calls are of the image that the one before was of. */
static bool is_expected(struct agent_reader *reader, const struct agent_record *record)
{
    if (is_of(&reader->expected[reader->expected_last], record))
        return true;
    for (size_t i = 0; i < reader->expected_count; i++) {
        if (!is_of(&reader->expected[i], record))
            continue;
        reader->expected_last = i;
        return true;
    }
    return false;
}

static int check_record(struct agent_reader *reader, const struct agent_record *record)
{
    const uint64_t *begins = reader->expected[0].begins;

    if (!is_expected(reader, record))
        return reader_find_fault(reader, "a record names a function that has no inline probe");
    if (agent_record_is_exit(record) && !has_exits(&reader->expected[reader->expected_last], record))
        return reader_find_fault(reader, "a record is of the return of a function that has no such probe");
    if (begins && !begins[record->sp >> AGENT_TICK_SHIFT])
        return reader_find_fault(reader, "a record has a time that has not been");
    return 0;
}

int reader_copy_records(struct agent_reader *reader, const struct agent_record *records, size_t limit,
                        size_t *ret_count)
{
    const uint64_t *times = agent_area_times(reader->area, records);
    size_t count = 0;
    int r = 0;

    while (!r && count < limit && copy_record(&records[count], &reader->records[count]))
        r = check_record(reader, &reader->records[count++]);
    if (times)
        memcpy(reader->times, times, count * sizeof(*times));
    *ret_count = count;
    return r;
}
