/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which processes are Go programs. Their events: process_writer.c. */
#include "base/error.h"
#include "store/streams/go_events.h"
#include "store/writer/writer.h"

static const char what[] = "cannot write a Go program";

static int queue_wait_reasons(struct trace_writer *writer, const struct go_program_description *program)
{
    static const struct catalog_statement clear = {
        .what = what, .sql = "DELETE FROM go_wait_reasons WHERE process_id = ?1", .types = "p"};
    static const struct catalog_statement insert = {
        .what = what, .sql = "INSERT INTO go_wait_reasons VALUES (?1, ?2, ?3)", .types = "pit"};
    int code = catalog_queue_add(&writer->catalog, &clear, 0, program->process_id);

    for (size_t i = 0; i < program->wait_reason_count && !code; i++)
        if (program->wait_reasons[i])
            code = catalog_queue_add(&writer->catalog, &insert, 0, program->process_id, (int64_t)i,
                                     program->wait_reasons[i]);
    return code;
}

int trace_writer_go_program(struct trace_writer *writer, const struct go_program_description *program,
                            struct process_writer **ret_go, struct error *err)
{
    static const struct catalog_statement insert = {
        .what = what,
        .sql =
            "INSERT OR REPLACE INTO go_programs (process_id, run_id, image_id, version, operations,"
            " from_start, from_ns) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        .types = "pimtiii"};
    struct process_writer *go = process_writer_get(writer, PROCESS_STREAM_GO, program->process_id);

    if (!go ||
        catalog_queue_add(&writer->catalog, &insert, 0, program->process_id, writer->run_id,
                          program->image_id, program->version, (int64_t)program->operations,
                          (int64_t)program->from_start, (int64_t)program->from_ns) ||
        queue_wait_reasons(writer, program))
        return error_no_memory(err);
    *ret_go = go;
    return 0;
}
