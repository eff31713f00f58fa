/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl slow RUN FUNCTION: the slowest calls of a function, where they came from, and what took the time. */
#include <errno.h>

#include "base/error.h"
#include "cli/analysis/slow_output.h"
#include "cli/common/command.h"
#include "cli/common/output.h"

enum { DEFAULT_CALLS = 5, DEFAULT_DEPTH = 4, DEEPEST = 200, KEY_DEPTH = 256 };

struct slow_input {
    const char *run, *function;
    size_t most, depth;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct slow_input *input = state->input;

    switch (key) {
    case 'n':
        input->most = cli_parse_number(state, "--limit", arg, 1, 1000000);
        return 0;
    case KEY_DEPTH:
        input->depth = cli_parse_number(state, "--depth", arg, 0, DEEPEST);
        return 0;
    case ARGP_KEY_ARG:
        if (input->function)
            argp_error(state, "unexpected argument '%s'", arg);
        *(input->run ? &input->function : &input->run) = arg;
        return 0;
    case ARGP_KEY_END:
        if (!input->function)
            argp_error(state, "slow needs a run and a function (tracectl top RUN lists functions)");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"limit", 'n', "N", 0, "Show the N slowest calls (default 5)", 1},
    {"depth", KEY_DEPTH, "N", 0, "Show what they called up to N levels below them (default 4, at most 200)",
     1},
    {0},
};
static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "RUN FUNCTION",
    .doc =
        "Show the slowest calls of a function: when and in which thread each began, the calls it was in, and how long "
        "the functions that it called took.\vFUNCTION is a name, mangled or demangled. Under each call, TOTAL is the "
        "time from calls to their returns and SELF the time without what they called; calls of one function in the "
        "same place are one line, those that took most first. The text shows 8 functions below each call, JSON all.\n\n"
        "Calls that did not return are counted, and not compared. Times need record --time full. A return "
        "that was inferred has no time of its own: times are then ranges, such as '0 to 1.500 ms' or 'over 2.000 "
        "s', and '?' if nothing is known; calls are ordered by their lower bounds. In JSON, duration_ns, total_ns and "
        "self_ns are then null, with bounds under other keys.",
    .children = cli_common_children,
};

static int print(const struct slow_output *output, struct error *err)
{
    struct cli_pager pager;
    int r;

    if (cli.json) {
        slow_print_json(output);
        return 0;
    }
    cli_pager_begin(&pager);
    r = slow_print_text(output);
    cli_pager_end(&pager);
    return r ? error_no_memory(err) : 0;
}

static int show(struct tracestore *store, const struct tracestore_run *run, const struct slow_input *input,
                struct error *err)
{
    struct slow_calls calls = {0};
    struct tracestore_function *functions = NULL;
    struct tracestore_thread *threads = NULL;
    struct slow_output output = {.run = run, .function = input->function, .calls = &calls};
    int r = completeness_read(store, run->run_id, &output.completeness, err);

    if (!r)
        r = slow_calls_read(store, run->run_id, input->function, input->most, input->depth, &calls, err);
    if (!r && !calls.returned && !calls.unreturned)
        r = error_say(err, -ENOENT, "no calls of a function '%s' in run %s (tracectl top lists functions)",
                      input->function, input->run);
    if (!r)
        r = tracestore_functions(store, run->run_id, &functions, &output.function_count, err);
    if (!r)
        r = tracestore_threads(store, run->run_id, &threads, &output.thread_count, err);
    output.functions = functions;
    output.threads = threads;
    if (!r)
        r = print(&output, err);
    tracestore_functions_free(functions, output.function_count);
    tracestore_threads_free(threads, output.thread_count);
    slow_calls_release(&calls);
    return r;
}

static int run(int argc, char **argv)
{
    struct slow_input input = {.most = DEFAULT_CALLS, .depth = DEFAULT_DEPTH};
    AUTO_STORE struct tracestore *store = NULL;
    AUTO_RUN struct tracestore_run run = {0};
    struct error err = {0};

    cli_parse(&cmd_slow, argc, argv, &input);
    if (cli_open_run(input.run, TRACESTORE_READ, &store, &run, &err) < 0 ||
        show(store, &run, &input, &err) < 0)
        return cli_fail(&err);
    return cli_finish(EXIT_NOTHING_FOUND);
}

const struct command cmd_slow = {
    .name = "slow",
    .summary = "show the slowest calls of a function, and what took the time",
    .argp = &argp,
    .examples =
        "Show where the time of the slowest calls of a function went:\n"
        "  tracectl slow latest serve_request\n"
        "Show the 20 slowest, with their callees only:\n"
        "  tracectl slow -n 20 --depth 1 latest serve_request\n",
    .run = run,
};
