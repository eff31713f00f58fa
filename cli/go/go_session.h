/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A recording of a Go program's goroutines under watch (collector/go/watch.h), of one execution or of many
 * one behind the other: what `go check -- CMD` and `go explore` share.
 */
#ifndef TRACECTL_CLI_GO_GO_SESSION_H
#define TRACECTL_CLI_GO_GO_SESSION_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "collector/recording/recorder.h"
#include "store/api/tracestore.h"

struct go_session_options {
    const char *name; /* of the run; NULL: made from the command */
    char **command;
    uint64_t limit_ns;    /* that one execution may take; 0: any time */
    uint64_t patience_ns; /* without a running goroutine before a deadlock is reported */
    uint64_t drain_ns;    /* that a process is held at its end, at most */
    bool delays;          /* goroutines are held up */
    struct go_watch_observer observer;
};

/* "--name", "--timeout", "--patience" and "--drain", and the command behind "--"; state->input of the parser
 * is a struct go_session_options *. */
extern const struct argp go_session_argp;
void go_session_defaults(struct go_session_options *options);

struct go_session;

/* Opens a recording in `store`. `options` must live as long. */
int go_session_open(struct tracestore *store, const struct go_session_options *options,
                    struct go_session **ret_session, struct error *err);

/* One execution of the command, to its end; the observer is called with the end of each process. 1: it was
 * interrupted. */
int go_session_execute(struct go_session *session, const struct go_schedule *schedule, struct error *err);

/* The same in two steps, for executions beside each other: begins one for `worker` (below GO_WORKERS_MAX),
 * and waits until one has ended (1: interrupted). */
int go_session_launch(struct go_session *session, unsigned worker, const struct go_schedule *schedule,
                      struct error *err);
int go_session_wait(struct go_session *session, unsigned *ret_worker, struct error *err);
/* Where the worker's executions print, from the next one on: as recorder_redirect(). */
void go_session_redirect(struct go_session *session, unsigned worker, int output);
/* Ends all that run; they are still to be waited for. */
void go_session_kill(struct go_session *session);

/* The worker that a process is executed for; <0: it has ended. */
int go_session_worker(const struct go_session *session, pid_t pid);
/* How goroutines of a process are held up from now on. */
void go_session_hold_by(struct go_session *session, pid_t pid, const struct go_hold_rule *rule);
/* How often the place of probe `index` was hit in the worker's execution. */
uint32_t go_session_hits(const struct go_session *session, uint32_t index, unsigned worker,
                         uint32_t execution);

/* Ends the run. Fails with -ENOTSUP, and a reason, when no goroutines of any program could be recorded. */
int go_session_close(struct go_session *session, int64_t *ret_run_id, struct error *err);

/* A usage error if the command is the go tool itself, which would be recorded instead of the tests or the program that
 * it builds and runs; `own` is the command's name, "go check". */
void go_session_check_command(char *const *command, const char *own, struct argp_state *state);

/* Accepts NULL. */
void go_session_free(struct go_session *session);

#endif
