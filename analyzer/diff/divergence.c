/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/diff/divergence.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"

/* ------------------------------------------------------------------------------------------ a cursor */

/* A stretch of elements that is walked once, or the body of a loop. */
struct frame {
    const struct nlr_element *elements;
    size_t at, count;
    uint32_t loop;                  /* NO_LOOP: the sequence itself */
    uint64_t iteration, iterations; /* from 0 on */
};

/* A place in an expanded sequence: the loops around it, outermost first. */
struct cursor {
    const struct loop_table *table;
    struct frame *frames;
    size_t depth, capacity;
};

static void cursor_release(struct cursor *cursor)
{
    free(cursor->frames);
}

static struct frame *top(const struct cursor *cursor)
{
    return &cursor->frames[cursor->depth - 1];
}

static int push(struct cursor *cursor, const struct frame *frame)
{
    if (array_reserve(&cursor->frames, &cursor->capacity, cursor->depth + 1))
        return -ENOMEM;
    cursor->frames[cursor->depth++] = *frame;
    return 0;
}

/* Goes into the loop that the cursor is at, in front of the iteration given; it has more than that. */
static int enter(struct cursor *cursor, uint64_t iteration)
{
    const struct nlr_element *loop = &top(cursor)->elements[top(cursor)->at];

    return push(cursor,
                &(struct frame){loop_table_elements(cursor->table, loop->id), 0,
                                cursor->table->bodies[loop->id].length, loop->id, iteration, loop->count});
}

/* The element at the cursor, out of loops that are over; NULL at the end. */
static const struct nlr_element *current(struct cursor *cursor)
{
    struct frame *frame = top(cursor);

    while (frame->at == frame->count) {
        if (frame->iteration + 1 < frame->iterations) {
            frame->iteration++;
            frame->at = 0;
        } else if (cursor->depth == 1) {
            return NULL;
        } else {
            cursor->depth--;
            frame = top(cursor);
            frame->at++;
        }
    }
    return &frame->elements[frame->at];
}

/* The next call, entering loops; SYMBOL_DROPPED at the end and at lost events. */
static int next_symbol(struct cursor *cursor, uint32_t *ret_symbol)
{
    const struct nlr_element *element;

    *ret_symbol = SYMBOL_DROPPED;
    while ((element = current(cursor)) && element->kind == NLR_LOOP)
        if (enter(cursor, 0))
            return -ENOMEM;
    if (element && element->kind == NLR_SYMBOL)
        *ret_symbol = element->id;
    return 0;
}

/* ------------------------------------------------------------------------------------------ in step */

struct walk {
    struct cursor normal, faulty;
    uint64_t common;
    uint32_t last_common;
    bool blind; /* it ended at lost events */
};

static void walk_release(struct walk *walk)
{
    cursor_release(&walk->normal);
    cursor_release(&walk->faulty);
}

static void count_common(struct walk *walk, const struct loop_table *table, const struct nlr_element *element)
{
    const struct nlr_sequence one = {(struct nlr_element *)element, 1};
    uint64_t events = nlr_events(table, element, 1);

    if (__builtin_add_overflow(walk->common, events, &walk->common))
        walk->common = UINT64_MAX;
    walk->last_common = last_symbol(table, &one);
}

/* Both cursors are at loops of one body that ran a different number of times: passes over what both have. */
static int pass_loop(struct walk *walk, const struct nlr_element *normal, const struct nlr_element *faulty)
{
    bool normal_longer = normal->count > faulty->count;
    struct nlr_element both = normal_longer ? *faulty : *normal;
    struct cursor *longer = normal_longer ? &walk->normal : &walk->faulty;
    struct cursor *shorter = normal_longer ? &walk->faulty : &walk->normal;

    count_common(walk, walk->normal.table, &both);
    top(shorter)->at++;
    return enter(longer, both.count);
}

/* One step: 1 on the way, 0 where they part, <0. */
static int step(struct walk *walk)
{
    const struct nlr_element *normal = current(&walk->normal), *faulty = current(&walk->faulty);
    int r = 0;

    if ((normal && normal->kind == NLR_LOST) || (faulty && faulty->kind == NLR_LOST)) {
        walk->blind = true;
        return 0;
    }
    if (!normal || !faulty)
        return 0;
    if (nlr_same(normal, faulty, 1)) {
        count_common(walk, walk->normal.table, normal);
        top(&walk->normal)->at++;
        top(&walk->faulty)->at++;
        return 1;
    }
    if (normal->kind == NLR_LOOP && faulty->kind == NLR_LOOP && normal->id == faulty->id)
        return pass_loop(walk, normal, faulty) ? -ENOMEM : 1;
    if (normal->kind != NLR_LOOP && faulty->kind != NLR_LOOP)
        return 0;
    if (normal->kind == NLR_LOOP)
        r = enter(&walk->normal, 0);
    if (!r && faulty->kind == NLR_LOOP)
        r = enter(&walk->faulty, 0);
    return r ? r : 1;
}

/* From the entries given to where the two part. */
static int walk_from(struct walk *walk, const struct loop_table *table, const struct thread_diff *thread,
                     size_t normal, size_t faulty)
{
    const struct nlr_sequence *left = &thread->normal->loops, *right = &thread->faulty->loops;
    int r;

    walk->normal.table = walk->faulty.table = table;
    walk->last_common = SYMBOL_DROPPED;
    r = push(&walk->normal, &(struct frame){left->elements, normal, left->count, NO_LOOP, 0, 1});
    if (!r)
        r = push(&walk->faulty, &(struct frame){right->elements, faulty, right->count, NO_LOOP, 0, 1});
    while (!r && (r = step(walk)) > 0)
        r = 0;
    return r;
}

/* The innermost loop around the place, in the run that comes behind the other one where both are in loops. */
static void find_loop(const struct walk *walk, struct divergence *divergence)
{
    const struct frame *normal = top(&walk->normal), *faulty = top(&walk->faulty);
    bool use_faulty =
        normal->loop == NO_LOOP || (!normal->iteration && !normal->at && (faulty->iteration || faulty->at));
    const struct frame *frame = use_faulty ? faulty : normal;

    divergence->loop = frame->loop;
    divergence->loop_is_faulty = use_faulty;
    divergence->iteration = frame->iteration + 1;
    divergence->iterations = frame->iterations;
}

/* ------------------------------------------------------------------------------------------ what kind */

static enum divergence_kind kind_of_counts(const struct call_tally *tally)
{
    bool missing = false, added = false;

    for (size_t i = 0; i < tally->count; i++) {
        missing |= tally->counts[i].normal > tally->counts[i].faulty;
        added |= tally->counts[i].faulty > tally->counts[i].normal;
    }
    return missing && added ? DIVERGENCE_OTHER
           : missing        ? DIVERGENCE_MISSING
           : added          ? DIVERGENCE_ADDED
                            : DIVERGENCE_ORDER;
}

/* Of the first block that is known to differ: a loop that ran otherwise and nothing else, or what its calls
 * add up to. */
static enum divergence_kind kind_of_block(const struct loop_summary *summary,
                                          const struct thread_diff *thread, const struct diff_edit *block,
                                          struct call_tally *tally, struct divergence *place)
{
    const struct nlr_element *normal = thread->normal->loops.elements + block->normal;
    const struct nlr_element *faulty = thread->faulty->loops.elements + block->faulty;

    if (block->normal_count == 1 && block->faulty_count == 1 && normal->kind == NLR_LOOP &&
        faulty->kind == NLR_LOOP && normal->id == faulty->id) {
        place->loop = normal->id;
        place->normal_count = normal->count;
        place->faulty_count = faulty->count;
        return faulty->count < normal->count ? DIVERGENCE_LOOP_SHORTER : DIVERGENCE_LOOP_LONGER;
    }
    call_tally_clear(tally);
    call_tally_add(tally, &summary->table, normal, block->normal_count, false);
    call_tally_add(tally, &summary->table, faulty, block->faulty_count, true);
    return kind_of_counts(tally);
}

/* What is missing in the first block may come in another one: calls in another order, too. */
static bool is_reordered(const struct loop_summary *summary, const struct thread_diff *thread,
                         struct call_tally *tally)
{
    if (thread->diff.unknown)
        return false;
    call_tally_thread(tally, summary, thread);
    return kind_of_counts(tally) == DIVERGENCE_ORDER;
}

/* What decides before any block does: how the two end. DIVERGENCE_NONE: it does not. */
static enum divergence_kind kind_of_end(const struct thread_diff *thread, const struct divergence *place,
                                        bool normal_ends, bool faulty_ends)
{
    enum last_call normal = thread->normal->last_call, faulty = thread->faulty->last_call;

    if (faulty == LAST_CALL_OPEN && (normal == LAST_CALL_RETURNED || (faulty_ends && !normal_ends)))
        return DIVERGENCE_HANGS;
    if (normal == LAST_CALL_OPEN && (faulty == LAST_CALL_RETURNED || (normal_ends && !faulty_ends)))
        return DIVERGENCE_HUNG_NORMAL;
    if (!place->exact)
        return DIVERGENCE_NONE;
    if (faulty_ends && !normal_ends)
        return DIVERGENCE_STOPS;
    return normal_ends && !faulty_ends ? DIVERGENCE_CONTINUES : DIVERGENCE_NONE;
}

/* ------------------------------------------------------------------------------------------ the answer */

/* The first block that is known to differ; NULL edit (no entries): only the ends differ. */
static struct diff_edit first_block(const struct diff_nlr *diff, bool *ret_exact)
{
    *ret_exact = true;
    for (size_t i = 0; i < diff->edit_count; i++) {
        struct diff_edit block = diff_nlr_block(diff, &i);

        if (block.op == DIFF_NORMAL || block.op == DIFF_FAULTY)
            return block;
        *ret_exact &= block.op != DIFF_UNKNOWN;
    }
    return (struct diff_edit){.op = DIFF_COMMON};
}

/* Where the walk begins: at the start, or behind what is not known, at the common entries before the block.
 */
static void find_start(const struct diff_nlr *diff, const struct diff_edit *block, size_t *ret_normal,
                       size_t *ret_faulty)
{
    *ret_normal = *ret_faulty = 0;
    for (size_t i = 0; i < diff->edit_count; i++) {
        const struct diff_edit *edit = &diff->edits[i];

        if (edit->normal + edit->faulty > block->normal + block->faulty)
            return;
        if (edit->op == DIFF_UNKNOWN) {
            *ret_normal = edit->normal + edit->normal_count;
            *ret_faulty = edit->faulty + edit->faulty_count;
        }
    }
}

static int locate(const struct loop_summary *summary, const struct thread_diff *thread,
                  const struct diff_edit *block, struct divergence *place, bool ends[2])
{
    CLEANUP(walk_release) struct walk walk = {0};
    size_t normal, faulty;
    int r;

    find_start(&thread->diff, block, &normal, &faulty);
    r = walk_from(&walk, &summary->table, thread, normal, faulty);
    if (r)
        return r;
    ends[0] = !current(&walk.normal);
    ends[1] = !current(&walk.faulty);
    place->exact &= !walk.blind;
    place->common = walk.common;
    place->last_common = walk.last_common;
    find_loop(&walk, place);
    r = next_symbol(&walk.normal, &place->normal_next);
    if (!r)
        r = next_symbol(&walk.faulty, &place->faulty_next);
    return r;
}

int find_divergence(const struct loop_summary *summary, const struct thread_diff *thread,
                    struct call_tally *tally, struct divergence *ret_divergence)
{
    struct divergence place = {.kind = DIVERGENCE_NONE, .loop = NO_LOOP};
    struct diff_edit block = first_block(&thread->diff, &place.exact);
    bool ends[2];
    int r = locate(summary, thread, &block, &place, ends);

    if (r)
        return r;
    if (thread_diff_differs(thread)) {
        place.kind = kind_of_end(thread, &place, ends[0], ends[1]);
        if (place.kind == DIVERGENCE_NONE && block.op != DIFF_COMMON)
            place.kind = kind_of_block(summary, thread, &block, tally, &place);
        if (place.kind >= DIVERGENCE_MISSING && is_reordered(summary, thread, tally))
            place.kind = DIVERGENCE_ORDER;
    }
    place.stuck = place.kind == DIVERGENCE_HANGS ? last_symbol(&summary->table, &thread->faulty->loops)
                  : place.kind == DIVERGENCE_HUNG_NORMAL
                      ? last_symbol(&summary->table, &thread->normal->loops)
                      : SYMBOL_DROPPED;
    *ret_divergence = place;
    return 0;
}

const char *divergence_kind_name(enum divergence_kind kind)
{
    static const char *const names[] = {
        [DIVERGENCE_NONE] = "none",
        [DIVERGENCE_HANGS] = "never returned",
        [DIVERGENCE_HUNG_NORMAL] = "returned",
        [DIVERGENCE_STOPS] = "ended early",
        [DIVERGENCE_CONTINUES] = "went on",
        [DIVERGENCE_LOOP_SHORTER] = "loop ended early",
        [DIVERGENCE_LOOP_LONGER] = "loop ran longer",
        [DIVERGENCE_ORDER] = "order swapped",
        [DIVERGENCE_MISSING] = "calls missing",
        [DIVERGENCE_ADDED] = "calls added",
        [DIVERGENCE_OTHER] = "other calls",
        [DIVERGENCE_RENAMED] = "renamed",
    };

    return names[kind];
}
