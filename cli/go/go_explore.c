/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl go explore: many executions with their goroutines held up here and there, until a bug shows. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/number.h"
#include "cli/common/output.h"
#include "cli/common/signals.h"
#include "cli/go/go_commands.h"
#include "cli/go/go_exploration.h"
#include "cli/go/go_output.h"
#include "collector/go/program.h"
#include "collector/go/strategy.h"
#include "collector/go/usages.h"

enum { KEY_RUNS = 0x400, KEY_YIELDS, KEY_SEED, KEY_COVERAGE, KEY_JOBS };
enum { OUTPUT_LIMIT_EVENTS = 1024 };

/* ------------------------------------------------------------------------------------ arguments */

static const struct argp_option options[] = {
    {"runs", KEY_RUNS, "N", 0, "Maximum number of executions (default 100)", 1},
    {"yields", KEY_YIELDS, "D", 0,
     "Delay goroutines at no more than D places per execution, until all others have run as far as they "
     "can (default 3; 0: never)",
     1},
    {"jobs", KEY_JOBS, "N", 0, "Number of executions at the same time (default 1)", 1},
    {"seed", KEY_SEED, "SEED", 0,
     "Random seed (default: a new one each time), or a schedule printed by go explore, to repeat it", 1},
    {"coverage", KEY_COVERAGE, "PERCENT", 0,
     "Stop when this percentage of the coverage requirements is covered", 1},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct go_explore_arguments *arguments = state->input;

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
            argp_error(state, "no command given (go explore -- COMMAND)");
        go_session_check_command(arguments->session.command, "go explore", state);
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
        "Run a Go program or a test binary repeatedly under rare schedules, until its goroutines leak, "
        "deadlock or crash.\vGoroutines are delayed before operations on channels and locks, before "
        "atomic instructions, after go statements and where they begin, while all others continue. "
        "Nothing else is changed: every reported bug can also happen without tracectl. All executions "
        "are stored as one run, each as a process of it. After a pass with many probe hits, the command "
        "is run once more without probes, to measure how much they slowed it down.\n\n"
        "The output of the executions is not shown, except for the one in which a bug was found; with -v "
        "it is shown immediately.\n\n"
        "The exit status is 1 if a bug was found.",
    .children = children,
};

/* ------------------------------------------------------------------------------------ one execution */

static struct go_observed *find_observed(const struct exploration *exploration, pid_t pid)
{
    struct go_observed *observed = exploration->observed;

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
    const struct go_observed *observed = context;
    const struct exploration *exploration = observed->exploration;

    return go_session_hits(exploration->session, probe, observed->worker,
                           exploration->workers[observed->worker].execution);
}

static int new_meanwhile(struct go_observed *observed, struct go_program_file *file)
{
    const struct go_meanwhile_options meanwhile = {.file = file, .was_hit = was_hit, .context = observed};

    return go_meanwhile_new(&meanwhile, &observed->meanwhile);
}

/* The process's observer, made at its first event. */
static int observe(struct exploration *exploration, const struct go_process *process,
                   struct go_observed **ret_observed)
{
    struct go_observed *observed = find_observed(exploration, process->pid);
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

static void note_delay(struct exploration *exploration, unsigned worker, const struct process_event *event)
{
    struct go_schedule *taken = &exploration->workers[worker].taken;

    exploration->delays++;
    if (taken->choice_count == GO_CHOICES_MAX)
        return;
    taken->choices[taken->choice_count].probe = (uint32_t)event->other;
    taken->choices[taken->choice_count++].hit = (uint32_t)event->value;
}

static int on_event(void *context, const struct go_process *process, struct go_replay *replay,
                    const struct process_event *event)
{
    struct exploration *exploration = context;
    struct go_observed *observed;
    int r = observe(exploration, process, &observed);

    if (r)
        return r;
    if (event->kind == GO_EVENT_OPERATE) {
        const struct go_place_source places = go_program_places((struct go_program_file *)process->file);

        r = go_users_add(&exploration->users, process->pid, replay, event, &places);
        if (r)
            return r;
    }
    if (exploration->outputs[observed->worker] && ++exploration->events % OUTPUT_LIMIT_EVENTS == 0)
        go_output_limit(exploration->outputs[observed->worker]);
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
    struct go_observed *observed;
    int r = observe(context, process, &observed);

    return r ? r : go_coverage_observer_action(observed->observer, goroutine, action);
}

static void forget_observed(struct exploration *exploration, pid_t pid)
{
    struct go_observed **link = &exploration->observed, *gone;

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
    const struct go_observed *observed = find_observed(exploration, process->pid);
    unsigned worker = observed ? observed->worker : 0;

    exploration->workers[worker].hits += watched->events;
    exploration->workers[worker].drained_ns += watched->drained_ns;
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
    if (exploration->outputs[worker])
        exploration->output = go_output_text(exploration->outputs[worker]);
    return 0;
}

/* What this execution has come to is what the next ones choose from. */
static int learn(struct exploration *exploration, unsigned number)
{
    const struct go_targets *targets = exploration->file ? go_program_targets(exploration->file) : NULL;
    struct go_explore_worker *worker = &exploration->workers[number];
    uint32_t first = exploration->file ? go_program_first_probe(exploration->file) : 0;
    int r = 0;

    for (size_t i = 0; !r && targets && i < targets->count; i++) {
        const struct go_target *target = &targets->items[i];
        struct go_place_use use = {.index = first + (uint32_t)i};

        if (target->probe.kind != GO_AT_DELAY)
            continue;
        use.hits = go_session_hits(exploration->session, use.index, number, worker->execution);
        if (!use.hits)
            continue;
        worker->hits += use.hits;
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

/* All holds of an execution together must not make it a timeout. */
static uint64_t longest_hold(const struct go_explore_arguments *arguments)
{
    double share = (double)arguments->session.limit_ns / (double)(2 * arguments->yields + 2);

    return share > 0 && share < GO_HOLD_LONGEST_NS ? (uint64_t)share : GO_HOLD_LONGEST_NS;
}

/* What the executions print is kept until the next one, unless it is to be seen as it comes. */
static int keep_output(struct exploration *exploration, unsigned worker, struct error *err)
{
    int *output = &exploration->outputs[worker], r;

    if (cli.verbosity > 0)
        return 0;
    if (*output) {
        go_output_clear(*output);
        return 0;
    }
    r = go_output_open(output, err);
    if (!r)
        go_session_redirect(exploration->session, worker, *output);
    return r;
}

static int begin(struct exploration *exploration, unsigned number, const struct go_schedule *schedule,
                 struct error *err)
{
    struct go_explore_worker *worker = &exploration->workers[number];
    struct go_schedule order = *schedule;
    char name[16];
    int r;

    *worker = (struct go_explore_worker){.execution = ++exploration->begun};
    order.execution = worker->execution;
    order.stop_exit = exploration->arguments->session.drain_ns > 0;
    if (!order.choice_count)
        go_strategy_choose(exploration->strategy, &order);
    go_strategy_holds(exploration->strategy, longest_hold(exploration->arguments), &worker->rule);
    worker->begun_ns = clock_ns(CLOCK_MONOTONIC);
    snprintf(name, sizeof(name), "%u", worker->execution);
    if (go_coverage_add_run(exploration->coverage, name, &worker->coverage_run))
        return error_no_memory(err), -ENOMEM;
    r = keep_output(exploration, number, err);
    if (!r)
        r = go_session_launch(exploration->session, number, &order, err);
    exploration->running += !r;
    return r;
}

/* Whether no more executions are to begin. */
static bool is_enough(const struct exploration *exploration)
{
    const struct go_explore_arguments *arguments = exploration->arguments;
    struct go_coverage_count covered = go_coverage_total(exploration->coverage);

    return exploration->process_id || exploration->begun >= arguments->runs ||
           (exploration->ended && arguments->coverage > 0 &&
            go_coverage_percent(covered) >= arguments->coverage);
}

/* Waits for one and learns from it; a bug ends the others, which do not count. 1: interrupted. */
static int finish_one(struct exploration *exploration, unsigned *ret_worker, struct error *err)
{
    bool over = exploration->process_id;
    const struct go_explore_worker *worker;
    uint64_t took;
    int r = go_session_wait(exploration->session, ret_worker, err);

    if (r)
        return r;
    exploration->running--;
    if (over)
        return 0;
    exploration->ended++;
    worker = &exploration->workers[*ret_worker];
    took = clock_ns(CLOCK_MONOTONIC) - worker->begun_ns;
    go_strategy_took(exploration->strategy, &worker->rule, took);
    if (exploration->process_id)
        go_session_kill(exploration->session);
    r = learn(exploration, *ret_worker);
    if (!worker->rule.outlasts_timers && took > worker->drained_ns)
        go_slowdown_add(&exploration->slowdown, worker->hits, took - worker->drained_ns);
    return r ? error_set(err, r, NULL, "cannot explore") : 0;
}

static int execute_all(struct exploration *exploration, const struct go_schedule *schedule, struct error *err)
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

static int read_seed(const struct go_explore_arguments *arguments, uint64_t *ret_seed,
                     struct go_schedule *schedule, struct error *err)
{
    *ret_seed = clock_ns(CLOCK_REALTIME);
    if (!arguments->seed || number_parse_count(arguments->seed, ret_seed))
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
    for (unsigned i = 0; i < GO_WORKERS_MAX; i++)
        if (exploration->outputs[i])
            close(exploration->outputs[i]);
    free(exploration->output);
}

static int explore(struct tracestore *store, struct exploration *exploration,
                   const struct go_session_options *session, int64_t *ret_run_id, struct error *err)
{
    struct go_schedule schedule = {0};
    bool interrupted;
    int r = read_seed(exploration->arguments, &exploration->seed, &schedule, err);

    if (!r && (go_coverage_new(false, &exploration->coverage) ||
               go_strategy_new(exploration->seed, (unsigned)exploration->arguments->yields,
                               &exploration->strategy)))
        r = (error_no_memory(err), -ENOMEM);
    if (!r)
        r = go_session_open(store, session, &exploration->session, err);
    if (!r)
        r = execute_all(exploration, &schedule, err);
    interrupted = r == 1;
    if (r >= 0)
        r = go_session_close(exploration->session, ret_run_id, err);
    if (r < 0)
        return r;
    go_session_free(exploration->session); /* with it the probes go */
    exploration->session = NULL;
    if (!interrupted && !exploration->process_id)
        exploration->slowed = go_slowdown_measure(&exploration->slowdown, session->command);
    return 0;
}

static int run(int argc, char **argv)
{
    AUTO_STORE struct tracestore *store = NULL;
    CLEANUP(exploration_release) struct exploration exploration = {0}; /* goes before its store */
    struct go_explore_arguments arguments = {0};
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
        r = go_exploration_report(store, &exploration, run_id, &err);
    if (r < 0)
        return cli_fail(&err);
    return cli_finish(exploration.process_id ? EXIT_FOUND : EXIT_NOTHING_FOUND);
}

const struct command go_explore_command = {
    .name = "go explore",
    .summary = "run a program under many schedules until a bug appears",
    .argp = &argp,
    .examples =
        "Run a test binary up to 200 times with two delays each:\n"
        "  go test -c -o pool.test ./pool\n"
        "  tracectl go explore --runs 200 --yields 2 -- ./pool.test\n"
        "Repeat the schedule that showed the bug:\n"
        "  tracectl go explore --runs 1 --seed 3.1,7.2 -- ./pool.test\n",
    .argp_flags = ARGP_IN_ORDER, /* the options behind the command are the command's */
    .run = run,
};
