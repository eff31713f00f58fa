/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/record/record_arguments.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/retention_arguments.h"
#include "cli/record/flight_arguments.h"
#include "cli/record/selection_arguments.h"
#include "cli/record/storing_arguments.h"
#include "cli/record/sync_arguments.h"

enum {
    KEY_TIME = 256,
    KEY_RETURNS,
    KEY_BACKEND,
    KEY_LIFE_CYCLE,
    KEY_WHEN_BEHIND,
    KEY_NO_RETURNS,
    KEY_BUDGET,
    KEY_CALL_SITES,
    KEY_GO,
    KEY_FOLLOW,
    KEY_NO_FOLLOW,
    KEY_NO_HOLD,
    KEY_DURATION,
    KEY_UNTIL,
    KEY_TAG,
    KEY_EXIT_STATUS,
    KEY_DRY_RUN,
    KEY_KEEP_ARGUMENTS,
};

enum { RETENTION_CHILD = 4 }; /* of record_children; those before it fill the same record_arguments */

#define DEFAULT_BUDGET 0.05 /* of running processes */

static const struct argp_option record_options[] = {
    {"name", 'n', "NAME", 0, "Name of the run (default: the command's name and the run's number)", 1},
    {"pid", 'p', "PID|NAME...", 0,
     "Record running processes, by number or by name (as in -p nginx; a name may be a glob), until "
     "Ctrl-C, the end of --duration, or their own end",
     1},
    {"duration", KEY_DURATION, "TIME", 0,
     "Stop after recording for this time; the target keeps running (200ms, 30s, 5m, 1h, or seconds)", 1},
    {"until", KEY_UNTIL, "command|all", 0,
     "Record until the command has ended (default), or until all its processes have ended, including daemons",
     1},
    {"keep-arguments", KEY_KEEP_ARGUMENTS, NULL, 0,
     "Also store the arguments of the command and its processes, which may contain passwords (default: "
     "only program names)",
     1},
    {"time", KEY_TIME, "none|anchor|full", 0,
     "Timestamps to keep: none; one per millisecond of activity (anchor, the default); one per "
     "event (full)",
     3},
    {"returns", KEY_RETURNS, "auto|exact|infer|probe|sites|none", 0,
     "How returns are detected: inferred from stack pointers and return addresses (auto, the default, "
     "and infer), by inline probes at every return instruction of functions of which all are known, which with "
     "--time full gives exact durations (exact; with --backend uprobe the same as sites), by a kernel probe on "
     "every return instruction (sites), not at all (none), or by the kernel's "
     "return probes (probe). Return probes replace return addresses on the stack, which breaks programs "
     "that inspect them: where tracectl detects such code (exceptions, garbage collectors, profilers, "
     "switched stacks) it infers returns instead; other such programs may fail",
     3},
    {"backend", KEY_BACKEND, "auto|inline|uprobe", 0,
     "How calls are recorded: per function by the cheapest safe probe, inline code in the program itself "
     "(about a hundred times cheaper), otherwise a uprobe (auto, the default); or by the kernel's uprobes "
     "alone (uprobe). inline is like auto, but options that rule out inline probes are an error",
     3},
    {"life-cycle", KEY_LIFE_CYCLE, "auto|bpf|ptrace", 0,
     "How processes and threads are followed: by BPF programs, which need root or capabilities; by ptrace, "
     "which an ordinary user may use on own processes, with inline probes only; or by BPF where it can be used, "
     "otherwise by ptrace (auto, the default)",
     3},
    {"when-behind", KEY_WHEN_BEHIND, "wait|lose", 0,
     "Where inline probes record calls faster than they can be stored: let the program's threads wait, so "
     "that "
     "no call is lost (wait, the default for a command), or count the calls that are lost (lose, the default "
     "with -p)",
     3},
    {"budget", KEY_BUDGET, "PCT|none", 0,
     "Limit the cost of probes to this percentage of the target's own CPU time: functions that are "
     "called too often are excluded for a time, and the store notes which calls were not recorded "
     "(default: 5 with -p, none for a command)",
     3},
    {"no-returns", KEY_NO_RETURNS, 0, 0, "The same as --returns infer", 3},
    {"call-sites", KEY_CALL_SITES, 0, 0, "Store where each call was made: the SQL columns call_site", 3},
    {"go", KEY_GO, 0, 0,
     "For Go programs, record what goroutines do: creation, channels, locks, waiting. Function calls "
     "are recorded only with --functions, --filter or --source",
     3},
    {"follow", KEY_FOLLOW, 0, 0, "Follow child processes (default)", 3},
    {"no-follow", KEY_NO_FOLLOW, 0, 0, "Do not follow child processes", 3},
    {"dry-run", KEY_DRY_RUN, 0, 0, "Print what would be probed and the expected cost; record nothing", 4},
    {"no-hold", KEY_NO_HOLD, 0, 0,
     "Do not pause child processes at exec until their program has its probes (their parents could see "
     "that pause as SIGCHLD or in waitpid()); any resulting loss is reported",
     4},
    {"tag", KEY_TAG, "KEY=VALUE", 0, "Attach a tag to the run; may be repeated", 4},
    {"exit-status", KEY_EXIT_STATUS, 0, 0, "Exit with the command's status instead of 0", 4},
    {0},
};

static void parse_times(struct record_arguments *arguments, const char *text, struct argp_state *state)
{
    static const char *const names[] = {
        [STREAM_TIMES_NONE] = "none", [STREAM_TIMES_ANCHOR] = "anchor", [STREAM_TIMES_FULL] = "full"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (!strcmp(names[i], text)) {
            arguments->recorder.content.times = (enum stream_times)i;
            return;
        }
    }
    argp_error(state, "--time must be none, anchor or full, not '%s'", text);
}

static void parse_backend(struct record_arguments *arguments, const char *text, struct argp_state *state)
{
    if (!strcmp(text, "uprobe"))
        arguments->recorder.probes.backend = RECORDER_UPROBE;
    else if (!strcmp(text, "auto") || !strcmp(text, "inline"))
        arguments->recorder.probes.backend = RECORDER_INLINE;
    else
        argp_error(state, "--backend must be auto, inline or uprobe, not '%s'", text);
    arguments->recorder.probes.insists_on_inline = !strcmp(text, "inline");
    if (!strcmp(text, "uprobe"))
        arguments->recorder.probes.needs_bpf = "--backend uprobe needs BPF";
}

static void parse_life_cycle(struct record_arguments *arguments, const char *text, struct argp_state *state)
{
    static const char *const names[] = {
        [RECORDER_BY_BPF] = "bpf", [RECORDER_BY_PTRACE] = "ptrace", [RECORDER_BY_EITHER] = "auto"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (!strcmp(names[i], text)) {
            arguments->recorder.probes.life_cycle = (enum recorder_life_cycle)i;
            return;
        }
    }
    argp_error(state, "--life-cycle must be auto, bpf or ptrace, not '%s'", text);
}

static void parse_until(struct record_arguments *arguments, const char *text, struct argp_state *state)
{
    if (strcmp(text, "command") != 0 && strcmp(text, "all") != 0)
        argp_error(state, "--until must be command or all, not '%s'", text);
    arguments->recorder.targets.until_all = !strcmp(text, "all");
}

static void parse_when_behind(struct record_arguments *arguments, const char *text, struct argp_state *state)
{
    if (strcmp(text, "wait") != 0 && strcmp(text, "lose") != 0)
        argp_error(state, "--when-behind is wait or lose, not '%s'", text);
    arguments->when_behind = true;
    arguments->recorder.probes.waits = !strcmp(text, "wait");
    if (arguments->recorder.probes.waits)
        arguments->recorder.probes.needs_bpf =
            "--when-behind wait needs BPF, which sees whether a thread may wait";
}

static void parse_budget(struct record_arguments *arguments, const char *text, struct argp_state *state)
{
    double share = 0;

    arguments->has_budget = true;
    if (!strcmp(text, "none"))
        return;
    if (!number_parse_share(text, &share) || share <= 0)
        argp_error(state, "--budget must be a percentage or none, not '%s'", text);
    arguments->recorder.limits.budget = share;
    arguments->recorder.probes.needs_bpf = "--budget needs BPF";
}

static void parse_returns(struct record_arguments *arguments, const char *text, struct argp_state *state)
{
    static const char *const names[PLAN_RETURNS_MODES] = {
        [PLAN_RETURNS_INFER] = "infer", [PLAN_RETURNS_PROBE] = "probe", [PLAN_RETURNS_NONE] = "none",
        [PLAN_RETURNS_SITES] = "sites", [PLAN_RETURNS_EXACT] = "exact",
    };

    if (!strcmp(text, "auto")) {
        arguments->recorder.content.returns = PLAN_RETURNS_INFER;
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (!strcmp(names[i], text)) {
            arguments->recorder.content.returns = (enum plan_returns)i;
            return;
        }
    }
    argp_error(state, "--returns must be auto, exact, infer, probe, sites or none, not '%s'", text);
}

static void parse_tag(struct record_arguments *arguments, char *text, struct argp_state *state)
{
    if (!strchr(text, '=') || *text == '=')
        argp_error(state, "--tag must be KEY=VALUE, not '%s'", text);
    if (array_reserve(&arguments->tags, &arguments->tag_capacity, arguments->tag_count + 1))
        argp_failure(state, EXIT_FAILED, ENOMEM, "record");
    arguments->tags[arguments->tag_count++] = text;
}

static void check_target(const struct record_arguments *arguments, struct argp_state *state)
{
    if (arguments->recorder.probes.insists_on_inline && recorder_inline_refusal(&arguments->recorder))
        argp_error(state, "--backend inline cannot be used with %s (--backend auto then uses uprobes)",
                   recorder_inline_refusal(&arguments->recorder));
    if (arguments->recorder.probes.life_cycle == RECORDER_BY_PTRACE &&
        recorder_ptrace_refusal(&arguments->recorder))
        argp_error(state, "--life-cycle ptrace: %s", recorder_ptrace_refusal(&arguments->recorder));
    if (!arguments->command && !arguments->pids.count)
        argp_error(state, "no command and no process given (record -- COMMAND, or record -p PID)");
    if (arguments->command && arguments->pids.count)
        argp_error(state, "name either a command or processes (-p), not both");
}

/* Options without a value. */
static bool parse_switch(struct record_arguments *arguments, int key)
{
    switch (key) {
    case KEY_NO_RETURNS:
        arguments->recorder.content.returns = PLAN_RETURNS_INFER;
        return true;
    case KEY_NO_HOLD:
        arguments->recorder.targets.no_hold = true;
        return true;
    case KEY_GO:
        arguments->recorder.go.detail = GO_DETAIL_OPERATIONS;
        return true;
    case KEY_CALL_SITES:
        arguments->recorder.content.call_sites = true;
        return true;
    case KEY_FOLLOW:
    case KEY_NO_FOLLOW:
        arguments->recorder.targets.follow_children = key == KEY_FOLLOW;
        return true;
    case KEY_DRY_RUN:
        arguments->dry_run = true;
        return true;
    case KEY_KEEP_ARGUMENTS:
        arguments->recorder.content.keep_arguments = true;
        return true;
    case KEY_EXIT_STATUS:
        arguments->exit_status = true;
        return true;
    default:
        return false;
    }
}

/* What was not given depends on the target. */
static void set_defaults(struct record_arguments *arguments)
{
    if (!arguments->when_behind)
        arguments->recorder.probes.waits = !arguments->pids.count;
    if (arguments->recorder.content.returns == PLAN_RETURNS_EXACT &&
        arguments->recorder.probes.backend == RECORDER_UPROBE)
        arguments->recorder.content.returns = PLAN_RETURNS_SITES;
    if (!arguments->has_budget && arguments->pids.count)
        arguments->recorder.limits.budget = DEFAULT_BUDGET;
}

static error_t parse_record(int key, char *arg, struct argp_state *state)
{
    struct record_arguments *arguments = state->input;

    switch (key) {
    case 'n':
        arguments->recorder.run.name = arg;
        return 0;
    case 'p':
        pid_list_parse(&arguments->pids, arg, state);
        return 0;
    case KEY_DURATION:
        arguments->duration_ns = cli_parse_duration(state, "--duration", arg, 1);
        return 0;
    case KEY_UNTIL:
        parse_until(arguments, arg, state);
        return 0;
    case KEY_TIME:
        parse_times(arguments, arg, state);
        return 0;
    case KEY_BACKEND:
        parse_backend(arguments, arg, state);
        return 0;
    case KEY_LIFE_CYCLE:
        parse_life_cycle(arguments, arg, state);
        return 0;
    case KEY_WHEN_BEHIND:
        parse_when_behind(arguments, arg, state);
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
        for (size_t i = 0; i < RETENTION_CHILD; i++)
            state->child_inputs[i] = arguments;
        state->child_inputs[RETENTION_CHILD] = &arguments->recorder.storage.room.keep;
        return 0;
    case ARGP_KEY_ARG:
        if (pid_list_add_word(&arguments->pids, arg, state))
            return 0;
        /* the command; all that follows is its own */
        arguments->command = state->argv + state->next - 1;
        state->next = state->argc;
        return 0;
    case ARGP_KEY_END:
        check_target(arguments, state);
        set_defaults(arguments);
        return 0;
    default:
        return parse_switch(arguments, key) ? 0 : ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child record_children[] = {
    {&selection_argp, 0, NULL, 0},
    {&flight_argp, 0, NULL, 0},
    {&sync_argp, 0, NULL, 0},
    {&storing_argp, 0, NULL, 0},
    [RETENTION_CHILD] = {&retention_argp, 0, NULL, 0},
    {&cli_common_argp, 0, NULL, 0},
    {0},
};

const struct argp record_argp = {
    .options = record_options,
    .parser = parse_record,
    .args_doc = "-- COMMAND [ARG...]\n-p PID|NAME...",
    .doc =
        "Record the function calls and returns of a command, with its threads and child processes, from "
        "its first instruction to its end; or those of running processes.\vThe command's exit status is "
        "printed and stored; with --json its standard output goes to standard error. With -p, Ctrl-C, "
        "SIGTERM and SIGHUP end the recording. With a command they do not: the command receives Ctrl-C "
        "as usual, a signal sent to tracectl alone is passed on to it, and the recording continues "
        "until the command ends. A second signal ends the recording while the command continues. An "
        "ignored signal stays ignored. --keep-size, --keep-age and --keep-runs work as in 'tracectl gc' "
        "and apply during the recording; they never delete a run that is being recorded.",
    .children = record_children,
};

void record_arguments_init(struct record_arguments *arguments)
{
    *arguments = (struct record_arguments){.recorder = {.content.times = STREAM_TIMES_ANCHOR,
                                                        .targets.follow_children = true,
                                                        .probes.backend = RECORDER_INLINE,
                                                        .trigger.share = 1,
                                                        .probes.life_cycle = RECORDER_BY_EITHER,
                                                        .targets.output = -1}};
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

char *join_words(char *const *words, const char *separator)
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
