/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How the returns of a thread's calls are known, as the column threads.returns has it. */
#include <string.h>

#include "base/array.h"
#include "store/api/tracestore.h"

static const char *const returns_names[] = {
    [TRACE_RETURNS_PROBED] = "probed",
    [TRACE_RETURNS_INFERRED] = "inferred",
    [TRACE_RETURNS_NONE] = "none",
    [TRACE_RETURNS_SETTLED] = "settled",
};

const char *trace_returns_name(enum trace_returns returns)
{
    return returns_names[returns];
}

enum trace_returns trace_returns_parse(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(returns_names); i++)
        if (!strcmp(returns_names[i], name))
            return (enum trace_returns)i;
    return TRACE_RETURNS_PROBED;
}
