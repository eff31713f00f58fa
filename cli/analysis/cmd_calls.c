/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl calls RUN [P.T]: the call tree of threads as text. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/analysis/call_list.h"
#include "cli/analysis/call_tree.h"
#include "cli/common/command.h"
#include "cli/common/completeness.h"
#include "cli/common/output.h"

#define DEEPEST_INDENT 60 /* from here on the depth is written as a number */

struct calls_input {
    const char *run, *thread;
    bool raw;
    struct call_filter filter;
};

static void check(const struct calls_input *input, struct argp_state *state)
{
    const struct call_filter *filter = &input->filter;

    if (!input->run)
        argp_error(state, "calls needs a run (tracectl runs lists them)");
    if (filter->to_ns && filter->to_ns < filter->from_ns)
        argp_error(state, "--to is before --from");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct calls_input *input = state->input;

    switch (key) {
    case 'r':
        input->raw = true;
        return 0;
    case ARGP_KEY_ARG:
        if (input->thread)
            argp_usage(state);
        if (input->run)
            input->thread = arg;
        else
            input->run = arg;
        return 0;
    case ARGP_KEY_END:
        check(input, state);
        return 0;
    default:
        return call_filter_parse(key, arg, state, &input->filter) ? 0 : ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"raw", 'r', 0, 0, "Print one line for every call; do not fold loops", 1},
    {"durations", CALL_FILTER_DURATIONS, 0, 0, "List the calls with their times instead of the tree", 2},
    {"min-time", CALL_FILTER_MIN_TIME, "TIME", 0,
     "List only calls that took at least TIME (200ms, 1.5s), and those that never returned", 2},
    {"depth", CALL_FILTER_DEPTH, "N", 0, "List only calls with fewer than N calls around them", 2},
    {"from", CALL_FILTER_FROM, "TIME", 0,
     "List only calls that began TIME after the beginning of the run, or later", 2},
    {"to", CALL_FILTER_TO, "TIME", 0, "List only calls that began by then", 2},
    {"function", CALL_FILTER_FUNCTION, "NAME", 0,
     "List only calls of this function (mangled or demangled name)", 2},
    {0},
};
static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "RUN [P.T]",
    .doc =
        "Print the call tree of one thread, or of all threads; or list calls with their times.\vEqual calls in a row, with everything "
        "they call, are one line 'NAME x COUNT'; a repeated group of calls is the body of 'loop x "
        "COUNT:'. '(never returned)' marks calls that were still open at the end, '(unknown)' calls "
        "that may have been, '?' calls that are assumed to be inside the enclosing call (it may have "
        "returned without a recorded event), and '...' a place where events were lost. On a terminal "
        "the output goes through $PAGER.\n\n"
        "With --durations, --min-time, --depth, --from, --to or --function, each call is a line: when it "
        "began, in seconds since the beginning of the run, and how long it took. A return that was inferred "
        "has no time of its own: the duration is then a range, such as '0 to 1.500 ms' or 'over 2.000 s', or "
        "'?'. In JSON, duration_ns is then null; duration_min_ns and duration_max_ns are the bounds.",
    .children = cli_common_children,
};

/* ------------------------------------------------------------------------------------------ names */

struct names {
    struct tracestore_function *functions;
    size_t count;
};

static int compare_id(const void *key, const void *item)
{
    uint32_t id = *(const uint32_t *)key, other = ((const struct tracestore_function *)item)->function_id;

    return id < other ? -1 : id > other;
}

static const char *name_of(const struct names *names, uint32_t function)
{
    const struct tracestore_function *found =
        names->count
            ? bsearch(&function, names->functions, names->count, sizeof(*names->functions), compare_id)
            : NULL;

    return found ? found->demangled : "(unknown function)";
}

/* ------------------------------------------------------------------------------------------ text and JSON */

struct output {
    const struct tracestore_run *run;
    const struct names *names;
    bool returns_known;
    bool fresh; /* JSON: nothing stands before the next item in its array */
};

static void text_begin(void *context, const struct call_tree_line *line)
{
    static const char *const marks[] = {
        [CALL_RETURNED] = "", [CALL_OPEN] = " (never returned)", [CALL_UNKNOWN] = " (unknown)"};
    const struct output *output = context;
    size_t indent = line->depth < DEEPEST_INDENT ? line->depth : DEEPEST_INDENT;
    char count[32];

    text_print(stdout, "%*s", (int)(2 * indent), "");
    if (line->depth > DEEPEST_INDENT)
        text_print(stdout, "[%zu] ", line->depth);
    if (line->kind == TREE_LOOP) {
        text_print(stdout, "loop x %" PRIu64 ":\n", line->count);
        return;
    }
    if (line->kind == TREE_LOST) {
        text_count(line->count, count, sizeof(count));
        text_print(stdout, "... %s events lost (%s)\n", line->count ? count : "an unknown number of",
                   line->cause);
        return;
    }
    text_show(stdout, name_of(output->names, line->function));
    if (line->count > 1)
        text_print(stdout, " x %" PRIu64, line->count);
    text_show(stdout, output->returns_known ? marks[line->mark] : "");
    puts(line->assumed ? " ?" : "");
}

static void text_end(void *context, const struct call_tree_line *line)
{
}

static void json_begin(void *context, const struct call_tree_line *line)
{
    static const char *const states[] = {
        [CALL_RETURNED] = "returned", [CALL_OPEN] = "open", [CALL_UNKNOWN] = "unknown"};
    struct output *output = context;
    const char *text = line->kind == TREE_LOST ? line->cause : name_of(output->names, line->function);
    AUTO_JSON json_t *name = cli_json_text(text);

    fputs(output->fresh ? "\n" : ",\n", stdout);
    output->fresh = true;
    if (line->kind == TREE_LOOP) {
        text_print(stdout, "{\"loop\": %" PRIu64 ", \"calls\": [", line->count);
        return;
    }
    if (line->kind == TREE_LOST) {
        text_print(stdout, "{\"lost\": %" PRIu64 ", \"cause\": ", line->count);
        json_dumpf(name, stdout, JSON_ENCODE_ANY);
        return;
    }
    fputs("{\"name\": ", stdout);
    json_dumpf(name, stdout, JSON_ENCODE_ANY);
    text_print(stdout, ", \"count\": %" PRIu64 ", \"state\": \"%s\"%s, \"calls\": [", line->count,
               states[line->mark], line->assumed ? ", \"assumed\": true" : "");
}

static void json_end(void *context, const struct call_tree_line *line)
{
    struct output *output = context;

    fputs(line->kind == TREE_LOST ? "}" : "]}", stdout);
    output->fresh = false;
}

static const struct call_tree_sink text_sink = {text_begin, text_end}, json_sink = {json_begin, json_end};

/* ------------------------------------------------------------------------------------------ one thread */

/* The calls of a thread that have no return: as many as the stack was deep at the end. */
struct unreturned {
    struct {
        uint64_t seq;
        enum call_mark mark;
    } * calls;
    size_t count, capacity, at;
};

static int read_unreturned(struct tracestore *store, const struct tracestore_thread *thread,
                           struct unreturned *unreturned, struct error *err)
{
    AUTO_STATEMENT *statement = NULL;
    int r = cli_prepare(store, &statement, err,
                        "SELECT seq, state = 'open' FROM calls WHERE thread_id = ?1 AND state <> 'returned' "
                        "ORDER BY seq",
                        1, thread->thread_id);

    while (r == 0 && (r = cli_step(statement, "ni", err)) == 0) {
        if (array_reserve(&unreturned->calls, &unreturned->capacity, unreturned->count + 1) < 0)
            return error_no_memory(err);
        unreturned->calls[unreturned->count].seq = (uint64_t)sqlite3_column_int64(statement, 0);
        unreturned->calls[unreturned->count++].mark =
            sqlite3_column_int(statement, 1) ? CALL_OPEN : CALL_UNKNOWN;
    }
    return r < 0 ? r : 0;
}

static enum call_mark mark_of(struct unreturned *unreturned, uint64_t seq)
{
    while (unreturned->at < unreturned->count && unreturned->calls[unreturned->at].seq < seq)
        unreturned->at++;
    if (unreturned->at < unreturned->count && unreturned->calls[unreturned->at].seq == seq)
        return unreturned->calls[unreturned->at].mark;
    return CALL_RETURNED;
}

/* A walk through a thread. */
struct walk {
    struct tracestore *store;
    const struct tracestore_thread *thread;
    struct call_tree *tree;
    struct unreturned unreturned;
    struct {
        char **text;
        size_t count, capacity;
    } causes; /* what the tree borrows */
};

/* Keeps each text once. */
static const char *keep_cause(struct walk *walk, const char *cause)
{
    char *copy;

    for (size_t i = 0; i < walk->causes.count; i++)
        if (!strcmp(walk->causes.text[i], cause))
            return walk->causes.text[i];
    if (array_reserve(&walk->causes.text, &walk->causes.capacity, walk->causes.count + 1) < 0)
        return "unknown cause";
    copy = strdup(cause);
    if (!copy)
        return "unknown cause";
    walk->causes.text[walk->causes.count++] = copy;
    return copy;
}

static int add_lost(struct walk *walk, const struct event *event, struct error *err)
{
    AUTO_STATEMENT *statement = NULL;
    const char *cause = "unknown cause";
    uint64_t count = 0;
    int r = cli_prepare(walk->store, &statement, err,
                        "SELECT coalesce(count, 0), cause FROM losses WHERE run_id = ?1 AND thread_id = ?2 "
                        "AND seq = ?3",
                        3, walk->thread->run_id, walk->thread->thread_id, (int64_t)event->seq);

    if (r == 0)
        r = cli_step(statement, "nt", err);
    if (r == 0) {
        count = (uint64_t)sqlite3_column_int64(statement, 0);
        cause = keep_cause(walk, cli_text(statement, 1));
    }
    return r < 0 ? r : call_tree_lost(walk->tree, count, cause);
}

/* Behind a damaged segment the tree may be at another depth than the stream. */
static int match_depth(struct call_tree *tree, size_t depth)
{
    int r = 0;

    while (r == 0 && call_tree_depth(tree) > depth)
        r = call_tree_return(tree);
    while (r == 0 && call_tree_depth(tree) < depth)
        r = call_tree_call(tree, TRACESTORE_NO_FUNCTION, CALL_UNKNOWN);
    return r;
}

static int add_event(struct walk *walk, const struct event *event, struct error *err)
{
    bool bare = walk->thread->returns == TRACE_RETURNS_NONE;
    enum call_mark mark;
    int r = match_depth(walk->tree, event->depth + (event->kind == EVENT_RETURN));

    if (r < 0)
        return r;
    if (event->kind == EVENT_LOST)
        return add_lost(walk, event, err);
    if (event->kind == EVENT_RETURN)
        return call_tree_return(walk->tree);
    mark = bare ? CALL_UNKNOWN : mark_of(&walk->unreturned, event->seq);
    r = event->assumed ? call_tree_call_assumed(walk->tree, event->function, mark)
                       : call_tree_call(walk->tree, event->function, mark);
    return r == 0 && bare ? call_tree_return(walk->tree) : r;
}

/* Damaged segments are reported on stderr and make the command fail, but what is behind them is shown. */
static int walk_events(struct walk *walk, struct error *err)
{
    struct event_iter *iter = NULL;
    struct event event;
    int damaged = 0, r = event_iter_open(walk->store, walk->thread->thread_id, 0, &iter, err);

    while (r >= 0 && !cli_output_broken()) {
        r = event_iter_next(iter, &event, err);
        if (r == -EBADMSG) {
            damaged = r;
            text_print(stderr, "tracectl: %s\n", err->message);
            r = call_tree_lost(walk->tree, 0, "damaged segment");
        } else if (r == 0) {
            r = add_event(walk, &event, err);
        } else if (r > 0) {
            break;
        }
        if (r == -ENOMEM)
            error_no_memory(err);
    }
    event_iter_free(iter);
    if (r >= 0)
        call_tree_finish(walk->tree);
    return r < 0 ? r : damaged;
}

static int print_thread(struct tracestore *store, const struct tracestore_thread *thread,
                        const struct calls_input *input, struct output *output, struct error *err)
{
    struct walk walk = {.store = store, .thread = thread};
    int r = 0;

    if (input->filter.wanted)
        return call_list_print(store, output->run, thread, &input->filter, err);
    walk.tree = call_tree_new(cli.json ? &json_sink : &text_sink, output, !input->raw);
    output->returns_known = thread->returns != TRACE_RETURNS_NONE;
    if (!walk.tree)
        r = error_no_memory(err);
    if (r == 0 && output->returns_known)
        r = read_unreturned(store, thread, &walk.unreturned, err);
    if (r == 0 || r == -EIO) /* a damaged last segment: its calls are shown without marks */
        r = walk_events(&walk, err);
    call_tree_free(walk.tree);
    free(walk.unreturned.calls);
    for (size_t i = 0; i < walk.causes.count; i++)
        free(walk.causes.text[i]);
    free(walk.causes.text);
    return r;
}

/* ------------------------------------------------------------------------------------------ the run */

/* Of a thread whose calls are on one level because their nesting is unknown. */
static const char flat[] = "(returns were not recorded: the nesting is unknown; calls are listed in order)";

static void print_heading(const struct tracestore_thread *thread, bool first)
{
    bool bold = cli_colour(), bare = thread->returns == TRACE_RETURNS_NONE;

    fputs(first ? "" : "\n", stdout);
    cli_style(bold, CLI_BOLD);
    text_print(stdout, "thread %s%s%s", thread->label, *thread->name ? " " : "", thread->name);
    cli_style(bold, CLI_PLAIN);
    text_print(stdout, "%s%s\n", bare ? " " : "", bare ? flat : "");
}

/* What stands before the calls of a thread; no heading when it is the only one. */
static void begin_thread(const struct tracestore_thread *thread, bool first, bool only)
{
    if (cli.json)
        text_print(stdout, "%s\n{\"thread\": \"%s\", \"returns\": \"%s\", \"calls\": [", first ? "" : ",",
                   thread->label, trace_returns_name(thread->returns));
    else if (!only)
        print_heading(thread, first);
    else if (thread->returns == TRACE_RETURNS_NONE)
        text_print(stdout, "%s\n", flat);
}

static int print_threads(struct tracestore *store, const struct tracestore_run *run,
                         const struct tracestore_thread *threads, size_t count,
                         const struct calls_input *input, const struct names *names, struct error *err)
{
    struct output output = {.run = run, .names = names};
    size_t printed = 0;
    int r = 0;

    for (size_t i = 0; (r == 0 || r == -EBADMSG) && i < count && !cli_output_broken(); i++) {
        int r_thread;

        if (input->thread && strcmp(threads[i].label, input->thread) != 0)
            continue;
        output.fresh = true;
        begin_thread(&threads[i], !printed, input->thread);
        printed++;
        r_thread = print_thread(store, &threads[i], input, &output, err);
        if (cli.json)
            fputs("]}", stdout);
        r = r_thread < 0 ? r_thread : r;
    }
    if (r == 0 && input->thread && !printed)
        r = error_say(err, -ENOENT,
                      "thread %s: the run has no such thread with events (tracectl show %s lists them)",
                      input->thread, input->run);
    return r;
}

static void print_json_end(const struct completeness *completeness)
{
    AUTO_JSON json_t *array = completeness_json(completeness, 1);

    fputs("], \"completeness\": ", stdout);
    json_dumpf(array, stdout, JSON_COMPACT);
    puts("}");
}

static int print(struct tracestore *store, const struct tracestore_run *run, const struct calls_input *input,
                 struct error *err)
{
    struct tracestore_thread *threads = NULL;
    struct names names = {0};
    struct completeness completeness;
    size_t count = 0;
    int r = tracestore_threads(store, run->run_id, &threads, &count, err);

    if (r == 0)
        r = completeness_read(store, run->run_id, &completeness, err);
    if (r == 0)
        r = tracestore_functions(store, run->run_id, &names.functions, &names.count, err);
    if (r == 0 && cli.json)
        text_print(stdout, "{\"run\": %" PRId64 ", \"threads\": [", run->run_id);
    if (r == 0) {
        r = print_threads(store, run, threads, count, input, &names, err);
        if (cli.json)
            print_json_end(&completeness);
        else
            completeness_print(&completeness, 1);
    }
    tracestore_functions_free(names.functions, names.count);
    tracestore_threads_free(threads, count);
    return r;
}

static int run(int argc, char **argv)
{
    struct calls_input input = {0};
    AUTO_STORE struct tracestore *store = NULL;
    AUTO_RUN struct tracestore_run run = {0};
    struct error err = {0};
    struct cli_pager pager;
    int r, status = EXIT_NOTHING_FOUND;

    cli_parse(&cmd_calls, argc, argv, &input);
    if (cli_open_run(input.run, TRACESTORE_READ, &store, &run, &err) < 0)
        return cli_fail(&err);
    cli_pager_begin(&pager);
    r = print(store, &run, &input, &err);
    status = cli_finish(status);
    cli_pager_end(&pager);
    if (r == -EBADMSG)
        return EXIT_FAILED; /* reported where it was found */
    return r < 0 ? cli_fail(&err) : status;
}

const struct command cmd_calls = {
    .name = "calls",
    .summary = "print the call tree of threads, with loops folded, or calls with their times",
    .argp = &argp,
    .examples =
        "Print the call tree of the main thread of the newest run:\n"
        "  tracectl calls latest 0.0\n"
        "Print every call, without folding loops:\n"
        "  tracectl calls --raw latest 0.0\n"
        "List the calls that took a tenth of a second or longer:\n"
        "  tracectl calls --min-time 100ms latest\n"
        "List what the outer three levels did in the second after the first two:\n"
        "  tracectl calls --depth 3 --from 2s --to 3s latest\n",
    .run = run,
};
