/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Import of Chrome's trace events: what each kind becomes, and what is refused. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "store/import/import_chrome.h"
#include "tests/unit/store/model.h"

static int import(struct tracestore *store, const char *json, struct error *err)
{
    FILE *in = fmemopen((void *)json, strlen(json), "r");
    struct chrome_plan *plan = NULL;
    int64_t run_id;
    int r = chrome_plan_read(in, "some/trace.json", &plan, err);

    fclose(in);
    if (r == 0)
        r = chrome_plan_write(plan, store, NULL, NULL, &run_id, err);
    chrome_plan_free(plan);
    return r;
}

/* Imports into a new store, or is refused and says so in the same words; then `sql` gives `expected`. */
static void expect(const char *json, const char *refusal, const char *sql, const char *expected)
{
    struct model model = {.path = "/tmp/import-chrome-XXXXXX"};
    struct error err = {0};
    int fd = mkstemp(model.path);
    char *rows;
    int r;

    cr_assert_geq(fd, 0);
    close(fd);
    unlink(model.path);
    cr_assert_eq(tracestore_open(model.path, TRACESTORE_CREATE, &model.store, &err), 0);
    model.db = tracestore_db(model.store);
    r = import(model.store, json, &err);
    cr_assert_eq(r < 0, refusal != NULL, "%s: %s", json, err.message);
    if (refusal)
        cr_assert(strstr(err.message, refusal), "%s: %s", json, err.message);
    rows = model_rows(&model, sql);
    cr_assert_str_eq(rows, expected, "%s: %s", json, rows);
    free(rows);
    model_release(&model);
}

#define PLACE ",\"pid\":7,\"tid\":7"
#define B(name, ts) "{\"ph\":\"B\",\"name\":\"" name "\",\"ts\":" #ts PLACE "}"
#define E(ts) "{\"ph\":\"E\",\"ts\":" #ts PLACE "}"
#define X(name, ts, dur) "{\"ph\":\"X\",\"name\":\"" name "\",\"ts\":" #ts ",\"dur\":" #dur PLACE "}"
#define ORIGIN "\"otherData\":{\"started_ns\":\"1000000\"}"
#define TRACE(events) "{\"traceEvents\":[" events "]," ORIGIN "}"

/* Calls in the order of their begins: depth, name, from when to when, and the state of those that do not
 * return. */
#define CALLS \
    "SELECT group_concat(depth || name || (ns - 1000000) || coalesce('-' || (ns + duration_ns - 1000000)," \
    " ' ' || state), ', ') FROM (SELECT * FROM calls ORDER BY " \
    "thread_id, seq)"

Test(import_chrome, calls_nest_by_their_times)
{
    static const char *const cases[][2] = {
        {TRACE(B("a", 1) "," B("b", 1.5) "," E(2) "," E(3)), "0a1000-3000, 1b1500-2000\n"},
        {TRACE(E(3) "," B("b", 1.5) "," B("a", 1) "," E(2)), "0a1000-3000, 1b1500-2000\n"},
        {TRACE(B("a", 1) "," E(1) "," B("b", 1) "," E(1)), "0a1000-1000, 0b1000-1000\n"},
        {TRACE(X("b", 2, 3) "," X("a", 1, 9) "," X("c", 5, 5)), "0a1000-10000, 1b2000-5000, 1c5000-10000\n"},
        {TRACE(X("b", 1, 3) "," X("a", 1, 9)), "0a1000-10000, 1b1000-4000\n"},
        {TRACE(X("a", 1, 2) "," X("b", 3, 0) "," X("c", 3, 1)), "0a1000-3000, 0c3000-4000, 1b3000-3000\n"},
        {TRACE(X("a", 1, 2) "," X("b", 2, 5)), "0a1000-3000, 1b2000-3000\n"},
        {TRACE(B("a", 1) "," X("b", 2, 5) "," E(3)), "0a1000-3000, 1b2000-3000\n"},
        {TRACE(X("a", 1, 9) "," B("b", 2)), "0a1000-10000, 1b2000-10000\n"},
        {TRACE(X("a", 1, 9) "," X("b", 2, 20) "," E(5)),
         "0a1000 returned, 1b2000 returned\n"}, /* an end without its beginning is a loss */
        {TRACE(B("a", 1) "," B("b", 2) "," E(3)), "0a1000 open, 1b2000-3000\n"},
        {TRACE(B("a", -1) "," E(-0.001)), "0a-1000--1\n"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        expect(cases[i][0], NULL, CALLS, cases[i][1]);
}

Test(import_chrome, ends_that_the_file_does_not_tell_are_inferred)
{
    static const char sql[] = "SELECT returns, value FROM threads LEFT JOIN tags USING (run_id)";

    expect(TRACE(X("a", 1, 2) "," X("b", 2, 5)), NULL, sql, "inferred|1\n");
    expect(TRACE(X("a", 1, 2) "," B("b", 2)), NULL, sql, "inferred|1\n");
    expect(TRACE(X("a", 1, 2) "," X("b", 2, 1)), NULL, sql, "probed|NULL\n");
    expect(TRACE("{\"ph\":\"B\",\"name\":\"a\",\"ts\":1,\"args\":{\"state\":\"unknown\"}}"), NULL, sql,
           "inferred|NULL\n");
}

Test(import_chrome, losses_and_instants)
{
    static const char lost[] = "SELECT seq, count, calls, returns, cause FROM losses";

    expect(TRACE(E(1)), NULL, lost, "0|2|1|1|an end without its beginning\n");
    expect(TRACE("{\"ph\":\"i\",\"s\":\"t\",\"name\":\"[lost]\",\"ts\":1,\"args\":{\"events\":5,\"cause\":"
                 "\"x\"}}," B("a", 2)),
           NULL, lost, "0|5|NULL|NULL|x\n");
    expect(
        TRACE("{\"ph\":\"i\",\"s\":\"g\",\"name\":\"[not observed]\",\"ts\":1,\"args\":{\"function\":\"f\","
              "\"cause\":\"x\"}}," B("a", 2)),
        NULL, lost, "NULL|NULL|NULL|NULL|not observed: f: x\n");
    /* Marks between calls are none; a thread of marks alone has calls without returns. */
    expect(TRACE("{\"ph\":\"i\",\"name\":\"m\",\"ts\":1" PLACE "}," B("a", 2)), NULL, CALLS, "0a2000 open\n");
    expect(TRACE("{\"ph\":\"I\",\"name\":\"m\",\"ts\":1}"), NULL,
           "SELECT returns, kind, depth, functions.name FROM events JOIN threads USING (thread_id)"
           " JOIN functions USING (function_id)",
           "none|call|0|m\n");
    expect(TRACE("{\"ph\":\"B\",\"name\":\"a\",\"ts\":1,\"args\":{\"nesting\":\"assumed\"}}"), NULL,
           "SELECT assumed FROM events", "1\n");
}

Test(import_chrome, threads_and_processes)
{
    static const char sql[] =
        "SELECT group_concat(label || ' ' || tid || ' ' || t.name || ' ' || exe || ' ' || pid, ', ')"
        " FROM threads t JOIN processes USING (process_id)";

    expect(
        "[{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":5,\"args\":{\"name\":\"prog\"}},"
        "{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":1,\"pid\":5,\"tid\":6},"
        "{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":1,\"pid\":5,\"tid\":\"gc\"},"
        "{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":1,\"pid\":4,\"tid\":6},"
        "{\"ph\":\"s\",\"name\":\"flow\",\"ts\":1},"
        "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":5,\"tid\":\"gc\",\"args\":{\"name\":\"0.1 "
        "collect\"}},",
        NULL, sql, "0.0 6  prog 5, 0.1 0 collect prog 5, 1.0 6   4\n");
}

Test(import_chrome, what_is_no_trace_is_refused)
{
    static const char *const cases[][2] = {
        {"", "neither an array nor an object"},
        {"x", "neither an array nor an object"},
        {"[]", "no call in it"},
        {"{}", "no call in it"},
        {"{\"traceEvents\":[" B("a", 1), "ends too early"},
        {"{\"traceEvents\":[" B("a", 1) "]", "ends too early"},
        {"[" B("a", 1) "]]", "unexpected data after the end"},
        {"[" B("a", 1) B("a", 1) "]", "an event or the end is expected"},
        {"[" B("a", 1) ",,]", "an event or the end is expected"},
        {"[1]", "an event or the end is expected"},
        {"[{\"ph\":\"B\",\"name\":\"a", "behind event 0"},
        {"[" B("a", 1) ",{\"ph\"}]", "behind event 1"},
        {"{\"traceEvents\" [" B("a", 1) "]}", "a name is expected"},
        {"{\"other\":}", "a value is expected"},
        {"{\"other\":[\"]\",{}", "a value is expected"},
        {"{\"other\":1 \"traceEvents\":[]}", "a comma is expected"},
        {"[{\"name\":\"a\",\"ts\":1}]", "event 0 has no 'ph'"},
        {"[" B("a", 1) ",{\"ph\":\"B\",\"name\":\"a\"}]", "event 1 has no 'ts' that is a time"},
        {"[{\"ph\":\"B\",\"name\":\"a\",\"ts\":\"1\"}]", "has no 'ts' that is a time"},
        {"[" B("a", 1e300) "]", "has no 'ts' that is a time"},
        {"[" B("a", 9223372036854775807) "]", "has no 'ts' that is a time"},
        {"[{\"ph\":\"B\",\"ts\":1}]", "event 0 has no name"},
        {"[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1}]", "has no 'dur' that is a time"},
        {"[" X("a", 1, -1) "]", "lasts less than nothing"},
        {"[{\"ph\":\"B\",\"name\":\"a\",\"ts\":1,\"pid\":[]}]", "has a pid or tid that is no number"},
        {"[{\"ph\":\"i\",\"name\":\"[lost]\",\"ts\":1,\"args\":{\"events\":-1}}]", "lost less than nothing"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        expect(cases[i][0], cases[i][1],
               "SELECT (SELECT count(*) FROM runs) + (SELECT count(*) FROM functions)", "0\n");
}

/* What stands around the events is passed over, however it looks. */
Test(import_chrome, other_members_are_passed_over)
{
    expect("{\"a\":\"]\\\"}\",\"b\":[{\"x\":[1,\"}\"]}],\"c\":-1.5e3 ,\"d\":null,\"traceEvents\" : [ \n" B(
               "a", 1) "\t],\"e\":true}",
           NULL, "SELECT count(*) FROM events", "1\n");
}
