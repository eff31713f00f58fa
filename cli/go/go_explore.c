/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl go explore: many executions with their goroutines held up here and there, until a bug shows. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
