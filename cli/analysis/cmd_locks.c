/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl locks: deadlocks that could happen, by the orders in which threads took locks. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyzer/locks/thread_locks.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/analysis/lock_report.h"
#include "cli/common/command.h"
#include "cli/common/output.h"

/* ------------------------------------------------------------------------------------------ telling */

static void site_release(struct sync_site *site)
{
    sync_site_release(site);
}

static int put_lock(struct tracestore *store, const char *words, uint64_t object, bool shared,
                    uint32_t site_id, struct error *err)
{
    CLEANUP(site_release) struct sync_site site = {0};
    int r = sync_site(store, site_id, &site, err);

    if (r)
        return r;
    text_print(stdout, "%s 0x%" PRIx64 "%s", words, object, shared ? " to read" : "");
    if (site.line)
        text_print(stdout, " at %s:%d", site.file, site.line);
    if (*site.function)
        text_print(stdout, " (%s)", site.function);
    return 0;
}

static int put_text(struct tracestore *store, const struct lock_cycle *cycle, const char *label,
                    struct error *err)
{
    int r = 0;

    lock_report_heading(cycle->happened);
    for (size_t i = 0; !r && i < cycle->count; i++) {
        const struct lock_dependency *step = &cycle->steps[i];

        text_print(stdout, "  %s.%" PRIu64, label, step->agent);
        r = put_lock(store, " takes lock", step->wanted, step->wanted_shared, step->wanted_site, err);
        if (!r)
            r = put_lock(store, "\n    while it holds", step->held, step->held_shared, step->held_site, err);
        putchar('\n');
    }
    return r;
}

/* NULL: see `err`. */
static json_t *lock_json(struct tracestore *store, uint64_t object, bool shared, uint32_t site_id,
                         struct error *err)
{
    CLEANUP(site_release) struct sync_site site = {0};

    if (sync_site(store, site_id, &site, err))
        return NULL;
    return lock_report_json(object, shared, site.function, site.file, site.line);
}

static int put_json(struct tracestore *store, struct lock_report *report, const struct lock_cycle *cycle,
                    const char *label, struct error *err)
{
    json_t *steps = json_array();

    for (size_t i = 0; i < cycle->count; i++) {
        const struct lock_dependency *step = &cycle->steps[i];
        char thread[64];

        snprintf(thread, sizeof(thread), "%s.%" PRIu64, label, step->agent);
        json_array_append_new(
            steps, json_pack("{s:s, s:o, s:o}", "thread", thread, "holds",
                             lock_json(store, step->held, step->held_shared, step->held_site, err), "takes",
                             lock_json(store, step->wanted, step->wanted_shared, step->wanted_site, err)));
    }
    return json_array_append_new(report->cycles,
                                 json_pack("{s:b, s:o}", "happened", cycle->happened, "steps", steps))
               ? error_no_memory(err)
               : 0;
}

/* ------------------------------------------------------------------------------------------ the run */

static int read_process(struct tracestore *store, struct lock_report *report,
                        const struct sync_process *process, struct error *err)
{
    AUTO_FREE struct lock_cycle *cycles = NULL;
    bool complete = true;
    size_t count = 0;
    int r = thread_locks_cycles(store, process->process_id, &cycles, &count, &complete, err);

    for (size_t i = 0; !r && i < count; i++)
        r = report->cycles ? put_json(store, report, &cycles[i], process->label, err)
                           : put_text(store, &cycles[i], process->label, err);
    report->count += count;
    report->complete &= complete && process->library;
    return r;
}

static int read_run(const char *argument, struct lock_report *report, struct error *err)
{
    AUTO_STORE struct tracestore *store = NULL;
    AUTO_RUN struct tracestore_run run = {0};
    struct sync_process *processes = NULL;
    size_t count = 0;
    int r = cli_open_run(argument, TRACESTORE_READ, &store, &run, err);

    if (r < 0)
        return r;
    r = sync_processes(store, run.run_id, &processes, &count, err);
    if (r < 0)
        return r;
    if (!count)
        r = error_say(err, -ENODATA, "reading the locks of run %s: none are recorded (record with --sync)",
                      run.name);
    for (size_t i = 0; !r && i < count; i++)
        r = read_process(store, report, &processes[i], err);
    sync_processes_free(processes, count);
    return r;
}

static const struct argp argp = {
    .parser = lock_report_parse,
    .args_doc = "RUN",
    .doc =
        "Report potential deadlocks: threads that took the same locks in inconsistent order, even if "
        "they did not collide in this run. The run must be recorded with --sync.\vNot reported: lock "
        "orders within one thread, between threads that could not run at the same time (one was created "
        "or continued only after the other had ended), under a common lock that both hold (a gate), and "
        "readers waiting for readers. For goroutines see 'tracectl go locks'.",
    .children = cli_common_children,
};

static int run(int argc, char **argv)
{
    return lock_report_run(
        &cmd_locks, argc, argv, read_run,
        "not all locks were recorded: events were lost, the limit of analysed lock orders was reached, "
        "or a process has an unknown C library");
}

const struct command cmd_locks = {
    .name = "locks",
    .summary = "report potential deadlocks (inconsistent lock order)",
    .argp = &argp,
    .examples =
        "Record a program with its locks, and report potential deadlocks:\n"
        "  tracectl record --sync -- ./server\n"
        "  tracectl locks latest\n",
    .run = run,
};
