/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether a recording has met what its options asked for: functions, images. */
#ifndef TRACECTL_CLI_RECORD_RECORD_SELECTION_H
#define TRACECTL_CLI_RECORD_RECORD_SELECTION_H

#include "cli/record/record_arguments.h"

/* -ENOTSUP where nothing is traced: no program was seen, no function or image matches the options, or none of
 * those that do can be probed. A program without any of the functions is no error as long as another one has
 * some. */
int record_selection_check(const struct recorder *recorder, const struct record_arguments *arguments,
                           struct error *err);

/* Reports which of the asked alternatives, sets and globs nothing has matched: on standard error unless
 * output is to be quiet, and as a tag of the run. Before recorder_close(). */
int record_selection_report(struct recorder *recorder, const struct record_arguments *arguments,
                            struct error *err);

#endif
