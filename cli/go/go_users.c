/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/go/go_users.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct go_user_place {
    uint32_t site;
    struct go_place place;
    struct go_place_users users;
    pid_t pid; /* the one that came last */
    uint64_t goroutine;
    UT_hash_handle hh;
};

static struct go_user_place *get(struct go_users *users, uint32_t site, const struct go_place_source *source)
{
    struct go_user_place *place;

    HASH_FIND(hh, users->places, &site, sizeof(site), place);
    if (place)
        return place;
    place = calloc(1, sizeof(*place));
    if (!place)
        return NULL;
    place->site = site;
    if (source->find(source->context, site, &place->place)) {
        free(place);
        return NULL;
    }
    HASH_ADD(hh, users->places, site, sizeof(place->site), place);
    if (!place->hh.tbl) { /* no memory */
        free(place);
        return NULL;
    }
    return place;
}

int go_users_add(struct go_users *users, pid_t pid, const struct go_replay *replay,
                 const struct process_event *event, const struct go_place_source *source)
{
    const struct go_goroutine *goroutine = go_replay_goroutine(replay, event->goroutine);
    struct go_user_place *place;

    if (!event->site || !goroutine)
        return 0;
    place = get(users, event->site, source);
    if (!place)
        return -ENOMEM;
    place->users.kinds |= 1ull << (goroutine->created_at * 0x9e3779b97f4a7c15ull >> 58);
    if (place->pid == pid && place->goroutine != event->goroutine)
        place->users.several = true;
    place->pid = pid;
    place->goroutine = event->goroutine;
    return 0;
}

struct go_place_users go_users_of(const struct go_users *users, const char *file, int line)
{
    struct go_place_users all = {0};

    for (const struct go_user_place *place = users->places; place; place = place->hh.next) {
        if (place->place.line != line || strcmp(place->place.file, file) != 0)
            continue;
        all.kinds |= place->users.kinds;
        all.several |= place->users.several;
    }
    return all;
}

void go_users_release(struct go_users *users)
{
    struct go_user_place *place = NULL, *next = NULL;

    HASH_ITER (hh, users->places, place, next) {
        HASH_DEL(users->places, place);
        free(place);
    }
}
