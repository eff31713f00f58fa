/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ParLOT's codec, for comparison: no store has it. */
#ifndef TESTS_BENCH_CODEC_PARLOT_H
#define TESTS_BENCH_CODEC_PARLOT_H

#include "store/bytes/codec.h"

#define CODEC_PARLOT_ID 255

extern const struct codec codec_parlot;

#endif
