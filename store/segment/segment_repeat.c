/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Appends stretches of steps that a segment has had before. */
#include "store/segment/segment_notes.h"

/* ------------------------------------------------------------------------------------------ keeping */

void segment_builder_settle(struct segment_builder *builder)
{
    step_history_take_counts(&builder->kept, builder->calls);
}

static void forget(struct segment_builder *builder)
{
    segment_builder_settle(builder);
    step_history_clear(&builder->kept);
}

/* Forgets all when calls from before the segment have returned since the first step was kept: what calls are
 * inside is told by other local ids from then on. */
static void check_depth(struct segment_builder *builder)
{
    if (builder->kept.count && builder->kept.low_depth != builder->low_depth)
        forget(builder);
    builder->kept.low_depth = builder->low_depth;
}

/* What was foreseen of the steps so far need not be so again when a prediction has changed. */
static void check_predictions(struct segment_builder *builder)
{
    struct step_history *kept = &builder->kept;

    if (kept->corrections != builder->corrections)
        kept->foreseen = (uint32_t)kept->count;
    kept->corrections = builder->corrections;
}

/* The local id of the function that the step on its way, number `step`, is called inside. Steps from `first`
 * on have not been appended yet. */
static uint16_t outer_local(const struct segment_builder *builder, uint32_t first, uint32_t step)
{
    const struct kept_step *kept = &builder->kept.steps[step];

    if (kept->below != STEP_HISTORY_NONE && kept->below >= first)
        return step_history_local(&builder->kept, kept->below);
    return kept->depth > 1 ? builder->open[kept->depth - 2].local : 0;
}

/* Keeps steps that are about to be appended. Returns false when they cannot be. */
static bool keep(struct segment_builder *builder, const struct thread_step *steps, size_t count)
{
    struct step_history *kept = &builder->kept;
    uint32_t first = (uint32_t)kept->count;
    size_t depth = builder->depth;

    for (size_t i = 0; i < count; i++) {
        uint32_t step = first + (uint32_t)i;
        uint16_t local;

        if (steps[i].returns > depth || depth - steps[i].returns >= UINT32_MAX ||
            segment_find_function(builder, steps[i].function_id, &local))
            return false;
        depth = depth - steps[i].returns + 1;
        step_history_add(kept, steps[i].returns, local,
                         &(struct kept_step){.depth = (uint32_t)depth, .assumed = steps[i].assumed});
        kept->steps[step].slot = (uint16_t)assumed_history_slot(outer_local(builder, first, step), local);
    }
    return true;
}

static bool make_room(struct segment_builder *builder, const struct thread_step *steps, size_t count)
{
    size_t words = count;

    for (size_t i = 0; i < count; i++)
        words += steps[i].returns;
    if (step_history_make_room(&builder->kept, count, words))
        return true;
    forget(builder);
    return step_history_make_room(&builder->kept, count, words);
}

int segment_builder_keep(struct segment_builder *builder, const struct thread_step *steps, size_t count,
                         size_t *ret_done, struct kept_steps *ret_kept)
{
    bool can = !(builder->flags & (SEGMENT_CALLS_ONLY | SEGMENT_CALL_SITES));
    int code;

    check_depth(builder);
    check_predictions(builder);
    can = can && make_room(builder, steps, count) && keep(builder, steps, count);
    code = segment_builder_steps(builder, steps, count, ret_done);
    if (!can || code || *ret_done < count)
        forget(builder);
    check_depth(builder);
    check_predictions(builder);
    *ret_kept = (struct kept_steps){.generation = builder->kept.generation};
    if (builder->kept.count) {
        ret_kept->first = (uint32_t)(builder->kept.count - count);
        ret_kept->count = (uint32_t)count;
    }
    return code;
}

/* ------------------------------------------------------------------------------------------ once more */

/* Whether the steps are kept, and can come now. */
static int check_stretch(struct segment_builder *builder, const struct kept_steps *stretch)
{
    const struct step_history *kept = &builder->kept;
    uint32_t returns;

    check_depth(builder);
    check_predictions(builder);
    if (stretch->generation != kept->generation || stretch->first >= kept->count ||
        stretch->count > kept->count - stretch->first || !stretch->count)
        return -ESTALE;
    returns = kept->steps[stretch->first].words_end - step_history_words(kept, stretch->first) - 1;
    return builder->depth + 1 == (size_t)kept->steps[stretch->first].depth + returns ? 0 : -EINVAL;
}

/* Room for what is noted of the stretch, whichever part of it will be appended. */
static int prepare_stretch(struct segment_builder *builder, const struct kept_steps *stretch)
{
    size_t flips = stretch->first < builder->kept.foreseen ? stretch->count : 1;

    return segment_prepare(builder) ||
                   array_reserve(&builder->open, &builder->open_capacity, builder->kept.highest) ||
                   bytes_reserve(&builder->assumed.section, flips * VARINT_MAX_BYTES)
               ? -ENOMEM
               : 0;
}

/* Notes the first words of the stretch one by one: there was no memory for more. */
static void note_part(struct segment_builder *builder, const struct kept_steps *stretch, size_t words)
{
    const struct step_history *kept = &builder->kept;
    const uint16_t *word = &kept->words[step_history_words(kept, stretch->first)];
    const struct kept_step *step = &kept->steps[stretch->first];

    for (; words; words--, word++)
        if (*word)
            segment_note_call(builder, builder->functions.ids[*word - 1], *word, step++->assumed);
        else
            segment_note_return(builder);
}

/* Notes which of the calls are assumed. Where every one was foreseen, and no prediction has changed since,
 * all are foreseen again. */
static void note_assumed(struct segment_builder *builder, const struct kept_steps *stretch)
{
    const struct kept_step *steps = &builder->kept.steps[stretch->first];

    if (stretch->first >= builder->kept.foreseen) {
        bit_runs_add(&builder->assumed, false);
        builder->assumed.length += stretch->count - 1;
        return;
    }
    for (uint32_t i = 0; i < stretch->count; i++) {
        bool unforeseen = segment_is_unforeseen(builder, steps[i].slot, steps[i].assumed);

        bit_runs_add(&builder->assumed, unforeseen);
        if (unforeseen) {
            assumed_history_correct(&builder->history, steps[i].slot);
            builder->corrections++;
        }
    }
}

/* The calls that are open behind the stretch. */
static void note_open(struct segment_builder *builder, const struct kept_steps *stretch)
{
    const struct step_history *kept = &builder->kept;
    uint32_t last = stretch->first + stretch->count - 1, step = last;
    uint64_t seq = builder->first_seq + builder->event_count - step_history_words(kept, stretch->first);

    for (; step != STEP_HISTORY_NONE && step >= stretch->first; step = kept->steps[step].below) {
        uint16_t local = step_history_local(kept, step);

        builder->open[kept->steps[step].depth - 1] = (struct open_call){
            .seq = seq + kept->steps[step].words_end - 1,
            .ns = builder->anchor_ns,
            .function = builder->functions.ids[local - 1],
            .assumed = kept->steps[step].assumed,
            .local = local,
        };
    }
    builder->depth = kept->steps[last].depth;
}

int segment_builder_again(struct segment_builder *builder, const struct kept_steps *stretch)
{
    const struct step_history *kept = &builder->kept;
    int code = check_stretch(builder, stretch);
    uint32_t from, words;
    size_t done;

    if (!code)
        code = prepare_stretch(builder, stretch);
    if (code)
        return code;
    from = step_history_words(kept, stretch->first);
    words = kept->steps[stretch->first + stretch->count - 1].words_end - from;
    code = segment_encode_words(builder, &kept->words[from], words, &done);
    if (code) {
        note_part(builder, stretch, done);
        return code;
    }
    note_assumed(builder, stretch);
    note_open(builder, stretch);
    builder->event_count += words;
    step_history_use(&builder->kept, stretch->first, stretch->count);
    return 0;
}

uint64_t segment_builder_words(const struct segment_builder *builder, const struct kept_steps *stretch)
{
    const struct step_history *kept = &builder->kept;
    uint64_t end = (uint64_t)stretch->first + stretch->count;

    return stretch->generation == kept->generation && stretch->count && end <= kept->count
               ? kept->steps[end - 1].words_end - step_history_words(kept, stretch->first)
               : 0;
}
