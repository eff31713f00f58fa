/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/repair/verify_sync.h"

#include <errno.h>
#include <stdio.h>
#include <zlib.h>

#include "store/db/store.h"
#include "store/streams/sync_codec.h"

static const char what[] = "cannot check synchronisation events";

enum { SEGMENT, RUN, PROCESS, FIRST_SEQ, EVENT_COUNT, FIRST_NS, LAST_NS, CHECKSUM, DATA, BEHIND, TOLD };
/* With the event behind the segment before, and whether a loss tells of the gap in between. */
#define SEGMENTS_SQL \
    "SELECT segment_id, run_id, process_id, first_seq, event_count, first_ns, last_ns, checksum, data," \
    " behind, EXISTS (SELECT 1 FROM main.losses l WHERE l.run_id = s.run_id AND l.thread_id IS NULL" \
    "  AND l.count = first_seq - behind AND l.cause = 'damaged')" \
    " FROM (SELECT *, lag(first_seq + event_count, 1, 0) OVER (PARTITION BY process_id ORDER BY first_seq)" \
    "  AS behind FROM main.sync_segments) s ORDER BY process_id, first_seq"

static void problem(struct sync_verification *verification, sqlite3_stmt *row, const char *text)
{
    struct tracestore_problem found = {.run_id = row ? sqlite3_column_int64(row, RUN) : 0};

    if (row)
        snprintf(found.text, sizeof(found.text),
                 "segment %lld of the synchronisation events of process %lld: %s",
                 (long long)sqlite3_column_int64(row, SEGMENT), (long long)sqlite3_column_int64(row, PROCESS),
                 text);
    else
        snprintf(found.text, sizeof(found.text), "%s: %.120s", text, sqlite3_errmsg(verification->db));
    verification->problems++;
    if (verification->report)
        verification->report(verification->context, &found);
}

static int site_is_known(struct sync_verification *verification, uint32_t site, bool *ret_known)
{
    int64_t found = 0;
    int code = db_number(verification->db, what, &found, NULL,
                         "SELECT count(*) FROM main.call_sites WHERE site_id = ?1", "i", (int64_t)site);

    *ret_known = found > 0;
    return code;
}

/* Decodes the events; 0: all of them were right, 1: a problem was told. */
static int check_events(struct sync_verification *verification, sqlite3_stmt *row,
                        struct sync_decoder *decoder)
{
    uint64_t first_ns = (uint64_t)sqlite3_column_int64(row, FIRST_NS), count = 0;
    struct process_event event = {.ns = first_ns};
    uint32_t site = 0;
    bool known = true;
    int code = 0;

    while (!code && known && (code = sync_decoder_next(decoder, &event)) == 0) {
        if (!count++ && event.ns != first_ns)
            return problem(verification, row, "its events are not of the time that it says"), 1;
        if (event.site && event.site != site)
            code = site_is_known(verification, event.site, &known);
        site = event.site;
    }
    if (!known)
        return problem(verification, row, "it names a call site that the catalog does not have"), 1;
    if (code < 0)
        return code;
    if (event.ns != (uint64_t)sqlite3_column_int64(row, LAST_NS))
        return problem(verification, row, "its events are not of the time that it says"), 1;
    return 0;
}

static int check_segment(struct sync_verification *verification, sqlite3_stmt *row)
{
    const uint8_t *data = sqlite3_column_blob(row, DATA);
    size_t size = (size_t)sqlite3_column_bytes(row, DATA);
    struct sync_decoder *decoder = NULL;
    int code;

    if (sqlite3_column_int64(row, FIRST_SEQ) != sqlite3_column_int64(row, BEHIND) &&
        !sqlite3_column_int(row, TOLD))
        problem(verification, row, "a segment before it is missing");
    if (crc32(0, data, (uInt)size) != (uint32_t)sqlite3_column_int64(row, CHECKSUM))
        return problem(verification, row, "its checksum is wrong"), 0;
    code = sync_decoder_open(data, size, (uint64_t)sqlite3_column_int64(row, EVENT_COUNT), &decoder);
    if (!code)
        code = check_events(verification, row, decoder);
    sync_decoder_free(decoder);
    if (code == -ENOTSUP)
        problem(verification, row, "it was written by a newer tracectl and cannot be checked");
    else if (code == -EBADMSG)
        problem(verification, row, "it cannot be decoded");
    return code == -ENOMEM ? code : 0;
}

int verify_sync_segments(struct sync_verification *verification)
{
    AUTO_STATEMENT *row = NULL;
    int result = SQLITE_DONE, code = db_prepare(verification->db, SEGMENTS_SQL, what, &row, NULL);

    while (!code && (result = sqlite3_step(row)) == SQLITE_ROW) {
        verification->segments++;
        code = check_segment(verification, row);
    }
    if (code == -ENOMEM)
        return code;
    if (code || result != SQLITE_DONE)
        problem(verification, NULL, "the segments of synchronisation events cannot all be read");
    return 0;
}
