/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A difference in plain words, in the order of the faulty run: loops that ran otherwise, calls that the
 * normal run does not have, and then calls that are missing. A few phrases; the rest is counted. Of many
 * changes only their number is printed, and the function that was added or missing most often.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyzer/diff/compare.h"
#include "base/cleanup.h"
#include "base/text.h"

#define MOST_PHRASES 4
#define MOST_NAMES 3
#define MANY_CHANGES 20 /* more than these are summarised */

struct story {
    const struct loop_summary *summary;
    const struct thread_diff *thread;
    FILE *out;
    size_t phrases;
    size_t omitted;   /* changes beyond the phrases */
    size_t next_loop; /* in thread->diff.loops */
};

/* True when there is room for one more phrase, and its conjunction is written. */
static bool begin_phrase(struct story *story)
{
    if (story->phrases == MOST_PHRASES) {
        story->omitted++;
        return false;
    }
    if (story->phrases++)
        fputs(", then ", story->out);
    return true;
}

static const char *times(uint64_t count)
{
    return count == 1 ? "once" : count == 2 ? "twice" : NULL;
}

static void print_times(struct story *story, uint64_t count)
{
    if (times(count))
        fputs(times(count), story->out);
    else
        fprintf(story->out, "%" PRIu64 " times", count);
}

static uint32_t loop_number(const struct story *story, const struct nlr_element *loop)
{
    return story->summary->table.numbers[loop->id];
}

/* Another loop in its place, most of whose calls are the same. */
static void print_similar_loop(struct story *story, const struct nlr_element *normal,
                               const struct nlr_element *faulty)
{
    if (!begin_phrase(story))
        return;
    fprintf(story->out, "L%" PRIu32 " ran ", loop_number(story, faulty));
    print_times(story, faulty->count);
    fprintf(story->out, " in place of L%" PRIu32, loop_number(story, normal));
    if (normal->count == faulty->count)
        return;
    fputs(", which ran ", story->out);
    print_times(story, normal->count);
}

static void print_same_loop(struct story *story, const struct nlr_element *normal,
                            const struct nlr_element *faulty)
{
    if (!begin_phrase(story))
        return;
    fprintf(story->out, "L%" PRIu32 " ran ", loop_number(story, faulty));
    print_times(story, faulty->count);
    if (times(normal->count))
        fprintf(story->out, " instead of %s", times(normal->count));
    else
        fprintf(story->out, " instead of %" PRIu64, normal->count);
}

/* The names of a stretch of symbols: "a, b, c and 7 more". */
static void print_names(struct story *story, const struct nlr_element *symbols, size_t count)
{
    size_t named = count <= MOST_NAMES + 1 ? count : MOST_NAMES;

    for (size_t i = 0; i < named; i++)
        fprintf(story->out, "%s%s",
                !i               ? ""
                : i + 1 == count ? " and "
                                 : ", ",
                symbols_demangled(&story->summary->symbols, symbols[i].id));
    if (named < count)
        fprintf(story->out, " and %zu more", count - named);
}

/* How many symbols are at `at`, one behind the other. */
static size_t symbol_stretch(const struct nlr_sequence *sequence, size_t at, size_t end)
{
    size_t count = 0;

    while (at + count < end && sequence->elements[at + count].kind == NLR_SYMBOL)
        count++;
    return count;
}

static bool hangs(const struct story *story)
{
    return story->thread->faulty->last_call == LAST_CALL_OPEN &&
           story->thread->normal->last_call != LAST_CALL_OPEN;
}

/* Entry `at` of the faulty run, which the normal one does not have; returns the entries that it has covered.
 */
static size_t print_faulty_only(struct story *story, size_t at, size_t end)
{
    const struct nlr_sequence *faulty = &story->thread->faulty->loops;
    size_t count = symbol_stretch(faulty, at, end);

    if (!begin_phrase(story))
        return count ? count : 1;
    if (!count) {
        fprintf(story->out, "L%" PRIu32 " ran ", loop_number(story, &faulty->elements[at]));
        print_times(story, faulty->elements[at].count);
        return 1;
    }
    print_names(story, faulty->elements + at, count);
    fputs(count == 1 ? " was called" : " were called", story->out);
    if (at + count == faulty->count && hangs(story))
        fputs(count == 1 ? " and never returned" : ", the last of which never returned", story->out);
    return count;
}

static size_t print_normal_only(struct story *story, size_t at, size_t end)
{
    const struct nlr_sequence *normal = &story->thread->normal->loops;
    size_t count = symbol_stretch(normal, at, end);

    if (!begin_phrase(story))
        return count ? count : 1;
    if (!count) {
        fprintf(story->out, "L%" PRIu32 " did not run (", loop_number(story, &normal->elements[at]));
        print_times(story, normal->elements[at].count);
        fputs(" in the baseline run)", story->out);
        return 1;
    }
    print_names(story, normal->elements + at, count);
    fputs(count == 1 ? " was " : " were ", story->out);
    fputs(end == normal->count ? "never reached" : "not called", story->out);
    return count;
}

static const struct diff_loop *next_loop(const struct story *story)
{
    return story->next_loop < story->thread->diff.loop_count ? &story->thread->diff.loops[story->next_loop]
                                                             : NULL;
}

/* A normal edit, a faulty one, or one of either behind each other: `block` spans both. */
static void print_block(struct story *story, const struct diff_edit *block)
{
    const struct thread_diff *thread = story->thread;
    size_t end = block->faulty + block->faulty_count, first_loop = story->next_loop;
    const struct diff_loop *loop;

    for (size_t at = block->faulty; at < end;) {
        loop = next_loop(story);
        if (loop && loop->faulty == at) {
            (loop->same ? print_same_loop : print_similar_loop)(
                story, &thread->normal->loops.elements[loop->normal], &thread->faulty->loops.elements[at++]);
            story->next_loop++;
        } else {
            at += print_faulty_only(story, at, loop && loop->faulty < end ? loop->faulty : end);
        }
    }
    story->next_loop = first_loop;
    end = block->normal + block->normal_count;
    for (size_t at = block->normal; at < end;) {
        loop = next_loop(story);
        if (loop && loop->normal == at) {
            at++;
            story->next_loop++;
        } else {
            at += print_normal_only(story, at, loop && loop->normal < end ? loop->normal : end);
        }
    }
}

static void print_blocks(struct story *story)
{
    const struct diff_nlr *diff = &story->thread->diff;

    for (size_t i = 0; i < diff->edit_count; i++) {
        struct diff_edit block = diff_nlr_block(diff, &i);

        if (block.op == DIFF_NORMAL || block.op == DIFF_FAULTY)
            print_block(story, &block);
    }
}

/* How often each symbol of edits of one kind occurs in `sequence`: the most frequent one, if any. */
static uint64_t most_frequent(const struct story *story, enum diff_op op, uint32_t *ret_symbol)
{
    const struct diff_nlr *diff = &story->thread->diff;
    const struct nlr_sequence *sequence =
        op == DIFF_FAULTY ? &story->thread->faulty->loops : &story->thread->normal->loops;
    AUTO_FREE uint64_t *counts = calloc(story->summary->symbols.count + 1, sizeof(*counts));
    uint64_t most = 0;

    for (size_t i = 0; counts && i < diff->edit_count; i++) {
        const struct diff_edit *edit = &diff->edits[i];
        size_t first = op == DIFF_FAULTY ? edit->faulty : edit->normal;
        size_t count = op == DIFF_FAULTY ? edit->faulty_count : edit->normal_count;

        for (size_t at = first; edit->op == op && at < first + count; at++) {
            uint32_t symbol = sequence->elements[at].id;

            if (sequence->elements[at].kind != NLR_SYMBOL || ++counts[symbol] <= most)
                continue;
            most = counts[symbol];
            *ret_symbol = symbol;
        }
    }
    return most;
}

/* "574 changes; most frequent: lookup_db added (3,980 times)" */
static void print_many(struct story *story, size_t changes)
{
    uint32_t added_symbol = 0, missing_symbol = 0;
    uint64_t added = most_frequent(story, DIFF_FAULTY, &added_symbol);
    uint64_t missing = most_frequent(story, DIFF_NORMAL, &missing_symbol);
    uint64_t most = added >= missing ? added : missing;

    text_print(story->out, "%'zu changes", changes);
    if (most > 1) {
        fprintf(
            story->out, "; most frequent: %s",
            symbols_demangled(&story->summary->symbols, added >= missing ? added_symbol : missing_symbol));
        text_print(story->out, " %s (%'" PRIu64 " times)", added >= missing ? "added" : "missing", most);
    }
    story->phrases = MOST_PHRASES;
    story->omitted = 0;
}

static void print_changes(struct story *story)
{
    struct story counted = *story;

    counted.phrases = MOST_PHRASES; /* each phrase is only counted */
    print_blocks(&counted);
    if (counted.omitted > MANY_CHANGES) {
        print_many(story, counted.omitted);
        return;
    }
    print_blocks(story);
    if (story->omitted)
        fprintf(story->out, ", and %zu more change%s", story->omitted, text_plural(story->omitted));
}

/* A last call that both runs make and only one comes back from; others are mentioned where they are called.
 */
static void print_hang(struct story *story)
{
    const struct thread_diff *thread = story->thread;
    const struct diff_nlr *diff = &thread->diff;
    bool faulty_hangs = thread->faulty->last_call == LAST_CALL_OPEN;
    const struct thread_loops *hanging = faulty_hangs ? thread->faulty : thread->normal;
    uint32_t symbol = last_symbol(&story->summary->table, &hanging->loops);

    if (!thread->hang_differs || symbol == SYMBOL_DROPPED)
        return;
    if (faulty_hangs && diff->edit_count && diff->edits[diff->edit_count - 1].op == DIFF_FAULTY &&
        thread->faulty->loops.elements[thread->faulty->loops.count - 1].kind == NLR_SYMBOL &&
        story->phrases <= MOST_PHRASES && !story->omitted)
        return;
    fprintf(story->out, "%sthe last call, of %s, never returned%s", story->phrases ? "; " : "",
            symbols_demangled(&story->summary->symbols, symbol), faulty_hangs ? "" : " in the baseline run");
}

char *thread_diff_words(const struct loop_summary *summary, const struct thread_diff *thread)
{
    char *words = NULL;
    size_t size = 0;
    struct story story = {.summary = summary, .thread = thread, .out = open_memstream(&words, &size)};

    if (!story.out)
        return NULL;
    print_changes(&story);
    print_hang(&story);
    if (fclose(story.out)) {
        free(words);
        return NULL;
    }
    return words;
}
