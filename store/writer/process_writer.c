/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writing process events. A flush writes the open segment, too; as long as that is small its row is written
 * anew with what has come since, so that a process that does little does not leave thousands of tiny
 * segments.
 */
#include <errno.h>
#include <zlib.h>

#include "base/error.h"
#include "store/streams/process_codec.h"
#include "store/streams/process_streams.h"
#include "store/writer/writer.h"

/* From this size on the open segment is not written a second time. */
#define ENOUGH_BYTES ((size_t)16 << 10)

static const char what[] = "cannot write the events of a process";

/* A full segment that waits for the flush. */
struct closed_process_segment {
    struct closed_process_segment *next;
    uint64_t first_seq;
    struct process_sealed sealed;
};

struct process_writer {
    struct trace_writer *writer;
    struct process_writer *next;
    enum process_stream stream;
    int64_t process; /* number */
    struct process_encoder *encoder;
    uint64_t first_seq; /* of the open segment */
    uint64_t last_ns;
    bool dirty;  /* the open segment has events that are not committed */
    bool enough; /* it is large enough as it was written */
    struct closed_process_segment *closed, **closed_end;
};

static struct process_writer *add_writer(struct trace_writer *writer, enum process_stream stream,
                                         int64_t process)
{
    struct process_writer *added = calloc(1, sizeof(*added));

    if (!added)
        return NULL;
    added->encoder = process_encoder_new(stream);
    if (!added->encoder) {
        free(added);
        return NULL;
    }
    added->writer = writer;
    added->stream = stream;
    added->process = process;
    added->closed_end = &added->closed;
    added->next = writer->process_writers;
    writer->process_writers = added;
    return added;
}

struct process_writer *process_writer_get(struct trace_writer *writer, enum process_stream stream,
                                          int64_t process)
{
    struct process_writer *found = writer->process_writers;

    while (found && (found->stream != stream || found->process != process))
        found = found->next;
    return found ? found : add_writer(writer, stream, process);
}

/* ------------------------------------------------------------------------------------------ appending */

static int close_segment(struct process_writer *process)
{
    struct closed_process_segment *closed = calloc(1, sizeof(*closed));

    if (!closed || process_encoder_seal(process->encoder, &closed->sealed)) {
        free(closed);
        return -ENOMEM;
    }
    closed->first_seq = process->first_seq;
    process->first_seq += closed->sealed.extent.events;
    *process->closed_end = closed;
    process->closed_end = &closed->next;
    process->writer->closed_bytes += closed->sealed.columns.size;
    process_encoder_clear(process->encoder);
    process->dirty = false;
    return 0;
}

int process_writer_append(struct process_writer *process, const struct process_event *event)
{
    struct process_event timed = *event;
    int code;

    if (timed.ns < process->last_ns)
        timed.ns = process->last_ns;
    code = process_encoder_add(process->encoder, &timed);
    if (code == -E2BIG) {
        code = close_segment(process);
        if (!code)
            code = process_encoder_add(process->encoder, &timed);
    }
    if (code)
        return code;
    process->last_ns = timed.ns;
    process->dirty = true;
    return 0;
}

/* ------------------------------------------------------------------------------------------ flushing */

static int write_segment(struct process_writer *process, sqlite3_stmt *insert, uint64_t first_seq,
                         const struct process_sealed *sealed, struct error *err)
{
    struct trace_writer *writer = process->writer;
    const struct numbering *names = &writer->numberings[process_stream_traits(process->stream)->names];
    AUTO_BYTES payload = {0}, list = {0};

    if (process_sealed_write(sealed, names, &payload, &list))
        return error_no_memory(err);
    db_bind(insert, "iiiiiiiiibb", writer->run_id,
            numbering_id(&writer->numberings[NUMBER_PROCESS], process->process), (int64_t)process->stream,
            (int64_t)first_seq, (int64_t)sealed->extent.events, (int64_t)sealed->extent.first_ns,
            (int64_t)sealed->extent.last_ns, (int64_t)PROCESS_CODEC,
            (int64_t)crc32(0, payload.data, (uInt)payload.size), (const void *)list.data, list.size,
            (const void *)payload.data, payload.size);
    return db_step(writer->db, insert, what, err);
}

static int write_open(struct process_writer *process, sqlite3_stmt *insert, struct error *err)
{
    struct process_sealed sealed;
    int code;

    if (process_encoder_seal(process->encoder, &sealed))
        return error_no_memory(err);
    process->enough = sealed.columns.size >= ENOUGH_BYTES;
    code = write_segment(process, insert, process->first_seq, &sealed, err);
    process_sealed_release(&sealed);
    return code;
}

static int write_all(struct process_writer *process, sqlite3_stmt *insert, struct error *err)
{
    int code = 0;

    for (struct closed_process_segment *closed = process->closed; closed && !code; closed = closed->next)
        code = write_segment(process, insert, closed->first_seq, &closed->sealed, err);
    return code || !process->dirty ? code : write_open(process, insert, err);
}

int process_writers_write(struct trace_writer *writer, struct error *err)
{
    AUTO_STATEMENT *insert = NULL;
    int code;

    if (!writer->process_writers)
        return 0;
    code = db_prepare(
        writer->db,
        "INSERT INTO process_segments (run_id, process_id, stream, first_seq, event_count, first_ns,"
        " last_ns, codec, checksum, names, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
        " ON CONFLICT (process_id, stream, first_seq) DO UPDATE SET event_count = excluded.event_count,"
        " last_ns = excluded.last_ns, checksum = excluded.checksum,"
        " names = excluded.names, data = excluded.data",
        what, &insert, err);
    for (struct process_writer *process = writer->process_writers; process && !code; process = process->next)
        code = write_all(process, insert, err);
    return code;
}

static void free_closed(struct process_writer *process)
{
    for (struct closed_process_segment *closed = process->closed, *next; closed; closed = next) {
        next = closed->next;
        process_sealed_release(&closed->sealed);
        free(closed);
    }
    process->closed = NULL;
    process->closed_end = &process->closed;
}

void process_writers_advance(struct trace_writer *writer)
{
    for (struct process_writer *process = writer->process_writers; process; process = process->next) {
        free_closed(process);
        if (process->dirty && process->enough) {
            process->first_seq += process_encoder_extent(process->encoder).events;
            process_encoder_clear(process->encoder);
        }
        process->dirty = false;
    }
}

void process_writers_free(struct trace_writer *writer)
{
    for (struct process_writer *process = writer->process_writers, *next; process; process = next) {
        next = process->next;
        free_closed(process);
        process_encoder_free(process->encoder);
        free(process);
    }
    writer->process_writers = NULL;
}
