/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events of goroutines written as text: a statement an event, between them ';' or the end of a line.
 *
 *     g1 go g2 s12        g1 makes g2 at site 12; it begins with function 100 + 2 ("f7": with function 7)
 *     g1 run t3           on thread 3
 *     g1 VERB OBJECT s20  an operation at site 20, with any of the words: done, inner, try, n5 (its value)
 *     g1 select s17 n2; g1 case 0 send c1; g1 case 1 recv c2; g1 result -1
 *     g1 block recv       the reasons: see go_script_reasons
 *     g1 wake g2          g0: the runtime does
 *     g1 yield; g1 end; g1 panic; g1 test f9; g1 exit 0; g0 fatal deadlock; g0 lost 5; g0 detail 2
 *     g1 delay s20        tracectl holds it up
 *     g1 timer x1 due 5000 every 1000; g1 case timer c1 (it sends on c1); g1 stop x1
 *     g1 delay s20        tracectl holds it up
 *     g1 timer x1 due 5000 runs (a function)
 *     g0 fire x1 t3       the runtime runs it on thread 3: its effect is what happens there next
 *     g1 signals c1       signals are sent to it
 *     at 5000             the next event happens at 5000 ns; without it, 10 ns after the one before
 *
 * Verbs: make send recv range close select lock trylock unlock wlock wtrylock wunlock rlock tryrlock runlock
 * add done wait condwait signal broadcast once sleep forever ("done" as a verb takes from a wait group).
 */
#ifndef TRACECTL_TESTS_ANALYZER_GO_SCRIPT_H
#define TRACECTL_TESTS_ANALYZER_GO_SCRIPT_H

#include "analyzer/go/replay.h"

extern char *const go_script_reasons[]; /* the runtime's names, by number */
extern const size_t go_script_reason_count;

struct go_script {
    struct process_event *events;
    size_t count;
};

/* Fails the test at what it cannot read. Free `events`. */
struct go_script go_script_read(const char *text);

/* The address of an object of a script: "c1". */
uint64_t go_script_object(const char *name);

/* A replay of the script with these options (NULL: those of go_script_options), which the caller frees. */
struct go_replay *go_script_replay(const char *text, const struct go_replay_options *options);
/* The wait reasons of scripts; functions below 20 are the runtime's own. */
struct go_replay_options go_script_options(void);
/* Feeds more events. */
void go_script_feed(struct go_replay *replay, const char *text);

#endif
