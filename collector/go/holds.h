/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* When goroutines that are held up continue. */
#ifndef TRACECTL_COLLECTOR_GO_HOLDS_H
#define TRACECTL_COLLECTOR_GO_HOLDS_H

#include <stdbool.h>
#include <stdint.h>

#define GO_HOLD_SHORT_NS 3000000u /* what others mostly need to come as far as they can */
#define GO_HOLD_LONGEST_NS 4000000000u

/* Of one execution. A held goroutine continues when no other one of the process can run on, in
 * the order in which they were stopped where several are held, and at the latest after `limit_ns`. */
struct go_hold_rule {
    uint64_t limit_ns;    /* up to GO_HOLD_LONGEST_NS */
    bool outlasts_timers; /* others that sleep, or wait for a timer due within the limit, go first as well */
};

#endif
