/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The sentences of a verdict. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/diff/verdict.h"
#include "analyzer/diff/verdict_threads.h"
#include "analyzer/symbols/short_names.h"
#include "base/text.h"

#define MOST_GROUPS 5
#define MOST_NAMES 4
#define MOST_CALLS 4
#define MOST_BODY 6
#define NAME_WIDTH 60 /* longer names are cut; the comparison below the verdict has them in full */

struct text {
    const struct diff_verdict *verdict;
    FILE *out;
};

static void print_name(const struct text *text, uint32_t symbol)
{
    char name[SHORT_NAME_SIZE(NAME_WIDTH)];

    name_shorten(symbols_demangled(&text->verdict->loops->symbols, symbol), NAME_WIDTH, name, sizeof(name));
    text_show(text->out, name);
}

static void print_times(const struct text *text, uint64_t count)
{
    if (count < 3)
        fputs(count == 2 ? "twice" : count ? "once" : "never", text->out);
    else
        text_print(text->out, "%" PRIu64 " times", count);
}

/* "7 times instead of 16" */
static void print_change(const struct text *text, uint64_t faulty, uint64_t normal)
{
    print_times(text, faulty);
    fputs(" instead of ", text->out);
    if (faulty > 2 && normal > 2)
        text_print(text->out, "%" PRIu64, normal);
    else
        print_times(text, normal);
}

/* ", ", " and " or nothing before item `i` of `count`. */
static const char *joint(size_t i, size_t count)
{
    return !i ? "" : i + 1 == count ? " and " : ", ";
}

/* ------------------------------------------------------------------------------------------ what */

/* "after X": the call before a place. */
static void print_after(const struct text *text, const struct divergence *place)
{
    if (place->last_common == SYMBOL_DROPPED)
        return;
    fputs(" after ", text->out);
    print_name(text, place->last_common);
}

static void print_loop(const struct text *text, uint32_t loop)
{
    const struct loop_table *table = &text->verdict->loops->table;
    const struct nlr_element *body = loop_table_elements(table, loop);
    uint32_t length = table->bodies[loop].length;

    text_print(text->out, "L%" PRIu32 " = [", table->numbers[loop]);
    for (uint32_t i = 0; i < length && i < MOST_BODY; i++) {
        if (i)
            fputc(' ', text->out);
        if (body[i].kind == NLR_SYMBOL)
            print_name(text, body[i].id);
        else if (body[i].kind == NLR_LOOP)
            text_print(text->out, "L%" PRIu32 " ^ %" PRIu64, table->numbers[body[i].id], body[i].count);
    }
    fputs(length > MOST_BODY ? " ...]" : "]", text->out);
}

static void print_instead(const struct text *text, const struct divergence *place, const char *verb)
{
    text_print(text->out, "%s ", verb);
    print_name(text, place->faulty_next);
    if (place->normal_next == SYMBOL_DROPPED || place->normal_next == place->faulty_next)
        return;
    fputs(" where the baseline run calls ", text->out);
    print_name(text, place->normal_next);
}

static void print_missing(const struct text *text, const struct divergence *place)
{
    if (place->normal_next == SYMBOL_DROPPED) {
        fputs("made fewer calls", text->out);
        return;
    }
    fputs("did not call ", text->out);
    print_name(text, place->normal_next);
    print_after(text, place);
}

static void print_added(const struct text *text, const struct divergence *place)
{
    if (place->faulty_next == SYMBOL_DROPPED) {
        fputs("made more calls", text->out);
        return;
    }
    fputs("also called ", text->out);
    print_name(text, place->faulty_next);
    print_after(text, place);
}

/* It may not have returned from the last call. */
static void print_stop(const struct text *text, const struct verdict_group *group)
{
    const struct thread_diff *thread = &text->verdict->comparison->threads[group->threads[0]];
    bool unknown = thread->faulty->last_call == LAST_CALL_UNKNOWN;

    fputs(unknown ? "called nothing more" : "ended early", text->out);
    print_after(text, &group->divergence);
    fputs(unknown ? "; it is unknown whether that call returned" : "", text->out);
}

static void print_ending(const struct text *text, const struct verdict_group *group)
{
    const struct divergence *place = &group->divergence;

    switch (place->kind) {
    case DIVERGENCE_HANGS:
        fputs("never returned from ", text->out);
        print_name(text, place->stuck);
        return;
    case DIVERGENCE_HUNG_NORMAL:
        fputs("returned from ", text->out);
        print_name(text, place->stuck);
        fputs(", which never returned in the baseline run", text->out);
        return;
    case DIVERGENCE_STOPS:
        print_stop(text, group);
        return;
    default:
        fputs("continued", text->out);
        print_after(text, place);
        fputs(", where the baseline run ends", text->out);
    }
}

/* What happened, as the end of a sentence about one thread or several. */
static void print_what(const struct text *text, const struct verdict_group *group)
{
    const struct divergence *place = &group->divergence;
    bool has_next = place->faulty_next != SYMBOL_DROPPED;

    switch (place->kind) {
    case DIVERGENCE_LOOP_SHORTER:
    case DIVERGENCE_LOOP_LONGER:
        fputs(place->kind == DIVERGENCE_LOOP_SHORTER ? "left a loop early: L" : "stayed in a loop: L",
              text->out);
        text_print(text->out, "%" PRIu32 " ran ", text->verdict->loops->table.numbers[place->loop]);
        print_change(text, place->faulty_count, place->normal_count);
        return;
    case DIVERGENCE_ORDER:
        fputs("made the same calls in another order", text->out);
        if (has_next)
            print_instead(text, place, ":");
        return;
    case DIVERGENCE_MISSING:
        print_missing(text, place);
        return;
    case DIVERGENCE_ADDED:
        print_added(text, place);
        return;
    case DIVERGENCE_OTHER:
    case DIVERGENCE_NONE:
        if (has_next)
            print_instead(text, place, "called");
        else
            fputs("made other calls", text->out);
        return;
    case DIVERGENCE_RENAMED:
        fputs("made the same calls, of functions with other names (a guess)", text->out);
        return;
    default:
        print_ending(text, group);
    }
}

/* ------------------------------------------------------------------------------------------ where */

static void print_place(const struct text *text, uint32_t symbol, bool faulty)
{
    const struct function_side *side = function_facts_side(text->verdict->facts, symbol, faulty);
    const char *base;

    print_name(text, symbol);
    if (!side->line || !side->file)
        return;
    base = strrchr(side->file, '/');
    text_print(text->out, " (%s:%d)", base ? base + 1 : side->file, side->line);
}

static void print_next(const struct text *text, uint32_t symbol, bool faulty, bool known)
{
    if (symbol != SYMBOL_DROPPED)
        print_place(text, symbol, faulty);
    else
        fputs(known ? "none" : "unknown", text->out);
    fputs(faulty ? " in the candidate run\n" : " in the baseline run; ", text->out);
}

/* "none" is only printed for a thread that is known to have ended, or to have hung, there. */
static bool end_is_known(const struct thread_loops *thread)
{
    size_t count = thread->loops.count;

    return !thread->incomplete && !(count && thread->loops.elements[count - 1].kind == NLR_LOST);
}

static void print_where(const struct text *text, const struct verdict_group *group)
{
    const struct divergence *place = &group->divergence;
    const struct thread_diff *thread = &text->verdict->comparison->threads[group->threads[0]];

    fputs("  same up to   ", text->out);
    if (place->last_common == SYMBOL_DROPPED) {
        fputs(place->exact ? "none: the first call differs" : "unknown: events are missing", text->out);
    } else {
        text_print(text->out, "%s %" PRIu64 ": ", place->exact ? "call" : "call (after missing events)",
                   place->common);
        print_place(text, place->last_common, true);
    }
    fputs("\n  next call    ", text->out);
    print_next(text, place->normal_next, false, end_is_known(thread->normal));
    print_next(text, place->faulty_next, true, end_is_known(thread->faulty));
    if (place->loop == NO_LOOP)
        return;
    fputs("  where        ", text->out);
    if (!place->normal_count)
        text_print(text->out, "iteration %" PRIu64 " of %" PRIu64 " (%s run) of ", place->iteration,
                   place->iterations, place->loop_is_faulty ? "candidate" : "baseline");
    print_loop(text, place->loop);
    fputc('\n', text->out);
}

static void print_calls(const struct text *text)
{
    const struct diff_verdict *verdict = text->verdict;
    size_t shown = verdict->call_count < MOST_CALLS ? verdict->call_count : MOST_CALLS;

    if (!shown)
        return;
    fputs("  call counts  (baseline -> candidate) ", text->out);
    for (size_t i = 0; i < shown; i++) {
        const struct call_count *call = &verdict->calls[i];

        fputs(i ? ", " : "", text->out);
        print_name(text, call->symbol);
        text_print(text->out, " %'" PRIu64 " -> %'" PRIu64, call->normal, call->faulty);
    }
    if (shown < verdict->call_count)
        text_print(text->out, ", and %zu more function%s", verdict->call_count - shown,
                   text_plural(verdict->call_count - shown));
    fputc('\n', text->out);
}

/* ------------------------------------------------------------------------------------------ which threads */

static void print_most_changed(const struct text *text)
{
    const struct diff_verdict *verdict = text->verdict;
    const struct verdict_group *group = &verdict->groups[0];

    text_print(text->out, "Most changed: thread %s ",
               thread_diff_label(&verdict->comparison->threads[group->threads[0]]));
    print_what(text, group);
    fputs(".\n", text->out);
    print_where(text, group);
    print_calls(text);
    if (group->count == 1)
        return;
    fputs("  same change  ", text->out);
    diff_verdict_threads(text->out, verdict->comparison, group->threads + 1, group->count - 1);
    fputc('\n', text->out);
}

static void print_others(const struct text *text)
{
    const struct diff_verdict *verdict = text->verdict;
    size_t left = 0;

    for (size_t i = 1; i < verdict->group_count; i++) {
        const struct verdict_group *group = &verdict->groups[i];

        if (i > MOST_GROUPS) {
            left += group->count;
            continue;
        }
        fputs(group->count == 1 ? "Thread " : "Threads ", text->out);
        diff_verdict_threads(text->out, verdict->comparison, group->threads, group->count);
        fputc(' ', text->out);
        print_what(text, group);
        fputs(".\n", text->out);
    }
    if (left)
        text_print(text->out, "%zu more thread%s in other ways.\n", left,
                   left == 1 ? " differs" : "s differ");
}

static void print_one_sided(const struct text *text, bool normal)
{
    const struct run_comparison *comparison = text->verdict->comparison;
    size_t *threads = malloc((comparison->count + 1) * sizeof(*threads)), count = 0;

    for (size_t i = 0; threads && i < comparison->count; i++) {
        const struct thread_diff *thread = &comparison->threads[i];

        if (!thread->unknown && (normal ? !thread->faulty : !thread->normal))
            threads[count++] = i;
    }
    if (count) {
        text_print(text->out, "Only in the %s run: thread%s ", normal ? "baseline" : "candidate",
                   count == 1 ? "" : "s");
        diff_verdict_threads(text->out, comparison, threads, count);
        fputs(".\n", text->out);
    }
    free(threads);
}

/* ------------------------------------------------------------------------------------------ functions */

static void print_functions(const struct text *text, const uint32_t *symbols, size_t count, const char *what)
{
    size_t shown = count <= MOST_NAMES + 1 ? count : MOST_NAMES;

    if (!count)
        return;
    text_print(text->out, "%s: ", what);
    for (size_t i = 0; i < shown; i++) {
        text_show(text->out, shown < count && i ? ", " : joint(i, count));
        print_name(text, symbols[i]);
    }
    if (shown < count)
        text_print(text->out, " and %zu more", count - shown);
    fputs(".\n", text->out);
}

/* Of the functions that one run calls only, those that the other program is known to have, or not to. */
static void print_called_only(const struct text *text, bool faulty, enum in_program in_program,
                              const char *what)
{
    const struct diff_verdict *verdict = text->verdict;
    const uint32_t *symbols = faulty ? verdict->only_faulty : verdict->only_normal;
    size_t count = faulty ? verdict->only_faulty_count : verdict->only_normal_count, found = 0;
    uint32_t *chosen = malloc((count + 1) * sizeof(*chosen));

    for (size_t i = 0; chosen && i < count; i++)
        if (function_facts_side(verdict->facts, symbols[i], !faulty)->in_program == in_program)
            chosen[found++] = symbols[i];
    print_functions(text, chosen, found, what);
    free(chosen);
}

static void print_versions(const struct text *text)
{
    const struct renames *renames = &text->verdict->renames;

    for (size_t i = 0; i < renames->count && i < MOST_NAMES; i++) {
        fputs(i ? ", " : "Probably renamed (a guess from the calls around them): ", text->out);
        print_name(text, renames->renames[i].normal);
        fputs(" -> ", text->out);
        print_name(text, renames->renames[i].faulty);
    }
    if (renames->count > MOST_NAMES)
        text_print(text->out, " and %zu more", renames->count - MOST_NAMES);
    if (renames->count)
        fputs(".\n", text->out);
    print_called_only(text, false, IN_PROGRAM_NO, "No longer in the program");
    print_called_only(text, true, IN_PROGRAM_NO, "New in the program");
    print_called_only(text, false, IN_PROGRAM_YES, "Called only in the baseline run");
    print_called_only(text, true, IN_PROGRAM_YES, "Called only in the candidate run");
    print_called_only(text, false, IN_PROGRAM_UNKNOWN,
                      "Called only in the baseline run (or not recorded in the candidate run)");
    print_called_only(text, true, IN_PROGRAM_UNKNOWN,
                      "Called only in the candidate run (or not recorded in the baseline run)");
}

/* ------------------------------------------------------------------------------------------ confidence */

static bool has_blind_spots(const struct verdict_doubts *doubts)
{
    return doubts->unknown_threads || doubts->unfinished || doubts->lost_events || doubts->lost_unknown ||
           doubts->blind_functions;
}

static void print_losses(const struct text *text)
{
    const struct verdict_doubts *doubts = &text->verdict->doubts;

    if (doubts->unfinished)
        text_print(text->out, " %s unfinished.", doubts->unfinished > 1 ? "Both runs are" : "One run is");
    if (doubts->lost_events)
        text_print(text->out, " %" PRIu64 "%s events are missing.", doubts->lost_events,
                   doubts->lost_unknown ? " or more" : "");
    else if (doubts->lost_unknown)
        fputs(" An unknown number of events is missing.", text->out);
    if (doubts->blind_functions)
        text_print(text->out, " %zu function%s not recorded all the time, and excluded from the comparison.",
                   doubts->blind_functions, doubts->blind_functions == 1 ? " was" : "s were");
    if (doubts->unknown_threads)
        text_print(text->out,
                   " %zu thread%s could not be compared completely; unknown parts do not count as "
                   "differences.",
                   doubts->unknown_threads, doubts->unknown_threads == 1 ? "" : "s");
}

static void print_confidence(const struct text *text)
{
    const struct verdict_doubts *doubts = &text->verdict->doubts;
    const struct run_comparison *comparison = text->verdict->comparison;

    fputs("Confidence:", text->out);
    if (!has_blind_spots(doubts))
        fputs(" no recorded events are missing in either run.", text->out);
    print_losses(text);
    if (doubts->unknown_ends)
        text_print(text->out, " In %zu thread%s it is unknown whether the last call returned.",
                   doubts->unknown_ends, doubts->unknown_ends == 1 ? "" : "s");
    fputc('\n', text->out);
    if (comparison->usual)
        text_print(text->out,
                   "            %zu more thread%s no more than baseline runs do among themselves.\n",
                   comparison->usual, comparison->usual == 1 ? " differs" : "s differ");
    if (comparison->aside)
        text_print(text->out, "            Excluded: %zu thread%s of the launcher of the program.\n",
                   comparison->aside, comparison->aside == 1 ? "" : "s");
    if (doubts->one_normal && text->verdict->group_count)
        fputs(
            "            Only one baseline run, so normal run-to-run variation is included; add "
            "--baseline.\n",
            text->out);
}

/* ------------------------------------------------------------------------------------------ all of it */

static void print_head(const struct text *text, const char *normal, const char *faulty)
{
    const struct diff_verdict *verdict = text->verdict;
    const struct run_comparison *comparison = verdict->comparison;
    size_t matched = 0;

    for (size_t i = 0; i < comparison->count; i++)
        matched += comparison->threads[i].normal && comparison->threads[i].faulty;
    if (comparison->suspect_count)
        text_print(text->out, "%zu of %zu thread%s differ%s", comparison->suspect_count, matched,
                   matched == 1 ? "" : "s", comparison->suspect_count == 1 ? "s" : "");
    else
        text_print(text->out, "No difference in %zu thread%s", matched, matched == 1 ? "" : "s");
    text_print(text->out, " between run %" PRId64 ", %s (baseline), and run %" PRId64 ", %s (candidate).\n",
               summary_run(verdict->loops, false)->run_id, normal, summary_run(verdict->loops, true)->run_id,
               faulty);
}

char *diff_verdict_text(const struct diff_verdict *verdict, const char *normal_name, const char *faulty_name)
{
    char *words = NULL;
    size_t size = 0;
    struct text text = {verdict, open_memstream(&words, &size)};

    if (!text.out)
        return NULL;
    print_head(&text, normal_name, faulty_name);
    if (verdict->group_count) {
        print_most_changed(&text);
        print_others(&text);
    }
    print_one_sided(&text, true);
    print_one_sided(&text, false);
    print_versions(&text);
    print_confidence(&text);
    if (fclose(text.out)) {
        free(words);
        return NULL;
    }
    return words;
}
