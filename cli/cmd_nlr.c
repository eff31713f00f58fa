/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl nlr: what the threads of a run did, as sequences of functions and loops. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cli/command.h"
#include "cli/loops.h"

struct nlr_arguments {
    struct loops_arguments loops;
    const char *run, *thread;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct nlr_arguments *arguments = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &arguments->loops;
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num == 0)
            arguments->run = arg;
        else if (state->arg_num == 1)
            arguments->thread = arg;
        else
            argp_usage(state);
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_usage(state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static bool is_wanted(const struct nlr_arguments *arguments, const struct thread_loops *thread)
{
    return !arguments->thread || !strcmp(arguments->thread, thread->label);
}

static void print_json(const struct nlr_arguments *arguments, const struct loop_summary *summary)
{
    const struct run_loops *run = &summary->runs[0];
    json_t *threads = json_array(), *unknown = json_array();
    AUTO_JSON json_t *document =
        json_pack("{s:o, s:o, s:o, s:o}", "run", json_integer(run->run_id), "threads", threads, "loops",
                  cli_loops_legend(summary), "unknown", unknown);

    for (size_t i = 0; i < run->thread_count; i++) {
        const struct thread_loops *thread = &run->threads[i];
        json_t *item = json_object();

        if (!is_wanted(arguments, thread)) {
            json_decref(item);
            continue;
        }
        json_object_set_new(item, "thread", cli_json_text(thread->label));
        json_object_set_new(item, "entries",
                            cli_loops_entries(summary, thread->loops.elements, thread->loops.count));
        json_object_set_new(item, "events", cli_json_count(thread->events));
        json_object_set_new(item, "kept", cli_json_count(thread->kept));
        json_object_set_new(item, "last_call", json_string(cli_loops_last_call(thread->last_call)));
        json_array_append_new(threads, item);
        for (size_t gap = 0; gap < thread->gap_count; gap++)
            json_array_append_new(unknown, cli_loops_json_gap(thread->label, NULL, &thread->gaps[gap]));
    }
    cli_loops_json_gaps(run, NULL, unknown);
    cli_json_print(document);
}

static void print_thread(const struct loop_summary *summary, const struct thread_loops *thread, bool colour)
{
    const char *bold = colour ? "\033[1m" : "", *plain = colour ? "\033[0m" : "";
    size_t gap = 0;
    char text[512];

    printf("%sthread %s%s  %" PRIu64 " events, %" PRIu64 " kept, %zu entries\n", bold, thread->label, plain,
           thread->events, thread->kept, thread->loops.count);
    for (size_t i = 0; i < thread->loops.count; i++) {
        const struct nlr_element *element = &thread->loops.elements[i];

        cli_loops_text(summary, element, text, sizeof(text));
        printf("  %s", text);
        if (element->kind == NLR_LOST && thread->gaps[gap].events)
            printf("  %" PRIu64 " events are missing: %s", thread->gaps[gap].events, thread->gaps[gap].cause);
        else if (element->kind == NLR_LOST)
            printf("  events are missing: %s", thread->gaps[gap].cause);
        gap += element->kind == NLR_LOST;
        if (i + 1 == thread->loops.count && thread->last_call == LAST_CALL_OPEN)
            fputs("  (never returned)", stdout);
        putchar('\n');
    }
}

static void print_text(const struct nlr_arguments *arguments, const struct loop_summary *summary)
{
    AUTO_FREE bool *wanted = calloc(summary->table.number_count + 1, sizeof(*wanted));
    const struct run_loops *run = &summary->runs[0];
    bool colour = cli_colour();

    for (size_t i = 0; i < run->thread_count && !cli_output_broken(); i++) {
        const struct thread_loops *thread = &run->threads[i];

        if (!is_wanted(arguments, thread))
            continue;
        print_thread(summary, thread, colour);
        putchar('\n');
        if (wanted)
            cli_loops_mark(summary, thread->loops.elements, thread->loops.count, wanted);
    }
    cli_loops_print_legend(summary, wanted);
    cli_loops_print_gaps(run, "");
}

static bool has_thread(const struct nlr_arguments *arguments, const struct run_loops *run)
{
    for (size_t i = 0; i < run->thread_count; i++)
        if (is_wanted(arguments, &run->threads[i]))
            return true;
    return !arguments->thread;
}

static const struct argp_child children[] = {
    {&cli_loops_argp, 0, NULL, 0}, {&cli_common_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
    .parser = parse,
    .args_doc = "RUN [P.T]",
    .doc =
        "Show what the threads of a run did, or thread P.T alone, as a sequence of functions and loops.\v"
        "L0 ^ 16 is sixteen times what the legend says of L0. Expanding all loops gives the calls back "
        "that the filter keeps, in order. ? is a place where events are missing. A loop means the same in "
        "all threads; to that end all threads are read, also for P.T alone.",
    .children = children,
};

static int run(int argc, char **argv)
{
    CLEANUP(cli_loops_release) struct loops_input input = {0};
    struct nlr_arguments arguments = {0};
    struct error err = {0};
    int r;

    cli_parse(&cmd_nlr, argc, argv, &arguments);
    r = cli_loops_read(&arguments.loops, &arguments.run, 1, &input, &err);
    if (r >= 0 && !has_thread(&arguments, &input.summary.runs[0]))
        r = error_say(&err, -ENOENT,
                      "finding thread '%s' in run %s: there is none (tracectl show %s lists them)",
                      arguments.thread, arguments.run, arguments.run);
    if (r < 0)
        return cli_loops_fail(r, &err);
    if (cli.json)
        print_json(&arguments, &input.summary);
    else
        print_text(&arguments, &input.summary);
    return cli_finish(EXIT_NOTHING_FOUND);
}

const struct command cmd_nlr = {
    .name = "nlr",
    .summary = "show the loops of a run's threads",
    .argp = &argp,
    .run = run,
};
