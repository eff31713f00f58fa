/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/cluster/ranking_input.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "analyzer/ranking/ranking_filters.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
