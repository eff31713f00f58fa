/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl lattice: which groups of a run's threads share what, as a concept lattice. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "analyzer/cluster/entry_text.h"
#include "analyzer/cluster/lattice.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/cluster/objects.h"
#include "cli/common/command.h"

enum { KEY_DOT = 0x300, KEY_FULL, KEY_MAX_CONCEPTS };
enum { MOST_NAMES = 20 };

struct lattice_arguments {
    struct objects_arguments objects;
    size_t limit;
    bool dot, full;
};

static const struct argp_option options[] = {
    {"dot", KEY_DOT, 0, 0, "Print the lattice in Graphviz format", 0},
    {"full", KEY_FULL, 0, 0,
     "Do not shorten lists of names; with --json, list all threads and attributes of each concept", 0},
    {"max-concepts", KEY_MAX_CONCEPTS, "N", 0, "Fail if there are more than N concepts (default 100000)", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct lattice_arguments *arguments = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &arguments->objects;
        arguments->limit = LATTICE_DEFAULT_LIMIT;
        return 0;
    case KEY_DOT:
        arguments->dot = true;
        return 0;
    case KEY_FULL:
        arguments->full = true;
        return 0;
    case KEY_MAX_CONCEPTS:
        arguments->limit = cli_parse_number(state, "--max-concepts", arg, 1, UINT32_MAX);
        return 0;
    case ARGP_KEY_END:
        if (arguments->dot && cli.json)
            argp_error(state, "--dot and --json cannot be combined");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ------------------------------------------------------------------------------------------ what is shown */

struct view {
    const struct lattice_arguments *arguments;
    const struct loops_input *input;
    const struct loop_summary *summary; /* of the input */
    const struct objects *objects;
    struct lattice lattice;
    struct lattice_objects members;
    uint32_t *order, *place; /* concepts from the top to the bottom; the place of each */
};

static void view_release(struct view *view)
{
    lattice_release(&view->lattice);
    lattice_objects_release(&view->members);
    free(view->order);
    free(view->place);
}

static int make_view(struct view *view, struct error *err)
{
    const struct objects *objects = view->objects;
    size_t limit = view->arguments->limit;
    int r = lattice_of_sets(objects->sets, objects->count, limit, &view->lattice);

    if (r == -E2BIG)
        return error_say(err, r,
                         "cannot build the concept lattice of run %s: more than %zu concepts (reduce "
                         "them with --attributes sing.noFreq or --filter, or raise --max-concepts)",
                         view->arguments->objects.run, limit);
    if (r < 0 || lattice_objects_of(&view->lattice, &view->members) < 0)
        return error_no_memory(err);
    view->order = calloc(view->lattice.count + 1, sizeof(*view->order));
    view->place = calloc(view->lattice.count + 1, sizeof(*view->place));
    if (!view->order || !view->place)
        return error_no_memory(err);
    lattice_order(&view->lattice, view->order);
    for (size_t i = 0; i < view->lattice.count; i++)
        view->place[view->order[i]] = (uint32_t)i;
    return 0;
}

static const struct attribute *attribute_at(const struct view *view, uint32_t id)
{
    return &view->objects->table.attributes[id];
}

static int compare_ids(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

    return (left > right) - (left < right);
}

/* The places of concepts, ascending, to be freed. */
static uint32_t *places_of(const struct view *view, const uint32_t *concepts, size_t count)
{
    uint32_t *places = calloc(count + 1, sizeof(*places));

    for (size_t i = 0; places && i < count; i++)
        places[i] = view->place[concepts[i]];
    if (places)
        qsort(places, count, sizeof(*places), compare_ids);
    return places;
}

/* ------------------------------------------------------------------------------------------ JSON */

static json_t *places_json(const struct view *view, const uint32_t *concepts, size_t count)
{
    AUTO_FREE uint32_t *places = places_of(view, concepts, count);
    json_t *array = json_array();

    for (size_t i = 0; places && i < count; i++)
        json_array_append_new(array, json_integer(places[i]));
    return array;
}

static json_t *objects_json(const struct view *view, const uint32_t *objects, size_t count)
{
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, cli_json_text(view->objects->labels[objects[i]]));
    return array;
}

static json_t *attributes_json(const struct view *view, const struct attribute_set *set)
{
    json_t *array = json_array();

    for (size_t i = 0; i < set->count; i++)
        json_array_append_new(array, cli_attribute_json(view->summary, attribute_at(view, set->ids[i])));
    return array;
}

static void add_full(const struct view *view, uint32_t id, json_t *item)
{
    CLEANUP(attribute_set_release) struct attribute_set intent = {0};
    AUTO_FREE uint32_t *extent = NULL;

    if (lattice_intent(&view->lattice, id, &intent) < 0 ||
        lattice_extent(&view->lattice, &view->members, id, &extent) < 0)
        return;
    json_object_set_new(item, "extent", objects_json(view, extent, view->members.extent_size[id]));
    json_object_set_new(item, "intent", attributes_json(view, &intent));
}

static json_t *concept_json(const struct view *view, uint32_t id)
{
    CLEANUP(attribute_set_release) struct attribute_set own = {0};
    const struct lattice_concept *concept = &view->lattice.concepts[id];
    const size_t *first = view->members.first + id;
    json_t *item = json_object();

    lattice_own_attributes(&view->lattice, id, &own);
    json_object_set_new(item, "concept", json_integer(view->place[id]));
    json_object_set_new(item, "extent_size", cli_json_count(view->members.extent_size[id]));
    json_object_set_new(item, "intent_size", cli_json_count(concept->intent_size));
    json_object_set_new(item, cli_objects_key(view->objects),
                        objects_json(view, view->members.objects + first[0], first[1] - first[0]));
    json_object_set_new(item, "attributes", attributes_json(view, &own));
    json_object_set_new(item, "upper", places_json(view, concept->upper, concept->upper_count));
    json_object_set_new(item, "lower", places_json(view, concept->lower, concept->lower_count));
    if (view->arguments->full)
        add_full(view, id, item);
    return item;
}

/* Concept by concept: a large lattice would take much memory as one document. */
static void print_json(const struct view *view)
{
    const struct run_loops *run = &view->summary->runs[0];
    AUTO_JSON json_t *labels = cli_objects_labels(view->objects), *loops = cli_loops_legend(view->summary),
                     *unknown = cli_objects_json_unknown(run),
                     *completeness = completeness_json(view->input->completeness, 1);

    text_print(stdout, "{\n  \"run\": %" PRId64 ",\n  \"attributes\": \"%s\",\n  \"%s\": ", run->run_id,
               attribute_kind_name(view->arguments->objects.kind), cli_objects_key(view->objects));
    json_dumpf(labels, stdout, JSON_COMPACT);
    fputs(",\n  \"concepts\": [", stdout);
    for (size_t i = 0; i < view->lattice.count && !cli_output_broken(); i++) {
        AUTO_JSON json_t *item = concept_json(view, view->order[i]);

        fputs(i ? ",\n    " : "\n    ", stdout);
        json_dumpf(item, stdout, JSON_COMPACT);
    }
    fputs("\n  ],\n  \"loops\": ", stdout);
    json_dumpf(loops, stdout, JSON_COMPACT);
    fputs(",\n  \"unknown\": ", stdout);
    json_dumpf(unknown, stdout, JSON_COMPACT);
    fputs(",\n  \"completeness\": ", stdout);
    json_dumpf(completeness, stdout, JSON_COMPACT);
    puts("\n}");
}

/* ------------------------------------------------------------------------------------------ names */

/* How many names of a list are shown; when one is left out, so are others, that the rest is worth its words.
 */
static size_t shown_names(const struct view *view, size_t count)
{
    return view->arguments->full || count <= MOST_NAMES + 1 ? count : MOST_NAMES;
}

static void print_name(const char *name, bool quoted)
{
    AUTO_FREE char *printable = text_printable(name);

    for (const char *text = printable ? printable : "?"; *text; text++) {
        if (quoted && (*text == '"' || *text == '\\'))
            putchar('\\');
        putchar(*text);
    }
}

/* The attributes or objects of a concept, `between` each other; `quoted` for Graphviz. */
static void print_attributes(const struct view *view, const struct attribute_set *set, const char *between,
                             bool quoted)
{
    size_t shown = shown_names(view, set->count);
    char text[512];

    for (size_t i = 0; i < shown; i++) {
        attribute_text(view->summary, attribute_at(view, set->ids[i]), text, sizeof(text));
        text_show(stdout, i ? between : "");
        print_name(text, quoted);
    }
    if (shown < set->count)
        text_print(stdout, "%sand %zu more", between, set->count - shown);
}

static void print_objects(const struct view *view, const uint32_t *objects, size_t count)
{
    size_t shown = shown_names(view, count);

    for (size_t i = 0; i < shown; i++)
        text_print(stdout, "%s%s", i ? ", " : "", view->objects->labels[objects[i]]);
    if (shown < count)
        text_print(stdout, ", and %zu more", count - shown);
}

/* ------------------------------------------------------------------------------------------ Graphviz */

static void print_dot_concept(const struct view *view, uint32_t id)
{
    CLEANUP(attribute_set_release) struct attribute_set own = {0};
    const struct lattice_concept *concept = &view->lattice.concepts[id];
    const size_t *first = view->members.first + id;
    AUTO_FREE uint32_t *lower = places_of(view, concept->lower, concept->lower_count);

    lattice_own_attributes(&view->lattice, id, &own);
    text_print(stdout, "  C%" PRIu32 " [label=\"", view->place[id]);
    print_attributes(view, &own, "\\n", true);
    if (own.count && first[0] < first[1])
        fputs("\\n", stdout);
    if (first[0] < first[1])
        fputs(view->objects->processes ? "processes " : "threads ", stdout);
    print_objects(view, view->members.objects + first[0], first[1] - first[0]);
    puts("\"];");
    for (size_t i = 0; lower && i < concept->lower_count; i++)
        text_print(stdout, "  C%" PRIu32 " -> C%" PRIu32 ";\n", view->place[id], lower[i]);
}

static void print_dot(const struct view *view)
{
    puts("digraph lattice {\n  edge [dir=none];\n  node [shape=box];");
    for (size_t i = 0; i < view->lattice.count && !cli_output_broken(); i++)
        print_dot_concept(view, view->order[i]);
    puts("}");
}

/* ------------------------------------------------------------------------------------------ text */

static void print_count(size_t count, const char *one, const char *many)
{
    if (count)
        text_print(stdout, "%zu %s", count, count == 1 ? one : many);
    else
        text_print(stdout, "no %s", many);
}

static void print_object_count(const struct view *view, size_t count)
{
    print_count(count, view->objects->processes ? "process" : "thread", cli_objects_key(view->objects));
}

/* "C2  2 threads, below C0", and the names that the concepts above (attributes) or below (threads) do not
 * have. */
static void print_concept(const struct view *view, uint32_t id, bool colour)
{
    CLEANUP(attribute_set_release) struct attribute_set own = {0};
    const struct lattice_concept *concept = &view->lattice.concepts[id];
    const size_t *first = view->members.first + id;
    AUTO_FREE uint32_t *upper = places_of(view, concept->upper, concept->upper_count);

    lattice_own_attributes(&view->lattice, id, &own);
    cli_style(colour, CLI_BOLD);
    text_print(stdout, "C%" PRIu32, view->place[id]);
    cli_style(colour, CLI_PLAIN);
    fputs("  ", stdout);
    print_object_count(view, view->members.extent_size[id]);
    for (size_t i = 0; upper && i < concept->upper_count; i++)
        text_print(stdout, "%sC%" PRIu32, i ? ", " : ", below ", upper[i]);
    putchar('\n');
    if (own.count) {
        fputs("    share  ", stdout);
        print_attributes(view, &own, ", ", false);
        putchar('\n');
    }
    if (first[0] < first[1]) {
        text_print(stdout, "    %s  ", cli_objects_key(view->objects));
        print_objects(view, view->members.objects + first[0], first[1] - first[0]);
        putchar('\n');
    }
}

static void print_text(const struct view *view)
{
    bool colour = cli_colour();

    print_object_count(view, view->objects->count);
    fputs(", ", stdout);
    print_count(view->objects->table.count, "attribute", "attributes");
    fputs(", ", stdout);
    print_count(view->lattice.count, "concept", "concepts");
    puts("\n");
    for (size_t i = 0; i < view->lattice.count && !cli_output_broken(); i++)
        print_concept(view, view->order[i], colour);
    putchar('\n');
    cli_loops_print_legend(view->summary, NULL);
    cli_objects_print_unknown(view->input);
}

/* ------------------------------------------------------------------------------------------ the command */

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "RUN",
    .doc =
        "Show shared behaviour of a run's threads as a concept lattice.\vA concept is a group of "
        "threads together with everything they have in common. A concept below another one contains "
        "fewer of its threads, which have more in common. Each attribute is named where it first "
        "appears on the way down (all concepts below have it as well), each thread at the lowest "
        "concept that contains it.",
    .children = cli_objects_children,
};

static int run(int argc, char **argv)
{
    CLEANUP(cli_loops_release) struct loops_input input = {0};
    CLEANUP(cli_objects_release) struct objects objects = {0};
    struct lattice_arguments arguments = {0};
    CLEANUP(view_release)
    struct view view = {
        .arguments = &arguments, .input = &input, .summary = &input.summary, .objects = &objects};
    struct error err = {0};
    int r;

    cli_parse(&cmd_lattice, argc, argv, &arguments);
    r = cli_objects_read(&arguments.objects, &input, &objects, &err);
    if (r < 0)
        return cli_loops_fail(r, &err);
    if (make_view(&view, &err) < 0)
        return cli_fail(&err);
    if (cli.json)
        print_json(&view);
    else if (arguments.dot)
        print_dot(&view);
    else
        print_text(&view);
    return cli_finish(EXIT_NOTHING_FOUND);
}

const struct command cmd_lattice = {
    .name = "lattice",
    .summary = "show shared behaviour of threads (concept lattice)",
    .argp = &argp,
    .examples =
        "Print the concept lattice of the newest run:\n"
        "  tracectl lattice latest\n"
        "Draw it with Graphviz:\n"
        "  tracectl lattice --dot latest | dot -Tsvg > lattice.svg\n",
    .run = run,
};
