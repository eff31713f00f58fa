/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Perfetto's own format: a sequence of TracePacket messages. Each thread is a track and a packet sequence of
 * its own, whose first event of a function brings its name along (interned data). A call is SLICE_BEGIN and
 * SLICE_END, one that never returned SLICE_BEGIN alone; a loss an INSTANT of its thread. Times are
 * nanoseconds since 1970.
 *
 * The field numbers are those of protos/perfetto/trace/trace_packet.proto and what it imports; they never
 * change.
 */
#include <stdlib.h>

#include "base/error.h"
#include "base/text.h"
#include "store/export/export_protobuf.h"
#include "store/export/export_run.h"
#include "store/export/export_text.h"

enum trace_field { TRACE_PACKET = 1 };
enum packet_field {
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10,
    PACKET_TRACK_EVENT = 11,
    PACKET_INTERNED = 12,
    PACKET_FLAGS = 13,
    PACKET_TRACK = 60
};
enum packet_flag { FLAG_STATE_CLEARED = 1, FLAG_NEEDS_STATE = 2 };
enum track_field { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PROCESS = 3, TRACK_THREAD = 4, TRACK_PARENT = 5 };
enum process_field { PROCESS_PID = 1, PROCESS_CMDLINE = 2, PROCESS_NAME = 6 };
enum thread_field { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum event_field {
    TRACK_EVENT_ANNOTATION = 4,
    TRACK_EVENT_TYPE = 9,
    TRACK_EVENT_NAME_IID = 10,
    TRACK_EVENT_TRACK = 11,
    TRACK_EVENT_NAME = 23,
    TRACK_EVENT_SOURCE = 33
};
enum event_type { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3 };
enum interned_field { INTERNED_EVENT_NAMES = 2, INTERNED_IID = 1, INTERNED_NAME = 2 };
enum annotation_field { ANNOTATION_UINT = 3, ANNOTATION_TEXT = 6, ANNOTATION_NAME = 10 };
enum source_field { SOURCE_FILE = 2, SOURCE_FUNCTION = 3, SOURCE_LINE = 4 };

#define GAPS_UUID 1u /* the track of what has no thread; processes and threads come behind it */

struct perfetto {
    struct export_run run;
    char **names;
    uint32_t *named; /* by function: the sequence that has its name, 0: none */
    uint32_t sequence;
    uint64_t track;
    bool bare, cleared;                 /* cleared: the sequence has said that it begins */
    struct bytes packet, event, detail; /* being made; kept for their memory */
    int failed;                         /* -ENOMEM, told at the end of the packet */
};

/* Remembers the first failure: a packet is written whole or not at all. */
static void check(struct perfetto *perfetto, int r)
{
    if (r && !perfetto->failed)
        perfetto->failed = r;
}

/* ------------------------------------------------------------------------------------------ packets */

static int write_packet(struct perfetto *perfetto)
{
    uint8_t head[2 * VARINT_MAX_BYTES];
    size_t size = varint_put(head, (uint64_t)TRACE_PACKET << 3 | 2);

    if (perfetto->failed)
        return error_no_memory(perfetto->run.err);
    size += varint_put(head + size, perfetto->packet.size);
    fwrite_unlocked(head, 1, size, perfetto->run.out);
    fwrite_unlocked(perfetto->packet.data, 1, perfetto->packet.size, perfetto->run.out);
    return 0;
}

static void begin_packet(struct perfetto *perfetto, uint64_t at_ns)
{
    struct bytes *packet = &perfetto->packet;

    packet->size = perfetto->event.size = 0;
    if (at_ns)
        check(perfetto, protobuf_number(packet, PACKET_TIMESTAMP, at_ns));
    check(perfetto, protobuf_number(packet, PACKET_SEQUENCE, perfetto->sequence));
    check(perfetto,
          protobuf_number(packet, PACKET_FLAGS,
                          perfetto->cleared ? FLAG_NEEDS_STATE : FLAG_STATE_CLEARED | FLAG_NEEDS_STATE));
    perfetto->cleared = true;
}

static void begin_event(struct perfetto *perfetto, uint64_t at_ns, uint64_t track, enum event_type type)
{
    begin_packet(perfetto, at_ns);
    check(perfetto, protobuf_number(&perfetto->event, TRACK_EVENT_TYPE, type));
    check(perfetto, protobuf_number(&perfetto->event, TRACK_EVENT_TRACK, track));
}

static int end_event(struct perfetto *perfetto)
{
    check(perfetto, protobuf_message(&perfetto->packet, PACKET_TRACK_EVENT, &perfetto->event));
    return write_packet(perfetto);
}

/* A text that may not be UTF-8, which protobuf wants. */
static void add_text(struct perfetto *perfetto, struct bytes *message, unsigned field, const char *text)
{
    AUTO_FREE char *valid = text_valid(text);

    check(perfetto, valid ? protobuf_text(message, field, valid) : -ENOMEM);
}

static void annotate_text(struct perfetto *perfetto, const char *name, const char *text)
{
    struct bytes *detail = &perfetto->detail;

    detail->size = 0;
    check(perfetto, protobuf_text(detail, ANNOTATION_NAME, name));
    add_text(perfetto, detail, ANNOTATION_TEXT, text);
    check(perfetto, protobuf_message(&perfetto->event, TRACK_EVENT_ANNOTATION, detail));
}

static void annotate_number(struct perfetto *perfetto, const char *name, uint64_t number)
{
    struct bytes *detail = &perfetto->detail;

    detail->size = 0;
    check(perfetto, protobuf_text(detail, ANNOTATION_NAME, name));
    check(perfetto, protobuf_number(detail, ANNOTATION_UINT, number));
    check(perfetto, protobuf_message(&perfetto->event, TRACK_EVENT_ANNOTATION, detail));
}

/* ------------------------------------------------------------------------------------------ tracks */

static uint64_t process_track(const struct export_process *process)
{
    return GAPS_UUID + 1 + process->number;
}

static int put_process(struct perfetto *perfetto, const struct export_process *process)
{
    AUTO_BYTES track = {0}, description = {0};

    check(perfetto, protobuf_number(&description, PROCESS_PID, export_pid(&perfetto->run, process)));
    add_text(perfetto, &description, PROCESS_CMDLINE, process->argv);
    add_text(perfetto, &description, PROCESS_NAME, process->title);
    check(perfetto, protobuf_number(&track, TRACK_UUID, process_track(process)));
    check(perfetto, protobuf_message(&track, TRACK_PROCESS, &description));
    begin_packet(perfetto, 0);
    check(perfetto, protobuf_message(&perfetto->packet, PACKET_TRACK, &track));
    return write_packet(perfetto);
}

static int put_thread(struct perfetto *perfetto, const struct tracestore_thread *thread)
{
    const struct export_process *process = export_process_of(&perfetto->run, thread);
    AUTO_BYTES track = {0}, description = {0};
    AUTO_FREE char *title = export_thread_title(thread);

    if (!title)
        return error_no_memory(perfetto->run.err);
    check(perfetto, protobuf_number(&description, THREAD_PID, export_pid(&perfetto->run, process)));
    check(perfetto, protobuf_number(&description, THREAD_TID, export_tid(&perfetto->run, thread)));
    add_text(perfetto, &description, THREAD_NAME, title);
    check(perfetto, protobuf_number(&track, TRACK_UUID, perfetto->track));
    check(perfetto, protobuf_number(&track, TRACK_PARENT, process_track(process)));
    check(perfetto, protobuf_message(&track, TRACK_THREAD, &description));
    begin_packet(perfetto, 0);
    check(perfetto, protobuf_message(&perfetto->packet, PACKET_TRACK, &track));
    return write_packet(perfetto);
}

static int perfetto_thread(void *context, const struct tracestore_thread *thread)
{
    struct perfetto *perfetto = context;

    perfetto->sequence++;
    perfetto->cleared = false;
    perfetto->bare = thread->returns == TRACE_RETURNS_NONE;
    perfetto->track =
        GAPS_UUID + 2 + perfetto->run.process_count + (uint64_t)(thread - perfetto->run.threads);
    return put_thread(perfetto, thread);
}

/* The processes, and the track of what has no thread, whose comment is in its name. */
static int put_tracks(struct perfetto *perfetto)
{
    AUTO_BYTES track = {0};
    int r;

    perfetto->sequence++;
    check(perfetto, protobuf_number(&track, TRACK_UUID, GAPS_UUID));
    check(perfetto, protobuf_text(&track, TRACK_NAME, "not seen"));
    begin_packet(perfetto, 0);
    check(perfetto, protobuf_message(&perfetto->packet, PACKET_TRACK, &track));
    r = write_packet(perfetto);
    for (size_t i = 0; r == 0 && i < perfetto->run.process_count; i++)
        r = put_process(perfetto, &perfetto->run.processes[i]);
    if (r < 0)
        return r;
    begin_event(perfetto, perfetto->run.origin_ns, GAPS_UUID, TYPE_INSTANT);
    check(perfetto, protobuf_text(&perfetto->event, TRACK_EVENT_NAME, "[run]"));
    annotate_text(perfetto, "name", perfetto->run.run->name);
    annotate_text(perfetto, "command", perfetto->run.run->command);
    annotate_text(perfetto, "times", export_times_text(&perfetto->run));
    return end_event(perfetto);
}

/* ------------------------------------------------------------------------------------------ events */

static void add_name(struct perfetto *perfetto, size_t function)
{
    const uint64_t iid = function + 1;
    AUTO_BYTES interned = {0};
    struct bytes *detail = &perfetto->detail;

    check(perfetto, protobuf_number(&perfetto->event, TRACK_EVENT_NAME_IID, iid));
    if (perfetto->named[function] == perfetto->sequence)
        return;
    perfetto->named[function] = perfetto->sequence;
    detail->size = 0;
    check(perfetto, protobuf_number(detail, INTERNED_IID, iid));
    check(perfetto, protobuf_text(detail, INTERNED_NAME, perfetto->names[function]));
    check(perfetto, protobuf_message(&interned, INTERNED_EVENT_NAMES, detail));
    check(perfetto, protobuf_message(&perfetto->packet, PACKET_INTERNED, &interned));
}

static void add_site(struct perfetto *perfetto, const struct export_site *site)
{
    struct bytes *detail = &perfetto->detail;

    detail->size = 0;
    add_text(perfetto, detail, SOURCE_FILE, site->file);
    add_text(perfetto, detail, SOURCE_FUNCTION, site->caller);
    check(perfetto, protobuf_number(detail, SOURCE_LINE, (uint64_t)site->line));
    check(perfetto, protobuf_message(&perfetto->event, TRACK_EVENT_SOURCE, detail));
}

static int put_call(struct perfetto *perfetto, const struct export_event *event)
{
    begin_event(perfetto, event->at_ns, perfetto->track, perfetto->bare ? TYPE_INSTANT : TYPE_BEGIN);
    add_name(perfetto, event->function);
    if (event->state != EXPORT_RETURNED)
        annotate_text(perfetto, "state", export_state_name(event->state));
    if (event->unseen)
        annotate_text(perfetto, "began", "earlier");
    if (event->event.assumed)
        annotate_text(perfetto, "nesting", "assumed");
    if (event->site)
        add_site(perfetto, event->site);
    return end_event(perfetto);
}

static int put_lost(struct perfetto *perfetto, uint64_t at_ns, uint64_t track, uint64_t count,
                    const char *cause)
{
    begin_event(perfetto, at_ns, track, TYPE_INSTANT);
    check(perfetto, protobuf_text(&perfetto->event, TRACK_EVENT_NAME, "[lost]"));
    if (count)
        annotate_number(perfetto, "events", count);
    annotate_text(perfetto, "cause", cause);
    return end_event(perfetto);
}

static int perfetto_event(void *context, const struct export_event *event)
{
    struct perfetto *perfetto = context;

    if (event->event.kind == EVENT_CALL)
        return put_call(perfetto, event);
    if (event->event.kind == EVENT_LOST)
        return put_lost(perfetto, event->at_ns, perfetto->track, event->count, event->cause);
    begin_event(perfetto, event->at_ns, perfetto->track, TYPE_END);
    if (event->unseen)
        annotate_text(perfetto, "ended", "unseen");
    return end_event(perfetto);
}

static int perfetto_thread_end(void *context)
{
    return 0;
}

static int perfetto_gap(void *context, const struct export_gap *gap)
{
    struct perfetto *perfetto = context;
    const uint64_t at = gap->from_ns ? gap->from_ns : perfetto->run.origin_ns;

    if (!gap->blind)
        return put_lost(perfetto, at, GAPS_UUID, gap->count, gap->cause);
    begin_event(perfetto, at, GAPS_UUID, TYPE_INSTANT);
    check(perfetto, protobuf_text(&perfetto->event, TRACK_EVENT_NAME, "[not observed]"));
    annotate_text(perfetto, "function", gap->name);
    annotate_text(perfetto, "cause", gap->cause);
    if (gap->to_ns)
        annotate_number(perfetto, "until_ns", gap->to_ns);
    return end_event(perfetto);
}

static const struct export_sink sink = {
    .wants_sites = true,
    .thread = perfetto_thread,
    .event = perfetto_event,
    .thread_end = perfetto_thread_end,
    .gap = perfetto_gap,
};

static int write_perfetto(struct tracestore *store, const struct tracestore_run *run,
                          const struct export_options *options, FILE *out, struct export_totals *ret_totals,
                          struct error *err)
{
    struct perfetto perfetto = {0};
    int r = export_run_open(&perfetto.run, store, run, options, out, err);

    if (r == 0)
        r = export_names(&perfetto.run, text_valid, &perfetto.names);
    if (r == 0) {
        perfetto.named = calloc(perfetto.run.function_count + 1, sizeof(*perfetto.named));
        r = perfetto.named ? put_tracks(&perfetto) : error_no_memory(err);
    }
    if (r == 0)
        r = export_walk(&perfetto.run, &sink, &perfetto);
    if (r == 0)
        *ret_totals = perfetto.run.totals;
    free(perfetto.named);
    bytes_release(&perfetto.packet);
    bytes_release(&perfetto.event);
    bytes_release(&perfetto.detail);
    export_names_free(&perfetto.run, perfetto.names);
    export_run_release(&perfetto.run);
    return r;
}

const struct export_format export_perfetto = {
    .name = "perfetto",
    .summary = "Perfetto's protobuf trace",
    .write = write_perfetto,
};
