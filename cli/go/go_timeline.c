/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tracectl go timeline: what goroutines did, in the order of time. */
#include "cli/go/go_timeline.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/picture/go_timeline.h"
#include "base/array.h"
#include "base/error.h"
