/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Begins and closes segments: dictionary, times, the calls open at its start, the code, and call sites. */
#include "base/cleanup.h"
#include "store/segment/segment.h"

DEFINE_CLEANUP(cleanup_closed, struct closed_segment *, closed_segment_free)

void segment_builder_init(struct segment_builder *builder, const struct codec *codec, uint8_t flags)
{
    *builder = (struct segment_builder){.codec = codec, .flags = flags, .anchor_at = SEGMENT_NO_ANCHOR};
}

void segment_builder_release(struct segment_builder *builder)
{
    segment_builder_rest(builder);
    free(builder->open);
    bit_runs_release(&builder->assumed);
    bytes_release(&builder->stack);
    bytes_release(&builder->time);
}

void segment_builder_rest(struct segment_builder *builder)
{
    builder->codec->encoder_free(take_pointer(builder->encoder));
    site_encoder_free(take_pointer(builder->sites));
    step_history_release(&builder->kept);
    free(take_pointer(builder->calls));
    free(take_pointer(builder->returned));
    builder->calls_capacity = builder->returned_count = builder->returned_capacity = 0;
    dictionary_release(&builder->functions);
}

int segment_builder_shrink(struct segment_builder *builder)
{
    AUTO_FREE uint32_t *open = NULL;
    struct site_encoder *sites = NULL;
    size_t count;

    if (builder->sites) {
        if (site_encoder_open_sites(builder->sites, &open, &count))
            return -ENOMEM;
        sites = site_encoder_new(builder->codec);
        if (!sites || site_encoder_begin(sites, open, count)) {
            site_encoder_free(sites);
            return -ENOMEM;
        }
    }
    segment_builder_rest(builder);
    builder->sites = sites;
    return 0;
}

static size_t dictionary_memory(const struct dictionary *dictionary)
{
    return dictionary->capacity * sizeof(*dictionary->ids) +
           dictionary->table_size * sizeof(*dictionary->table) + dictionary->section.capacity;
}

size_t segment_builder_memory(const struct segment_builder *builder)
{
    const struct codec_encoder *encoder = builder->encoder;
    const struct site_encoder *sites = builder->sites;
    size_t bytes = builder->stack.capacity + builder->time.capacity + builder->assumed.section.capacity +
                   dictionary_memory(&builder->functions) +
                   builder->calls_capacity * sizeof(*builder->calls) +
                   builder->open_capacity * sizeof(*builder->open) +
                   builder->returned_capacity * sizeof(*builder->returned);

    bytes += step_history_memory(&builder->kept);
    if (encoder)
        bytes += encoder->memory + encoder->code.capacity;
    if (sites)
        bytes += sizeof(*sites) + sites->words->memory + sites->words->code.capacity +
                 dictionary_memory(&sites->dictionary) + sites->stack.capacity +
                 sites->model.open_capacity * sizeof(*sites->model.open) +
                 sites->model.last_capacity * sizeof(*sites->model.last);
    return bytes;
}

size_t segment_builder_bytes(const struct segment_builder *builder)
{
    return 3 + SECTION_COUNT + builder->stack.size + builder->functions.section.size + builder->time.size +
           builder->assumed.section.size + (builder->encoder ? builder->encoder->code.size : 0) +
           (builder->sites ? site_encoder_bytes(builder->sites) : 0);
}

static struct section section_of(const struct bytes *bytes)
{
    return (struct section){bytes->data, bytes->size};
}

void segment_builder_snapshot(const struct segment_builder *builder, struct segment_parts *ret_parts,
                              struct segment_tails *ret_tails)
{
    const struct bytes *assumed = &builder->assumed.section;
    uint8_t flags = builder->flags | (assumed->size ? SEGMENT_ASSUMED : 0u);
    struct segment_parts parts = {.codec = builder->codec->id, .flags = flags};
    struct section *sections = parts.sections;
    const struct site_encoder *sites = builder->sites;

    *ret_tails = (struct segment_tails){0};
    sections[SECTION_STACK] = section_of(&builder->stack);
    sections[SECTION_DICTIONARY] = section_of(&builder->functions.section);
    sections[SECTION_TIME] = section_of(&builder->time);
    sections[SECTION_ASSUMED] = section_of(assumed);
    if (builder->encoder) {
        builder->codec->snapshot(builder->encoder, &ret_tails->code);
        sections[SECTION_CODE] = (struct section){builder->encoder->code.data, ret_tails->code.keep};
    }
    if (sites) {
        sections[SECTION_SITE_STACK] = section_of(&sites->stack);
        sections[SECTION_SITE_DICTIONARY] = section_of(&sites->dictionary.section);
        builder->codec->snapshot(sites->words, &ret_tails->sites);
        sections[SECTION_SITE_CODE] = (struct section){sites->words->code.data, ret_tails->sites.keep};
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

/* Which of the calls of that stack section are assumed. */
static int write_assumed(const struct segment_builder *builder, struct bit_runs *assumed)
{
    for (size_t i = 0; i < builder->depth; i++) {
        if (bit_runs_reserve(assumed, builder->open[i].assumed))
            return -ENOMEM;
        bit_runs_add(assumed, builder->open[i].assumed);
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
    const struct dictionary *functions = &builder->functions;
    size_t count = 0, most = functions->count + builder->returned_count;

    closed->functions = calloc(most ? most : 1, sizeof(*closed->functions));
    if (!closed->functions)
        return -ENOMEM;
    for (size_t i = 0; i < functions->count; i++)
        closed->functions[count++] = (struct function_calls){
            .function = functions->ids[i],
            .calls = functions->ids[i] == TRACESTORE_LOST_FUNCTION ? 0 : builder->calls[i],
        };
    if (builder->returned_count)
        qsort(builder->returned, builder->returned_count, sizeof(uint32_t), compare_u32);
    for (size_t i = 0; i < builder->returned_count; i++) {
        uint32_t function = builder->returned[i];

        if ((!i || function != builder->returned[i - 1]) && !dictionary_local(functions, function))
            closed->functions[count++] = (struct function_calls){.function = function};
    }
    closed->function_count = count;
    return 0;
}

/* A section of the snapshot with its tail. */
static int join_tail(struct section *section, const struct codec_tail *tail, struct bytes *joined)
{
    if (bytes_add(joined, section->data, section->size) || bytes_add(joined, tail->data, tail->size))
        return -ENOMEM;
    *section = (struct section){joined->data, joined->size};
    return 0;
}

/* The payload: the sections of the snapshot, with their tails. */
static int write_payload(const struct segment_builder *builder, struct bytes *payload)
{
    AUTO_BYTES code = {0};
    AUTO_BYTES sites = {0};
    struct segment_parts parts;
    struct segment_tails tails;

    segment_builder_snapshot(builder, &parts, &tails);
    if (join_tail(&parts.sections[SECTION_CODE], &tails.code, &code) ||
        join_tail(&parts.sections[SECTION_SITE_CODE], &tails.sites, &sites))
        return -ENOMEM;
    return segment_assemble(&parts, payload);
}

/* What the next segment begins with. */
struct beginning {
    struct bytes stack, time;
    struct bit_runs assumed;
};

static void cleanup_beginning(struct beginning *beginning)
{
    bytes_release(&beginning->stack);
    bytes_release(&beginning->time);
    bit_runs_release(&beginning->assumed);
}

static int write_beginning(const struct segment_builder *builder, struct beginning *beginning)
{
    if (write_stack(builder, &beginning->stack) || write_assumed(builder, &beginning->assumed))
        return -ENOMEM;
    return builder->anchor_ns ? bytes_add_varint(&beginning->time, builder->anchor_ns) : 0;
}

/* Begins the next segment behind this one. */
static void begin_next(struct segment_builder *builder, struct beginning *beginning)
{
    bytes_release(&builder->stack);
    bytes_release(&builder->time);
    bit_runs_release(&builder->assumed);
    builder->stack = beginning->stack;
    builder->time = beginning->time;
    builder->assumed = beginning->assumed;
    *beginning = (struct beginning){0};
    builder->history = (struct assumed_history){0};
    for (size_t i = 0; i < builder->depth; i++)
        builder->open[i].local = 0;
    step_history_clear(&builder->kept);
    dictionary_clear(&builder->functions);
    builder->returned_count = 0;
    if (builder->encoder)
        builder->codec->encoder_reset(builder->encoder);
    builder->first_seq += builder->event_count;
    builder->event_count = 0;
    builder->low_depth = builder->depth;
    builder->first_ns = builder->anchor_ns;
    builder->anchor_at = SEGMENT_NO_ANCHOR;
}

static int begin_next_sites(struct segment_builder *builder)
{
    AUTO_FREE uint32_t *open = NULL;
    size_t count;

    if (!builder->sites)
        return 0;
    return site_encoder_open_sites(builder->sites, &open, &count) ||
                   site_encoder_begin(builder->sites, open, count)
               ? -ENOMEM
               : 0;
}

int segment_builder_close(struct segment_builder *builder, struct closed_segment **ret_closed)
{
    CLEANUP(cleanup_closed) struct closed_segment *closed = calloc(1, sizeof(*closed));
    CLEANUP(cleanup_beginning) struct beginning beginning = {0};

    segment_builder_settle(builder);
    if (!builder->encoder) /* a segment without events has a code, too */
        builder->encoder = builder->codec->encoder_new();
    if (!closed || !builder->encoder || write_payload(builder, &closed->payload) ||
        collect_functions(builder, closed) || write_beginning(builder, &beginning) ||
        begin_next_sites(builder))
        return -ENOMEM;
    closed->first_seq = builder->first_seq;
    closed->event_count = builder->event_count;
    closed->first_ns = builder->first_ns;
    closed->codec = builder->codec->id;
    begin_next(builder, &beginning);
    builder->first_bytes = segment_builder_bytes(builder);
    *ret_closed = take_pointer(closed);
    return 0;
}
