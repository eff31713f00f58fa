/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/serve/access.h"
#include "cli/serve/route.h"

static void wanted(const char *target, enum route_kind kind, int64_t first, int64_t second)
{
    struct route route = {0};
    const char *why;

    cr_assert_eq(route_parse(target, &route, &why), 0, "%s", target);
    cr_assert_eq(route.type->kind, kind, "%s", target);
    cr_assert_eq(route.runs[0], first, "%s", target);
    cr_assert_eq(route.runs[1], second, "%s", target);
    route_release(&route);
}

static void refused(const char *target, int code)
{
    struct route route = {0};
    const char *why;

    cr_assert_eq(route_parse(target, &route, &why), code, "%s", target);
    cr_assert(code != -EINVAL || why, "%s", target);
    cr_assert_null(route.text);
}

Test(route, paths)
{
    wanted("/", ROUTE_RUNS, 0, 0);
    wanted("/runs/7", ROUTE_RUN, 7, 0);
    wanted("/api/v1/runs/9223372036854775807/top", ROUTE_API_TOP, INT64_MAX, 0);
}

Test(route, times_of_a_time_line)
{
    struct route route = {0};
    const char *why;

    cr_assert_eq(route_parse("/runs/7/timeline?from=5&to=4000000000000&page=2", &route, &why), 0);
    cr_assert_eq(route.type->kind, ROUTE_RUN_TIMELINE);
    cr_assert_eq(route.from_ns, 5);
    cr_assert_eq(route.to_ns, 4000000000000);
    cr_assert_eq(route.page, 2);
    route_release(&route);
    refused("/runs/7/timeline?from=-5", -EINVAL);
    refused("/runs/7/timeline?to=9223372036854775807", -EINVAL);
    refused("/runs/7?from=5", -EINVAL);
}

Test(route, paths_with_two_runs)
{
    wanted("/compare/1/22", ROUTE_COMPARE, 1, 22);
    wanted("/compare/3/1/flame.svg", ROUTE_COMPARE_FLAME, 3, 1);
    wanted("/api/v1/compare/4/5", ROUTE_API_COMPARE, 4, 5);
    wanted("/compare?run=8&run=9", ROUTE_CHOSEN, 8, 9);
}

Test(route, paths_that_are_none)
{
    static const char *const targets[] = {"",
                                          "runs",
                                          "/runs/",
                                          "/runs/0",
                                          "/runs/01",
                                          "/runs/+1",
                                          "/runs/1 ",
                                          "/runs/1x",
                                          "/runs/1/flame",
                                          "//",
                                          "/sql/",
                                          "/compare/",
                                          "/compare/1",
                                          "http://a/runs/1",
                                          "/runs/%31",
                                          "/runs/9223372036854775808",
                                          "/compare/1/2/3"};

    for (size_t i = 0; i < ARRAY_SIZE(targets); i++)
        refused(targets[i], -ENOENT);
}

Test(route, parameters)
{
    struct route route = {0};
    const char *why;

    cr_assert_eq(route_parse("/runs/1?sort=p99&q=a+b%3C%e2%82%ac&", &route, &why), 0);
    cr_assert_eq(route.sort, SORT_P99);
    cr_assert_str_eq(route.text, "a b<\xe2\x82\xac");
    route_release(&route);
    cr_assert_eq(route_parse("/?q=first&page=3&q=", &route, &why), 0);
    cr_assert_eq(route.page, 3);
    cr_assert_str_eq(route.text, "");
    route_release(&route);
    cr_assert_eq(route_parse("/api/v1/runs/1/top?limit=100000", &route, &why), 0);
    cr_assert_eq(route.limit, 100000);
    route_release(&route);
}

Test(route, parameters_that_are_wrong)
{
    static const char *const targets[] = {
        "/?q=%",
        "/?q=%0",
        "/?q=%00",
        "/?q=%g0",
        "/?sort=self",
        "/runs/1?sort=",
        "/runs/1?page=1",
        "/?page=x",
        "/?page=1000001",
        "/compare?run=1",
        "/compare",
        "/compare?run=1&run=0",
        "/compare?run=1&run=2&run=3",
        "/live?q=a",
        "/?=",
    };

    for (size_t i = 0; i < ARRAY_SIZE(targets); i++)
        refused(targets[i], -EINVAL);
}

Test(route, a_target_that_is_too_long)
{
    char *target = malloc(ROUTE_TARGET_MAX + 2);

    memset(target, 'a', ROUTE_TARGET_MAX + 1);
    target[ROUTE_TARGET_MAX + 1] = '\0';
    memcpy(target, "/?q=", 4);
    refused(target, -EINVAL);
    target[ROUTE_TARGET_MAX] = '\0';
    wanted(target, ROUTE_RUNS, 0, 0);
    free(target);
}

Test(route, hosts)
{
    cr_assert(route_host_is_allowed("127.0.0.1", NULL));
    cr_assert(route_host_is_allowed("192.168.1.2:7447", NULL));
    cr_assert(route_host_is_allowed("[::1]:7447", NULL));
    cr_assert(route_host_is_allowed("LocalHost:1", NULL));
    cr_assert(route_host_is_allowed("traces.example:80", "traces.example"));
    cr_assert_not(route_host_is_allowed("traces.example", NULL));
    cr_assert_not(route_host_is_allowed("traces.example.evil", "traces.example"));
    cr_assert_not(route_host_is_allowed("", NULL));
    cr_assert_not(route_host_is_allowed(":80", ""));
    cr_assert_not(route_host_is_allowed("[::1", NULL));
    cr_assert_not(route_host_is_allowed("[::1]x", NULL));
    cr_assert_not(route_host_is_allowed("127.0.0.1:80@evil", NULL));
    cr_assert_not(route_host_is_allowed("127.0.0.1.evil", NULL));
}

Test(access, only_the_whole_token)
{
    cr_assert(access_is_equal("0123456789abcdef", "0123456789abcdef"));
    cr_assert_not(access_is_equal("0123456789abcdeg", "0123456789abcdef"));
    cr_assert_not(access_is_equal("0123456789abcde", "0123456789abcdef"));
    cr_assert_not(access_is_equal("0123456789abcdef0", "0123456789abcdef"));
    cr_assert_not(access_is_equal("0123456789abcdef0123456789abcdef", "0123456789abcdef"));
    cr_assert_not(access_is_equal("", "0123456789abcdef"));
}
