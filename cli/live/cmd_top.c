/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl top: functions by calls, of a run from its catalog, or live (top_live.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/number.h"
#include "cli/analysis/top_run.h"
#include "cli/common/command.h"
#include "cli/common/output.h"
#include "cli/live/top_live.h"

struct top_input {
    const char *run, *function;
    enum time_order sort;
    bool sorted; /* --sort was given */
    struct top_options live;
};

enum { DELAY_MIN_NS = 100000000 };

enum { KEY_DELAY = 256, KEY_ITERATIONS, KEY_BUDGET, KEY_FUNCTIONS, KEY_EXCLUDE, KEY_IMAGES, KEY_SORT };

static double parse_budget(const char *text, struct argp_state *state)
{
    double share = 0;

    if (!number_parse_share(text, &share) || share < 0.0001)
        argp_error(state, "--budget must be a number from 0.01 to 1000, not '%s'", text);
    return share;
}

static void check(const struct top_input *input, struct argp_state *state)
{
    const int subjects = (input->run != NULL) + (input->live.pids.count > 0) + (input->live.config != NULL);

    if (!subjects)
        argp_error(state,
                   "no run, process or daemon given (top RUN, top -p PID, or top -c FILE; tracectl runs "
                   "lists runs)");
    if (subjects > 1)
        argp_error(state, "name only one of: a run, -p, -c");
    if (input->sorted && !input->run)
        argp_error(state, "--sort is for runs: live functions are counted, and not timed");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct top_input *input = state->input;
    struct top_options *live = &input->live;

    switch (key) {
    case 'n':
        live->limit = cli_parse_number(state, "--limit", arg, 0, 1000000000);
        return 0;
    case 'p':
        pid_list_parse(&live->pids, arg, state);
        return 0;
    case 'c':
        live->config = arg;
        return 0;
    case 'b':
        live->batch = true;
        return 0;
    case KEY_SORT:
        if (!top_run_parse_sort(arg, &input->sort))
            argp_error(state, "--sort must be calls, total, self, p99 or max, not '%s'", arg);
        input->sorted = true;
        return 0;
    case KEY_DELAY:
        live->delay_ns = cli_parse_duration(state, "--delay", arg, DELAY_MIN_NS);
        return 0;
    case KEY_ITERATIONS:
        live->iterations = cli_parse_number(state, "--iterations", arg, 1, 1000000000);
        return 0;
    case KEY_BUDGET:
        live->budget = parse_budget(arg, state);
        return 0;
    case KEY_FUNCTIONS:
        function_choice_parse(function_choice_only, &live->choice, arg, state);
        return 0;
    case KEY_EXCLUDE:
        function_choice_parse(function_choice_exclude, &live->choice, arg, state);
        return 0;
    case KEY_IMAGES:
        function_choice_parse(function_choice_images, &live->choice, arg, state);
        return 0;
    case ARGP_KEY_ARG:
        if (pid_list_add_word(&live->pids, arg, state))
            return 0;
        if (input->function)
            argp_error(state, "unexpected argument '%s'", arg);
        if (input->run)
            input->function = arg;
        else
            input->run = arg;
        return 0;
    case ARGP_KEY_END:
        check(input, state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"limit", 'n', "N", 0, "Show the first N functions (default 20, 0: all; a screen shows as many as fit)",
     1},
    {"sort", KEY_SORT, "calls|total|self|p99|max", 0,
     "Of a run: the order (default calls). Ranges of time are ordered by their lower bounds", 1},
    {"pid", 'p', "PID|NAME...", 0,
     "Count the calls of running processes, by number or by name, and their children", 2},
    {"config", 'c', "FILE", 0, "Show the functions recorded by the daemon of FILE", 2},
    {"batch", 'b', 0, 0, "Print one table after another instead of a full-screen display", 2},
    {"delay", KEY_DELAY, "TIME", 0, "Time between updates (default 1s)", 2},
    {"iterations", KEY_ITERATIONS, "N", 0, "End after N updates", 2},
    {"budget", KEY_BUDGET, "PCT", 0,
     "With -p: limit of the counting cost, in percent of the processes' CPU time (default 5). Functions "
     "that are called too often for it are not counted for a time",
     2},
    {"functions", KEY_FUNCTIONS, "REGEX", 0, "With -p: count only functions whose name matches", 2},
    {"exclude", KEY_EXCLUDE, "REGEX", 0, "With -p: do not count functions whose name matches", 2},
    {"images", KEY_IMAGES, "main|all|GLOB[,GLOB...]", 0,
     "With -p: images to count, as for record (default main)", 2},
    {0},
};
static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "RUN [FUNCTION]\n-p PID|NAME...\n-c FILE",
    .doc =
        "List the most-called functions of a run, with their durations if every event has a time (record "
        "--time full), or how long the calls of one function took; or, until Ctrl-C, list the most-called "
        "functions of running processes.\vTIME is the duration of calls that returned, including the "
        "functions they called (recursive calls count again); SELF is without those. P50 and P99 are the "
        "durations that half and 99 percent of these calls do not exceed, MAX is the longest call. A return "
        "that was inferred has no time of its own: times are then ranges, such as '0 to 1.500 ms' or 'over "
        "2.000 s', and '?' if nothing is known; in JSON, they are null, with bounds under other keys. With "
        "--sort or FUNCTION, times are shown of every run.\n\n"
        "A function that had no probe at times, to stay within a budget, is listed with the calls that were "
        "not recorded: '~' is an estimate, from the rate that was measured before its probe was removed. "
        "Functions are ordered by the sum.\n\n"
        "FUNCTION is a name, mangled or demangled. The chart shows how many calls took from one power of two "
        "of nanoseconds to the next.\n\n"
        "With -p the calls are counted in the kernel and nothing is stored. PROBE is traced (each call "
        "is counted), limited (counted, up to a limit) or excluded (called too often for the budget, no "
        "probe). ~ marks the rate last measured, before the probe was removed. Keys: arrows, Page Up and "
        "Down, q. With --json, one document per line.",
    .children = cli_common_children,
};

static int run(int argc, char **argv)
{
    struct top_input input = {
        .live = {.limit = 20, .delay_ns = 1000000000, .budget = 0.05, .batch = !isatty(STDOUT_FILENO)}};
    struct error err = {0};
    int r;

    cli_parse(&cmd_top, argc, argv, &input);
    input.live.batch |= cli.json;
    if (input.run)
        r = top_run(&(struct top_run_options){input.run, input.function, input.sort, input.live.limit}, &err);
    else
        r = input.live.config ? top_daemon(&input.live, &err) : top_processes(&input.live, &err);
    pid_list_release(&input.live.pids);
    function_choice_release(&input.live.choice);
    return r < 0 ? cli_fail(&err) : cli_finish(EXIT_NOTHING_FOUND);
}

const struct command cmd_top = {
    .name = "top",
    .summary = "list the most-called functions of a run or a live process",
    .argp = &argp,
    .examples =
        "List the most-called functions of the newest run:\n"
        "  tracectl top latest\n"
        "List the functions that took most time by themselves:\n"
        "  tracectl top --sort self latest\n"
        "Show how long the calls of one function took:\n"
        "  tracectl top latest serve_request\n"
        "Watch a running process:\n"
        "  tracectl top -p redis-server\n"
        "Print three tables, one every two seconds:\n"
        "  tracectl top -b --delay 2s --iterations 3 -p 1234\n",
    .run = run,
};
