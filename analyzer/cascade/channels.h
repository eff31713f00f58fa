/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which send a receive's bytes are from: the two ends of connections, and the positions of bytes in each of
 * their directions (store/streams/sync_events.h says what they count).
 *
 * Datagrams of UDP have no positions. One that is received is the oldest of its size that was sent from there
 * to there and has not been received: when some are lost, or change places, it may be an older one than it
 * really was, which was sent before it all the same.
 */
#ifndef TRACECTL_ANALYZER_CASCADE_CHANNELS_H
#define TRACECTL_ANALYZER_CASCADE_CHANNELS_H

#include "analyzer/cascade/trace.h"

struct channels;

/* -ENOMEM. Free with channels_free, which accepts NULL. */
int channels_new(const struct cascade_trace *trace, struct channels **ret_channels);
void channels_free(struct channels *channels);

/* A send has happened, as the node `node`. -ENOMEM. */
int channels_send(struct channels *channels, const struct process_event *event, uint32_t node);

/* The nodes of the sends that the receive has bytes of, the youngest `most` of them; returns how many. */
size_t channels_receive(struct channels *channels, const struct process_event *event, uint32_t *ret_nodes,
                        size_t most);

#endif
