/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to the appending of events to a segment: what is noted of each beside the code. */
#ifndef TRACESTORE_SEGMENT_NOTES_H
#define TRACESTORE_SEGMENT_NOTES_H

#include <errno.h>

#include "base/array.h"
#include "store/segment/segment.h"

/* Room for one word: an append after it cannot fail. -ENOMEM. */
int segment_prepare(struct segment_builder *builder);

/* Appends words to the code, `*ret_done` of them: all, but for -ENOMEM. */
int segment_encode_words(struct segment_builder *builder, const uint16_t *words, size_t count,
                         size_t *ret_done);

/* The local id of `function`. An entry that no event names, for lack of memory, does no harm. */
static inline int segment_find_function(struct segment_builder *builder, uint32_t function,
                                        uint16_t *ret_local)
{
    uint16_t local = dictionary_local(&builder->functions, function);
    int code;

    if (!local) {
        if (array_reserve(&builder->calls, &builder->calls_capacity, builder->functions.count + 1))
            return -ENOMEM;
        code = dictionary_add(&builder->functions, function, &local);
        if (code)
            return code;
        builder->calls[local - 1] = 0;
    }
    *ret_local = local;
    return 0;
}

/* Whether that a call is assumed, or is not, is otherwise than foreseen. */
static inline bool segment_is_unforeseen(const struct segment_builder *builder, uint32_t slot, bool assumed)
{
    return assumed != assumed_history_predicts(&builder->history, slot);
}

static inline uint32_t segment_assumed_slot(const struct segment_builder *builder, uint16_t local)
{
    return assumed_history_slot(builder->depth ? builder->open[builder->depth - 1].local : 0, local);
}

/* What is kept of a call beside the code. There is room for it. */
static inline void segment_note_call(struct segment_builder *builder, uint32_t function, uint16_t local,
                                     bool assumed)
{
    uint32_t slot = segment_assumed_slot(builder, local);
    bool unforeseen = segment_is_unforeseen(builder, slot, assumed);
    uint64_t seq = builder->first_seq + builder->event_count++;

    builder->calls[local - 1]++;
    bit_runs_add(&builder->assumed, unforeseen);
    if (unforeseen) {
        assumed_history_correct(&builder->history, slot);
        builder->corrections++;
    }
    if (!(builder->flags & SEGMENT_CALLS_ONLY))
        builder->open[builder->depth++] = (struct open_call){
            .seq = seq, .ns = builder->anchor_ns, .function = function, .assumed = assumed, .local = local};
}

static inline void segment_note_return(struct segment_builder *builder)
{
    builder->event_count++;
    builder->depth--;
    if (builder->depth < builder->low_depth) {
        builder->low_depth = builder->depth;
        builder->returned[builder->returned_count++] = builder->open[builder->depth].function;
    }
}

#endif
