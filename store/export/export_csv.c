/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CSV (RFC 4180, with a header): one row an event, in the order of threads and of their events, with times as
 * they were recorded. Behind them one row for each gap that has no place in a thread's stream.
 */
#include <stdlib.h>

#include "base/error.h"
#include "base/text.h"
#include "store/export/export_run.h"
#include "store/export/export_text.h"

struct csv {
    struct export_run run;
    char **names; /* as fields */
    char *label;  /* of the thread, as a field */
};

static int csv_thread(void *context, const struct tracestore_thread *thread)
{
    struct csv *csv = context;

    free(csv->label);
    csv->label = text_csv(thread->label);
    return csv->label ? 0 : error_no_memory(csv->run.err);
}

/* seq,kind,depth */
static void put_begin(struct csv *csv, const struct event *event, const char *kind)
{
    FILE *out = csv->run.out;

    text_put(out, csv->label);
    putc_unlocked(',', out);
    text_put_number(out, event->seq);
    putc_unlocked(',', out);
    text_put(out, kind);
    putc_unlocked(',', out);
    text_put_number(out, event->depth);
    putc_unlocked(',', out);
}

/* ,ns,ns_error */
static void put_times(struct csv *csv, const struct event *event)
{
    FILE *out = csv->run.out;

    putc_unlocked(',', out);
    if (!event->ns) {
        putc_unlocked(',', out);
        return;
    }
    text_put_number(out, event->ns);
    putc_unlocked(',', out);
    text_put_number(out, event->ns_error);
}

static void put_lost(struct csv *csv, const struct export_event *event)
{
    FILE *out = csv->run.out;

    if (event->unseen) { /* a damaged segment has no event of its own */
        text_put(out, csv->label);
        text_put(out, ",,lost,,,,,");
    } else {
        put_begin(csv, &event->event, "lost");
        put_times(csv, &event->event);
    }
    text_put(out, ",,");
    if (event->count)
        text_put_number(out, event->count);
    putc_unlocked(',', out);
    text_put_csv(out, event->cause);
    text_put(out, ",,,,\n");
}

/* The last field: 1 for a call whose nesting is assumed, else 0; empty for a return. */
static void put_assumed(struct csv *csv, const struct export_event *event)
{
    const bool is_call = event->event.kind == EVENT_CALL;

    text_put(csv->run.out, !is_call ? ",\n" : event->event.assumed ? ",1\n" : ",0\n");
}

static int csv_event(void *context, const struct export_event *event)
{
    struct csv *csv = context;
    const struct export_site *site = event->site;
    FILE *out = csv->run.out;

    if (event->event.kind == EVENT_LOST) {
        put_lost(csv, event);
        return 0;
    }
    if (event->unseen)
        return 0;
    put_begin(csv, &event->event, event->event.kind == EVENT_CALL ? "call" : "return");
    text_put(out, csv->names[event->function]);
    put_times(csv, &event->event);
    putc_unlocked(',', out);
    if (event->event.kind == EVENT_CALL)
        text_put(out, export_state_name(event->state));
    if (!site) {
        text_put(out, ",,,,,");
        put_assumed(csv, event);
        return 0;
    }
    text_put(out, ",,,");
    text_put_csv(out, site->caller);
    putc_unlocked(',', out);
    text_put_csv(out, site->file);
    putc_unlocked(',', out);
    if (site->line)
        text_put_number(out, (uint64_t)site->line);
    put_assumed(csv, event);
    return 0;
}

static int csv_thread_end(void *context)
{
    return 0;
}

static int csv_gap(void *context, const struct export_gap *gap)
{
    struct csv *csv = context;
    FILE *out = csv->run.out;

    if (gap->thread)
        text_put_csv(out, gap->thread->label);
    fprintf(out, ",,%s,,", gap->blind ? "blind" : "lost");
    text_put_csv(out, gap->blind ? gap->name : "");
    putc_unlocked(',', out);
    text_put_number(out, gap->from_ns);
    putc_unlocked(',', out);
    if (gap->to_ns >= gap->from_ns)
        text_put_number(out, gap->to_ns - gap->from_ns);
    text_put(out, ",,");
    if (gap->count)
        text_put_number(out, gap->count);
    putc_unlocked(',', out);
    text_put_csv(out, gap->cause);
    text_put(out, ",,,,\n");
    return 0;
}

static const struct export_sink sink = {
    .wants_sites = true,
    .thread = csv_thread,
    .event = csv_event,
    .thread_end = csv_thread_end,
    .gap = csv_gap,
};

static int write_csv(struct tracestore *store, const struct tracestore_run *run,
                     const struct export_options *options, FILE *out, struct export_totals *ret_totals,
                     struct error *err)
{
    struct csv csv = {0};
    int r = export_run_open(&csv.run, store, run, options, out, err);

    if (r == 0)
        r = export_names(&csv.run, text_csv, &csv.names);
    if (r == 0) {
        text_put(out,
                 "thread,seq,kind,depth,function,ns,ns_error,state,count,cause,caller,file,line,assumed\n");
        r = export_walk(&csv.run, &sink, &csv);
    }
    if (r == 0)
        *ret_totals = csv.run.totals;
    free(csv.label);
    export_names_free(&csv.run, csv.names);
    export_run_release(&csv.run);
    return r;
}

const struct export_format export_csv = {
    .name = "csv",
    .summary = "one row an event, with a header",
    .write = write_csv,
};
