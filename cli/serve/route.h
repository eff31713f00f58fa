/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a request asks for: the target of its first line ("/runs/3?sort=self"), as it came from the network, to
 * one of the pages that there are, with its parameters. Nothing else of a request is parsed here.
 */
#ifndef TRACECTL_CLI_SERVE_ROUTE_H
#define TRACECTL_CLI_SERVE_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

enum route_kind {
    ROUTE_NONE,
    ROUTE_RUNS,
    ROUTE_RUN,
    ROUTE_RUN_FLAME,
    ROUTE_RUN_FUNCTION,
    ROUTE_RUN_TIMELINE,
    ROUTE_RUN_LOOPS,
    ROUTE_RUN_GO,
    ROUTE_RUN_REPORT,
    ROUTE_CHOSEN, /* "/compare?run=A&run=B": the two that were ticked */
    ROUTE_COMPARE,
    ROUTE_COMPARE_FLAME,
    ROUTE_COMPARE_REPORT,
    ROUTE_LIVE,
    ROUTE_SQL,
    ROUTE_SQL_CSV,
    ROUTE_API_RUNS,
    ROUTE_API_TOP,
    ROUTE_API_COMPARE,
    ROUTE_METRICS,
    /* Not made from the store: */
    ROUTE_EVENTS,
    ROUTE_OPENAPI,
    ROUTE_STYLE,
    ROUTE_SCRIPT,
    ROUTE_FLAME_SCRIPT,
    ROUTE_ICON,
};

enum route_sort { SORT_CALLS, SORT_TOTAL, SORT_SELF, SORT_P50, SORT_P99, SORT_NAME };

struct route_type {
    const char *pattern; /* of the path; '*' is the number of a run */
    enum route_kind kind;
    const char *content_type;
    unsigned parameters; /* bits of the parameters that it has */
};

enum { ROUTE_TARGET_MAX = 8192, ROUTE_LIMIT_MAX = 100000, ROUTE_PAGE_MAX = 1000000 };

struct route {
    const struct route_type *type;
    int64_t runs[2]; /* of the path, or ticked; 0: none */
    int run_count;
    char *text; /* parameter q, what is searched or asked; NULL: none */
    enum route_sort sort;
    unsigned page;           /* from 0 */
    unsigned limit;          /* 0: not given */
    uint64_t from_ns, to_ns; /* since the run began; to_ns 0: to its end */
};

/* Parses the target. Returns 0; -ENOENT: there is no such page; -EINVAL: the parameters are wrong, and *ret_why
 * is a sentence about it; -ENOMEM. Free with route_release after success. */
int route_parse(const char *target, struct route *ret_route, const char **ret_why);
void route_release(struct route *route);

/* The word of the parameter `sort`. */
const char *route_sort_name(enum route_sort sort);

/* Whether it is a page for people: errors are shown as one, too. */
bool route_is_page(const struct route *route);

/* Whether a request with this Host header may be answered. A name that is neither "localhost" nor `allowed`
 * (may be NULL) is what a page of another site makes a browser send when its name leads here (DNS rebinding);
 * an address in digits cannot come from that. */
bool route_host_is_allowed(const char *host, const char *allowed);

#endif
