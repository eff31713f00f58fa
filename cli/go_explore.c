/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl go explore: many executions with their goroutines held up here and there, until a bug shows. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/go/coverage.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/go_commands.h"
#include "cli/go_meanwhile.h"
#include "cli/go_session.h"
#include "cli/go_timeline.h"
#include "cli/go_users.h"
#include "cli/go_verdict.h"
#include "cli/output.h"
#include "cli/signals.h"
#include "collector/go/program.h"
#include "collector/go/strategy.h"
#include "collector/go/usages.h"

enum { KEY_RUNS = 0x400, KEY_YIELDS, KEY_SEED, KEY_COVERAGE, KEY_JOBS, SCHEDULE_MAX = 320 };

struct arguments {
    struct go_session_options session;
    unsigned long runs, yields, jobs;
    double coverage; /* percent at which to stop; 0: never */
    const char *seed;
};

/* The observer of one process. */
struct observed {
    pid_t pid;
    unsigned worker;
    struct go_coverage_observer *observer;
    struct go_meanwhile *meanwhile;
    struct exploration *exploration;
    struct observed *next;
};

/* One execution beside others. */
struct worker {
    uint32_t execution; /* from 1 */
    uint32_t coverage_run;
    struct go_conduct taken; /* the delays of this execution */
    struct go_hold_rule rule;
    uint64_t begun_ns; /* CLOCK_MONOTONIC */
};

struct exploration {
    const struct arguments *arguments;
    struct go_session *session;
    struct go_coverage *coverage;
    struct go_strategy *strategy;
    struct go_users users;
    struct observed *observed;
    struct go_program_file *file; /* met last */
    uint64_t seed;
    struct worker workers[GO_WORKERS_MAX];
    unsigned running;
    uint32_t begun, ended; /* executions; the last one to end is that with the bug, if there is one */
    uint64_t delays;
    uint64_t unfinished;         /* executions that passed with goroutines that had not ended */
    enum go_verdict_kind kind;   /* of the first bug */
    int64_t process_id;          /* that has it; 0: none has */
    char schedule[SCHEDULE_MAX]; /* of that execution */
};

/* ------------------------------------------------------------------------------------ arguments */

static const struct argp_option options[] = {
    {"runs", KEY_RUNS, "N", 0, "At most so many executions (default 100)", 1},
    {"yields", KEY_YIELDS, "D", 0,
     "In each, goroutines are held up before at most so many operations, until all others have come as far "
     "as "
     "they can (default 3; 0: never)",
     1},
    {"jobs", KEY_JOBS, "N", 0, "So many executions run beside each other (default 1)", 1},
    {"seed", KEY_SEED, "SEED", 0,
     "A number that all choices follow from (default: another one each time), or the schedule that go "
     "explore "
     "printed, to go through it again",
     1},
    {"coverage", KEY_COVERAGE, "PERCENT", 0, "Stop when so much of the coverage requirements is met", 1},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct arguments *arguments = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        go_session_defaults(&arguments->session);
        arguments->runs = 100;
        arguments->yields = 3;
        arguments->jobs = 1;
        state->child_inputs[0] = &arguments->session;
        return 0;
    case KEY_RUNS:
        arguments->runs = cli_parse_number(state, "--runs", arg, 1, 1000000);
        return 0;
    case KEY_YIELDS:
        arguments->yields = cli_parse_number(state, "--yields", arg, 0, GO_CHOICES_MAX);
        return 0;
    case KEY_JOBS:
        arguments->jobs = cli_parse_number(state, "--jobs", arg, 1, GO_WORKERS_MAX);
        return 0;
    case KEY_COVERAGE:
        arguments->coverage = (double)cli_parse_number(state, "--coverage", arg, 1, 100);
        return 0;
    case KEY_SEED:
        arguments->seed = arg;
        return 0;
    case ARGP_KEY_ARG:
        if (!cli_is_behind_dashes(state))
            return ARGP_ERR_UNKNOWN;
        arguments->session.command = state->argv + state->next - 1;
        state->next = state->argc;
        return 0;
    case ARGP_KEY_END:
        if (!arguments->session.command)
            argp_error(state, "go explore needs -- and a command");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child children[] = {
    {&go_session_argp, 0, NULL, 0}, {&cli_common_argp, 0, NULL, 0}, {0}};

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "-- COMMAND [ARG...]",
    .doc =
        "Run a Go program, or a test binary, again and again under schedules that it seldom meets by itself, "
        "until its goroutines leak, wait for each other or crash.\v"
        "Goroutines are held up before operations on channels, locks and the like, those first whose "
        "coverage "
        "requirements no execution has met yet, while all others go on. Nothing else is changed: what shows "
        "can happen without tracectl as well. All executions are one run of the store, each a process of "
        "it.\n"
        "\n"
        "The exit status is 1 when something was found.",
    .children = children,
};

/* ------------------------------------------------------------------------------------ one execution */

static struct observed *find_observed(const struct exploration *exploration, pid_t pid)
{
    struct observed *observed = exploration->observed;

    while (observed && observed->pid != pid)
        observed = observed->next;
    return observed;
}

static int add_model(struct exploration *exploration, struct go_program_file *file)
{
    struct go_usage_row *rows;
    size_t count;
    int r = go_program_usages(file, &rows, &count);

    if (r)
        return r;
    r = go_coverage_add_model(exploration->coverage, rows, count);
    go_usages_rows_free(rows, count);
    return r;
}

static bool was_hit(void *context, uint32_t probe)
{
    const struct observed *observed = context;
    const struct exploration *exploration = observed->exploration;

    return go_session_hits(exploration->session, probe, observed->worker,
                           exploration->workers[observed->worker].execution);
}

static int new_meanwhile(struct observed *observed, struct go_program_file *file)
{
    const struct go_meanwhile_options meanwhile = {.file = file, .was_hit = was_hit, .context = observed};

    return go_meanwhile_new(&meanwhile, &observed->meanwhile);
}

/* The process's observer, made at its first event. */
static int observe(struct exploration *exploration, const struct go_process *process,
                   struct observed **ret_observed)
{
    struct observed *observed = find_observed(exploration, process->pid);
    struct go_program_file *file = (struct go_program_file *)process->file;
    int r, worker;

    *ret_observed = observed;
    if (observed)
        return 0;
    worker = go_session_worker(exploration->session, process->pid);
    exploration->file = file;
    r = add_model(exploration, file);
    observed = calloc(1, sizeof(*observed));
    if (!observed)
        return -ENOMEM;
    observed->pid = process->pid;
    observed->worker = worker > 0 ? (unsigned)worker : 0;
    go_session_hold_by(exploration->session, process->pid, &exploration->workers[observed->worker].rule);
    if (!r)
        r = go_coverage_observer_new(exploration->coverage,
                                     exploration->workers[observed->worker].coverage_run,
                                     go_program_places(file), &observed->observer);
    observed->exploration = exploration;
    if (!r)
        r = new_meanwhile(observed, file);
    if (r) {
        go_coverage_observer_free(observed->observer);
        free(observed);
        return r;
    }
    observed->next = exploration->observed;
    exploration->observed = observed;
    *ret_observed = observed;
    return 0;
}

static void note_delay(struct exploration *exploration, unsigned worker, const struct go_event *event)
{
    struct go_conduct *taken = &exploration->workers[worker].taken;

    exploration->delays++;
    if (taken->choice_count == GO_CHOICES_MAX)
        return;
    taken->choices[taken->choice_count].probe = (uint32_t)event->other;
    taken->choices[taken->choice_count++].hit = (uint32_t)event->value;
}

static int on_event(void *context, const struct go_process *process, struct go_replay *replay,
                    const struct go_event *event)
{
    struct exploration *exploration = context;
    struct observed *observed;
    int r = observe(exploration, process, &observed);

    if (r)
        return r;
    if (event->kind == GO_EVENT_OPERATE) {
        const struct go_place_source places = go_program_places((struct go_program_file *)process->file);

        r = go_users_add(&exploration->users, process->pid, replay, event, &places);
        if (r)
            return r;
    }
    r = go_meanwhile_event(observed->meanwhile, event, exploration->strategy);
    if (r)
        return r;
    if (event->kind == GO_EVENT_DELAY)
        note_delay(exploration, observed->worker, event);
    return go_coverage_observer_event(observed->observer, replay, event);
}

static int on_action(void *context, const struct go_process *process, const struct go_goroutine *goroutine,
                     const struct go_action *action)
{
    struct observed *observed;
    int r = observe(context, process, &observed);

    return r ? r : go_coverage_observer_action(observed->observer, goroutine, action);
}

static void forget_observed(struct exploration *exploration, pid_t pid)
{
    struct observed **link = &exploration->observed, *gone;

    while (*link && (*link)->pid != pid)
        link = &(*link)->next;
    gone = *link;
    if (!gone)
        return;
    *link = gone->next;
    go_coverage_observer_free(gone->observer);
    go_meanwhile_free(gone->meanwhile);
    free(gone);
}

static int on_end(void *context, const struct go_process *process, const struct go_watched *watched)
{
    struct exploration *exploration = context;
    enum go_verdict_kind kind = watched->verdict->kind;
    const struct observed *observed = find_observed(exploration, process->pid);
    unsigned worker = observed ? observed->worker : 0;

    forget_observed(exploration, process->pid);
    if (signals_came() || exploration->process_id)
        return 0; /* Ctrl-C is no bug, and one is enough */
    if (kind == GO_VERDICT_PASS) {
        exploration->unfinished += watched->verdict->unfinished > 0;
        return 0;
    }
    exploration->kind = kind;
    exploration->process_id = watched->process_id;
    go_schedule_write(&exploration->workers[worker].taken, exploration->schedule,
                      sizeof(exploration->schedule));
    return 0;
}

/* What this execution has come to is what the next ones choose from. */
static int learn(struct exploration *exploration, unsigned worker)
{
    const struct go_targets *targets = exploration->file ? go_program_targets(exploration->file) : NULL;
    uint32_t first = exploration->file ? go_program_first_probe(exploration->file) : 0;
    int r = 0;

    for (size_t i = 0; !r && targets && i < targets->count; i++) {
        const struct go_target *target = &targets->items[i];
        struct go_place_use use = {.index = first + (uint32_t)i};

        if (target->probe.kind != GO_AT_DELAY)
            continue;
        use.hits =
            go_session_hits(exploration->session, use.index, worker, exploration->workers[worker].execution);
        if (!use.hits)
            continue;
        if (target->usage && target->operation) {
            use.open = (unsigned)go_coverage_open(exploration->coverage, target->usage->file,
                                                  (int)target->usage->line, target->operation);
            use.users = go_users_of(&exploration->users, target->usage->file, (int)target->usage->line);
            use.waits = go_op_can_wait(target->operation);
        }
        r = go_strategy_learn(exploration->strategy, &use);
    }
    return r;
}

static int begin(struct exploration *exploration, unsigned number, const struct go_conduct *schedule,
                 struct error *err)
{
    struct worker *worker = &exploration->workers[number];
    struct go_conduct conduct = *schedule;
    char name[16];
    int r;

    *worker = (struct worker){.execution = ++exploration->begun};
    conduct.execution = worker->execution;
    conduct.stop_exit = exploration->arguments->session.drain > 0;
    if (!conduct.choice_count)
        go_strategy_choose(exploration->strategy, &conduct);
    go_strategy_holds(exploration->strategy, &worker->rule);
    worker->begun_ns = clock_ns(CLOCK_MONOTONIC);
    snprintf(name, sizeof(name), "%u", worker->execution);
    if (go_coverage_add_run(exploration->coverage, name, &worker->coverage_run))
        return error_no_memory(err), -ENOMEM;
    r = go_session_launch(exploration->session, number, &conduct, err);
    exploration->running += !r;
    return r;
}

/* Whether no more executions are to begin. */
static bool is_enough(const struct exploration *exploration)
{
    const struct arguments *arguments = exploration->arguments;
    struct go_coverage_count covered = go_coverage_total(exploration->coverage);

    return exploration->process_id || exploration->begun >= arguments->runs ||
           (exploration->ended && arguments->coverage > 0 &&
            go_coverage_percent(covered) >= arguments->coverage);
}

/* Waits for one and learns from it; a bug ends the others, which do not count. 1: interrupted. */
static int finish_one(struct exploration *exploration, unsigned *ret_worker, struct error *err)
{
    bool over = exploration->process_id;
    const struct worker *worker;
    int r = go_session_wait(exploration->session, ret_worker, err);

    if (r)
        return r;
    exploration->running--;
    if (over)
        return 0;
    exploration->ended++;
    worker = &exploration->workers[*ret_worker];
    go_strategy_took(exploration->strategy, &worker->rule, clock_ns(CLOCK_MONOTONIC) - worker->begun_ns);
    if (exploration->process_id)
        go_session_kill(exploration->session);
    r = learn(exploration, *ret_worker);
    return r ? error_set(err, r, NULL, "cannot explore") : 0;
}

static int execute_all(struct exploration *exploration, const struct go_conduct *schedule, struct error *err)
{
    unsigned worker = 0;
    int r = 0;

    for (unsigned i = 0; !r && i < exploration->arguments->jobs && !is_enough(exploration); i++)
        r = begin(exploration, i, schedule, err);
    while (!r && exploration->running) {
        r = finish_one(exploration, &worker, err);
        if (!r && !is_enough(exploration))
            r = begin(exploration, worker, schedule, err);
    }
    if (r && exploration->running)
        go_session_kill(exploration->session);
    return r;
}

/* ------------------------------------------------------------------------------------ all of them */

static int read_seed(const struct arguments *arguments, uint64_t *ret_seed, struct go_conduct *schedule,
                     struct error *err)
{
    char *end;

    *ret_seed = clock_ns(CLOCK_REALTIME);
    if (!arguments->seed)
        return 0;
    *ret_seed = strtoull(arguments->seed, &end, 10);
    if (*arguments->seed && !*end)
        return 0;
    return go_schedule_parse(arguments->seed, schedule)
               ? error_say(err, -EINVAL, "cannot read the seed '%s' (a number, or PLACE.HIT,PLACE.HIT...)",
                           arguments->seed)
               : 0;
}

static void exploration_release(struct exploration *exploration)
{
    while (exploration->observed)
        forget_observed(exploration, exploration->observed->pid);
    go_session_free(exploration->session);
    go_coverage_free(exploration->coverage);
    go_strategy_free(exploration->strategy);
    go_users_release(&exploration->users);
}

static int explore(struct tracestore *store, struct exploration *exploration,
                   const struct go_session_options *session, int64_t *ret_run_id, struct error *err)
{
    struct go_conduct schedule = {0};
    int r = read_seed(exploration->arguments, &exploration->seed, &schedule, err);

    if (!r && (go_coverage_new(false, &exploration->coverage) ||
               go_strategy_new(exploration->seed, (unsigned)exploration->arguments->yields,
                               &exploration->strategy)))
        r = (error_no_memory(err), -ENOMEM);
    if (!r)
        r = go_session_open(store, session, &exploration->session, err);
    if (!r)
        r = execute_all(exploration, &schedule, err);
    return r < 0 ? r : go_session_close(exploration->session, ret_run_id, err);
}

/* ------------------------------------------------------------------------------------ the report */

/* The one process that has the bug, judged; or the last one. */
static int judge(struct tracestore *store, const struct exploration *exploration, int64_t run_id,
                 struct go_judged_run *all, struct go_judged *judged, struct error *err)
{
    int r = go_programs_of(store, run_id, all, err);

    for (size_t i = 0; !r && i < all->count; i++)
        if (all->programs[i].process_id == exploration->process_id ||
            (!exploration->process_id && i + 1 == all->count))
            return go_judge(store, &all->programs[i], all->places, NULL, judged, err);
    return r;
}

static int print_text(const struct exploration *exploration, struct tracestore *store,
                      const struct go_judged_run *one, struct error *err)
{
    struct go_coverage_count covered = go_coverage_total(exploration->coverage);
    double percent = go_coverage_percent(covered);

    if (exploration->process_id) {
        text_print(stdout,
                   "execution %u of at most %lu found a bug, %zu of %zu requirements covered (%.0f %%)\n",
                   exploration->ended, exploration->arguments->runs, covered.covered, covered.total, percent);
        if (*exploration->schedule)
            text_print(stdout, "the same schedule again: --seed %s\n", exploration->schedule);
        putchar('\n');
        go_verdict_text(stdout, one);
        putchar('\n');
        return go_timeline_text(stdout, store, one->judged, NULL, go_timeline_width(), err);
    }
    text_print(stdout,
               "pass: nothing found in %u executions, %zu of %zu requirements covered (%.0f %%); seed %llu\n",
               exploration->ended, covered.covered, covered.total, percent,
               (unsigned long long)exploration->seed);
    if (exploration->unfinished)
        text_print(stdout, "%llu of them ended while goroutines could still have gone on\n",
                   (unsigned long long)exploration->unfinished);
    return 0;
}

static void print_json(const struct exploration *exploration, const struct tracestore_run *run,
                       const struct go_judged_run *one)
{
    AUTO_JSON json_t *document = go_verdict_json(one);
    char seed[24];

    snprintf(seed, sizeof(seed), "%llu", (unsigned long long)exploration->seed);
    if (!exploration->process_id)
        json_object_set_new(document, "verdict", json_string("pass"));
    json_object_set_new(document, "run", json_integer(run->run_id));
    json_object_set_new(document, "name", cli_json_text(run->name));
    json_object_set_new(document, "runs", json_integer(exploration->ended));
    json_object_set_new(document, "first_bug_run",
                        exploration->process_id ? json_integer(exploration->ended) : json_null());
    json_object_set_new(document, "yields", json_integer((json_int_t)exploration->delays));
    json_object_set_new(document, "seed", json_string(*exploration->schedule ? exploration->schedule : seed));
    json_object_set_new(document, "base_seed", json_string(seed));
    json_object_set_new(document, "unfinished_runs", json_integer((json_int_t)exploration->unfinished));
    json_object_set_new(document, "coverage_percent",
                        json_real(go_coverage_percent(go_coverage_total(exploration->coverage))));
    cli_json_print(document);
}

static int report(struct tracestore *store, const struct exploration *exploration, int64_t run_id,
                  struct error *err)
{
    CLEANUP(go_judged_run_release) struct go_judged_run all = {0};
    CLEANUP(go_judged_release) struct go_judged judged = {0};
    AUTO_RUN struct tracestore_run run = {0};
    struct go_judged_run one;
    char number[24];
    int r;

    snprintf(number, sizeof(number), "%lld", (long long)run_id);
    r = tracestore_find_run(store, number, &run, err);
    if (!r)
        r = judge(store, exploration, run_id, &all, &judged, err);
    if (r)
        return r;
    one = (struct go_judged_run){.programs = all.programs,
                                 .places = all.places,
                                 .judged = &judged,
                                 .count = 1,
                                 .kind = judged.verdict.kind};
    if (!cli.json)
        return print_text(exploration, store, &one, err);
    print_json(exploration, &run, &one);
    return 0;
}

static int run(int argc, char **argv)
{
    AUTO_STORE struct tracestore *store = NULL;
    CLEANUP(exploration_release) struct exploration exploration = {0}; /* goes before its store */
    struct arguments arguments = {0};
    struct error err = {0};
    int64_t run_id = 0;
    int r;

    cli_parse(&go_explore_command, argc, argv, &arguments);
    exploration.arguments = &arguments;
    arguments.session.delays = true;
    arguments.session.observer = (struct go_watch_observer){
        .event = on_event, .action = on_action, .end = on_end, .context = &exploration};
    r = tracestore_open(cli.store_path, TRACESTORE_CREATE, &store, &err);
    if (!r)
        r = explore(store, &exploration, &arguments.session, &run_id, &err);
    if (r >= 0)
        r = report(store, &exploration, run_id, &err);
    if (r < 0)
        return cli_fail(&err);
    return cli_finish(exploration.process_id ? EXIT_FOUND : EXIT_NOTHING_FOUND);
}

const struct command go_explore_command = {
    .name = "go explore",
    .summary = "run a program under many schedules until a bug shows",
    .argp = &argp,
    .argp_flags = ARGP_IN_ORDER, /* the options behind the command are the command's */
    .run = run,
};
