/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The places for recordings are shared by the users whose processes match: one user cannot take them all. */
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "collector/daemon/log.h"
#include "collector/daemon/state.h"

static size_t places_of(const struct service *service, uid_t user)
{
    size_t count = 0;

    for (size_t i = 0; i < service->worker_count; i++)
        count += service->workers[i].process.user == user;
    return count;
}

/* Whether an earlier recording is of the same user. */
static bool seen_before(const struct service *service, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (service->workers[i].process.user == service->workers[index].process.user)
            return true;
    return false;
}

/* Whether the entry is of a user without recordings that no earlier entry has. */
static bool waits_first(const struct service *service, size_t index)
{
    const uid_t user = service->left_out[index].user;

    for (size_t i = 0; i < index; i++)
        if (service->left_out[i].user == user)
            return false;
    return places_of(service, user) == 0;
}

/* An equal part for each user that has recordings or waits for one, and for this one. At least one place. */
static size_t share_of(const struct service *service, uid_t user)
{
    size_t users = places_of(service, user) == 0;

    for (size_t i = 0; i < service->worker_count; i++)
        users += !seen_before(service, i);
    for (size_t i = 0; i < service->excluded_count; i++)
        users += service->left_out[i].user != user && waits_first(service, i);
    return users && users < service->config.max_recordings ? service->config.max_recordings / users : 1;
}

/* The youngest recording of the user who has most; NULL when no user has more than `share`, or one is ending.
 */
static struct worker *find_surplus(struct service *service, size_t share)
{
    struct worker *found = NULL;
    size_t most = share;

    for (size_t i = 0; i < service->worker_count; i++) {
        struct worker *worker = &service->workers[i];
        size_t places = places_of(service, worker->process.user);

        if (worker->stopping)
            return NULL;
        if (places > most || (found && places == most && worker->begun_ns > found->begun_ns)) {
            most = places;
            found = worker;
        }
    }
    return found;
}

/* Whether another user with less than that waits for the next place. */
static bool another_waits(const struct service *service, uid_t user, size_t share)
{
    for (size_t i = 0; i < service->excluded_count; i++)
        if (service->left_out[i].user != user && places_of(service, service->left_out[i].user) < share)
            return true;
    return false;
}

static const char *user_name(uid_t user)
{
    const struct passwd *entry = getpwuid(user);

    return entry ? entry->pw_name : service_number(user);
}

static void note_excluded(struct service *service, const struct service_target *target,
                          const struct service_process *process)
{
    struct left_out *left = service->left_out, *end = left + service->excluded_count;

    service->counters.refused++;
    while (left < end && (left->user != process->user || strcmp(left->target, target->name) != 0))
        left++;
    if (left == end) {
        if (service->excluded_count == EXCLUDED_MAX)
            return;
        service->excluded_count++;
        *left = (struct left_out){.user = process->user, .pid = process->pid};
        snprintf(left->target, sizeof(left->target), "%s", target->name);
        service_log("warning", "left-out", "target", target->name, "user", user_name(process->user), "pid",
                    service_number(process->pid), "why", "max-recordings", "limit",
                    service_number((long long)service->config.max_recordings), "remedy",
                    "raise max-recordings, or set the user of the target");
    }
    left->processes = left->round == service->round ? left->processes + 1 : 1;
    left->round = service->round;
}

void service_forget_excluded(struct service *service)
{
    size_t kept = 0;

    for (size_t i = 0; i < service->excluded_count; i++)
        if (service->left_out[i].round == service->round)
            service->left_out[kept++] = service->left_out[i];
    service->excluded_count = kept;
}

bool service_has_place(struct service *service, const struct service_target *target,
                       const struct service_process *process)
{
    const size_t share = share_of(service, process->user);
    const bool has_share = places_of(service, process->user) >= share;
    struct worker *surplus;
    char user[64];

    if (service->worker_count < service->config.max_recordings &&
        !(has_share && another_waits(service, process->user, share)))
        return true;
    note_excluded(service, target, process);
    if (has_share)
        return false;
    surplus = find_surplus(service, share);
    if (surplus) {
        surplus->over = true;
        snprintf(user, sizeof(user), "%s", user_name(surplus->process.user));
        service_log("warning", "place-taken", "target", surplus->target, "user", user, "pid",
                    service_number(surplus->process.pid), "for", user_name(process->user));
        service_stop_worker(service, surplus, "another user's turn");
    }
    return false;
}
