/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/record/selection_arguments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
