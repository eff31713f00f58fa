/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/serve/page_functions.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/report/html.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/path.h"
#include "cli/serve/document.h"
#include "cli/serve/page.h"

enum { ROWS_MAX = 300 };

json_t *page_functions_read(const char *run)
{
    const char *const arguments[] = {"--limit", "0", run, NULL};

    return document_read(&cmd_top, arguments);
}

static bool is_wanted(const struct print *print, const char *name)
{
    const char *text = print->route->text;

    return !text || strcasestr(name, text);
}

static void put_filter(const struct print *print, const char *action)
{
    FILE *out = print->out;

    fprintf(
        out,
        "<form action=\"%s#functions\" class=\"bar-of-fields\"><label>Function <input type=\"search\" name=\"q\" "
        "value=\"",
        action);
    page_text(out, print->route->text ? print->route->text : "");
    fputs("\"></label> ", out);
    if (print->route->type->kind == ROUTE_RUN)
        fprintf(out, "<input type=\"hidden\" name=\"sort\" value=\"%s\">",
                route_sort_name(print->route->sort));
    fputs("<button>Filter</button></form>\n", out);
}

static void put_omitted(FILE *out, size_t count, size_t shown)
{
    char all[32];

    if (count > shown)
        html_paragraph(out, "note", "The first %zu of %s functions are shown: filter them, or ask the API.",
                       shown, html_count(count, all));
}

/* What of its calls was not recorded. */
static void put_missed(FILE *out, const json_t *function)
{
    double missed = json_number_value(json_object_get(function, "missed_calls"));
    char text[32];

    if (missed > 0)
        fprintf(out, " <span class=\"note\">(not recorded: about %s calls more)</span>",
                html_count((uint64_t)missed, text));
    else if (json_is_true(json_object_get(function, "muted")))
        fputs(" <span class=\"note\">(undercounted)</span>", out);
}

/* `run`: of the page that the name leads to. */
static void put_name_cell(FILE *out, const json_t *function, const char *run)
{
    fputs("<th scope=\"row\">", out);
    page_function_link(out, run, page_member(function, "name"));
    put_missed(out, function);
    fputs("</th>", out);
}

static void put_image_cell(FILE *out, const json_t *function)
{
    fputs("<td>", out);
    page_text(out, path_file_name(page_member(function, "image")));
    fputs("</td>", out);
}

/* Whether the time of any function is known: else its columns are left out. */
static bool has_times(const json_t *top)
{
    const json_t *function;
    size_t i;

    json_array_foreach(json_object_get(top, "functions"), i,
                       function) if (page_number(function, "total_ns", -1) >= 0) return true;
    return false;
}

/* ------------------------------------------------------------------------------------------ one run */

static const char *const keys[] = {"calls", "total_ns", "self_ns", "p50_ns", "p99_ns"};

/* With the calls that were not recorded. */
static int64_t value_of(const json_t *function, enum route_sort sort)
{
    double missed = sort == SORT_CALLS ? json_number_value(json_object_get(function, "missed_calls")) : 0;

    return page_number(function, keys[sort], -1) + (int64_t)missed;
}

/* Most first, unknown last; names from A to Z. */
static int compare_functions(const void *a, const void *b, void *context)
{
    const json_t *first = *(const json_t *const *)a, *second = *(const json_t *const *)b;
    enum route_sort sort = *(const enum route_sort *)context;
    int64_t x = sort == SORT_NAME ? 0 : value_of(first, sort);
    int64_t y = sort == SORT_NAME ? 0 : value_of(second, sort);

    return x != y ? (x < y) - (x > y) : strcmp(page_member(first, "name"), page_member(second, "name"));
}

/* "Calls", say, which sorts by that. */
static void put_head(const struct print *print, enum route_sort sort, const char *words)
{
    bool chosen = sort == print->route->sort;
    const char *order = sort == SORT_NAME ? "ascending" : "descending";

    fprintf(print->out, "<th%s", sort == SORT_NAME ? "" : " class=\"right\"");
    if (chosen)
        fprintf(print->out, " aria-sort=\"%s\"", order);
    fprintf(print->out, "><a href=\"/runs/%s?sort=%s#functions\">%s%s</a></th>", print->runs[0],
            route_sort_name(sort), words,
            !chosen             ? ""
            : sort == SORT_NAME ? " \xe2\x86\x91"
                                : " \xe2\x86\x93");
}

static void put_heads(const struct print *print, bool timed)
{
    static const char *const words[] = {"Total", "Self", "p50", "p99"};
    static const enum route_sort sorts[] = {SORT_TOTAL, SORT_SELF, SORT_P50, SORT_P99};

    fputs("<thead><tr>", print->out);
    put_head(print, SORT_NAME, "Function");
    put_head(print, SORT_CALLS, "Calls");
    for (size_t i = 0; timed && i < ARRAY_SIZE(sorts); i++)
        put_head(print, sorts[i], words[i]);
    fputs("<th>Image</th></tr></thead>\n<tbody>\n", print->out);
}

static void put_function(const struct print *print, const json_t *function, bool timed)
{
    FILE *out = print->out;

    fputs("<tr>", out);
    put_name_cell(out, function, print->runs[0]);
    page_count_cell(out, (uint64_t)page_number(function, "calls", 0));
    for (int i = SORT_TOTAL; timed && i <= SORT_P99; i++)
        page_time_cell(out, page_number(function, keys[i], -1));
    put_image_cell(out, function);
    fputs("</tr>\n", out);
}

int page_functions_put(const struct print *print, const json_t *top, struct error *err)
{
    const json_t *functions = json_object_get(top, "functions"), *function;
    AUTO_FREE const json_t **sorted = calloc(json_array_size(functions) + 1, sizeof(*sorted));
    enum route_sort sort = print->route->sort;
    size_t count = 0, shown, i;
    bool timed = has_times(top);
    char action[64];

    if (!sorted)
        return error_no_memory(err);
    json_array_foreach(functions, i, function) if (is_wanted(print, page_member(function, "name")))
        sorted[count++] = function;
    qsort_r(sorted, count, sizeof(*sorted), compare_functions, &sort);
    shown = count < ROWS_MAX ? count : ROWS_MAX;
    snprintf(action, sizeof(action), "/runs/%s", print->runs[0]);
    put_filter(print, action);
    fprintf(print->out, "<div class=\"table\" tabindex=\"0\"><table><caption>%s</caption>",
            timed ? "Total: with what a function calls; self: without. ? is not known exactly."
                  : "Calls; the times of functions are not known (record --time full).");
    put_heads(print, timed);
    for (i = 0; i < shown; i++)
        put_function(print, sorted[i], timed);
    fputs("</tbody></table></div>\n", print->out);
    put_omitted(print->out, count, shown);
    return 0;
}

/* ------------------------------------------------------------------------------------------ two runs */

/* A function in both runs; NULL where a run has not called it. */
struct change {
    const json_t *before, *after;
};

static int64_t calls_of(const json_t *function)
{
    return function ? page_number(function, "calls", 0) : 0;
}

static uint64_t size_of(const struct change *change)
{
    int64_t before = calls_of(change->before), after = calls_of(change->after);

    return before > after ? (uint64_t)(before - after) : (uint64_t)(after - before);
}

static const json_t *either(const struct change *change)
{
    return change->after ? change->after : change->before;
}

static int compare_changes(const void *a, const void *b)
{
    uint64_t x = size_of(a), y = size_of(b);

    return x != y ? (x < y) - (x > y)
                  : strcmp(page_member(either(a), "name"), page_member(either(b), "name"));
}

/* The key that the same function has in both: its name, and the file name of its image. */
static char *key_of(const json_t *function)
{
    char *key = NULL;

    return asprintf(&key, "%s\n%s", page_member(function, "name"),
                    path_file_name(page_member(function, "image"))) < 0
               ? NULL
               : key;
}

/* Adds the functions of one run; `places` has the number of each in `changes`. */
static int add(const struct print *print, const json_t *top, bool is_after, json_t *places,
               struct change *changes, size_t *count)
{
    const json_t *function;
    size_t i;

    json_array_foreach(json_object_get(top, "functions"), i, function)
    {
        AUTO_FREE char *key = key_of(function);
        const json_t *place;
        size_t at;

        if (!is_wanted(print, page_member(function, "name")))
            continue;
        place = key ? json_object_get(places, key) : NULL;
        at = place ? (size_t)json_integer_value(place) : *count;
        if (!key || (!place && json_object_set_new(places, key, json_integer((json_int_t)at))))
            return -ENOMEM;
        *count += !place;
        if (is_after)
            changes[at].after = function;
        else
            changes[at].before = function;
    }
    return 0;
}

static bool is_undercounted(const json_t *function)
{
    return json_is_true(json_object_get(function, "muted"));
}

static void put_change(const struct print *print, const struct change *change, bool timed)
{
    FILE *out = print->out;
    int64_t before = calls_of(change->before), after = calls_of(change->after);

    fputs("<tr>", out);
    put_name_cell(out, either(change), print->runs[change->after ? 1 : 0]);
    page_count_cell(out, (uint64_t)before);
    page_count_cell(out, (uint64_t)after);
    if (is_undercounted(change->before) || is_undercounted(change->after))
        fputs("<td class=\"right\">?</td>", out);
    else if (before == after)
        fputs("<td class=\"right\">same</td>", out);
    else if (!before || !after)
        fprintf(out, "<td class=\"right\">%s</td>", before ? "gone" : "new");
    else
        fprintf(out, "<td class=\"right\">%+.1f %%</td>", 100 * ((double)after / (double)before - 1));
    if (timed) {
        page_time_cell(out, change->before ? page_number(change->before, "self_ns", -1) : -1);
        page_time_cell(out, change->after ? page_number(change->after, "self_ns", -1) : -1);
    }
    put_image_cell(out, either(change));
    fputs("</tr>\n", out);
}

int page_functions_compare(const struct print *print, const json_t *before, const json_t *after,
                           struct error *err)
{
    size_t most = json_array_size(json_object_get(before, "functions")) +
                  json_array_size(json_object_get(after, "functions"));
    AUTO_FREE struct change *changes = calloc(most + 1, sizeof(*changes));
    json_t *places = json_object();
    size_t count = 0, shown;
    bool timed = has_times(before) || has_times(after);
    char action[80];
    int r = changes && places ? add(print, before, false, places, changes, &count) : -ENOMEM;

    if (!r)
        r = add(print, after, true, places, changes, &count);
    json_decref(places);
    if (r)
        return error_no_memory(err);
    qsort(changes, count, sizeof(*changes), compare_changes);
    shown = count < ROWS_MAX ? count : ROWS_MAX;
    snprintf(action, sizeof(action), "/compare/%s/%s", print->runs[0], print->runs[1]);
    put_filter(print, action);
    fprintf(
        print->out,
        "<div class=\"table\" tabindex=\"0\"><table><caption>Old to new, most changed "
        "first</caption><thead><tr><th>Function</th><th class=\"right\">Calls, old</th><th "
        "class=\"right\">Calls, new</th><th class=\"right\">Change</th>%s<th>Image</th></tr></thead>\n<tbody>\n",
        timed ? "<th class=\"right\">Self, old</th><th class=\"right\">Self, new</th>" : "");
    for (size_t i = 0; i < shown; i++)
        put_change(print, &changes[i], timed);
    fputs("</tbody></table></div>\n", print->out);
    put_omitted(print->out, count, shown);
    return 0;
}
