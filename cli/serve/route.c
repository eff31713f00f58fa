/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/serve/route.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/number.h"

enum { HAS_TEXT = 1, HAS_SORT = 2, HAS_PAGE = 4, HAS_LIMIT = 8, HAS_RUNS = 16, HAS_RANGE = 32 };

#define HTML "text/html; charset=utf-8"
#define JSON "application/json"
#define SVG "image/svg+xml"
#define JS "text/javascript; charset=utf-8"

static const struct route_type types[] = {
    {"/", ROUTE_RUNS, HTML, HAS_TEXT | HAS_PAGE},
    {"/runs/*", ROUTE_RUN, HTML, HAS_TEXT | HAS_SORT},
    {"/runs/*/flame.svg", ROUTE_RUN_FLAME, SVG, 0},
    {"/runs/*/function", ROUTE_RUN_FUNCTION, HTML, HAS_TEXT},
    {"/runs/*/timeline", ROUTE_RUN_TIMELINE, HTML, HAS_RANGE | HAS_PAGE},
    {"/runs/*/loops", ROUTE_RUN_LOOPS, HTML, 0},
    {"/runs/*/go", ROUTE_RUN_GO, HTML, 0},
    {"/runs/*/report", ROUTE_RUN_REPORT, HTML, 0},
    {"/compare", ROUTE_CHOSEN, HTML, HAS_RUNS},
    {"/compare/*/*", ROUTE_COMPARE, HTML, HAS_TEXT},
    {"/compare/*/*/flame.svg", ROUTE_COMPARE_FLAME, SVG, 0},
    {"/compare/*/*/report", ROUTE_COMPARE_REPORT, HTML, 0},
    {"/live", ROUTE_LIVE, HTML, 0},
    {"/sql", ROUTE_SQL, HTML, HAS_TEXT},
    {"/sql.csv", ROUTE_SQL_CSV, "text/csv; charset=utf-8", HAS_TEXT},
    {"/api/v1/runs", ROUTE_API_RUNS, JSON, 0},
    {"/api/v1/runs/*/top", ROUTE_API_TOP, JSON, HAS_LIMIT | HAS_SORT},
    {"/api/v1/compare/*/*", ROUTE_API_COMPARE, JSON, 0},
    {"/api/v1/openapi.json", ROUTE_OPENAPI, JSON, 0},
    {"/metrics", ROUTE_METRICS, "text/plain; version=0.0.4; charset=utf-8", 0},
    {"/events", ROUTE_EVENTS, "text/event-stream", 0},
    {"/assets/style.css", ROUTE_STYLE, "text/css; charset=utf-8", 0},
    {"/assets/serve.js", ROUTE_SCRIPT, JS, 0},
    {"/assets/flame_graph.js", ROUTE_FLAME_SCRIPT, JS, 0},
    {"/assets/icon.svg", ROUTE_ICON, SVG, 0},
};

static const char *const sorts[] = {"calls", "total", "self", "p50", "p99", "name"};

const char *route_sort_name(enum route_sort sort)
{
    return sorts[sort];
}

bool route_is_page(const struct route *route)
{
    return !strncmp(route->type->content_type, "text/html", strlen("text/html"));
}

void route_release(struct route *route)
{
    free(route->text);
    *route = (struct route){0};
}

/* ------------------------------------------------------------------------------------------ the path */

/* A number without sign and leading zeros: each run has one address. */
static bool parse_run(const char *text, size_t size, int64_t *ret_run)
{
    char digits[20];
    uint64_t number;

    if (!size || size >= sizeof(digits) || text[0] == '0')
        return false;
    memcpy(digits, text, size);
    digits[size] = '\0';
    if (strspn(digits, "0123456789") != size || !number_parse_count(digits, &number) || number > INT64_MAX)
        return false;
    *ret_run = (int64_t)number;
    return true;
}

static bool matches(const char *pattern, const char *path, size_t size, struct route *route)
{
    const char *end = path + size;

    route->run_count = 0;
    for (; *pattern; pattern++) {
        const char *word = path;

        if (*pattern != '*') {
            if (path == end || *path++ != *pattern)
                return false;
            continue;
        }
        while (path < end && *path != '/')
            path++;
        if (!parse_run(word, (size_t)(path - word), &route->runs[route->run_count++]))
            return false;
    }
    return path == end;
}

/* ------------------------------------------------------------------------------------------ parameters */

static int hex_digit(char digit)
{
    const char *digits = "0123456789abcdef";
    const char *at = digit ? strchr(digits, digit | 0x20) : NULL;

    return at ? (int)(at - digits) : -1;
}

/* "a+b%20c" as "a b c", in memory from malloc. -EINVAL: not encoded as it must be, or with a NUL. */
static int decode(const char *text, size_t size, char **ret_text)
{
    AUTO_FREE char *decoded = malloc(size + 1);
    size_t length = 0;

    if (!decoded)
        return -ENOMEM;
    for (size_t i = 0; i < size; i++) {
        int high, low;

        if (text[i] != '%') {
            decoded[length++] = text[i] == '+' ? ' ' : text[i];
            continue;
        }
        high = i + 2 < size ? hex_digit(text[i + 1]) : -1;
        low = high >= 0 ? hex_digit(text[i + 2]) : -1;
        if (low < 0 || (!high && !low))
            return -EINVAL;
        decoded[length++] = (char)(high << 4 | low);
        i += 2;
    }
    decoded[length] = '\0';
    *ret_text = take_pointer(decoded);
    return 0;
}

static bool parse_number(const char *text, unsigned low, unsigned high, unsigned *ret_number)
{
    uint64_t number;

    if (!number_parse_count(text, &number) || number < low || number > high)
        return false;
    *ret_number = (unsigned)number;
    return true;
}

static bool parse_time(const char *text, uint64_t *ret_ns)
{
    return number_parse_count(text, ret_ns) && *ret_ns <= INT64_MAX / 2;
}

static bool parse_sort(const char *text, enum route_sort *ret_sort)
{
    for (size_t i = 0; i < ARRAY_SIZE(sorts); i++)
        if (!strcmp(text, sorts[i])) {
            *ret_sort = (enum route_sort)i;
            return true;
        }
    return false;
}

/* Takes `value` where the page has a parameter of this name. */
static const char *take(struct route *route, const char *name, size_t length, char **value)
{
    unsigned has = route->type->parameters;

    if (has & HAS_TEXT && length == 1 && !memcmp(name, "q", 1)) {
        free(route->text);
        route->text = take_pointer(*value);
        return NULL;
    }
    if (has & HAS_SORT && length == 4 && !memcmp(name, "sort", 4))
        return parse_sort(*value, &route->sort) ? NULL : "sort is calls, total, self, p50, p99 or name.";
    if (has & HAS_PAGE && length == 4 && !memcmp(name, "page", 4))
        return parse_number(*value, 0, ROUTE_PAGE_MAX, &route->page) ? NULL : "page is no number.";
    if (has & HAS_LIMIT && length == 5 && !memcmp(name, "limit", 5))
        return parse_number(*value, 1, ROUTE_LIMIT_MAX, &route->limit)
                   ? NULL
                   : "limit is a number from 1 to 100000.";
    if (has & HAS_RANGE && length == 4 && !memcmp(name, "from", 4))
        return parse_time(*value, &route->from_ns) ? NULL : "from is no number of nanoseconds.";
    if (has & HAS_RANGE && length == 2 && !memcmp(name, "to", 2))
        return parse_time(*value, &route->to_ns) ? NULL : "to is no number of nanoseconds.";
    if (has & HAS_RUNS && length == 3 && !memcmp(name, "run", 3)) {
        if (route->run_count == 2)
            return "Two runs can be compared, not more.";
        return parse_run(*value, strlen(*value), &route->runs[route->run_count++]) ? NULL
                                                                                   : "run is no number.";
    }
    return "This page has no such parameter.";
}

static int parse_parameters(const char *text, struct route *route, const char **ret_why)
{
    while (*text) {
        size_t size = strcspn(text, "&"), name = strcspn(text, "=&");
        AUTO_FREE char *value = NULL;
        int r = name < size ? decode(text + name + 1, size - name - 1, &value) : decode("", 0, &value);

        if (r == -EINVAL)
            *ret_why = "A parameter is not encoded as an address wants it.";
        if (r)
            return r;
        *ret_why = size ? take(route, text, name, &value) : NULL;
        if (*ret_why)
            return -EINVAL;
        text += size + (text[size] == '&');
    }
    if (route->type->kind == ROUTE_CHOSEN && route->run_count != 2) {
        *ret_why = "Tick two runs to compare them.";
        return -EINVAL;
    }
    return 0;
}

int route_parse(const char *target, struct route *ret_route, const char **ret_why)
{
    size_t path = strcspn(target, "?#");
    struct route route = {0};

    *ret_why = NULL;
    if (strlen(target) > ROUTE_TARGET_MAX) {
        *ret_why = "The address is too long.";
        return -EINVAL;
    }
    for (size_t i = 0; i < ARRAY_SIZE(types) && !route.type; i++)
        if (matches(types[i].pattern, target, path, &route))
            route.type = &types[i];
    if (!route.type)
        return -ENOENT;
    if (target[path] == '?') {
        int r = parse_parameters(target + path + 1, &route, ret_why);

        if (r) {
            route_release(&route);
            return r;
        }
    } else if (route.type->kind == ROUTE_CHOSEN) {
        *ret_why = "Tick two runs to compare them.";
        return -EINVAL;
    }
    *ret_route = route;
    return 0;
}

/* ------------------------------------------------------------------------------------------ hosts */

bool route_host_is_allowed(const char *host, const char *allowed)
{
    char name[256];
    struct in6_addr address;
    size_t length = host[0] == '[' ? strcspn(host, "]") : strcspn(host, ":");
    const char *behind = host + length + (host[length] == ']');
    bool bracket = host[0] == '[';

    if (!length || length >= sizeof(name) || (*behind && *behind != ':') ||
        (*behind && strspn(behind + 1, "0123456789") != strlen(behind + 1)))
        return false;
    memcpy(name, host + bracket, length - bracket);
    name[length - bracket] = '\0';
    if (bracket)
        return host[length] == ']' && inet_pton(AF_INET6, name, &address) == 1;
    return inet_pton(AF_INET, name, &address) == 1 || !strcasecmp(name, "localhost") ||
           (allowed && !strcasecmp(name, allowed));
}
