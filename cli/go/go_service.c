/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/go/go_service.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/go/verdict.h"
#include "base/array.h"
#include "base/error.h"
