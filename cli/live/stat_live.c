/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/live/stat_live.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/output.h"
#include "collector/process/rank_processes.h"

enum { SAMPLES_DEFAULT = 2, INTERVAL_MS_DEFAULT = 100, SAMPLES_MAX = 1000, NS_PER_MS = 1000000 };

static const struct argp_option option_table[] = {
    {"pid", 'p', "PID|NAME...", 0,
     "Show running processes, by number or by name; for a launcher (mpiexec), the ranks that it launched", 1},
    {"children", 'C', 0, 0, "Include child processes", 1},
    {"samples", 'S', "N", 0, "Number of samples, to distinguish moving threads from stuck ones (default 2)",
     1},
    {"interval", 'I', "TIME", 0, "Time between samples; a bare number is milliseconds (default 100ms)", 1},
    {"system", 'Y', 0, 0, "Include the Go runtime's own goroutines", 1},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct stat_live_options *input = state->input;

    switch (key) {
    case 'p':
        pid_list_parse(&input->pids, arg, state);
        return 0;
    case 'C':
        input->children = true;
        return 0;
    case 'S':
        input->samples = (unsigned)cli_parse_number(state, "--samples", arg, 1, SAMPLES_MAX);
        return 0;
    case 'I':
        input->interval_ms = (unsigned)(cli_parse_duration_in(state, "--interval", arg, 0, 1e-3) / NS_PER_MS);
        return 0;
    case 'Y':
        input->system = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp stat_live_argp = {.options = option_table, .parser = parse};

void stat_live_defaults(struct stat_live_options *options)
{
    *options = (struct stat_live_options){.samples = SAMPLES_DEFAULT, .interval_ms = INTERVAL_MS_DEFAULT};
}

void stat_live_options_release(struct stat_live_options *options)
{
    pid_list_release(&options->pids);
}

/* ---------------------------------------------------------------------------------------------- processes
 */

/* The processes that one that was named stands for. */
static int expand(const struct stat_live_options *options, pid_t pid, struct pid_list *list,
                  struct error *err)
{
    AUTO_FREE pid_t *found = NULL;
    size_t count = 0;
    int r = options->children ? process_family(pid, &found, &count, err)
                              : rank_processes(pid, &found, &count, err);

    for (size_t i = 0; i < count && !r; i++)
        if (!pid_list_add(list, found[i]))
            r = error_no_memory(err);
    if (!r && !count && !pid_list_add(list, pid))
        r = error_no_memory(err);
    return r;
}

static void wait_ms(unsigned ms)
{
    struct timespec left = {ms / 1000, (long)(ms % 1000) * 1000000};

    while (nanosleep(&left, &left) && errno == EINTR)
        ;
}

/* Programs that hang often wait with all processors busy. The sampler must not wait for
 * them: the answer takes tenths of a second of one processor. Without the permission it takes longer. */
static void go_before_others(void)
{
    setpriority(PRIO_PROCESS, 0, -15);
}

int stat_live_sample(const struct stat_live_options *options, struct stack_sampler **ret_sampler,
                     struct sample_set **ret_set, struct error *err)
{
    CLEANUP(pid_list_release) struct pid_list pids = {0};
    struct stack_sampler *sampler = NULL;
    struct sample_set *set = NULL;
    int r = 0;

    go_before_others();
    for (size_t i = 0; i < options->pids.count && !r; i++)
        r = expand(options, options->pids.items[i], &pids, err);
    if (!r)
        r = stack_sampler_new(&(struct stack_sampler_options){.pids = pids.items,
                                                              .count = pids.count,
                                                              .system = options->system},
                              &sampler, err);
    for (unsigned i = 0; i < options->samples && !r; i++) {
        if (i)
            wait_ms(options->interval_ms);
        r = stack_sampler_sample(sampler, err);
    }
    if (!r && sample_set_new(&set))
        r = error_no_memory(err);
    if (!r)
        r = stack_sampler_fill(sampler, set, err);
    if (r) {
        sample_set_free(set);
        stack_sampler_free(sampler);
        return r;
    }
    *ret_sampler = sampler;
    *ret_set = set;
    return 0;
}

/* ------------------------------------------------------------------------------------- what is not known
 */

/* Where lines go. */
struct line_printer {
    void (*print)(void *context, const char *line);
    void *context;
};

static void print_refusal(void *context, pid_t pid, const char *reason)
{
    const struct line_printer *printer = context;
    char line[400];

    snprintf(line, sizeof(line), "process %d: threads are shown instead of goroutines: %s", (int)pid, reason);
    printer->print(printer->context, line);
}

static void print_unknown(const struct stack_sampler *sampler, struct line_printer printer)
{
    struct stack_sampler_counts counts = stack_sampler_count(sampler);
    char line[200];

    stack_sampler_refusals(sampler, print_refusal, &printer);
    if (!counts.uncertain)
        return;
    snprintf(line, sizeof(line),
             "no stack for %zu of %zu threads: they could not be paused, have ended, or run 32-bit code",
             counts.uncertain, counts.threads);
    printer.print(printer.context, line);
}

static void print_line(void *context, const char *line)
{
    text_print(stderr, "tracectl: %s\n", line);
}

void stat_live_print_unknown(const struct stack_sampler *sampler)
{
    if (cli.verbosity >= 0)
        print_unknown(sampler, (struct line_printer){.print = print_line});
}

static void append_line(void *context, const char *line)
{
    json_array_append_new(context, cli_json_text(line));
}

json_t *stat_live_json_unknown(const struct stack_sampler *sampler)
{
    json_t *lines = json_array();

    print_unknown(sampler, (struct line_printer){append_line, lines});
    return lines;
}

json_t *stat_live_json_cost(const struct stack_sampler *sampler)
{
    struct stack_sampler_counts counts = stack_sampler_count(sampler);

    return json_pack("{s:I, s:I, s:I, s:I, s:f}", "threads", (json_int_t)counts.threads, "uncertain",
                     (json_int_t)counts.uncertain, "system_goroutines", (json_int_t)counts.system, "stopped",
                     (json_int_t)counts.stopped, "longest_stop_us", (double)counts.longest_stop_ns / 1000);
}
