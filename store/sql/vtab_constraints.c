/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/sql/vtab_constraints.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "store/api/tracestore.h"

const char *const vtab_kind_names[3] = {"return", "call", "lost"};
static const char *const state_names[3] = {"returned", "open", "unknown"}; /* by bit of enum call_state */

/* ------------------------------------------------------------------------------------------ xBestIndex */

#define LIST_TEXT "=(?)" /* IN, all of its values at once */

/* The operators that can be pushed down: ranges for numbers that grow along a stream, else equality. */
static const char *operator_text(enum vtab_term term, unsigned char op)
{
    bool ordered = term == TERM_SEQ || term == TERM_NS;

    switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
        return "=?";
    case SQLITE_INDEX_CONSTRAINT_NE:
        return term == TERM_STATE ? "<>?" : NULL;
    case SQLITE_INDEX_CONSTRAINT_GE:
        return ordered ? ">=?" : NULL;
    case SQLITE_INDEX_CONSTRAINT_GT:
        return ordered ? ">?" : NULL;
    case SQLITE_INDEX_CONSTRAINT_LE:
        return ordered ? "<=?" : NULL;
    case SQLITE_INDEX_CONSTRAINT_LT:
        return ordered ? "<?" : NULL;
    default:
        return NULL;
    }
}

/* How much of the rows a constraint leaves, roughly: the planner only has to prefer the right one. */
static double selectivity(enum vtab_term term, unsigned char op)
{
    static const double equal[TERM_COUNT] = {
        [TERM_RUN] = 0.1, [TERM_PROCESS] = 0.05, [TERM_THREAD] = 0.01, [TERM_SEQ] = 1e-5,
        [TERM_NS] = 1e-4, [TERM_FUNCTION] = 0.2, [TERM_KIND] = 0.5,    [TERM_STATE] = 0.3,
    };

    return op == SQLITE_INDEX_CONSTRAINT_EQ ? equal[term] : 0.4;
}

/* The column, or the one without a name. */
static const struct vtab_column *find_column(const struct vtab_column *columns, int column)
{
    while (columns->name && columns->column != column)
        columns++;
    return columns;
}

int vtab_best_index(sqlite3_index_info *info, const struct vtab_column *columns)
{
    double rows = 1e9;
    char *text = sqlite3_mprintf("");
    int argument = 0;

    for (int i = 0; text && i < info->nConstraint; i++) {
        const struct vtab_column *column = find_column(columns, info->aConstraint[i].iColumn);
        const char *op;
        char *longer;

        if (!column->name || !info->aConstraint[i].usable)
            continue;
        op = operator_text(column->term, info->aConstraint[i].op);
        if (!op)
            continue;
        if (column->term == TERM_FUNCTION && vtab_is_list(info, i) && sqlite3_vtab_in(info, i, 1))
            op = LIST_TEXT;
        longer = sqlite3_mprintf("%s%s%s%s", text, *text ? " " : "", column->name, op);
        sqlite3_free(text);
        text = longer;
        info->aConstraintUsage[i].argvIndex = ++argument;
        rows *= selectivity(column->term, info->aConstraint[i].op);
    }
    if (!text)
        return SQLITE_NOMEM;
    info->idxStr = text;
    info->needToFreeIdxStr = 1;
    info->estimatedRows = rows < 1 ? 1 : (sqlite3_int64)rows;
    info->estimatedCost = rows + 1000; /* to start decoding somewhere costs more than a row */
    return SQLITE_OK;
}

void vtab_trust_numbers(sqlite3_index_info *info, const struct vtab_column *columns)
{
    for (int i = 0; i < info->nConstraint; i++) {
        enum vtab_term term = find_column(columns, info->aConstraint[i].iColumn)->term;

        if (info->aConstraintUsage[i].argvIndex)
            info->aConstraintUsage[i].omit = term != TERM_KIND && term != TERM_STATE;
    }
}

/* The extension may be loaded into an SQLite that is older than the function. */
bool vtab_is_list(sqlite3_index_info *info, int i)
{
    return sqlite3_libversion_number() >= 3038000 && sqlite3_vtab_in(info, i, -1);
}

bool vtab_column_used(const sqlite3_index_info *info, int column)
{
    return info->colUsed >> column & 1;
}

/* ------------------------------------------------------------------------------------------ xFilter */

static bool term_is(const char *word, size_t length, const char *name)
{
    return strlen(name) == length && !strncmp(word, name, length);
}

static enum vtab_term term_of_word(const char *word, size_t length)
{
    static const char *const names[TERM_COUNT] = {
        [TERM_RUN] = "run_id",
        [TERM_PROCESS] = "process_id",
        [TERM_THREAD] = "thread_id",
        [TERM_SEQ] = "seq",
        [TERM_NS] = "ns",
        [TERM_FUNCTION] = "function_id",
        [TERM_KIND] = "kind",
        [TERM_STATE] = "state",
    };
    int term = 0;

    while (term < TERM_COUNT && !term_is(word, length, names[term]))
        term++;
    return (enum vtab_term)term;
}

/* Where a value stands among the integers, in SQLite's order of values. */
struct place {
    enum { PLACE_NOWHERE, PLACE_BELOW_ALL, PLACE_ABOVE_ALL, PLACE_AT } kind; /* nowhere: NULL */
    int64_t number; /* at it, or between it and the next one */
    bool between;
};

static struct place place_of(sqlite3_value *value)
{
    double number;

    switch (sqlite3_value_numeric_type(value)) {
    case SQLITE_INTEGER:
        return (struct place){PLACE_AT, sqlite3_value_int64(value), false};
    case SQLITE_NULL:
        return (struct place){.kind = PLACE_NOWHERE};
    case SQLITE_FLOAT:
        number = floor(sqlite3_value_double(value));
        if (number < -0x1p63)
            return (struct place){.kind = PLACE_BELOW_ALL};
        if (number < 0x1p63)
            return (struct place){PLACE_AT, (int64_t)number, number != sqlite3_value_double(value)};
        return (struct place){.kind = PLACE_ABOVE_ALL};
    default: /* texts and blobs */
        return (struct place){.kind = PLACE_ABOVE_ALL};
    }
}

/* The integer that is equal to the value, if there is one. */
static bool integer_value(sqlite3_value *value, int64_t *ret_integer)
{
    struct place place = place_of(value);

    *ret_integer = place.number;
    return place.kind == PLACE_AT && !place.between;
}

/* Narrows [*first, *last] of numbers from 0 to INT64_MAX by `op` and a bound. */
static void narrow(uint64_t *first, uint64_t *last, const char *op, sqlite3_value *value, bool *nothing)
{
    bool least = op[0] == '>', most = op[0] == '<', open = op[1] == '?';
    struct place place = place_of(value);
    uint64_t bound = place.number > 0 ? (uint64_t)place.number : 0;

    if (!least && !most) { /* '=' */
        least = most = true;
        open = false;
        *nothing |= place.kind != PLACE_AT || place.between;
    }
    *nothing |= place.kind == PLACE_NOWHERE || (least && place.kind == PLACE_ABOVE_ALL) ||
                (most && place.kind == PLACE_BELOW_ALL);
    if (place.kind != PLACE_AT)
        return;
    if (least && place.number >= 0) {
        bound += open || place.between;
        *first = bound > *first ? bound : *first;
    }
    if (most && (place.number < 0 || (!bound && open && !place.between)))
        *nothing = true;
    else if (most && bound - (open && !place.between) < *last)
        *last = bound - (open && !place.between);
}

static void narrow_id(bool *has, int64_t *id, sqlite3_value *value, bool *nothing)
{
    int64_t wanted;

    if (!integer_value(value, &wanted)) {
        *nothing = true;
        return;
    }
    if (*has && *id != wanted)
        *nothing = true;
    *has = true;
    *id = wanted;
}

/* Adds what can be the id of a function. -ENOMEM. */
static int add_function(struct function_set *set, sqlite3_value *value)
{
    int64_t id;

    if (!integer_value(value, &id) || id <= 0 || id >= TRACESTORE_LOST_FUNCTION)
        return 0;
    return function_set_add(set, (uint32_t)id);
}

/* One value, or with `list` those of an IN. -ENOMEM. */
static int read_functions(struct function_set *set, bool list, sqlite3_value *values)
{
    sqlite3_value *value = NULL;
    int result, code = 0;

    if (!list)
        return add_function(set, values);
    for (result = sqlite3_vtab_in_first(values, &value); result == SQLITE_OK && value && !code;
         result = sqlite3_vtab_in_next(values, &value))
        code = add_function(set, value);
    function_set_sort(set);
    return !code && result != SQLITE_DONE ? -ENOMEM : code;
}

static int narrow_functions(struct vtab_constraints *constraints, bool list, sqlite3_value *values)
{
    struct function_set wanted = {0};
    int code = read_functions(&wanted, list, values);

    if (constraints->has_functions)
        function_set_intersect(&wanted, &constraints->functions);
    function_set_release(&constraints->functions);
    constraints->functions = wanted;
    constraints->has_functions = true;
    constraints->nothing |= !wanted.count;
    return code;
}

static void narrow_kind(struct vtab_constraints *constraints, sqlite3_value *value)
{
    const char *text =
        sqlite3_value_type(value) == SQLITE_TEXT ? (const char *)sqlite3_value_text(value) : "";

    for (uint32_t kind = 0; text && kind < ARRAY_SIZE(vtab_kind_names); kind++) {
        if (strcmp(text, vtab_kind_names[kind]))
            continue;
        constraints->nothing |= constraints->has_kind && constraints->kind != kind;
        constraints->has_kind = true;
        constraints->kind = kind;
    }
}

static void narrow_state(struct vtab_constraints *constraints, const char *op, sqlite3_value *value)
{
    const char *text =
        sqlite3_value_type(value) == SQLITE_TEXT ? (const char *)sqlite3_value_text(value) : "";

    for (unsigned i = 0; text && i < ARRAY_SIZE(state_names); i++)
        if (!strcmp(text, state_names[i]))
            constraints->states &= *op == '=' ? 1u << i : ~(1u << i);
    constraints->nothing |= !constraints->states;
}

static int apply(struct vtab_constraints *constraints, enum vtab_term term, const char *op,
                 sqlite3_value *value)
{
    bool *nothing = &constraints->nothing;

    switch (term) {
    case TERM_RUN:
        narrow_id(&constraints->has_run, &constraints->run_id, value, nothing);
        break;
    case TERM_PROCESS:
        narrow_id(&constraints->has_process, &constraints->process_id, value, nothing);
        break;
    case TERM_THREAD:
        narrow_id(&constraints->has_thread, &constraints->thread_id, value, nothing);
        break;
    case TERM_SEQ:
        narrow(&constraints->first_seq, &constraints->last_seq, op, value, nothing);
        break;
    case TERM_NS:
        constraints->has_ns = true;
        narrow(&constraints->from_ns, &constraints->to_ns, op, value, nothing);
        break;
    case TERM_FUNCTION:
        return narrow_functions(constraints, !strncmp(op, LIST_TEXT, strlen(LIST_TEXT)), value);
    case TERM_KIND:
        narrow_kind(constraints, value);
        break;
    case TERM_STATE:
        narrow_state(constraints, op, value);
        break;
    case TERM_COUNT:
        break;
    }
    return 0;
}

int vtab_read_constraints(const char *index_text, int argc, sqlite3_value **argv,
                          struct vtab_constraints *ret_constraints)
{
    struct vtab_constraints *constraints = ret_constraints;
    int code = 0;

    *constraints = (struct vtab_constraints){.last_seq = INT64_MAX, .to_ns = INT64_MAX, .states = STATE_ANY};
    for (int i = 0; i < argc && !code; i++) {
        size_t length = strcspn(index_text, "=<>");
        const char *op = index_text + length;

        code = apply(constraints, term_of_word(index_text, length), op, argv[i]);
        index_text = op + strcspn(op, " ");
        index_text += *index_text == ' ';
    }
    if (constraints->first_seq > constraints->last_seq || constraints->from_ns > constraints->to_ns)
        constraints->nothing = true;
    if (constraints->has_ns && !constraints->to_ns) /* nothing has the time 0: one that is unknown is NULL */
        constraints->nothing = true;
    if (code)
        vtab_constraints_release(constraints);
    return code;
}

void vtab_constraints_release(struct vtab_constraints *constraints)
{
    function_set_release(&constraints->functions);
}
