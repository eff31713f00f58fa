/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The constraints of a query that the virtual tables use to read less.
 *
 * xBestIndex writes what it pushes down into idxStr, one word a constraint in the order of argv, so that
 * EXPLAIN QUERY PLAN shows it ("run_id=? seq>=?") and xFilter reads it back. SQLite checks every constraint
 * again on each row, so a table may return more than was asked for, but for one that calls
 * vtab_trust_numbers.
 */
#ifndef TRACESTORE_VTAB_CONSTRAINTS_H
#define TRACESTORE_VTAB_CONSTRAINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "store/db/sqlite.h"
#include "store/segment/function_set.h"

/* What a column's constraints restrict. */
enum vtab_term {
    TERM_RUN,
    TERM_PROCESS,
    TERM_THREAD,
    TERM_SEQ,
    TERM_NS,
    TERM_FUNCTION,
    TERM_KIND,
    TERM_STATE,
    TERM_COUNT
};

/* The columns of a table whose constraints are pushed down, ended by one without a name. */
struct vtab_column {
    const char *name;
    int column;
    enum vtab_term term;
};

enum call_state { STATE_RETURNED = 1, STATE_OPEN = 2, STATE_UNKNOWN = 4, STATE_ANY = 7 };
extern const char *const vtab_kind_names[3]; /* by enum event_kind */

struct vtab_constraints {
    bool nothing; /* no row can match */
    bool has_run, has_process, has_thread, has_functions, has_kind;
    bool has_ns; /* then a row without a time does not match */
    int64_t run_id, process_id, thread_id;
    uint64_t first_seq, last_seq; /* both included */
    uint64_t from_ns, to_ns;      /* both included */
    uint32_t kind;
    struct function_set functions;
    unsigned states; /* of enum call_state */
};

/* Fills idxStr, estimatedCost, estimatedRows and each constraint's argvIndex. `function_id IN (...)` is taken
 * as one constraint, "function_id=(?)": a stream is decoded once for all of the functions. */
int vtab_best_index(sqlite3_index_info *info, const struct vtab_column *columns);
/* For a table that returns no row that its constraints leave out: SQLite is told not to look again, which
 * would cost it more than the row. It still looks at texts, which a query may compare by a rule of its own
 * (COLLATE). */
void vtab_trust_numbers(sqlite3_index_info *info, const struct vtab_column *columns);
/* Whether constraint `i` stands for `column IN (...)`: SQLite would ask once for each value. */
bool vtab_is_list(sqlite3_index_info *info, int i);
/* Whether the query looks at a column, one of the first 63. */
bool vtab_column_used(const sqlite3_index_info *info, int column);
/* Reads what vtab_best_index wrote, with the values. -ENOMEM: there is nothing to release. */
int vtab_read_constraints(const char *index_text, int argc, sqlite3_value **argv,
                          struct vtab_constraints *ret_constraints);
void vtab_constraints_release(struct vtab_constraints *constraints);

/* Whether a function is one of those that are asked for. */
static inline bool vtab_wants_function(const struct vtab_constraints *constraints, uint32_t function)
{
    return !constraints->has_functions || function_set_has(&constraints->functions, function);
}

/* Whether a time, 0: none, is one of those that are asked for. */
static inline bool vtab_wants_time(const struct vtab_constraints *constraints, uint64_t ns)
{
    return !constraints->has_ns || (ns && ns >= constraints->from_ns && ns <= constraints->to_ns);
}

#endif
