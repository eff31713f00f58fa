/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Processes whose synchronisation is recorded, channels, declared functions. The events: process_writer.c. */
#include "base/error.h"
#include "store/streams/sync_events.h"
#include "store/writer/writer.h"

static const char what[] = "cannot write what the run says of synchronisation";

int trace_writer_sync_process(struct trace_writer *writer, const struct sync_process_description *process,
                              struct process_writer **ret_sync, struct error *err)
{
    static const struct catalog_statement insert = {
        .what = what,
        .sql =
            "INSERT OR IGNORE INTO sync_processes (process_id, run_id, from_ns, from_start, library, why_not)"
            " VALUES (?1, ?2, ?3, ?4, NULL, 'it was not looked for')",
        .types = "piii"};
    struct process_writer *sync = process_writer_get(writer, PROCESS_STREAM_SYNC, process->process_id);

    if (!sync || catalog_queue_add(&writer->catalog, &insert, 0, process->process_id, writer->run_id,
                                   (int64_t)process->from_ns, (int64_t)process->from_start))
        return error_no_memory(err);
    *ret_sync = sync;
    return 0;
}

int trace_writer_sync_library(struct trace_writer *writer, int64_t process_id, const char *library,
                              const char *why, struct error *err)
{
    static const struct catalog_statement update = {
        .what = what,
        .sql = "UPDATE sync_processes SET library = ?2, why_not = ?3 WHERE process_id = ?1",
        .types = "pTT"};

    return catalog_queue_add(&writer->catalog, &update, 0, process_id, library, why) ? error_no_memory(err)
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
