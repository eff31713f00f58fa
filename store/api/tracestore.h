/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libtracestore: runs of call traces in one SQLite file. `pkg-config tracestore` knows how to build with it;
 * docs/examples/two_recorders.c is a program that writes and reads.
 *
 * A store holds any number of runs; a run holds processes, their threads, and for each thread one stream of
 * events: calls, returns and places where events were lost. docs/trace-format.md describes the file byte by
 * byte, docs/sql.md the tables.
 *
 * Conventions. Functions return 0 on success and a negative errno on failure, and then fill `err` (which may
 * be NULL) with a line for people. Outputs are named ret_*, come last but for `err`, and are untouched on
 * failure. Times are nanoseconds of CLOCK_REALTIME. Strings are UTF-8, borrowed for the call when passed in.
 * A handle belongs to one thread at a time; several handles, in one process or many, may use one store at
 * once: readers never block the writer.
 */
#ifndef TRACESTORE_H
#define TRACESTORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error; /* base/error.h */

#ifdef __cplusplus
extern "C" {
#endif

struct sqlite3;
struct tracestore;
struct trace_writer;
struct thread_writer;
struct event_iter;

/* ------------------------------------------------------------------------------------------ the store */

enum tracestore_mode {
    TRACESTORE_READ,   /* the file must exist; nothing is written */
    TRACESTORE_CHANGE, /* the file must exist; runs may be deleted */
    TRACESTORE_CREATE, /* made when missing */
};

/* Opens the store at `path`. Fails with -ENOENT (no such file), -EINVAL (not a store), -ENOTSUP (written by a
 * newer tracectl with an incompatible feature), or what SQLite met. The virtual tables and the views of
 * docs/sql.md are there on tracestore_db(). Free with tracestore_free. */
int tracestore_open(const char *path, enum tracestore_mode mode, struct tracestore **ret_store,
                    struct error *err);

/* Accepts NULL. No writer or iterator of this store may be in use any more. */
void tracestore_free(struct tracestore *store);

/* The SQLite connection, for queries; it lives as long as the store. In TRACESTORE_READ it is read only. */
struct sqlite3 *tracestore_db(struct tracestore *store);

/* ------------------------------------------------------------------------------------------ catalog */

#define TRACESTORE_NO_FUNCTION 0u            /* the function of a return */
#define TRACESTORE_LOST_FUNCTION 0xffffffffu /* the function of a lost event */

struct tracestore_run {
    int64_t run_id;
    char *name, *command, *host, *kernel, *options, *tool_version; /* never NULL */
    uint64_t started_ns, ended_ns; /* ended_ns 0: recording, or its recorder died */
    bool unfinished;               /* what came after its last events is not known */
    bool has_exit_status;
    int exit_status; /* of the command: 0 to 255, or 128 + the signal that ended it */
};

/* Finds the run that `name` means: a number, a name (the newest run of that name), "latest" or "latest~N".
 * Fails with -ENOENT. Free with tracestore_run_release. */
int tracestore_find_run(struct tracestore *store, const char *name, struct tracestore_run *ret_run,
                        struct error *err);
void tracestore_run_release(struct tracestore_run *run);

/* Removes a run with all that belongs to it alone, in one transaction. -EBUSY when a live recorder writes it.
 */
int tracestore_delete_run(struct tracestore *store, int64_t run_id, struct error *err);

/* ------------------------------------------------------------------------------------------ keeping room */

/* What a store keeps; 0: without limit. */
struct trace_retention {
    uint64_t bytes;  /* of the database's pages in use */
    uint64_t age_ns; /* since the end of a run */
    uint64_t runs;
    int64_t spare_run; /* this run stays, whatever the rest says; 0: none */
};

/* What has been done, and what is left to do; zeroed by the caller before the first step. */
struct trace_retained {
    uint64_t runs;   /* deleted */
    bool images_due; /* images may have become unused */
    bool space_due;  /* free pages are to be cut off the file, and its log emptied: set it to have that done
                        in any case */
};

/* Takes one step, of a few milliseconds, to what `keep` says: deletes a part of the oldest run that is too
 * much, then what no run mentions any more, then cuts free pages off the file. Never touches a run that a
 * live recorder writes. Returns 1 when there may be more to do, 0 when there is not, <0. */
int tracestore_retain(struct tracestore *store, const struct trace_retention *keep, uint64_t now_ns,
                      struct trace_retained *retained, struct error *err);

/* The disk is full: gives up what is set aside for the log, deletes the oldest run that nobody records, and
 * gives its space back. 1: it is gone; 0: there is none. */
int tracestore_make_room(struct tracestore *store, uint64_t now_ns, struct trace_retained *retained,
                         struct error *err);

/* The store is kept below `bytes`: this connection copies the log into the database before it takes an eighth
 * of that. */
void tracestore_keep_log_short(struct tracestore *store, uint64_t bytes);

/* Sets room aside on the store's disk, up to 8 MiB of what is free, if it has not; and gives it up again (and
 * empties the log), so that what must be told when the disk is full can be written. Half of the room stays
 * set aside until the store is closed, for what the log has by then. */
void tracestore_reserve(struct tracestore *store);
void tracestore_use_reserve(struct tracestore *store);

struct tracestore_totals {
    uint64_t events, calls, returns,
        lost;             /* lost: events known to be missing; see losses for unknown numbers */
    uint64_t go_events;   /* of goroutines (store/streams/go_events.h); not among `events` */
    uint64_t sync_events; /* of synchronisation (store/streams/sync_events.h); not among `events` */
    uint64_t threads, functions, muted_functions;
    uint64_t segments;      /* of calls */
    uint64_t stored_bytes;  /* segment payload with its headers, journal and goroutine events included */
    uint64_t catalog_bytes; /* of catalog rows that this run needs, and of index_bytes */
    uint64_t index_bytes;   /* of the entries of these rows in indexes */
    uint64_t raw_bytes;     /* 2 bytes an event, ParLOT's measure */
    uint64_t waited_ns;     /* how long threads waited for the recorder, all together: the tag 'waited ns' */
    bool loss_unknown;      /* there is a loss of unknown size, or the recorder has not ended the run */
    bool complete;          /* nothing was lost, and no function was excluded or not recorded */
};

/* Sums of a run, from the catalog: no segment is decoded. */
int tracestore_run_totals(struct tracestore *store, int64_t run_id, struct tracestore_totals *ret_totals,
                          struct error *err);

/* What a reader of totals reads besides sums of rows; the members of parts that it does not read are 0. */
enum tracestore_totals_part {
    TRACESTORE_CALLS = 1,   /* calls, returns, functions: the lists of functions of all segments are read */
    TRACESTORE_CATALOG = 2, /* catalog_bytes, index_bytes, and the above: some 50 statements a run */
};

/* The sums of many runs, in one snapshot of the store: for lists of runs. */
struct tracestore_totals_reader;

#define AUTO_TOTALS_READER __attribute__((cleanup(tracestore_totals_cleanup))) struct tracestore_totals_reader

/* Begins a snapshot, unless the connection is in a transaction. `parts`: a sum of tracestore_totals_part.
 * `store` must live until the reader is closed. Close with tracestore_totals_close. */
int tracestore_totals_open(struct tracestore *store, unsigned parts,
                           struct tracestore_totals_reader **ret_reader, struct error *err);
/* Three statements a run that is not being recorded, or four. A run that does not exist has zeroes. -EBADMSG: a
 * value of the run is not of its column's type; the reader may read other runs. */
int tracestore_totals_read(struct tracestore_totals_reader *reader, int64_t run_id,
                           struct tracestore_totals *ret_totals, struct error *err);
/* Ends the snapshot. NULL: nothing. */
void tracestore_totals_close(struct tracestore_totals_reader *reader);

static inline void tracestore_totals_cleanup(struct tracestore_totals_reader **reader)
{
    tracestore_totals_close(*reader);
}

/* How the returns of a thread are known, which decides what its calls without a return mean. */
enum trace_returns {
    TRACE_RETURNS_PROBED,   /* every return was seen: a call without one is still open */
    TRACE_RETURNS_INFERRED, /* returns follow from later events: the innermost calls may have returned */
    TRACE_RETURNS_NONE,     /* calls only */
    TRACE_RETURNS_SETTLED,  /* inferred, and at the end the stack told which calls are open */
};

/* "probed", "inferred", "none" or "settled"; and back, where every other word means probed. */
const char *trace_returns_name(enum trace_returns returns);
enum trace_returns trace_returns_parse(const char *name);

/* Whether a call without a return is known to be open. */
static inline bool trace_returns_tell_open(enum trace_returns returns)
{
    return returns == TRACE_RETURNS_PROBED || returns == TRACE_RETURNS_SETTLED;
}

struct tracestore_thread {
    int64_t thread_id, run_id, process_id;
    int32_t tid;
    char *label, *name; /* label "P.T"; name may be "" */
    uint64_t events;
    uint64_t started_ns, ended_ns; /* ended_ns 0: its end was not seen */
    enum trace_returns returns;
};

/* The threads of a run that have events, ordered by label (numerically). Free with tracestore_threads_free.
 */
int tracestore_threads(struct tracestore *store, int64_t run_id, struct tracestore_thread **ret_threads,
                       size_t *ret_count, struct error *err);
void tracestore_threads_free(struct tracestore_thread *threads, size_t count);

struct tracestore_function {
    uint32_t function_id;
    char *name;      /* as the image spells it: mangled, "NAME@plt" for stubs */
    char *demangled; /* for people: demangled, or the alias by which the recording asked for it; equal to name
                        where there is nothing else to show */
    char *image;     /* path of the image */
    char *file;      /* source file, "" when unknown */
    int line;        /* 0 when unknown */
    char **aliases;  /* other names of its address, spelled as `name`, up to a NULL; NULL: none */
};

/* The functions called in a run, by function_id. Free with tracestore_functions_free. */
int tracestore_functions(struct tracestore *store, int64_t run_id, struct tracestore_function **ret_functions,
                         size_t *ret_count, struct error *err);
void tracestore_functions_free(struct tracestore_function *functions, size_t count);

/* ----------------------------------------------------------------------------------------- reading events */

enum event_kind { EVENT_RETURN = 0, EVENT_CALL = 1, EVENT_LOST = 2 };

struct event {
    uint64_t seq;      /* position in the thread's stream, from 0, without gaps */
    uint64_t ns;       /* when, 0 when the run kept no times */
    uint64_t ns_error; /* the event happened in [ns, ns + ns_error] */
    uint32_t
        function;   /* function_id of a call and of the call that a return ends; see above for the others */
    uint32_t depth; /* open calls around it: a call and its return have the same depth */
    uint32_t kind;  /* enum event_kind */
    uint32_t call_site; /* of a call: site_id of where it was called from; 0: unknown, or not a call */
    bool assumed; /* of a call: the call around it may have returned unseen, so that it is inside another */
};

/* Iterates the stream of one thread from `first_seq` on, in order, committed events only, in memory bounded
 * by one segment. event_iter_next returns 0 with an event, 1 at the end, <0 on error (-EBADMSG: a damaged
 * segment; the message names it, and the next call continues after it). */
int event_iter_open(struct tracestore *store, int64_t thread_id, uint64_t first_seq,
                    struct event_iter **ret_iter, struct error *err);
int event_iter_next(struct event_iter *iter, struct event *ret_event, struct error *err);
void event_iter_free(struct event_iter *iter);

/* Segments (and open tails of streams) whose events this process has decoded so far, by iterators and by
 * queries: the difference over a query tells what it had to look at. In SQL: decoded_segments(). */
uint64_t tracestore_decoded_segments(void);

/* ------------------------------------------------------------------------------------------ writing a run */

struct trace_run_description {
    const char *name; /* NULL: a name is made from the command and the run's number */
    const char *command, *options;
    uint64_t started_ns;
};

struct trace_writer_options {
    size_t segment_bytes;    /* a segment is closed at this payload size; 0: 64 KiB */
    uint64_t segment_events; /* or at this number of events; 0: 4 Mi */
    /* When the open segments of all threads take more memory, some are closed early; 0: no limit. It is
     * passed a little while threads are many and small: up to 32 KiB each are left to those that had events
     * of late. */
    size_t memory_bytes;
    /* A flight recorder's window: at each flush what is older than this is deleted, and so is the oldest when
     * the rest takes more than window_bytes (0: no limit). Such a run is for tracestore_commit_window alone,
     * in a store of its own; neither goroutine nor synchronisation events may be in it. 0: everything stays.
     */
    uint64_t window_ns;
    size_t window_bytes;
};

/*
 * What a run consists of (tags, images, functions, call sites, processes, threads, losses, blind spots) is
 * written by the next flush, in the same transaction as the events that name it. The functions below only
 * fail with -ENOMEM, or -EOVERFLOW when the store has too many of a kind; a store that is locked or full
 * makes the flush fail, and it is made again.
 *
 * Ids given out before a flush are the ids that the rows will have, unless another recorder adds rows to the
 * same store meanwhile: use them with this writer only.
 */

/* Begins a run. Until trace_writer_end the run carries a loss of cause 'unfinished' (see docs/sql.md), so
 * that a recorder killed at any moment leaves a store that says so. `options` may be NULL. */
int trace_writer_begin(struct tracestore *store, const struct trace_run_description *run,
                       const struct trace_writer_options *options, struct trace_writer **ret_writer,
                       struct error *err);
int64_t trace_writer_run_id(const struct trace_writer *writer);

/* Memory that segments take which are closed but not yet flushed: flush earlier when it grows. */
size_t trace_writer_pending_bytes(const struct trace_writer *writer);

/* How far the window of a writer with window_ns reaches back. */
struct trace_writer_window {
    uint64_t from_ns; /* everything from here on is kept; 0: everything is */
    size_t bytes;     /* of the segments that are kept */
    uint64_t dropped_events;
    bool too_much; /* window_bytes was reached: at times it was shorter than window_ns */
};
struct trace_writer_window trace_writer_window(const struct trace_writer *writer);

struct trace_writer_memory {
    size_t peak_bytes;     /* the most that the open segments took, rounded up */
    uint64_t closed_early; /* segments that were closed because of memory_bytes */
};
struct trace_writer_memory trace_writer_memory(const struct trace_writer *writer);

int trace_writer_tag(struct trace_writer *writer, const char *key, const char *value, struct error *err);

struct trace_image_description {
    const char *path;
    const char *build_id; /* lower-case hex, or "" */
    const char *kind;     /* "main", "library", "import" */
};
/* Images, functions and call sites are shared by all runs of a store: the same image gives the same id again.
 */
int trace_writer_image(struct trace_writer *writer, const struct trace_image_description *image,
                       int64_t *ret_image_id, struct error *err);

struct trace_function_description {
    const char *name;       /* the same in every run: functions of different runs are compared by it */
    const char *demangled;  /* the name to show; NULL: the same */
    uint64_t address, size; /* virtual address in the image's file, 0 when unknown */
    const char *file;       /* NULL when unknown */
    int line;
    char *const *aliases; /* other names of the address, up to a NULL; NULL: none */
};
int trace_writer_function(struct trace_writer *writer, int64_t image_id,
                          const struct trace_function_description *function, uint32_t *ret_function_id,
                          struct error *err);
/* The same for `count` functions. */
int trace_writer_functions(struct trace_writer *writer, int64_t image_id,
                           const struct trace_function_description *functions, size_t count,
                           uint32_t *ret_function_ids, struct error *err);

struct trace_call_site_description {
    int64_t image_id;
    uint64_t address;     /* the return address, as a virtual address in the image's file */
    uint32_t function_id; /* the function that it lies in, 0: unknown */
    const char *file;     /* NULL when unknown */
    int line;             /* 0 when unknown */
};
/* The same image and address give the same id again, whatever else is said. */
int trace_writer_call_site(struct trace_writer *writer, const struct trace_call_site_description *site,
                           uint32_t *ret_site_id, struct error *err);

struct trace_process_description {
    int32_t pid;
    int64_t parent_process_id; /* 0: none recorded */
    int rank;                  /* MPI rank, -1: none */
    const char *exe, *argv;
    uint64_t started_ns;
};
int trace_writer_process(struct trace_writer *writer, const struct trace_process_description *process,
                         int64_t *ret_process_id, struct error *err);
/* `exit_status` as in tracestore_run, -1 when it is not known. */
int trace_writer_process_end(struct trace_writer *writer, int64_t process_id, uint64_t ended_ns,
                             int exit_status, struct error *err);

struct trace_program_description {
    int rank; /* MPI rank, -1: none */
    const char *exe, *argv;
    enum trace_returns returns;
};
/* The process continues with another program (exec). Its streams continue as well: the calls that were open never
 * return, and the new program's calls are inside them. */
int trace_writer_exec(struct trace_writer *writer, int64_t process_id,
                      const struct trace_program_description *program, struct error *err);

struct trace_thread_description {
    int64_t process_id;
    int32_t tid;
    const char *label, *name; /* name NULL: "" */
    uint64_t started_ns;
    enum trace_returns returns;
    bool call_sites; /* its calls come with thread_writer_call_from */
};
/* The thread writer belongs to the writer and lives until trace_writer_free. */
int trace_writer_thread(struct trace_writer *writer, const struct trace_thread_description *thread,
                        struct thread_writer **ret_thread, struct error *err);

/* The thread is called something else than when it was described. -ENOMEM. */
int thread_writer_name(struct thread_writer *thread, const char *name, struct error *err);

/* The store's thread_id, certain once a flush has committed the thread. */
int64_t thread_writer_id(const struct thread_writer *thread);

/* Events so far: the `seq` of the next one. */
uint64_t thread_writer_events(const struct thread_writer *thread);

/* Gives the threads of a process, ended ones included, the labels "NUMBER.T" in place of "P.T". */
int trace_writer_relabel_process(struct trace_writer *writer, int64_t process_id, unsigned number,
                                 struct error *err);

/* Appends one event. These are the hot path: a few nanoseconds, no I/O, nothing that grows with the length of
 * the stream; -ENOMEM is the only failure. A return without an open call is refused with -EINVAL. */
int thread_writer_call(struct thread_writer *thread, uint32_t function_id);
/* A call from `site_id` (0: unknown), in a thread described with call_sites. -EINVAL in others. */
int thread_writer_call_from(struct thread_writer *thread, uint32_t function_id, uint32_t site_id);
/* The same, of a call that is only assumed to be inside the one that is open: nobody knows whether that has
 * returned. `site_id` may be 0 in any thread. */
int thread_writer_call_assumed(struct thread_writer *thread, uint32_t function_id, uint32_t site_id);
int thread_writer_return(struct thread_writer *thread);

/* What mostly happens: so many returns, then a call. */
struct thread_step {
    uint32_t returns;
    uint32_t function_id;
    bool assumed; /* as in thread_writer_call_assumed */
};
/* Appends many, as one by one, for less. -EINVAL also in a thread described with call_sites; on failure some
 * of them have been appended. */
int thread_writer_steps(struct thread_writer *thread, const struct thread_step *steps, size_t count);

/* Steps that a thread's writer has kept, so that they can come again: number `first` and those behind it.
 * Steps have consecutive numbers as they are kept, as long as the generation is the same. */
struct kept_steps {
    uint64_t generation;
    uint32_t first, count; /* count 0: none */
};
#define KEPT_STEPS_AT_ONCE 256
/* As thread_writer_steps, of no more than KEPT_STEPS_AT_ONCE; *ret_kept: as what they are kept, if they are.
 */
int thread_writer_keep(struct thread_writer *thread, const struct thread_step *steps, size_t count,
                       struct kept_steps *ret_kept);
/* Appends steps that are kept, as one by one, for the price of a comparison. The same calls must be open as
 * before the first of them (else -EINVAL), and behind each as before the next one: they need not have come one
 * behind the other. -ESTALE: they are not kept any more, and nothing was appended. */
int thread_writer_again(struct thread_writer *thread, const struct kept_steps *steps);

/* The next event appended happened at `ns`. Between two anchors a reader knows an interval only. */
int thread_writer_anchor(struct thread_writer *thread, uint64_t ns);

/* `count` events are missing here, at `ns`: an event of kind lost in the stream and a row in losses. */
int thread_writer_lost(struct thread_writer *thread, uint64_t ns, uint64_t count, const char *cause,
                       struct error *err);
/* The same where it is known how many of them are calls, how many returns. */
int thread_writer_lost_by_kind(struct thread_writer *thread, uint64_t ns, uint64_t calls, uint64_t returns,
                               const char *cause, struct error *err);

/* Some of the thread's open calls may have returned unseen: its returns count as inferred from now on. */
int thread_writer_infers(struct thread_writer *thread, struct error *err);
/* The other way round: the open calls have been looked up on the thread's stack and are open. */
int thread_writer_settled(struct thread_writer *thread, struct error *err);

/* The thread ended; its open calls never come back. */
int thread_writer_end(struct thread_writer *thread, uint64_t ns, struct error *err);

/* A loss that belongs to no thread, or whose size is unknown (count 0); `ns` is when it was noticed. */
int trace_writer_loss(struct trace_writer *writer, uint64_t ns, uint64_t count, const char *cause,
                      struct error *err);

/* `function_id` was not observed from `from_ns` on, to `to_ns` (0: to the end of the run). */
int trace_writer_blind(struct trace_writer *writer, uint32_t function_id, uint64_t from_ns, uint64_t to_ns,
                       const char *cause, double calls_per_second, struct error *err);

/* The function that has been unobserved since `from_ns` (trace_writer_blind with to_ns 0) is seen again from
 * `to_ns` on; 0: it stays as it is to the end of the run, and only the numbers are new. `calls_missed`: calls
 * that were counted meanwhile and not recorded, -1: nobody knows. */
int trace_writer_blind_end(struct trace_writer *writer, uint32_t function_id, uint64_t from_ns,
                           uint64_t to_ns, int64_t calls_missed, double calls_per_second, struct error *err);

/* Notes for later recordings of a binary that a function of it is called too often for the budget; 0 calls
 * per second: that it is not. `address` as in trace_function_description. */
int trace_writer_budget_plan(struct trace_writer *writer, const char *build_id, uint64_t address,
                             double calls_per_second, struct error *err);

struct trace_budget_plan {
    uint64_t address;
    double calls_per_second;
};
/* What is noted of a binary, by address. The caller frees it. */
int tracestore_budget_plan(struct tracestore *store, const char *build_id,
                           struct trace_budget_plan **ret_plan, size_t *ret_count, struct error *err);

/* Commits all events appended so far, in one transaction: full segments as segments, the rest of all threads
 * as one journal row. After a failure (-ENOSPC, say) nothing is lost but time: the next flush tries again. */
int trace_writer_flush(struct trace_writer *writer, uint64_t now_ns, struct error *err);

/* Writes everything as segments, ends the run and takes back the 'unfinished' loss. `exit_status` -1: none.
 */
int trace_writer_end(struct trace_writer *writer, uint64_t ended_ns, int exit_status, struct error *err);

/* Ends the run at its last flush, when what came later cannot be committed: a loss of cause 'unfinished' says
 * so, and another one, at `now_ns`, why. Takes little room on the disk. Then only trace_writer_free may
 * follow.
 */
int trace_writer_cut(struct trace_writer *writer, uint64_t now_ns, const char *cause, struct error *err);

/* Takes a run that was not ended back, as if it had never begun. Then only trace_writer_free may follow. */
int trace_writer_abandon(struct trace_writer *writer, struct error *err);

/* Accepts NULL. A run that was not ended stays 'unfinished', with what the last flush committed. */
void trace_writer_free(struct trace_writer *writer);

/* ------------------------------------------------------------------------------------------ checking */

struct tracestore_problem {
    int64_t run_id, thread_id, segment_id; /* 0 where it does not apply */
    char text[200];
};

/* Checks the database, then decodes every segment and journal row against its checksum and counts. Calls
 * `report` for each problem; returns the number of problems, or a negative errno when checking itself failed.
 */
int tracestore_verify(struct tracestore *store,
                      void (*report)(void *context, const struct tracestore_problem *), void *context,
                      uint64_t *ret_segments, struct error *err);

/* ------------------------------------------------------------------------------------------ recovering */

struct trace_recovered {
    uint64_t runs, segments, events; /* closed; made of their journals; in those */
    uint64_t windows;       /* of flight recorders that have died, beside the store: each is a run now */
    uint64_t damaged_tails; /* journals of runs, or of single threads, that could not be read to the end */
};

/* Closes the runs that have no end and no living recorder: what their journals hold becomes segments, and
 * they end at their last flush. A loss of cause 'unfinished' stays with each, and where a journal is damaged,
 * one of cause 'damaged' comes to it. The same for what flight recorders have left (store/writer/window.h).
 */
int tracestore_recover(struct tracestore *store, struct trace_recovered *ret_recovered, struct error *err);

struct trace_salvaged {
    uint64_t runs, threads, segments, events; /* in the new store */
    uint64_t lost_rows;                       /* that are there but cannot be read, or contradict others */
    uint64_t lost_stretches; /* of tables that cannot be read, with an unknown number of rows each */
    uint64_t lost_segments;  /* damaged */
    uint64_t lost_events;    /* known to be missing */
    uint64_t invented;       /* rows in place of lost ones that others refer to */
    struct trace_recovered recovered;
};

/* Makes a new store at `to`, which must not exist, of all that can be read in the store `from`, however
 * damaged: its tables row by row, around pages that cannot be read; segments whose checksum is right. What is
 * missing is told by losses of cause 'damaged'. Nothing is written to `from`. */
int tracestore_salvage(const char *from, const char *to, struct trace_salvaged *ret_salvaged,
                       struct error *err);

/* ------------------------------------------------------------------------------------------ merging */

struct trace_merged {
    uint64_t runs, segments, events; /* added */
    uint64_t present;                /* runs that had been added before */
};

/* Adds the runs of the store at `from` to `store`, all of them or none, and what was added to `sum`. Images, functions
 * and call sites that both have are the same rows. Runs that are there already are left out. Every segment is decoded:
 * what is damaged is refused (-EBADMSG), and so are runs that have not been ended (-EBUSY: one is being recorded;
 * -EINVAL: its recorder died, see tracestore_recover()). Nothing is written to `from`. */
int tracestore_merge(struct tracestore *store, const char *from, struct trace_merged *sum, struct error *err);

/* The same for one run; the other ones may be in any state. Nothing is added where there is no such run. */
int tracestore_merge_run(struct tracestore *store, const char *from, int64_t run_id, struct trace_merged *sum,
                         struct error *err);

/* The tag of a run of a job, with the job's name, which is the same for all its parts; and that of a part whose recorder
 * has not joined it yet. */
#define TRACESTORE_JOB_TAG "job"
#define TRACESTORE_JOB_PART_TAG "job part"

struct trace_joined {
    int64_t run_id; /* of tracestore_join_job: the run that has the part now */
    uint64_t runs;  /* parts that are in the run of another one now */
    uint64_t
        apart; /* parts that stay as they are: a thread has the same label as one of another part, or they recorded
                       locks and messages, whose channels are numbered by run */
};

/* An ended run with TRACESTORE_JOB_PART_TAG joins the runs of its job that have done the same: they become one run, the
 * first of them, whose tags "part N" name the host, the recorder and the start of each. */
int tracestore_join_job(struct tracestore *store, int64_t run_id, struct trace_joined *ret_joined,
                        struct error *err);

/* The same for all ended runs of all jobs. */
int tracestore_join_jobs(struct tracestore *store, struct trace_joined *ret_joined, struct error *err);

#ifdef __cplusplus
}
#endif

#endif
