/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl diff: which threads of two runs differ, and how. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "analyzer/compare.h"
#include "cli/command.h"
#include "cli/loops.h"

enum { KEY_MOST = 0x300, KEY_FULL };
enum { DEFAULT_MOST = 5, MOST_SUSPECTS = 20, CONTEXT = 3, MIN_COLUMN = 16, MAX_COLUMN = 56 };

struct diff_arguments {
    struct loops_arguments loops;
    const char *runs[2];
    char **threads; /* in argv */
    size_t thread_count;
    unsigned most;
    bool full;
};

static const struct argp_option options[] = {
    {"most", KEY_MOST, "N", 0, "Show the differences of the first N suspects (default 5), 0: of all", 0},
    {"full", KEY_FULL, 0, 0, "Show all common entries too, not only those around a difference", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct diff_arguments *arguments = state->input;
    char *end;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &arguments->loops;
        return 0;
    case KEY_MOST:
        arguments->most = (unsigned)strtoul(arg, &end, 10);
        if (*arg < '0' || *arg > '9' || *end)
            argp_error(state, "--most must be a number, not '%s'", arg);
        return 0;
    case KEY_FULL:
        arguments->full = true;
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num >= 2)
            return ARGP_ERR_UNKNOWN; /* the rest comes as ARGP_KEY_ARGS */
        arguments->runs[state->arg_num] = arg;
        return 0;
    case ARGP_KEY_ARGS:
        arguments->threads = state->argv + state->next;
        arguments->thread_count = (size_t)(state->argc - state->next);
        return 0;
    case ARGP_KEY_END:
        if (state->arg_num < 2)
            argp_usage(state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ------------------------------------------------------------------------------------------ what to show */

struct report {
    const struct diff_arguments *arguments;
    const struct loops_input *input;
    struct run_comparison comparison;
    size_t *shown; /* indices of the threads whose diffNLR is wanted, in order */
    size_t shown_count;
    bool *wanted; /* loops of the legend */
};

static void report_release(struct report *report)
{
    run_comparison_release(&report->comparison);
    free(report->shown);
    free(report->wanted);
}

static const struct thread_diff *shown_thread(const struct report *report, size_t i)
{
    return &report->comparison.threads[report->shown[i]];
}

static int choose_threads(struct report *report, struct error *err)
{
    const struct diff_arguments *arguments = report->arguments;
    const struct run_comparison *comparison = &report->comparison;

    for (size_t i = 0; i < arguments->thread_count; i++) {
        size_t found = 0;

        while (found < comparison->count &&
               strcmp(thread_diff_label(&comparison->threads[found]), arguments->threads[i]) != 0)
            found++;
        if (found == comparison->count) {
            error_say(err, -ENOENT,
                      "finding thread '%s' in runs %s and %s: there is none (tracectl show RUN lists them)",
                      arguments->threads[i], arguments->runs[0], arguments->runs[1]);
            return -ENOENT;
        }
        report->shown[report->shown_count++] = found;
    }
    if (arguments->thread_count)
        return 0;
    while (report->shown_count < comparison->suspect_count &&
           (!arguments->most || report->shown_count < arguments->most)) {
        report->shown[report->shown_count] = comparison->suspects[report->shown_count];
        report->shown_count++;
    }
    return 0;
}

static int make_report(struct report *report, struct error *err)
{
    const struct loop_summary *summary = &report->input->summary;

    if (compare_runs(summary, &report->comparison) < 0)
        return error_no_memory(err), -ENOMEM;
    report->shown =
        calloc(report->comparison.count + report->arguments->thread_count + 1, sizeof(*report->shown));
    report->wanted = calloc(summary->table.number_count + 1, sizeof(*report->wanted));
    if (!report->shown || !report->wanted)
        return error_no_memory(err), -ENOMEM;
    return choose_threads(report, err);
}

/* With threads named, the status is about them alone. */
static bool found_difference(const struct report *report)
{
    if (!report->arguments->thread_count)
        return report->comparison.suspect_count || report->comparison.one_sided;
    for (size_t i = 0; i < report->shown_count; i++) {
        const struct thread_diff *thread = shown_thread(report, i);

        if (thread_diff_differs(thread) || ((!thread->normal || !thread->faulty) && !thread->unknown))
            return true;
    }
    return false;
}

/* ------------------------------------------------------------------------------------------ JSON */

static json_t *edit_json(const struct report *report, const struct thread_diff *thread,
                         const struct diff_edit *edit)
{
    static const char *const ops[] = {"common", "normal", "faulty"};
    bool faulty = edit->op == DIFF_FAULTY;
    const struct nlr_element *elements = faulty ? thread->faulty->loops.elements + edit->faulty
                                                : thread->normal->loops.elements + edit->normal;

    return json_pack("{s:s, s:o}", "op", ops[edit->op], "entries",
                     cli_loops_entries(&report->input->summary, elements,
                                       faulty ? edit->faulty_count : edit->normal_count));
}

static json_t *same_loops_json(const struct report *report, const struct thread_diff *thread)
{
    const struct loop_table *table = &report->input->summary.table;
    json_t *array = json_array();

    for (size_t i = 0; i < thread->diff.loop_count; i++) {
        const struct nlr_element *normal = &thread->normal->loops.elements[thread->diff.loops[i].normal];
        const struct nlr_element *faulty = &thread->faulty->loops.elements[thread->diff.loops[i].faulty];
        char name[24];

        snprintf(name, sizeof(name), "L%" PRIu32, table->numbers[normal->id]);
        json_array_append_new(array, json_pack("{s:s, s:o, s:o}", "loop", name, "normal",
                                               cli_json_count(normal->count), "faulty",
                                               cli_json_count(faulty->count)));
    }
    return array;
}

static json_t *thread_json(const struct report *report, const struct thread_diff *thread)
{
    json_t *item = json_object(), *edits = json_array();

    json_object_set_new(item, "thread", cli_json_text(thread_diff_label(thread)));
    json_object_set_new(item, "edits", edits);
    if (!thread->normal || !thread->faulty) {
        const struct thread_loops *only = thread->normal ? thread->normal : thread->faulty;

        json_object_set_new(item, "only", json_string(thread->normal ? "normal" : "faulty"));
        if (!thread->unknown)
            json_array_append_new(
                edits, json_pack("{s:s, s:o}", "op", thread->normal ? "normal" : "faulty", "entries",
                                 cli_loops_entries(&report->input->summary, only->loops.elements,
                                                   only->loops.count)));
        return item;
    }
    for (size_t i = 0; i < thread->diff.edit_count; i++)
        if (thread->diff.edits[i].op != DIFF_UNKNOWN)
            json_array_append_new(edits, edit_json(report, thread, &thread->diff.edits[i]));
    json_object_set_new(item, "score", json_real(thread->score));
    json_object_set_new(item, "same_loops", same_loops_json(report, thread));
    json_object_set_new(item, "last_call",
                        json_pack("{s:s, s:s}", "normal", cli_loops_last_call(thread->normal->last_call),
                                  "faulty", cli_loops_last_call(thread->faulty->last_call)));
    if (thread_diff_differs(thread)) {
        AUTO_FREE char *words = thread_diff_words(&report->input->summary, thread);

        json_object_set_new(item, "words", cli_json_text(words ? words : ""));
    }
    return item;
}

static json_t *suspects_json(const struct report *report)
{
    const struct run_comparison *comparison = &report->comparison;
    json_t *array = json_array();

    for (size_t i = 0; i < comparison->suspect_count; i++) {
        const struct thread_diff *thread = &comparison->threads[comparison->suspects[i]];

        json_array_append_new(array,
                              json_pack("{s:o, s:f}", "thread", cli_json_text(thread_diff_label(thread)),
                                        "score", thread->score));
    }
    return array;
}

/* A stretch of a thread that cannot be compared, with what is known of either side, placed by the number of
 * edits of the thread in front of it. */
static void unknown_edits_json(const struct report *report, const struct thread_diff *thread, json_t *array)
{
    const struct loop_summary *summary = &report->input->summary;
    size_t before = 0;

    for (size_t i = 0; i < thread->diff.edit_count; i++) {
        const struct diff_edit *edit = &thread->diff.edits[i];

        if (edit->op != DIFF_UNKNOWN) {
            before++;
            continue;
        }
        json_array_append_new(
            array,
            json_pack(
                "{s:s, s:o, s:I, s:o, s:o}", "kind", "stretch", "thread",
                cli_json_text(thread_diff_label(thread)), "after_edits", (json_int_t)before, "normal",
                cli_loops_entries(summary, thread->normal->loops.elements + edit->normal, edit->normal_count),
                "faulty",
                cli_loops_entries(summary, thread->faulty->loops.elements + edit->faulty,
                                  edit->faulty_count)));
    }
}

static json_t *unknown_json(const struct report *report)
{
    static const char *const sides[] = {"normal", "faulty"};
    const struct loop_summary *summary = &report->input->summary;
    json_t *array = json_array();

    for (size_t side = 0; side < 2; side++) {
        const struct run_loops *run = &summary->runs[side];

        cli_loops_json_gaps(run, sides[side], array);
        for (size_t i = 0; i < run->thread_count; i++)
            for (size_t gap = 0; gap < run->threads[i].gap_count; gap++)
                json_array_append_new(array, cli_loops_json_gap(run->threads[i].label, sides[side],
                                                                &run->threads[i].gaps[gap]));
    }
    for (size_t i = 0; i < report->comparison.count; i++)
        unknown_edits_json(report, &report->comparison.threads[i], array);
    return array;
}

static json_t *one_sided_json(const struct report *report, bool normal)
{
    json_t *array = json_array();

    for (size_t i = 0; i < report->comparison.count; i++) {
        const struct thread_diff *thread = &report->comparison.threads[i];

        const struct thread_loops *one = normal ? thread->normal : thread->faulty;
        const struct thread_loops *other = normal ? thread->faulty : thread->normal;

        if (one && !other)
            json_array_append_new(array, cli_json_text(one->label));
    }
    return array;
}

static void print_json(const struct report *report)
{
    AUTO_JSON json_t *document = json_object();
    json_t *diffs = json_array();

    json_object_set_new(document, "normal", json_integer(report->input->runs[0].run_id));
    json_object_set_new(document, "faulty", json_integer(report->input->runs[1].run_id));
    json_object_set_new(document, "suspects", suspects_json(report));
    json_object_set_new(document, "diffs", diffs);
    for (size_t i = 0; i < report->shown_count; i++)
        json_array_append_new(diffs, thread_json(report, shown_thread(report, i)));
    json_object_set_new(document, "loops", cli_loops_legend(&report->input->summary));
    json_object_set_new(document, "unknown", unknown_json(report));
    json_object_set_new(document, "only_normal", one_sided_json(report, true));
    json_object_set_new(document, "only_faulty", one_sided_json(report, false));
    cli_json_print(document);
}

/* ------------------------------------------------------------------------------------------ text */

/* Two columns: the normal run on the left, the faulty one on the right. */
struct columns {
    const struct report *report;
    const struct thread_diff *thread;
    int width; /* of the left column */
    bool colour;
};

static void entry_text(const struct columns *columns, const struct thread_loops *side, size_t at, char *text,
                       size_t size)
{
    const struct nlr_element *element = &side->loops.elements[at];
    size_t used;

    cli_loops_text(&columns->report->input->summary, element, text, size);
    used = strlen(text);
    if (at + 1 == side->loops.count && side->last_call == LAST_CALL_OPEN)
        snprintf(text + used, size - used, "  <- never returned");
    else if (at + 1 == side->loops.count && side->last_call == LAST_CALL_UNKNOWN && element->kind != NLR_LOST)
        snprintf(text + used, size - used, "  <- not known to have returned");
}

static int widest(const struct columns *columns)
{
    int width = MIN_COLUMN;
    char text[512];

    for (size_t i = 0; i < columns->thread->normal->loops.count; i++) {
        entry_text(columns, columns->thread->normal, i, text, sizeof(text));
        if ((int)strlen(text) > width)
            width = (int)strlen(text);
    }
    return width < MAX_COLUMN ? width : MAX_COLUMN;
}

static void print_line(const struct columns *columns, char mark, const char *colour, const char *left,
                       const char *right)
{
    if (!columns->colour)
        colour = "";
    printf("%s%c %-*s%s%s%s\n", colour, mark, *right ? columns->width + 2 : 0, left,
           *right && (int)strlen(left) >= columns->width + 2 ? "  " : "", right, *colour ? "\033[0m" : "");
}

static void print_common(const struct columns *columns, const struct diff_edit *edit, bool first, bool last)
{
    size_t head = first ? 0 : CONTEXT, tail = last ? 0 : CONTEXT;
    char left[512], right[512];

    for (size_t i = 0; i < edit->normal_count; i++) {
        size_t left_out = edit->normal_count - head - tail;

        if (!columns->report->arguments->full && edit->normal_count > head + tail + 2 && i == head) {
            snprintf(left, sizeof(left), "... %zu equal entries", left_out);
            print_line(columns, ' ', columns->colour ? "\033[2m" : "", left, "");
            i += left_out - 1;
            continue;
        }
        entry_text(columns, columns->thread->normal, edit->normal + i, left, sizeof(left));
        entry_text(columns, columns->thread->faulty, edit->faulty + i, right, sizeof(right));
        print_line(columns, ' ', "", left, right);
    }
}

/* The entries of a normal and a faulty edit, or of an unknown one, next to each other. */
static void print_changed(const struct columns *columns, const struct diff_edit *edit)
{
    size_t lines = edit->normal_count > edit->faulty_count ? edit->normal_count : edit->faulty_count;
    bool unknown = edit->op == DIFF_UNKNOWN;
    char left[512], right[512];

    for (size_t i = 0; i < lines; i++) {
        bool has_left = i < edit->normal_count, has_right = i < edit->faulty_count;
        char mark = unknown ? '?' : has_left && has_right ? '|' : has_left ? '<' : '>';

        left[0] = right[0] = 0;
        if (has_left)
            entry_text(columns, columns->thread->normal, edit->normal + i, left, sizeof(left));
        if (has_right)
            entry_text(columns, columns->thread->faulty, edit->faulty + i, right, sizeof(right));
        print_line(columns, mark,
                   unknown                 ? "\033[33m"
                   : has_left && has_right ? "\033[35m"
                   : has_left              ? "\033[34m"
                                           : "\033[31m",
                   left, right);
    }
}

static void print_edits(const struct columns *columns)
{
    const struct diff_nlr *diff = &columns->thread->diff;

    print_line(columns, ' ', "\033[1m", "normal", "faulty");
    for (size_t i = 0; i < diff->edit_count && !cli_output_broken(); i++) {
        struct diff_edit edit = diff->edits[i];

        if (edit.op == DIFF_COMMON) {
            print_common(columns, &edit, i == 0, i + 1 == diff->edit_count);
            continue;
        }
        if (edit.op == DIFF_NORMAL && i + 1 < diff->edit_count && diff->edits[i + 1].op == DIFF_FAULTY)
            edit.faulty_count = diff->edits[++i].faulty_count;
        print_changed(columns, &edit);
    }
}

static void print_thread(const struct report *report, const struct thread_diff *thread)
{
    const struct loop_summary *summary = &report->input->summary;
    const char *label = thread_diff_label(thread);
    struct columns columns = {report, thread, 0, cli_colour()};
    AUTO_FREE char *words = NULL;

    if (!thread->normal || !thread->faulty) {
        const char *other = thread->normal ? "faulty" : "normal";

        printf("thread %s exists in the %s run only%s%s%s\n\n", label, thread->normal ? "normal" : "faulty",
               thread->unknown ? " (unknown: the " : "", thread->unknown ? other : "",
               thread->unknown ? " run is incomplete)" : "");
        return;
    }
    if (thread_diff_differs(thread)) {
        words = thread_diff_words(summary, thread);
        printf("%sthread %s differs: %s%s\n", columns.colour ? "\033[1m" : "", label, words ? words : "",
               columns.colour ? "\033[0m" : "");
    } else {
        printf("thread %s does not differ%s\n", label, thread->unknown ? " where it can be compared" : "");
    }
    putchar('\n');
    columns.width = widest(&columns);
    print_edits(&columns);
    putchar('\n');
    cli_loops_mark(summary, thread->normal->loops.elements, thread->normal->loops.count, report->wanted);
    cli_loops_mark(summary, thread->faulty->loops.elements, thread->faulty->loops.count, report->wanted);
}

static void print_suspects(const struct report *report)
{
    const struct run_comparison *comparison = &report->comparison;

    for (size_t i = 0; i < comparison->count; i++)
        if (!comparison->threads[i].normal || !comparison->threads[i].faulty)
            print_thread(report, &comparison->threads[i]);
    if (comparison->suspect_count < 2)
        return;
    printf("%zu of %zu threads differ; most changed first:\n", comparison->suspect_count, comparison->count);
    for (size_t i = 0; i < comparison->suspect_count && i < MOST_SUSPECTS; i++) {
        const struct thread_diff *thread = &comparison->threads[comparison->suspects[i]];

        printf("  %-10s %.3f\n", thread_diff_label(thread), thread->score);
    }
    if (comparison->suspect_count > MOST_SUSPECTS)
        printf("  ... and %zu more\n", comparison->suspect_count - MOST_SUSPECTS);
    putchar('\n');
}

static void print_text(const struct report *report)
{
    const struct run_comparison *comparison = &report->comparison;
    size_t unknown = 0;

    for (size_t i = 0; i < report->shown_count && !cli_output_broken(); i++)
        print_thread(report, shown_thread(report, i));
    if (!report->arguments->thread_count) {
        print_suspects(report);
        if (!comparison->suspect_count && !comparison->one_sided)
            printf("no difference in %zu thread%s\n", comparison->count, comparison->count == 1 ? "" : "s");
    }
    cli_loops_print_legend(&report->input->summary, report->wanted);
    cli_loops_print_gaps(&report->input->summary.runs[0], "normal");
    cli_loops_print_gaps(&report->input->summary.runs[1], "faulty");
    for (size_t i = 0; i < comparison->count; i++)
        unknown += comparison->threads[i].unknown;
    if (unknown)
        printf("unknown: %zu thread%s could not be compared in full, because events are missing\n", unknown,
               unknown == 1 ? "" : "s");
}

/* ------------------------------------------------------------------------------------------ the command */

static const struct argp_child children[] = {
    {&cli_loops_argp, 0, NULL, 0}, {&cli_common_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "NORMAL FAULTY [P.T...]",
    .doc =
        "Compare two runs: which threads changed most, and how the loops of the first ones differ; or how "
        "those of threads P.T differ.\v"
        "Threads are matched by their labels. The score of a suspect is the share of entries in its two "
        "loop summaries that are in one of them only, between 0 and 1; of equal scores the one with the "
        "larger share of changed events is first. Lines marked | and < and > differ, lines marked ? cannot "
        "be compared because events are missing there: that is never called a difference.\n\n"
        "Exit status: 0 no difference, 1 differences, 2 usage, 3 failure.",
    .children = children,
};

static int run(int argc, char **argv)
{
    CLEANUP(cli_loops_release) struct loops_input input = {0};
    struct diff_arguments arguments = {.most = DEFAULT_MOST};
    CLEANUP(report_release) struct report report = {.arguments = &arguments, .input = &input};
    struct error err = {0};
    int r;

    cli_parse(&cmd_diff, argc, argv, &arguments);
    r = cli_loops_read(&arguments.loops, arguments.runs, 2, &input, &err);
    if (r >= 0)
        r = make_report(&report, &err);
    if (r < 0)
        return cli_loops_fail(r, &err);
    if (cli.json)
        print_json(&report);
    else
        print_text(&report);
    return cli_finish(found_difference(&report) ? EXIT_FOUND : EXIT_NOTHING_FOUND);
}

const struct command cmd_diff = {
    .name = "diff",
    .summary = "compare two runs: who changed, and how",
    .argp = &argp,
    .run = run,
};
