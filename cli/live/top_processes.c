/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tracectl top -p: the functions' calls are counted in the kernel, under a budget, and nothing is recorded.
 *
 * It is a recording like others, into a store of its own that is thrown away: threads and programs come and
 * go there, but no calls.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "cli/common/signals.h"
#include "cli/live/top_live.h"
#include "collector/recording/recorder.h"
#include "store/api/tracestore.h"

DEFINE_CLEANUP(cleanup_recorder, struct recorder *, recorder_free)

struct counting {
    const struct top_options *options;
    struct recorder *recorder;
    struct budget_function_status *functions; /* of the last sample */
    uint64_t estimated_ns, cpu_ns;            /* then */
};

static int wait_counting(void *context, uint64_t ns, bool *ret_ended, struct error *err)
{
    const struct counting *counting = context;
    uint64_t begun = clock_ns(CLOCK_MONOTONIC);
    int r = recorder_run(counting->recorder, ns, err);

    *ret_ended = clock_ns(CLOCK_MONOTONIC) - begun < ns; /* all processes have ended, or a signal has come */
    return r;
}

static void write_title(const struct counting *counting, struct top_view *view)
{
    const struct pid_list *pids = &counting->options->pids;
    size_t used = 0;

    for (size_t i = 0; i < pids->count && used < sizeof(view->title); i++)
        used += (size_t)snprintf(view->title + used, sizeof(view->title) - used, "%s%d", i ? "," : "pid ",
                                 (int)pids->items[i]);
}

static int look(void *context, struct top_view *view, struct error *err)
{
    struct counting *counting = context;
    uint64_t probes, own;

    free(counting->functions);
    counting->functions = NULL;
    *view = (struct top_view){.where = "IMAGE"};
    write_title(counting, view);
    view->has_totals = recorder_budget_totals(counting->recorder, &view->totals);
    probes = view->totals.estimated_ns - counting->estimated_ns;
    own = view->totals.cpu_ns - counting->cpu_ns;
    view->used = own > probes ? (double)probes / (double)(own - probes) : 0;
    counting->estimated_ns = view->totals.estimated_ns;
    counting->cpu_ns = view->totals.cpu_ns;
    if (recorder_budget_functions(counting->recorder, &view->functions, &view->count, err))
        return -ENOMEM;
    counting->functions = view->functions;
    return 0;
}

/* Why there is nothing to count, if no image could be probed. */
static int nothing_counted(const struct recorder *recorder, struct error *err)
{
    const struct traced_image *refused = NULL;

    for (const struct traced_image *image = recorder_images(recorder); image; image = image->next) {
        if (image_is_traced(image))
            return 0;
        if (image->chosen)
            refused = image;
    }
    return error_say(err, -ENOTSUP, "%s", refused ? refused->refusal : "no program is running");
}

static int count(struct tracestore *store, const struct top_options *options, struct error *err)
{
    const struct recorder_options recording = {
        .run.name = "top",
        .run.command = "top",
        .content.times = STREAM_TIMES_NONE,
        .content.returns = PLAN_RETURNS_NONE,
        .probes.backend = RECORDER_UPROBE,
        .limits.budget = options->budget,
        .limits.count_only = true,
        .targets.follow_children = true,
        .targets.no_hold = true,
        .content.skip_environment = true,
        .targets.output = -1,
        .selected.want = function_choice_wants,
        .selected.asked_name = function_choice_name,
        .selected.want_image =
            function_choice_has_images(&options->choice) ? function_choice_wants_image : NULL,
        .selected.context = (void *)&options->choice,
    };
    CLEANUP(cleanup_recorder) struct recorder *recorder = NULL;
    struct counting counting = {.options = options};
    const struct top_source source = {wait_counting, look, &counting};
    int r = recorder_open(store, &recording, &recorder, err);

    if (r)
        return r;
    counting.recorder = recorder;
    signals_stop(recorder, false);
    r = recorder_attach_all(recorder, options->pids.items, options->pids.count, err);
    if (!r)
        r = nothing_counted(recorder, err);
    if (!r)
        r = top_watch(options, &source, err);
    signals_ignore();
    recorder_detach(recorder);
    free(counting.functions);
    return r;
}

static void remove_store(const char *folder, const char *path)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal", ".reserve"};
    char file[128];

    for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
        snprintf(file, sizeof(file), "%s%s", path, suffixes[i]);
        unlink(file);
    }
    rmdir(folder);
}

int top_processes(const struct top_options *options, struct error *err)
{
    const char *temporary = getenv("TMPDIR");
    char folder[64], path[80];
    struct tracestore *store = NULL;
    int r;

    if (!temporary || strlen(temporary) > sizeof(folder) - sizeof("/tracectl-top.XXXXXX"))
        temporary = "/tmp";
    snprintf(folder, sizeof(folder), "%s/tracectl-top.XXXXXX", temporary);
    signals_stop(NULL, false); /* from here on there is something to remove */
    if (!mkdtemp(folder))
        return error_set(err, -errno, NULL, "cannot create a directory in %s", temporary);
    snprintf(path, sizeof(path), "%s/top.db", folder);
    r = tracestore_open(path, TRACESTORE_CREATE, &store, err);
    if (!r && !signals_came())
        r = count(store, options, err);
    tracestore_free(store);
    remove_store(folder, path);
    return r;
}
