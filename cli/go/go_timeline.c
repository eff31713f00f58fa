/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl go timeline: what goroutines did, in the order of time. */
#include "cli/go/go_timeline.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/picture/go_timeline.h"
#include "base/array.h"
#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/common/output.h"
#include "cli/common/output_file.h"
#include "cli/go/go_commands.h"

enum { KEY_ALL = 1000, KEY_ROWS, MOST_ROWS_ASKED = 100000000, LABEL_SIZE = 64 };

struct wanted {
    const char *label; /* the P of P.gN, as long as `length` */
    size_t length;
    uint64_t goroutine;
};

struct arguments {
    const char *run, *output;
    struct wanted *wanted;
    size_t wanted_count, wanted_capacity;
    bool all;
    size_t rows;
};

static const struct argp_option options[] = {
    {"all", KEY_ALL, 0, 0, "Show all goroutines of the program itself, and all rows", 0},
    {"rows", KEY_ROWS, "N", 0, "Show the last N rows before the end (default 200)", 0},
    {"output", 'o', "FILE", 0, "Draw the timeline into FILE (SVG)", 0},
    {0},
};

static void add_wanted(struct argp_state *state, struct arguments *arguments, const char *text)
{
    const char *point = strstr(text, ".g");
    uint64_t goroutine = 0;

    if (!point || !number_parse_count(point + 2, &goroutine) || !goroutine)
        argp_error(state, "'%s' is not a goroutine (write P.gN, for example 0.g7)", text);
    if (array_reserve(&arguments->wanted, &arguments->wanted_capacity, arguments->wanted_count + 1))
        argp_failure(state, EXIT_FAILED, ENOMEM, "reading the arguments");
    arguments->wanted[arguments->wanted_count++] = (struct wanted){text, (size_t)(point - text), goroutine};
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct arguments *arguments = state->input;

    switch (key) {
    case KEY_ALL:
        arguments->all = true;
        return 0;
    case KEY_ROWS:
        arguments->rows = cli_parse_number(state, "--rows", arg, 1, MOST_ROWS_ASKED);
        return 0;
    case 'o':
        arguments->output = arg;
        return 0;
    case ARGP_KEY_ARG:
        if (arguments->run)
            add_wanted(state, arguments, arg);
        else
            arguments->run = arg;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "go timeline needs a run (tracectl runs lists them)");
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "RUN [P.gN...]",
    .doc =
        "Show what the goroutines of a recorded Go program did, in time order: one column per "
        "goroutine, or one line per row on a narrow terminal.\vWithout P.gN, the blocked goroutines and "
        "those related to them are shown; if there are none, all. Only the last rows before the end are "
        "shown, and repeated rows are shown once.",
    .children = cli_common_children,
};

/* ------------------------------------------------------------------------------------------ json */

static json_t *row_json(const struct go_judged *judged, const struct go_timeline *timeline,
                        const struct go_timeline_row *row)
{
    static const char *const moments[GO_MOMENTS] = {
        "begins", "operates", "blocks", "continues", "delayed",           "test",
        "panics", "fatal",    "exits",  "ends",      "events are missing"};
    json_t *item = go_place_json(judged, row->site);
    AUTO_FREE char *text = NULL;
    char object[32];

    snprintf(object, sizeof(object), "0x%" PRIx64, row->object);
    if (go_timeline_words(timeline, row, go_places_source(judged->places), NULL, &text) < 0)
        text = NULL;
    json_object_set_new(item, "ns", cli_json_count(row->ns - timeline->from_ns));
    json_object_set_new(item, "goroutine", go_label_json(judged, row->goroutine));
    json_object_set_new(item, "moment", json_string(moments[row->moment]));
    json_object_set_new(item, "operation",
                        row->operation ? json_string(go_op_name(row->operation)) : json_null());
    json_object_set_new(item, "object", row->object ? json_string(object) : json_null());
    json_object_set_new(item, "other", go_label_json(judged, row->other));
    json_object_set_new(item, "blocked", json_boolean(row->blocked));
    json_object_set_new(item, "result", row->has_result ? json_integer(row->result) : json_null());
    json_object_set_new(item, "text", cli_json_text(text ? text : ""));
    json_object_set_new(item, "stretch", json_integer(row->stretch));
    json_object_set_new(item, "repeats", cli_json_count(row->stretch ? row->repeats : 1));
    return item;
}

static json_t *timeline_json(const struct go_judged *judged, const struct go_timeline *timeline)
{
    json_t *goroutines = json_array(), *rows = json_array();

    for (size_t i = 0; i < timeline->column_count; i++) {
        const struct go_timeline_column *column = &timeline->columns[i];

        json_array_append_new(goroutines, json_pack("{s:o, s:o, s:o, s:o, s:s, s:b}", "goroutine",
                                                    go_label_json(judged, column->goroutine), "begins_with",
                                                    go_place_json(judged, column->function), "created",
                                                    go_place_json(judged, column->created_at), "parent",
                                                    go_label_json(judged, column->parent), "state",
                                                    go_state_text(column->state), "stuck", column->stuck));
    }
    for (size_t i = 0; i < timeline->row_count; i++)
        json_array_append_new(rows, row_json(judged, timeline, &timeline->rows[i]));
    return json_pack("{s:o, s:o, s:o, s:o, s:I}", "process", cli_json_text(judged->program->label),
                     "goroutines", goroutines, "rows", rows, "earlier_rows",
                     cli_json_count(timeline->earlier), "left_out", (json_int_t)timeline->left_out);
}

/* ------------------------------------------------------------------------------------------ the command */

struct drawing {
    struct output_file output;
    FILE *file; /* its stream; NULL: no picture */
    const char *path;
    json_t *array; /* NULL: as text */
    size_t shown;
};

static int draw(struct drawing *drawing, const struct go_judged *judged, const struct go_timeline *timeline,
                struct error *err)
{
    AUTO_FREE char *svg = NULL;
    char title[96];
    int r;

    if (drawing->shown)
        return error_say(err, -EINVAL,
                         "cannot draw %s: the run has several Go programs (name goroutines of one)",
                         drawing->path);
    snprintf(title, sizeof(title), "Timeline of the goroutines of process %s", judged->program->label);
    r = go_timeline_svg(timeline, go_places_source(judged->places), title, SVG_DOCUMENT, &svg);
    if (r < 0)
        return error_set(err, r, NULL, "drawing %s", drawing->path);
    text_put_raw(drawing->file, svg);
    return 0;
}

static int show(struct drawing *drawing, struct tracestore *store, const struct go_judged *judged,
                const struct go_timeline_options *choice, struct error *err)
{
    CLEANUP(go_timeline_release) struct go_timeline timeline = {0};
    int r = go_timeline_read(store, judged->program, go_places_source(judged->places), judged->replay,
                             &judged->verdict, choice, &timeline, err);

    if (r < 0)
        return r;
    if (drawing->file)
        r = draw(drawing, judged, &timeline, err);
    if (!r && drawing->array)
        json_array_append_new(drawing->array, timeline_json(judged, &timeline));
    else if (!r && !drawing->file)
        r = go_timeline_print(stdout, &timeline, judged, go_timeline_width());
    drawing->shown++;
    return r < 0 ? error_set(err, r, NULL, "showing the timeline of goroutines") : 0;
}

/* The goroutines that were asked for of this program. Returns their number; all of them must exist. */
static int choose(const struct arguments *arguments, const struct go_judged *judged, uint64_t *goroutines,
                  size_t *ret_count, struct error *err)
{
    const char *label = judged->program->label;

    *ret_count = 0;
    for (size_t i = 0; i < arguments->wanted_count; i++) {
        const struct wanted *wanted = &arguments->wanted[i];

        if (strlen(label) != wanted->length || strncmp(label, wanted->label, wanted->length) != 0)
            continue;
        if (!go_replay_goroutine(judged->replay, wanted->goroutine))
            return error_say(err, -ENOENT, "no goroutine %s in this run", wanted->label);
        goroutines[(*ret_count)++] = wanted->goroutine;
    }
    return 0;
}

static int show_program(struct drawing *drawing, struct tracestore *store, const struct arguments *arguments,
                        const struct go_judged *judged, struct error *err)
{
    AUTO_FREE uint64_t *goroutines = calloc(arguments->wanted_count + 1, sizeof(*goroutines));
    struct go_timeline_options choice = {
        .all = arguments->all, .rows = arguments->rows, .goroutines = goroutines};
    int r;

    if (!goroutines)
        return error_no_memory(err);
    r = choose(arguments, judged, goroutines, &choice.goroutine_count, err);
    if (r < 0 || (arguments->wanted_count && !choice.goroutine_count))
        return r;
    return show(drawing, store, judged, &choice, err);
}

static int show_run(const struct arguments *arguments, struct drawing *drawing, struct error *err)
{
    CLEANUP(go_judged_run_release) struct go_judged_run judged = {0};
    AUTO_STORE struct tracestore *store = NULL;
    AUTO_RUN struct tracestore_run run = {0};
    int r = cli_open_run(arguments->run, TRACESTORE_READ, &store, &run, err);

    if (r == 0)
        r = go_judge_run(store, run.run_id, &judged, err);
    if (r == 0 && arguments->output) {
        r = output_file_open(&drawing->output, arguments->output, err);
        drawing->file = drawing->output.stream;
    }
    for (size_t i = 0; r == 0 && i < judged.count; i++)
        r = show_program(drawing, store, arguments, &judged.judged[i], err);
    if (r == 0 && !drawing->shown)
        r = error_say(err, -ENOENT, "run %s: no Go program with these goroutines", run.name);
    return r < 0 ? r : 0;
}

static int run(int argc, char **argv)
{
    struct arguments arguments = {0};
    struct drawing drawing = {0};
    struct error err = {0};
    AUTO_JSON json_t *document = NULL;
    int r;

    cli_parse(&go_timeline_command, argc, argv, &arguments);
    if (cli.json)
        document = drawing.array = json_array();
    drawing.path = arguments.output;
    r = show_run(&arguments, &drawing, &err);
    r = output_file_close(&drawing.output, r, &err);
    free(arguments.wanted);
    if (r < 0)
        return cli_fail(&err);
    if (cli.json)
        cli_json_print(document);
    return cli_finish(EXIT_NOTHING_FOUND);
}

const struct command go_timeline_command = {
    .name = "go timeline",
    .summary = "show what goroutines did, in time order",
    .argp = &argp,
    .examples =
        "Show what goroutines 1 and 7 did:\n"
        "  tracectl go timeline latest 0.g1 0.g7\n"
        "Draw the timeline:\n"
        "  tracectl go timeline latest --svg timeline.svg\n",
    .run = run,
};
