/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Attaching to processes that run. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/debug.h"
#include "base/error.h"
#include "base/progress.h"
#include "collector/inline/stale_patches.h"
#include "collector/process/process.h"
#include "collector/recording/recorder_flight.h"
#include "collector/recording/recorder_state.h"

/* By ptrace: an ordinary user may trace own processes. */
static int check_rights(pid_t pid, struct error *err)
{
    AUTO_CLOSE int memory = process_memory_open(pid, O_RDONLY);

    return memory != -EACCES && memory != -EPERM
               ? 0
               : error_set(err, memory, "it is another user's or protected: run as root",
                           "cannot trace process %d", (int)pid);
}

static int check_pid(const struct recorder *recorder, pid_t pid, struct error *err)
{
    pid_t process = process_of_thread(pid);

    if (process < 0)
        return error_say(err, -ESRCH, "cannot trace process %d: no such process (check the pid)", (int)pid);
    if (process != pid)
        return error_say(err, -EINVAL,
                         "cannot trace process %d: it is a thread of process %d (use "
                         "that pid)",
                         (int)pid, (int)process);
    if (pid == getpid())
        return error_say(err, -EINVAL, "cannot trace process %d: it is tracectl itself", (int)pid);
    return recorder->tracer ? check_rights(pid, err) : 0;
}

static int add_process(struct recorder *recorder, pid_t pid, struct error *err)
{
    AUTO_FREE pid_t *tids = NULL;
    size_t count;
    int r;

    /* The kernel side first, so that threads and children made from here on announce themselves. */
    r = recorder->source->of->add_process(recorder->source, pid, 0, err);
    if (!r)
        r = process_threads(pid, &tids, &count, err);
    return r ? r : streams_add_process(recorder->streams, pid, tids, count, err);
}

/* A process and those below it. */
struct family {
    struct relative {
        pid_t pid;
        uint64_t cpu_ns; /* that it had used when it was listed; then since that */
    } * items;
    size_t count, capacity;
};

static void family_release(struct family *family)
{
    free(family->items);
}

/* Appends the children of a process that are not known yet. */
static int list_children(const struct recorder *recorder, pid_t parent, struct family *family,
                         struct error *err)
{
    AUTO_FREE pid_t *children = NULL;
    size_t count = 0;
    int r = process_children(parent, &children, &count, err);

    if (r)
        return r;
    if (array_reserve(&family->items, &family->capacity, family->count + count + 1))
        return error_no_memory(err);
    for (size_t i = 0; i < count; i++)
        if (children[i] != getpid() && !streams_knows_process(recorder->streams, children[i]))
            family->items[family->count++].pid = children[i];
    return 0;
}

/* Adds a process, the children that it has, and theirs, to what is known, and lists them. They are known
 * before the first of them gets a probe: what that may cost is a part of what all of them use. Children that
 * end meanwhile are passed over. */
static int add_family(struct recorder *recorder, pid_t pid, struct family *ret_family, struct error *err)
{
    struct error why = {0};
    size_t kept = 0;
    int r = 0;

    if (array_reserve(&ret_family->items, &ret_family->capacity, 1)) {
        error_no_memory(err);
        return -ENOMEM;
    }
    ret_family->items[ret_family->count++].pid = pid;
    for (size_t i = 0; !r && i < ret_family->count; i++) {
        pid_t next = ret_family->items[i].pid;

        r = add_process(recorder, next, &why);
        if (!r) {
            ret_family->items[kept++] = (struct relative){next, process_cpu_ns(next)};
            r = recorder->options.targets.follow_children ? list_children(recorder, next, ret_family, &why)
                                                          : 0;
        }
        if (i)
            r = recorder_pass_over(recorder, next, r, &why, err);
        else if (r && err)
            *err = why;
    }
    ret_family->count = kept;
    return r;
}

/* It is `part` of all that are attached. */
static int attach_process(struct recorder *recorder, pid_t pid, double part,
                          const struct traced_image **ret_image, struct error *err)
{
    int r = loader_program(recorder->loader, pid, false, ret_image, err);

    debug_log("process %d: attached (%d)", (int)pid, r);
    if (!r && recorder->budget && backend_has(recorder->in_processes, pid))
        r = budget_ramp_up_process(recorder->budget, pid, part, err);
    return r ? r : recorder_note_skipped(recorder, err);
}

static int busiest_first(const void *left, const void *right)
{
    const struct relative *a = left, *b = right;

    return (a->cpu_ns < b->cpu_ns) - (a->cpu_ns > b->cpu_ns);
}

/* Those that have run most since they were listed show best what inline probes would take: they come first.
 */
static void order_by_use(struct relative *relatives, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t now = process_cpu_ns(relatives[i].pid);

        relatives[i].cpu_ns = now > relatives[i].cpu_ns ? now - relatives[i].cpu_ns : 0;
    }
    qsort(relatives, count, sizeof(*relatives), busiest_first);
}

/* The process that was asked for, then those below it; of those, ones that end meanwhile are passed over. */
static int attach_family(struct recorder *recorder, pid_t pid, struct family *family, struct error *err)
{
    const struct traced_image *image;
    double part = 1.0 / (double)family->count;
    struct error why = {0};
    int r = attach_process(recorder, pid, part, &image, err);

    if (!r && image->refusal && !image_selects_nothing(image) && !recorder->options.selected.want_image &&
        !recorder->options.content.sync)
        r = error_say(err, -ENOTSUP, "%s", image->refusal);
    if (!r)
        order_by_use(family->items + 1, family->count - 1);
    for (size_t i = 1; !r && i < family->count; i++) {
        r = attach_process(recorder, family->items[i].pid, part, &image, &why);
        r = recorder_pass_over(recorder, family->items[i].pid, r, &why, err);
    }
    return r;
}

int recorder_attach(struct recorder *recorder, pid_t pid, struct error *err)
{
    CLEANUP(family_release) struct family family = {0};
    int r = check_pid(recorder, pid, err);

    if (!r && streams_knows_process(recorder->streams, pid))
        return 0; /* the child of another one that was named */
    if (!r)
        r = stale_patches_clean(pid, err);
    progress("reading the program's functions", PROGRESS_UNKNOWN);
    recorder->source->of->enter(recorder->source, PHASE_ATTACHING);
    if (!r && recorder->options.storage.flight && recorder_flight_name(recorder, pid))
        r = error_no_memory(err);
    if (!r)
        r = add_family(recorder, pid, &family, err);
    return r ? r : attach_family(recorder, pid, &family, err);
}

int recorder_attach_all(struct recorder *recorder, const pid_t *pids, size_t count, struct error *err)
{
    size_t attached = 0;
    int r = 0;

    for (size_t i = 0; i < count && !r; i++)
        r = check_pid(recorder, pids[i], err);
    for (size_t i = 0; i < count && !r; i++) {
        struct error why = {0};

        r = recorder_attach(recorder, pids[i], &why);
        attached += !r;
        if (r && (attached || i + 1 < count)) {
            r = recorder_pass_over(recorder, pids[i], r, &why, err);
        } else if (r && err) {
            *err = why;
        }
    }
    return r;
}
