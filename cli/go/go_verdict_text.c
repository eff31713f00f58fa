/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The verdict for people. Similar goroutines are one block: the same state, the same operation at the
 * same place, made by goroutines that were made at the same places.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/go/go_verdict.h"

enum { MOST_HOLDERS = 8, MOST_USERS = 3, LABELS_SHOWN = 3, LABEL_SIZE = 64, TEXT_SIZE = 256 };
static const double NS_PER_S = 1e9;

/* ------------------------------------------------------------------------------------------ first line */

static size_t sum(const struct go_judged_run *run, enum go_outcome_kind kind)
{
    size_t count = 0;

    for (size_t i = 0; i < run->count; i++)
        for (size_t j = 0; j < run->judged[i].verdict.outcome_count; j++)
            count += run->judged[i].verdict.outcomes[j].kind == kind;
    return count;
}

static const char *plural(size_t count)
{
    return count == 1 ? "" : "s";
}

static void put_crash(FILE *out, const struct go_judged_run *run)
{
    for (size_t i = 0; i < run->count; i++) {
        const struct go_judged *judged = &run->judged[i];
        char label[LABEL_SIZE];

        if (judged->verdict.kind != GO_VERDICT_CRASH)
            continue;
        go_judged_label(judged, judged->verdict.crashed, label, sizeof(label));
        if (judged->verdict.signal)
            text_print(out, "signal %d (%s) ended the program\n", judged->verdict.signal,
                       strsignal(judged->verdict.signal));
        else
            text_print(out, "%s%s%s\n",
                       judged->totals.fatal == GO_FATAL_PANIC ? "an unrecovered panic"
                                                              : "a fatal error of the runtime",
                       judged->verdict.crashed ? ", in " : "", judged->verdict.crashed ? label : "");
        return;
    }
}

static const char *are_blocked(size_t count)
{
    return count == 1 ? " is blocked forever" : "s are blocked forever";
}

static void put_first_line(FILE *out, const struct go_judged_run *run)
{
    size_t stuck = sum(run, GO_OUTCOME_STUCK), unfinished = sum(run, GO_OUTCOME_UNFINISHED);

    text_print(out, "%s: ", go_verdict_name(run->kind));
    switch (run->kind) {
    case GO_VERDICT_CRASH:
        put_crash(out, run);
        return;
    case GO_VERDICT_TIMEOUT:
        fputs("the time limit ended the run", out);
        break;
    case GO_VERDICT_GLOBAL_DEADLOCK:
    case GO_VERDICT_LEAK:
        text_print(out, "%zu goroutine%s\n", stuck, are_blocked(stuck));
        return;
    default:
        fputs(unfinished ? "no goroutine is blocked forever" : "all goroutines have ended", out);
    }
    if (stuck)
        text_print(out, ", %zu goroutine%s", stuck, are_blocked(stuck));
    if (unfinished)
        text_print(out, ", %zu had not finished", unfinished);
    putc('\n', out);
}

/* ------------------------------------------------------------------------------------------ a block */

static void put_place(FILE *out, const struct go_judged *judged, uint32_t site)
{
    struct go_place place = go_judged_place(judged, site);
    char text[TEXT_SIZE];

    go_place_text(&place, text, sizeof(text));
    text_print(out, "%s", text);
}

static void put_chain(FILE *out, const struct go_judged *judged, const struct go_goroutine *goroutine)
{
    while (goroutine && goroutine->parent) {
        struct go_place place = go_judged_place(judged, goroutine->created_at);
        char label[LABEL_SIZE];

        go_judged_label(judged, goroutine->parent, label, sizeof(label));
        text_print(out, "    created by   %s at ", *place.function ? place.function : "?");
        put_place(out, judged, goroutine->created_at);
        text_print(out, " (%s)\n", label);
        goroutine = go_replay_parent(judged->replay, goroutine);
    }
}

static void put_holders(FILE *out, const struct go_judged *judged, uint64_t object)
{
    uint64_t holders[MOST_HOLDERS];
    size_t count = go_replay_holders(judged->replay, object, holders, MOST_HOLDERS);

    for (size_t i = 0; i < count && i < MOST_HOLDERS; i++) {
        const struct go_goroutine *holder = go_replay_goroutine(judged->replay, holders[i]);
        char label[LABEL_SIZE];

        if (!holder)
            continue;
        go_judged_label(judged, holders[i], label, sizeof(label));
        for (size_t j = 0; j < holder->held_count; j++) {
            if (holder->held[j].object != object)
                continue;
            text_print(out, "    held by      %s since ", label);
            put_place(out, judged, holder->held[j].site);
            text_print(out, "%s\n", holder->state == GO_STATE_ENDED ? ", which has ended" : "");
        }
    }
}

static void put_users(FILE *out, const struct go_judged *judged, uint64_t goroutine, uint64_t key)
{
    const struct go_object *object = go_replay_object(judged->replay, key);
    size_t shown = 0;

    for (size_t i = 0; object && i < object->user_count && shown < MOST_USERS; i++) {
        const struct go_user *user = &object->users[i];
        char label[LABEL_SIZE];

        if (user->goroutine == goroutine)
            continue;
        go_judged_label(judged, user->goroutine, label, sizeof(label));
        text_print(out, "    %s %s, %s at ", shown++ ? "            " : "last used by", label,
                   go_op_name(user->operation));
        put_place(out, judged, user->site);
        putc('\n', out);
    }
}

/* What similar goroutines have in common. */
static void put_common(FILE *out, const struct go_judged *judged, const struct go_outcome *outcome)
{
    const struct go_goroutine *goroutine = go_replay_goroutine(judged->replay, outcome->goroutine);
    struct go_place place = go_judged_place(judged, go_goroutine_site(goroutine));

    text_print(out, "    %s %s, ", goroutine->action_count ? "in          " : "began in    ",
               *place.function ? place.function : "?");
    put_place(out, judged, go_goroutine_site(goroutine));
    if (goroutine->action_count)
        text_print(out, ": %s", go_op_name(goroutine->actions[0].operation));
    putc('\n', out);
    put_chain(out, judged, goroutine);
}

static void put_object(FILE *out, const struct go_judged *judged, const struct go_goroutine *goroutine)
{
    const struct go_action *waits = go_waiting_in(goroutine);
    char object[TEXT_SIZE];

    if (!waits)
        return;
    go_action_object(waits, object, sizeof(object));
    if (*object)
        text_print(out, "    waits for    %s\n", object);
    if (waits->object)
        put_holders(out, judged, waits->object);
    if (waits->object)
        put_users(out, judged, goroutine->goroutine, waits->object);
    for (size_t i = 0; i < waits->case_count; i++)
        if (waits->cases[i].object)
            put_users(out, judged, goroutine->goroutine, waits->cases[i].object);
}

/* ------------------------------------------------------------------------------------------ groups */

struct member {
    const struct go_judged *judged;
    const struct go_outcome *outcome;
    char *key; /* equal for similar goroutines */
};

/* What makes goroutines similar. */
static char *make_key(const struct go_judged *judged, const struct go_outcome *outcome)
{
    const struct go_goroutine *goroutine = go_replay_goroutine(judged->replay, outcome->goroutine);
    char *key = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&key, &size);

    if (!out)
        return NULL;
    text_print(out, "%s %d %d %d %" PRId64 " %u", judged->program->label, (int)outcome->kind,
               (int)outcome->unblock, (int)goroutine->state, goroutine->wait_reason,
               go_goroutine_site(goroutine));
    for (; goroutine && goroutine->parent; goroutine = go_replay_parent(judged->replay, goroutine))
        text_print(out, " %u", goroutine->created_at);
    return fclose(out) == 0 ? key : NULL;
}

static int by_key(const void *left, const void *right)
{
    const struct member *a = left, *b = right;
    int order = strcmp(a->key, b->key);

    if (order)
        return order;
    return (a->outcome->goroutine > b->outcome->goroutine) - (a->outcome->goroutine < b->outcome->goroutine);
}

static size_t similar_members(const struct member *members, size_t count)
{
    size_t same = 1;

    while (same < count && !strcmp(members[same].key, members[0].key))
        same++;
    return same;
}

static void put_group(FILE *out, const struct member *members, size_t count)
{
    const struct go_judged *judged = members[0].judged;
    const struct go_outcome *outcome = members[0].outcome;
    const struct go_goroutine *goroutine = go_replay_goroutine(judged->replay, outcome->goroutine);
    const char *reason = go_judged_reason(judged, goroutine);
    char label[LABEL_SIZE];

    putc('\n', out);
    for (size_t i = 0; i < count && i < LABELS_SHOWN; i++) {
        go_judged_label(judged, members[i].outcome->goroutine, label, sizeof(label));
        text_print(out, "%s%s", i ? ", " : "", label);
    }
    if (count > LABELS_SHOWN)
        text_print(out, " and %zu more", count - LABELS_SHOWN);
    text_print(out, ": %s", go_state_text(goroutine->state));
    if (goroutine->state == GO_STATE_BLOCKED) {
        double seconds = (double)(judged->ended_ns - goroutine->since_ns) / NS_PER_S;

        text_print(out, "%s%s%s for %.3f s", *reason ? " (" : "", reason, *reason ? ")" : "", seconds);
    }
    putc('\n', out);
    put_common(out, judged, outcome);
    if (goroutine->state == GO_STATE_BLOCKED)
        put_object(out, judged, goroutine);
    if (outcome->kind == GO_OUTCOME_UNFINISHED) {
        text_print(out, "    not leaked   %s", go_unblock_text(outcome->unblock));
        go_judged_label(judged, outcome->by, label, sizeof(label));
        text_print(out, "%s%s\n", outcome->by ? ": " : "", outcome->by ? label : "");
    }
}

static void free_members(struct member *members, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(members[i].key);
    free(members);
}

static void put_groups(FILE *out, const struct go_judged_run *run, enum go_outcome_kind kind)
{
    struct member *members = calloc(sum(run, kind) + 1, sizeof(*members));
    size_t count = 0;
    bool complete = members != NULL;

    for (size_t i = 0; complete && i < run->count; i++) {
        const struct go_judged *judged = &run->judged[i];

        for (size_t j = 0; complete && j < judged->verdict.outcome_count; j++) {
            const struct go_outcome *outcome = &judged->verdict.outcomes[j];

            if (outcome->kind != kind)
                continue;
            members[count] = (struct member){judged, outcome, make_key(judged, outcome)};
            complete = members[count].key != NULL;
            count += complete;
        }
    }
    if (complete && count) {
        qsort(members, count, sizeof(*members), by_key);
        for (size_t i = 0, same; i < count; i += same) {
            same = similar_members(&members[i], count - i);
            put_group(out, &members[i], same);
        }
    }
    if (!complete)
        fputs("\nnot enough memory to list the goroutines\n", out);
    free_members(members, count);
}

/* ------------------------------------------------------------------------------------------ the rest */

/* How a goroutine is waited for, up to the place. */
static void put_wait_for(FILE *out, enum go_wait_for_reason reason, const char *label)
{
    switch (reason) {
    case GO_WAIT_FOR_HOLDS:
        text_print(out, "held by %s since ", label);
        break;
    case GO_WAIT_FOR_WRITER:
        text_print(out, "for which %s already waits to write, at ", label);
        break;
    case GO_WAIT_FOR_PEER:
        text_print(out, "whose other end only %s has used, at ", label);
        break;
    case GO_WAIT_FOR_ADDED:
        text_print(out, "which %s has joined but not left, at ", label);
        break;
    case GO_WAIT_FOR_SIGNALS:
        text_print(out, "which only %s has signalled, at ", label);
        break;
    }
}

static void put_cycle(FILE *out, const struct go_judged *judged)
{
    const struct go_verdict *verdict = &judged->verdict;

    if (verdict->cycle_count)
        fputs("\nThese goroutines wait for each other:\n", out);
    for (size_t i = 0; i < verdict->cycle_count; i++) {
        const struct go_wait_for *edge = &verdict->cycle[i];
        const struct go_goroutine *goroutine = go_replay_goroutine(judged->replay, edge->goroutine);
        const struct go_action *waits = go_waiting_in(goroutine);
        const char *kind = waits->operation == GO_OP_SELECT ? "channel" : go_object_kind(waits->operation);
        char label[LABEL_SIZE], on[LABEL_SIZE];

        go_judged_label(judged, edge->goroutine, label, sizeof(label));
        go_judged_label(judged, edge->on, on, sizeof(on));
        text_print(out, "    %s waits for %s 0x%" PRIx64 " (", label, kind, edge->object);
        put_place(out, judged, go_goroutine_site(goroutine));
        fputs("), ", out);
        put_wait_for(out, edge->reason, on);
        put_place(out, judged, edge->site);
        text_print(out, "%s\n", i + 1 < verdict->cycle_count ? "," : "");
    }
}

static void put_tests(FILE *out, const struct go_judged *judged)
{
    if (judged->verdict.test_count)
        fputs("\nTests:\n", out);
    for (size_t i = 0; i < judged->verdict.test_count; i++) {
        const struct go_test_verdict *test = &judged->verdict.tests[i];
        struct go_place place = go_judged_place(judged, test->test);
        char label[LABEL_SIZE];

        go_judged_label(judged, test->goroutine, label, sizeof(label));
        text_print(out, "    %-15s %s (%s)\n", go_verdict_name(test->kind),
                   *place.function ? place.function : "?", label);
    }
}

static void put_lost(FILE *out, const struct go_judged_run *run)
{
    size_t unknown = sum(run, GO_OUTCOME_UNKNOWN);
    uint64_t lost = 0;

    for (size_t i = 0; i < run->count; i++)
        lost += run->judged[i].totals.lost;
    if (lost)
        text_print(out, "\n%" PRIu64 " event%s missing\n", lost, lost == 1 ? " is" : "s are");
    if (unknown)
        text_print(out, "\nThe outcome of %zu goroutine%s is unknown:\n", unknown, plural(unknown));
}

void go_verdict_text(FILE *out, const struct go_judged_run *run)
{
    put_first_line(out, run);
    if (run->kind != GO_VERDICT_CRASH)
        put_groups(out, run, GO_OUTCOME_STUCK);
    for (size_t i = 0; i < run->count; i++) {
        put_cycle(out, &run->judged[i]);
        put_tests(out, &run->judged[i]);
    }
    if (sum(run, GO_OUTCOME_UNFINISHED))
        fputs("\nNot finished at the end, but not leaked:\n", out);
    put_groups(out, run, GO_OUTCOME_UNFINISHED);
    put_lost(out, run);
    put_groups(out, run, GO_OUTCOME_UNKNOWN);
}
