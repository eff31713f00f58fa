/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/serve/print.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "analyzer/picture/flame_graph.h"
#include "base/array.h"
#include "base/error.h"
#include "cli/common/output.h"
#include "cli/serve/document.h"
#include "cli/serve/jobs.h"
#include "cli/serve/page.h"

#define SQL_SECONDS "20s"

/* Memory that making an answer may take; a question that wants more fails. */
static const rlim_t memory_bytes = (rlim_t)1 << 30;

/* ------------------------------------------------------------------------------------------ documents */

/* The output of a command, as it is. */
static int print_document(const struct print *print, const struct command *command, bool json,
                          const char *const *arguments, struct error *err)
{
    CLEANUP(document_release) struct document document;

    if (document_run(command, json, arguments, &document) < 0)
        return error_no_memory(err);
    if (!document_is_good(&document))
        return error_say(err, -EINVAL, "%s", document.errors);
    fputs(document.output, print->out);
    return 0;
}

/* The same on a page, as text. */
static int print_text(const struct print *print, const char *title, const struct command *command,
                      const char *const *arguments, struct error *err)
{
    CLEANUP(document_release) struct document document;

    if (document_run(command, false, arguments, &document) < 0)
        return error_no_memory(err);
    if (!document_is_good(&document))
        return error_say(err, -EINVAL, "%s", document.errors);
    page_begin(print->out, "%s of run %s", title, print->runs[0]);
    fprintf(print->out, "<p><a href=\"/runs/%s\">Back to the run</a></p>\n<pre tabindex=\"0\">",
            print->runs[0]);
    page_text(print->out, document.output);
    fputs("</pre>\n", print->out);
    page_end(print->out);
    return 0;
}

static int print_report(const struct print *print, struct error *err)
{
    const char *const arguments[] = {print->runs[0], print->route->run_count > 1 ? print->runs[1] : "-o",
                                     print->route->run_count > 1 ? "-o" : "-",
                                     print->route->run_count > 1 ? "-" : NULL, NULL};

    return print_document(print, &cmd_report, false, arguments, err);
}

static int print_top(const struct print *print, struct error *err)
{
    char limit[16];
    enum route_sort sort = print->route->sort;
    const char *const arguments[] = {"--limit", limit, "--sort", route_sort_name(sort), print->runs[0], NULL};

    if (sort == SORT_NAME || sort == SORT_P50)
        return error_say(err, -EINVAL, "sort is calls, total, self or p99.");
    snprintf(limit, sizeof(limit), "%u", print->route->limit ? print->route->limit : 20);
    return print_document(print, &cmd_top, true, arguments, err);
}

static int print_csv(const struct print *print, struct error *err)
{
    const char *const arguments[] = {
        "--csv", "--timeout", SQL_SECONDS, "--", print->route->text ? print->route->text : "", NULL};

    return print_document(print, &cmd_query, false, arguments, err);
}

/* ------------------------------------------------------------------------------------------ flame graphs */

/* Pages may not have scripts in them, so that the graph's is referred to. Names are escaped: the script's
 * element is the only one. */
static void put_graph(const struct print *print, const char *graph)
{
    const char *script = strstr(graph, "<script>");
    FILE *out = print->out;

    fwrite(graph, 1, script ? (size_t)(script - graph) : strlen(graph), out);
    if (script && print->route->run_count > 1)
        fputs("<script href=\"/assets/flame_graph.js\"/>\n</svg>\n", out);
    else if (script)
        fprintf(out,
                "<script href=\"/assets/flame_graph.js\" data-functions=\"/runs/%s/function\"/>\n</svg>\n",
                print->runs[0]);
}

static int draw(const struct print *print, FILE *out, struct error *err)
{
    static const struct export_options options = {0};
    AUTO_RUN struct tracestore_run first = {0}, second = {0};
    struct export_totals totals;
    int r = tracestore_find_run(print->store, print->runs[0], &first, err);

    if (r < 0)
        return r;
    if (print->route->run_count < 2)
        return flame_graph_format.write(print->store, &first, &options, out, &totals, err);
    r = tracestore_find_run(print->store, print->runs[1], &second, err);
    if (r < 0)
        return r;
    return flame_graph_compare(&(struct flame_graph_run){print->store, &first},
                               &(struct flame_graph_run){print->store, &second}, out, err);
}

static int print_flame(const struct print *print, struct error *err)
{
    AUTO_FREE char *graph = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&graph, &size);
    int r;

    if (!stream)
        return error_no_memory(err);
    r = draw(print, stream, err);
    if (fclose(stream) && r >= 0)
        r = error_no_memory(err);
    if (r >= 0)
        put_graph(print, graph);
    return r;
}

/* ------------------------------------------------------------------------------------------ all of them */

static int print_route(const struct print *print, struct error *err)
{
    static const char *const none[] = {NULL};
    const char *const run[] = {print->runs[0], NULL}, *const runs[] = {print->runs[0], print->runs[1], NULL};
    const char *const check[] = {"check", print->runs[0], NULL};

    switch (print->route->type->kind) {
    case ROUTE_RUNS:
        return print_runs(print, err);
    case ROUTE_LIVE:
        return print_live(print, err);
    case ROUTE_RUN:
        return print_run(print, err);
    case ROUTE_RUN_FUNCTION:
        return print_function(print, err);
    case ROUTE_RUN_TIMELINE:
        return print_timeline(print, err);
    case ROUTE_COMPARE:
        return print_compare(print, err);
    case ROUTE_SQL:
        return print_sql(print, err);
    case ROUTE_METRICS:
        return print_metrics(print, err);
    case ROUTE_RUN_FLAME:
    case ROUTE_COMPARE_FLAME:
        return print_flame(print, err);
    case ROUTE_RUN_REPORT:
    case ROUTE_COMPARE_REPORT:
        return print_report(print, err);
    case ROUTE_RUN_LOOPS:
        return print_text(print, "Threads and loops", &cmd_nlr, run, err);
    case ROUTE_RUN_GO:
        return print_text(print, "Goroutines", &cmd_go, check, err);
    case ROUTE_API_RUNS:
        return print_document(print, &cmd_runs, true, none, err);
    case ROUTE_API_TOP:
        return print_top(print, err);
    case ROUTE_API_COMPARE:
        return print_document(print, &cmd_diff, true, runs, err);
    case ROUTE_SQL_CSV:
        return print_csv(print, err);
    default:
        return error_say(err, -EINVAL, "this page is made by the server itself");
    }
}

static int fail(const struct route *route, int status, const char *reason)
{
    AUTO_JSON json_t *document = NULL;

    if (!route->type || route_is_page(route)) {
        page_error(stdout, reason);
    } else {
        document = json_pack("{s:o}", "error", cli_json_text(reason));
        cli_json_print(document);
    }
    return fflush(stdout) ? JOBS_FAILED : status;
}

/* Whether the store has the runs of the route; an error that is not about that is one of the store. */
static int check_runs(struct print *print, struct error *err)
{
    for (int i = 0; i < print->route->run_count; i++) {
        AUTO_RUN struct tracestore_run run = {0};
        int r;

        snprintf(print->runs[i], sizeof(print->runs[i]), "%lld", (long long)print->route->runs[i]);
        r = tracestore_find_run(print->store, print->runs[i], &run, err);
        if (r < 0)
            return r;
        if (run.run_id != print->route->runs[i]) /* a run with that name */
            return error_say(err, -ENOENT, "There is no run %s.", print->runs[i]);
    }
    return 0;
}

static int print_answer(const struct route *route)
{
    AUTO_STORE struct tracestore *store = NULL;
    struct print print = {.out = stdout, .route = route};
    struct error err = {0};
    int r = cli_open_store(TRACESTORE_READ, &store, &err);

    if (r < 0)
        return fail(route, JOBS_FAILED, err.message);
    print.store = store;
    r = check_runs(&print, &err);
    if (r < 0)
        return fail(route, r == -ENOENT ? JOBS_NOT_FOUND : JOBS_FAILED, err.message);
    r = print_route(&print, &err);
    if (r < 0)
        return fail(route, r == -EINVAL || r == -EPERM || r == -ETIMEDOUT ? JOBS_WRONG : JOBS_FAILED,
                    err.message);
    return fflush(stdout) ? JOBS_FAILED : JOBS_OK;
}

int serve_print(const char *target)
{
    CLEANUP(route_release) struct route route = {0};
    const char *why = NULL;
    int r = route_parse(target, &route, &why);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_DATA, &(struct rlimit){memory_bytes, memory_bytes});
    if (r < 0)
        return fail(&route, r == -ENOENT ? JOBS_NOT_FOUND : JOBS_WRONG, why ? why : "There is no such page.");
    return print_answer(&route);
}
