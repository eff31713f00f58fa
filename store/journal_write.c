/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/journal.h"

void journal_mark_release(struct journal_mark *mark)
{
    free(mark->calls);
    *mark = (struct journal_mark){0};
}

void journal_mark_reset(struct journal_mark *mark)
{
    memset(mark->offsets, 0, sizeof(mark->offsets));
    mark->event_count = 0;
    mark->call_count = 0;
}

int journal_row_begin(struct bytes *row)
{
    return bytes_add_u8(row, JOURNAL_VERSION);
}

/* The functions that were called since the mark. */
static int write_calls(const struct segment_builder *builder, const struct journal_mark *mark,
                       struct bytes *out)
{
    size_t previous = 0;

    for (size_t i = 0; i < builder->function_count; i++) {
        uint32_t before = i < mark->call_count ? mark->calls[i] : 0;

        if (builder->calls[i] == before)
            continue;
        if (bytes_add_varint(out, i + 1 - previous) || bytes_add_varint(out, builder->calls[i] - before))
            return -ENOMEM;
        previous = i + 1;
    }
    return 0;
}

static int write_chunk_head(struct bytes *out, int64_t thread_id, const struct segment_builder *builder,
                            const struct journal_mark *mark, const size_t sizes[SECTION_COUNT])
{
    if (bytes_add_varint(out, (uint64_t)thread_id) || bytes_add_varint(out, builder->first_seq) ||
        bytes_add_varint(out, builder->event_count) || bytes_add_u8(out, builder->codec->id) ||
        bytes_add_u8(out, builder->flags) || bytes_add_varint(out, builder->first_ns))
        return -ENOMEM;
    for (int i = 0; i < SECTION_COUNT; i++)
        if (bytes_add_varint(out, mark->offsets[i]) || bytes_add_varint(out, sizes[i]))
            return -ENOMEM;
    return 0;
}

int journal_add_chunk(struct bytes *row, int64_t thread_id, const struct segment_builder *builder,
                      struct journal_mark *mark)
{
    AUTO_BYTES chunk = {0}, calls = {0};
    struct segment_parts parts;
    struct codec_tail tail;
    size_t sizes[SECTION_COUNT];

    segment_builder_snapshot(builder, &parts, &tail);
    for (int i = 0; i < SECTION_COUNT; i++)
        sizes[i] = parts.sections[i].size - mark->offsets[i];
    sizes[SECTION_CODE] += tail.size;
    if (array_reserve(&mark->calls, &mark->call_capacity, builder->function_count) ||
        write_calls(builder, mark, &calls) || write_chunk_head(&chunk, thread_id, builder, mark, sizes) ||
        bytes_add_varint(&chunk, calls.size))
        return -ENOMEM;
    for (int i = 0; i < SECTION_COUNT; i++)
        if (parts.sections[i].size > mark->offsets[i] &&
            bytes_add(&chunk, parts.sections[i].data + mark->offsets[i],
                      parts.sections[i].size - mark->offsets[i]))
            return -ENOMEM;
    if (bytes_add(&chunk, tail.data, tail.size) || bytes_add(&chunk, calls.data, calls.size) ||
        bytes_reserve(row, chunk.size + VARINT_MAX_BYTES))
        return -ENOMEM;
    bytes_add_varint(row, chunk.size); /* neither can fail any more */
    return bytes_add(row, chunk.data, chunk.size);
}

void journal_advance(struct journal_mark *mark, const struct segment_builder *builder)
{
    mark->offsets[SECTION_STACK] = builder->stack.size;
    mark->offsets[SECTION_DICTIONARY] = builder->dictionary.size;
    mark->offsets[SECTION_TIME] =
        builder->anchor_at < builder->time.size ? builder->anchor_at : builder->time.size;
    mark->offsets[SECTION_CODE] = builder->encoder ? builder->encoder->stable : 0;
    mark->event_count = builder->event_count;
    if (builder->function_count)
        memcpy(mark->calls, builder->calls, builder->function_count * sizeof(*mark->calls));
    mark->call_count = builder->function_count;
}
