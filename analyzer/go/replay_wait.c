/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <string.h>

#include "analyzer/go/replay.h"
#include "base/array.h"

/* The runtime's words, go 1.17 to 1.26; a name stands for all that begin with it ("chan receive (durable)").
 * The longer come first. */
static const struct {
    const char *prefix;
    enum go_wait wait;
} reasons[] = {
    {"chan receive (nil chan)", GO_WAIT_FOREVER},
    {"chan send (nil chan)", GO_WAIT_FOREVER},
    {"chan ", GO_WAIT_CHAN},
    {"select (no cases)", GO_WAIT_FOREVER},
    {"select", GO_WAIT_SELECT},
    {"sync.Mutex", GO_WAIT_LOCK},
    {"sync.RWMutex", GO_WAIT_LOCK},
    {"sync.WaitGroup", GO_WAIT_GROUP},
    {"sync.Cond", GO_WAIT_COND},
    {"semacquire", GO_WAIT_SEMAPHORE},
    {"sleep", GO_WAIT_SLEEP},
    {"IO wait", GO_WAIT_NETWORK},
    {"GC worker", GO_WAIT_SYSTEM},
    {"GC sweep wait", GO_WAIT_SYSTEM},
    {"GC scavenge wait", GO_WAIT_SYSTEM},
    {"GC background sweeper", GO_WAIT_SYSTEM},
    {"force gc", GO_WAIT_SYSTEM},
    {"finalizer wait", GO_WAIT_SYSTEM},
    {"cleanup wait", GO_WAIT_SYSTEM},
    {"timer goroutine", GO_WAIT_SYSTEM},
    {"trace reader", GO_WAIT_SYSTEM},
};

enum go_wait go_wait_of(const char *reason)
{
    for (size_t i = 0; reason && i < ARRAY_SIZE(reasons); i++)
        if (!strncmp(reason, reasons[i].prefix, strlen(reasons[i].prefix)))
            return reasons[i].wait;
    return GO_WAIT_OTHER;
}

bool go_wait_on_others(enum go_wait wait)
{
    switch (wait) {
    case GO_WAIT_CHAN:
    case GO_WAIT_SELECT:
    case GO_WAIT_FOREVER:
    case GO_WAIT_LOCK:
    case GO_WAIT_SEMAPHORE:
    case GO_WAIT_GROUP:
    case GO_WAIT_COND:
        return true;
    default:
        return false;
    }
}
