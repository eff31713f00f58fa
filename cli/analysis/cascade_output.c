/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/analysis/cascade_output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/cascade/report.h"
#include "analyzer/picture/cascade_chain.h"
#include "base/error.h"
#include "base/text.h"

/* ------------------------------------------------------------------------------------------ text */

static void print_place(const char *head, const struct cascade_place *place)
{
    text_print(stdout, "   %-7s ", head);
    cascade_place_print(stdout, place);
    text_print(stdout, ", thread %s of %s\n", place->thread, place->program);
}

/* "1", or "1+2" where the test was recorded in parts. */
static void print_parts(const struct trace_parts *parts)
{
    for (size_t i = 0; i < parts->count; i++)
        text_print(stdout, "%s%" PRId64, i ? "+" : "", parts->runs[i]);
}

static void print_runs(const struct cascade_result *result, const struct cascade_report *report)
{
    const char *before = "   seen    in run";

    for (size_t i = 0; i < result->runs; i++)
        if (report->runs & 1u << i) {
            text_print(stdout, "%s ", before);
            print_parts(&result->facts[i].parts);
            before = ",";
        }
    putchar('\n');
}

static void print_report(const struct cascade_result *result, size_t number)
{
    const struct cascade_report *report = &result->reports[number];
    bool colour = cli_colour();

    cli_style(colour, CLI_BOLD);
    text_print(stdout, "%zu. %s:", number + 1, cascade_severity_name(report->severity));
    cli_style(colour, CLI_PLAIN);
    putchar(' ');
    cascade_report_sentence(stdout, report);
    putchar('\n');
    print_place("source", &report->source);
    fputs("           ", stdout);
    cascade_growth_sentence(stdout, report->growth, result->sizes, result->runs);
    text_print(stdout, "\n           job: %s\n", report->source_job);
    for (size_t i = 0; i < report->count; i++) {
        fputs(i ? "           " : "   chain   ", stdout);
        cascade_link_sentence(stdout, &report->links[i]);
        if (report->links[i].kind == CASCADE_LOCK)
            text_print(stdout, " [0x%" PRIx64 "]", report->links[i].lock);
        putchar('\n');
    }
    print_place("sink", &report->sink);
    text_print(stdout, "           job: %s\n", report->sink_job);
    print_runs(result, report);
    fputs("   try     ", stdout);
    cascade_advice(stdout, report);
    putchar('\n');
}

/* Gaps of the run and limits of the analysis. */
static void print_gaps(const struct cascade_run_facts *facts)
{
    const struct {
        bool tell;
        const char *before;
        uint64_t count;
        const char *behind;
    } gaps[] = {
        {facts->lost, "", facts->lost, " events of locks and messages are missing"},
        {facts->calls_incomplete, "calls are missing, and with them loops perhaps", 0, ""},
        {facts->processes_without_locks, "the locks of ", facts->processes_without_locks,
         " of its processes are not seen"},
        {facts->unmatched, "", facts->unmatched, " messages came from processes that were not recorded"},
        {!facts->search_complete, "the limit of analysed chains was reached", 0, ""},
        {facts->sink_calls && !facts->sink_regions, "the sink never takes a lock, waits or receives", 0, ""},
    };

    if (facts->recognised) {
        fputs("run ", stdout);
        print_parts(&facts->parts);
        text_print(stdout, ": taken for handlers of events: %s\n", facts->recognised);
    }
    for (size_t i = 0; i < sizeof(gaps) / sizeof(gaps[0]); i++) {
        if (!gaps[i].tell)
            continue;
        fputs("run ", stdout);
        print_parts(&facts->parts);
        text_print(stdout, ": %s", gaps[i].before);
        if (gaps[i].count)
            text_print(stdout, "%" PRIu64, gaps[i].count);
        text_print(stdout, "%s\n", gaps[i].behind);
    }
}

void cli_cascade_text(const struct cascade_result *result, const struct loops_input *input, const char *sink)
{
    uint64_t calls = 0;

    for (size_t i = 0; i < result->runs; i++)
        calls += result->facts[i].sink_calls;
    if (result->count)
        text_print(stdout, "%zu %s could delay %s", result->count,
                   result->count == 1 ? "cascade" : "cascades", sink);
    else
        text_print(stdout, "no cascade is predicted that could delay %s", sink);
    text_print(stdout, " (%" PRIu64 " %s in %zu %s)\n", calls, calls == 1 ? "call" : "calls", result->runs,
               result->runs == 1 ? "run" : "runs");
    for (size_t i = 0; i < result->count && !cli_output_broken(); i++) {
        putchar('\n');
        print_report(result, i);
    }
    if (result->runs == 1)
        puts("\na single run shows no growth: record a second run of another size and name both");
    for (size_t i = 0; i < result->runs; i++)
        print_gaps(&result->facts[i]);
    completeness_print(input->completeness, input->count);
}

/* ------------------------------------------------------------------------------------------ JSON */

static json_t *json_place(const struct cascade_place *place)
{
    return json_pack("{s:o, s:o, s:i, s:o, s:o}", "function", cli_json_text(place->function), "file",
                     cli_json_text(place->file), "line", place->line, "thread", cli_json_text(place->thread),
                     "program", cli_json_text(place->program));
}

static json_t *json_chain(const struct cascade_report *report)
{
    static const char *const kinds[] = {"lock", "pool", "cause"};
    json_t *chain = json_array();

    for (size_t i = 0; i < report->count; i++) {
        const struct cascade_report_link *link = &report->links[i];
        json_t *item = json_pack("{s:s, s:o, s:o}", "kind", kinds[link->kind], "delays",
                                 json_place(&link->delays), "waits", json_place(&link->waits));
        char address[32];

        snprintf(address, sizeof(address), "0x%" PRIx64, link->lock);
        if (link->kind == CASCADE_LOCK)
            json_object_set_new(item, "lock", json_string(address));
        if (link->kind == CASCADE_CAUSE)
            json_object_set_new(item, "cause", json_string(hb_edge_name(link->edge)));
        json_array_append_new(chain, item);
    }
    return chain;
}

static json_t *json_loop(const struct cascade_result *result, const struct cascade_report *report)
{
    const struct loop_growth *growth = report->growth;
    json_t *loop = json_place(&report->source), *counts = json_array();

    for (size_t i = 0; i < result->runs; i++)
        json_array_append_new(counts, cli_json_count(growth->counts[i]));
    json_object_set_new(loop, "step", cli_json_text(report->step));
    json_object_set_new(loop, "kind", json_string(loop_kind_name(growth->kind)));
    json_object_set_new(loop, "possible", json_boolean(growth->possible));
    json_object_set_new(loop, "iterations", counts);
    json_object_set_new(loop, "fit", json_string(loop_fit_name(growth->fit)));
    json_object_set_new(loop, "job", cli_json_text(report->source_job));
    return loop;
}

static json_t *json_report(const struct cascade_result *result, const struct cascade_report *report)
{
    json_t *runs = json_array(), *sink = json_place(&report->sink);

    for (size_t i = 0; i < result->runs; i++)
        if (report->runs & 1u << i)
            json_array_append_new(runs, json_integer(result->facts[i].parts.runs[0]));
    json_object_set_new(sink, "job", cli_json_text(report->sink_job));
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "severity", cascade_severity_name(report->severity),
                     "source", json_loop(result, report), "chain", json_chain(report), "sink", sink, "runs",
                     runs, "times", cli_json_count(report->times));
}

static json_t *json_run(const struct cascade_run_facts *facts, uint64_t size)
{
    json_t *parts = json_array();

    for (size_t i = 0; i < facts->parts.count; i++)
        json_array_append_new(parts, json_integer(facts->parts.runs[i]));
    return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:o, s:o}", "run",
                     (json_int_t)facts->parts.runs[0], "size", size ? cli_json_count(size) : json_null(),
                     "events", cli_json_count(facts->events), "edges", cli_json_count(facts->edges),
                     "critical_sections", cli_json_count(facts->sections), "sink_calls",
                     cli_json_count(facts->sink_calls), "lost", cli_json_count(facts->lost),
                     "unmatched_messages", cli_json_count(facts->unmatched), "processes_without_locks",
                     cli_json_count(facts->processes_without_locks), "sink_regions",
                     cli_json_count(facts->sink_regions), "calls_incomplete", facts->calls_incomplete,
                     "search_complete", facts->search_complete, "recognised_handlers",
                     facts->recognised ? cli_json_text(facts->recognised) : json_null(), "parts", parts);
}

void cli_cascade_json(const struct cascade_result *result, const struct loops_input *input, const char *sink)
{
    json_t *runs = json_array(), *reports = json_array();
    AUTO_JSON json_t *document =
        json_pack("{s:o, s:o, s:o, s:o}", "sink", cli_json_text(sink), "runs", runs, "cascades", reports,
                  "completeness", completeness_json(input->completeness, input->count));

    for (size_t i = 0; i < result->runs; i++)
        json_array_append_new(runs, json_run(&result->facts[i], result->sizes[i]));
    for (size_t i = 0; i < result->count; i++)
        json_array_append_new(reports, json_report(result, &result->reports[i]));
    cli_json_print(document);
}

/* ------------------------------------------------------------------------------------------ picture */

int cli_cascade_draw(const struct cascade_result *result, const char *sink, const char *path,
                     struct error *err)
{
    AUTO_FREE char *svg = cascade_chain_svg(result, sink);

    return svg ? cli_write_picture(svg, path, err) : error_no_memory(err);
}
