/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What this kernel can do, each found out separately: by trying, or by its types; never by its version. Each
 * is found out once, since the kernel stays the same. Without privileges there is no way to probe. */
#ifndef TRACECTL_COLLECTOR_UPROBE_KERNEL_FEATURES_H
#define TRACECTL_COLLECTOR_UPROBE_KERNEL_FEATURES_H

#include <stdbool.h>

/* Values of the kernel's interface that the headers of older distributions lack (include/uapi/linux/bpf.h).
 */
enum {
    ATTACH_UPROBE_MULTI = 48,   /* BPF_TRACE_UPROBE_MULTI, 6.6 */
    ATTACH_UPROBE_SESSION = 57, /* BPF_TRACE_UPROBE_SESSION, 6.13 */
};

/* How many probes are placed at once. */
enum probe_way {
    PROBE_WAY_NONE,   /* not at all */
    PROBE_WAY_MULTI,  /* by a link of uprobe_multi */
    PROBE_WAY_EVENTS, /* by a tracefs event (probe_events.h) */
};

/* The first way that there is. TRACECTL_PROBE_WAY=events in the environment has it use the second one where
 * there are both, for tests. */
enum probe_way kernel_probe_way(void);

/* "uprobe_multi", "tracefs events"; of PROBE_WAY_NONE what is missing. */
const char *probe_way_name(enum probe_way way);

/* A call and its return in one probe, of which each call decides whether its return is met. With
 * PROBE_WAY_EVENTS there are none. */
bool kernel_has_sessions(void);

/* A task can be met in the last moment before it leaves its memory: at an exec since Linux 6.10, and at its
 * end since 6.16, where that tracepoint comes earlier and has one more argument. So WIRE_SLOTS_BACK can tell
 * where the calls of a child end that shares its parent's slots. */
bool kernel_reports_slots(void);

/* A program is met where the kernel asks whether a process may change its rights (6.14). */
bool kernel_reports_rights(void);

#endif
