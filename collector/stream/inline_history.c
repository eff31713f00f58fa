/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/stream/inline_history.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 256u
#define LEAST 8u      /* records of a stretch that is worth it */
#define AT_ONCE 4096u /* the most */
#define REST_RECORDS 1000000u

/* In the stack pointer of a kept record: it did not begin with the open calls that the one before has left. */
#define APART ((uint64_t)1 << 63)

_Static_assert(AGENT_TICK_SHIFT <= 63, "there is a bit beside the stack pointer");
_Static_assert(sizeof(struct agent_record) == 16, "two words");

static uint64_t place_of(const struct agent_record *record)
{
    return record->function | (uint64_t)record->return_address << 32;
}

/* Not 0 when they differ in more than the tick. */
static uint64_t difference(const struct agent_record *record, const struct agent_record *kept)
{
    return (place_of(record) ^ place_of(kept)) | ((record->sp ^ kept->sp) & AGENT_SP_MASK);
}

static uint32_t *table_slot(const struct inline_history *history, uint32_t stack,
                            const struct agent_record *records)
{
    uint64_t sum = (place_of(&records[0]) * 0x9e3779b97f4a7c15u ^ agent_record_sp(&records[0])) + stack;

    sum = (sum ^ sum >> 29) * 0xd6e8feb86659fd93u + place_of(&records[1]) + agent_record_sp(&records[1]);
    sum = (sum ^ sum >> 32) * 0x9e3779b97f4a7c15u;
    return &history->table[sum >> 32 & (2 * (size_t)history->capacity - 1)];
}

/* ------------------------------------------------------------------------------------ memory */

void inline_history_init(struct inline_history *history, size_t *memory_left)
{
    *history = (struct inline_history){.memory_left = memory_left};
}

void inline_history_release(struct inline_history *history)
{
    if (history->memory_left)
        *history->memory_left += history->memory;
    free(history->records);
    free(history->steps);
    free(history->table);
    *history = (struct inline_history){0};
}

void inline_history_forget(struct inline_history *history)
{
    if (history->count)
        memset(history->table, 0, 2 * (size_t)history->capacity * sizeof(*history->table));
    history->count = history->next = 0;
    history->served = 0;
}

/* What two records here began with and left are numbers of the paths. */
static void note_place(struct inline_history *history, const struct inline_paths *paths, uint32_t at)
{
    *table_slot(history, inline_paths_before(paths, history->steps[at]), &history->records[at]) = at + 1;
}

static bool is_apart(const struct inline_history *history, uint32_t at)
{
    return history->records[at].sp & APART;
}

static size_t memory_of(size_t capacity)
{
    return capacity * (sizeof(struct agent_record) + sizeof(uint32_t) + 2 * sizeof(uint32_t));
}

/* Twice as many, or the first ones. */
static bool grow(struct inline_history *history, const struct inline_paths *paths)
{
    size_t capacity = history->capacity ? 2 * (size_t)history->capacity : FIRST_CAPACITY;
    size_t more = memory_of(capacity) - history->memory;
    struct agent_record *records;
    uint32_t *steps, *table;

    if (capacity > INLINE_HISTORY_MOST || more > *history->memory_left)
        return false;
    records = reallocarray(history->records, capacity, sizeof(*records));
    steps = reallocarray(history->steps, capacity, sizeof(*steps));
    table = calloc(2 * capacity, sizeof(*table));
    history->records = records ? records : history->records;
    history->steps = steps ? steps : history->steps;
    if (!records || !steps || !table) {
        free(table);
        return false;
    }
    free(history->table);
    history->table = table;
    history->capacity = (uint32_t)capacity;
    *history->memory_left -= more;
    history->memory += more;
    for (uint32_t at = 1; at < history->count; at++)
        if (!is_apart(history, at))
            note_place(history, paths, at - 1);
    return true;
}

/* ------------------------------------------------------------------------------------ what is kept */

bool inline_history_is_kept(struct inline_history *history, const struct inline_paths *paths, size_t count)
{
    if (history->paths != paths->forgotten)
        inline_history_forget(history);
    history->paths = paths->forgotten;
    if (!history->rest)
        return true;
    history->rest = history->rest > count ? history->rest - (uint32_t)count : 0;
    return false;
}

/* The writer has begun anew. A thread that has hardly come back to what it has done has no use for it. */
static void begin_anew(struct inline_history *history, const struct kept_steps *kept)
{
    if (history->count >= INLINE_HISTORY_MOST / 2 && history->served < 2 * (uint64_t)history->count)
        history->rest = REST_RECORDS;
    inline_history_forget(history);
    history->generation = kept->generation;
    history->first = kept->first;
}

void inline_history_add(struct inline_history *history, const struct inline_paths *paths,
                        const struct agent_record *records, const uint32_t *steps,
                        const struct kept_steps *kept)
{
    if (kept->generation != history->generation || kept->first != history->first + history->count)
        begin_anew(history, kept);
    for (uint32_t i = 0; i < kept->count; i++) {
        uint32_t at = history->count;
        bool apart =
            !at || inline_paths_behind(paths, history->steps[at - 1]) != inline_paths_before(paths, steps[i]);

        if (at == history->capacity && !grow(history, paths))
            return; /* the next numbers do not follow: all begins anew */
        history->records[at] = records[i];
        history->records[at].sp = (records[i].sp & AGENT_SP_MASK) | (apart ? APART : 0);
        history->steps[at] = steps[i];
        history->count++;
        if (!apart)
            note_place(history, paths, at - 1);
    }
}

/* ------------------------------------------------------------------------------------ stretches */

/* How many records are those from `at` on. */
static uint32_t count_same(const struct inline_history *history, uint32_t at,
                           const struct agent_record *records, size_t count)
{
    const struct agent_record *kept = &history->records[at];
    uint32_t most = history->count - at, same = 1;

    most = most < count ? most : (uint32_t)count;
    most = most < AT_ONCE ? most : AT_ONCE;
    if (!most || difference(records, kept))
        return 0;
    for (; most - same >= 8; same += 8) {
        uint64_t differences = 0;

        for (uint32_t i = 0; i < 8; i++)
            differences |= difference(&records[same + i], &kept[same + i]) | (kept[same + i].sp & APART);
        if (differences)
            break;
    }
    while (same < most && !difference(&records[same], &kept[same]) && !(kept[same].sp & APART))
        same++;
    return same;
}

/* Whether a stretch may begin at the kept record, and how long it is. */
static uint32_t try_place(const struct inline_history *history, const struct inline_paths *paths, uint32_t at,
                          uint32_t stack, const struct agent_record *records, size_t count)
{
    uint32_t same;

    if (at >= history->count || inline_paths_before(paths, history->steps[at]) != stack)
        return 0;
    same = count_same(history, at, records, count);
    return same >= LEAST || same == count ? same : 0;
}

struct inline_stretch inline_history_find(const struct inline_history *history,
                                          const struct inline_paths *paths, uint32_t stack,
                                          const struct agent_record *records, size_t count)
{
    struct inline_stretch stretch = {.first = history->next};

    if (!count || !history->count || !stack)
        return stretch;
    stretch.count = try_place(history, paths, stretch.first, stack, records, count);
    if (!stretch.count && count > 1) {
        stretch.first = *table_slot(history, stack, records) - 1;
        stretch.count = try_place(history, paths, stretch.first, stack, records, count);
    }
    if (!stretch.count)
        return stretch;
    stretch.last_step = history->steps[stretch.first + stretch.count - 1];
    stretch.kept = (struct kept_steps){
        .generation = history->generation, .first = history->first + stretch.first, .count = stretch.count};
    return stretch;
}

void inline_history_served(struct inline_history *history, const struct inline_stretch *stretch)
{
    history->next = stretch->first + stretch->count;
    history->served += stretch->count;
}
