/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/go/go_session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "cli/common/command.h"
#include "cli/common/signals.h"
#include "cli/record/record_arguments.h"

enum { KEY_TIMEOUT = 0x300, KEY_PATIENCE, KEY_DRAIN };

struct go_session {
    const struct go_session_options *options;
    struct go_watch_options watch;
    struct recorder *recorder;
    char *command;
    bool closed;
};

/* ------------------------------------------------------------------------------------ arguments */

static const struct argp_option session_options[] = {
    {"name", 'n', "NAME", 0, "Name of the run (default: the command's name and the run's number)", 1},
    {"timeout", KEY_TIMEOUT, "TIME", 0, "End an execution that takes longer (default 30; 0: never)", 2},
    {"patience", KEY_PATIENCE, "TIME", 0,
     "End an execution as deadlocked when its main goroutine, or a test's, has been blocked forever for "
     "SECONDS (default 0.5)",
     2},
    {"drain", KEY_DRAIN, "TIME", 0,
     "When the process exits, wait up to SECONDS for runnable goroutines to finish (default 0.2; 0: do not "
     "wait)",
     2},
    {0},
};

void go_session_defaults(struct go_session_options *options)
{
    *options =
        (struct go_session_options){.limit_ns = 30000000000, .patience_ns = 500000000, .drain_ns = 200000000};
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct go_session_options *options = state->input;

    switch (key) {
    case 'n':
        options->name = arg;
        return 0;
    case KEY_TIMEOUT:
        options->limit_ns = cli_parse_duration(state, "--timeout", arg, 0);
        return 0;
    case KEY_PATIENCE:
        options->patience_ns = cli_parse_duration(state, "--patience", arg, 0);
        return 0;
    case KEY_DRAIN:
        options->drain_ns = cli_parse_duration(state, "--drain", arg, 0);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp go_session_argp = {.options = session_options, .parser = parse};

void go_session_check_command(char *const *command, const char *own, struct argp_state *state)
{
    AUTO_FREE char *rest = NULL;
    bool runs;

    if (!command[1] || strcmp(path_file_name(command[0]), "go") != 0)
        return;
    runs = !strcmp(command[1], "run");
    if (!runs && strcmp(command[1], "test") != 0)
        return;
    rest = join_words(command + 2, " ");
    argp_error(
        state,
        "the go command would be recorded, and not what it builds and runs: use go %s -exec 'tracectl %s --' %s",
        command[1], own,
        rest && *rest ? rest
        : runs        ? "."
                      : "./...");
}

/* ------------------------------------------------------------------------------------ the session */

static bool no_image(void *context, const char *path, enum image_kind kind)
{
    return false;
}

/* The store remembers which processes were ended by us, and why. */
static int on_end(void *context, const struct go_process *process, const struct go_watched *watched)
{
    struct go_session *session = context;
    const struct go_watch_observer *observer = &session->options->observer;
    char key[32];
    int r = 0;

    snprintf(key, sizeof(key), "go.ended:%u", watched->number);
    if (watched->end != GO_END_OWN)
        r = recorder_tag(session->recorder, key, watched->end == GO_END_LIMIT ? "timeout" : "deadlock", NULL);
    return r || !observer->end ? r : observer->end(observer->context, process, watched);
}

static int on_event(void *context, const struct go_process *process, struct go_replay *replay,
                    const struct process_event *event)
{
    const struct go_session *session = context;
    const struct go_watch_observer *observer = &session->options->observer;

    return observer->event ? observer->event(observer->context, process, replay, event) : 0;
}

static int on_action(void *context, const struct go_process *process, const struct go_goroutine *goroutine,
                     const struct go_action *action)
{
    const struct go_session *session = context;
    const struct go_watch_observer *observer = &session->options->observer;

    return observer->action ? observer->action(observer->context, process, goroutine, action) : 0;
}

int go_session_open(struct tracestore *store, const struct go_session_options *options,
                    struct go_session **ret_session, struct error *err)
{
    struct go_session *session = calloc(1, sizeof(*session));
    struct recorder_options recorder = {
        .run.name = options->name,
        .content.times = STREAM_TIMES_ANCHOR,
        .targets.follow_children = true,
        .go.detail = GO_DETAIL_OPERATIONS,
        .go.delays = options->delays,
        .go.watcher = {.event = on_event, .action = on_action, .end = on_end},
        .targets.output = cli.json ? STDERR_FILENO : -1,
        .selected.want_image = no_image,
    };
    int r;

    if (!session)
        return error_no_memory(err), -ENOMEM;
    session->options = options;
    session->command = options->command ? strdup(options->command[0]) : NULL; /* arguments may be passwords */
    session->watch = (struct go_watch_options){
        .patience_ns = options->patience_ns,
        .limit_ns = options->limit_ns,
        .drain_ns = options->drain_ns,
    };
    recorder.go.watch = &session->watch;
    recorder.go.watcher.context = session;
    recorder.run.command = session->command;
    r = session->command ? recorder_open(store, &recorder, &session->recorder, err)
                         : (error_no_memory(err), -ENOMEM);
    if (r) {
        go_session_free(session);
        return r;
    }
    signals_stop(session->recorder, true);
    *ret_session = session;
    return 0;
}

int go_session_launch(struct go_session *session, unsigned worker, const struct go_schedule *schedule,
                      struct error *err)
{
    recorder_set_schedule(session->recorder, worker, schedule);
    return recorder_launch(session->recorder, worker, session->options->command, err);
}

int go_session_wait(struct go_session *session, unsigned *ret_worker, struct error *err)
{
    int r;

    r = recorder_run(session->recorder, 0, err);
    *ret_worker = recorder_ended(session->recorder);
    return r ? r : signals_came();
}

int go_session_execute(struct go_session *session, const struct go_schedule *schedule, struct error *err)
{
    unsigned worker;
    int r = go_session_launch(session, 0, schedule, err);

    return r ? r : go_session_wait(session, &worker, err);
}

void go_session_redirect(struct go_session *session, unsigned worker, int output)
{
    recorder_redirect(session->recorder, worker, output);
}

void go_session_kill(struct go_session *session)
{
    recorder_kill(session->recorder);
}

int go_session_worker(const struct go_session *session, pid_t pid)
{
    return recorder_worker_of(session->recorder, pid);
}

void go_session_hold_by(struct go_session *session, pid_t pid, const struct go_hold_rule *rule)
{
    recorder_hold_by(session->recorder, pid, rule);
}

uint32_t go_session_hits(const struct go_session *session, uint32_t index, unsigned worker,
                         uint32_t execution)
{
    return recorder_hits(session->recorder, index, worker, execution);
}

/* Why no goroutine was recorded; 0: some were. */
static int nothing_recorded(const struct recorder *recorder, struct error *err)
{
    const char *refusal = NULL;

    for (const struct traced_image *image = recorder_images(recorder); image; image = image->next) {
        if (image->go)
            return 0;
        if (image->go_refusal)
            refusal = image->go_refusal;
    }
    return refusal ? error_say(err, -ENOTSUP, "%s", refusal)
                   : error_say(err, -ENOTSUP, "no goroutines were recorded: the command ran no Go program");
}

int go_session_close(struct go_session *session, int64_t *ret_run_id, struct error *err)
{
    int r;

    signals_ignore();
    *ret_run_id = recorder_run_id(session->recorder);
    r = nothing_recorded(session->recorder, err);
    if (r)
        return r;
    session->closed = true;
    return recorder_close(session->recorder, err);
}

/* A recording that was given up: one that has nothing leaves nothing. */
static void give_up(struct go_session *session)
{
    recorder_detach(session->recorder);
    if (nothing_recorded(session->recorder, NULL))
        recorder_abandon(session->recorder, NULL);
}

void go_session_free(struct go_session *session)
{
    if (!session)
        return;
    if (session->recorder && !session->closed)
        give_up(session);
    recorder_free(session->recorder);
    free(session->command);
    free(session);
}
