/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * JSON: one object of the run, its functions, its threads with their events, and its gaps; docs/export.md has
 * the keys. Times are as they were recorded.
 */
#include <stdlib.h>

#include "store/export/export_run.h"
#include "store/export/export_text.h"

struct json {
    struct export_run run;
    char **names;
    bool separated; /* an item stands before the next one in its array */
    bool in_gaps;
};

static void next_item(struct json *json)
{
    text_put(json->run.out, json->separated ? ",\n" : "\n");
    json->separated = true;
}

static void put_text(FILE *out, const char *key, const char *text)
{
    text_put(out, key);
    text_put_json(out, text);
}

static void put_number(FILE *out, const char *key, uint64_t number)
{
    text_put(out, key);
    text_put_number(out, number);
}

static void put_head(struct json *json)
{
    const struct tracestore_run *run = json->run.run;
    FILE *out = json->run.out;

    put_number(out, "{\"version\": 1,\n\"run\": {\"run\": ", (uint64_t)run->run_id);
    put_text(out, ", \"name\": ", run->name);
    put_text(out, ", \"command\": ", run->command);
    put_text(out, ", \"host\": ", run->host);
    put_text(out, ", \"kernel\": ", run->kernel);
    put_number(out, ", \"started_ns\": ", run->started_ns);
    put_number(out, ", \"ended_ns\": ", run->ended_ns);
    put_text(out, ", \"options\": ", run->options);
    put_text(out, ", \"tool\": ", run->tool_version);
    fprintf(out, ", \"times\": %s},\n\"functions\": [", json->run.timed ? "true" : "false");
    for (size_t i = 0; i < json->run.function_count; i++) {
        const struct export_function *function = &json->run.functions[i];

        put_number(out, i ? ",\n{\"id\": " : "\n{\"id\": ", function->function_id);
        text_put(out, ", \"name\": ");
        text_put(out, json->names[i]);
        put_text(out, ", \"image\": ", function->image);
        put_text(out, ", \"file\": ", function->file);
        put_number(out, ", \"line\": ", (uint64_t)function->line);
        text_put(out, "}");
    }
    text_put(out, "],\n\"threads\": [");
}

static int json_thread(void *context, const struct tracestore_thread *thread)
{
    struct json *json = context;
    const struct export_process *process = export_process_of(&json->run, thread);
    FILE *out = json->run.out;

    next_item(json);
    put_text(out, "{\"thread\": ", thread->label);
    put_text(out, ", \"name\": ", thread->name);
    fprintf(out, ", \"tid\": %d, \"pid\": %d, \"rank\": ", thread->tid, process->pid);
    if (process->rank >= 0)
        fprintf(out, "%d", process->rank);
    else
        text_put(out, "null");
    put_text(out, ", \"exe\": ", process->exe);
    put_text(out, ", \"argv\": ", process->argv);
    put_text(out, ", \"returns\": ", trace_returns_name(thread->returns));
    text_put(out, ", \"events\": [");
    json->separated = false;
    return 0;
}

static int json_thread_end(void *context)
{
    struct json *json = context;

    text_put(json->run.out, "]}");
    json->separated = true;
    return 0;
}

static void put_loss(FILE *out, uint64_t count, const char *cause)
{
    if (count)
        put_number(out, ", \"count\": ", count);
    else
        text_put(out, ", \"count\": null");
    put_text(out, ", \"cause\": ", cause);
}

static void put_call(struct json *json, const struct export_event *event)
{
    const struct export_site *site = event->site;
    FILE *out = json->run.out;

    text_put(out, ", \"state\": \"");
    text_put(out, export_state_name(event->state));
    putc_unlocked('"', out);
    if (event->event.assumed)
        text_put(out, ", \"assumed\": true");
    if (!site)
        return;
    put_text(out, ", \"site\": {\"caller\": ", site->caller);
    put_text(out, ", \"image\": ", site->image);
    put_number(out, ", \"address\": ", site->address);
    put_text(out, ", \"file\": ", site->file);
    put_number(out, ", \"line\": ", (uint64_t)site->line);
    text_put(out, "}");
}

static int json_event(void *context, const struct export_event *event)
{
    static const char *const kinds[] = {
        [EVENT_RETURN] = "return", [EVENT_CALL] = "call", [EVENT_LOST] = "lost"};
    struct json *json = context;
    FILE *out = json->run.out;

    if (event->unseen && event->event.kind != EVENT_LOST)
        return 0;
    next_item(json);
    text_put(out, "{\"kind\": \"");
    text_put(out, kinds[event->event.kind]);
    putc_unlocked('"', out);
    if (!event->unseen) { /* a damaged segment has no event of its own */
        put_number(out, ", \"seq\": ", event->event.seq);
        put_number(out, ", \"depth\": ", event->event.depth);
        if (event->event.ns) {
            put_number(out, ", \"ns\": ", event->event.ns);
            put_number(out, ", \"ns_error\": ", event->event.ns_error);
        }
    }
    if (event->event.kind == EVENT_LOST)
        put_loss(out, event->count, event->cause);
    else
        put_number(out, ", \"function\": ", json->run.functions[event->function].function_id);
    if (event->event.kind == EVENT_CALL)
        put_call(json, event);
    putc_unlocked('}', out);
    return 0;
}

static void begin_gaps(struct json *json)
{
    if (json->in_gaps)
        return;
    text_put(json->run.out, "],\n\"gaps\": [");
    json->in_gaps = true;
    json->separated = false;
}

static int json_gap(void *context, const struct export_gap *gap)
{
    struct json *json = context;
    FILE *out = json->run.out;

    begin_gaps(json);
    next_item(json);
    text_put(out, gap->blind ? "{\"kind\": \"blind\", \"thread\": " : "{\"kind\": \"lost\", \"thread\": ");
    if (gap->thread)
        text_put_json(out, gap->thread->label);
    else
        text_put(out, "null");
    put_number(out, ", \"from_ns\": ", gap->from_ns);
    if (gap->to_ns)
        put_number(out, ", \"to_ns\": ", gap->to_ns);
    else
        text_put(out, ", \"to_ns\": null");
    if (gap->blind) {
        put_text(out, ", \"name\": ", gap->name);
        put_text(out, ", \"cause\": ", gap->cause);
    } else {
        put_loss(out, gap->count, gap->cause);
    }
    putc_unlocked('}', out);
    return 0;
}

static const struct export_sink sink = {
    .wants_sites = true,
    .thread = json_thread,
    .event = json_event,
    .thread_end = json_thread_end,
    .gap = json_gap,
};

static int write_json(struct tracestore *store, const struct tracestore_run *run,
                      const struct export_options *options, FILE *out, struct export_totals *ret_totals,
                      struct error *err)
{
    struct json json = {0};
    int r = export_run_open(&json.run, store, run, options, out, err);

    if (r == 0)
        r = export_names(&json.run, text_json, &json.names);
    if (r == 0) {
        put_head(&json);
        r = export_walk(&json.run, &sink, &json);
    }
    if (r == 0) {
        begin_gaps(&json);
        text_put(out, "]}\n");
        *ret_totals = json.run.totals;
    }
    export_names_free(&json.run, json.names);
    export_run_release(&json.run);
    return r;
}

const struct export_format export_json = {
    .name = "json",
    .summary = "everything as one JSON document",
    .write = write_json,
};
