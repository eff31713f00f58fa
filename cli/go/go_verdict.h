/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A recorded Go program with its verdict, as text and as JSON (go check, go explore). */
#ifndef TRACECTL_CLI_GO_GO_VERDICT_H
#define TRACECTL_CLI_GO_GO_VERDICT_H

#include <jansson.h>
#include <stdio.h>

#include "analyzer/go/places.h"
#include "analyzer/go/verdict.h"
#include "store/streams/go_events.h"

/* A program of a run, replayed to its end. */
struct go_judged {
    const struct go_program *program; /* borrowed, as the places are */
    struct go_places *places;
    struct go_replay *replay;
    struct go_verdict verdict;
    struct go_replay_totals totals;
    uint64_t ended_ns; /* of the process, or of its last event */
};

/* Called with operations as they end; may be NULL. */
struct go_judge_listener {
    int (*on_action)(void *context, const struct go_goroutine *goroutine, const struct go_action *action);
    void *context;
};

/* Replays the program's events and judges. Release also after a failure. */
int go_judge(struct tracestore *store, const struct go_program *program, struct go_places *places,
             const struct go_judge_listener *listener, struct go_judged *ret_judged, struct error *err);
void go_judged_release(struct go_judged *judged);

/* All Go programs of a run. */
struct go_judged_run {
    struct go_program *programs;
    struct go_places *places;
    struct go_judged *judged; /* one for each program */
    size_t count;
    enum go_verdict_kind kind; /* the worst */
};

/* The programs and their places, not judged yet. Fails with -ENOENT when no goroutines were recorded. Release
 * also after a failure, here and below. */
int go_programs_of(struct tracestore *store, int64_t run_id, struct go_judged_run *ret_run,
                   struct error *err);
/* Judges all. Fails as go_programs_of does. */
int go_judge_run(struct tracestore *store, int64_t run_id, struct go_judged_run *ret_run, struct error *err);
void go_judged_run_release(struct go_judged_run *run);

/* What `go check` prints, and the same as an object without "run" and "name". */
void go_verdict_text(FILE *out, const struct go_judged_run *run);
json_t *go_verdict_json(const struct go_judged_run *run);

/* -------------------------------------------------------------------- words that both use */

/* Of a function or site; empty when it is not known. */
struct go_place go_judged_place(const struct go_judged *judged, uint32_t function_id);
/* "0.g7" */
void go_judged_label(const struct go_judged *judged, uint64_t goroutine, char *text, size_t size);
/* "0.g7"; null for goroutine 0. */
json_t *go_label_json(const struct go_judged *judged, uint64_t goroutine);
/* {"function", "file", "line"}, each null where it is not known. */
json_t *go_place_json(const struct go_judged *judged, uint32_t site);
/* "moby.go:21", "?" */
void go_place_text(const struct go_place *place, char *text, size_t size);
/* "mutex 0xc000012340", "select of 2 channels"; "" when nothing is known. */
void go_action_object(const struct go_action *action, char *text, size_t size);
/* "mutex": what the operation is on. */
const char *go_object_kind(enum go_op operation);
/* The runtime's word for what the goroutine waits for; "" when there is none. */
const char *go_judged_reason(const struct go_judged *judged, const struct go_goroutine *goroutine);
const char *go_state_text(enum go_state state);
/* Where a goroutine is: the site of its outermost operation, else the function that it began with. */
uint32_t go_goroutine_site(const struct go_goroutine *goroutine);
/* Why it may continue: "runs", "sleeps", ... */
const char *go_unblock_text(enum go_unblock unblock);
/* "holds", "only peer": what the goroutine that is waited for has to do with the object. */
const char *go_wait_for_text(enum go_wait_for_reason reason);

#endif
