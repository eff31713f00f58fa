/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/analysis/loops.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "analyzer/diff/compare.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/filter_file.h"

/* ------------------------------------------------------------------------------------------ options */

enum {
    KEY_K = 0x200,
    KEY_FILTER,
    KEY_FILTER_FILE,
    KEY_CUSTOM,
    KEY_STRICT,
    KEY_MIN_REPEATS,
    KEY_WITH_RETURNS
};

static const struct argp_option options[] = {
    {"k", KEY_K, "K", 0, "Longest loop body to recognise, in entries (default 10)", 1},
    {"filter", KEY_FILTER, "SET[,SET...]", 0,
     "Keep functions in any of these sets (default: everything); prefix a set with '!' to exclude it; "
     "or a code as in the DiffTrace papers: 11.mem.ompcrit.cust.0K10",
     1},
    {"filter-file", KEY_FILTER_FILE, "FILE", 0, FILTER_FILE_HELP, 1},
    {"custom", KEY_CUSTOM, "REGEX", 0, "Also keep functions whose name matches (POSIX extended expression)",
     1},
    {"with-returns", KEY_WITH_RETURNS, 0, 0,
     "Keep returns (entries named 'return'); they are dropped by default", 1},
    {"strict", KEY_STRICT, 0, 0, "Form loops only after three equal blocks (Procedure 1 of the papers alone)",
     1},
    {"min-repeats", KEY_MIN_REPEATS, "N", 0,
     "Form loops after N equal blocks (default: three, or two if the body is a loop elsewhere)", 1},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct loops_arguments *arguments = state->input;

    switch (key) {
    case KEY_K:
        arguments->max_body = (unsigned)cli_parse_number(state, "--k", arg, 1, NLR_MAX_BODY);
        return 0;
    case KEY_FILTER:
        arguments->filter = arg;
        return 0;
    case KEY_FILTER_FILE:
        arguments->filter_file = arg;
        return 0;
    case KEY_CUSTOM:
        arguments->custom = arg;
        return 0;
    case KEY_WITH_RETURNS:
        arguments->with_returns = true;
        return 0;
    case KEY_STRICT:
        arguments->min_repeats = NLR_STRICT_REPEATS;
        return 0;
    case KEY_MIN_REPEATS:
        arguments->min_repeats = (unsigned)cli_parse_number(state, "--min-repeats", arg, 2, NLR_MAX_REPEATS);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp cli_loops_argp = {.options = options, .parser = parse, .help_filter = filter_file_help};

/* ------------------------------------------------------------------------------------------ reading */

void cli_loops_release(struct loops_input *input)
{
    loop_summary_release(&input->summary);
    cli_runs_close(input);
}

void cli_runs_close(struct loops_input *input)
{
    for (size_t i = 0; i < input->count; i++) {
        tracestore_run_release(&input->runs[i]);
        tracestore_free(input->sources[i].store);
    }
    free(input->runs);
    free(input->sources);
    free(input->completeness);
    input->count = 0;
}

int cli_runs_open(const char *const *runs, size_t count, struct loops_input *ret_input, struct error *err)
{
    ret_input->runs = calloc(count, sizeof(*ret_input->runs));
    ret_input->sources = calloc(count, sizeof(*ret_input->sources));
    ret_input->completeness = calloc(count, sizeof(*ret_input->completeness));
    if (!ret_input->runs || !ret_input->sources || !ret_input->completeness)
        return error_no_memory(err);
    for (size_t i = 0; i < count; i++) {
        struct loop_source *source = &ret_input->sources[i];
        int r;

        source->run = &ret_input->runs[i];
        ret_input->count = i + 1;
        r = cli_open_run(runs[i], TRACESTORE_READ, &source->store, &ret_input->runs[i], err);
        if (r >= 0)
            r = completeness_read(source->store, source->run->run_id, &ret_input->completeness[i], err);
        if (r < 0)
            return r;
    }
    return 0;
}

DEFINE_CLEANUP(cleanup_filter, struct filter *, filter_free)
DEFINE_CLEANUP(cleanup_library, struct filter_library *, filter_library_free)

/* The sets of the user's file are read when a filter may name them, or the file was named. */
static int make_filter(const struct loops_arguments *arguments, struct filter_library **ret_library,
                       struct filter **ret_filter, struct error *err)
{
    int r;

    if (!arguments->filter && !arguments->filter_file)
        return filter_new(NULL, arguments->custom, ret_filter, err);
    r = filter_file_read(arguments->filter_file, ret_library, err);
    return r < 0 ? r : filter_new_with(*ret_library, arguments->filter, arguments->custom, ret_filter, err);
}

int cli_loops_read(const struct loops_arguments *arguments, const char *const *runs, size_t count,
                   struct loops_input *ret_input, struct error *err)
{
    CLEANUP(cleanup_library) struct filter_library *library = NULL;
    CLEANUP(cleanup_filter) struct filter *filter = NULL;
    struct loop_options how = {.with_returns = arguments->with_returns,
                               .min_repeats = arguments->min_repeats};
    int r = make_filter(arguments, &library, &filter, err);

    if (r < 0)
        return r;
    how.filter = filter;
    how.max_body = arguments->max_body;
    if (!how.max_body)
        how.max_body = filter_max_body(filter) ? filter_max_body(filter) : NLR_DEFAULT_BODY;
    r = cli_runs_open(runs, count, ret_input, err);
    if (r >= 0)
        r = loop_summary_read(ret_input->sources, count, &how, &ret_input->summary, err);
    if (r >= 0 && loop_summary_keeps_nothing(&ret_input->summary))
        r = cli_loops_kept_nothing(err);
    return r == -EINVAL ? -EIO : r; /* -EINVAL is the filter's */
}

int cli_loops_kept_nothing(struct error *err)
{
    return error_say(err, -ENODATA,
                     "nothing to analyse: the filter keeps none of the called functions (tracectl top "
                     "RUN lists them)");
}

int cli_loops_fail(int code, const struct error *err)
{
    int status = cli_fail(err);

    return code == -EINVAL ? EXIT_USAGE : status;
}

/* ------------------------------------------------------------------------------------------ JSON */

static json_t *entry(const struct loop_summary *summary, const struct nlr_element *element)
{
    char name[24];

    if (element->kind == NLR_SYMBOL)
        return cli_json_text(symbols_name(&summary->symbols, element->id));
    if (element->kind == NLR_LOST)
        return json_pack("{s:b}", "unknown", 1);
    snprintf(name, sizeof(name), "L%" PRIu32, summary->table.numbers[element->id]);
    return json_pack("{s:s, s:o}", "loop", name, "count", cli_json_count(element->count));
}

json_t *cli_loops_entries(const struct loop_summary *summary, const struct nlr_element *elements,
                          size_t count)
{
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, entry(summary, &elements[i]));
    return array;
}

json_t *cli_loops_legend(const struct loop_summary *summary)
{
    const struct loop_table *table = &summary->table;
    json_t *legend = json_object();

    for (size_t number = 0; number < table->number_count; number++) {
        uint32_t id = table->numbered[number];
        char name[24];

        snprintf(name, sizeof(name), "L%zu", number);
        json_object_set_new(
            legend, name,
            cli_loops_entries(summary, loop_table_elements(table, id), table->bodies[id].length));
    }
    return legend;
}

static json_t *unknown_item(const char *kind, const char *side, const char *cause)
{
    json_t *item = json_object();

    json_object_set_new(item, "kind", json_string(kind));
    if (side)
        json_object_set_new(item, "run", json_string(side));
    json_object_set_new(item, "cause", cli_json_text(cause));
    return item;
}

json_t *cli_loops_json_gap(const char *thread, const char *side, const struct loop_gap *gap)
{
    json_t *item = unknown_item("lost events", side, gap->cause);

    json_object_set_new(item, "thread", cli_json_text(thread));
    json_object_set_new(item, "events", gap->events ? cli_json_count(gap->events) : json_null());
    return item;
}

void cli_loops_json_gaps(const struct run_loops *run, const char *side, json_t *array)
{
    for (size_t i = 0; i < run->blind_count; i++) {
        const struct blind_function *blind = &run->blind[i];
        json_t *item = unknown_item("function not recorded", side, blind->cause);

        json_object_set_new(item, "function", cli_json_text(blind->name));
        json_object_set_new(item, "from", cli_json_time((uint64_t)blind->from_ns));
        json_object_set_new(item, "to", cli_json_time((uint64_t)blind->to_ns));
        json_array_append_new(array, item);
    }
    for (size_t i = 0; i < run->loss_count; i++) {
        const struct unplaced_loss *loss = &run->losses[i];
        json_t *item = unknown_item("lost somewhere", side, loss->cause);

        json_object_set_new(item, "thread", *loss->thread ? cli_json_text(loss->thread) : json_null());
        json_object_set_new(item, "events", loss->events ? cli_json_count(loss->events) : json_null());
        json_array_append_new(array, item);
    }
    if (run->unfinished)
        json_array_append_new(array, unknown_item("unfinished run", side, "unfinished"));
}

const char *cli_loops_last_call(enum last_call last_call)
{
    static const char *const words[] = {"returned", "open", "unknown"};

    return words[last_call];
}

/* ------------------------------------------------------------------------------------------ text */

void cli_loops_text(const struct loop_summary *summary, const struct nlr_element *element, char *text,
                    size_t size)
{
    if (element->kind == NLR_SYMBOL)
        snprintf(text, size, "%s", symbols_demangled(&summary->symbols, element->id));
    else if (element->kind == NLR_LOST)
        snprintf(text, size, "?");
    else
        snprintf(text, size, "L%" PRIu32 " ^ %" PRIu64, summary->table.numbers[element->id], element->count);
}

void cli_loops_mark(const struct loop_summary *summary, const struct nlr_element *elements, size_t count,
                    bool *wanted)
{
    const struct loop_table *table = &summary->table;

    for (size_t i = 0; i < count; i++) {
        if (elements[i].kind != NLR_LOOP || wanted[table->numbers[elements[i].id]])
            continue;
        wanted[table->numbers[elements[i].id]] = true;
        cli_loops_mark(summary, loop_table_elements(table, elements[i].id),
                       table->bodies[elements[i].id].length, wanted);
    }
}

void cli_loops_print_legend(const struct loop_summary *summary, const bool *wanted)
{
    const struct loop_table *table = &summary->table;

    for (size_t number = 0; number < table->number_count; number++) {
        uint32_t id = table->numbered[number];
        char text[512];

        if (wanted && !wanted[number])
            continue;
        text_print(stdout, "L%zu = [", number);
        for (uint32_t i = 0; i < table->bodies[id].length; i++) {
            cli_loops_text(summary, loop_table_elements(table, id) + i, text, sizeof(text));
            text_print(stdout, "%s%s", i ? " " : "", text);
        }
        puts("]");
    }
}

static void print_events(uint64_t events)
{
    if (events)
        text_print(stdout, "%" PRIu64 " events", events);
    else
        fputs("an unknown number of events", stdout);
}

void cli_loops_print_gaps(const struct run_loops *run, const char *side)
{
    enum { MOST_BLIND = 8 };
    const char *space = *side ? " " : "";

    for (size_t i = 0; i < run->blind_count && i < MOST_BLIND; i++)
        text_print(stdout, "unknown: %s was not recorded all the time in the %s%srun (%s)\n",
                   run->blind[i].name, side, space, run->blind[i].cause);
    if (run->blind_count > MOST_BLIND)
        text_print(stdout, "unknown: %zu more functions (tracectl show %" PRId64 " lists them)\n",
                   run->blind_count - MOST_BLIND, run->run_id);
    for (size_t i = 0; i < run->loss_count; i++) {
        text_print(stdout, "unknown: the %s%srun lost ", side, space);
        print_events(run->losses[i].events);
        text_print(stdout, " of %s%s somewhere (%s)\n",
                   *run->losses[i].thread ? "thread " : "unknown threads", run->losses[i].thread,
                   run->losses[i].cause);
    }
    if (run->unfinished)
        text_print(stdout,
                   "unknown: the %s%srun is unfinished; events after the last stored ones are missing\n",
                   side, space);
}
