/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/go/go_service.h"

#include "base/array.h"
#include "base/text.h"
#include "cli/common/output.h"
#include "cli/common/table.h"
#include "cli/go/go_verdict.h"

enum { TEXT_SIZE = 256, MOST_GROUPS = 40, MOST_MEMBERS = 3 };

static double seconds(const struct go_service *service, uint64_t since_ns)
{
    return since_ns < service->until_ns ? (double)(service->until_ns - since_ns) / 1e9 : 0;
}

static void place_text(const struct go_service *service, uint32_t site, char *text, size_t size)
{
    struct go_place place = go_service_place(service, site);

    go_place_text(&place, text, size);
}

/* ------------------------------------------------------------------------------------ the table */

static void put_row(struct table *table, const struct go_service *service, const struct go_group *group)
{
    const struct go_origin *origin = &service->grouping.origins[group->origin];
    const char *reason = go_service_reason(service, group);
    const char *function = go_service_place(service, origin->function).function;
    char at[TEXT_SIZE] = "", made[TEXT_SIZE] = "before the recording";

    if (group->site)
        place_text(service, group->site, at, sizeof(at));
    if (group->origin != GO_ORIGIN_BEFORE)
        place_text(service, origin->created_at, made, sizeof(made));
    table_cell_count(table, group->count);
    table_cell(table, *reason ? reason : go_state_text(group->state));
    table_cell(table, at);
    table_cell_format(table, "%.1f s", seconds(service, group->oldest_ns));
    table_cell_format(table, "%.1f s", seconds(service, group->median_ns));
    table_cell_count(table, origin->created);
    table_cell_count(table, origin->ended);
    table_cell(table, made);
    table_cell(table, *function ? function : "?");
    table_cell(table, group->suspicion ? go_suspicion_name(group->suspicion) : "");
}

static void put_table(FILE *out, const struct go_service *service)
{
    static const char *const titles[] = {">COUNT",   ">STATE", "AT",         ">OLDEST", ">MEDIAN",
                                         ">CREATED", ">ENDED", "CREATED AT", "BEGINS",  "SUSPICION"};
    struct table *table = table_new(out, titles, sizeof(titles) / sizeof(titles[0]), cli_colour());
    size_t shown = 0, left = 0;

    for (size_t i = 0; table && i < service->grouping.count; i++) {
        const struct go_group *group = &service->grouping.groups[i];

        if (service->grouping.origins[group->origin].system)
            continue;
        if (shown < MOST_GROUPS) {
            put_row(table, service, group);
            shown++;
        } else {
            left++;
        }
    }
    table_free(table);
    if (left)
        text_print(out, "and %zu smaller groups (--json has all)\n", left);
}

/* ------------------------------------------------------------------------------------ suspicious groups */

static void put_windows(FILE *out, const struct go_origin *origin)
{
    int64_t alive = 0;

    fputs("    alive over time: ", out);
    for (size_t i = 0; i < GO_WINDOWS; i++) {
        alive += (int64_t)origin->created_in[i] - (int64_t)origin->ended_in[i];
        text_print(out, " %lld", (long long)alive);
    }
    fputs(" (goroutines created while observed)\n", out);
}

static void put_chain(FILE *out, const struct go_service *service, uint32_t origin)
{
    char text[TEXT_SIZE];

    while (origin != GO_ORIGIN_BEFORE) {
        const struct go_origin *at = &service->grouping.origins[origin];
        const char *function = go_service_place(service, at->created_at).function;

        place_text(service, at->created_at, text, sizeof(text));
        text_print(out, "    created by %s at %s\n", *function ? function : "?", text);
        origin = at->parent;
    }
    fputs("    created by a goroutine that is older than the recording\n", out);
}

static void put_member(FILE *out, const struct go_service *service, const struct go_group *group,
                       const struct go_group_member *member)
{
    char text[TEXT_SIZE];

    text_print(out, "    %s.g%llu", service->program->label, (unsigned long long)member->goroutine);
    if (member->parent)
        text_print(out, ", created by %s.g%llu", service->program->label, (unsigned long long)member->parent);
    if (member->created_ns)
        text_print(out, " %.1f s ago", seconds(service, member->created_ns));
    text_print(out, ", %s for %.1f s", go_state_text(group->state), seconds(service, member->since_ns));
    if (member->object) {
        text_print(out, ", %s 0x%llx", go_object_kind(group->operation), (unsigned long long)member->object);
        if (member->used_ns && member->user) {
            place_text(service, member->used_at, text, sizeof(text));
            text_print(out, " last used by %s.g%llu (%s at %s) %.1f s ago", service->program->label,
                       (unsigned long long)member->user, go_op_name(member->used_with), text,
                       seconds(service, member->used_ns));
        } else if (!member->used_ns) {
            fputs(", used by no other goroutine", out);
        }
    }
    putc('\n', out);
}

static void put_why(FILE *out, const struct go_group *group)
{
    if (group->suspicion == GO_SUSPICION_GROWS)
        text_print(out, "%zu goroutines, still growing, and hardly any has ended", group->count);
    else
        text_print(out, "%zu of %zu goroutines wait for an operation that no goroutine performs any more",
                   group->abandoned, group->count);
    if (group->completed)
        text_print(out, "; %'llu waits there have ended, the longest after %.3f s",
                   (unsigned long long)group->completed, (double)group->longest_ns / 1e9);
    putc('\n', out);
}

static void put_suspect(FILE *out, const struct go_service *service, const struct go_group *group)
{
    char at[TEXT_SIZE];

    place_text(service, group->site, at, sizeof(at));
    text_print(out, "\n%s: %s%s%s: ", go_suspicion_name(group->suspicion),
               group->operation ? go_op_name(group->operation) : go_state_text(group->state),
               group->site ? " at " : "", group->site ? at : "");
    put_why(out, group);
    put_chain(out, service, group->origin);
    put_windows(out, &service->grouping.origins[group->origin]);
    for (size_t i = 0; i < group->member_count && i < MOST_MEMBERS; i++)
        put_member(out, service, group, &group->members[i]);
    if (group->count > MOST_MEMBERS)
        text_print(out, "    and %zu more\n", group->count - MOST_MEMBERS);
}

/* ------------------------------------------------------------------------------------ all of it */

/* How long less was recorded than was asked for. */
static void put_detail(FILE *out, const struct go_service *service)
{
    static const char *const missing[] = {
        "nothing was recorded", "only creation and end of goroutines of goroutines", "no operations"};
    const uint64_t *times = service->grouping.totals.detail_ns;
    const char *before = "less was recorded to stay within the budget: ";
    uint64_t less = 0, all = 0;

    for (unsigned i = 0; i < GO_DETAILS; i++)
        all += times[i];
    for (unsigned i = 0; i < (unsigned)service->wanted && i < ARRAY_SIZE(missing); i++) {
        if (!times[i])
            continue;
        text_print(out, "%s%s for %.1f s", before, missing[i], (double)times[i] / 1e9);
        before = ", ";
        less += times[i];
    }
    if (less)
        text_print(out,
                   "; goroutines that are blocked forever can be recognised only in the rest (%.0f %% of the "
                   "time)\n",
                   100.0 * (double)(all - less) / (double)all);
}

static void put_service(FILE *out, const struct go_service *service)
{
    const struct go_group_totals *totals = &service->grouping.totals;

    text_print(out,
               "%s (%s), observed for %.1f s: %'llu goroutine%s created, %'llu ended. %'llu older "
               "goroutine%s active; the number of idle older ones is unknown.\n",
               service->program->image, service->program->version, seconds(service, service->from_ns),
               (unsigned long long)totals->created, text_plural(totals->created),
               (unsigned long long)totals->ended, (unsigned long long)totals->met,
               totals->met == 1 ? " was" : "s were");
    if (service->ended && service->exit_status >= 0)
        text_print(out, "the process ended with status %d\n", service->exit_status);
    else if (service->ended)
        fputs("the process ended\n", out);
    if (totals->lost)
        text_print(out, "%'llu events are missing, so the state of %'llu goroutines is unknown\n",
                   (unsigned long long)totals->lost, (unsigned long long)totals->unknown);
    put_detail(out, service);
    put_table(out, service);
    for (size_t i = 0; i < service->grouping.count && service->grouping.groups[i].suspicion; i++)
        put_suspect(out, service, &service->grouping.groups[i]);
}

static size_t count_leaked(const struct go_service *service)
{
    size_t count = 0;

    for (size_t i = 0; i < service->grouping.count; i++)
        if (service->grouping.groups[i].suspicion == GO_SUSPICION_LEAK)
            count += service->grouping.groups[i].abandoned;
    return count;
}

void go_service_text(FILE *out, const char *verdict, const struct go_service *services, size_t count)
{
    size_t leaked = 0;

    for (size_t i = 0; i < count; i++)
        leaked += count_leaked(&services[i]);
    text_print(out, "%s", verdict);
    if (leaked)
        text_print(out, ": %zu goroutines are blocked forever", leaked);
    putc('\n', out);
    for (size_t i = 0; i < count; i++)
        put_service(out, &services[i]);
}
