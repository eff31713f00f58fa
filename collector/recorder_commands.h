/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The commands that a recording has started, side by side: one for each worker. Private to the recorder. */
#ifndef TRACECTL_COLLECTOR_RECORDER_COMMANDS_H
#define TRACECTL_COLLECTOR_RECORDER_COMMANDS_H

#include <stdbool.h>

#include "base/error.h"
#include "bpf/wire.h"
#include "collector/target/launch.h"

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
    int exit_status;  /* of that; -1: none has ended since the last one was started */
};

void recorder_commands_init(struct recorder_commands *commands);
void recorder_commands_release(struct recorder_commands *commands);

/* Whether one has ended, and all that it has told is read: 1 yes, 0 no, <0 one could not be run. */
int recorder_commands_ended(struct recorder *recorder, struct error *err);

#endif
