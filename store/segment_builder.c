/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Makes a segment event by event: dictionary, times, the calls open at its start, and the code. */
#include "base/cleanup.h"
#include "store/segment.h"

#define FIRST_TABLE_SIZE 32u
#define NO_ANCHOR SIZE_MAX

DEFINE_CLEANUP(cleanup_closed, struct closed_segment *, closed_segment_free)

void segment_builder_init(struct segment_builder *builder, const struct codec *codec, uint8_t flags)
{
    *builder = (struct segment_builder){.codec = codec, .flags = flags, .anchor_at = NO_ANCHOR};
}

void segment_builder_release(struct segment_builder *builder)
{
    segment_builder_rest(builder);
    free(builder->open);
    bytes_release(&builder->stack);
    bytes_release(&builder->time);
}

void segment_builder_rest(struct segment_builder *builder)
{
    builder->codec->encoder_free(take_pointer(builder->encoder));
    free(take_pointer(builder->functions));
    free(take_pointer(builder->calls));
    free(take_pointer(builder->table));
    free(take_pointer(builder->returned));
    builder->function_count = builder->function_capacity = builder->calls_capacity = 0;
    builder->table_size = builder->returned_count = builder->returned_capacity = 0;
    bytes_release(&builder->dictionary);
}

/* ------------------------------------------------------------------------------------------ dictionary */

/* The slot of `function`, or the free one where it belongs. */
static inline struct local_id *table_slot(const struct segment_builder *builder, uint32_t function)
{
    size_t mask = builder->table_size - 1;
    size_t at = (uint32_t)(function * 2654435769u) >> 7 & mask;

    while (builder->table[at].local && builder->table[at].function != function)
        at = (at + 1) & mask;
    return &builder->table[at];
}

static int table_grow(struct segment_builder *builder)
{
    size_t size = builder->table_size ? 2 * builder->table_size : FIRST_TABLE_SIZE;
    struct local_id *table = calloc(size, sizeof(*table));

    if (!table)
        return -ENOMEM;
    free(builder->table);
    builder->table = table;
    builder->table_size = size;
    for (size_t i = 0; i < builder->function_count; i++)
        *table_slot(builder, builder->functions[i]) =
            (struct local_id){.function = builder->functions[i], .local = (uint32_t)i + 1};
    return 0;
}

/* Gives `function` the next local id. An entry that no event names, for lack of memory, does no harm. */
static int dictionary_add(struct segment_builder *builder, uint32_t function, uint16_t *ret_local)
{
    size_t count = builder->function_count;
    uint32_t previous = count ? builder->functions[count - 1] : 0;

    if (count == SEGMENT_MAX_FUNCTIONS)
        return -E2BIG;
    if (array_reserve(&builder->functions, &builder->function_capacity, count + 1) ||
        array_reserve(&builder->calls, &builder->calls_capacity, count + 1) ||
        (2 * count + 2 > builder->table_size && table_grow(builder)) ||
        bytes_add_varint(&builder->dictionary, zigzag32(function - previous - 1)))
        return -ENOMEM;
    builder->functions[count] = function;
    builder->calls[count] = 0;
    builder->function_count++;
    *table_slot(builder, function) = (struct local_id){.function = function, .local = (uint32_t)count + 1};
    *ret_local = (uint16_t)(count + 1);
    return 0;
}

static inline int dictionary_find(struct segment_builder *builder, uint32_t function, uint16_t *ret_local)
{
    if (builder->table_size) {
        struct local_id *slot = table_slot(builder, function);

        if (slot->local) {
            *ret_local = (uint16_t)slot->local;
            return 0;
        }
    }
    return dictionary_add(builder, function, ret_local);
}

/* ------------------------------------------------------------------------------------------ events */

static inline int append(struct segment_builder *builder, uint16_t word)
{
    int code;

    if (!builder->encoder) {
        builder->encoder = builder->codec->encoder_new();
        if (!builder->encoder)
            return -ENOMEM;
    }
    code = builder->codec->encode(builder->encoder, word);
    if (!code)
        builder->event_count++;
    return code;
}

int segment_builder_call(struct segment_builder *builder, uint32_t function)
{
    uint64_t seq = builder->first_seq + builder->event_count;
    uint16_t local;
    int code;

    if (function == TRACESTORE_NO_FUNCTION || function == TRACESTORE_LOST_FUNCTION)
        return -EINVAL;
    code = dictionary_find(builder, function, &local);
    if (code)
        return code;
    if (array_reserve(&builder->open, &builder->open_capacity, builder->depth + 1))
        return -ENOMEM;
    code = append(builder, local);
    if (code)
        return code;
    builder->calls[local - 1]++;
    if (!(builder->flags & SEGMENT_CALLS_ONLY))
        builder->open[builder->depth++] =
            (struct open_call){.seq = seq, .ns = builder->anchor_ns, .function = function};
    return 0;
}

int segment_builder_return(struct segment_builder *builder)
{
    int code;

    if (!builder->depth)
        return -EINVAL;
    if (builder->depth == builder->low_depth &&
        array_reserve(&builder->returned, &builder->returned_capacity, builder->returned_count + 1))
        return -ENOMEM;
    code = append(builder, 0);
    if (code)
        return code;
    builder->depth--;
    if (builder->depth < builder->low_depth) {
        builder->low_depth = builder->depth;
        builder->returned[builder->returned_count++] = builder->open[builder->depth].function;
    }
    return 0;
}

int segment_builder_lost(struct segment_builder *builder)
{
    uint16_t local;
    int code = dictionary_find(builder, TRACESTORE_LOST_FUNCTION, &local);

    return code ? code : append(builder, local);
}

/* An anchor at the place of the last one replaces it, so that a thread that only waits does not grow. */
int segment_builder_anchor(struct segment_builder *builder, uint64_t ns)
{
    bool replaces = builder->anchor_at != NO_ANCHOR && builder->anchor_index == builder->event_count;
    uint64_t from_ns = replaces ? builder->previous_ns : builder->anchor_ns;
    uint64_t from_index = replaces                          ? builder->previous_index
                          : builder->anchor_at == NO_ANCHOR ? 0
                                                            : builder->anchor_index;

    if (ns < builder->anchor_ns)
        ns = builder->anchor_ns;
    if (bytes_reserve(&builder->time, 3 * VARINT_MAX_BYTES))
        return -ENOMEM;
    if (replaces)
        builder->time.size = builder->anchor_at;
    if (!builder->time.size) /* the anchor before the segment: there was none */
        bytes_add_varint(&builder->time, 0);
    builder->anchor_at = builder->time.size;
    bytes_add_varint(&builder->time, builder->event_count - from_index);
    bytes_add_varint(&builder->time, ns - from_ns);
    builder->previous_ns = from_ns;
    builder->previous_index = from_index;
    builder->anchor_ns = ns;
    builder->anchor_index = builder->event_count;
    if (!builder->first_ns)
        builder->first_ns = ns;
    return 0;
}

size_t segment_builder_bytes(const struct segment_builder *builder)
{
    return 3 + SECTION_COUNT + builder->stack.size + builder->dictionary.size + builder->time.size +
           (builder->encoder ? builder->encoder->code.size : 0);
}

void segment_builder_snapshot(const struct segment_builder *builder, struct segment_parts *ret_parts,
                              struct codec_tail *ret_tail)
{
    struct segment_parts parts = {.codec = builder->codec->id, .flags = builder->flags};
    struct section *sections = parts.sections;

    *ret_tail = (struct codec_tail){0};
    sections[SECTION_STACK] = (struct section){builder->stack.data, builder->stack.size};
    sections[SECTION_DICTIONARY] = (struct section){builder->dictionary.data, builder->dictionary.size};
    sections[SECTION_TIME] = (struct section){builder->time.data, builder->time.size};
    if (builder->encoder) {
        builder->codec->snapshot(builder->encoder, ret_tail);
        sections[SECTION_CODE] = (struct section){builder->encoder->code.data, ret_tail->keep};
    }
    *ret_parts = parts;
}

/* ------------------------------------------------------------------------------------------ closing */

void closed_segment_free(struct closed_segment *closed)
{
    if (!closed)
        return;
    bytes_release(&closed->payload);
    free(closed->functions);
    free(closed);
}

/* The stack section of a segment that begins now. */
static int write_stack(const struct segment_builder *builder, struct bytes *stack)
{
    struct open_call before = {0};

    for (size_t i = 0; i < builder->depth; i++) {
        const struct open_call *call = &builder->open[i];

        if (bytes_add_varint(stack, zigzag32(call->function - before.function)) ||
            bytes_add_varint(stack, call->seq - before.seq) || bytes_add_varint(stack, call->ns - before.ns))
            return -ENOMEM;
        before = *call;
    }
    return 0;
}

static int compare_u32(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

    return (left > right) - (left < right);
}

static int collect_functions(struct segment_builder *builder, struct closed_segment *closed)
{
    size_t count = 0, most = builder->function_count + builder->returned_count;

    closed->functions = calloc(most ? most : 1, sizeof(*closed->functions));
    if (!closed->functions)
        return -ENOMEM;
    for (size_t i = 0; i < builder->function_count; i++) {
        uint32_t function = builder->functions[i];

        closed->functions[count++] = (struct function_calls){
            .function = function,
            .calls = function == TRACESTORE_LOST_FUNCTION ? 0 : builder->calls[i],
        };
    }
    if (builder->returned_count)
        qsort(builder->returned, builder->returned_count, sizeof(uint32_t), compare_u32);
    for (size_t i = 0; i < builder->returned_count; i++) {
        uint32_t function = builder->returned[i];

        if ((!i || function != builder->returned[i - 1]) &&
            !(builder->table_size && table_slot(builder, function)->local))
            closed->functions[count++] = (struct function_calls){.function = function};
    }
    closed->function_count = count;
    return 0;
}

/* The payload: the sections of the snapshot, with the tail behind the code. */
static int write_payload(const struct segment_builder *builder, struct bytes *payload)
{
    AUTO_BYTES code = {0};
    struct segment_parts parts;
    struct codec_tail tail;

    segment_builder_snapshot(builder, &parts, &tail);
    if (bytes_add(&code, parts.sections[SECTION_CODE].data, parts.sections[SECTION_CODE].size) ||
        bytes_add(&code, tail.data, tail.size))
        return -ENOMEM;
    parts.sections[SECTION_CODE] = (struct section){code.data, code.size};
    return segment_assemble(&parts, payload);
}

/* Begins the next segment behind this one; `stack` and `time` are its first sections. */
static void begin_next(struct segment_builder *builder, struct bytes *stack, struct bytes *time)
{
    bytes_release(&builder->stack);
    bytes_release(&builder->time);
    builder->stack = *stack;
    builder->time = *time;
    *stack = *time = (struct bytes){0};
    builder->dictionary.size = 0;
    builder->function_count = 0;
    builder->returned_count = 0;
    if (builder->table_size)
        memset(builder->table, 0, builder->table_size * sizeof(*builder->table));
    if (builder->encoder)
        builder->codec->encoder_reset(builder->encoder);
    builder->first_seq += builder->event_count;
    builder->event_count = 0;
    builder->low_depth = builder->depth;
    builder->first_ns = builder->anchor_ns;
    builder->anchor_at = NO_ANCHOR;
}

int segment_builder_close(struct segment_builder *builder, struct closed_segment **ret_closed)
{
    CLEANUP(cleanup_closed) struct closed_segment *closed = calloc(1, sizeof(*closed));
    AUTO_BYTES stack = {0}, time = {0};

    if (!closed || write_payload(builder, &closed->payload) || collect_functions(builder, closed) ||
        write_stack(builder, &stack) || (builder->anchor_ns && bytes_add_varint(&time, builder->anchor_ns)))
        return -ENOMEM;
    closed->first_seq = builder->first_seq;
    closed->event_count = builder->event_count;
    closed->first_ns = builder->first_ns;
    closed->codec = builder->codec->id;
    begin_next(builder, &stack, &time);
    *ret_closed = take_pointer(closed);
    return 0;
}
