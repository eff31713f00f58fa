/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The catalog of an exported run: its threads, processes and functions. */
#include "store/export/export_run.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/path.h"

static const char what[] = "cannot read the run";

/* ------------------------------------------------------------------------------------------ threads */

/* Drops all threads but the one wanted. */
static int choose_thread(struct export_run *run)
{
    const char *label = run->options->thread;
    size_t kept = 0;

    if (!label)
        return 0;
    for (size_t i = 0; i < run->thread_count; i++) {
        if (!kept && !strcmp(run->threads[i].label, label)) {
            struct tracestore_thread chosen = run->threads[i];

            run->threads[i] = run->threads[0];
            run->threads[kept++] = chosen;
        }
    }
    for (size_t i = kept; i < run->thread_count; i++) {
        free(run->threads[i].label);
        free(run->threads[i].name);
    }
    run->thread_count = kept;
    if (kept)
        return 0;
    return error_say(run->err, -ENOENT,
                     "no thread '%s' with events in run %lld ('tracectl show %lld' lists them)", label,
                     (long long)run->run->run_id, (long long)run->run->run_id);
}

char *export_thread_title(const struct tracestore_thread *thread)
{
    char *title;

    if (asprintf(&title, "%s%s%s", thread->label, *thread->name ? " " : "", thread->name) < 0)
        return NULL;
    return title;
}

/* ------------------------------------------------------------------------------------------ processes */

static char *process_title(const struct export_process *process)
{
    const char *name = path_file_name(process->exe);
    char rank[32] = "", *title;

    if (process->rank >= 0)
        snprintf(rank, sizeof(rank), "rank %d ", process->rank);
    if (!*name)
        name = "process";
    if (process->pid > 0 ? asprintf(&title, "%s%s (pid %d)", rank, name, process->pid) < 0
                         : asprintf(&title, "%s%s", rank, name) < 0)
        return NULL;
    return title;
}

static int read_process(struct export_run *run, sqlite3_stmt *row, size_t *capacity)
{
    struct export_process *process;

    if (array_reserve(&run->processes, capacity, run->process_count + 1))
        return error_no_memory(run->err);
    process = &run->processes[run->process_count++];
    *process = (struct export_process){
        .process_id = sqlite3_column_int64(row, 0),
        .pid = sqlite3_column_int(row, 1),
        .rank = sqlite3_column_int(row, 2),
        .exe = db_text(row, 3),
        .argv = db_text(row, 4),
        .number = run->process_count,
    };
    if (process->exe && process->argv)
        process->title = process_title(process);
    return process->title ? 0 : error_no_memory(run->err);
}

static int read_processes(struct export_run *run)
{
    AUTO_STATEMENT *row = NULL;
    size_t capacity = 0;
    sqlite3 *db = tracestore_db(run->store);
    int result = SQLITE_DONE, r = db_prepare(db,
                                             "SELECT process_id, pid, coalesce(rank, -1), exe, argv FROM"
                                             " processes WHERE run_id = ?1 ORDER BY process_id",
                                             what, &row, run->err);

    if (r == 0)
        db_bind(row, "i", run->run->run_id);
    while (r == 0 && (result = db_row(row, "iiitt")) == SQLITE_ROW)
        r = read_process(run, row, &capacity);
    return r == 0 && result != SQLITE_DONE ? db_fail(db, run->err, what) : r;
}

/* A pid may come again in a long run, and imported traces often have none. */
static int compare_real_ids(struct export_run *run)
{
    int64_t doubtful;
    int r = db_number(tracestore_db(run->store), what, &doubtful, run->err,
                      "SELECT EXISTS (SELECT 1 FROM processes WHERE run_id = ?1 GROUP BY pid"
                      " HAVING count(*) > 1 OR pid <= 0) OR EXISTS (SELECT 1 FROM threads WHERE run_id = ?1"
                      " GROUP BY tid HAVING count(*) > 1 OR tid <= 0)",
                      "i", run->run->run_id);

    if (r == 0)
        run->real_ids = !doubtful;
    return r;
}

const struct export_process *export_process_of(const struct export_run *run,
                                               const struct tracestore_thread *thread)
{
    static const struct export_process none = {.rank = -1, .exe = "", .argv = "", .title = "process"};

    for (size_t i = 0; i < run->process_count; i++)
        if (run->processes[i].process_id == thread->process_id)
            return &run->processes[i];
    return &none;
}

uint64_t export_pid(const struct export_run *run, const struct export_process *process)
{
    return run->real_ids ? (uint64_t)process->pid : process->number;
}

uint64_t export_tid(const struct export_run *run, const struct tracestore_thread *thread)
{
    return run->real_ids ? (uint64_t)thread->tid : (uint64_t)(thread - run->threads) + 1;
}

/* ------------------------------------------------------------------------------------------ functions */

static int index_functions(struct export_run *run)
{
    static const struct export_function unknown = {.name = "(unknown function)", .image = "", .file = ""};

    run->functions = calloc(run->function_count + 1, sizeof(*run->functions));
    if (!run->functions)
        return error_no_memory(run->err);
    for (size_t i = 0; i < run->function_count; i++)
        run->functions[i] = (struct export_function){
            .name = run->rows[i].demangled,
            .image = run->rows[i].image,
            .file = run->rows[i].file,
            .line = run->rows[i].line,
            .function_id = run->rows[i].function_id,
        };
    run->functions[run->function_count] = unknown;
    return 0;
}

static int compare_id(const void *key, const void *item)
{
    uint32_t id = *(const uint32_t *)key, other = ((const struct export_function *)item)->function_id;

    return id < other ? -1 : id > other;
}

size_t export_function_index(struct export_run *run, uint32_t function_id)
{
    const size_t slot = function_id % EXPORT_FUNCTION_CACHE;
    const struct export_function *found;

    if (!function_id)
        return run->function_count;
    if (run->cache[slot].id != function_id) {
        found = run->function_count
                    ? bsearch(&function_id, run->functions, run->function_count, sizeof(*found), compare_id)
                    : NULL;
        run->cache[slot].id = function_id;
        run->cache[slot].index = (uint32_t)(found ? (size_t)(found - run->functions) : run->function_count);
    }
    return run->cache[slot].index;
}

int export_names(struct export_run *run, char *(*make)(const char *name), char ***ret_names)
{
    char **names = calloc(run->function_count + 1, sizeof(*names));

    if (!names)
        return error_no_memory(run->err);
    for (size_t i = 0; i <= run->function_count; i++) {
        names[i] = make(run->functions[i].name);
        if (!names[i]) {
            export_names_free(run, names);
            return error_no_memory(run->err);
        }
    }
    *ret_names = names;
    return 0;
}

void export_names_free(const struct export_run *run, char **names)
{
    for (size_t i = 0; names && i <= run->function_count; i++)
        free(names[i]);
    free(names);
}

/* ------------------------------------------------------------------------------------------ the run */

/* Whether the run kept times; only the journal's few events are looked at one by one. */
static int read_timed(struct export_run *run)
{
    sqlite3 *db = tracestore_db(run->store);
    int64_t timed = 0, segments = 0;
    int r = db_number(db, what, &timed, run->err,
                      "SELECT EXISTS (SELECT 1 FROM segments WHERE run_id = ?1 AND first_ns IS NOT NULL)",
                      "i", run->run->run_id);

    if (r == 0)
        r = db_number(db, what, &segments, run->err,
                      "SELECT EXISTS (SELECT 1 FROM segments WHERE run_id = ?1)", "i", run->run->run_id);
    if (r == 0 && !segments)
        r = db_number(db, what, &timed, run->err,
                      "SELECT EXISTS (SELECT 1 FROM events WHERE run_id = ?1 AND ns IS NOT NULL)", "i",
                      run->run->run_id);
    if (r < 0)
        return r;
    run->timed = timed;
    if (!timed && (run->options->from_ns || run->options->to_ns || run->options->weight == EXPORT_TIME))
        return error_say(run->err, -EINVAL,
                         "run %lld kept no times (record with --time anchor or --time full)",
                         (long long)run->run->run_id);
    return 0;
}

const char *export_times_text(const struct export_run *run)
{
    return run->timed ? "events between two recorded times (anchors) are placed at equal distances"
                      : "the run kept no times: events are one microsecond apart";
}

int export_run_open(struct export_run *run, struct tracestore *store, const struct tracestore_run *info,
                    const struct export_options *options, FILE *out, struct error *err)
{
    int r;

    *run = (struct export_run){
        .store = store,
        .run = info,
        .options = options,
        .out = out,
        .err = err,
        .origin_ns = info->started_ns,
    };
    r = tracestore_threads(store, info->run_id, &run->threads, &run->thread_count, err);
    if (r == 0)
        r = choose_thread(run);
    if (r == 0)
        r = read_processes(run);
    if (r == 0)
        r = compare_real_ids(run);
    if (r == 0)
        r = tracestore_functions(store, info->run_id, &run->rows, &run->function_count, err);
    if (r == 0)
        r = index_functions(run);
    return r < 0 ? r : read_timed(run);
}

void export_run_release(struct export_run *run)
{
    for (size_t i = 0; i < run->process_count; i++) {
        free(run->processes[i].exe);
        free(run->processes[i].argv);
        free(run->processes[i].title);
    }
    free(run->processes);
    free(run->functions);
    tracestore_functions_free(run->rows, run->function_count);
    tracestore_threads_free(run->threads, run->thread_count);
}
