/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writing goroutine events. A flush writes the open segment, too; as long as that is small its row is written
 * anew with what has come since, so that a program that does little does not leave thousands of tiny
 * segments.
 */
#include <errno.h>
#include <zlib.h>

#include "store/streams/go_codec.h"
#include "store/writer/writer.h"

/* From this size on the open segment is not written a second time. */
#define ENOUGH_BYTES ((size_t)16 << 10)

static const char what[] = "cannot write goroutine events";

/* A full segment that waits for the flush. */
struct closed_go_segment {
    struct closed_go_segment *next;
    uint64_t first_seq;
    struct go_sealed sealed;
};

struct go_writer {
    struct trace_writer *writer;
    struct go_writer *next;
    int64_t process; /* number */
    struct go_encoder *encoder;
    uint64_t first_seq; /* of the open segment */
    uint64_t last_ns;
    bool dirty;  /* the open segment has events that are not committed */
    bool enough; /* it is large enough as it was written */
    struct closed_go_segment *closed, **closed_end;
};

/* ------------------------------------------------------------------------------------------ programs */

static struct go_writer *find_writer(struct trace_writer *writer, int64_t process)
{
    struct go_writer *go = writer->go_writers;

    while (go && go->process != process)
        go = go->next;
    return go;
}

/* NULL: out of memory. */
static struct go_writer *add_writer(struct trace_writer *writer, int64_t process)
{
    struct go_writer *go = calloc(1, sizeof(*go));

    if (!go)
        return NULL;
    go->encoder = go_encoder_new();
    if (!go->encoder) {
        free(go);
        return NULL;
    }
    go->writer = writer;
    go->process = process;
    go->closed_end = &go->closed;
    go->next = writer->go_writers;
    writer->go_writers = go;
    return go;
}

static int queue_wait_reasons(struct trace_writer *writer, const struct go_program_description *program)
{
    static const struct catalog_statement clear = {.what = "cannot write a Go program",
                                                   .sql = "DELETE FROM go_wait_reasons WHERE process_id = ?1",
                                                   .types = "p"};
    static const struct catalog_statement insert = {.what = "cannot write a Go program",
                                                    .sql = "INSERT INTO go_wait_reasons VALUES (?1, ?2, ?3)",
                                                    .types = "pit"};
    int code = catalog_queue_add(&writer->catalog, &clear, 0, program->process_id);

    for (size_t i = 0; i < program->wait_reason_count && !code; i++)
        if (program->wait_reasons[i])
            code = catalog_queue_add(&writer->catalog, &insert, 0, program->process_id, (int64_t)i,
                                     program->wait_reasons[i]);
    return code;
}

int trace_writer_go_program(struct trace_writer *writer, const struct go_program_description *program,
                            struct go_writer **ret_go, struct error *err)
{
    static const struct catalog_statement insert = {
        .what = "cannot write a Go program",
        .sql =
            "INSERT OR REPLACE INTO go_programs (process_id, run_id, image_id, version, operations,"
            " from_start, from_ns) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        .types = "pimtiii"};
    struct go_writer *go = find_writer(writer, program->process_id);

    if (!go)
        go = add_writer(writer, program->process_id);
    if (!go ||
        catalog_queue_add(&writer->catalog, &insert, 0, program->process_id, writer->run_id,
                          program->image_id, program->version, (int64_t)program->operations,
                          (int64_t)program->from_start, (int64_t)program->from_ns) ||
        queue_wait_reasons(writer, program))
        return error_no_memory(err);
    *ret_go = go;
    return 0;
}

/* ------------------------------------------------------------------------------------------ appending */

static int close_segment(struct go_writer *go)
{
    struct closed_go_segment *closed = calloc(1, sizeof(*closed));

    if (!closed || go_encoder_seal(go->encoder, &closed->sealed)) {
        free(closed);
        return -ENOMEM;
    }
    closed->first_seq = go->first_seq;
    go->first_seq += closed->sealed.extent.events;
    *go->closed_end = closed;
    go->closed_end = &closed->next;
    go->writer->closed_bytes += closed->sealed.columns.size;
    go_encoder_clear(go->encoder);
    go->dirty = false;
    return 0;
}

int go_writer_append(struct go_writer *go, const struct process_event *event)
{
    struct process_event timed = *event;
    int code;

    if (timed.ns < go->last_ns)
        timed.ns = go->last_ns;
    code = go_encoder_add(go->encoder, &timed);
    if (code == -E2BIG) {
        code = close_segment(go);
        if (!code)
            code = go_encoder_add(go->encoder, &timed);
    }
    if (code)
        return code;
    go->last_ns = timed.ns;
    go->dirty = true;
    return 0;
}

/* ------------------------------------------------------------------------------------------ flushing */

static int write_segment(struct go_writer *go, sqlite3_stmt *insert, uint64_t first_seq,
                         const struct go_sealed *sealed, struct error *err)
{
    struct trace_writer *writer = go->writer;
    AUTO_BYTES payload = {0}, list = {0};

    if (go_sealed_write(sealed, &writer->numberings[NUMBER_FUNCTION], &payload, &list))
        return error_no_memory(err);
    db_bind(insert, "iiiiiiiibb", writer->run_id,
            numbering_id(&writer->numberings[NUMBER_PROCESS], go->process), (int64_t)first_seq,
            (int64_t)sealed->extent.events, (int64_t)sealed->extent.first_ns, (int64_t)sealed->extent.last_ns,
            (int64_t)GO_CODEC, (int64_t)crc32(0, payload.data, (uInt)payload.size), (const void *)list.data,
            list.size, (const void *)payload.data, payload.size);
    return db_step(writer->db, insert, what, err);
}

static int write_open(struct go_writer *go, sqlite3_stmt *insert, struct error *err)
{
    struct go_sealed sealed;
    int code;

    if (go_encoder_seal(go->encoder, &sealed))
        return error_no_memory(err);
    go->enough = sealed.columns.size >= ENOUGH_BYTES;
    code = write_segment(go, insert, go->first_seq, &sealed, err);
    go_sealed_release(&sealed);
    return code;
}

static int write_all(struct go_writer *go, sqlite3_stmt *insert, struct error *err)
{
    int code = 0;

    for (struct closed_go_segment *closed = go->closed; closed && !code; closed = closed->next)
        code = write_segment(go, insert, closed->first_seq, &closed->sealed, err);
    return code || !go->dirty ? code : write_open(go, insert, err);
}

int go_writers_write(struct trace_writer *writer, struct error *err)
{
    AUTO_STATEMENT *insert = NULL;
    int code;

    if (!writer->go_writers)
        return 0;
    code =
        db_prepare(writer->db,
                   "INSERT INTO go_segments (run_id, process_id, first_seq, event_count, first_ns, last_ns,"
                   " codec, checksum, functions, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
                   " ON CONFLICT (process_id, first_seq) DO UPDATE SET event_count = excluded.event_count,"
                   " last_ns = excluded.last_ns, checksum = excluded.checksum,"
                   " functions = excluded.functions, data = excluded.data",
                   what, &insert, err);
    for (struct go_writer *go = writer->go_writers; go && !code; go = go->next)
        code = write_all(go, insert, err);
    return code;
}

static void free_closed(struct go_writer *go)
{
    for (struct closed_go_segment *closed = go->closed, *next; closed; closed = next) {
        next = closed->next;
        go_sealed_release(&closed->sealed);
        free(closed);
    }
    go->closed = NULL;
    go->closed_end = &go->closed;
}

void go_writers_advance(struct trace_writer *writer)
{
    for (struct go_writer *go = writer->go_writers; go; go = go->next) {
        free_closed(go);
        if (go->dirty && go->enough) {
            go->first_seq += go_encoder_extent(go->encoder).events;
            go_encoder_clear(go->encoder);
        }
        go->dirty = false;
    }
}

void go_writers_free(struct trace_writer *writer)
{
    for (struct go_writer *go = writer->go_writers, *next; go; go = next) {
        next = go->next;
        free_closed(go);
        go_encoder_free(go->encoder);
        free(go);
    }
    writer->go_writers = NULL;
}
