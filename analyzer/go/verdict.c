/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/go/verdict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/go/verdict_state.h"
#include "base/array.h"

enum { SIGNAL_STATUS = 128, LAST_SIGNAL = 64 };

const char *go_verdict_name(enum go_verdict_kind kind)
{
    static const char *const names[] = {"pass", "leak", "global-deadlock", "crash", "timeout"};

    return kind < ARRAY_SIZE(names) ? names[kind] : "?";
}

/* ------------------------------------------------------------------------------------------ roles */

static bool begins_with(const char *text, const char *prefix)
{
    return !strncmp(text, prefix, strlen(prefix));
}

enum go_role go_role_of(const char *name)
{
    static const char *const run_tests[] = {"testing.tRunner", "testing.fRunner", "testing.(*B).launch"};

    if (begins_with(name, "time.") || begins_with(name, "context."))
        return GO_ROLE_TIMERS;
    if (!begins_with(name, "testing."))
        return GO_ROLE_PROGRAM;
    for (size_t i = 0; i < ARRAY_SIZE(run_tests); i++)
        if (!strcmp(name, run_tests[i]))
            return GO_ROLE_PROGRAM;
    return begins_with(name, "testing.(*M).startAlarm") ? GO_ROLE_ALARM : GO_ROLE_TESTING;
}

/* As runtime.isSystemGoroutine() has it. */
bool go_is_runtime(const char *function)
{
    static const char *const programs[] = {"runtime.main", "runtime.handleAsyncEvent", "runtime.corostart"};

    for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
        if (!strcmp(function, programs[i]))
            return false;
    /* It waits for signals, for the whole of the process. */
    return begins_with(function, "runtime.") || !strcmp(function, "os/signal.loop");
}

enum go_role judgement_role(const struct judgement *judgement, uint32_t function)
{
    const struct go_verdict_options *options = judgement->options;

    return options->role && function ? options->role(options->context, function) : GO_ROLE_PROGRAM;
}

/* ------------------------------------------------------------------------------------------ suspects */

const struct go_action *go_waiting_in(const struct go_goroutine *goroutine)
{
    for (size_t i = goroutine->action_count; i-- > 0;)
        if (goroutine->actions[i].blocked && !goroutine->actions[i].finished)
            return &goroutine->actions[i];
    return NULL;
}

static int compare_suspect(const void *key, const void *item)
{
    uint64_t goroutine = *(const uint64_t *)key;
    uint64_t other = ((const struct suspect *)item)->outcome.goroutine;

    return (goroutine > other) - (goroutine < other);
}

struct suspect *judgement_find(const struct judgement *judgement, uint64_t goroutine)
{
    if (!judgement->count)
        return NULL;
    return bsearch(&goroutine, judgement->suspects, judgement->count, sizeof(*judgement->suspects),
                   compare_suspect);
}

/* Whether the goroutine is the one that ends the process: the main one, when it is done, or one that crashes.
 * Another one that calls os.Exit breaks off what it and all others were about to do. */
static bool ends_process(const struct judgement *judgement, const struct go_goroutine *goroutine)
{
    const struct go_replay_totals *totals = &judgement->totals;
    bool by_main = !totals->exit_goroutine || totals->exit_goroutine == GO_MAIN_GOROUTINE;

    if (goroutine->state == GO_STATE_BLOCKED)
        return false;
    return (totals->exited && by_main && goroutine->goroutine == GO_MAIN_GOROUTINE) ||
           (totals->has_fatal && goroutine->goroutine == totals->fatal_goroutine);
}

/* Whether it runs a test function, and not package testing's own, which runs all of them. */
static bool is_test(const struct go_goroutine *goroutine)
{
    return goroutine->test && goroutine->goroutine != GO_MAIN_GOROUTINE;
}

static int find_tests(void *context, const struct go_goroutine *goroutine)
{
    struct judgement *judgement = context;

    judgement->tests |= is_test(goroutine);
    return 0;
}

static int add_suspect(void *context, const struct go_goroutine *goroutine)
{
    struct judgement *judgement = context;
    bool testing =
        goroutine->goroutine == GO_MAIN_GOROUTINE
            ? judgement->tests
            : !goroutine->test && judgement_role(judgement, goroutine->function) >= GO_ROLE_TESTING;

    if (goroutine->state == GO_STATE_ENDED || goroutine->system || testing ||
        ends_process(judgement, goroutine))
        return 0;
    if (array_reserve(&judgement->suspects, &judgement->capacity, judgement->count + 1) < 0)
        return -ENOMEM;
    judgement->suspects[judgement->count++] = (struct suspect){
        .goroutine = goroutine, .waits = go_waiting_in(goroutine), .outcome.goroutine = goroutine->goroutine};
    return 0;
}

/* ------------------------------------------------------------------------------------------ the whole */

/* Whether the main goroutine, or one of a test, is stuck, without which the process cannot end. */
static bool root_stuck(const struct judgement *judgement)
{
    for (size_t i = 0; i < judgement->count; i++) {
        const struct suspect *suspect = &judgement->suspects[i];

        if (is_stuck(suspect) && !suspect->silent &&
            (suspect->outcome.goroutine == GO_MAIN_GOROUTINE || suspect->goroutine->test))
            return true;
    }
    return false;
}

static bool alarm_rang(const struct judgement *judgement)
{
    const struct go_goroutine *goroutine =
        go_replay_goroutine(judgement->replay, judgement->totals.fatal_goroutine);

    return judgement->totals.has_fatal && goroutine &&
           judgement_role(judgement, goroutine->function) == GO_ROLE_ALARM;
}

/* The signal that ended the process, 0: none. A program may also exit with such a status. */
static int signal_of(const struct judgement *judgement)
{
    const struct go_verdict_options *options = judgement->options;
    int signal = options->exit_status - SIGNAL_STATUS;

    if (!options->has_exit_status || judgement->totals.exited || signal <= 0 || signal > LAST_SIGNAL)
        return 0;
    return signal;
}

static enum go_verdict_kind decide(const struct judgement *judgement, const struct go_verdict *verdict)
{
    const struct go_replay_totals *totals = &judgement->totals;
    bool alarm = alarm_rang(judgement), ended_by_itself;

    if (totals->has_fatal && totals->fatal == GO_FATAL_DEADLOCK)
        return GO_VERDICT_GLOBAL_DEADLOCK;
    if (totals->has_fatal && !alarm)
        return GO_VERDICT_CRASH;
    ended_by_itself = totals->exited && !alarm;
    if (!ended_by_itself && root_stuck(judgement))
        return GO_VERDICT_GLOBAL_DEADLOCK;
    if (alarm || (judgement->options->timed_out && !totals->exited))
        return GO_VERDICT_TIMEOUT;
    if (verdict->signal)
        return GO_VERDICT_CRASH;
    return verdict->stuck ? GO_VERDICT_LEAK : GO_VERDICT_PASS;
}

static int copy_outcomes(const struct judgement *judgement, struct go_verdict *verdict)
{
    verdict->outcomes = calloc(judgement->count + 1, sizeof(*verdict->outcomes));
    if (!verdict->outcomes)
        return -ENOMEM;
    for (size_t i = 0; i < judgement->count; i++) {
        const struct suspect *suspect = &judgement->suspects[i];

        if (suspect->silent)
            continue;
        verdict->outcomes[verdict->outcome_count++] = suspect->outcome;
        verdict->stuck += suspect->outcome.kind == GO_OUTCOME_STUCK;
        verdict->unfinished += suspect->outcome.kind == GO_OUTCOME_UNFINISHED;
        verdict->unknown += suspect->outcome.kind == GO_OUTCOME_UNKNOWN;
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------ tests */

struct tests {
    const struct judgement *judgement;
    struct go_verdict *verdict;
    size_t capacity;
};

static int add_test(void *context, const struct go_goroutine *goroutine)
{
    struct tests *tests = context;
    struct go_verdict *verdict = tests->verdict;

    if (!is_test(goroutine))
        return 0;
    if (array_reserve(&verdict->tests, &tests->capacity, verdict->test_count + 1) < 0)
        return -ENOMEM;
    verdict->tests[verdict->test_count++] =
        (struct go_test_verdict){goroutine->goroutine, goroutine->test, GO_VERDICT_PASS};
    return 0;
}

static int compare_test(const void *key, const void *item)
{
    uint64_t goroutine = *(const uint64_t *)key;
    uint64_t other = ((const struct go_test_verdict *)item)->goroutine;

    return (goroutine > other) - (goroutine < other);
}

/* The test that a goroutine belongs to: the nearest on its way up; NULL: none. */
static struct go_test_verdict *test_of(const struct tests *tests, uint64_t key)
{
    const struct go_goroutine *goroutine = go_replay_goroutine(tests->judgement->replay, key);

    while (goroutine && !goroutine->test)
        goroutine = go_replay_parent(tests->judgement->replay, goroutine);
    if (!goroutine || !tests->verdict->test_count)
        return NULL;
    return bsearch(&goroutine->goroutine, tests->verdict->tests, tests->verdict->test_count,
                   sizeof(*tests->verdict->tests), compare_test);
}

/* What the outcome of one goroutine means for its test; what is worse stays. */
static void judge_test(const struct tests *tests, const struct suspect *suspect)
{
    struct go_test_verdict *test = test_of(tests, suspect->outcome.goroutine);
    bool itself = test && test->goroutine == suspect->outcome.goroutine;
    bool cut =
        tests->verdict->kind == GO_VERDICT_TIMEOUT || tests->verdict->kind == GO_VERDICT_GLOBAL_DEADLOCK;

    if (!test || suspect->silent || test->kind > GO_VERDICT_LEAK)
        return;
    if (itself && is_stuck(suspect))
        test->kind = GO_VERDICT_GLOBAL_DEADLOCK;
    else if (itself && cut)
        test->kind = GO_VERDICT_TIMEOUT;
    else if (is_stuck(suspect))
        test->kind = GO_VERDICT_LEAK;
}

static int judge_tests(const struct judgement *judgement, struct go_verdict *verdict)
{
    struct tests tests = {.judgement = judgement, .verdict = verdict};
    struct go_test_verdict *crashed;
    int r = go_replay_each(judgement->replay, add_test, &tests);

    if (r < 0)
        return r;
    for (size_t i = 0; i < judgement->count; i++)
        judge_test(&tests, &judgement->suspects[i]);
    crashed = verdict->crashed ? test_of(&tests, verdict->crashed) : NULL;
    if (crashed)
        crashed->kind = GO_VERDICT_CRASH;
    return 0;
}

/* ------------------------------------------------------------------------------------------ the verdict */

static int judge(struct judgement *judgement, struct go_verdict *verdict)
{
    int r = go_replay_each(judgement->replay, find_tests, judgement);

    if (r == 0)
        r = go_replay_each(judgement->replay, add_suspect, judgement);
    if (r < 0)
        return r;
    judgement_fates(judgement);
    r = copy_outcomes(judgement, verdict);
    if (r < 0)
        return r;
    verdict->signal = signal_of(judgement);
    verdict->kind = decide(judgement, verdict);
    if (verdict->kind == GO_VERDICT_CRASH)
        verdict->crashed = judgement->totals.fatal_goroutine;
    else
        r = judgement_cycle(judgement, &verdict->cycle, &verdict->cycle_count);
    return r == 0 ? judge_tests(judgement, verdict) : r;
}

int go_verdict_of(struct go_replay *replay, const struct go_verdict_options *options,
                  struct go_verdict *ret_verdict)
{
    struct judgement judgement = {.replay = replay, .options = options, .totals = go_replay_totals(replay)};
    struct go_verdict verdict = {0};
    int r = judge(&judgement, &verdict);

    free(judgement.suspects);
    if (r < 0) {
        go_verdict_release(&verdict);
        return r;
    }
    *ret_verdict = verdict;
    return 0;
}

void go_verdict_release(struct go_verdict *verdict)
{
    free(verdict->outcomes);
    free(verdict->cycle);
    free(verdict->tests);
    *verdict = (struct go_verdict){0};
}
