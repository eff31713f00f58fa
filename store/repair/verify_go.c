/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/repair/verify_go.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <zlib.h>

#include "store/db/store.h"
#include "store/segment/call_list.h"
#include "store/segment/census.h"
#include "store/streams/go_codec.h"

static const char what[] = "cannot check goroutine events";

enum {
    SEGMENT_ID,
    RUN,
    PROCESS,
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
    "SELECT segment_id, s.run_id, s.process_id, first_seq, event_count, first_ns, last_ns, checksum," \
    " functions, data, p.run_id FROM main.go_segments s LEFT JOIN main.processes p USING (process_id)" \
    " ORDER BY s.process_id, first_seq"

struct verifier {
    struct go_verification *of;
    sqlite3_stmt *row, *find_function;
    int64_t process_id;
    uint64_t next_seq, next_ns; /* that the process's next segment begins with, or not before */
};

static void problem(struct verifier *verifier, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void problem(struct verifier *verifier, const char *format, ...)
{
    struct tracestore_problem found = {.run_id = sqlite3_column_int64(verifier->row, RUN)};
    int length = snprintf(found.text, sizeof(found.text), "segment %lld of the goroutines of process %lld: ",
                          (long long)sqlite3_column_int64(verifier->row, SEGMENT_ID),
                          (long long)sqlite3_column_int64(verifier->row, PROCESS));
    va_list args;

    va_start(args, format);
    vsnprintf(found.text + length, sizeof(found.text) - (size_t)length, format, args);
    va_end(args);
    verifier->of->problems++;
    if (verifier->of->report)
        verifier->of->report(verifier->of->context, &found);
}

/* ------------------------------------------------------------------------------------------ functions */

static void check_function(struct verifier *verifier, uint32_t function)
{
    int result;

    db_bind(verifier->find_function, "i", (int64_t)function);
    result = sqlite3_step(verifier->find_function);
    sqlite3_reset(verifier->find_function);
    if (result == SQLITE_DONE)
        problem(verifier, "it names function %u, which the catalog does not have", function);
}

/* The functions that the events have named against the segment's list. */
static void check_list(struct verifier *verifier, const struct census *named)
{
    struct call_list_reader list;
    struct function_calls function;
    size_t same = 0, listed = 0;
    int code = call_list_open(sqlite3_column_blob(verifier->row, LIST),
                              (size_t)sqlite3_column_bytes(verifier->row, LIST), &list);

    while (!code && (code = call_list_next(&list, &function)) == 0) {
        const struct function_calls *counted = census_find(named, function.function);

        listed++;
        same += counted && counted->calls == function.calls;
        check_function(verifier, function.function);
    }
    if (code < 0)
        problem(verifier, "its list of functions is damaged");
    else if (same != listed || listed != named->count)
        problem(verifier, "its list does not have the functions that its events name");
}

/* ------------------------------------------------------------------------------------------ events */

static int count_functions(struct census *named, const struct process_event *event)
{
    bool function = event->kind == GO_EVENT_CREATE || event->kind == GO_EVENT_TEST;

    if (event->site && census_add_calls(named, event->site, 1))
        return -ENOMEM;
    return function && event->value ? census_add_calls(named, (uint32_t)event->value, 1) : 0;
}

/* 0: it was decoded to its end. */
static int decode_all(struct verifier *verifier, struct go_decoder *decoder, struct census *named)
{
    uint64_t first_ns = (uint64_t)sqlite3_column_int64(verifier->row, FIRST_NS);
    uint64_t last_ns = (uint64_t)sqlite3_column_int64(verifier->row, LAST_NS);
    struct process_event event = {.ns = first_ns};
    bool first = true, in_time = true;
    int code;

    while ((code = go_decoder_next(decoder, &event)) == 0) {
        in_time &= !first || event.ns == first_ns;
        first = false;
        if (count_functions(named, &event))
            return -ENOMEM;
    }
    if (code == 1 && (!in_time || event.ns != last_ns))
        problem(verifier, "its events are not of the time that it says");
    return code == 1 ? 0 : code;
}

static int check_payload(struct verifier *verifier)
{
    const uint8_t *data = sqlite3_column_blob(verifier->row, DATA);
    size_t size = (size_t)sqlite3_column_bytes(verifier->row, DATA);
    struct go_decoder *decoder = NULL;
    AUTO_CENSUS named = {0};
    int code;

    if (crc32(0, data, (uInt)size) != (uint32_t)sqlite3_column_int64(verifier->row, CHECKSUM)) {
        problem(verifier, "its checksum is wrong");
        return 0;
    }
    code = go_decoder_open(data, size, (uint64_t)sqlite3_column_int64(verifier->row, EVENT_COUNT), &decoder);
    if (!code)
        code = decode_all(verifier, decoder, &named);
    go_decoder_free(decoder);
    if (!code)
        check_list(verifier, &named);
    else if (code == -ENOTSUP)
        problem(verifier, "it was written by a newer tracectl and cannot be checked");
    else if (code == -EBADMSG)
        problem(verifier, "it cannot be decoded");
    return code == -ENOMEM ? code : 0;
}

/* Whether a loss of cause 'damaged' tells of so many missing events: salvaging has left it. */
static bool gap_is_told(struct verifier *verifier, uint64_t count)
{
    int64_t told = 0;
    int code = db_number(verifier->of->db, what, &told, NULL,
                         "SELECT count(*) FROM main.losses WHERE run_id = ?1 AND thread_id IS NULL"
                         " AND count = ?2 AND cause = 'damaged'",
                         "ii", sqlite3_column_int64(verifier->row, RUN), (int64_t)count);

    return !code && told;
}

static void check_place(struct verifier *verifier)
{
    int64_t process_id = sqlite3_column_int64(verifier->row, PROCESS);
    uint64_t first_seq = (uint64_t)sqlite3_column_int64(verifier->row, FIRST_SEQ);
    uint64_t first_ns = (uint64_t)sqlite3_column_int64(verifier->row, FIRST_NS);

    if (process_id != verifier->process_id)
        verifier->next_seq = verifier->next_ns = 0;
    verifier->process_id = process_id;
    if (first_seq < verifier->next_seq ||
        (first_seq > verifier->next_seq && !gap_is_told(verifier, first_seq - verifier->next_seq)))
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

static void cannot_read(struct go_verification *verification)
{
    struct tracestore_problem found = {0};

    snprintf(found.text, sizeof(found.text), "the segments of goroutines cannot all be read: %.120s",
             sqlite3_errmsg(verification->db));
    verification->problems++;
    if (verification->report)
        verification->report(verification->context, &found);
}

static int check_segments(struct verifier *verifier)
{
    int result, code = 0;

    while (!code && (result = sqlite3_step(verifier->row)) == SQLITE_ROW) {
        verifier->of->segments++;
        check_place(verifier);
        code = check_payload(verifier);
    }
    if (!code && result != SQLITE_DONE)
        cannot_read(verifier->of);
    return code;
}

int verify_go_segments(struct go_verification *verification)
{
    struct verifier verifier = {.of = verification};
    int code = db_prepare(verification->db, SEGMENTS_SQL, what, &verifier.row, NULL);

    if (!code)
        code = db_prepare(verification->db, "SELECT 1 FROM main.functions WHERE function_id = ?1", what,
                          &verifier.find_function, NULL);
    if (!code)
        code = check_segments(&verifier);
    else if (code != -ENOMEM)
        cannot_read(verification);
    sqlite3_finalize(verifier.row);
    sqlite3_finalize(verifier.find_function);
    return code == -ENOMEM ? code : 0;
}
