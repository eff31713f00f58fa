/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/record/record_arguments.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/filter_file.h"
#include "cli/common/retention_arguments.h"
#include "cli/record/flight_arguments.h"

enum {
    KEY_FUNCTIONS = 256,
    KEY_EXCLUDE,
    KEY_FILTER,
    KEY_FILTER_FILE,
    KEY_FLIGHT,
    KEY_FLIGHT_ON,
    KEY_FLIGHT_SIZE,
    KEY_TRIGGER,
    KEY_TRIGGER_SHARE,
    KEY_IMAGES,
    KEY_SOURCE,
    KEY_TIME,
    KEY_RETURNS,
    KEY_BACKEND,
    KEY_NO_RETURNS,
    KEY_BUDGET,
    KEY_CALL_SITES,
    KEY_GO,
    KEY_SYNC,
    KEY_SINK,
    KEY_HANDLER,
    KEY_ENQUEUE,
    KEY_DEQUEUE,
    KEY_FOLLOW,
    KEY_NO_FOLLOW,
    KEY_NO_HOLD,
    KEY_DURATION,
    KEY_UNTIL,
    KEY_TAG,
    KEY_RING_SIZE,
    KEY_WIRE,
    KEY_MEMORY,
    KEY_FLUSH_INTERVAL,
    KEY_EXIT_STATUS,
    KEY_DRY_RUN,
    KEY_KEEP_ARGUMENTS,
    KEY_ON_FULL
};

#define DEFAULT_BUDGET 0.05 /* of running processes */

static const struct argp_option record_options[] = {
    {"name", 'n', "NAME", 0, "Name of the run (default: the command's name and the run's number)", 1},
    {"pid", 'p', "PID[,PID]", 0, "Record running processes, until Ctrl-C, --duration or their end", 1},
    {"duration", KEY_DURATION, "SECONDS", 0, "Stop recording after this time; the target goes on", 1},
    {"until", KEY_UNTIL, "command|all", 0,
     "Record a command until it has ended (default), or until all its processes have, daemons too", 1},
    {"keep-arguments", KEY_KEEP_ARGUMENTS, NULL, 0,
     "Store the arguments of the command and of its processes too, which may be passwords (default: only the "
     "names of programs)",
     1},
    {"flight", KEY_FLIGHT, "MIN", 0,
     "Be a flight recorder: keep only the last MIN minutes (0.5: half a minute), and make a run of them when "
     "a "
     "trigger fires, at each SIGUSR1, and as --flight-on says",
     1},
    {"flight-on", KEY_FLIGHT_ON, "TRIGGER", 0,
     "With --flight, may be repeated: crash, end, exit:nonzero, exit:STATUS, call:REGEX, slow:REGEX:200ms "
     "(default: crash and end)",
     1},
    {"flight-size", KEY_FLIGHT_SIZE, "BYTES", 0,
     "With --flight: what the window may take; when it would be more, it gets shorter (default 64M)", 1},
    {"functions", KEY_FUNCTIONS, "REGEX", 0, "Probe only functions whose name matches (extended regex)", 2},
    {"exclude", KEY_EXCLUDE, "REGEX", 0, "Do not probe functions whose name matches", 2},
    {"filter", KEY_FILTER, "SET[,SET...]", 0,
     "Probe only functions of these sets: mpi, omp, mem, source:src/net/, ...; without those of sets with a "
     "'!' "
     "before them. image:GLOB has these images probed besides the programs themselves",
     2},
    {"filter-file", KEY_FILTER_FILE, "FILE", 0, FILTER_FILE_HELP, 2},
    {"trigger", KEY_TRIGGER, "REGEX", 0,
     "Record only what a thread calls between entry and return of a function whose name matches; all other "
     "calls "
     "are counted, and said to be left out",
     2},
    {"trigger-share", KEY_TRIGGER_SHARE, "PCT", 0,
     "With --trigger: so many of the times, chosen at random (default 100)", 2},
    {"images", KEY_IMAGES, "main|all|GLOB[,GLOB]", 0,
     "Which images: the programs themselves (main, the default), all, or those whose path or file name "
     "matches",
     2},
    {"source", KEY_SOURCE, "GLOB[,GLOB]", 0,
     "Probe only functions whose source file, or a folder of its path, matches (needs debugging information)",
     2},
    {"time", KEY_TIME, "none|anchor|full", 0,
     "Times kept: none, one a millisecond of activity (default), or one an event", 3},
    {"returns", KEY_RETURNS, "auto|probe|infer|none|sites", 0,
     "How returns come to be known: inferred from stack pointers and return addresses (auto, the default, "
     "and "
     "infer), by a probe on every return instruction (sites), not at all (none), or by the kernel's return "
     "probes "
     "(probe). Those replace return addresses on the program's stack, which breaks programs that look at "
     "them: "
     "where that is known (exceptions, garbage collectors, profilers, stacks switched by hand) returns are "
     "inferred, elsewhere it is your risk",
     3},
    {"backend", KEY_BACKEND, "auto|inline|uprobe", 0,
     "What records calls: the kernel's probes (uprobe, the default), or for each function what is cheapest "
     "and "
     "safe: code put into the program itself (some hundred times cheaper), or else the kernel's probes "
     "(auto). "
     "inline is as auto, but options that rule out inline probes are an error",
     3},
    {"budget", KEY_BUDGET, "PCT|none", 0,
     "Let probes take no more than so many percent of the CPU time that the target needs itself: functions "
     "that are called too often are left out for a time, and what was not seen is stored (default: "
     "5 with "
     "-p, none for a command)",
     3},
    {"no-returns", KEY_NO_RETURNS, 0, 0, "The same as --returns infer", 3},
    {"call-sites", KEY_CALL_SITES, 0, 0, "Keep where each call came from: the columns call_site of SQL", 3},
    {"go", KEY_GO, 0, 0,
     "Of Go programs record what their goroutines do: creation, channels, locks, waiting. Their functions "
     "only "
     "if --functions, --filter or --source ask for some",
     3},
    {"sync", KEY_SYNC, 0, 0,
     "Record also what threads and processes do to each other: locks, conditions, semaphores, messages, "
     "waiting, "
     "input and output (the SQL table sync_events)",
     3},
    {"sink", KEY_SINK, "FUNCTION", 0,
     "With --sync: time spent in this function matters; may be repeated, as the next three", 3},
    {"handler", KEY_HANDLER, "FUNCTION[:ARGn]", 0,
     "With --sync: this function handles an event, or a request; its nth argument is the event", 3},
    {"enqueue", KEY_ENQUEUE, "FUNCTION:ARGn", 0,
     "With --sync: this function puts an event, its nth argument, into a queue", 3},
    {"dequeue", KEY_DEQUEUE, "FUNCTION:ARGn", 0,
     "With --sync: this function is given an event out of a queue", 3},
    {"follow", KEY_FOLLOW, 0, 0, "Follow child processes (default)", 3},
    {"no-follow", KEY_NO_FOLLOW, 0, 0, "Do not follow child processes", 3},
    {"dry-run", KEY_DRY_RUN, 0, 0, "Say what would be probed and what it would cost, and record nothing", 4},
    {"no-hold", KEY_NO_HOLD, 0, 0,
     "Do not stop children at their exec until their program has its probes: their parents could see that as "
     "SIGCHLD or in waitpid(); what is lost by it is said",
     4},
    {"tag", KEY_TAG, "KEY=VALUE", 0, "Attach a tag to the run; may be repeated", 4},
    {"exit-status", KEY_EXIT_STATUS, 0, 0, "Exit with the command's status instead of 0", 4},
    {"ring-size", KEY_RING_SIZE, "BYTES", 0, "Size of the ring buffer, a power of two (default 32M)", 5},
    {"wire", KEY_WIRE, "packed|plain", 0,
     "How calls and returns that uprobes see come through the ring buffer: packed, a byte or less each (the "
     "default), or each as a record of its own, as always with --time full and --trigger. What is stored is "
     "the same",
     5},
    {"memory", KEY_MEMORY, "BYTES", 0,
     "Memory for compressing, of all threads together: 64M, 1G (default: a quarter of the machine's, at most "
     "1G). "
     "When it is used up, segments of threads are closed early, which takes more bytes an event; nothing is "
     "lost",
     5},
    {"on-full", KEY_ON_FULL, "stop|drop-oldest", 0,
     "When the disk is full: end the recording (stop, the default; the target goes on), or delete the oldest "
     "runs of the store first (drop-oldest)",
     6},
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

static void parse_backend(struct record_arguments *arguments, const char *text, struct argp_state *state)
{
    if (!strcmp(text, "uprobe"))
        arguments->recorder.backend = RECORDER_UPROBE;
    else if (!strcmp(text, "auto") || !strcmp(text, "inline"))
        arguments->recorder.backend = RECORDER_INLINE;
    else
        argp_error(state, "--backend is auto, inline or uprobe, not '%s'", text);
    arguments->recorder.insists_on_inline = !strcmp(text, "inline");
}

static void parse_budget(struct record_arguments *arguments, const char *text, struct argp_state *state)
{
    char *end;
    double percent = strtod(text, &end);

    arguments->has_budget = true;
    if (!strcmp(text, "none"))
        return;
    if (end == text || (*end && strcmp(end, "%") != 0) || !(percent > 0) || percent > 1000)
        argp_error(state, "--budget '%s': say a number of percent, or none", text);
    arguments->recorder.budget = percent / 100;
}

static void parse_returns(struct record_arguments *arguments, const char *text, struct argp_state *state)
{
    static const char *const names[PLAN_RETURNS_MODES] = {
        [PLAN_RETURNS_INFER] = "infer",
        [PLAN_RETURNS_PROBE] = "probe",
        [PLAN_RETURNS_NONE] = "none",
        [PLAN_RETURNS_SITES] = "sites",
    };

    if (!strcmp(text, "auto")) {
        arguments->recorder.returns = PLAN_RETURNS_INFER;
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (!strcmp(names[i], text)) {
            arguments->recorder.returns = (enum plan_returns)i;
            return;
        }
    }
    argp_error(state, "--returns is auto, probe, infer, none or sites, not '%s'", text);
}

static void parse_on_full(struct record_arguments *arguments, const char *text, struct argp_state *state)
{
    if (strcmp(text, "stop") != 0 && strcmp(text, "drop-oldest") != 0)
        argp_error(state, "--on-full is stop or drop-oldest, not '%s'", text);
    arguments->recorder.room.drop_oldest = *text == 'd';
}

static void parse_tag(struct record_arguments *arguments, char *text, struct argp_state *state)
{
    if (!strchr(text, '=') || *text == '=')
        argp_error(state, "a tag has the form KEY=VALUE, not '%s'", text);
    if (array_reserve(&arguments->tags, &arguments->tag_capacity, arguments->tag_count + 1))
        argp_failure(state, EXIT_FAILED, ENOMEM, "record");
    arguments->tags[arguments->tag_count++] = text;
}

static void parse_trigger(struct record_arguments *arguments, const char *text, struct argp_state *state)
{
    arguments->triggers.only_option = "--trigger";
    function_choice_parse(function_choice_only, &arguments->triggers, text, state);
    arguments->trigger_text = text;
    arguments->recorder.opens = function_choice_wants;
    arguments->recorder.opens_context = &arguments->triggers;
    arguments->recorder.go_functions = true;
}

static void parse_trigger_share(struct record_arguments *arguments, const char *text,
                                struct argp_state *state)
{
    char *end;
    double percent = strtod(text, &end);

    if (end == text || (*end && strcmp(end, "%") != 0) || !(percent > 0 && percent <= 100))
        argp_error(state, "--trigger-share is a number of percent up to 100, not '%s'", text);
    arguments->recorder.trigger_share = percent / 100;
    arguments->has_share = true;
}

bool record_arguments_wants(void *context, struct elf_image *image, const struct image_function *function)
{
    struct record_arguments *arguments = context;

    for (size_t i = 0; i < arguments->flight.trigger_count; i++)
        if (flight_trigger_wants(&arguments->flight.triggers[i], function))
            return true;
    return function_choice_wants(&arguments->choice, image, function) ||
           (arguments->trigger_text && function_choice_wants(&arguments->triggers, image, function));
}

const char *record_arguments_name(void *context, struct elf_image *image,
                                  const struct image_function *function)
{
    struct record_arguments *arguments = context;

    return function_choice_name(&arguments->choice, image, function);
}

bool record_arguments_wants_image(void *context, const char *path, enum image_kind kind)
{
    struct record_arguments *arguments = context;

    return function_choice_wants_image(&arguments->choice, path, kind);
}

static void parse_declaration(enum sync_event_kind kind, struct record_arguments *arguments, const char *text,
                              struct argp_state *state)
{
    struct error err = {0};

    if (array_reserve(&arguments->declarations, &arguments->declaration_capacity,
                      arguments->declaration_count + 1))
        argp_failure(state, EXIT_FAILED, ENOMEM, "record");
    if (sync_declaration_parse(kind, text, &arguments->declarations[arguments->declaration_count], &err))
        argp_error(state, "%s", err.message);
    arguments->declaration_count++;
    arguments->recorder.declarations = arguments->declarations;
    arguments->recorder.declaration_count = arguments->declaration_count;
}

/* What is wrong with a filter is said as nlr and diff say it. */
static void make_filter(struct record_arguments *arguments)
{
    struct error err = {0};
    int r = 0, status;

    if (arguments->filter || arguments->filter_file)
        r = function_choice_filter(&arguments->choice, arguments->filter, arguments->filter_file, &err);
    if (r >= 0)
        return;
    status = cli_fail(&err);
    exit(r == -EINVAL ? EXIT_USAGE : status);
}

static void check_target(const struct record_arguments *arguments, struct argp_state *state)
{
    if (arguments->declaration_count && !arguments->recorder.sync)
        argp_error(state, "--sink, --handler, --enqueue and --dequeue need --sync");
    if (arguments->recorder.insists_on_inline && recorder_inline_refusal(&arguments->recorder))
        argp_error(state, "--backend inline does not go with %s (auto leaves it to the kernel's probes)",
                   recorder_inline_refusal(&arguments->recorder));
    if (arguments->has_share && !arguments->trigger_text)
        argp_error(state, "--trigger-share needs --trigger");
    if (!arguments->command && !arguments->pids.count)
        argp_error(state, "name a command or a process: record -- COMMAND, record -p PID");
    if (arguments->command && arguments->pids.count)
        argp_error(state, "name either a command or processes (-p), not both");
}

/* How events come into the store. */
static error_t parse_storing(int key, char *arg, struct record_arguments *arguments, struct argp_state *state)
{
    switch (key) {
    case KEY_RING_SIZE:
        arguments->recorder.ring_bytes = parse_size(arg, state);
        return 0;
    case KEY_WIRE:
        if (strcmp(arg, "packed") && strcmp(arg, "plain"))
            argp_error(state, "--wire takes packed or plain, not '%s'", arg);
        arguments->recorder.plain_wire = !strcmp(arg, "plain");
        return 0;
    case KEY_MEMORY:
        arguments->recorder.memory_bytes = cli_parse_bytes(arg, state);
        return 0;
    case KEY_FLUSH_INTERVAL:
        arguments->recorder.flush_interval_ns = (uint64_t)(parse_seconds(arg, state) * 1e9);
        return 0;
    case KEY_ON_FULL:
        parse_on_full(arguments, arg, state);
        return 0;
    case KEY_FLIGHT:
        flight_arguments_set_window(arguments, arg, state);
        return 0;
    case KEY_FLIGHT_ON:
        flight_arguments_add_trigger(arguments, arg, state);
        return 0;
    case KEY_FLIGHT_SIZE:
        arguments->flight.window_bytes = cli_parse_bytes(arg, state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* What threads do to each other. */
static error_t parse_sync(int key, char *arg, struct record_arguments *arguments, struct argp_state *state)
{
    switch (key) {
    case KEY_SYNC:
        arguments->recorder.sync = true;
        return 0;
    case KEY_SINK:
        parse_declaration(SYNC_SINK, arguments, arg, state);
        return 0;
    case KEY_HANDLER:
        parse_declaration(SYNC_HANDLER, arguments, arg, state);
        return 0;
    case KEY_ENQUEUE:
        parse_declaration(SYNC_ENQUEUE, arguments, arg, state);
        return 0;
    case KEY_DEQUEUE:
        parse_declaration(SYNC_DEQUEUE, arguments, arg, state);
        return 0;
    default:
        return parse_storing(key, arg, arguments, state);
    }
}

/* Which functions of which images. */
static error_t parse_selection(int key, char *arg, struct argp_state *state)
{
    struct record_arguments *arguments = state->input;

    switch (key) {
    case KEY_FUNCTIONS:
        arguments->recorder.go_functions = true;
        function_choice_parse(function_choice_only, &arguments->choice, arg, state);
        return 0;
    case KEY_EXCLUDE:
        function_choice_parse(function_choice_exclude, &arguments->choice, arg, state);
        return 0;
    case KEY_FILTER:
        arguments->recorder.go_functions = true;
        arguments->filter = arg;
        return 0;
    case KEY_FILTER_FILE:
        arguments->filter_file = arg;
        return 0;
    case KEY_TRIGGER:
        parse_trigger(arguments, arg, state);
        return 0;
    case KEY_TRIGGER_SHARE:
        parse_trigger_share(arguments, arg, state);
        return 0;
    case KEY_IMAGES:
        function_choice_parse(function_choice_images, &arguments->choice, arg, state);
        return 0;
    case KEY_SOURCE:
        arguments->recorder.go_functions = true;
        function_choice_parse(function_choice_sources, &arguments->choice, arg, state);
        return 0;
    default:
        return parse_sync(key, arg, arguments, state);
    }
}

/* Options that are said or not. */
static bool parse_switch(struct record_arguments *arguments, int key)
{
    switch (key) {
    case KEY_NO_RETURNS:
        arguments->recorder.returns = PLAN_RETURNS_INFER;
        return true;
    case KEY_NO_HOLD:
        arguments->recorder.no_hold = true;
        return true;
    case KEY_GO:
        arguments->recorder.goroutines = GO_DETAIL_OPERATIONS;
        return true;
    case KEY_CALL_SITES:
        arguments->recorder.call_sites = true;
        return true;
    case KEY_FOLLOW:
    case KEY_NO_FOLLOW:
        arguments->recorder.follow_children = key == KEY_FOLLOW;
        return true;
    case KEY_DRY_RUN:
        arguments->dry_run = true;
        return true;
    case KEY_KEEP_ARGUMENTS:
        arguments->recorder.keep_arguments = true;
        return true;
    case KEY_EXIT_STATUS:
        arguments->exit_status = true;
        return true;
    default:
        return false;
    }
}

static error_t parse_record(int key, char *arg, struct argp_state *state)
{
    struct record_arguments *arguments = state->input;

    switch (key) {
    case 'n':
        arguments->recorder.name = arg;
        return 0;
    case 'p':
        pid_list_parse(&arguments->pids, arg, state);
        return 0;
    case KEY_DURATION:
        arguments->duration_ns = (uint64_t)(parse_seconds(arg, state) * 1e9);
        return 0;
    case KEY_UNTIL:
        if (strcmp(arg, "command") != 0 && strcmp(arg, "all") != 0)
            argp_error(state, "--until must be command or all, not '%s'", arg);
        arguments->recorder.until_all = !strcmp(arg, "all");
        return 0;
    case KEY_TIME:
        parse_times(arguments, arg, state);
        return 0;
    case KEY_BACKEND:
        parse_backend(arguments, arg, state);
        return 0;
    case KEY_BUDGET:
        parse_budget(arguments, arg, state);
        return 0;
    case KEY_RETURNS:
        parse_returns(arguments, arg, state);
        return 0;
    case KEY_TAG:
        parse_tag(arguments, arg, state);
        return 0;
    case ARGP_KEY_INIT:
        state->child_inputs[1] = &arguments->recorder.room.keep;
        return 0;
    case ARGP_KEY_ARG: /* the command and all that follows are its own */
        arguments->command = state->argv + state->next - 1;
        state->next = state->argc;
        return 0;
    case ARGP_KEY_END:
        check_target(arguments, state);
        flight_arguments_check(arguments, state);
        if (!arguments->has_budget && arguments->pids.count)
            arguments->recorder.budget = DEFAULT_BUDGET;
        make_filter(arguments);
        return 0;
    default:
        return parse_switch(arguments, key) ? 0 : parse_selection(key, arg, state);
    }
}

static const struct argp_child record_children[] = {
    {&cli_common_argp, 0, NULL, 0}, {&retention_argp, 0, NULL, 0}, {0}};
const struct argp record_argp = {
    .options = record_options,
    .parser = parse_record,
    .args_doc = "-- COMMAND [ARG...]\n-p PID[,PID]",
    .doc =
        "Record the calls and returns of the functions of a command, its threads and its children, from its "
        "first instruction to its end; or those of running processes.\v"
        "The command's own status is printed and stored; with --json its standard output goes to standard "
        "error. Ctrl-C, SIGTERM and SIGHUP end the recording of processes (-p). Of a command they do not: it "
        "gets Ctrl-C as it always does, what is sent to tracectl alone is passed on to it, and its recording "
        "continues to its end. A second signal ends the recording while the command continues. An ignored "
        "signal stays ignored. --keep-size, --keep-age and --keep-runs are those of 'tracectl gc', applied "
        "as long as the recording goes on; they leave alone what is being "
        "recorded.",
    .children = record_children,
    .help_filter = filter_file_help,
};

void record_arguments_init(struct record_arguments *arguments)
{
    *arguments = (struct record_arguments){
        .recorder = {
            .times = STREAM_TIMES_ANCHOR, .follow_children = true, .trigger_share = 1, .output = -1}};
}

void record_arguments_release(struct record_arguments *arguments)
{
    function_choice_release(&arguments->choice);
    function_choice_release(&arguments->triggers);
    flight_arguments_release(arguments);
    pid_list_release(&arguments->pids);
    free(arguments->tags);
    for (size_t i = 0; i < arguments->declaration_count; i++)
        free(arguments->declarations[i].name);
    free(arguments->declarations);
}

char *join_words(char **words, const char *separator)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    if (!stream)
        return NULL;
    for (size_t i = 0; words && words[i]; i++) {
        text_put_raw(stream, i ? separator : "");
        text_put_raw(stream, words[i]);
    }
    fclose(stream);
    return text;
}
