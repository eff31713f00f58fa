/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/recording/recorder_rights.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "collector/recording/recorder_records.h"

#define LOOK_NS 1000000000u
#define LOOK_SHARE 50 /* looking takes at most so small a part of the time */

/* What is not known of a process whose rights have changed, and which shared its parent's buffers; NULL:
 * nothing. `parted`: what backend_operations.separate returned; `held`: it stood still from before it changed. */
static const char *after_parting(const struct recorder *recorder, pid_t pid, bool held, int parted)
{
    if (!parted)
        return NULL;
    if (parted < 0 && parted != -EBUSY)
        return "its rights have changed, and it still shares its parent's buffers: calls of both may be made "
               "up";
    if (!backend_has(recorder->in_processes, pid))
        return "its rights have changed: it has no inline probes any more";
    return held ? NULL : "its rights had changed a moment before it got buffers of its own";
}

/* The process gets memory of its own, and inline probes that write there. `*ret_loss`: see after_parting(). */
static int separate(struct recorder *recorder, pid_t pid, bool held, const char **ret_loss)
{
    struct error why = {0};
    bool updates;
    int parted = 0, r = 0;

    if (recorder->in_processes && !recorder->closing)
        parted = recorder->in_processes->of->separate(recorder->in_processes, pid, &why);
    if (parted == -ENOMEM)
        return parted;
    if (parted > 0)
        r = loader_give_inline(recorder->loader, pid, &updates, &why);
    *ret_loss = parted == -ESRCH ? NULL : after_parting(recorder, pid, held, parted);
    return r == -ENOMEM ? r : 0;
}

int recorder_handle_rights(struct recorder *recorder, const struct wire_rights *record)
{
    pid_t pid = (pid_t)record->tgid;
    const char *loss = NULL;
    int r = separate(recorder, pid, record->header.flags & WIRE_HELD, &loss);

    recorder_let_go(recorder, &record->header, pid);
    return !r && loss ? streams_process_loss(recorder->streams, pid, loss) : r;
}

static int check(struct recorder *recorder, struct error *err)
{
    AUTO_FREE struct changed_process *list = NULL;
    size_t count = 0;
    int r = recorder->in_processes->of->changed(recorder->in_processes, &list, &count);

    for (size_t i = 0; !r && i < count; i++) {
        const char *loss = NULL;

        r = separate(recorder, list[i].pid, false, &loss);
        if (!r && loss && !list[i].again)
            r = streams_process_loss(recorder->streams, list[i].pid, loss);
    }
    if (r == -ENOMEM)
        return error_no_memory(err);
    if (r)
        *err = *streams_error(recorder->streams);
    return r;
}

int recorder_check_rights(struct recorder *recorder, uint64_t now, struct error *err)
{
    uint64_t taken;
    int r;

    if (!recorder->in_processes || recorder->closing || now < recorder->rights_due_ns)
        return 0;
    r = recorder->rights_due_ns ? check(recorder, err) : 0;
    taken = (clock_ns(CLOCK_MONOTONIC) - now) * LOOK_SHARE;
    recorder->rights_due_ns = now + (taken > LOOK_NS ? taken : LOOK_NS);
    return r;
}
