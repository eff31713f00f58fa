/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl record: one recording of a command or of running processes. */
#include <errno.h>
#include <jansson.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/progress.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/output.h"
#include "cli/common/progress_line.h"
#include "cli/common/signals.h"
#include "cli/record/record_arguments.h"
#include "cli/record/record_flight.h"
#include "cli/record/record_job.h"
#include "cli/record/record_preview.h"
#include "cli/record/record_selection.h"
#include "cli/record/record_stacks.h"
#include "cli/record/selection_arguments.h"
#include "collector/arch/processor.h"
#include "collector/process/limits.h"
#include "collector/recording/recorder.h"

/* ------------------------------------------------------------------------------------ the recording */

/* Excluded functions must be known also when the recording does not come to its end. */
static int add_trigger_tag(struct recorder *recorder, const struct record_arguments *arguments,
                           struct error *err)
{
    AUTO_FREE char *value = NULL;

    if (!arguments->trigger_text)
        return 0;
    if (asprintf(&value, "%s, %g %% of the times", arguments->trigger_text,
                 100 * arguments->recorder.trigger.share) < 0) {
        value = NULL;
        return error_no_memory(err);
    }
    return recorder_tag(recorder, "trigger", value, err);
}

static int add_tags(struct recorder *recorder, const struct record_arguments *arguments, struct error *err)
{
    int r = add_trigger_tag(recorder, arguments, err);

    if (!r)
        r = record_job_tag(recorder, arguments, err);
    for (size_t i = 0; !r && i < arguments->tag_count; i++) {
        char *value = strchr(arguments->tags[i], '=');

        if (record_job_is_named_by(arguments->tags[i]))
            continue;

        *value = '\0';
        r = recorder_tag(recorder, arguments->tags[i], value + 1, err);
        *value = '=';
    }
    return r;
}

static int check_trigger(const struct recorder *recorder, const struct record_arguments *arguments,
                         struct error *err)
{
    if (!arguments->trigger_text || recorder_has_trigger(recorder))
        return 0;
    return error_say(err, -ENOENT, "no function that can be probed matches --trigger '%s'",
                     arguments->trigger_text);
}

/* That it is by ptrace, and why. */
static void print_ptrace(const struct recorder *recorder)
{
    const char *why = recorder_why_ptrace(recorder);

    if (!why || cli.verbosity < 0)
        return;
    progress_line_clear();
    text_print(stderr, "tracectl: note: recording by ptrace, with inline probes only%s%s\n", *why ? ": " : "",
               why);
}

static int start_targets(struct recorder *recorder, const struct record_arguments *arguments,
                         struct error *err)
{
    int r = add_tags(recorder, arguments, err);

    if (!r && recorder_why_ptrace(recorder))
        r = recorder_tag(recorder, "life cycle", "ptrace", err);
    if (!r && arguments->command)
        r = recorder_launch(recorder, 0, arguments->command, err);
    if (!r)
        r = recorder_attach_all(recorder, arguments->pids.items, arguments->pids.count, err);
    /* A command's image is not known before it runs. */
    if (!r && !arguments->command)
        r = record_selection_check(recorder, arguments, err);
    if (!r && recorder_images(recorder))
        r = check_trigger(recorder, arguments, err);
    if (!r)
        print_ptrace(recorder);
    return r;
}

#define QUIET_AT_THE_END_NS 1000000000u /* of a command, whose output is shown last */

static int record(struct tracestore *store, struct recorder *recorder,
                  const struct record_arguments *arguments, struct error *err)
{
    struct record_stacks *stacks = NULL;
    int r;

    signals_stop(recorder, arguments->command != NULL); /* putting probes in takes seconds */
    if (arguments->command)
        progress_line_leave_terminal(); /* to the command */
    r = start_targets(recorder, arguments, err);
    if (r)
        return r;
    r = recorder_run(recorder, arguments->duration_ns, err);
    signals_ignore(); /* the rest is short and must not be cut off */
    if (arguments->command)
        progress_line_begin(QUIET_AT_THE_END_NS);
    if (!r && !arguments->recorder.storage.flight)
        stacks = record_stacks_take(arguments);
    if (!r && !record_selection_check(recorder, arguments, NULL))
        r = record_selection_report(recorder, arguments, err);
    if (!r)
        r = recorder_close(recorder, err);
    if (!r)
        r = record_stacks_keep(stacks, store, recorder_run_id(recorder), err);
    record_stacks_free(stacks);
    if (!r)
        r = record_selection_check(recorder, arguments, err);
    return r ? r : check_trigger(recorder, arguments, err);
}

/* A recording that failed: what it has is kept as an unfinished run, and the command is waited for, so that
 * it does not continue behind a prompt. One that has nothing leaves nothing. Returns the exit status. */
static int give_up(struct recorder *recorder, int why, const struct error *err)
{
    struct error early = *err;
    int status;

    recorder_detach(recorder);
    if (!recorder_counts(recorder).stored_threads) {
        recorder_abandon(recorder, NULL);
        return cli_fail(err);
    }
    if (why == -ENOSPC) {
        recorder_close_full(recorder, NULL);
        error_say(&early, why, "the recording has ended early: %s", err->message);
    }
    status = cli_fail(&early); /* now, not when the command ends */
    recorder_wait(recorder);
    return status;
}

/* ------------------------------------------------------------------------------------ the report */

/* How many functions of the traced images have which probes: {"inline": 40, "uprobe": 2, "none": 1}. */
static json_t *functions_json(const struct recorder *recorder)
{
    size_t inlined = 0, uprobes = 0, none = 0;

    for (const struct traced_image *image = recorder_images(recorder); image; image = image->next) {
        const struct inline_image *chosen = image->inlined;
        const struct plan *plan = image->plan;
        size_t refused = 0; /* by the plan, but with inline probes */

        if (!plan)
            continue;
        for (size_t i = 0; chosen && i < plan->refusal_count; i++)
            refused += chosen->chosen[plan->refusals[i].function];
        inlined += chosen ? chosen->chosen_count : 0;
        uprobes += plan->functions - (chosen ? chosen->chosen_count - refused : 0);
        none += plan->refusal_count - refused;
    }
    return json_pack("{s:I, s:I, s:I}", "inline", (json_int_t)inlined, "uprobe", (json_int_t)uprobes, "none",
                     (json_int_t)none);
}

/* `flight`: the flight recorder's object, taken over; NULL: there is none. A run without a number is
 * none. */
static int print_json(const struct recorder *recorder, const struct tracestore_run *run,
                      const struct tracestore_totals *totals, json_t *flight, double seconds)
{
    struct stream_counts counts = recorder_counts(recorder);
    struct trace_writer_memory memory = recorder_memory(recorder);
    int status = recorder_exit_status(recorder);
    json_t *document = json_pack(
        "{s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:I, s:b, s:I, s:I, "
        "s:I, "
        "s:I, s:I}",
        "run", run->run_id ? json_integer(run->run_id) : json_null(), "name",
        run->run_id ? cli_json_text(run->name) : json_null(), "exit_status",
        status < 0 ? json_null() : json_integer(status), "events", (json_int_t)totals->events, "calls",
        (json_int_t)totals->calls, "returns", (json_int_t)totals->returns, "threads",
        (json_int_t)totals->threads, "lost", (json_int_t)totals->lost, "muted_functions",
        (json_int_t)totals->muted_functions, "stored_bytes", (json_int_t)totals->stored_bytes,
        "catalog_bytes", (json_int_t)totals->catalog_bytes, "index_bytes", (json_int_t)totals->index_bytes,
        "raw_bytes", (json_int_t)totals->raw_bytes, "wall_seconds", seconds, "waited_seconds",
        (double)totals->waited_ns / 1e9, "unmatched_returns", (json_int_t)counts.unmatched_returns,
        "complete", totals->complete, "dropped_runs", (json_int_t)recorder_dropped_runs(recorder),
        "memory_peak_bytes", (json_int_t)memory.peak_bytes, "segments_closed_early",
        (json_int_t)memory.closed_early, "sync_events", (json_int_t)totals->sync_events, "ring_bytes",
        (json_int_t)recorder_ring_bytes(recorder));

    if (!document)
        return -ENOMEM;
    json_object_set_new(document, "functions", functions_json(recorder));
    if (flight)
        json_object_set_new(document, "flight", flight);
    if (json_dumpf(document, stdout, JSON_INDENT(2)) || putchar('\n') == EOF || fflush(stdout)) {
        json_decref(document);
        return -EIO;
    }
    json_decref(document);
    return 0;
}

#define MOST_SURVIVORS 8

/* The command, or what it has left running. */
static void print_survivors(const struct recorder *recorder)
{
    bool ended = recorder_exit_status(recorder) >= 0;
    pid_t pids[MOST_SURVIVORS];
    size_t running, count = recorder_survivors(recorder, pids, MOST_SURVIVORS, &running);

    if (!running && count && ended)
        text_print(stderr,
                   "tracectl: %zu processes outlived the command; their ends are not recorded (--until "
                   "all records them)\n",
                   count);
    if (!running)
        return;
    if (ended)
        text_print(stderr, "tracectl: %zu of its processes %s still running and no longer recorded", running,
                   running == 1 ? "is" : "are");
    else
        text_print(stderr, "tracectl: the command is still running and no longer recorded");
    for (size_t i = 0; i < running && i < MOST_SURVIVORS; i++)
        text_print(stderr, "%s%d", i ? "," : " (tracectl record -p ", (int)pids[i]);
    text_print(stderr, "%s%s)\n", running > MOST_SURVIVORS ? ",..." : "",
               ended ? "; --until all records them to their ends" : "");
}

static void print_text(const struct recorder *recorder, const struct tracestore_run *run,
                       const struct tracestore_totals *totals, double seconds)
{
    int status = recorder_exit_status(recorder);
    size_t left_out;
    const struct recorder_excluded *others = recorder_excluded(recorder, &left_out);

    for (size_t i = 0; i < left_out; i++)
        text_print(stderr, "tracectl: note: process %d is not recorded: %s\n", (int)others[i].pid,
                   others[i].why);
    for (const struct traced_image *image = recorder_images(recorder); image; image = image->next) {
        const char *given_up = image->elf ? elf_image_given_up(image->elf) : NULL;

        if (image->refusal && image->chosen && cli.verbosity > 0)
            text_print(stderr, "tracectl: note: %s\n", image->refusal);
        if (given_up)
            text_print(stderr, "tracectl: note: %s\n", given_up);
    }
    if (status >= 0)
        text_print(stderr, "tracectl: the command ended with status %d\n", status);
    print_survivors(recorder);
    text_print(stderr,
               "tracectl: run %lld '%s': %'llu call%s on %'llu thread%s in %.1f s; %'llu bytes stored",
               (long long)run->run_id, run->name, (unsigned long long)totals->calls,
               text_plural(totals->calls), (unsigned long long)totals->threads, text_plural(totals->threads),
               seconds, (unsigned long long)totals->stored_bytes);
    if (totals->events)
        text_print(stderr, " (%.3g bytes/event)", (double)totals->stored_bytes / (double)totals->events);
    fputc('\n', stderr);
    if (totals->sync_events)
        text_print(stderr, "tracectl: %'llu synchronisation event%s\n",
                   (unsigned long long)totals->sync_events, text_plural(totals->sync_events));
    if (recorder_dropped_runs(recorder))
        text_print(stderr, "tracectl: older runs deleted during the recording: %'llu\n",
                   (unsigned long long)recorder_dropped_runs(recorder));
    if (totals->lost)
        text_print(
            stderr, "tracectl: %'llu event%s lost (see tracectl show %lld; a larger --ring-size helps)\n",
            (unsigned long long)totals->lost, totals->lost == 1 ? " was" : "s were", (long long)run->run_id);
}

static int report(struct tracestore *store, const struct recorder *recorder, double seconds,
                  struct error *err)
{
    struct tracestore_totals totals;
    struct tracestore_run run = {0};
    char number[24];
    int r;

    snprintf(number, sizeof(number), "%lld", (long long)recorder_run_id(recorder));
    r = tracestore_find_run(store, number, &run, err);
    if (!r)
        r = tracestore_run_totals(store, run.run_id, &totals, err);
    if (!r)
        r = record_job_join(store, &run, err);
    if (!r && cli.json) {
        r = print_json(recorder, &run, &totals, NULL, seconds);
        if (r)
            error_set(err, r, NULL, "cannot write standard output");
    } else if (!r && cli.verbosity >= 0) {
        print_text(recorder, &run, &totals, seconds);
    }
    tracestore_run_release(&run);
    return r;
}

/* For --exit-status: the command's, or that of the signal that ended its recording early. */
static int command_status(const struct recorder *recorder)
{
    if (recorder_exit_status(recorder) >= 0)
        return recorder_exit_status(recorder);
    return signals_stopped_by() ? 128 + signals_stopped_by() : EXIT_NOTHING_FOUND;
}

/* That this machine has no inline probes unless they are asked for; --dry-run and show say it per program. */
static void note_emulation(const struct record_arguments *arguments)
{
    const struct recorder_probes *probes = &arguments->recorder.probes;

    if (!cli.json && cli.verbosity >= 0 && probes->backend == RECORDER_INLINE && !probes->insists_on_inline &&
        processor_is_emulated())
        text_print(stderr, "tracectl: note: uprobes only: %s\n",
                   recorder_inline_refusal(&arguments->recorder));
}

static void begin_progress(void)
{
    progress_line_begin(0);
    progress("loading the recorder into the kernel", PROGRESS_UNKNOWN);
}

static int record_into(struct tracestore *store, struct record_arguments *arguments, struct error *err)
{
    uint64_t begun = clock_ns(CLOCK_MONOTONIC);
    struct recorder *recorder;
    int r;

    begin_progress();
    r = recorder_open(store, &arguments->recorder, &recorder, err);
    if (r)
        return r;
    r = record(store, recorder, arguments, err);
    progress_line_end();
    if (!r)
        note_emulation(arguments);
    if (r)
        r = give_up(recorder, r, err);
    else
        r = report(store, recorder, (double)(clock_ns(CLOCK_MONOTONIC) - begun) / 1e9, err);
    if (!r && arguments->exit_status)
        r = command_status(recorder);
    recorder_free(recorder);
    return r;
}

/* ------------------------------------------------------------------------------------ a flight recorder */

/* Of the last run that was made. */
static int report_flight(const struct recorder *recorder, const struct record_arguments *arguments,
                         const struct flight_log *log, double seconds, struct error *err)
{
    const struct flight_counts counts = flight_counts(arguments->recorder.storage.flight);
    const struct trace_writer_window window = recorder_window(recorder);
    struct tracestore *store = NULL;
    struct tracestore_totals totals = {0};
    struct tracestore_run run = {0};
    char number[24];
    int r = 0;

    if (!cli.json) {
        if (cli.verbosity >= 0 && recorder_exit_status(recorder) >= 0)
            text_print(stderr, "tracectl: the command ended with status %d\n",
                       recorder_exit_status(recorder));
        if (cli.verbosity >= 0)
            flight_log_print_end(log, &window);
        return 0;
    }
    snprintf(number, sizeof(number), "%lld", (long long)counts.last_run);
    if (counts.last_run)
        r = tracestore_open(cli.store_path, TRACESTORE_READ, &store, err);
    if (!r && counts.last_run)
        r = tracestore_find_run(store, number, &run, err);
    if (!r && counts.last_run)
        r = tracestore_run_totals(store, run.run_id, &totals, err);
    if (!r && print_json(recorder, &run, &totals, flight_log_json(log, &arguments->flight, &counts, &window),
                         seconds))
        r = error_set(err, -EIO, NULL, "cannot write standard output");
    tracestore_run_release(&run);
    tracestore_free(store);
    return r;
}

static int fly(struct record_arguments *arguments, struct flight_log *log, struct error *err)
{
    struct flight *flight = arguments->recorder.storage.flight;
    uint64_t begun = clock_ns(CLOCK_MONOTONIC);
    struct recorder *recorder;
    int r, finished;

    signals_commit();
    begin_progress();
    r = recorder_open(flight_store(flight), &arguments->recorder, &recorder, err);
    if (r)
        return r;
    r = record(flight_store(flight), recorder, arguments, err);
    progress_line_end();
    if (r)
        recorder_detach(recorder); /* what it has stays in the window */
    finished = flight_finish(flight, r && recorder_counts(recorder).stored_threads, r ? NULL : err);
    if (r) {
        r = cli_fail(err);
        recorder_wait(recorder);
    } else {
        r = finished ? finished
                     : report_flight(recorder, arguments, log,
                                     (double)(clock_ns(CLOCK_MONOTONIC) - begun) / 1e9, err);
    }
    if (!r && arguments->exit_status)
        r = command_status(recorder);
    recorder_free(recorder);
    return r;
}

static int record_flying(struct record_arguments *arguments, struct error *err)
{
    struct flight_log log = {0};
    int r;

    arguments->flight.store_path = cli.store_path;
    arguments->flight.name = arguments->recorder.run.name;
    arguments->flight.keep = arguments->recorder.storage.room.keep;
    arguments->flight.told = flight_log_add;
    arguments->flight.context = &log;
    arguments->recorder.storage.room.keep = (struct trace_retention){0}; /* of the store, not of the window */
    if (!arguments->recorder.run.name)
        arguments->recorder.run.name = "";
    r = flight_new(&arguments->flight, &arguments->recorder.storage.flight, err);
    if (!r)
        r = fly(arguments, &log, err);
    flight_free(arguments->recorder.storage.flight);
    flight_log_release(&log);
    return r;
}

/* What the command will have from this process. */
static int check_limits(const struct record_arguments *arguments, struct error *err)
{
    return arguments->command && arguments->recorder.probes.insists_on_inline &&
                   process_has_address_limit(getpid())
               ? error_say(err, -ENOTSUP,
                           "cannot use inline probes: the command's address space is limited (ulimit -v "
                           "unlimited, or --backend auto)")
               : 0;
}

/* The command as the store has it. */
static char *shown_command(const struct record_arguments *arguments)
{
    char *name[] = {arguments->command ? arguments->command[0] : NULL, NULL};

    return join_words(arguments->recorder.content.keep_arguments ? arguments->command : name, " ");
}

/* The words of the command line; of a command, its first. */
static char *shown_options(const struct record_arguments *arguments, char **words)
{
    AUTO_FREE char **kept = NULL;
    size_t count = 0;

    if (arguments->recorder.content.keep_arguments || !arguments->command)
        return join_words(words, " ");
    while (words[count] && words[count] != arguments->command[0])
        count++;
    kept = calloc(count + 2, sizeof(*kept));
    if (!kept)
        return NULL;
    memcpy(kept, words, (count + !!words[count]) * sizeof(*kept));
    return join_words(kept, " ");
}

static int run_record(int argc, char **argv)
{
    struct record_arguments arguments;
    AUTO_FREE char *command = NULL, *options = NULL;
    struct tracestore *store = NULL;
    struct error err = {0};
    int r;

    record_arguments_init(&arguments);
    cli_parse(&cmd_record, argc, argv, &arguments);
    command = shown_command(&arguments);
    options = shown_options(&arguments, argv + 1);
    arguments.recorder.run.command = command;
    arguments.recorder.run.options = options;
    arguments.recorder.selected.want = record_arguments_wants;
    arguments.recorder.selected.asked_name = record_arguments_name;
    arguments.recorder.selected.want_image =
        function_choice_has_images(&arguments.choice) ? record_arguments_wants_image : NULL;
    arguments.recorder.selected.context = &arguments;
    if (arguments.dry_run) {
        r = record_preview(&arguments, &err);
        record_arguments_release(&arguments);
        return r < 0 ? cli_fail(&err) : r;
    }
    if (cli.json)
        arguments.recorder.targets.output = STDERR_FILENO;
    r = command && options ? check_limits(&arguments, &err) : error_no_memory(&err);
    if (!r && arguments.flight.window_ns) {
        r = record_flying(&arguments, &err);
    } else if (!r) {
        r = tracestore_open(cli.store_path, TRACESTORE_CREATE, &store, &err);
        if (!r)
            r = record_into(store, &arguments, &err);
    }
    tracestore_free(store);
    record_arguments_release(&arguments);
    return r < 0 ? cli_fail(&err) : r;
}

const struct command cmd_record = {
    .name = "record",
    .summary = "record a command or running processes",
    .argp = &record_argp,
    .examples =
        "Record a command, then list its most-called functions:\n"
        "  tracectl record -- ./app --port 8080\n"
        "  tracectl top latest\n"
        "Record a running service for 30 seconds:\n"
        "  tracectl record -p nginx --duration 30s\n"
        "Record only the MPI calls of a job with 8 ranks:\n"
        "  tracectl record --filter mpi -- mpiexec -n 8 ./solver\n"
        "Keep the last minute, and store it when the program crashes:\n"
        "  tracectl record --flight 1m -- ./server\n",
    .argp_flags = ARGP_IN_ORDER, /* the options behind the command are the command's */
    .run = run_record,
};
