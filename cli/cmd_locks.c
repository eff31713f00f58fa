/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl locks: deadlocks that could happen, by the orders in which threads took locks. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyzer/sync/thread_locks.h"
#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/output.h"

static error_t parse(int key, char *arg, struct argp_state *state)
{
    const char **run = state->input;

    switch (key) {
    case ARGP_KEY_ARG:
        if (*run)
            argp_error(state, "one run at a time, not '%s', too", arg);
        *run = arg;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "no run");
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ------------------------------------------------------------------------------------------ telling */

struct report {
    struct tracestore *store;
    json_t *cycles; /* NULL: as text */
    size_t count;
    bool complete;
};

static void site_release(struct sync_site *site)
{
    sync_site_release(site);
}

static int put_lock(struct report *report, const char *words, uint64_t object, bool shared, uint32_t site_id,
                    struct error *err)
{
    CLEANUP(site_release) struct sync_site site = {0};
    int r = sync_site(report->store, site_id, &site, err);

    if (r)
        return r;
    printf("%s 0x%" PRIx64 "%s", words, object, shared ? " to read" : "");
    if (site.line)
        printf(" at %s:%d", site.file, site.line);
    if (*site.function)
        printf(" (%s)", site.function);
    return 0;
}

static int put_text(struct report *report, const struct lock_cycle *cycle, const char *label,
                    struct error *err)
{
    int r = 0;

    puts(cycle->happened ? "deadlocked in this run:" : "could deadlock, did not in this run:");
    for (size_t i = 0; !r && i < cycle->count; i++) {
        const struct lock_dependency *step = &cycle->steps[i];

        printf("  %s.%" PRIu64, label, step->agent);
        r = put_lock(report, " takes lock", step->wanted, step->wanted_shared, step->wanted_site, err);
        if (!r)
            r = put_lock(report, "\n    while it holds", step->held, step->held_shared, step->held_site, err);
        putchar('\n');
    }
    return r;
}

/* NULL: see `err`. */
static json_t *lock_json(struct report *report, uint64_t object, bool shared, uint32_t site_id,
                         struct error *err)
{
    CLEANUP(site_release) struct sync_site site = {0};
    char address[32];

    if (sync_site(report->store, site_id, &site, err))
        return NULL;
    snprintf(address, sizeof(address), "0x%" PRIx64, object);
    return json_pack("{s:s, s:b, s:o, s:o, s:i}", "object", address, "shared", shared, "function",
                     cli_json_text(site.function), "file", cli_json_text(site.file), "line", site.line);
}

static int put_json(struct report *report, const struct lock_cycle *cycle, const char *label,
                    struct error *err)
{
    json_t *steps = json_array();

    for (size_t i = 0; i < cycle->count; i++) {
        const struct lock_dependency *step = &cycle->steps[i];
        char thread[64];

        snprintf(thread, sizeof(thread), "%s.%" PRIu64, label, step->agent);
        json_array_append_new(
            steps, json_pack("{s:s, s:o, s:o}", "thread", thread, "holds",
                             lock_json(report, step->held, step->held_shared, step->held_site, err), "takes",
                             lock_json(report, step->wanted, step->wanted_shared, step->wanted_site, err)));
    }
    return json_array_append_new(report->cycles,
                                 json_pack("{s:b, s:o}", "happened", cycle->happened, "steps", steps))
               ? error_no_memory(err)
               : 0;
}

/* ------------------------------------------------------------------------------------------ the run */

static int read_process(struct report *report, const struct sync_process *process, struct error *err)
{
    AUTO_FREE struct lock_cycle *cycles = NULL;
    bool complete = true;
    size_t count = 0;
    int r = thread_locks_cycles(report->store, process->process_id, &cycles, &count, &complete, err);

    for (size_t i = 0; !r && i < count; i++)
        r = report->cycles ? put_json(report, &cycles[i], process->label, err)
                           : put_text(report, &cycles[i], process->label, err);
    report->count += count;
    report->complete &= complete && process->library;
    return r;
}

static int read_run(const char *argument, struct report *report, struct error *err)
{
    AUTO_STORE struct tracestore *store = NULL;
    AUTO_RUN struct tracestore_run run = {0};
    struct sync_process *processes = NULL;
    size_t count = 0;
    int r = cli_open_run(argument, TRACESTORE_READ, &store, &run, err);

    if (r < 0)
        return r;
    report->store = store;
    r = sync_processes(store, run.run_id, &processes, &count, err);
    if (r < 0)
        return r;
    if (!count)
        r = error_say(err, -ENODATA, "reading the locks of run %s: none are recorded (record with --sync)",
                      run.name);
    for (size_t i = 0; !r && i < count; i++)
        r = read_process(report, &processes[i], err);
    sync_processes_free(processes, count);
    return r;
}

static const struct argp argp = {
    .parser = parse,
    .args_doc = "RUN",
    .doc =
        "List deadlocks that could have happened: threads that took the same locks in orders that do not fit "
        "together, though they did not meet in this run, which was recorded with --sync.\v"
        "Left out are orders of one thread, of threads that could not meet (one was made, or went on, after "
        "the other one had ended), those behind another lock that both hold (a gate), and readers that wait "
        "for readers. For goroutines see 'tracectl go locks'.",
    .children = cli_common_children,
};

static int run(int argc, char **argv)
{
    struct report report = {.complete = true};
    const char *argument = NULL;
    struct error err = {0};
    AUTO_JSON json_t *document = NULL;
    int r;

    cli_parse(&cmd_locks, argc, argv, &argument);
    if (cli.json) {
        report.cycles = json_array();
        document = json_pack("{s:o}", "potential", report.cycles);
    }
    r = read_run(argument, &report, &err);
    if (r < 0)
        return cli_fail(&err);
    if (document) {
        json_object_set_new(document, "complete", json_boolean(report.complete));
        cli_json_print(document);
    } else {
        if (!report.count)
            puts("no potential deadlock");
        if (!report.complete)
            puts(
                "not all locks were seen: events were lost, there were more orders than are looked at, or a "
                "process has no C library whose locks are known");
    }
    return cli_finish(report.count ? EXIT_FOUND : EXIT_NOTHING_FOUND);
}

const struct command cmd_locks = {
    .name = "locks",
    .summary = "show deadlocks that the order of threads' locks allows",
    .argp = &argp,
    .run = run,
};
