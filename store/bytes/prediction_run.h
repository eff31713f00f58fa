/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Many words of a believed match at once: compared and copied as memory, not word by word. */
#ifndef TRACESTORE_PREDICTION_RUN_H
#define TRACESTORE_PREDICTION_RUN_H

#include <stddef.h>
#include <stdint.h>

#include "store/bytes/prediction.h"

/* Takes the first of `words`, as long as they are those of the match, which is believed, and nothing is
 * crowded; returns how many. Afterwards all is as if they had come one after the other. */
size_t prediction_follow_run(struct prediction *prediction, const uint16_t *words, size_t count);

#endif
