/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/go/go_service.h"

#include "cli/common/output.h"
#include "cli/go/go_verdict.h"

enum { TEXT_SIZE = 256 };

static json_t *text_or_null(const char *text)
{
    return *text ? cli_json_text(text) : json_null();
}

static json_t *label(const struct go_service *service, uint64_t goroutine)
{
    char text[TEXT_SIZE];

    if (!goroutine)
        return json_null();
    snprintf(text, sizeof(text), "%s.g%llu", service->program->label, (unsigned long long)goroutine);
    return cli_json_text(text);
}

static json_t *place(const struct go_service *service, uint32_t site)
{
    struct go_place found = go_service_place(service, site);
    char text[TEXT_SIZE];

    if (!*found.file)
        return json_null();
    snprintf(text, sizeof(text), "%s:%d", found.file, found.line);
    return cli_json_text(text);
}

static json_t *seconds(const struct go_service *service, uint64_t since_ns)
{
    return json_real(since_ns < service->until_ns ? (double)(service->until_ns - since_ns) / 1e9 : 0);
}

static json_t *object(const struct go_group *group, uint64_t address)
{
    char text[TEXT_SIZE];

    if (!address)
        return group->operation == GO_OP_SELECT ? json_string("select") : json_null();
    snprintf(text, sizeof(text), "%s 0x%llx", go_object_kind(group->operation), (unsigned long long)address);
    return cli_json_text(text);
}

/* A goroutine in the words of the contract, with its history. */
static json_t *member(const struct go_service *service, const struct go_group *group,
                      const struct go_group_member *one)
{
    struct go_place waits = go_service_place(service, group->site);
    uint32_t created_at = service->grouping.origins[group->origin].created_at;
    struct go_place made = go_service_place(service, created_at);
    json_t *used = json_null();

    if (one->used_ns)
        used = json_pack("{s:o, s:s, s:o, s:o}", "goroutine", label(service, one->user), "operation",
                         go_op_name(one->used_with), "place", place(service, one->used_at), "at",
                         cli_json_time(one->used_ns));
    return json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o}", "goroutine",
                     label(service, one->goroutine), "state", go_state_text(group->state), "wait_reason",
                     text_or_null(go_service_reason(service, group)), "object", object(group, one->object),
                     "function", text_or_null(waits.function), "file", text_or_null(waits.file), "line",
                     waits.line ? json_integer(waits.line) : json_null(), "created_by",
                     text_or_null(made.function), "created_at", place(service, created_at), "parent",
                     label(service, one->parent), "created", cli_json_time(one->created_ns), "since",
                     cli_json_time(one->since_ns), "abandoned", one->abandoned, "last_user", used);
}

static json_t *chain(const struct go_service *service, uint32_t origin)
{
    json_t *array = json_array();

    while (origin != GO_ORIGIN_BEFORE) {
        const struct go_origin *at = &service->grouping.origins[origin];

        json_array_append_new(
            array, json_pack("{s:o, s:o, s:o}", "begins",
                             text_or_null(go_service_place(service, at->function).function), "created_by",
                             text_or_null(go_service_place(service, at->created_at).function), "created_at",
                             place(service, at->created_at)));
        origin = at->parent;
    }
    return array;
}

static json_t *counts(const uint64_t numbers[GO_WINDOWS])
{
    json_t *array = json_array();

    for (size_t i = 0; i < GO_WINDOWS; i++)
        json_array_append_new(array, cli_json_count(numbers[i]));
    return array;
}

static json_t *group_json(const struct go_service *service, const struct go_group *group)
{
    const struct go_origin *origin = &service->grouping.origins[group->origin];
    json_t *members = json_array();

    for (size_t i = 0; i < group->member_count; i++)
        json_array_append_new(members, member(service, group, &group->members[i]));
    return json_pack(
        "{s:o, s:b, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:f, s:s, "
        "s:o, s:o}",
        "program", cli_json_text(service->program->label), "system", origin->system, "begins",
        text_or_null(go_service_place(service, origin->function).function), "created_at",
        place(service, origin->created_at), "chain", chain(service, group->origin), "state",
        go_state_text(group->state), "wait_reason", text_or_null(go_service_reason(service, group)),
        "operation", group->operation ? json_string(go_op_name(group->operation)) : json_null(), "place",
        place(service, group->site), "count", cli_json_count(group->count), "abandoned",
        cli_json_count(group->abandoned), "oldest_seconds", seconds(service, group->oldest_ns),
        "median_seconds", seconds(service, group->median_ns), "growth",
        (json_int_t)origin->created - (json_int_t)origin->ended, "created_in", counts(origin->created_in),
        "ended_in", counts(origin->ended_in), "completed_waits", cli_json_count(group->completed),
        "longest_wait_seconds", (double)group->longest_ns / 1e9, "suspicion",
        go_suspicion_name(group->suspicion), "goroutines", members, "ended", cli_json_count(origin->ended));
}

/* How long so much was recorded; empty without a budget. */
static json_t *seconds_with(const struct go_group_totals *totals)
{
    static const char *const names[GO_DETAILS] = {"nothing", "lives", "schedule", "waiting", "operations"};
    json_t *object = json_object();

    for (unsigned i = 0; i < GO_DETAILS; i++)
        if (totals->detail_ns[i])
            json_object_set_new(object, names[i], json_real((double)totals->detail_ns[i] / 1e9));
    return object;
}

static json_t *program(const struct go_service *service)
{
    const struct go_group_totals *totals = &service->grouping.totals;

    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o}", "program",
        cli_json_text(service->program->label), "image", cli_json_text(service->program->image), "version",
        cli_json_text(service->program->version), "observed_seconds", seconds(service, service->from_ns),
        "created", cli_json_count(totals->created), "ended", cli_json_count(totals->ended), "seen_of_before",
        cli_json_count(totals->met), "unknown", cli_json_count(totals->unknown), "lost",
        cli_json_count(totals->lost), "has_ended", service->ended, "exit_status",
        service->ended && service->exit_status >= 0 ? json_integer(service->exit_status) : json_null(),
        "seconds_with", seconds_with(totals));
}

static size_t add_leaked(const struct go_service *service, json_t *leaked)
{
    size_t count = 0;

    for (size_t i = 0; i < service->grouping.count; i++) {
        const struct go_group *group = &service->grouping.groups[i];

        if (group->suspicion != GO_SUSPICION_LEAK)
            continue;
        count += group->abandoned;
        for (size_t j = 0; j < group->member_count; j++)
            if (group->members[j].abandoned)
                json_array_append_new(leaked, member(service, group, &group->members[j]));
    }
    return count;
}

json_t *go_service_json(const char *verdict, const struct go_service *services, size_t count)
{
    json_t *document = json_object(), *groups = json_array(), *leaked = json_array(),
           *programs = json_array();
    uint64_t lost = 0;
    size_t leaked_count = 0;

    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < services[i].grouping.count; j++)
            json_array_append_new(groups, group_json(&services[i], &services[i].grouping.groups[j]));
        json_array_append_new(programs, program(&services[i]));
        leaked_count += add_leaked(&services[i], leaked);
        lost += services[i].grouping.totals.lost;
    }
    json_object_set_new(document, "verdict", json_string(verdict));
    json_object_set_new(document, "leaked", leaked);
    json_object_set_new(document, "leaked_count", cli_json_count(leaked_count));
    json_object_set_new(document, "cycle", json_array());
    json_object_set_new(document, "groups", groups);
    json_object_set_new(document, "programs", programs);
    json_object_set_new(document, "lost", cli_json_count(lost));
    return document;
}
