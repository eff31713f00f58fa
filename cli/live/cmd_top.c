/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl top: functions by calls, of a run from its catalog, or live (top_live.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
