/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl export RUN [P.T]: a run in the format of another tool. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
