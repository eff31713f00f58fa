/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/flight/flight_committer.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "store/writer/window.h"

#define PATH_BYTES 4096

/* ------------------------------------------------------------------------------------ the process itself */

/* What the store keeps, now that it has one run more. */
static int retain(struct tracestore *store, const struct trace_retention *keep, int64_t run_id,
                  struct error *err)
{
    struct trace_retention spare = *keep;
    struct trace_retained retained = {0};
    int r = 0;

    spare.spare_run = run_id;
    if (!(keep->bytes || keep->age_ns || keep->runs))
        return 0;
    do
        r = tracestore_retain(store, &spare, clock_ns(CLOCK_REALTIME), &retained, err);
    while (r > 0);
    return r == -EBUSY ? 0 : r;
}

static int make_run(const struct flight_options *options, const char *window_path,
                    const struct commit_order *order, struct flight_report *report, struct error *err)
{
    const struct window_commit commit = {
        .name = order->name, .trigger = order->trigger, .window_ns = options->window_ns};
    struct window_committed committed = {0};
    struct tracestore *window = NULL, *store = NULL;
    struct tracestore_run run;
    char number[24];
    int r = tracestore_open(window_path, TRACESTORE_READ, &window, err);

    if (!r)
        r = tracestore_open(options->store_path, TRACESTORE_CREATE, &store, err);
    if (!r)
        r = window_commit(window, store, &commit, &committed, err);
    snprintf(number, sizeof(number), "%lld", (long long)committed.run_id);
    if (!r && committed.run_id && !tracestore_find_run(store, number, &run, NULL)) {
        snprintf(report->name, sizeof(report->name), "%s", run.name);
        tracestore_run_release(&run);
    }
    if (!r && committed.run_id)
        r = retain(store, &options->keep, committed.run_id, err);
    report->run_id = committed.run_id;
    report->from_ns = committed.from_ns;
    report->to_ns = committed.to_ns;
    tracestore_free(window);
    tracestore_free(store);
    return r;
}

/* Opens the store, which must be possible, and has windows without a recorder become runs: what fails of that
 * stays for 'tracectl recover'. */
static int recover(const struct flight_options *options, struct error *err)
{
    struct tracestore *store = NULL;
    uint64_t runs;
    int r = tracestore_open(options->store_path, TRACESTORE_CREATE, &store, err);

    if (!r)
        window_recover(options->store_path, store, &runs, NULL);
    tracestore_free(store);
    return r;
}

static void serve(const struct flight_options *options, int socket)
{
    char window_path[PATH_BYTES];
    struct commit_order order;
    struct error early = {0};
    ssize_t size;

    recover(options, &early);
    if (send(socket, &early, sizeof(early), MSG_NOSIGNAL) < 0 || early.code)
        return;
    size = recv(socket, window_path, sizeof(window_path) - 1, 0);
    if (size <= 0)
        return;
    window_path[size] = '\0';
    while (recv(socket, &order, sizeof(order), 0) == (ssize_t)sizeof(order)) {
        struct flight_report report = {0};
        struct error err = {0};

        snprintf(report.trigger, sizeof(report.trigger), "%s", order.trigger);
        if (make_run(options, window_path, &order, &report, &err))
            snprintf(report.error, sizeof(report.error), "%s", err.message);
        if (send(socket, &report, sizeof(report), MSG_NOSIGNAL) < 0)
            return;
    }
}

/* Ctrl-C and its kind are for the recorder, whose last commit comes behind them. */
static void ignore_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGPIPE};

    for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
        signal(signals[i], SIG_IGN);
}

/* ------------------------------------------------------------------------------------ its parent's side */

static int fail(struct error *err)
{
    return error_say(err, -EPIPE, "the process that commits the flight recorder's window has died");
}

/* Whether it could open the store. */
static int hear_beginning(struct flight_committer *committer, struct error *err)
{
    struct error early = {0};
    ssize_t size;

    do
        size = recv(committer->socket, &early, sizeof(early), 0);
    while (size < 0 && errno == EINTR);
    if (size != (ssize_t)sizeof(early))
        return fail(err);
    return early.code ? error_say(err, early.code, "%s", early.message) : 0;
}

int flight_committer_start(const struct flight_options *options, struct flight_committer *ret_committer,
                           struct error *err)
{
    int sockets[2];
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
        return error_set(err, -errno, NULL, "cannot create a flight recorder");
    pid = fork();
    if (pid == 0) {
        close(sockets[0]);
        ignore_signals();
        prctl(PR_SET_NAME, "tracectl-commit");
        serve(options, sockets[1]);
        _exit(0);
    }
    close(sockets[1]);
    if (pid < 0) {
        close(sockets[0]);
        return error_set(err, -errno, NULL, "cannot create a flight recorder");
    }
    *ret_committer = (struct flight_committer){.pid = pid, .socket = sockets[0]};
    return hear_beginning(ret_committer, err);
}

static int tell(struct flight_committer *committer, const void *message, size_t size, struct error *err)
{
    return send(committer->socket, message, size, MSG_NOSIGNAL) == (ssize_t)size ? 0 : fail(err);
}

int flight_committer_open(struct flight_committer *committer, const char *window_path, struct error *err)
{
    return tell(committer, window_path, strlen(window_path), err);
}

int flight_committer_order(struct flight_committer *committer, const struct commit_order *order,
                           struct error *err)
{
    return tell(committer, order, sizeof(*order), err);
}

int flight_committer_hear(struct flight_committer *committer, bool wait, struct flight_report *ret_report,
                          struct error *err)
{
    ssize_t size;

    do
        size = recv(committer->socket, ret_report, sizeof(*ret_report), wait ? 0 : MSG_DONTWAIT);
    while (size < 0 && errno == EINTR);
    if (size == (ssize_t)sizeof(*ret_report))
        return 0;
    return size < 0 && errno == EAGAIN ? 1 : fail(err);
}

void flight_committer_stop(struct flight_committer *committer)
{
    if (committer->socket < 0)
        return;
    close(take_fd(&committer->socket));
    while (waitpid(committer->pid, NULL, 0) < 0 && errno == EINTR)
        ;
}
