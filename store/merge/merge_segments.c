/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Segments of a run: decoded to their last bit, then written with the ids of the store that they are added to. One whose
 * ids are the same there keeps its bytes. */
#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "base/error.h"
#include "store/merge/merge.h"
#include "store/segment/call_list.h"
#include "store/streams/process_census.h"
#include "store/streams/process_streams.h"

static const char what[] = "cannot merge";

/* The functions or sites with an event, by the ids of `to`. Free with free(). */
static int list_names(struct merge *merge, const struct census *census, enum merge_id kind,
                      struct function_calls **ret_names)
{
    struct function_calls *names = calloc(census->count + 1, sizeof(*names));
    int code = 0;

    *ret_names = names;
    if (!names)
        return error_no_memory(merge->err);
    census_list(census, names);
    for (size_t i = 0; i < census->count && !code; i++) {
        int64_t id = TRACESTORE_LOST_FUNCTION;

        if (kind == MERGE_SITE || names[i].function != TRACESTORE_LOST_FUNCTION)
            code = merge_id_of(merge, kind, names[i].function, &id);
        names[i].function = (uint32_t)id;
    }
    return code;
}

static int check_crc(struct merge *merge, sqlite3_stmt *row, int data, int checksum)
{
    uLong sum = crc32(0, sqlite3_column_blob(row, data), (uInt)sqlite3_column_bytes(row, data));

    return sum == (uint32_t)sqlite3_column_int64(row, checksum)
               ? 0
               : merge_damaged(merge, "a segment whose checksum is wrong");
}

/* Of a code that says that a segment is no good. */
static int segment_fault(struct merge *merge, int code)
{
    switch (code) {
    case -ENOMEM:
        return error_no_memory(merge->err);
    case -EBADMSG:
        return merge_damaged(merge, "a segment that cannot be decoded");
    case -ENOTSUP:
        return error_say(merge->err, code, "%s: a segment was written by a newer tracectl (use that one)",
                         what);
    default:
        return code;
    }
}

/* ------------------------------------------------------------------------------------------ calls */

/* The columns of CALLS_SQL. */
enum { THREAD, FIRST_SEQ, EVENT_COUNT, FIRST_NS, LAST_NS, CODEC, CHECKSUM, DATA };
#define CALLS_SQL \
    "SELECT thread_id, first_seq, event_count, first_ns, last_ns, codec, checksum, data FROM main.segments" \
    " WHERE run_id = ?1 ORDER BY thread_id, first_seq"

/* Whether all functions that were open when the segment began, and all sites, have rows. */
static int check_ids(struct merge *merge, const struct segment_parts *parts,
                     const struct segment_row *segment)
{
    const struct section *section = &parts->sections[SECTION_SITE_DICTIONARY];
    struct segment_decoder *decoder;
    const struct open_call *open;
    AUTO_FREE uint32_t *sites = NULL;
    size_t depth = 0, count = 0;
    int64_t id;
    int code = segment_decoder_open(parts, segment->first_seq, segment->event_count, 0, false, &decoder);

    if (code)
        return segment_fault(merge, code);
    open = segment_decoder_open_calls(decoder, &depth);
    for (size_t i = 0; i < depth && !code; i++)
        code = merge_id_of(merge, MERGE_FUNCTION, open[i].function, &id);
    segment_decoder_free(decoder);
    if (!code && parts->flags & SEGMENT_CALL_SITES)
        code = segment_fault(merge, dictionary_read(section->data, section->size, 0, &sites, &count));
    for (size_t i = 0; i < count && !code; i++)
        if (sites[i])
            code = merge_id_of(merge, MERGE_SITE, sites[i], &id);
    return code;
}

/* The payload with the ids of `to`. */
static int translate(struct merge *merge, const struct segment_parts *parts, struct bytes *payload)
{
    struct segment_parts translated = *parts;
    struct bytes scratch[SECTION_COUNT] = {0};
    int code = numbering_translate(merge->numberings, &translated, scratch);

    if (!code)
        code = segment_seal(&translated, payload);
    for (int i = 0; i < SECTION_COUNT; i++)
        bytes_release(&scratch[i]);
    return segment_fault(merge, code);
}

static int insert_calls(struct merge *merge, const struct segment_parts *parts, struct segment_row *segment)
{
    AUTO_CENSUS census = {0};
    AUTO_FREE struct function_calls *functions = NULL;
    AUTO_BYTES payload = {0};
    int code = segment_fault(merge, census_take(&census, parts, segment->first_seq, segment->event_count));

    if (!code)
        code = check_ids(merge, parts, segment);
    if (!code)
        code = list_names(merge, &census, MERGE_FUNCTION, &functions);
    if (!code && (merge->numberings[NUMBER_FUNCTION].renamed || merge->numberings[NUMBER_SITE].renamed)) {
        code = translate(merge, parts, &payload);
        segment->payload = (struct section){payload.data, payload.size};
    }
    if (code)
        return code;
    segment->functions = functions;
    segment->function_count = census.count;
    merge->sum.segments++;
    merge->sum.events += segment->event_count;
    return segment_insert(&merge->segments, segment, what, merge->err);
}

static int copy_calls(struct merge *merge, sqlite3_stmt *row)
{
    const uint8_t *data = sqlite3_column_blob(row, DATA);
    size_t size = (size_t)sqlite3_column_bytes(row, DATA);
    AUTO_BYTES room = {0};
    struct segment_parts parts;
    struct segment_row segment = {
        .run_id = merge->to_run,
        .first_seq = (uint64_t)sqlite3_column_int64(row, FIRST_SEQ),
        .event_count = (uint64_t)sqlite3_column_int64(row, EVENT_COUNT),
        .first_ns = (uint64_t)sqlite3_column_int64(row, FIRST_NS),
        .last_ns = (uint64_t)sqlite3_column_int64(row, LAST_NS),
        .codec = (uint8_t)sqlite3_column_int(row, CODEC),
        .payload = {data, size},
    };
    int code = merge_id_of(merge, MERGE_THREAD, sqlite3_column_int64(row, THREAD), &segment.thread_id);

    if (!code)
        code = check_crc(merge, row, DATA, CHECKSUM);
    if (!code)
        code = segment_fault(merge, segment_parse(data, size, &room, &parts));
    if (!code && parts.codec != sqlite3_column_int64(row, CODEC))
        code = segment_fault(merge, -EBADMSG);
    return code ? code : insert_calls(merge, &parts, &segment);
}

/* ------------------------------------------------------------------------------------------ process events */

/* The columns of PROCESS_SQL. */
enum { PROCESS, STREAM, EVENT_FIRST_SEQ, EVENTS, EVENT_CODEC, EVENT_CHECKSUM, EVENT_DATA };
#define PROCESS_SQL \
    "SELECT process_id, stream, first_seq, event_count, codec, checksum, data FROM main.process_segments" \
    " WHERE run_id = ?1 ORDER BY process_id, stream, first_seq"

/* The segment encoded anew with the ids of `to`. */
static int encode_again(struct merge *merge, sqlite3_stmt *row, const struct numbering *numbering,
                        struct bytes *payload, struct bytes *list)
{
    enum process_stream stream = (enum process_stream)sqlite3_column_int64(row, STREAM);
    struct process_encoder *encoder = process_encoder_new(stream);
    struct process_sealed sealed = {0};
    struct process_decoder *decoder = NULL;
    struct process_event event;
    int code = encoder ? process_decoder_open(stream, sqlite3_column_blob(row, EVENT_DATA),
                                              (size_t)sqlite3_column_bytes(row, EVENT_DATA),
                                              (uint64_t)sqlite3_column_int64(row, EVENTS), &decoder)
                       : -ENOMEM;

    while (!code && (code = process_decoder_next(decoder, &event)) == 0)
        code = process_encoder_add(encoder, &event);
    if (code == 1)
        code = process_encoder_seal(encoder, &sealed);
    if (!code)
        code = process_sealed_write(&sealed, numbering, payload, list);
    process_sealed_release(&sealed);
    process_decoder_free(decoder);
    process_encoder_free(encoder);
    return segment_fault(merge, code == -E2BIG ? -EBADMSG : code);
}

/* Payload and list of names for `to`. */
static int translate_events(struct merge *merge, sqlite3_stmt *row,
                            const struct process_stream_traits *traits, struct process_extent *extent,
                            struct bytes *payload, struct bytes *list)
{
    const struct numbering *numbering = &merge->numberings[traits->names];
    const uint8_t *data = sqlite3_column_blob(row, EVENT_DATA);
    size_t size = (size_t)sqlite3_column_bytes(row, EVENT_DATA);
    AUTO_CENSUS census = {0};
    AUTO_FREE struct function_calls *names = NULL;
    int code = segment_fault(
        merge, process_census_take(&census, sqlite3_column_int64(row, STREAM), data, size, extent));

    if (!code)
        code = list_names(merge, &census, traits->names == NUMBER_SITE ? MERGE_SITE : MERGE_FUNCTION, &names);
    if (code || numbering->renamed)
        return code ? code : encode_again(merge, row, numbering, payload, list);
    return bytes_add(payload, data, size) || call_list_pack(names, census.count, list)
               ? error_no_memory(merge->err)
               : 0;
}

static int copy_events(struct merge *merge, sqlite3_stmt *row)
{
    const struct process_stream_traits *traits = process_stream_traits(sqlite3_column_int64(row, STREAM));
    struct process_extent extent = {.events = (uint64_t)sqlite3_column_int64(row, EVENTS)};
    AUTO_BYTES payload = {0}, list = {0};
    int64_t process;
    int code;

    if (!traits || sqlite3_column_int64(row, EVENT_CODEC) != PROCESS_CODEC)
        return segment_fault(merge, -ENOTSUP);
    code = merge_id_of(merge, MERGE_PROCESS, sqlite3_column_int64(row, PROCESS), &process);
    if (!code)
        code = check_crc(merge, row, EVENT_DATA, EVENT_CHECKSUM);
    if (!code)
        code = translate_events(merge, row, traits, &extent, &payload, &list);
    if (code)
        return code;
    merge->sum.segments++;
    merge->sum.events += extent.events;
    return db_run(
        merge->to, what, merge->err,
        "INSERT INTO main.process_segments (run_id, process_id, stream, first_seq, event_count, first_ns,"
        " last_ns, codec, checksum, names, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        "iiiiiiiiibb", merge->to_run, process, sqlite3_column_int64(row, STREAM),
        sqlite3_column_int64(row, EVENT_FIRST_SEQ), (int64_t)extent.events, (int64_t)extent.first_ns,
        (int64_t)extent.last_ns, (int64_t)PROCESS_CODEC, (int64_t)crc32(0, payload.data, (uInt)payload.size),
        (const void *)list.data, list.size, (const void *)payload.data, payload.size);
}

/* ------------------------------------------------------------------------------------------ both */

static int each_row(struct merge *merge, const char *sql, const char *types,
                    int (*copy)(struct merge *merge, sqlite3_stmt *row))
{
    AUTO_STATEMENT *row = NULL;
    int result = SQLITE_DONE, code = db_prepare(merge->from, sql, what, &row, merge->err);

    if (code)
        return code;
    db_bind(row, "i", merge->from_run);
    while (!code && (result = db_row(row, types)) == SQLITE_ROW)
        code = copy(merge, row);
    return code || result == SQLITE_DONE ? code : db_fail(merge->from, merge->err, what);
}

int merge_copy_segments(struct merge *merge)
{
    int code = each_row(merge, CALLS_SQL, "innNNnnb", copy_calls);

    return code ? code : each_row(merge, PROCESS_SQL, "iinnnnb", copy_events);
}
