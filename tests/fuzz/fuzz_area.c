/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A target that writes anything anywhere into the memory of its inline probes, between any two steps of who
 * reads it. What is handed on has functions that there are and times that have been, and the reading ends. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collector/inline/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUNCTIONS 40
#define RINGS ((size_t)4 * AGENT_CHUNK_BYTES)
#define THREADS 4

static uint64_t begins[65536];
static uint64_t handed_on;

static int consume_calls(void *context, uint32_t tid, const struct agent_record *records,
                         const uint64_t *times, size_t count)
{
    (void)context;
    (void)tid;
    for (size_t i = 0; times && i < count; i++)
        handed_on += times[i]; /* they can be read */
    for (size_t i = 0; i < count; i++)
        if (records[i].function < 1 || records[i].function > FUNCTIONS ||
            !begins[records[i].sp >> AGENT_TICK_SHIFT])
            abort();
    return 0;
}

static int take_lost(void *context, uint32_t tid, uint64_t calls)
{
    (void)context;
    (void)tid;
    if (!calls || calls >> 62)
        abort();
    return 0;
}

struct script {
    const uint8_t *bytes;
    size_t left;
};

static uint32_t next(struct script *script, size_t bytes)
{
    uint32_t value = 0;

    while (bytes-- && script->left) {
        value = value << 8 | *script->bytes++;
        script->left--;
    }
    return value;
}

/* Where targets write most: in the counts, the heads of chunks, and their records. */
static void write_somewhere(struct agent_area *area, struct script *script)
{
    uint8_t *memory = (uint8_t *)area->counts;
    size_t at = next(script, 1), count = next(script, 1) % 32;

    if (at & 1)
        at = at / 2 % sizeof(struct agent_counts);
    else
        at = AGENT_COUNTS_BYTES + at / 2 % area->chunk_count * area->chunk_bytes +
             next(script, 2) % area->chunk_bytes;
    for (size_t i = 0; i < count && at + i < area->apart_bytes; i++)
        memory[at + i] = (uint8_t)next(script, 1);
}

/* As an agent and stubs do: a chunk with so many records of what the script says. */
static void write_chunk(struct agent_area *area, struct script *script)
{
    uint64_t taken = area->counts->taken++;
    struct agent_chunk *chunk = agent_area_chunk(area, area->head->free[taken % area->chunk_count]);
    struct agent_record *records = (struct agent_record *)(chunk + 1);
    size_t count = next(script, 2) % (agent_area_records(area) + 1);

    chunk->ticket = next(script, 1) % 8;
    chunk->state = next(script, 1) % 3;
    for (size_t i = 0; i < count; i++) {
        records[i].function = 1 + (uint32_t)i % FUNCTIONS;
        records[i].sp = agent_tick_word(1) | (0x7000 - i);
    }
    if (count)
        records[next(script, 2) % count].function = next(script, 1) % (FUNCTIONS + 2);
}

static int step(struct agent_area *area, struct agent_reader *reader, struct script *script)
{
    uint32_t tid = 1 + next(script, 1) % THREADS;

    switch (next(script, 1) % 10) {
    case 0:
    case 1:
        write_somewhere(area, script);
        return 0;
    case 2:
        write_chunk(area, script);
        return 0;
    case 3:
        return agent_reader_claim(reader, next(script, 1) % 8, tid);
    case 4:
        return agent_reader_sample(reader, (uint64_t)next(script, 2) << 20);
    case 5:
        return agent_reader_read(reader);
    case 6:
        return agent_reader_read_to(reader, tid, next(script, 4));
    case 7:
        return agent_reader_share_slots(reader, tid, tid + next(script, 1) % 2);
    case 8:
        return agent_reader_end(reader, tid);
    default:
        return next(script, 1) % 4 ? 0 : agent_reader_freeze(reader, 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct agent_sink sink = {.calls = consume_calls, .lost = take_lost};
    const struct agent_expected expected = {.first = 1, .functions = FUNCTIONS, .begins = begins};
    struct script script = {data, size};
    struct agent_area *area;
    struct agent_reader *reader;
    int r = 0;

    begins[1] = 1;
    if (agent_area_new(RINGS, next(&script, 1) & 1, &area, NULL))
        return 0;
    agent_area_placed(area, (uint64_t)area->counts, 0);
    if (agent_reader_new(area, &sink, &expected, &reader))
        abort();
    while (!r && script.left)
        r = step(area, reader, &script);
    if (!r)
        r = agent_reader_end_all(reader);
    if (r)
        abort();
    agent_reader_take_unplaced(reader);
    agent_reader_take_shared(reader);
    agent_reader_free(reader);
    agent_area_free(area);
    return 0;
}
