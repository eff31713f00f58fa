/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where `go explore` holds goroutines up in the next execution: delay-bounded scheduling (Emmi, Qadeer and
 * Rakamaric, POPL 2011) with GoAT's random choice of concurrency usages, those first that have coverage
 * requirements which no execution has met yet.
 *
 * The first execution is held up at random, since it is unknown yet which places it comes to. What an
 * execution came to, and how often, is where the next ones choose from. A delay is a place and a count of
 * hits; so is an execution's schedule written down. Every other time it is one of the first hits of a place
 * alone, until all have been tried. The other times, and then always, it is mostly a pair that has not been
 * tried. A pair whose second place another goroutine came to while one was held up at the first makes a new
 * schedule; of those one is drawn, mostly, and otherwise one of places that different goroutines come to: a
 * schedule that needs two delays mostly needs them in two goroutines.
 */
#ifndef TRACECTL_COLLECTOR_GO_STRATEGY_H
#define TRACECTL_COLLECTOR_GO_STRATEGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/wire.h"
#include "collector/go/holds.h"

struct go_strategy;

/* `seed` decides all choices. At most `delays` a run, up to GO_CHOICES_MAX. */
int go_strategy_new(uint64_t seed, unsigned delays, struct go_strategy **ret_strategy);
void go_strategy_free(struct go_strategy *strategy);

/* Who comes to a place: kinds of goroutines as a set of bits, 0: not known. */
struct go_place_users {
    uint64_t kinds;
    bool several; /* more than one in an execution */
};

/* What an execution has shown of a place. */
struct go_place_use {
    uint32_t index; /* of its probe */
    uint32_t hits;
    unsigned open; /* coverage requirements of it that are not met */
    struct go_place_users users;
    bool waits; /* goroutines may have to wait in the operation: what they have decided by may change first */
};

/* -ENOMEM. */
int go_strategy_learn(struct go_strategy *strategy, const struct go_place_use *use);

/* While a goroutine was held up at `first`, another one came to `second`, whose hits are counted from the
 * beginning of that hold on. -ENOMEM. */
int go_strategy_follows(struct go_strategy *strategy, const struct go_choice *first,
                        const struct go_choice *second);

/* Chooses for the next execution: fills in seed, left and choices. */
void go_strategy_choose(struct go_strategy *strategy, struct go_schedule *schedule);

/* How the execution that was chosen last is to hold goroutines up. Half of the executions hold them up only
 * for as long as others run; the other half, and all that try a place alone, outlast whatever the program
 * does within twice the time that an execution takes, up to `longest_ns`. */
void go_strategy_holds(struct go_strategy *strategy, uint64_t longest_ns, struct go_hold_rule *ret_rule);

/* How long an execution under `rule` took. */
void go_strategy_took(struct go_strategy *strategy, const struct go_hold_rule *rule, uint64_t ns);

/* "17.0,23.4": places and hits. What go_schedule_parse cannot read is -EINVAL, too many are -E2BIG. */
int go_schedule_parse(const char *text, struct go_schedule *schedule);
void go_schedule_write(const struct go_schedule *schedule, char *text, size_t size);

#endif
