/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/cluster/objects.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/common/command.h"

/* ------------------------------------------------------------------------------------------ options */

enum { KEY_ATTRIBUTES = 0x280, KEY_PROCESSES };

static const struct argp_option options[] = {
    {"attributes", KEY_ATTRIBUTES, "UNIT.FREQ", 0,
     "Attributes to compare: entries of the summaries (sing) or pairs of neighbours (doub), with their "
     "frequency (actual), its order of magnitude (log10), or neither (noFreq): sing.actual, doub.log10, "
     "... (default sing.noFreq)",
     2},
    {"processes", KEY_PROCESSES, 0, 0, "Compare processes; each has the attributes of all its threads", 2},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct objects_arguments *arguments = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &arguments->loops;
        arguments->kind = (struct attribute_kind){ATTRIBUTE_SINGLE, FREQUENCY_NONE};
        return 0;
    case KEY_ATTRIBUTES:
        if (attribute_kind_parse(arg, &arguments->kind) < 0)
            argp_error(state,
                       "--attributes must be sing or doub, a dot, and actual, log10 or noFreq, not '%s'",
                       arg);
        return 0;
    case KEY_PROCESSES:
        arguments->processes = true;
        return 0;
    case ARGP_KEY_ARG:
        if (arguments->run)
            argp_usage(state);
        arguments->run = arg;
        return 0;
    case ARGP_KEY_END:
        if (!arguments->run)
            argp_usage(state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child children[] = {
    {&cli_loops_argp, 0, NULL, 0}, {&cli_common_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {.options = options, .parser = parse, .children = children};
const struct argp_child cli_objects_children[] = {{&argp, 0, NULL, 0}, {0}};

/* ------------------------------------------------------------------------------------------ objects */

void cli_objects_release(struct objects *objects)
{
    for (size_t i = 0; i < objects->count; i++) {
        free(objects->labels[i]);
        attribute_set_release(&objects->sets[i]);
    }
    free(objects->labels);
    free(objects->sets);
    attribute_table_release(&objects->table);
    *objects = (struct objects){0};
}

static size_t process_length(const char *label)
{
    return strcspn(label, ".");
}

static bool same_process(const char *a, const char *b)
{
    return process_length(a) == process_length(b) && !strncmp(a, b, process_length(a));
}

/* What the threads have together. `sets` are as many empty sets, which the caller releases. */
static int unite(struct objects *objects, struct attribute_kind kind, const struct thread_loops *threads,
                 size_t count, struct attribute_set *sets)
{
    for (size_t i = 0; i < count; i++) {
        int r = attribute_set_of(&objects->table, kind, &threads[i].loops, &sets[i]);

        if (r < 0)
            return r;
    }
    return attribute_set_union(sets, count, &objects->sets[objects->count]);
}

/* Adds the object that these threads are. */
static int add_object(struct objects *objects, struct attribute_kind kind, const struct thread_loops *threads,
                      size_t count)
{
    const char *label = threads->label;
    struct attribute_set *sets = calloc(count, sizeof(*sets));
    int r = sets ? unite(objects, kind, threads, count, sets) : -ENOMEM;

    for (size_t i = 0; sets && i < count; i++)
        attribute_set_release(&sets[i]);
    free(sets);
    if (r < 0)
        return r;
    objects->labels[objects->count++] = strndup(label, objects->processes ? process_length(label) : SIZE_MAX);
    return objects->labels[objects->count - 1] ? 0 : -ENOMEM;
}

/* Threads of a process are neighbours. */
static int read_objects(struct objects *objects, struct attribute_kind kind, const struct run_loops *run)
{
    int r = 0;

    objects->labels = calloc(run->thread_count + 1, sizeof(*objects->labels));
    objects->sets = calloc(run->thread_count + 1, sizeof(*objects->sets));
    if (!objects->labels || !objects->sets)
        return -ENOMEM;
    for (size_t first = 0, next; first < run->thread_count && r == 0; first = next) {
        const char *label = run->threads[first].label;

        for (next = first + 1;
             objects->processes && next < run->thread_count && same_process(label, run->threads[next].label);)
            next++;
        r = add_object(objects, kind, run->threads + first, next - first);
    }
    return r;
}

/* Threads in the order of the summary; a process has what at least one of its threads has. Fails with -ENOMEM
 * or -EOVERFLOW. Release also after a failure. */
static int cli_objects_of(const struct objects_arguments *arguments, const struct run_loops *run,
                          struct objects *ret_objects, struct error *err)
{
    int r;

    *ret_objects = (struct objects){.processes = arguments->processes};
    r = read_objects(ret_objects, arguments->kind, run);
    return r < 0 ? error_set(err, r, NULL, "collecting the attributes of run %" PRId64, run->run_id) : 0;
}

int cli_objects_read(const struct objects_arguments *arguments, struct loops_input *ret_input,
                     struct objects *ret_objects, struct error *err)
{
    int r = cli_loops_read(&arguments->loops, &arguments->run, 1, ret_input, err);

    return r < 0 ? r : cli_objects_of(arguments, &ret_input->summary.runs[0], ret_objects, err);
}

const char *cli_objects_key(const struct objects *objects)
{
    return objects->processes ? "processes" : "threads";
}

json_t *cli_objects_labels(const struct objects *objects)
{
    json_t *array = json_array();

    for (size_t i = 0; i < objects->count; i++)
        json_array_append_new(array, cli_json_text(objects->labels[i]));
    return array;
}

/* ------------------------------------------------------------------------------------------ unknowns */

json_t *cli_objects_json_unknown(const struct run_loops *run)
{
    json_t *unknown = json_array();

    for (size_t i = 0; i < run->thread_count; i++)
        for (size_t gap = 0; gap < run->threads[i].gap_count; gap++)
            json_array_append_new(
                unknown, cli_loops_json_gap(run->threads[i].label, NULL, &run->threads[i].gaps[gap]));
    cli_loops_json_gaps(run, NULL, unknown);
    return unknown;
}

void cli_objects_print_unknown(const struct loops_input *input)
{
    const struct run_loops *run = &input->summary.runs[0];

    completeness_print(input->completeness, 1);
    for (size_t i = 0; i < run->thread_count; i++) {
        const struct thread_loops *thread = &run->threads[i];

        if (thread->gap_count)
            text_print(
                stdout, "unknown: thread %s lost events at %zu place%s (%s); only the rest is compared\n",
                thread->label, thread->gap_count, thread->gap_count == 1 ? "" : "s", thread->gaps[0].cause);
    }
    cli_loops_print_gaps(run, "");
}

/* ------------------------------------------------------------------------------------------ attributes */

static json_t *entry_json(const struct loop_summary *summary, const struct attribute_entry *entry)
{
    char name[24];

    if (entry->kind == NLR_SYMBOL)
        return cli_json_text(symbols_name(&summary->symbols, entry->id));
    snprintf(name, sizeof(name), "L%" PRIu32, summary->table.numbers[entry->id]);
    return json_pack("{s:s}", "loop", name);
}

json_t *cli_attribute_json(const struct loop_summary *summary, const struct attribute *attribute)
{
    json_t *entries = json_array(), *item = json_pack("{s:o}", "entries", entries);

    json_array_append_new(entries, entry_json(summary, &attribute->entries[0]));
    if (attribute->kind.unit == ATTRIBUTE_DOUBLE)
        json_array_append_new(entries, entry_json(summary, &attribute->entries[1]));
    if (attribute->kind.frequency != FREQUENCY_NONE)
        json_object_set_new(item, attribute->kind.frequency == FREQUENCY_LOG10 ? "log10" : "frequency",
                            cli_json_count(attribute->frequency));
    return item;
}
