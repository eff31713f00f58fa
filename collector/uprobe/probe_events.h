/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Probes by tracefs events, for kernels without uprobe_multi (before 6.6).
 *
 * All probes of a placement are one event: a definition in uprobe_events, with a line for each place that
 * ends in the place's cookie as a constant (bpf/probe_cookie.h reads it). A perf event of it, with the BPF
 * program, places the probes, and its last close takes them away. (A perf event for each function would need
 * no definition, but to close 1,000 of these takes 90 seconds.)
 *
 * The definition stays behind, without effect but that it holds the file. It must be deleted, and must not be
 * while the event is in use: the kernel checks that for an event's last probe only, and frees the others.
 * Another process may still have a copy of the descriptor, of a recorder that was killed, too. So
 * probe_events_sweep() deletes definitions of which the kernel itself says that they have no user
 * (bpf/event_users.bpf.c).
 */
#ifndef TRACECTL_COLLECTOR_UPROBE_PROBE_EVENTS_H
#define TRACECTL_COLLECTOR_UPROBE_PROBE_EVENTS_H

#include <stdbool.h>

#include "collector/uprobe/placement.h"

#define PROBE_EVENTS_GROUP "tracectl"
#define PROBE_EVENTS_NAME 17 /* bytes of an event's name: "e", and a number of 16 digits */

/* A descriptor of the folder of tracefs, mounted or not, that is opened once and not to be closed; or a
 * negative errno. */
int probe_events_folder(void);

/* Opens `uprobe_events` with its lock: recorders share it while they define an event and use it for the first
 * time; who deletes some has it `alone`, and does not wait for it. Returns a descriptor, or a negative errno:
 * -EWOULDBLOCK when others have the lock. */
int probe_events_lock(int folder, bool alone);

/* Gives back what probe_events_lock() has returned. */
void probe_events_unlock(int events);

/* The number by which the kernel knows an event of the group. Returns 0 or a negative errno. */
int probe_events_id(int folder, const char *name, uint64_t *ret_id);

/* Deletes a definition without users. */
void probe_events_undefine(int events, const char *name);

/* Placement by an event; see placement_make(). -EINTR: the process that did it was killed. */
int probe_events_place(const struct placement *placement);

/* Deletes all definitions of tracectl's that nobody uses, of this recorder and of others that were killed.
 * What cannot be decided stays, and so does everything while other recorders define events for long. Does
 * nothing where probes are placed in another way. In a process of its own; takes a tenth of a second if there
 * is any definition. */
void probe_events_sweep(void);

#endif
