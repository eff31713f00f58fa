/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The first line is a request's target, the rest its Host header. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/serve/route.h"

static void check_target(const char *target)
{
    struct route route = {0};
    const char *why = NULL;
    int r = route_parse(target, &route, &why);

    if (r < 0) {
        if (r != -ENOENT && r != -EINVAL)
            abort();
        if (r == -EINVAL && !why)
            abort();
        return;
    }
    if (!route.type || route.run_count < 0 || route.run_count > 2 || route.page > ROUTE_PAGE_MAX ||
        route.limit > ROUTE_LIMIT_MAX || !route_sort_name(route.sort))
        abort();
    for (int i = 0; i < route.run_count; i++)
        if (route.runs[i] <= 0)
            abort();
    route_release(&route);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *host = text;

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    strsep(&host, "\n");
    check_target(text);
    if (host && route_host_is_allowed(host, NULL) && strchr(host, '/'))
        abort();
    free(text);
    return 0;
}
