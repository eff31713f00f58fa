/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/go/watched_process.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"

#define JUDGE_EVERY_NS 50000000u
#define JUDGE_RARELY_NS 500000000u /* however long it takes */
#define JUDGE_SHARE 20             /* judging may take so small a part of the time */

static enum go_role role_of(void *context, uint32_t function)
{
    const struct watched_process *process = context;
    const char *name = go_program_name(process->process.file, function);

    return name ? go_role_of(name) : GO_ROLE_PROGRAM;
}

static bool is_runtime(void *context, uint32_t function)
{
    const struct watched_process *process = context;
    const char *name = go_program_name(process->process.file, function);

    return name && go_is_runtime(name);
}

static bool ignores_timer(void *context, uint32_t site)
{
    return role_of(context, site) >= GO_ROLE_TESTING;
}

static int on_action(void *context, const struct go_goroutine *goroutine, const struct go_action *action)
{
    const struct watched_process *process = context;
    const struct go_watch_observer *observer = process->observer;

    return observer->action(observer->context, &process->process, goroutine, action);
}

int watched_process_new(const struct go_process *met, const struct go_watch_observer *observer,
                        struct watched_process **ret_process)
{
    const struct go_layout *layout = go_program_layout(met->file);
    struct watched_process *process = calloc(1, sizeof(*process));
    const struct go_replay_options options = {
        .on_action = observer->action ? on_action : NULL,
        .is_runtime = is_runtime,
        .ignores_timer = ignores_timer,
        .context = process,
        .wait_reasons = layout->wait_reasons,
        .wait_reason_count = layout->wait_reason_count,
    };

    if (!process || go_replay_new(&options, &process->replay)) {
        free(process);
        return -ENOMEM;
    }
    process->pid = met->pid;
    process->observer = observer;
    process->process = *met;
    process->rule = (struct go_hold_rule){.limit_ns = GO_HOLD_SHORT_NS};
    process->begun_ns = clock_ns(CLOCK_MONOTONIC);
    *ret_process = process;
    return 0;
}

void watched_process_free(struct watched_process *process)
{
    go_replay_free(process->replay);
    free(process);
}

int watched_process_judge(const struct watched_process *process, int exit_status,
                          struct go_verdict *ret_verdict)
{
    const struct go_verdict_options options = {
        .role = role_of,
        .context = (void *)process,
        .has_exit_status = exit_status >= 0 && process->end == GO_END_OWN,
        .exit_status = exit_status,
        .timed_out = process->end == GO_END_LIMIT,
        .operations = go_program_detail(process->process.file) == GO_DETAIL_OPERATIONS,
    };

    return go_verdict_of(process->replay, &options, ret_verdict);
}

/* Since when goroutines have stood still whose end the process waits for: the main one, or a test's. */
static uint64_t roots_stuck_since(const struct watched_process *process, const struct go_verdict *verdict)
{
    uint64_t since = process->seen_ns;

    for (size_t i = 0; i < verdict->outcome_count; i++) {
        const struct go_outcome *outcome = &verdict->outcomes[i];
        const struct go_goroutine *goroutine = go_replay_goroutine(process->replay, outcome->goroutine);

        if (outcome->kind == GO_OUTCOME_STUCK &&
            (goroutine->test || outcome->goroutine == GO_MAIN_GOROUTINE) && goroutine->since_ns < since)
            since = goroutine->since_ns;
    }
    return since;
}

/* Judges the process as it stands, from time to time: `stuck_since_ns`. */
static void judge_if_due(struct watched_process *process, uint64_t now)
{
    struct go_verdict verdict = {0};
    uint64_t since;

    if (now - process->judged_ns < process->judge_every_ns)
        return;
    if (watched_process_judge(process, -1, &verdict) || verdict.kind != GO_VERDICT_GLOBAL_DEADLOCK) {
        process->stuck_since_ns = 0;
    } else {
        since = roots_stuck_since(process, &verdict);
        if (!process->stuck_since_ns)
            process->stuck_since_ns = process->seen_ns;
        else if (process->stuck_since_ns < since) /* it has moved between two looks */
            process->stuck_since_ns = since;
    }
    go_verdict_release(&verdict);
    process->judged_ns = clock_ns(CLOCK_MONOTONIC);
    process->judge_every_ns = JUDGE_EVERY_NS + JUDGE_SHARE * (process->judged_ns - now);
    if (process->judge_every_ns > JUDGE_RARELY_NS)
        process->judge_every_ns = JUDGE_RARELY_NS;
}

bool watched_process_is_deadlocked(struct watched_process *process, uint64_t patience_ns, uint64_t now)
{
    struct go_replay_totals totals = go_replay_totals(process->replay);

    if (totals.exited || totals.has_fatal || totals.lost)
        return false;
    judge_if_due(process, now);
    return process->stuck_since_ns && process->seen_ns - process->stuck_since_ns >= patience_ns;
}
