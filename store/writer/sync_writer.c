/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writing synchronisation events. As with goroutine events a flush writes the open segment, too; as long as
 * that is small its row is written anew with what has come since.
 */
#include <errno.h>
#include <zlib.h>

#include "store/streams/sync_codec.h"
#include "store/writer/writer.h"

/* From this size on the open segment is not written a second time. */
#define ENOUGH_BYTES ((size_t)16 << 10)

static const char what[] = "cannot write synchronisation events";

/* A full segment that waits for the flush. */
struct closed_sync_segment {
    struct closed_sync_segment *next;
    uint64_t first_seq;
    struct sync_sealed sealed;
};

struct sync_writer {
    struct trace_writer *writer;
    struct sync_writer *next;
    int64_t process; /* number */
    struct sync_encoder *encoder;
    uint64_t first_seq; /* of the open segment */
    uint64_t last_ns;
    bool dirty;  /* the open segment has events that are not committed */
    bool enough; /* it is large enough as it was written */
    struct closed_sync_segment *closed, **closed_end;
};

/* ------------------------------------------------------------------------------------------ the catalog */

/* NULL: out of memory. */
static struct sync_writer *writer_of_process(struct trace_writer *writer, int64_t process)
{
    struct sync_writer *sync = writer->sync_writers;

    while (sync && sync->process != process)
        sync = sync->next;
    if (sync)
        return sync;
    sync = calloc(1, sizeof(*sync));
    if (!sync)
        return NULL;
    sync->encoder = sync_encoder_new();
    if (!sync->encoder) {
        free(sync);
        return NULL;
    }
    sync->writer = writer;
    sync->process = process;
    sync->closed_end = &sync->closed;
    sync->next = writer->sync_writers;
    writer->sync_writers = sync;
    return sync;
}

int trace_writer_sync_process(struct trace_writer *writer, const struct sync_process_description *process,
                              struct sync_writer **ret_sync, struct error *err)
{
    static const struct catalog_statement insert = {
        .what = what,
        .sql =
            "INSERT OR IGNORE INTO sync_processes (process_id, run_id, from_ns, from_start, library, why_not)"
            " VALUES (?1, ?2, ?3, ?4, NULL, 'it was not looked for')",
        .types = "piii"};
    struct sync_writer *sync = writer_of_process(writer, process->process_id);

    if (!sync || catalog_queue_add(&writer->catalog, &insert, 0, process->process_id, writer->run_id,
                                   (int64_t)process->from_ns, (int64_t)process->from_start))
        return error_no_memory(err);
    *ret_sync = sync;
    return 0;
}

int sync_writer_library(struct sync_writer *sync, const char *library, const char *why, struct error *err)
{
    static const struct catalog_statement update = {
        .what = what,
        .sql = "UPDATE sync_processes SET library = ?2, why_not = ?3 WHERE process_id = ?1",
        .types = "pTT"};

    return catalog_queue_add(&sync->writer->catalog, &update, 0, sync->process, library, why)
               ? error_no_memory(err)
               : 0;
}

int trace_writer_sync_channel(struct trace_writer *writer, const struct sync_channel *channel,
                              uint64_t *ret_channel, struct error *err)
{
    static const struct catalog_statement insert = {
        .what = what,
        .sql =
            "INSERT OR REPLACE INTO sync_channels (run_id, channel, kind, name, local, remote, device, inode,"
            " net, from_start) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        .types = "iiitttiiii"};
    uint64_t number = channel->channel ? channel->channel : writer->sync_channels + 1;

    if (catalog_queue_add(&writer->catalog, &insert, 0, writer->run_id, (int64_t)number,
                          (int64_t)channel->kind, channel->name, channel->local, channel->remote,
                          (int64_t)channel->device, (int64_t)channel->inode, (int64_t)channel->net,
                          (int64_t)channel->from_start))
        return error_no_memory(err);
    if (number > writer->sync_channels)
        writer->sync_channels = number;
    *ret_channel = number;
    return 0;
}

int trace_writer_sync_function(struct trace_writer *writer, uint64_t number, const char *role,
                               const char *name, struct error *err)
{
    static const struct catalog_statement insert = {
        .what = what,
        .sql = "INSERT OR REPLACE INTO sync_functions (run_id, number, role, name) VALUES (?1, ?2, ?3, ?4)",
        .types = "iitt"};

    return catalog_queue_add(&writer->catalog, &insert, 0, writer->run_id, (int64_t)number, role, name)
               ? error_no_memory(err)
               : 0;
}

/* ------------------------------------------------------------------------------------------ appending */

static int close_segment(struct sync_writer *sync)
{
    struct closed_sync_segment *closed = calloc(1, sizeof(*closed));

    if (!closed || sync_encoder_seal(sync->encoder, &closed->sealed)) {
        free(closed);
        return -ENOMEM;
    }
    closed->first_seq = sync->first_seq;
    sync->first_seq += closed->sealed.extent.events;
    *sync->closed_end = closed;
    sync->closed_end = &closed->next;
    sync->writer->closed_bytes += closed->sealed.columns.size;
    sync_encoder_clear(sync->encoder);
    sync->dirty = false;
    return 0;
}

int sync_writer_append(struct sync_writer *sync, const struct process_event *event)
{
    struct process_event timed = *event;
    int code;

    if (timed.ns < sync->last_ns)
        timed.ns = sync->last_ns;
    code = sync_encoder_add(sync->encoder, &timed);
    if (code == -E2BIG) {
        code = close_segment(sync);
        if (!code)
            code = sync_encoder_add(sync->encoder, &timed);
    }
    if (code)
        return code;
    sync->last_ns = timed.ns;
    sync->dirty = true;
    return 0;
}

/* ------------------------------------------------------------------------------------------ flushing */

static int write_segment(struct sync_writer *sync, sqlite3_stmt *insert, uint64_t first_seq,
                         const struct sync_sealed *sealed, struct error *err)
{
    struct trace_writer *writer = sync->writer;
    AUTO_BYTES payload = {0};

    if (sync_sealed_write(sealed, &writer->numberings[NUMBER_SITE], &payload))
        return error_no_memory(err);
    db_bind(insert, "iiiiiiiib", writer->run_id,
            numbering_id(&writer->numberings[NUMBER_PROCESS], sync->process), (int64_t)first_seq,
            (int64_t)sealed->extent.events, (int64_t)sealed->extent.first_ns, (int64_t)sealed->extent.last_ns,
            (int64_t)SYNC_CODEC, (int64_t)crc32(0, payload.data, (uInt)payload.size),
            (const void *)payload.data, payload.size);
    return db_step(writer->db, insert, what, err);
}

static int write_open(struct sync_writer *sync, sqlite3_stmt *insert, struct error *err)
{
    struct sync_sealed sealed;
    int code;

    if (sync_encoder_seal(sync->encoder, &sealed))
        return error_no_memory(err);
    sync->enough = sealed.columns.size >= ENOUGH_BYTES;
    code = write_segment(sync, insert, sync->first_seq, &sealed, err);
    sync_sealed_release(&sealed);
    return code;
}

static int write_all(struct sync_writer *sync, sqlite3_stmt *insert, struct error *err)
{
    int code = 0;

    for (struct closed_sync_segment *closed = sync->closed; closed && !code; closed = closed->next)
        code = write_segment(sync, insert, closed->first_seq, &closed->sealed, err);
    return code || !sync->dirty ? code : write_open(sync, insert, err);
}

int sync_writers_write(struct trace_writer *writer, struct error *err)
{
    AUTO_STATEMENT *insert = NULL;
    int code;

    if (!writer->sync_writers)
        return 0;
    code =
        db_prepare(writer->db,
                   "INSERT INTO sync_segments (run_id, process_id, first_seq, event_count, first_ns, last_ns,"
                   " codec, checksum, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
                   " ON CONFLICT (process_id, first_seq) DO UPDATE SET event_count = excluded.event_count,"
                   " last_ns = excluded.last_ns, checksum = excluded.checksum, data = excluded.data",
                   what, &insert, err);
    for (struct sync_writer *sync = writer->sync_writers; sync && !code; sync = sync->next)
        code = write_all(sync, insert, err);
    return code;
}

static void free_closed(struct sync_writer *sync)
{
    for (struct closed_sync_segment *closed = sync->closed, *next; closed; closed = next) {
        next = closed->next;
        sync_sealed_release(&closed->sealed);
        free(closed);
    }
    sync->closed = NULL;
    sync->closed_end = &sync->closed;
}

void sync_writers_advance(struct trace_writer *writer)
{
    for (struct sync_writer *sync = writer->sync_writers; sync; sync = sync->next) {
        free_closed(sync);
        if (sync->dirty && sync->enough) {
            sync->first_seq += sync_encoder_extent(sync->encoder).events;
            sync_encoder_clear(sync->encoder);
        }
        sync->dirty = false;
    }
}

void sync_writers_free(struct trace_writer *writer)
{
    for (struct sync_writer *sync = writer->sync_writers, *next; sync; sync = next) {
        next = sync->next;
        free_closed(sync);
        sync_encoder_free(sync->encoder);
        free(sync);
    }
    writer->sync_writers = NULL;
}
