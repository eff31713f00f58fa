/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Chrome's trace event format (JSON object form): a call is a pair of B and E, one that never returned a B
 * alone, a loss an instant event (i) of its thread, other gaps instant events of the whole trace. Times are
 * microseconds since the run began.
 */
#include <stdlib.h>

#include "base/error.h"
#include "store/export/export_run.h"
#include "store/export/export_text.h"

struct chrome {
    struct export_run run;
    char **names;   /* as JSON, by index of function */
    char ids[64];   /* "pid":P,"tid":T of the thread */
    bool separated; /* an event stands before the next one */
    bool bare;      /* the thread's returns were not recorded */
};

static void begin_event(struct chrome *chrome, const char *phase, const char *ids)
{
    FILE *out = chrome->run.out;

    text_put(out, chrome->separated ? ",\n{\"ph\":\"" : "{\"ph\":\"");
    chrome->separated = true;
    text_put(out, phase);
    text_put(out, "\",");
    text_put(out, ids);
}

static void put_name_of(struct chrome *chrome, const char *kind, const char *ids, const char *name,
                        size_t sort_index)
{
    FILE *out = chrome->run.out;

    begin_event(chrome, "M", ids);
    fprintf(out, ",\"name\":\"%s_name\",\"args\":{\"name\":", kind);
    text_put_json(out, name);
    text_put(out, "}}");
    begin_event(chrome, "M", ids);
    fprintf(out, ",\"name\":\"%s_sort_index\",\"args\":{\"sort_index\":%zu}}", kind, sort_index);
}

static int chrome_thread(void *context, const struct tracestore_thread *thread)
{
    struct chrome *chrome = context;
    const struct export_process *process = export_process_of(&chrome->run, thread);
    AUTO_FREE char *title = export_thread_title(thread);

    if (!title)
        return error_no_memory(chrome->run.err);
    chrome->bare = thread->returns == TRACE_RETURNS_NONE;
    snprintf(chrome->ids, sizeof(chrome->ids), "\"pid\":%llu,\"tid\":%llu",
             (unsigned long long)export_pid(&chrome->run, process),
             (unsigned long long)export_tid(&chrome->run, thread));
    put_name_of(chrome, "process", chrome->ids, process->title,
                process->rank >= 0 ? (size_t)process->rank : (size_t)process->number);
    put_name_of(chrome, "thread", chrome->ids, title, (size_t)(thread - chrome->run.threads));
    return 0;
}

static void put_time(struct chrome *chrome, uint64_t ns)
{
    text_put(chrome->run.out, ",\"ts\":");
    text_put_microseconds(chrome->run.out, ns > chrome->run.origin_ns ? ns - chrome->run.origin_ns : 0);
}

static void put_site(FILE *out, const struct export_site *site)
{
    text_put(out, "\"caller\":");
    text_put_json(out, site->caller);
    text_put(out, ",\"file\":");
    text_put_json(out, site->file);
    text_put(out, ",\"line\":");
    text_put_number(out, (uint64_t)site->line);
}

static void put_call(struct chrome *chrome, const struct export_event *event)
{
    FILE *out = chrome->run.out;
    const char *separator = "";

    begin_event(chrome, chrome->bare ? "i" : "B", chrome->ids);
    put_time(chrome, event->at_ns);
    text_put(out, chrome->bare ? ",\"s\":\"t\",\"name\":" : ",\"name\":");
    text_put(out, chrome->names[event->function]);
    if (event->state != EXPORT_RETURNED || event->site || event->unseen || event->event.assumed) {
        text_put(out, ",\"args\":{");
        if (event->state != EXPORT_RETURNED) {
            fprintf(out, "\"state\":\"%s\"", export_state_name(event->state));
            separator = ",";
        }
        if (event->unseen) {
            fprintf(out, "%s\"began\":\"earlier\"", separator);
            separator = ",";
        }
        if (event->event.assumed) {
            fprintf(out, "%s\"nesting\":\"assumed\"", separator);
            separator = ",";
        }
        if (event->site) {
            text_put(out, separator);
            put_site(out, event->site);
        }
        text_put(out, "}");
    }
    text_put(out, "}");
}

/* Closes an instant event that tells of a loss. */
static void put_lost(struct chrome *chrome, const char *scope, uint64_t ns, uint64_t count, const char *cause)
{
    FILE *out = chrome->run.out;

    put_time(chrome, ns);
    fprintf(out, ",\"s\":\"%s\",\"name\":\"[lost]\",\"args\":{\"events\":", scope);
    if (count)
        text_put_number(out, count);
    else
        text_put(out, "null");
    text_put(out, ",\"cause\":");
    text_put_json(out, cause);
    text_put(out, "}}");
}

static int chrome_event(void *context, const struct export_event *event)
{
    struct chrome *chrome = context;

    switch ((enum event_kind)event->event.kind) {
    case EVENT_CALL:
        put_call(chrome, event);
        break;
    case EVENT_RETURN:
        begin_event(chrome, "E", chrome->ids);
        put_time(chrome, event->at_ns);
        text_put(chrome->run.out, event->unseen ? ",\"args\":{\"ended\":\"unseen\"}}" : "}");
        break;
    case EVENT_LOST:
        begin_event(chrome, "i", chrome->ids);
        put_lost(chrome, "t", event->at_ns, event->count, event->cause);
        break;
    }
    return 0;
}

static int chrome_thread_end(void *context)
{
    return 0;
}

static int chrome_gap(void *context, const struct export_gap *gap)
{
    struct chrome *chrome = context;
    FILE *out = chrome->run.out;
    char ids[64];

    snprintf(ids, sizeof(ids), "\"pid\":%llu,\"tid\":%llu",
             gap->thread
                 ? (unsigned long long)export_pid(&chrome->run, export_process_of(&chrome->run, gap->thread))
                 : 0,
             gap->thread ? (unsigned long long)export_tid(&chrome->run, gap->thread) : 0);
    begin_event(chrome, "i", ids);
    if (!gap->blind) {
        put_lost(chrome, gap->thread ? "t" : "g", gap->from_ns, gap->count, gap->cause);
        return 0;
    }
    put_time(chrome, gap->from_ns);
    text_put(out, ",\"s\":\"g\",\"name\":\"[not observed]\",\"args\":{\"function\":");
    text_put_json(out, gap->name);
    text_put(out, ",\"cause\":");
    text_put_json(out, gap->cause);
    text_put(out, ",\"until\":");
    if (gap->to_ns)
        text_put_microseconds(out,
                              gap->to_ns > chrome->run.origin_ns ? gap->to_ns - chrome->run.origin_ns : 0);
    else
        text_put(out, "null");
    text_put(out, "}}");
    return 0;
}

static void put_metadata(struct chrome *chrome)
{
    const struct tracestore_run *run = chrome->run.run;
    FILE *out = chrome->run.out;

    fprintf(out, "\n],\n\"displayTimeUnit\":\"ns\",\n\"otherData\":{\"run\":");
    text_put_json(out, run->name);
    text_put(out, ",\"command\":");
    text_put_json(out, run->command);
    text_put(out, ",\"host\":");
    text_put_json(out, run->host);
    fprintf(out, ",\"started_ns\":\"%llu\",\"times\":", (unsigned long long)run->started_ns);
    text_put_json(out, export_times_text(&chrome->run));
    text_put(out, ",\"tool\":");
    text_put_json(out, run->tool_version);
    text_put(out, "}}\n");
}

static const struct export_sink sink = {
    .wants_sites = true,
    .thread = chrome_thread,
    .event = chrome_event,
    .thread_end = chrome_thread_end,
    .gap = chrome_gap,
};

static int write_chrome(struct tracestore *store, const struct tracestore_run *run,
                        const struct export_options *options, FILE *out, struct export_totals *ret_totals,
                        struct error *err)
{
    struct chrome chrome = {0};
    int r = export_run_open(&chrome.run, store, run, options, out, err);

    if (r == 0)
        r = export_names(&chrome.run, text_json, &chrome.names);
    if (r == 0) {
        text_put(out, "{\"traceEvents\":[\n");
        r = export_walk(&chrome.run, &sink, &chrome);
    }
    if (r == 0) {
        put_metadata(&chrome);
        *ret_totals = chrome.run.totals;
    }
    export_names_free(&chrome.run, chrome.names);
    export_run_release(&chrome.run);
    return r;
}

const struct export_format export_chrome = {
    .name = "chrome",
    .summary = "JSON trace events, for Perfetto and chrome://tracing",
    .write = write_chrome,
};
