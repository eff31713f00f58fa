/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/uprobe/packed_reader.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/array.h"
#include "base/clock.h"

/* What stood in a slot. */
struct slot_copy {
    uint32_t slot, tid;
    uint64_t progress;
    uint8_t tokens[PACKED_BYTES];
};

struct packed_reader {
    struct packed_slot *slots; /* shared with the kernel side */
    uint32_t count;
    int pool;
    struct unpacker **unpackers; /* of the slots; NULL: it has not been used */
    struct slot_copy *copies;
    size_t copied, capacity;
};

static size_t mapped_bytes(uint32_t count)
{
    size_t page = 4096;

    return (count * sizeof(struct packed_slot) + page - 1) / page * page;
}

static int fill_pool(const struct packed_reader *reader)
{
    int r = 0;

    for (uint32_t i = reader->count; !r && i--;) /* the last one in is the first one out */
        r = bpf_map_update_elem(reader->pool, NULL, &i, BPF_ANY);
    return r;
}

int packed_reader_new(int slots, int pool, uint32_t count, struct packed_reader **ret_reader)
{
    struct packed_reader *reader = calloc(1, sizeof(*reader));
    void *mapped;
    int r;

    if (!reader)
        return -ENOMEM;
    reader->count = count;
    reader->pool = pool;
    reader->unpackers = calloc(count, sizeof(struct unpacker *));
    mapped = mmap(NULL, mapped_bytes(count), PROT_READ | PROT_WRITE, MAP_SHARED, slots, 0);
    reader->slots = mapped == MAP_FAILED ? NULL : mapped;
    r = !reader->slots ? -errno : !reader->unpackers ? -ENOMEM : fill_pool(reader);
    if (r)
        packed_reader_free(reader);
    else
        *ret_reader = reader;
    return r;
}

void packed_reader_free(struct packed_reader *reader)
{
    if (!reader)
        return;
    for (uint32_t i = 0; reader->unpackers && i < reader->count; i++)
        free(reader->unpackers[i]);
    if (reader->slots)
        munmap(reader->slots, mapped_bytes(reader->count));
    free(reader->unpackers);
    free(reader->copies);
    free(reader);
}

static struct unpacker *unpacker_of(struct packed_reader *reader, uint32_t slot)
{
    if (!reader->unpackers[slot])
        reader->unpackers[slot] = calloc(1, sizeof(struct unpacker));
    return reader->unpackers[slot];
}

/* ------------------------------------------------------------------------------------ what cannot be read */

static bool is_broken(const struct packed_reader *reader, uint32_t slot)
{
    return reader->slots[slot].broken;
}

static uint32_t at_most(uint32_t value, uint32_t most)
{
    return value < most ? value : most;
}

/* Hands on the events of a record as lost that have not been handed on. */
static void lose_rest(const struct wire_packed *record, const struct unpacker *unpacker,
                      struct unpack_sink *sink)
{
    bool begun = record->chunk == unpacker->chunk;
    uint32_t events = at_most(record->events, 2 * PACKED_EVENTS), returns = at_most(record->returns, events);
    uint32_t done = begun ? at_most(unpacker->events - unpacker->returns, events - returns) : 0;
    const struct wire_lost lost = {
        .header = {.kind = WIRE_LOST, .tid = record->header.tid, .ns = clock_ns(CLOCK_MONOTONIC)},
        .calls = events - returns - done,
        .returns = returns - (begun ? at_most(unpacker->returns, returns) : 0),
    };

    if (sink->answer >= 0 && sink->handle(sink->context, &lost, sizeof(lost)) < 0)
        sink->answer = -EBADMSG;
}

/* The predictors have parted, which only a fault can do: the slot is of no use any more, and the thread
 * writes plain records as soon as it sees that. */
static void give_up(struct packed_reader *reader, uint32_t slot)
{
    __atomic_store_n(&reader->slots[slot].broken, 1, __ATOMIC_SEQ_CST);
}

int packed_reader_record(struct packed_reader *reader, const void *data, size_t size,
                         struct unpack_sink *sink)
{
    const struct wire_packed *record = data;
    struct unpacker *unpacker;

    if (size < sizeof(*record) || record->slot >= reader->count)
        return -EBADMSG;
    unpacker = unpacker_of(reader, record->slot);
    if (!unpacker)
        return -ENOMEM;
    if (!is_broken(reader, record->slot)) {
        int r = -EBADMSG;

        unpack_begin(unpacker, record->header.tid);
        if (record->chunk == unpacker->chunk)
            r = unpack_tokens(unpacker, (const uint8_t *)data + sizeof(*record), size - sizeof(*record), 0,
                              sink);
        if (sink->answer < 0 || (!r && !unpack_end(unpacker, record->check)))
            return 0;
        give_up(reader, record->slot);
    }
    lose_rest(record, unpacker, sink);
    return 0;
}

/* ------------------------------------------------------------------------------------ what stands in slots
 */

/* Whether something stands in the slot that has not been handed on, or is left to give back. */
static bool has_updates(const struct packed_reader *reader, uint32_t slot, uint64_t progress)
{
    const struct unpacker *unpacker = reader->unpackers[slot];

    if (reader->slots[slot].left_behind)
        return true;
    if (!progress_length(progress) && !progress_run(progress))
        return false;
    return !unpacker || unpacker->chunk != progress_chunk(progress) ||
           unpacker->length != progress_length(progress) || unpacker->run != progress_run(progress);
}

/* False: its thread wrote a record, or gave the slot back meanwhile. */
static bool copy_slot(const struct packed_slot *slot, uint32_t tid, uint64_t progress, struct slot_copy *copy)
{
    size_t length = progress_length(progress);

    if (length > sizeof(copy->tokens))
        return false;
    memcpy(copy->tokens, slot->tokens, length);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    copy->tid = tid;
    copy->progress = progress;
    return progress_chunk(__atomic_load_n(&slot->progress, __ATOMIC_ACQUIRE)) == progress_chunk(progress) &&
           __atomic_load_n(&slot->owner, __ATOMIC_ACQUIRE) == tid;
}

int packed_reader_sample(struct packed_reader *reader)
{
    reader->copied = 0;
    for (uint32_t i = 0; i < reader->count; i++) {
        const struct packed_slot *slot = &reader->slots[i];
        uint32_t tid = __atomic_load_n(&slot->owner, __ATOMIC_ACQUIRE);
        uint64_t progress = __atomic_load_n(&slot->progress, __ATOMIC_ACQUIRE);

        if (!tid || slot->broken || !has_updates(reader, i, progress))
            continue;
        if (array_reserve(&reader->copies, &reader->capacity, reader->copied + 1))
            return -ENOMEM;
        reader->copies[reader->copied].slot = i;
        reader->copied += copy_slot(slot, tid, progress, &reader->copies[reader->copied]);
    }
    return 0;
}

/* The thread has left it behind, and all that stands in it has been handed on. */
static void give_back(struct packed_reader *reader, uint32_t index, struct unpacker *unpacker)
{
    struct packed_slot *slot = &reader->slots[index];

    unpack_next_chunk(unpacker);
    slot->events = slot->returns = 0;
    __atomic_store_n(&slot->progress, (uint64_t)unpacker->chunk << PROGRESS_CHUNK_SHIFT, __ATOMIC_SEQ_CST);
    __atomic_store_n(&slot->owner, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&slot->left_behind, 0, __ATOMIC_SEQ_CST);
    bpf_map_update_elem(reader->pool, NULL, &index, BPF_ANY);
}

static int consume_copy(struct packed_reader *reader, const struct slot_copy *copy, struct unpack_sink *sink)
{
    struct unpacker *unpacker = unpacker_of(reader, copy->slot);
    const struct packed_slot *slot = &reader->slots[copy->slot];
    int r;

    if (!unpacker)
        return -ENOMEM;
    if (unpacker->chunk != progress_chunk(copy->progress) || is_broken(reader, copy->slot))
        return 0; /* its record has come meanwhile */
    unpack_begin(unpacker, copy->tid);
    r = unpack_tokens(unpacker, copy->tokens, progress_length(copy->progress), progress_run(copy->progress),
                      sink);
    if (sink->answer < 0)
        return 0;
    if (r)
        give_up(reader, copy->slot); /* and its record, when it comes, is a loss */
    else if (slot->left_behind && slot->owner == copy->tid && slot->progress == copy->progress)
        give_back(reader, copy->slot, unpacker);
    return 0;
}

int packed_reader_consume(struct packed_reader *reader, struct unpack_sink *sink)
{
    int r = 0;

    for (size_t i = 0; !r && sink->answer >= 0 && i < reader->copied; i++)
        r = consume_copy(reader, &reader->copies[i], sink);
    reader->copied = 0;
    return r;
}

int packed_reader_consume_left(struct packed_reader *reader, uint32_t tid, uint32_t tgid,
                               struct unpack_sink *sink)
{
    struct slot_copy copy;
    int r = 0;

    for (uint32_t i = 0; !r && i < reader->count; i++) {
        const struct packed_slot *slot = &reader->slots[i];

        if (!slot->left_behind || (slot->owner != tid && (!tgid || slot->tgid != tgid)))
            continue;
        copy.slot = i;
        if (copy_slot(slot, slot->owner, slot->progress, &copy))
            r = consume_copy(reader, &copy, sink);
    }
    return r;
}
