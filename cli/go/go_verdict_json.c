/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/go/go_verdict.h"

#include "cli/common/output.h"

enum { MOST_HOLDERS = 64, LABEL_SIZE = 64, TEXT_SIZE = 256 };

static json_t *text_or_null(const char *text)
{
    return *text ? cli_json_text(text) : json_null();
}

json_t *go_label_json(const struct go_judged *judged, uint64_t goroutine)
{
    char label[LABEL_SIZE];

    if (!goroutine)
        return json_null();
    go_judged_label(judged, goroutine, label, sizeof(label));
    return cli_json_text(label);
}

static json_t *place_json(const struct go_judged *judged, uint32_t site)
{
    struct go_place place = go_judged_place(judged, site);
    char text[TEXT_SIZE];

    if (!*place.file)
        return json_null();
    snprintf(text, sizeof(text), "%s:%d", place.file, place.line);
    return cli_json_text(text);
}

json_t *go_place_json(const struct go_judged *judged, uint32_t site)
{
    struct go_place place = go_judged_place(judged, site);

    return json_pack("{s:o, s:o, s:o}", "function", text_or_null(place.function), "file",
                     text_or_null(place.file), "line", place.line ? json_integer(place.line) : json_null());
}

/* ------------------------------------------------------------------------------------------ a goroutine */

/* From the goroutine up to the main one: where each was made. */
static json_t *chain_json(const struct go_judged *judged, const struct go_goroutine *goroutine)
{
    json_t *chain = json_array();

    while (goroutine && goroutine->parent) {
        struct go_place place = go_judged_place(judged, goroutine->created_at);

        json_array_append_new(chain, json_pack("{s:o, s:o, s:o}", "goroutine",
                                               go_label_json(judged, goroutine->parent), "function",
                                               text_or_null(place.function), "place",
                                               place_json(judged, goroutine->created_at)));
        goroutine = go_replay_parent(judged->replay, goroutine);
    }
    return chain;
}

static json_t *holders_json(const struct go_judged *judged, const struct go_action *waits)
{
    uint64_t holders[MOST_HOLDERS];
    size_t count =
        waits && waits->object ? go_replay_holders(judged->replay, waits->object, holders, MOST_HOLDERS) : 0;
    json_t *array = json_array();

    for (size_t i = 0; i < count && i < MOST_HOLDERS; i++)
        json_array_append_new(array, go_label_json(judged, holders[i]));
    return array;
}

static json_t *users_json(const struct go_judged *judged, const struct go_goroutine *goroutine,
                          const struct go_action *waits)
{
    const struct go_object *object =
        waits && waits->object ? go_replay_object(judged->replay, waits->object) : NULL;
    json_t *array = json_array();

    for (size_t i = 0; object && i < object->user_count; i++) {
        const struct go_user *user = &object->users[i];

        if (user->goroutine == goroutine->goroutine)
            continue;
        json_array_append_new(
            array, json_pack("{s:o, s:s, s:o, s:o}", "goroutine", go_label_json(judged, user->goroutine),
                             "operation", go_op_name(user->operation), "place",
                             place_json(judged, user->site), "at", cli_json_time(user->ns)));
    }
    return array;
}

static json_t *goroutine_json(const struct go_judged *judged, const struct go_outcome *outcome)
{
    const struct go_goroutine *goroutine = go_replay_goroutine(judged->replay, outcome->goroutine);
    const struct go_action *waits = go_waiting_in(goroutine);
    struct go_place place = go_judged_place(judged, go_goroutine_site(goroutine));
    struct go_place made = go_judged_place(judged, goroutine->created_at);
    char object[TEXT_SIZE];

    go_action_object(waits, object, sizeof(object));
    return json_pack(
        "{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "goroutine",
        go_label_json(judged, goroutine->goroutine), "state", go_state_text(goroutine->state), "wait_reason",
        text_or_null(go_judged_reason(judged, goroutine)), "object", text_or_null(object), "operation",
        goroutine->action_count ? json_string(go_op_name(goroutine->actions[0].operation)) : json_null(),
        "function", text_or_null(place.function), "file", text_or_null(place.file), "line",
        place.line ? json_integer(place.line) : json_null(), "created_by", text_or_null(made.function),
        "created_at", place_json(judged, goroutine->created_at), "parent",
        go_label_json(judged, goroutine->parent), "chain", chain_json(judged, goroutine), "held_by",
        holders_json(judged, waits), "used_by", users_json(judged, goroutine, waits), "since",
        cli_json_time(goroutine->since_ns));
}

static json_t *outcome_json(const struct go_judged *judged, const struct go_outcome *outcome)
{
    json_t *object = goroutine_json(judged, outcome);

    if (outcome->kind == GO_OUTCOME_UNFINISHED) {
        json_object_set_new(object, "reason", json_string(go_unblock_text(outcome->unblock)));
        json_object_set_new(object, "released_by", go_label_json(judged, outcome->by));
    }
    return object;
}

static void add_outcomes(const struct go_judged *judged, enum go_outcome_kind kind, json_t *array)
{
    if (kind == GO_OUTCOME_STUCK && judged->verdict.kind == GO_VERDICT_CRASH)
        return; /* the goroutine that crashed might have unblocked them */
    for (size_t i = 0; i < judged->verdict.outcome_count; i++)
        if (judged->verdict.outcomes[i].kind == kind)
            json_array_append_new(array, outcome_json(judged, &judged->verdict.outcomes[i]));
}

/* ------------------------------------------------------------------------------------------ the document */

static void add_cycle(const struct go_judged *judged, json_t *array)
{
    for (size_t i = 0; i < judged->verdict.cycle_count; i++) {
        const struct go_wait_for *edge = &judged->verdict.cycle[i];
        const struct go_goroutine *goroutine = go_replay_goroutine(judged->replay, edge->goroutine);
        char object[32];

        snprintf(object, sizeof(object), "0x%llx", (unsigned long long)edge->object);
        json_array_append_new(array, json_pack("{s:o, s:s, s:o, s:o, s:s, s:o}", "goroutine",
                                               go_label_json(judged, edge->goroutine), "object", object, "at",
                                               place_json(judged, go_goroutine_site(goroutine)), "waits_for",
                                               go_label_json(judged, edge->on), "because",
                                               go_wait_for_text(edge->reason), "since",
                                               place_json(judged, edge->site)));
    }
}

static void add_tests(const struct go_judged *judged, json_t *array)
{
    for (size_t i = 0; i < judged->verdict.test_count; i++) {
        const struct go_test_verdict *test = &judged->verdict.tests[i];
        struct go_place place = go_judged_place(judged, test->test);

        json_array_append_new(array, json_pack("{s:o, s:o, s:s}", "test", text_or_null(place.function),
                                               "goroutine", go_label_json(judged, test->goroutine), "verdict",
                                               go_verdict_name(test->kind)));
    }
}

static json_t *program_json(const struct go_judged *judged)
{
    const struct go_replay_totals *totals = &judged->totals;

    return json_pack("{s:o, s:o, s:o, s:s, s:o, s:i, s:o, s:o, s:o, s:b}", "program",
                     cli_json_text(judged->program->label), "image", cli_json_text(judged->program->image),
                     "version", cli_json_text(judged->program->version), "verdict",
                     go_verdict_name(judged->verdict.kind), "crashed",
                     go_label_json(judged, judged->verdict.crashed), "signal", judged->verdict.signal,
                     "created", cli_json_count(totals->created), "ended", cli_json_count(totals->ended),
                     "lost", cli_json_count(totals->lost), "from_start", judged->program->from_start);
}

json_t *go_verdict_json(const struct go_judged_run *run)
{
    static const struct {
        const char *key;
        enum go_outcome_kind kind;
    } lists[] = {
        {"leaked", GO_OUTCOME_STUCK}, {"unfinished", GO_OUTCOME_UNFINISHED}, {"unknown", GO_OUTCOME_UNKNOWN}};
    json_t *document = json_object(), *programs = json_array(), *cycle = json_array(), *tests = json_array();
    uint64_t lost = 0;

    json_object_set_new(document, "verdict", json_string(go_verdict_name(run->kind)));
    for (size_t list = 0; list < sizeof(lists) / sizeof(lists[0]); list++) {
        json_t *array = json_array();

        for (size_t i = 0; i < run->count; i++)
            add_outcomes(&run->judged[i], lists[list].kind, array);
        json_object_set_new(document, lists[list].key, array);
    }
    for (size_t i = 0; i < run->count; i++) {
        add_cycle(&run->judged[i], cycle);
        add_tests(&run->judged[i], tests);
        json_array_append_new(programs, program_json(&run->judged[i]));
        lost += run->judged[i].totals.lost;
    }
    json_object_set_new(document, "cycle", cycle);
    json_object_set_new(document, "tests", tests);
    json_object_set_new(document, "lost", cli_json_count(lost));
    json_object_set_new(document, "programs", programs);
    return document;
}
