/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What pages need beside themselves: all of it is inside the executable. */
#ifndef TRACECTL_CLI_SERVE_ASSETS_H
#define TRACECTL_CLI_SERVE_ASSETS_H

#include <stddef.h>

#include "cli/serve/route.h"

/* Of the documents under /api/v1: rises when a key changes its meaning or goes away. In openapi.json, too. */
#define ASSETS_SCHEMA_VERSION "1"

struct asset {
    const char *text;
    size_t size;
};

/* NULL: no asset but something that is made. */
const struct asset *asset_of(enum route_kind kind);

#endif
