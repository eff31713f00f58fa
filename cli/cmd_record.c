/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl record: one recording of a command or of running processes. */
#include <errno.h>
#include <jansson.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/command.h"
#include "cli/function_choice.h"
#include "collector/recorder.h"

struct record_arguments {
    struct recorder_options recorder;
    struct function_choice choice;
    pid_t *pids;
    size_t pid_count, pid_capacity;
    char **tags; /* "KEY=VALUE" */
    size_t tag_count, tag_capacity;
    char **command; /* NULL-terminated, NULL with -p */
    uint64_t duration_ns;
    bool exit_status; /* exit with the command's status */
};

enum {
    KEY_FUNCTIONS = 256,
    KEY_EXCLUDE,
    KEY_FILTER,
    KEY_IMAGES,
    KEY_TIME,
    KEY_NO_RETURNS,
    KEY_FOLLOW,
    KEY_NO_FOLLOW,
    KEY_DURATION,
    KEY_TAG,
    KEY_RING_SIZE,
    KEY_FLUSH_INTERVAL,
    KEY_EXIT_STATUS
};

static const struct argp_option record_options[] = {
    {"name", 'n', "NAME", 0, "Name of the run (default: the command's name and the run's number)", 1},
    {"pid", 'p', "PID[,PID]", 0, "Record running processes, until Ctrl-C, --duration or their end", 1},
    {"duration", KEY_DURATION, "SECONDS", 0, "Stop recording after this time; the target goes on", 1},
    {"functions", KEY_FUNCTIONS, "REGEX", 0, "Probe only functions whose name matches (extended regex)", 2},
    {"exclude", KEY_EXCLUDE, "REGEX", 0, "Do not probe functions whose name matches", 2},
    {"filter", KEY_FILTER, "NAME[,NAME]", 0, "Probe only functions of predefined sets: mpi, omp, mem, ...",
     2},
    {"images", KEY_IMAGES, "main", 0, "Which images: main, the executable of each process", 2},
    {"time", KEY_TIME, "none|anchor|full", 0,
     "Times kept: none, one a millisecond of activity (default), or one an event", 3},
    {"no-returns", KEY_NO_RETURNS, 0, 0, "No return probes: returns are inferred from stack pointers", 3},
    {"follow", KEY_FOLLOW, 0, 0, "Follow child processes (default)", 3},
    {"no-follow", KEY_NO_FOLLOW, 0, 0, "Do not follow child processes", 3},
    {"tag", KEY_TAG, "KEY=VALUE", 0, "Attach a tag to the run; may be repeated", 4},
    {"exit-status", KEY_EXIT_STATUS, 0, 0, "Exit with the command's status instead of 0", 4},
    {"ring-size", KEY_RING_SIZE, "BYTES", 0, "Size of the ring buffer, a power of two (default 32M)", 5},
    {"flush-interval", KEY_FLUSH_INTERVAL, "SECONDS", 0, "Commit at least this often (default 1)", 5},
    {0},
};

static double parse_seconds(const char *text, struct argp_state *state)
{
    char *end;
    double seconds = strtod(text, &end);

    if (end == text || *end || !(seconds > 0) || seconds > 1e9)
        argp_error(state, "'%s' is not a number of seconds", text);
    return seconds;
}

static size_t parse_size(const char *text, struct argp_state *state)
{
    char *end;
    unsigned long long size = strtoull(text, &end, 10);

    if (*end == 'K' || *end == 'k')
        size <<= 10, end++;
    else if (*end == 'M' || *end == 'm')
        size <<= 20, end++;
    if (end == text || *end || size < 4096 || size > 1u << 30 || size & (size - 1))
        argp_error(state, "'%s' is not a power of two from 4K to 1024M", text);
    return (size_t)size;
}

static void parse_pids(struct record_arguments *arguments, char *list, struct argp_state *state)
{
    char *word;

    while ((word = strsep(&list, ","))) {
        char *end;
        long pid = strtol(word, &end, 10);

        if (end == word || *end || pid <= 0 || pid > 1 << 30)
            argp_error(state, "'%s' is not a process id", word);
        if (array_reserve(&arguments->pids, &arguments->pid_capacity, arguments->pid_count + 1))
            argp_failure(state, EXIT_FAILED, ENOMEM, "record");
        arguments->pids[arguments->pid_count++] = (pid_t)pid;
    }
}

static void parse_times(struct record_arguments *arguments, const char *text, struct argp_state *state)
{
    static const char *const names[] = {
        [STREAM_TIMES_NONE] = "none", [STREAM_TIMES_ANCHOR] = "anchor", [STREAM_TIMES_FULL] = "full"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (!strcmp(names[i], text)) {
            arguments->recorder.times = (enum stream_times)i;
            return;
        }
    }
    argp_error(state, "--time is none, anchor or full, not '%s'", text);
}

static void parse_tag(struct record_arguments *arguments, char *text, struct argp_state *state)
{
    if (!strchr(text, '=') || *text == '=')
        argp_error(state, "a tag has the form KEY=VALUE, not '%s'", text);
    if (array_reserve(&arguments->tags, &arguments->tag_capacity, arguments->tag_count + 1))
        argp_failure(state, EXIT_FAILED, ENOMEM, "record");
    arguments->tags[arguments->tag_count++] = text;
}

static void parse_choice(int (*add)(struct function_choice *, const char *, struct error *),
                         struct record_arguments *arguments, const char *text, struct argp_state *state)
{
    struct error err = {0};

    if (add(&arguments->choice, text, &err))
        argp_error(state, "%s", err.message);
}

static void check_target(const struct record_arguments *arguments, struct argp_state *state)
{
    if (!arguments->command && !arguments->pid_count)
        argp_error(state, "name a command or a process: record -- COMMAND, record -p PID");
    if (arguments->command && arguments->pid_count)
        argp_error(state, "name either a command or processes (-p), not both");
}

static error_t parse_record(int key, char *arg, struct argp_state *state)
{
    struct record_arguments *arguments = state->input;

    switch (key) {
    case 'n':
        arguments->recorder.name = arg;
        return 0;
    case 'p':
        parse_pids(arguments, arg, state);
        return 0;
    case KEY_DURATION:
        arguments->duration_ns = (uint64_t)(parse_seconds(arg, state) * 1e9);
        return 0;
    case KEY_FUNCTIONS:
        parse_choice(function_choice_only, arguments, arg, state);
        return 0;
    case KEY_EXCLUDE:
        parse_choice(function_choice_exclude, arguments, arg, state);
        return 0;
    case KEY_FILTER:
        parse_choice(function_choice_filter, arguments, arg, state);
        return 0;
    case KEY_IMAGES:
        if (strcmp(arg, "main"))
            argp_error(state, "--images knows 'main' only, not '%s'", arg);
        return 0;
    case KEY_TIME:
        parse_times(arguments, arg, state);
        return 0;
    case KEY_NO_RETURNS:
        arguments->recorder.returns = PLAN_RETURNS_INFER;
        return 0;
    case KEY_FOLLOW:
    case KEY_NO_FOLLOW:
        arguments->recorder.follow_children = key == KEY_FOLLOW;
        return 0;
    case KEY_TAG:
        parse_tag(arguments, arg, state);
        return 0;
    case KEY_EXIT_STATUS:
        arguments->exit_status = true;
        return 0;
    case KEY_RING_SIZE:
        arguments->recorder.ring_bytes = parse_size(arg, state);
        return 0;
    case KEY_FLUSH_INTERVAL:
        arguments->recorder.flush_interval_ns = (uint64_t)(parse_seconds(arg, state) * 1e9);
        return 0;
    case ARGP_KEY_ARG: /* the command and all that follows are its own */
        arguments->command = state->argv + state->next - 1;
        state->next = state->argc;
        return 0;
    case ARGP_KEY_END:
        check_target(arguments, state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child record_children[] = {{&cli_common_argp, 0, NULL, 0}, {0}};
static const struct argp record_argp = {
    .options = record_options,
    .parser = parse_record,
    .args_doc = "-- COMMAND [ARG...]\n-p PID[,PID]",
    .doc =
        "Record the calls and returns of the functions of a command, its threads and its children, from its "
        "first instruction to its end; or those of running processes.\v"
        "The command's own status is printed and stored; with --json its standard output goes to standard "
        "error. Ctrl-C ends the recording of processes (-p); a command gets it as it always does, and a "
        "second Ctrl-C ends the recording while the command goes on.",
    .children = record_children,
};

/* ------------------------------------------------------------------------------------ signals */

static struct recorder *running;
static volatile sig_atomic_t interrupts_until_stop;

static void on_signal(int number)
{
    /* Ctrl-C goes to the command as well, which may end by it or not: only a second one is for us. */
    if (number == SIGINT && interrupts_until_stop-- > 0)
        return;
    recorder_stop(running);
}

static void catch_signals(struct recorder *recorder, bool with_command)
{
    struct sigaction action = {.sa_handler = on_signal};

    running = recorder;
    interrupts_until_stop = with_command;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static void ignore_signals(void)
{
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
}

/* ------------------------------------------------------------------------------------ the recording */

static char *join(char **words, const char *separator)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    if (!stream)
        return NULL;
    for (size_t i = 0; words && words[i]; i++)
        fprintf(stream, "%s%s", i ? separator : "", words[i]);
    fclose(stream);
    return text;
}

static int add_tags(struct recorder *recorder, const struct record_arguments *arguments, struct error *err)
{
    int r = 0;

    for (size_t i = 0; !r && i < arguments->tag_count; i++) {
        char *value = strchr(arguments->tags[i], '=');

        *value = '\0';
        r = recorder_tag(recorder, arguments->tags[i], value + 1, err);
        *value = '=';
    }
    return r;
}

static int start_targets(struct recorder *recorder, const struct record_arguments *arguments,
                         struct error *err)
{
    int r = add_tags(recorder, arguments, err);

    if (!r && arguments->command)
        r = recorder_launch(recorder, arguments->command, err);
    for (size_t i = 0; !r && i < arguments->pid_count; i++)
        r = recorder_attach(recorder, arguments->pids[i], err);
    return r;
}

/* Why nothing was traced, in the words of the image that was to be: the first one met stands last. */
static int nothing_traced(const struct recorder *recorder, struct error *err)
{
    const struct traced_image *first = NULL;

    for (const struct traced_image *image = recorder_images(recorder); image; image = image->next) {
        if (!image->refusal)
            return 0;
        first = image;
    }
    return first ? error_say(err, -ENOTSUP, "%s", first->refusal)
                 : error_say(err, -ENOTSUP, "nothing was recorded: no program was seen");
}

static int record(struct recorder *recorder, const struct record_arguments *arguments, struct error *err)
{
    int r = start_targets(recorder, arguments, err);

    if (r)
        return r;
    catch_signals(recorder, arguments->command != NULL);
    r = recorder_run(recorder, arguments->duration_ns, err);
    ignore_signals(); /* the rest is short and must not be cut off */
    if (!r)
        r = recorder_close(recorder, err);
    return r ? r : nothing_traced(recorder, err);
}

/* A recording that failed: what it has is kept as an unfinished run, and the command is waited for, so that
 * it does not go on behind a prompt. One that has nothing leaves nothing. */
static void give_up(struct recorder *recorder)
{
    recorder_detach(recorder);
    if (recorder_counts(recorder).stored_threads)
        recorder_wait(recorder);
    else
        recorder_abandon(recorder, NULL);
}

/* ------------------------------------------------------------------------------------ the report */

static int print_json(const struct recorder *recorder, const struct tracestore_run *run,
                      const struct tracestore_totals *totals, double seconds)
{
    struct stream_counts counts = recorder_counts(recorder);
    int status = recorder_exit_status(recorder);
    json_t *document =
        json_pack("{s:I, s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:I, s:b}", "run",
                  (json_int_t)run->run_id, "name", run->name, "exit_status",
                  status < 0 ? json_null() : json_integer(status), "events", (json_int_t)totals->events,
                  "calls", (json_int_t)totals->calls, "returns", (json_int_t)totals->returns, "threads",
                  (json_int_t)totals->threads, "lost", (json_int_t)totals->lost, "muted_functions",
                  (json_int_t)totals->muted_functions, "stored_bytes", (json_int_t)totals->stored_bytes,
                  "catalog_bytes", (json_int_t)totals->catalog_bytes, "raw_bytes",
                  (json_int_t)totals->raw_bytes, "wall_seconds", seconds, "unmatched_returns",
                  (json_int_t)counts.unmatched_returns, "complete", totals->complete);

    if (!document)
        return -ENOMEM;
    if (json_dumpf(document, stdout, JSON_INDENT(2)) || putchar('\n') == EOF || fflush(stdout)) {
        json_decref(document);
        return -EIO;
    }
    json_decref(document);
    return 0;
}

static void print_text(const struct recorder *recorder, const struct tracestore_run *run,
                       const struct tracestore_totals *totals, double seconds)
{
    int status = recorder_exit_status(recorder);

    for (const struct traced_image *image = recorder_images(recorder); image; image = image->next)
        if (image->refusal && cli.verbosity > 0)
            fprintf(stderr, "tracectl: note: %s\n", image->refusal);
    if (status >= 0)
        fprintf(stderr, "tracectl: the command ended with status %d\n", status);
    fprintf(stderr,
            "tracectl: run %lld '%s': %llu calls, %llu returns on %llu threads in %.1f s, %llu bytes stored "
            "(%.4f a event)\n",
            (long long)run->run_id, run->name, (unsigned long long)totals->calls,
            (unsigned long long)totals->returns, (unsigned long long)totals->threads, seconds,
            (unsigned long long)totals->stored_bytes,
            totals->events ? (double)totals->stored_bytes / (double)totals->events : 0.0);
    if (totals->lost)
        fprintf(stderr,
                "tracectl: %llu events were lost (see tracectl show %lld; a larger --ring-size helps)\n",
                (unsigned long long)totals->lost, (long long)run->run_id);
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
    if (!r && cli.json) {
        r = print_json(recorder, &run, &totals, seconds);
        if (r)
            error_set(err, r, NULL, "cannot write standard output");
    } else if (!r && cli.verbosity >= 0) {
        print_text(recorder, &run, &totals, seconds);
    }
    tracestore_run_release(&run);
    return r;
}

static int record_into(struct tracestore *store, struct record_arguments *arguments, struct error *err)
{
    uint64_t begun = clock_ns(CLOCK_MONOTONIC);
    struct recorder *recorder;
    int r;

    r = recorder_open(store, &arguments->recorder, &recorder, err);
    if (r)
        return r;
    r = record(recorder, arguments, err);
    if (r)
        give_up(recorder);
    else
        r = report(store, recorder, (double)(clock_ns(CLOCK_MONOTONIC) - begun) / 1e9, err);
    if (!r && arguments->exit_status && recorder_exit_status(recorder) >= 0)
        r = recorder_exit_status(recorder);
    recorder_free(recorder);
    return r;
}

static void arguments_release(struct record_arguments *arguments)
{
    function_choice_release(&arguments->choice);
    free(arguments->pids);
    free(arguments->tags);
}

static int run_record(int argc, char **argv)
{
    struct record_arguments arguments = {
        .recorder = {.times = STREAM_TIMES_ANCHOR, .follow_children = true, .output = -1}};
    AUTO_FREE char *command = NULL, *options = NULL;
    struct tracestore *store = NULL;
    struct error err = {0};
    int r;

    cli_parse(&cmd_record, argc, argv, &arguments);
    command = join(arguments.command, " ");
    options = join(argv + 1, " ");
    arguments.recorder.command = command;
    arguments.recorder.options = options;
    arguments.recorder.want = function_choice_wants;
    arguments.recorder.want_context = &arguments.choice;
    if (cli.json)
        arguments.recorder.output = STDERR_FILENO;
    r = command && options ? tracestore_open(cli.store_path, TRACESTORE_CREATE, &store, &err)
                           : error_no_memory(&err);
    if (!r)
        r = record_into(store, &arguments, &err);
    tracestore_free(store);
    arguments_release(&arguments);
    return r < 0 ? cli_fail(&err) : r;
}

const struct command cmd_record = {
    .name = "record",
    .summary = "record a command, or running processes",
    .argp = &record_argp,
    .argp_flags = ARGP_IN_ORDER, /* the options behind the command are the command's */
    .run = run_record,
};
