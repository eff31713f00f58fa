/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The commands that a recording has started, side by side: one for each worker. Private to the recorder. */
#ifndef TRACECTL_COLLECTOR_RECORDING_RECORDER_COMMANDS_H
#define TRACECTL_COLLECTOR_RECORDING_RECORDER_COMMANDS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "bpf/wire.h"
#include "collector/launch/group_witness.h"
#include "collector/launch/launch.h"

struct error;

struct recorder;

struct recorder_command {
    struct launch launch;
    char *name; /* argv[0] */
    int output; /* recorder_redirect(); -1: as the options say */
    bool runs;
};

struct recorder_commands {
    struct recorder_command items[GO_WORKERS_MAX];
    unsigned started; /* ever */
    unsigned ended;   /* worker whose command ended last */
    bool over;        /* with `until_all`: the command has ended, others of its processes may not have */
    int exit_status;  /* of that; -1: none has ended since the last one was started */
    pid_t *survivors; /* processes that had not ended when the recording did */
    size_t survivor_count;
    struct group_witness witness;
    volatile sig_atomic_t signal; /* to be passed on; 0: none */
    volatile uint64_t signal_ns;  /* when it came */
};

void recorder_commands_init(struct recorder_commands *commands);
void recorder_commands_release(struct recorder_commands *commands);

/* Passes on the signal of recorder_pass_on, a moment after it came. */
void recorder_commands_signal(struct recorder *recorder, uint64_t now);

/* Whether one has ended, and all that it has told is read: 1 yes, 0 no, <0 one could not be run. */
int recorder_commands_ended(struct recorder *recorder, struct error *err);

/* When a command has ended and processes of it have not: notes them, and that the run is without what they
 * do. Behind the last record. */
int recorder_commands_survivors(struct recorder *recorder, struct error *err);

#endif
