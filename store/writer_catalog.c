/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a run consists of: tags, images, functions, processes, threads. Each call commits by itself. */
#include <errno.h>

#include "store/writer.h"

static const char *const returns_names[] = {
    [TRACE_RETURNS_PROBED] = "probed",
    [TRACE_RETURNS_INFERRED] = "inferred",
    [TRACE_RETURNS_NONE] = "none",
};

int trace_writer_tag(struct trace_writer *writer, const char *key, const char *value, struct error *err)
{
    return db_run(writer->db, "cannot write a tag", err, "INSERT OR REPLACE INTO tags VALUES (?1, ?2, ?3)",
                  "itt", writer->run_id, key, value);
}

int trace_writer_image(struct trace_writer *writer, const struct trace_image_description *image,
                       int64_t *ret_image_id, struct error *err)
{
    static const char what[] = "cannot write an image";
    int code = db_run(writer->db, what, err,
                      "INSERT INTO images (path, build_id, kind) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
                      "ttt", image->path, image->build_id, image->kind);

    if (code)
        return code;
    return db_number(writer->db, what, ret_image_id, err,
                     "SELECT image_id FROM images WHERE path = ?1 AND build_id = ?2 AND kind = ?3", "ttt",
                     image->path, image->build_id ? image->build_id : "", image->kind);
}

/* ------------------------------------------------------------------------------------------ functions */

struct function_statements {
    sqlite3_stmt *find, *insert;
};

static int write_function(sqlite3 *db, const struct function_statements *statements, int64_t image_id,
                          const struct trace_function_description *function, uint32_t *ret_function_id,
                          struct error *err)
{
    static const char what[] = "cannot write a function";
    int64_t id = 0;
    int result;

    db_bind(statements->find, "iit", image_id, (int64_t)function->address, function->name);
    result = sqlite3_step(statements->find);
    if (result == SQLITE_ROW)
        id = sqlite3_column_int64(statements->find, 0);
    sqlite3_reset(statements->find);
    if (result != SQLITE_ROW && result != SQLITE_DONE)
        return db_fail(db, err, what);
    if (!id) {
        db_bind(statements->insert, "itTiiTz", image_id, function->name, function->demangled,
                (int64_t)function->address, (int64_t)function->size, function->file, (int64_t)function->line);
        if (sqlite3_step(statements->insert) != SQLITE_ROW) {
            int code = db_fail(db, err, what);

            sqlite3_reset(statements->insert);
            return code;
        }
        id = sqlite3_column_int64(statements->insert, 0);
        result = sqlite3_reset(statements->insert);
        if (result != SQLITE_OK)
            return db_fail(db, err, what);
    }
    if (id >= TRACESTORE_LOST_FUNCTION)
        return error_say(err, -EOVERFLOW, "%s: the store has too many (use a new one)", what);
    *ret_function_id = (uint32_t)id;
    return 0;
}

static int write_functions(sqlite3 *db, int64_t image_id, const struct trace_function_description *functions,
                           size_t count, uint32_t *ret_function_ids, struct error *err)
{
    static const char what[] = "cannot write functions";
    AUTO_STATEMENT *find = NULL, *insert = NULL;
    int code =
        db_prepare(db, "SELECT function_id FROM functions WHERE image_id = ?1 AND address = ?2 AND name = ?3",
                   what, &find, err);

    if (!code)
        code = db_prepare(db,
                          "INSERT INTO functions (image_id, name, demangled, address, size, file, line)"
                          " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"
                          " ON CONFLICT (image_id, address, name) DO UPDATE SET size = excluded.size"
                          " RETURNING function_id",
                          what, &insert, err);
    for (size_t i = 0; i < count && !code; i++) {
        const struct function_statements statements = {.find = find, .insert = insert};

        code = write_function(db, &statements, image_id, &functions[i], &ret_function_ids[i], err);
    }
    return code;
}

int trace_writer_function(struct trace_writer *writer, int64_t image_id,
                          const struct trace_function_description *function, uint32_t *ret_function_id,
                          struct error *err)
{
    return write_functions(writer->db, image_id, function, 1, ret_function_id, err);
}

int trace_writer_functions(struct trace_writer *writer, int64_t image_id,
                           const struct trace_function_description *functions, size_t count,
                           uint32_t *ret_function_ids, struct error *err)
{
    static const char what[] = "cannot write functions";
    int code = db_begin(writer->db, what, err);

    if (code)
        return code;
    code = write_functions(writer->db, image_id, functions, count, ret_function_ids, err);
    if (!code)
        return db_commit(writer->db, what, err);
    db_rollback(writer->db);
    return code;
}

/* ------------------------------------------------------------------------------------- processes, threads */

int trace_writer_process(struct trace_writer *writer, const struct trace_process_description *process,
                         int64_t *ret_process_id, struct error *err)
{
    int code = db_run(writer->db, "cannot write a process", err,
                      "INSERT INTO processes (run_id, pid, parent_process_id, rank, exe, argv, started_ns)"
                      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                      "iizntti", writer->run_id, (int64_t)process->pid, process->parent_process_id,
                      (int64_t)process->rank, process->exe, process->argv, (int64_t)process->started_ns);

    if (!code)
        *ret_process_id = sqlite3_last_insert_rowid(writer->db);
    return code;
}

int trace_writer_process_end(struct trace_writer *writer, int64_t process_id, uint64_t ended_ns,
                             int exit_status, struct error *err)
{
    return db_run(writer->db, "cannot write a process", err,
                  "UPDATE processes SET ended_ns = ?2, exit_status = ?3 WHERE process_id = ?1", "iin",
                  process_id, (int64_t)ended_ns, (int64_t)exit_status);
}

static int insert_thread(struct trace_writer *writer, const struct trace_thread_description *thread,
                         struct error *err)
{
    static const char what[] = "cannot write a thread";
    int code = 0;

    if (!writer->insert_thread)
        code = db_prepare(writer->db,
                          "INSERT INTO threads (run_id, process_id, tid, label, name, started_ns, returns)"
                          " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                          what, &writer->insert_thread, err);
    if (code)
        return code;
    db_bind(writer->insert_thread, "iiittit", writer->run_id, thread->process_id, (int64_t)thread->tid,
            thread->label, thread->name, (int64_t)thread->started_ns, returns_names[thread->returns]);
    return db_step(writer->db, writer->insert_thread, what, err);
}

int trace_writer_thread(struct trace_writer *writer, const struct trace_thread_description *thread,
                        struct thread_writer **ret_thread, struct error *err)
{
    struct thread_writer *made = calloc(1, sizeof(*made));
    int code;

    if (!made)
        return error_no_memory(err);
    code = insert_thread(writer, thread, err);
    if (code) {
        free(made);
        return code;
    }
    made->writer = writer;
    made->thread_id = sqlite3_last_insert_rowid(writer->db);
    segment_builder_init(&made->builder, CODEC_DEFAULT,
                         thread->returns == TRACE_RETURNS_NONE ? SEGMENT_CALLS_ONLY : 0);
    made->next = writer->threads;
    writer->threads = made;
    *ret_thread = made;
    return 0;
}

int trace_writer_relabel_process(struct trace_writer *writer, int64_t process_id, unsigned number,
                                 struct error *err)
{
    return db_run(writer->db, "cannot label threads", err,
                  "UPDATE threads SET label = ?2 || substr(label, instr(label, '.')) WHERE process_id = ?1",
                  "ii", process_id, (int64_t)number);
}

int64_t thread_writer_id(const struct thread_writer *thread)
{
    return thread->thread_id;
}
