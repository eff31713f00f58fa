/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What becomes of a run while it is written: a process goes on with another program, or the run was in vain.
 */
#include "store/writer.h"

int trace_writer_exec(struct trace_writer *writer, int64_t process_id,
                      const struct trace_program_description *program, struct error *err)
{
    static const char what[] = "cannot write a process";
    int code = db_run(writer->db, what, err,
                      "UPDATE processes SET exe = ?2, argv = ?3, rank = ?4 WHERE process_id = ?1", "ittn",
                      process_id, program->exe, program->argv, (int64_t)program->rank);

    if (code || program->returns != TRACE_RETURNS_INFERRED)
        return code;
    return db_run(writer->db, what, err,
                  "UPDATE threads SET returns = 'inferred' WHERE process_id = ?1 AND ended_ns IS NULL", "i",
                  process_id);
}

int thread_writer_infers(struct thread_writer *thread, struct error *err)
{
    return db_run(thread->writer->db, "cannot write a thread", err,
                  "UPDATE threads SET returns = 'inferred' WHERE thread_id = ?1 AND returns = 'probed'", "i",
                  thread->thread_id);
}

int trace_writer_abandon(struct trace_writer *writer, struct error *err)
{
    int code =
        db_run(writer->db, "cannot delete the run", err,
               "UPDATE runs SET recorder = '' WHERE run_id = ?1 AND ended_ns IS NULL", "i", writer->run_id);

    return code ? code : tracestore_delete_run(writer->store, writer->run_id, err);
}
