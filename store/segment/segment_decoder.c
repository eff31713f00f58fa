/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads a segment event by event, and keeps the calls that are open and the times between anchors. */
#include "base/cleanup.h"
#include "store/segment/segment.h"

/* The last anchor at or before the next event, and the first one behind it. */
struct clock_reader {
    struct bytes_reader in;
    uint64_t ns;                    /* 0: no anchor yet */
    uint64_t ahead_index, ahead_ns; /* index UINT64_MAX: no further anchor */
    uint64_t until_ns;
    bool kept; /* there are times at all */
};

struct segment_decoder {
    const struct codec *codec;
    struct codec_decoder *words;
    uint8_t flags;
    uint64_t first_seq, event_count, index;
    uint32_t *functions;
    size_t function_count;
    struct clock_reader clock;
    struct site_decoder *sites; /* NULL: there are none, or nobody wants them */
    struct bit_runs_reader assumed;
    struct assumed_history history;
    struct open_call *open;
    size_t depth, open_capacity;
};

DEFINE_CLEANUP(cleanup_decoder, struct segment_decoder *, segment_decoder_free)

void segment_decoder_free(struct segment_decoder *decoder)
{
    if (!decoder)
        return;
    if (decoder->codec)
        decoder->codec->decoder_free(decoder->words);
    site_decoder_free(decoder->sites);
    free(decoder->functions);
    free(decoder->open);
    free(decoder);
}

/* ------------------------------------------------------------------------------------------ times */

/* Reads the next anchor into ahead_*. */
static int clock_look_ahead(struct clock_reader *clock, uint64_t event_count)
{
    uint64_t from = clock->ahead_index, index, ns;

    if (!reader_left(&clock->in)) {
        clock->ahead_index = UINT64_MAX;
        return 0;
    }
    index = from + reader_varint(&clock->in);
    ns = clock->ahead_ns + reader_varint(&clock->in);
    if (clock->in.failed || index < from || index > event_count || ns < clock->ahead_ns || ns > INT64_MAX)
        return -EBADMSG;
    clock->ahead_index = index;
    clock->ahead_ns = ns;
    return 0;
}

static int clock_init(struct clock_reader *clock, const struct section *section, uint64_t event_count,
                      uint64_t until_ns)
{
    clock->in = reader_over(section->data, section->size);
    clock->until_ns = until_ns;
    clock->kept = section->size > 0;
    if (!clock->kept) {
        clock->ahead_index = UINT64_MAX;
        return 0;
    }
    clock->ns = clock->ahead_ns = reader_varint(&clock->in);
    if (clock->in.failed || clock->ns > INT64_MAX)
        return -EBADMSG;
    return clock_look_ahead(clock, event_count);
}

/* What lies between two readings of a clock that gave the same: processors whose time stamp counter counts in
 * steps of 100 MHz make it so much. */
#define CLOCK_STEP_NS 10u

/* Goes on to the anchors of event `index` and gives its time: exact if it has an anchor of its own, else the
 * interval between the anchors around it, which is never empty. */
static inline int clock_read(struct clock_reader *clock, uint64_t index, uint64_t event_count,
                             struct event *event)
{
    bool exact = false;
    uint64_t before;

    while (clock->ahead_index <= index) {
        exact = clock->ahead_index == index;
        clock->ns = clock->ahead_ns;
        if (clock_look_ahead(clock, event_count))
            return -EBADMSG;
    }
    event->ns = clock->ns;
    event->ns_error = 0;
    if (!clock->kept || exact)
        return 0;
    before = clock->ahead_index != UINT64_MAX ? clock->ahead_ns
             : clock->until_ns                ? clock->until_ns
                                              : INT64_MAX;
    if (before < clock->ns + CLOCK_STEP_NS)
        before = clock->ns + CLOCK_STEP_NS < INT64_MAX ? clock->ns + CLOCK_STEP_NS : INT64_MAX;
    event->ns_error = before - clock->ns;
    return 0;
}

/* ------------------------------------------------------------------------------------------ opening */

static int read_stack(struct segment_decoder *decoder, const struct section *section)
{
    struct bytes_reader reader = reader_over(section->data, section->size);
    struct open_call call = {0};

    if (section->size && decoder->flags & SEGMENT_CALLS_ONLY)
        return -EBADMSG;
    while (reader_left(&reader)) {
        uint64_t function = reader_varint(&reader), seq = reader_varint(&reader), ns = reader_varint(&reader);

        if (reader.failed || function > UINT32_MAX || (decoder->depth && !seq) ||
            seq >= decoder->first_seq - call.seq || ns > INT64_MAX - call.ns)
            return -EBADMSG;
        call.function += unzigzag32((uint32_t)function);
        call.seq += seq;
        call.ns += ns;
        if (!call.function || call.function == TRACESTORE_LOST_FUNCTION)
            return -EBADMSG;
        if (array_reserve(&decoder->open, &decoder->open_capacity, decoder->depth + 1))
            return -ENOMEM;
        decoder->open[decoder->depth++] = call;
    }
    return 0;
}

/* Behind the stack, whose calls get their sites. */
static int open_sites(struct segment_decoder *decoder, const struct segment_parts *parts)
{
    const struct section *stack = &parts->sections[SECTION_SITE_STACK],
                         *dictionary = &parts->sections[SECTION_SITE_DICTIONARY],
                         *words = &parts->sections[SECTION_SITE_CODE];
    int code = site_decoder_open(decoder->codec, stack->data, stack->size, dictionary->data, dictionary->size,
                                 words->data, words->size, decoder->depth, &decoder->sites);

    for (size_t i = 0; !code && i < decoder->depth; i++)
        decoder->open[i].site = site_decoder_open_site(decoder->sites, i);
    return code;
}

/* Behind the stack, whose calls come first. The section is there only where it says something. */
static int open_assumed(struct segment_decoder *decoder, const struct segment_parts *parts)
{
    const struct section *section = &parts->sections[SECTION_ASSUMED];
    int code = bit_runs_open(&decoder->assumed, section->data, section->size);

    if (parts->flags & SEGMENT_ASSUMED && !section->size)
        return -EBADMSG;
    for (size_t i = 0; !code && i < decoder->depth; i++)
        code = bit_runs_next(&decoder->assumed, &decoder->open[i].assumed);
    return code;
}

int segment_decoder_open(const struct segment_parts *parts, uint64_t first_seq, uint64_t event_count,
                         uint64_t until_ns, bool sites, struct segment_decoder **ret_decoder)
{
    CLEANUP(cleanup_decoder) struct segment_decoder *decoder = NULL;
    const struct section *code_section = &parts->sections[SECTION_CODE];
    int code;

    if (event_count > SEGMENT_MAX_EVENTS || first_seq > INT64_MAX)
        return -EBADMSG;
    if (parts->flags & ~SEGMENT_KNOWN_FLAGS || !codec_find(parts->codec))
        return -ENOTSUP;
    decoder = calloc(1, sizeof(*decoder));
    if (!decoder)
        return -ENOMEM;
    decoder->codec = codec_find(parts->codec);
    decoder->flags = parts->flags;
    decoder->first_seq = first_seq;
    decoder->event_count = event_count;
    decoder->words = decoder->codec->decoder_new(code_section->data, code_section->size);
    if (!decoder->words)
        return -ENOMEM;
    code = segment_dictionary(&parts->sections[SECTION_DICTIONARY], &decoder->functions,
                              &decoder->function_count);
    if (!code)
        code = clock_init(&decoder->clock, &parts->sections[SECTION_TIME], event_count, until_ns);
    if (!code)
        code = read_stack(decoder, &parts->sections[SECTION_STACK]);
    if (!code)
        code = open_assumed(decoder, parts);
    if (!code && sites && parts->flags & SEGMENT_CALL_SITES)
        code = open_sites(decoder, parts);
    if (!code)
        *ret_decoder = take_pointer(decoder);
    return code;
}

/* ------------------------------------------------------------------------------------------ events */

static int decode_return(struct segment_decoder *decoder, struct event *event)
{
    if (!decoder->depth)
        return -EBADMSG;
    event->kind = EVENT_RETURN;
    event->function = decoder->open[--decoder->depth].function;
    event->depth = (uint32_t)decoder->depth;
    if (decoder->sites)
        site_decoder_return(decoder->sites);
    return 0;
}

static int decode_assumed(struct segment_decoder *decoder, uint16_t local, bool *ret_assumed)
{
    uint32_t slot = assumed_history_slot(decoder->depth ? decoder->open[decoder->depth - 1].local : 0, local);
    bool unforeseen;
    int code = bit_runs_next(&decoder->assumed, &unforeseen);

    if (code)
        return code;
    *ret_assumed = unforeseen != assumed_history_predicts(&decoder->history, slot);
    if (unforeseen)
        assumed_history_correct(&decoder->history, slot);
    return 0;
}

static int decode_call(struct segment_decoder *decoder, uint16_t local, struct event *event)
{
    bool opens = !(decoder->flags & SEGMENT_CALLS_ONLY);
    int code;

    if (local > decoder->function_count)
        return -EBADMSG;
    event->function = decoder->functions[local - 1];
    event->depth = (uint32_t)decoder->depth;
    event->kind = event->function == TRACESTORE_LOST_FUNCTION ? EVENT_LOST : EVENT_CALL;
    if (event->kind == EVENT_LOST)
        return 0;
    code = decode_assumed(decoder, local, &event->assumed);
    if (!code && decoder->sites)
        code = site_decoder_call(decoder->sites, local, opens, &event->call_site);
    if (code || !opens)
        return code;
    if (array_reserve(&decoder->open, &decoder->open_capacity, decoder->depth + 1))
        return -ENOMEM;
    decoder->open[decoder->depth++] = (struct open_call){.seq = event->seq,
                                                         .ns = event->ns,
                                                         .function = event->function,
                                                         .site = event->call_site,
                                                         .assumed = event->assumed,
                                                         .local = local};
    return 0;
}

/* Called once, after the last event: nothing may be left over. */
static int check_end(struct segment_decoder *decoder)
{
    const struct clock_reader *clock = &decoder->clock;

    while (clock->ahead_index != UINT64_MAX)
        if (clock_look_ahead(&decoder->clock, decoder->event_count))
            return -EBADMSG;
    if (!bit_runs_at_end(&decoder->assumed) || (decoder->sites && !site_decoder_at_end(decoder->sites)))
        return -EBADMSG;
    return decoder->codec->at_end(decoder->words) ? 1 : -EBADMSG;
}

int segment_decoder_next(struct segment_decoder *decoder, struct event *ret_event)
{
    uint16_t word;
    int code;

    if (decoder->index == decoder->event_count)
        return check_end(decoder);
    code = decoder->codec->decode(decoder->words, &word);
    if (code)
        return code;
    ret_event->seq = decoder->first_seq + decoder->index;
    ret_event->call_site = 0;
    ret_event->assumed = false;
    code = clock_read(&decoder->clock, decoder->index, decoder->event_count, ret_event);
    if (!code)
        code = word ? decode_call(decoder, word, ret_event) : decode_return(decoder, ret_event);
    decoder->index++;
    return code;
}

const struct open_call *segment_decoder_open_calls(const struct segment_decoder *decoder, size_t *ret_count)
{
    *ret_count = decoder->depth;
    return decoder->open;
}

const struct open_call *segment_decoder_ended_call(const struct segment_decoder *decoder)
{
    return &decoder->open[decoder->depth];
}
