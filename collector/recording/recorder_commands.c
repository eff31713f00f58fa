/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/recording/recorder_commands.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "collector/process/process.h"
#include "collector/process/wait_status.h"
#include "collector/recording/recorder_flight.h"
#include "collector/recording/recorder_state.h"

/* By then the whole process group has the signal, if that was meant. */
#define PASS_ON_NS 10000000u

void recorder_commands_init(struct recorder_commands *commands)
{
    *commands = (struct recorder_commands){.exit_status = -1};
    for (unsigned i = 0; i < GO_WORKERS_MAX; i++) {
        commands->items[i].launch.gate = commands->items[i].launch.failure = -1;
        commands->items[i].output = -1;
    }
}

void recorder_commands_release(struct recorder_commands *commands)
{
    group_witness_stop(&commands->witness);
    free(commands->survivors);
    for (unsigned i = 0; i < GO_WORKERS_MAX; i++) {
        launch_release(&commands->items[i].launch);
        free(commands->items[i].name);
    }
}

void recorder_set_schedule(struct recorder *recorder, unsigned worker, const struct go_schedule *schedule)
{
    uprobe_backend_set_schedule(recorder->uprobes, worker, schedule,
                                recorder->watch ? go_watch_thread_holder(recorder->watch) : 0);
}

void recorder_hold_by(struct recorder *recorder, pid_t pid, const struct go_hold_rule *rule)
{
    if (recorder->watch)
        go_watch_hold_by(recorder->watch, pid, rule);
}

uint32_t recorder_hits(const struct recorder *recorder, uint32_t index, unsigned worker, uint32_t execution)
{
    return uprobe_backend_hits(recorder->uprobes, index, worker, execution);
}

bool recorder_knows_process(const struct recorder *recorder, pid_t pid)
{
    return streams_knows_process(recorder->streams, pid);
}

int recorder_worker_of(const struct recorder *recorder, pid_t pid)
{
    struct process_state state;

    return recorder->source->of->process(recorder->source, pid, &state) ? (int)state.worker : -ESRCH;
}

void recorder_redirect(struct recorder *recorder, unsigned worker, int output)
{
    recorder->commands.items[worker % GO_WORKERS_MAX].output = output;
}

int recorder_launch(struct recorder *recorder, unsigned worker, char *const *argv, struct error *err)
{
    struct recorder_command *command = &recorder->commands.items[worker % GO_WORKERS_MAX];
    const struct launch_streams streams = {.output = command->output < 0 ? recorder->options.targets.output
                                                                         : command->output,
                                           .errors = command->output};
    pid_t pid;
    int r = 0;

    launch_release(&command->launch);
    free(command->name);
    recorder->commands.exit_status = -1;
    command->name = strdup(argv[0]);
    if (!command->name)
        return error_no_memory(err), -ENOMEM;
    if (!recorder->commands.witness.pid)
        r = group_witness_start(&recorder->commands.witness, err);
    if (!r)
        r = launch_prepare(argv, &streams, &command->launch, err);
    if (r)
        return r;
    pid = command->launch.pid;
    command->runs = true;
    recorder->commands.started++;
    if (recorder->options.storage.flight && recorder_flight_name(recorder, pid))
        return error_no_memory(err);
    r = recorder->source->of->add_process(recorder->source, pid, worker, err);
    if (!r)
        r = streams_add_process(recorder->streams, pid, &pid, 1, err);
    return r ? r : launch_go(&command->launch, err);
}

void recorder_pass_on(struct recorder *recorder, int number)
{
    recorder->commands.signal_ns = clock_ns(CLOCK_MONOTONIC);
    recorder->commands.signal = number;
}

void recorder_commands_signal(struct recorder *recorder, uint64_t now)
{
    struct recorder_commands *commands = &recorder->commands;
    int number = commands->signal;
    bool group, none = true;

    if (!number || now < commands->signal_ns + PASS_ON_NS)
        return;
    commands->signal = 0;
    group = group_witness_saw(&commands->witness, number);
    for (unsigned i = 0; i < GO_WORKERS_MAX; i++) {
        pid_t pid = commands->items[i].launch.pid;

        none &= !commands->items[i].runs;
        if (commands->items[i].runs && !(group && getpgid(pid) == getpgrp()))
            kill(pid, number);
    }
    if (none) /* there is only the recording to end */
        recorder_stop(recorder);
}

static void note_end(struct recorder_commands *commands, unsigned worker, int status)
{
    commands->items[worker].runs = false;
    commands->ended = worker;
    commands->exit_status = wait_status_code(status);
}

/* All that came before its end, which another one's records may stand behind. */
static int read_to_the_end(struct recorder *recorder, struct error *err)
{
    int r;

    do
        r = recorder_consume(recorder, err);
    while (r >= (int)RECORDER_ROUND);
    return r < 0 ? r : 1;
}

/* Whether `until_all` has something to wait for. A record of an end may be lost: the kernel is asked. */
static bool some_run_on(const struct recorder *recorder)
{
    AUTO_FREE pid_t *pids = NULL;
    size_t count = 0;

    if (!streams_live_processes(recorder->streams) || streams_processes(recorder->streams, &pids, &count))
        return false;
    for (size_t i = 0; i < count; i++)
        if (process_is_running(pids[i]))
            return true;
    return false;
}

int recorder_commands_survivors(struct recorder *recorder, struct error *err)
{
    struct recorder_commands *commands = &recorder->commands;

    if (!commands->started || recorder->watch)
        return 0;
    if (streams_processes(recorder->streams, &commands->survivors, &commands->survivor_count))
        return error_no_memory(err);
    if (commands->exit_status < 0 || !commands->survivor_count)
        return 0; /* that the recording was ended is known */
    return trace_writer_loss(recorder->writer, clock_ns(CLOCK_REALTIME), 0, "processes outlived the command",
                             err);
}

size_t recorder_survivors(const struct recorder *recorder, pid_t *ret_pids, size_t most, size_t *ret_running)
{
    const struct recorder_commands *commands = &recorder->commands;

    *ret_running = 0;
    for (size_t i = 0; i < commands->survivor_count; i++) {
        if (!process_is_running(commands->survivors[i]))
            continue;
        if (*ret_running < most)
            ret_pids[*ret_running] = commands->survivors[i];
        ++*ret_running;
    }
    return commands->survivor_count;
}

/* Whether one has ended, and its end has been noted: 1, or 0; <0: it could not be run. */
static int command_ended(struct recorder *recorder, struct error *err)
{
    struct recorder_commands *commands = &recorder->commands;
    int status;

    for (unsigned i = 0; i < GO_WORKERS_MAX; i++) {
        struct recorder_command *command = &commands->items[i];
        int r = command->runs ? launch_result(&command->launch, command->name, err) : 0;

        if (r < 0)
            return r;
        if (!command->runs || waitpid(command->launch.pid, &status, WNOHANG) != command->launch.pid)
            continue;
        note_end(commands, i, status);
        return recorder->watch ? read_to_the_end(recorder, err) : 1;
    }
    return 0;
}

int recorder_commands_ended(struct recorder *recorder, struct error *err)
{
    int r = command_ended(recorder, err);

    if (!recorder->options.targets.until_all || r < 0)
        return r;
    if (r)
        recorder->commands.over = true;
    return recorder->commands.over && !some_run_on(recorder);
}

unsigned recorder_ended(const struct recorder *recorder)
{
    return recorder->commands.ended;
}

void recorder_kill(struct recorder *recorder)
{
    for (unsigned i = 0; i < GO_WORKERS_MAX; i++)
        if (recorder->commands.items[i].runs)
            kill(recorder->commands.items[i].launch.pid, SIGKILL);
}

void recorder_wait(struct recorder *recorder)
{
    int status;

    for (unsigned i = 0; i < GO_WORKERS_MAX; i++) {
        struct recorder_command *command = &recorder->commands.items[i];
        pid_t pid = 0;

        while (command->runs && (pid = waitpid(command->launch.pid, &status, 0)) < 0 && errno == EINTR)
            ;
        if (command->runs && pid > 0)
            note_end(&recorder->commands, i, status);
    }
}

int recorder_exit_status(const struct recorder *recorder)
{
    return recorder->commands.exit_status;
}
