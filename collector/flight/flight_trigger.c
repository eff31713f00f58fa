/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What triggers a flight recorder, as people write it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
