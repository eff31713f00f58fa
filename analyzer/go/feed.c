/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/go/feed.h"

#include <errno.h>

#include "analyzer/go/verdict.h"
#include "base/cleanup.h"
#include "base/error.h"

DEFINE_CLEANUP(cleanup_replay, struct go_replay *, go_replay_free)
DEFINE_CLEANUP(cleanup_iter, struct process_event_iter *, process_event_iter_free)

struct feeding {
    const struct go_listener *listener;
    struct go_place_source places;
};

static bool is_runtime(void *context, uint32_t function)
{
    const struct feeding *feeding = context;
    struct go_place place;

    return feeding->places.find(feeding->places.context, function, &place) == 0 &&
           go_is_runtime(place.function);
}

static int on_action(void *context, const struct go_goroutine *goroutine, const struct go_action *action)
{
    const struct feeding *feeding = context;

    return feeding->listener->action(feeding->listener->context, goroutine, action);
}

static int feed_all(struct go_replay *replay, struct process_event_iter *iter,
                    const struct go_listener *listener, struct error *err)
{
    struct process_event event;
    int r;

    while ((r = process_event_iter_next(iter, &event, err)) == 0) {
        int failed = go_replay_event(replay, &event);

        if (!failed && listener->event)
            failed = listener->event(listener->context, replay, &event);
        if (failed)
            return error_set(err, failed, NULL, "replaying the events of goroutines");
    }
    if (r < 0)
        return r;
    r = go_replay_end(replay);
    return r < 0 ? error_set(err, r, NULL, "replaying the events of goroutines") : 0;
}

int go_feed(struct tracestore *store, const struct go_program *program, struct go_places *places,
            const struct go_listener *listener, struct error *err)
{
    struct feeding feeding = {listener, go_places_source(places)};
    struct go_replay_options options = {.is_runtime = is_runtime,
                                        .on_action = listener->action ? on_action : NULL,
                                        .wait_reasons = program->wait_reasons,
                                        .wait_reason_count = program->wait_reason_count,
                                        .context = &feeding};
    CLEANUP(cleanup_replay) struct go_replay *replay = NULL;
    CLEANUP(cleanup_iter) struct process_event_iter *iter = NULL;
    int r = go_replay_new(&options, &replay);

    if (r < 0)
        return error_set(err, r, NULL, "replaying the events of goroutines");
    r = process_event_iter_open(store, PROCESS_STREAM_GO, program->process_id, &iter, err);
    return r < 0 ? r : feed_all(replay, iter, listener, err);
}
