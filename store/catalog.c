/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Runs, and what their threads and functions are. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
