/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Removing and keeping are different things in the papers: returns and stubs are removed by the two digits of
 * a code, sets are kept. A stub that a set keeps stays, whatever the digit says (11.plt.mem keeps the stubs).
 */
#include "analyzer/symbols/filter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/symbols/path_glob.h"
#include "analyzer/symbols/symbols.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
