/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The Go programs of a run. */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "store/db/store.h"
#include "store/streams/go_events.h"
#include "store/streams/process_streams.h"

static const char what[] = "cannot read the Go programs";

#define MOST_WAIT_REASONS 256 /* the runtime keeps them in a byte */

struct program_list {
    struct go_program *programs;
    size_t count, capacity;
};

static void release_program(struct go_program *program)
{
    for (size_t i = 0; i < program->wait_reason_count; i++)
        free(program->wait_reasons[i]);
    free(program->wait_reasons);
    free(program->label);
    free(program->version);
    free(program->image);
}

void go_programs_free(struct go_program *programs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        release_program(&programs[i]);
    free(programs);
}

static void program_list_release(struct program_list *list)
{
    go_programs_free(list->programs, list->count);
}

static int add_wait_reason(struct go_program *program, int64_t number, char *name)
{
    char **grown;

    if (number < 0 || number >= MOST_WAIT_REASONS) {
        free(name);
        return 0;
    }
    if ((size_t)number < program->wait_reason_count) { /* a damaged table: out of order */
        free(name);
        return name ? 0 : -ENOMEM;
    }
    grown = realloc(program->wait_reasons, ((size_t)number + 1) * sizeof(*grown));
    if (!grown || !name) {
        free(name);
        program->wait_reasons = grown ? grown : program->wait_reasons;
        return -ENOMEM;
    }
    for (size_t i = program->wait_reason_count; i < (size_t)number; i++)
        grown[i] = NULL;
    grown[number] = name;
    program->wait_reasons = grown;
    program->wait_reason_count = (size_t)number + 1;
    return 0;
}

static int read_wait_reasons(sqlite3 *db, struct go_program *program, struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    int result = SQLITE_DONE,
        code = db_prepare(
            db, "SELECT number, name FROM main.go_wait_reasons WHERE process_id = ?1 ORDER BY number", what,
            &row, err);

    if (code)
        return code;
    db_bind(row, "i", program->process_id);
    while (!code && (result = db_row(row, "it")) == SQLITE_ROW)
        code = add_wait_reason(program, sqlite3_column_int64(row, 0), db_text(row, 1));
    if (code)
        return error_no_memory(err);
    return result == SQLITE_DONE ? 0 : db_fail(db, err, what);
}

enum { PROCESS, IMAGE, RUN, VERSION, PATH, OPERATIONS, FROM_START, FROM_NS, EVENTS, LABEL };
/* A process's number is that of its threads' labels; one without threads has its rank, or comes in the order
 * of its process_id. */
#define PROGRAMS_SQL \
    "SELECT g.process_id, g.image_id, g.run_id, version, coalesce(i.path, ''), operations, from_start," \
    " from_ns, (SELECT sum(event_count) FROM main.process_segments s WHERE s.process_id = g.process_id AND stream = 1)," \
    " " PROCESS_LABEL_SQL("g.process_id") \
    " FROM main.go_programs g LEFT JOIN main.images i USING (image_id) WHERE g.run_id = ?1" \
    " ORDER BY g.process_id"

static int read_program(sqlite3 *db, sqlite3_stmt *row, struct program_list *list, struct error *err)
{
    struct go_program *program;

    if (array_reserve(&list->programs, &list->capacity, list->count + 1))
        return error_no_memory(err);
    program = &list->programs[list->count++];
    *program = (struct go_program){
        .process_id = sqlite3_column_int64(row, PROCESS),
        .image_id = sqlite3_column_int64(row, IMAGE),
        .run_id = sqlite3_column_int64(row, RUN),
        .version = db_text(row, VERSION),
        .image = db_text(row, PATH),
        .operations = sqlite3_column_int(row, OPERATIONS) != 0,
        .from_start = sqlite3_column_int(row, FROM_START) != 0,
        .from_ns = (uint64_t)sqlite3_column_int64(row, FROM_NS),
        .events = (uint64_t)sqlite3_column_int64(row, EVENTS),
        .label = db_text(row, LABEL),
    };
    if (!program->version || !program->image || !program->label)
        return error_no_memory(err);
    return read_wait_reasons(db, program, err);
}

static int compare_programs(const void *a, const void *b)
{
    const struct go_program *left = a, *right = b;
    int order = strverscmp(left->label, right->label);

    return order ? order : (left->process_id > right->process_id) - (left->process_id < right->process_id);
}

static int read_programs(sqlite3 *db, int64_t run_id, struct program_list *list, struct error *err)
{
    AUTO_STATEMENT *row = NULL;
    int result = SQLITE_DONE, code = db_prepare(db, PROGRAMS_SQL, what, &row, err);

    if (code)
        return code;
    db_bind(row, "i", run_id);
    while (!code && (result = db_row(row, "iiittiinN")) == SQLITE_ROW)
        code = read_program(db, row, list, err);
    return code || result == SQLITE_DONE ? code : db_fail(db, err, what);
}

int go_programs(struct tracestore *store, int64_t run_id, struct go_program **ret_programs, size_t *ret_count,
                struct error *err)
{
    CLEANUP(program_list_release) struct program_list list = {0};
    int code = read_programs(store->db, run_id, &list, err);

    if (code)
        return code;
    if (list.count)
        qsort(list.programs, list.count, sizeof(*list.programs), compare_programs);
    *ret_programs = list.programs;
    *ret_count = list.count;
    list = (struct program_list){0};
    return 0;
}
