/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/segment/journal.h"

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

    for (size_t i = 0; i < builder->functions.count; i++) {
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
                            const struct journal_mark *mark, uint8_t flags, const size_t sizes[SECTION_COUNT])
{
    if (bytes_add_varint(out, (uint64_t)thread_id) || bytes_add_varint(out, builder->first_seq) ||
        bytes_add_varint(out, builder->event_count) || bytes_add_u8(out, builder->codec->id) ||
        bytes_add_u8(out, flags) || bytes_add_varint(out, builder->first_ns))
        return -ENOMEM;
    for (int i = 0; i < SECTION_COUNT; i++)
        if (segment_has_section(flags, i) &&
            (bytes_add_varint(out, mark->offsets[i]) || bytes_add_varint(out, sizes[i])))
            return -ENOMEM;
    return 0;
}

/* What is behind the mark of each section, with the tails. */
static int write_sections(struct bytes *out, const struct segment_parts *parts,
                          const struct segment_tails *tails, const struct journal_mark *mark)
{
    for (int i = 0; i < SECTION_COUNT; i++) {
        const struct section *section = &parts->sections[i];
        const struct codec_tail *tail = segment_tail(tails, i);

        if (section->size > mark->offsets[i] &&
            bytes_add(out, section->data + mark->offsets[i], section->size - mark->offsets[i]))
            return -ENOMEM;
        if (tail && bytes_add(out, tail->data, tail->size))
            return -ENOMEM;
    }
    return 0;
}

/* Up to where the sections never change again. */
static void set_next_offsets(const struct segment_builder *builder, const struct segment_parts *parts,
                             struct journal_mark *mark)
{
    for (int i = 0; i < SECTION_COUNT; i++)
        mark->next_offsets[i] = parts->sections[i].size;
    if (builder->anchor_at < builder->time.size)
        mark->next_offsets[SECTION_TIME] = builder->anchor_at;
}

static int write_chunk(struct bytes *chunk, int64_t thread_id, const struct segment_builder *builder,
                       const struct numbering numberings[NUMBER_KINDS], struct journal_mark *mark)
{
    AUTO_BYTES calls = {0};
    struct bytes scratch[SECTION_COUNT] = {0};
    struct segment_parts parts;
    struct segment_tails tails;
    size_t sizes[SECTION_COUNT];
    int code;

    segment_builder_snapshot(builder, &parts, &tails);
    code = numbering_translate(numberings, &parts, scratch);
    for (int i = 0; i < SECTION_COUNT; i++) {
        const struct codec_tail *tail = segment_tail(&tails, i);

        sizes[i] = parts.sections[i].size - mark->offsets[i] + (tail ? tail->size : 0);
    }
    if (!code && (array_reserve(&mark->calls, &mark->call_capacity, builder->functions.count) ||
                  write_calls(builder, mark, &calls) ||
                  write_chunk_head(chunk, thread_id, builder, mark, parts.flags, sizes) ||
                  bytes_add_varint(chunk, calls.size) || write_sections(chunk, &parts, &tails, mark) ||
                  bytes_add(chunk, calls.data, calls.size)))
        code = -ENOMEM;
    set_next_offsets(builder, &parts, mark);
    for (int i = 0; i < SECTION_COUNT; i++)
        bytes_release(&scratch[i]);
    return code;
}

int journal_add_chunk(struct bytes *row, int64_t thread_id, const struct segment_builder *builder,
                      const struct numbering numberings[NUMBER_KINDS], struct journal_mark *mark)
{
    AUTO_BYTES chunk = {0};

    if (write_chunk(&chunk, thread_id, builder, numberings, mark) ||
        bytes_reserve(row, chunk.size + VARINT_MAX_BYTES))
        return -ENOMEM;
    bytes_add_varint(row, chunk.size); /* neither can fail any more */
    return bytes_add(row, chunk.data, chunk.size);
}

void journal_advance(struct journal_mark *mark, const struct segment_builder *builder)
{
    memcpy(mark->offsets, mark->next_offsets, sizeof(mark->offsets));
    mark->event_count = builder->event_count;
    if (builder->functions.count)
        memcpy(mark->calls, builder->calls, builder->functions.count * sizeof(*mark->calls));
    mark->call_count = builder->functions.count;
}
