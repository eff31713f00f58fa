/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Appends events to a segment. */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "store/segment/segment_notes.h"

/* The sites of a thread that continues after its end: those of the calls that are open are not known any more.
 */
static int start_sites(struct segment_builder *builder)
{
    AUTO_FREE uint32_t *unknown = calloc(builder->depth + 1, sizeof(*unknown));

    if (!unknown)
        return -ENOMEM;
    builder->sites = site_encoder_new(builder->codec);
    if (builder->sites && site_encoder_begin(builder->sites, unknown, builder->depth) == 0)
        return 0;
    site_encoder_free(take_pointer(builder->sites));
    return -ENOMEM;
}

int segment_prepare(struct segment_builder *builder)
{
    if (!builder->encoder) {
        builder->encoder = builder->codec->encoder_new();
        if (!builder->encoder)
            return -ENOMEM;
    }
    if (builder->flags & SEGMENT_CALL_SITES && !builder->sites && start_sites(builder))
        return -ENOMEM;
    return builder->codec->reserve(builder->encoder);
}

static bool is_function(uint32_t function)
{
    return function != TRACESTORE_NO_FUNCTION && function != TRACESTORE_LOST_FUNCTION;
}

int segment_builder_call(struct segment_builder *builder, uint32_t function, uint32_t site, bool assumed)
{
    uint16_t local, local_site = 0;
    int code;

    if (!is_function(function) || (site && !(builder->flags & SEGMENT_CALL_SITES)))
        return -EINVAL;
    code = segment_find_function(builder, function, &local);
    if (!code)
        code = segment_prepare(builder);
    if (!code && builder->sites)
        code = site_encoder_prepare(builder->sites, local, site, &local_site);
    if (code)
        return code;
    if (array_reserve(&builder->open, &builder->open_capacity, builder->depth + 1) ||
        bit_runs_reserve(&builder->assumed,
                         segment_is_unforeseen(builder, segment_assumed_slot(builder, local), assumed)))
        return -ENOMEM;
    builder->codec->encode(builder->encoder, local);
    segment_note_call(builder, function, local, assumed);
    if (builder->sites)
        site_encoder_call(builder->sites, local, local_site, !(builder->flags & SEGMENT_CALLS_ONLY));
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
    code = segment_prepare(builder);
    if (code)
        return code;
    builder->codec->encode(builder->encoder, 0);
    if (builder->sites)
        site_encoder_return(builder->sites);
    segment_note_return(builder);
    return 0;
}

/* ------------------------------------------------------------------------------------------ many at once */

#define WORDS_AT_ONCE 256

/* Words on their way into the code. */
struct step_words {
    size_t count;
    bool any_assumed;
    uint16_t words[WORDS_AT_ONCE];
    bool assumed[WORDS_AT_ONCE];
};

/* Whether no call of the segment is assumed, and none of the words. */
static bool is_foreseen(const struct segment_builder *builder, const struct step_words *words)
{
    return !words->any_assumed && !builder->assumed.section.size && !builder->assumed.bit;
}

/* Room for what is kept of so many words beside the code. */
static int prepare_words(struct segment_builder *builder, const struct step_words *words)
{
    size_t returns = words->count < builder->low_depth ? words->count : builder->low_depth;

    if (segment_prepare(builder) ||
        array_reserve(&builder->open, &builder->open_capacity, builder->depth + words->count) ||
        array_reserve(&builder->returned, &builder->returned_capacity, builder->returned_count + returns))
        return -ENOMEM;
    return is_foreseen(builder, words)
               ? 0
               : bytes_reserve(&builder->assumed.section, words->count * VARINT_MAX_BYTES);
}

static void note_any(struct segment_builder *builder, const struct step_words *words, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        uint16_t word = words->words[i];

        if (word)
            segment_note_call(builder, builder->functions.ids[word - 1], word, words->assumed[i]);
        else
            segment_note_return(builder);
    }
}

/* The same where no call is assumed, which is how it mostly is: what counts up and down stays in registers.
 */
static void note_foreseen(struct segment_builder *builder, const uint16_t *words, size_t count)
{
    const uint32_t *ids = builder->functions.ids;
    uint64_t seq = builder->first_seq + builder->event_count, ns = builder->anchor_ns;
    size_t depth = builder->depth, low_depth = builder->low_depth, calls = 0;
    bool opens = !(builder->flags & SEGMENT_CALLS_ONLY);
    struct open_call *open = builder->open;

    for (size_t i = 0; i < count; i++, seq++) {
        uint16_t word = words[i];

        if (!word) {
            if (--depth < low_depth) {
                low_depth = depth;
                builder->returned[builder->returned_count++] = open[depth].function;
            }
            continue;
        }
        calls++;
        builder->calls[word - 1]++;
        if (opens)
            open[depth++] =
                (struct open_call){.seq = seq, .ns = ns, .function = ids[word - 1], .local = word};
    }
    builder->event_count += count;
    builder->assumed.length += calls;
    builder->depth = depth;
    builder->low_depth = low_depth;
}

static void note_words(struct segment_builder *builder, const struct step_words *words, size_t from,
                       size_t to)
{
    if (is_foreseen(builder, words))
        note_foreseen(builder, &words->words[from], to - from);
    else
        note_any(builder, words, from, to);
}

int segment_encode_words(struct segment_builder *builder, const uint16_t *words, size_t count,
                         size_t *ret_done)
{
    size_t done = 0;
    int code = 0;

    while (!code && done < count) {
        done += builder->codec->follow(builder->encoder, &words[done], count - done);
        if (done < count)
            code = builder->codec->encode(builder->encoder, words[done]);
        done += !code && done < count;
    }
    *ret_done = done;
    return code;
}

static int append_words(struct segment_builder *builder, struct step_words *words)
{
    size_t done = 0;
    int code = words->count ? prepare_words(builder, words) : 0;

    if (!code)
        code = segment_encode_words(builder, words->words, words->count, &done);
    note_words(builder, words, 0, done);
    words->count = 0;
    words->any_assumed = false;
    return code;
}

static inline int add_word(struct segment_builder *builder, struct step_words *words, uint16_t word,
                           bool assumed)
{
    int code = words->count == WORDS_AT_ONCE ? append_words(builder, words) : 0;

    words->words[words->count] = word;
    words->assumed[words->count++] = assumed;
    words->any_assumed |= assumed;
    return code;
}

/* `depth`: how many calls are open before it, with those of the words on their way. */
static int add_step(struct segment_builder *builder, struct step_words *words, const struct thread_step *step,
                    size_t *depth)
{
    uint16_t local;
    int code;

    if (!is_function(step->function_id) || step->returns > *depth)
        return -EINVAL;
    code = segment_find_function(builder, step->function_id, &local);
    for (uint32_t i = 0; !code && i < step->returns; i++)
        code = add_word(builder, words, 0, false);
    *depth += !(builder->flags & SEGMENT_CALLS_ONLY);
    *depth -= step->returns;
    return code ? code : add_word(builder, words, local, step->assumed);
}

int segment_builder_steps(struct segment_builder *builder, const struct thread_step *steps, size_t count,
                          size_t *ret_done)
{
    struct step_words words = {.count = 0};
    size_t depth = builder->depth, done = 0;
    int code = builder->flags & SEGMENT_CALL_SITES ? -EINVAL : 0, written;

    while (!code && done < count) {
        code = add_step(builder, &words, &steps[done], &depth);
        done += !code;
    }
    written = append_words(builder, &words);
    *ret_done = written ? 0 : done;
    return written ? written : code;
}

/* ------------------------------------------------------------------------------------------ the others */

int segment_builder_lost(struct segment_builder *builder)
{
    uint16_t local;
    int code = segment_find_function(builder, TRACESTORE_LOST_FUNCTION, &local);

    if (!code)
        code = segment_prepare(builder);
    if (code)
        return code;
    builder->codec->encode(builder->encoder, local);
    builder->event_count++;
    return 0;
}

/* An anchor at the place of the last one replaces it, so that a thread that only waits does not grow. */
int segment_builder_anchor(struct segment_builder *builder, uint64_t ns)
{
    bool replaces = builder->anchor_at != SEGMENT_NO_ANCHOR && builder->anchor_index == builder->event_count;
    uint64_t from_ns = replaces ? builder->previous_ns : builder->anchor_ns;
    uint64_t from_index = replaces                                  ? builder->previous_index
                          : builder->anchor_at == SEGMENT_NO_ANCHOR ? 0
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
