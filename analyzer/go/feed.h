/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A recorded Go program, event by event through a replay, for whoever wants to know what its goroutines did.
 */
#ifndef TRACECTL_ANALYZER_GO_FEED_H
#define TRACECTL_ANALYZER_GO_FEED_H

#include "analyzer/go/places.h"
#include "analyzer/go/replay.h"
#include "store/streams/go_events.h"

struct error;

/* Each may be NULL. What they return other than 0 ends the feeding. */
struct go_listener {
    /* Behind the replay that was fed the event. */
    int (*event)(void *context, const struct go_replay *replay, const struct process_event *event);
    /* As the replay's on_action, which comes before the event that it is told by. */
    int (*action)(void *context, const struct go_goroutine *goroutine, const struct go_action *action);
    void *context;
};

/* Feeds all events of the program, and go_replay_end. Returns 0, or a negative errno. */
int go_feed(struct tracestore *store, const struct go_program *program, struct go_places *places,
            const struct go_listener *listener, struct error *err);

#endif
