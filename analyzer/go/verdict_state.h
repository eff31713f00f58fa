/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the verdict share: verdict.c (decision), verdict_outcomes.c (who may continue),
 * verdict_wait_for.c (who waits for whom). */
#ifndef TRACECTL_ANALYZER_GO_VERDICT_STATE_H
#define TRACECTL_ANALYZER_GO_VERDICT_STATE_H

#include "analyzer/go/verdict.h"

/* A goroutine of the program's own that has not ended. */
struct suspect {
    const struct go_goroutine *goroutine;
    const struct go_action *waits; /* go_waiting_in() */
    struct go_outcome outcome;
    bool
        silent; /* it waits inside package testing, for something that it does not end itself: not reported */
};

struct judgement {
    struct go_replay *replay;
    const struct go_verdict_options *options;
    struct go_replay_totals totals;
    struct suspect *suspects; /* by goid */
    size_t count, capacity;
    bool tests; /* package testing runs the program */
};

enum go_role judgement_role(const struct judgement *judgement, uint32_t function);
/* NULL: it has ended, or is none of the program's own. */
struct suspect *judgement_find(const struct judgement *judgement, uint64_t goroutine);
static inline bool is_stuck(const struct suspect *suspect)
{
    return suspect && suspect->outcome.kind == GO_OUTCOME_STUCK;
}

/* The operations that use a channel or condition the other way, as bits of enum go_op. */
uint64_t opposite_of(enum go_op operation);
/* Whether a reader waits only because a writer waits before it: nobody holds the lock to write. */
bool waits_behind_writer(const struct judgement *judgement, const struct suspect *suspect);

/* Decides the outcomes. */
void judgement_fates(struct judgement *judgement);

/* The shortest cycle of stuck goroutines; 0 or -ENOMEM. */
int judgement_cycle(const struct judgement *judgement, struct go_wait_for **ret_cycle, size_t *ret_count);

#endif
