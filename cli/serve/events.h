/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Server-sent events (HTML Living Standard, 9.2): an event each time that the store has changed, at most one a
 * second. */
#ifndef TRACECTL_CLI_SERVE_EVENTS_H
#define TRACECTL_CLI_SERVE_EVENTS_H

struct MHD_Response;
struct MHD_Connection;
struct error;
struct events;
struct stamps;

enum { EVENTS_CLIENTS_MAX = 200 };

/* `stamps` is borrowed. */
int events_new(struct stamps *stamps, struct events **ret_events, struct error *err);
/* Ends all streams; afterwards there are no new ones. */
void events_stop(struct events *events);
/* Accepts NULL. The connections must have ended. */
void events_free(struct events *events);

/* The stream for one client. NULL: there are too many, or no memory. */
struct MHD_Response *events_response(struct events *events, struct MHD_Connection *connection);

#endif
