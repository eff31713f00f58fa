/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What all subcommands share: the common options, and how command lines are read. */
#include "cli/common/command.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/debug.h"
#include "base/error.h"
