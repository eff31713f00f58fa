/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/uprobe/ring_reader.h"

#include <bpf/libbpf.h>
#include <errno.h>

#include "base/clock.h"

#define LOOK_NS 100000000u /* into the slots, at least this often */

enum { RING_MAIN, RING_OVERFLOW, RINGS };

/* Says so when threads have ended, or have another id, whose slots hold what comes before. */
static int consume_left_behind(struct ring_reader *reader, const struct wire_header *header, size_t size)
{
    const struct wire_exit *end = (const struct wire_exit *)header;
    const struct wire_exec *exec = (const struct wire_exec *)header;

    if (header->kind == WIRE_EXIT && size >= sizeof(*end))
        return packed_reader_consume_left(reader->packed, header->tid,
                                          header->flags & WIRE_LAST_THREAD ? end->tgid : 0, &reader->sink);
    if (header->kind == WIRE_EXEC && size >= sizeof(*exec))
        return packed_reader_consume_left(reader->packed, exec->old_tid, 0, &reader->sink);
    return 0;
}

static int consume_plain(struct ring_reader *reader, const struct wire_header *header, size_t size)
{
    int r = 0;

    if (reader->packed && size >= sizeof(*header) && header->flags & WIRE_LEFT_BEHIND)
        r = consume_left_behind(reader, header, size);
    if (r || reader->sink.answer < 0)
        return r;
    r = reader->sink.handle(reader->sink.context, header, size);
    reader->sink.records++;
    if (r < 0 || !reader->sink.answer)
        reader->sink.answer = r;
    return 0;
}

static int on_record(void *context, void *record, size_t size)
{
    struct ring_reader *reader = context;
    const struct wire_header *header = record;
    uint64_t before = reader->sink.records, taken;
    int r;

    if (reader->packed && size >= sizeof(*header) && header->kind == WIRE_PACKED)
        r = packed_reader_record(reader->packed, record, size, &reader->sink);
    else
        r = consume_plain(reader, header, size);
    if (r < 0 || reader->sink.answer < 0) {
        reader->failure = r < 0 ? r : reader->sink.answer;
        return -EINTR;
    }
    taken = reader->sink.records - before;
    /* Ends the round so that a target that never pauses cannot keep the collector from committing. */
    if (reader->sink.answer || taken >= reader->left)
        return -EINTR;
    reader->left -= taken;
    return 0;
}

int ring_reader_open(struct ring_reader *reader, int ring, int overflow, struct packed_reader *packed)
{
    reader->packed = packed;
    reader->rings = ring_buffer__new(ring, on_record, reader, NULL);
    return reader->rings ? ring_buffer__add(reader->rings, overflow, on_record, reader) : -errno;
}

void ring_reader_close(struct ring_reader *reader)
{
    ring_buffer__free(reader->rings);
    packed_reader_free(reader->packed);
}

static const struct ring *ring_of(const struct ring_reader *reader, unsigned which)
{
    return ring_buffer__ring(reader->rings, which);
}

/* Looks into the slots if that is wanted or if it is time, and if what was found last has been taken. */
static int look(struct ring_reader *reader)
{
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    int r;

    if (!reader->packed || reader->looked || (!reader->wanted && now - reader->sampled_ns < LOOK_NS))
        return 0;
    r = packed_reader_sample(reader->packed);
    reader->looked_at = ring__producer_pos(ring_of(reader, RING_MAIN));
    reader->sampled_ns = now;
    reader->wanted = false;
    reader->looked = !r;
    return r;
}

/* Takes what was found in the slots once all has been read that was in the ring then. */
static int take(struct ring_reader *reader)
{
    unsigned long read = ring__consumer_pos(ring_of(reader, RING_MAIN));

    if (!reader->looked || (long)(read - reader->looked_at) < 0)
        return 0;
    reader->looked = false;
    return packed_reader_consume(reader->packed, &reader->sink);
}

/* Looks into the slots, reads the rings, takes what was found. */
static int consume(struct ring_reader *reader)
{
    int r = look(reader);

    if (r)
        return r;
    r = ring_buffer__consume(reader->rings);
    if (reader->failure)
        return reader->failure;
    if (r < 0 && r != -EINTR)
        return r;
    r = take(reader);
    return r < 0 ? r : reader->sink.answer < 0 ? reader->sink.answer : 0;
}

int ring_reader_consume(struct ring_reader *reader, unsigned limit, wire_handler handle, void *context)
{
    int r;

    reader->sink = (struct unpack_sink){.handle = handle, .context = context};
    reader->left = limit;
    reader->failure = 0;
    r = consume(reader);
    if (!r && reader->wanted && !reader->looked) /* the last look was still to be dealt with */
        r = consume(reader);
    if (r < 0)
        return r;
    return reader->sink.records > INT32_MAX ? INT32_MAX : (int)reader->sink.records;
}

uint64_t ring_reader_bytes(const struct ring_reader *reader)
{
    return ring__consumer_pos(ring_of(reader, RING_MAIN)) +
           ring__consumer_pos(ring_of(reader, RING_OVERFLOW));
}
