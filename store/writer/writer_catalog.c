/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a run consists of: tags, processes, threads, losses, blind spots. All of it waits for the next flush.
 */
#include <errno.h>

#include "base/error.h"
#include "store/writer/writer.h"

int trace_writer_tag(struct trace_writer *writer, const char *key, const char *value, struct error *err)
{
    static const struct catalog_statement insert = {.what = "cannot write a tag",
                                                    .sql = "INSERT OR REPLACE INTO tags VALUES (?1, ?2, ?3)",
                                                    .types = "itt"};

    return catalog_queue_add(&writer->catalog, &insert, 0, writer->run_id, key, value) ? error_no_memory(err)
                                                                                       : 0;
}

/* ------------------------------------------------------------------------------------- processes, threads */

int trace_writer_process(struct trace_writer *writer, const struct trace_process_description *process,
                         int64_t *ret_process_id, struct error *err)
{
    static const struct catalog_statement insert = {
        .what = "cannot write a process",
        .sql =
            "INSERT INTO processes (run_id, pid, parent_process_id, rank, exe, argv, started_ns)"
            " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING process_id",
        .types = "iipntti",
        .gives_id = true,
        .gives = NUMBER_PROCESS};
    int64_t number = numbering_take(&writer->numberings[NUMBER_PROCESS]);

    if (catalog_queue_add(&writer->catalog, &insert, number, writer->run_id, (int64_t)process->pid,
                          process->parent_process_id, (int64_t)process->rank, process->exe, process->argv,
                          (int64_t)process->started_ns))
        return error_no_memory(err);
    *ret_process_id = number;
    return 0;
}

int trace_writer_process_end(struct trace_writer *writer, int64_t process_id, uint64_t ended_ns,
                             int exit_status, struct error *err)
{
    static const struct catalog_statement update = {
        .what = "cannot write a process",
        .sql = "UPDATE processes SET ended_ns = ?2, exit_status = ?3 WHERE process_id = ?1",
        .types = "pin"};

    return catalog_queue_add(&writer->catalog, &update, 0, process_id, (int64_t)ended_ns,
                             (int64_t)exit_status)
               ? error_no_memory(err)
               : 0;
}

int trace_writer_exec(struct trace_writer *writer, int64_t process_id,
                      const struct trace_program_description *program, struct error *err)
{
    static const struct catalog_statement
        update = {.what = "cannot write a process",
                  .sql = "UPDATE processes SET exe = ?2, argv = ?3, rank = ?4 WHERE process_id = ?1",
                  .types = "pttn"},
        infer = {.what = "cannot write a thread",
                 .sql = "UPDATE threads SET returns = 'inferred' WHERE process_id = ?1 AND ended_ns IS NULL",
                 .types = "p"};

    if (catalog_queue_add(&writer->catalog, &update, 0, process_id, program->exe, program->argv,
                          (int64_t)program->rank) ||
        (program->returns == TRACE_RETURNS_INFERRED &&
         catalog_queue_add(&writer->catalog, &infer, 0, process_id)))
        return error_no_memory(err);
    return 0;
}

int trace_writer_thread(struct trace_writer *writer, const struct trace_thread_description *thread,
                        struct thread_writer **ret_thread, struct error *err)
{
    static const struct catalog_statement insert = {
        .what = "cannot write a thread",
        .sql =
            "INSERT INTO threads (run_id, process_id, tid, label, name, started_ns, returns)"
            " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING thread_id",
        .types = "ipittit",
        .gives_id = true,
        .gives = NUMBER_THREAD};
    struct thread_writer *made = calloc(1, sizeof(*made));
    uint8_t flags = (uint8_t)((thread->returns == TRACE_RETURNS_NONE ? SEGMENT_CALLS_ONLY : 0u) |
                              (thread->call_sites ? SEGMENT_CALL_SITES : 0u));

    if (!made)
        return error_no_memory(err);
    made->number = numbering_take(&writer->numberings[NUMBER_THREAD]);
    if (catalog_queue_add(&writer->catalog, &insert, made->number, writer->run_id, thread->process_id,
                          (int64_t)thread->tid, thread->label, thread->name, (int64_t)thread->started_ns,
                          trace_returns_name(thread->returns))) {
        free(made);
        return error_no_memory(err);
    }
    made->writer = writer;
    segment_builder_init(&made->builder, CODEC_DEFAULT, flags);
    made->next = writer->threads;
    writer->threads = made;
    *ret_thread = made;
    return 0;
}

int64_t thread_writer_id(const struct thread_writer *thread)
{
    return numbering_id(&thread->writer->numberings[NUMBER_THREAD], thread->number);
}

uint64_t thread_writer_events(const struct thread_writer *thread)
{
    return thread->builder.first_seq + thread->builder.event_count;
}

int thread_writer_infers(struct thread_writer *thread, struct error *err)
{
    static const struct catalog_statement update = {
        .what = "cannot write a thread",
        .sql = "UPDATE threads SET returns = 'inferred' WHERE thread_id = ?1 AND returns = 'probed'",
        .types = "h"};

    return catalog_queue_add(&thread->writer->catalog, &update, 0, thread->number) ? error_no_memory(err) : 0;
}

int thread_writer_settled(struct thread_writer *thread, struct error *err)
{
    static const struct catalog_statement update = {
        .what = "cannot write a thread",
        .sql = "UPDATE threads SET returns = 'settled' WHERE thread_id = ?1 AND returns <> 'none'",
        .types = "h"};

    return catalog_queue_add(&thread->writer->catalog, &update, 0, thread->number) ? error_no_memory(err) : 0;
}

int thread_writer_name(struct thread_writer *thread, const char *name, struct error *err)
{
    static const struct catalog_statement update = {
        .what = "cannot write a thread",
        .sql = "UPDATE threads SET name = ?2 WHERE thread_id = ?1 AND name <> ?2",
        .types = "ht"};

    return catalog_queue_add(&thread->writer->catalog, &update, 0, thread->number, name)
               ? error_no_memory(err)
               : 0;
}

int writer_queue_thread_end(struct thread_writer *thread, uint64_t ns)
{
    static const struct catalog_statement update = {
        .what = "cannot write a thread",
        .sql = "UPDATE threads SET ended_ns = ?2 WHERE thread_id = ?1",
        .types = "hi"};

    return catalog_queue_add(&thread->writer->catalog, &update, 0, thread->number, (int64_t)ns);
}

int trace_writer_relabel_process(struct trace_writer *writer, int64_t process_id, unsigned number,
                                 struct error *err)
{
    static const struct catalog_statement update = {
        .what = "cannot label threads",
        .sql = "UPDATE threads SET label = ?2 || substr(label, instr(label, '.')) WHERE process_id = ?1",
        .types = "pi"};

    return catalog_queue_add(&writer->catalog, &update, 0, process_id, (int64_t)number) ? error_no_memory(err)
                                                                                        : 0;
}

/* ------------------------------------------------------------------------------------ losses, blind spots */

int writer_queue_loss(struct trace_writer *writer, int64_t thread, int64_t seq, uint64_t ns,
                      const struct lost_events *lost, const char *cause)
{
    static const struct catalog_statement insert = {
        .what = "cannot write a loss",
        .sql =
            "INSERT INTO losses (run_id, thread_id, seq, ns, count, calls, returns, cause)"
            " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        .types = "ihniznnt"};

    return catalog_queue_add(&writer->catalog, &insert, 0, writer->run_id, thread, seq, (int64_t)ns,
                             (int64_t)lost->count, lost->calls, lost->returns, cause);
}

int trace_writer_loss(struct trace_writer *writer, uint64_t ns, uint64_t count, const char *cause,
                      struct error *err)
{
    const struct lost_events lost = {.count = count, .calls = -1, .returns = -1};

    return writer_queue_loss(writer, 0, -1, ns, &lost, cause) ? error_no_memory(err) : 0;
}

int trace_writer_blind(struct trace_writer *writer, uint32_t function_id, uint64_t from_ns, uint64_t to_ns,
                       const char *cause, double calls_per_second, struct error *err)
{
    static const struct catalog_statement insert = {
        .what = "cannot write a blind spot",
        .sql =
            "INSERT INTO blind (run_id, function_id, from_ns, to_ns, cause, calls_per_second)"
            " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        .types = "ifiztd"};

    return catalog_queue_add(&writer->catalog, &insert, 0, writer->run_id, (int64_t)function_id,
                             (int64_t)from_ns, (int64_t)to_ns, cause, calls_per_second)
               ? error_no_memory(err)
               : 0;
}

int trace_writer_blind_end(struct trace_writer *writer, uint32_t function_id, uint64_t from_ns,
                           uint64_t to_ns, int64_t calls_missed, double calls_per_second, struct error *err)
{
    static const struct catalog_statement update = {
        .what = "cannot write a blind spot",
        .sql =
            "UPDATE blind SET to_ns = ?4, calls_missed = ?5, calls_per_second = ?6"
            " WHERE run_id = ?1 AND function_id = ?2 AND from_ns = ?3",
        .types = "ifiznd"};

    return catalog_queue_add(&writer->catalog, &update, 0, writer->run_id, (int64_t)function_id,
                             (int64_t)from_ns, (int64_t)to_ns, calls_missed, calls_per_second)
               ? error_no_memory(err)
               : 0;
}
