/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Beginning and ending a run, and what lies between: the public face of the writer. */
#include "store/writer/writer.h"

#include <errno.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/error.h"
#include "store/db/name_index.h"

#ifndef TRACECTL_VERSION
#define TRACECTL_VERSION "unknown"
#endif

#define SEGMENT_BYTES ((size_t)64 << 10)
#define SEGMENT_EVENTS ((uint64_t)4 << 20)

DEFINE_CLEANUP(cleanup_writer, struct trace_writer *, trace_writer_free)

/* ------------------------------------------------------------------------------------------ begin */

/* "PROGRAM-RUN_ID", PROGRAM being the last part of the command's first word. */
static int make_name(struct trace_writer *writer, const char *command, struct error *err)
{
    AUTO_FREE char *name = NULL;
    const char *word = command ? command : "", *start = word;
    size_t length = strcspn(word, " ");

    for (size_t i = 0; i < length; i++)
        if (word[i] == '/' && i + 1 < length)
            start = word + i + 1;
    length -= (size_t)(start - word);
    if (!length) {
        start = "run";
        length = 3;
    }
    if (asprintf(&name, "%.*s-%lld", (int)length, start, (long long)writer->run_id) < 0)
        return error_no_memory(err);
    return db_run(writer->db, "cannot begin a run", err, "UPDATE runs SET name = ?2 WHERE run_id = ?1", "it",
                  writer->run_id, name);
}

static int insert_run(struct trace_writer *writer, const struct trace_run_description *run, struct error *err)
{
    static const char what[] = "cannot begin a run";
    AUTO_FREE char *recorder = NULL;
    struct utsname host;
    int code;

    if (recorder_identity(getpid(), &recorder))
        return error_no_memory(err);
    uname(&host);
    code =
        db_run(writer->db, what, err,
               "INSERT INTO runs (name, command, host, kernel, started_ns, options, tool_version, recorder)"
               " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
               "ttttittt", run->name, run->command, host.nodename, host.release, (int64_t)run->started_ns,
               run->options, TRACECTL_VERSION, recorder);
    if (code)
        return code;
    writer->run_id = sqlite3_last_insert_rowid(writer->db);
    if (!run->name)
        code = make_name(writer, run->command, err);
    if (!code)
        code = db_run(writer->db, what, err,
                      "INSERT INTO losses (run_id, ns, cause) VALUES (?1, ?2, 'unfinished')", "ii",
                      writer->run_id, (int64_t)run->started_ns);
    return code;
}

/* Numbers of a run are counted on from the largest one there is: far more than were ever given. */
#define NUMBER_MOST (INT64_MAX / 2)

/* Of each kind the numbers continue after the largest id. */
static int start_numbers(struct trace_writer *writer, struct error *err)
{
    static const char *const questions[NUMBER_KINDS] = {
        [NUMBER_IMAGE] = "SELECT max(image_id) FROM images",
        [NUMBER_FUNCTION] = "SELECT max(function_id) FROM functions",
        [NUMBER_SITE] = "SELECT max(site_id) FROM call_sites",
        [NUMBER_PROCESS] = "SELECT max(process_id) FROM processes",
        [NUMBER_THREAD] = "SELECT max(thread_id) FROM threads",
    };

    for (int kind = 0; kind < NUMBER_KINDS; kind++) {
        int64_t largest;
        int code = db_number(writer->db, "cannot begin a run", &largest, err, questions[kind], "");

        if (code)
            return code;
        if (largest > NUMBER_MOST)
            return error_say(err, -EBADMSG,
                             "cannot begin a run in store %s: it has no numbers left (verify tells more)",
                             writer->store->path);
        numbering_init(&writer->numberings[kind], largest);
    }
    return 0;
}

static void set_limits(struct trace_writer *writer, const struct trace_writer_options *options)
{
    writer->segment_bytes = options && options->segment_bytes ? options->segment_bytes : SEGMENT_BYTES;
    writer->segment_events = options && options->segment_events ? options->segment_events : SEGMENT_EVENTS;
    if (writer->segment_events > SEGMENT_MAX_EVENTS / 2) /* what is appended at once may go past it */
        writer->segment_events = SEGMENT_MAX_EVENTS / 2;
    writer->memory_limit = options && options->memory_bytes ? options->memory_bytes : SIZE_MAX;
}

int trace_writer_begin(struct tracestore *store, const struct trace_run_description *run,
                       const struct trace_writer_options *options, struct trace_writer **ret_writer,
                       struct error *err)
{
    CLEANUP(cleanup_writer) struct trace_writer *writer = calloc(1, sizeof(*writer));
    int code;

    if (!writer)
        return error_no_memory(err);
    writer->store = store;
    writer->db = store->db;
    writer->closed_end = &writer->closed;
    set_limits(writer, options);
    if (options && options->window_ns) {
        writer->window = window_new(options->window_ns, options->window_bytes, run->started_ns);
        if (!writer->window)
            return error_no_memory(err);
    }
    code = db_begin(writer->db, "cannot begin a run", err);
    if (code)
        return code;
    code = insert_run(writer, run, err);
    if (!code)
        code = start_numbers(writer, err);
    if (code) {
        db_rollback(writer->db);
        return code;
    }
    code = db_commit(writer->db, "cannot begin a run", err);
    if (!code)
        *ret_writer = take_pointer(writer);
    return code;
}

int64_t trace_writer_run_id(const struct trace_writer *writer)
{
    return writer->run_id;
}

size_t trace_writer_pending_bytes(const struct trace_writer *writer)
{
    return writer->closed_bytes;
}

struct trace_writer_memory trace_writer_memory(const struct trace_writer *writer)
{
    return (struct trace_writer_memory){.peak_bytes = writer->memory_peak,
                                        .closed_early = writer->closed_early};
}

/* --------------------------------------------------------------------------------------- flush, end, free */

int trace_writer_flush(struct trace_writer *writer, uint64_t now_ns, struct error *err)
{
    return writer_flush(writer, now_ns, NULL, err);
}

int trace_writer_end(struct trace_writer *writer, uint64_t ended_ns, int exit_status, struct error *err)
{
    const struct writer_ending ending = {.ended_ns = ended_ns, .exit_status = exit_status};
    int code;

    for (struct thread_writer *thread = writer->threads; thread; thread = thread->next) {
        if (!thread->builder.event_count)
            continue;
        if (writer_close_segment(thread))
            return error_no_memory(err);
        writer_mark_dirty(thread);
    }
    code = writer_flush(writer, ended_ns, &ending, err);
    if (!code)
        name_index_update(writer->db, NULL); /* the run is complete without; the next one tries again */
    return code;
}

int store_end_cut_run(sqlite3 *db, int64_t run_id, struct error *err)
{
    return db_run(db, "cannot end the run", err,
                  "UPDATE runs SET ended_ns = coalesce((SELECT max(ns) FROM losses l"
                  " WHERE l.run_id = runs.run_id AND l.cause = 'unfinished'), started_ns) WHERE run_id = ?1",
                  "i", run_id);
}

int trace_writer_cut(struct trace_writer *writer, uint64_t now_ns, const char *cause, struct error *err)
{
    int code = db_begin(writer->db, "cannot end the run", err);

    if (code)
        return code;
    code = db_run(writer->db, "cannot end the run", err,
                  "INSERT INTO losses (run_id, ns, cause) VALUES (?1, ?2, ?3)", "iit", writer->run_id,
                  (int64_t)now_ns, cause);
    if (!code)
        code = store_end_cut_run(writer->db, writer->run_id, err);
    if (!code)
        return db_commit(writer->db, "cannot end the run", err);
    db_rollback(writer->db);
    return code;
}

int trace_writer_abandon(struct trace_writer *writer, struct error *err)
{
    int code =
        db_run(writer->db, "cannot delete the run", err,
               "UPDATE runs SET recorder = '' WHERE run_id = ?1 AND ended_ns IS NULL", "i", writer->run_id);

    return code ? code : tracestore_delete_run(writer->store, writer->run_id, err);
}

void writer_free_thread(struct thread_writer *thread)
{
    segment_builder_release(&thread->builder);
    journal_mark_release(&thread->mark);
    closed_segment_free(thread->window.resting);
    free(thread);
}

void trace_writer_free(struct trace_writer *writer)
{
    if (!writer)
        return;
    for (struct thread_writer *thread = writer->threads, *next; thread; thread = next) {
        next = thread->next;
        writer_free_thread(thread);
    }
    for (struct closed_segment *closed = writer->closed, *next; closed; closed = next) {
        next = closed->next;
        closed_segment_free(closed);
    }
    window_free(writer->window);
    process_writers_free(writer);
    catalog_queue_release(&writer->catalog);
    shared_rows_release(&writer->shared);
    for (int kind = 0; kind < NUMBER_KINDS; kind++)
        numbering_release(&writer->numberings[kind]);
    sqlite3_finalize(writer->find_function);
    sqlite3_finalize(writer->find_site);
    free(writer);
}
