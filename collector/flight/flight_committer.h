/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The process that makes runs of a flight recorder's window, one after the other (flight.h). */
#ifndef TRACECTL_COLLECTOR_FLIGHT_FLIGHT_COMMITTER_H
#define TRACECTL_COLLECTOR_FLIGHT_FLIGHT_COMMITTER_H

#include "collector/flight/flight.h"

struct commit_order {
    char name[128]; /* "": one is made */
    char trigger[256];
};

struct flight_committer {
    pid_t pid;
    int socket; /* -1: there is none */
};

/* Forks it. It recovers what is left beside the store first. */
int flight_committer_start(const struct flight_options *options, struct flight_committer *ret_committer,
                           struct error *err);

/* Tells it where the window is; once, before the first order. */
int flight_committer_open(struct flight_committer *committer, const char *window_path, struct error *err);

int flight_committer_order(struct flight_committer *committer, const struct commit_order *order,
                           struct error *err);

/* What has come of the last order. `wait`: until that is known. 1: it is not known yet. */
int flight_committer_hear(struct flight_committer *committer, bool wait, struct flight_report *ret_report,
                          struct error *err);

/* Ends it and waits for that. */
void flight_committer_stop(struct flight_committer *committer);

#endif
