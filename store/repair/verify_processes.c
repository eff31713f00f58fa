/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/repair/verify_processes.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <zlib.h>

#include "store/db/store.h"
#include "store/segment/call_list.h"
#include "store/streams/process_census.h"
#include "store/streams/process_streams.h"

static const char what[] = "cannot check the events of processes";

enum {
    SEGMENT_ID,
    RUN,
    PROCESS,
    STREAM,
    FIRST_SEQ,
    EVENT_COUNT,
    FIRST_NS,
    LAST_NS,
    CHECKSUM,
    LIST,
    DATA,
    PROCESS_RUN
};
#define SEGMENTS_SQL \
    "SELECT segment_id, s.run_id, s.process_id, stream, first_seq, event_count, first_ns, last_ns, " \
    "checksum," \
    " names, data, p.run_id FROM main.process_segments s LEFT JOIN main.processes p USING (process_id)" \
    " ORDER BY s.process_id, stream, first_seq"

struct verifier {
    struct process_verification *of;
    sqlite3_stmt *row, *find_name[PROCESS_STREAMS_END];
    int64_t process_id, stream;
    uint64_t next_seq, next_ns; /* that the next segment of these begins with, or not before */
};

static void problem(struct verifier *verifier, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void problem(struct verifier *verifier, const char *format, ...)
{
    struct tracestore_problem found = {.run_id = sqlite3_column_int64(verifier->row, RUN)};
    const struct process_stream_traits *traits =
        process_stream_traits(sqlite3_column_int64(verifier->row, STREAM));
    int length = snprintf(found.text, sizeof(found.text), "segment %lld of the %s of process %lld: ",
                          (long long)sqlite3_column_int64(verifier->row, SEGMENT_ID),
                          traits ? traits->events : "unknown events",
                          (long long)sqlite3_column_int64(verifier->row, PROCESS));
    va_list args;

    va_start(args, format);
    vsnprintf(found.text + length, sizeof(found.text) - (size_t)length, format, args);
    va_end(args);
    verifier->of->problems++;
    if (verifier->of->report)
        verifier->of->report(verifier->of->context, &found);
}

/* ------------------------------------------------------------------------------------------ names */

static int check_name(struct verifier *verifier, uint32_t name)
{
    const struct process_stream_traits *traits = process_stream_traits(verifier->stream);
    sqlite3_stmt **find = &verifier->find_name[verifier->stream];
    int result, code = *find ? 0 : db_prepare(verifier->of->db, traits->find_name, what, find, NULL);

    if (code)
        return code;
    db_bind(*find, "i", (int64_t)name);
    result = sqlite3_step(*find);
    sqlite3_reset(*find);
    if (result == SQLITE_DONE)
        problem(verifier, "it names %s %u, which the catalog does not have", traits->name, name);
    return 0;
}

/* The names that the events have against the segment's list. */
static int check_list(struct verifier *verifier, const struct census *names)
{
    struct call_list_reader list;
    struct function_calls name;
    size_t same = 0, listed = 0;
    int found, code = call_list_open(sqlite3_column_blob(verifier->row, LIST),
                                     (size_t)sqlite3_column_bytes(verifier->row, LIST), &list);

    while (!code && (code = call_list_next(&list, &name)) == 0) {
        const struct function_calls *counted = census_find(names, name.function);

        listed++;
        same += counted && counted->calls == name.calls;
        found = check_name(verifier, name.function);
        if (found)
            return found;
    }
    if (code < 0)
        problem(verifier, "its list of names is damaged");
    else if (same != listed || listed != names->count)
        problem(verifier, "its list does not have the names that its events have");
    return 0;
}

/* ------------------------------------------------------------------------------------------ events */

static int check_payload(struct verifier *verifier)
{
    const uint8_t *data = sqlite3_column_blob(verifier->row, DATA);
    size_t size = (size_t)sqlite3_column_bytes(verifier->row, DATA);
    struct process_extent extent = {.events = (uint64_t)sqlite3_column_int64(verifier->row, EVENT_COUNT)};
    AUTO_CENSUS names = {0};
    int code;

    if (crc32(0, data, (uInt)size) != (uint32_t)sqlite3_column_int64(verifier->row, CHECKSUM)) {
        problem(verifier, "its checksum is wrong");
        return 0;
    }
    code = process_census_take(&names, verifier->stream, data, size, &extent);
    if (code == -ENOTSUP)
        problem(verifier, "it was written by a newer tracectl and cannot be checked");
    else if (code == -EBADMSG)
        problem(verifier, "it cannot be decoded");
    if (code)
        return code == -ENOMEM ? code : 0;
    if (extent.first_ns != (uint64_t)sqlite3_column_int64(verifier->row, FIRST_NS) ||
        extent.last_ns != (uint64_t)sqlite3_column_int64(verifier->row, LAST_NS))
        problem(verifier, "the times of its events differ from its header");
    return check_list(verifier, &names);
}

/* Whether a loss of cause 'damaged' stands for `count` missing events: salvaging has left it. */
static bool gap_is_recorded(struct verifier *verifier, uint64_t count)
{
    int64_t losses = 0;
    int code = db_number(verifier->of->db, what, &losses, NULL,
                         "SELECT count(*) FROM main.losses WHERE run_id = ?1 AND thread_id IS NULL"
                         " AND count = ?2 AND cause = 'damaged'",
                         "ii", sqlite3_column_int64(verifier->row, RUN), (int64_t)count);

    return !code && losses;
}

static void check_place(struct verifier *verifier)
{
    int64_t process_id = sqlite3_column_int64(verifier->row, PROCESS);
    int64_t stream = sqlite3_column_int64(verifier->row, STREAM);
    uint64_t first_seq = (uint64_t)sqlite3_column_int64(verifier->row, FIRST_SEQ);
    uint64_t first_ns = (uint64_t)sqlite3_column_int64(verifier->row, FIRST_NS);

    if (process_id != verifier->process_id || stream != verifier->stream)
        verifier->next_seq = verifier->next_ns = 0;
    verifier->process_id = process_id;
    verifier->stream = stream;
    if (first_seq < verifier->next_seq ||
        (first_seq > verifier->next_seq && !gap_is_recorded(verifier, first_seq - verifier->next_seq)))
        problem(verifier, "it begins at event %llu, not %llu: a segment is missing",
                (unsigned long long)first_seq, (unsigned long long)verifier->next_seq);
    if (first_ns < verifier->next_ns)
        problem(verifier, "it begins before the one before it has ended");
    if (sqlite3_column_int64(verifier->row, PROCESS_RUN) != sqlite3_column_int64(verifier->row, RUN))
        problem(verifier, "its process belongs to another run");
    verifier->next_seq = first_seq + (uint64_t)sqlite3_column_int64(verifier->row, EVENT_COUNT);
    verifier->next_ns = (uint64_t)sqlite3_column_int64(verifier->row, LAST_NS);
}

/* ------------------------------------------------------------------------------------------ segments */

static void cannot_read(struct process_verification *verification)
{
    struct tracestore_problem found = {0};

    snprintf(found.text, sizeof(found.text), "the segments of process events cannot all be read: %.120s",
             sqlite3_errmsg(verification->db));
    verification->problems++;
    if (verification->report)
        verification->report(verification->context, &found);
}

int verify_process_segments(struct process_verification *verification)
{
    struct verifier verifier = {.of = verification};
    int result = SQLITE_DONE, code = db_prepare(verification->db, SEGMENTS_SQL, what, &verifier.row, NULL);

    while (!code && (result = sqlite3_step(verifier.row)) == SQLITE_ROW) {
        verification->segments++;
        check_place(&verifier);
        code = check_payload(&verifier);
    }
    if (code != -ENOMEM && (code || result != SQLITE_DONE))
        cannot_read(verification);
    sqlite3_finalize(verifier.row);
    for (int stream = 0; stream < PROCESS_STREAMS_END; stream++)
        sqlite3_finalize(verifier.find_name[stream]);
    return code == -ENOMEM ? code : 0;
}
