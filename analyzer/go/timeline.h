/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The interleaving of a run as rows in the order of time, a column a goroutine, as beside listing 1 of
 * Taheri's dissertation (2022): what each goroutine did, where it had to wait, who let it continue.
 *
 * Of many goroutines those matter that are stuck or wait for each other, and those that had to do with them:
 * their creators, the users of what they wait for, and those that unblocked them or that they unblocked. Of stuck
 * goroutines with the same place of creation and the same place of waiting, two are shown. Where none is stuck, all of
 * the program's own are, as far as there is room.
 *
 * What the runtime and package testing do for themselves in a goroutine of the program's own has no rows.
 *
 * Stretches of rows that repeat are kept once, with a count; and only the last rows are kept, because the end
 * is what explains the verdict.
 */
#ifndef TRACECTL_ANALYZER_GO_TIMELINE_H
#define TRACECTL_ANALYZER_GO_TIMELINE_H

#include "analyzer/go/places.h"
#include "analyzer/go/verdict.h"

enum {
    GO_TIMELINE_ROWS = 200,   /* that are kept unless more are asked for */
    GO_TIMELINE_COLUMNS = 16, /* the same */
    GO_TIMELINE_LONGEST = 16, /* rows of a stretch that is looked for */
};

enum go_moment {
    GO_MOMENT_BEGINS,   /* runs for the first time */
    GO_MOMENT_OPERATES, /* see `operation`; a go statement has the new goroutine in `other` */
    GO_MOMENT_BLOCKS,   /* `value`: wait reason; where it is not told with the operation */
    GO_MOMENT_GOES_ON,  /* `other` let it; 0: the runtime, for a timer or the network */
    GO_MOMENT_DELAYED,  /* tracectl held it up */
    GO_MOMENT_TEST,     /* begins the test function `site` */
    GO_MOMENT_PANICS,
    GO_MOMENT_FATAL,  /* the runtime gives up; `value`: enum go_fatal. The goroutine may be 0 */
    GO_MOMENT_EXITS,  /* ends the process with status `value`. The same */
    GO_MOMENT_ENDS,   /* the goroutine is over */
    GO_MOMENT_MISSED, /* `value` events are missing; no goroutine's */
    GO_MOMENTS,
};

struct go_timeline_row {
    uint64_t ns;
    uint64_t goroutine, other;
    uint64_t object;
    int64_t value;
    uint32_t site;
    uint8_t moment, operation, flags; /* enum go_moment, enum go_op, enum go_event_flags */
    bool blocked;                     /* with GO_MOMENT_OPERATES: it stopped to wait at once */
    bool has_result, result_sends;    /* of a select: the case is a send */
    int64_t result;                   /* GO_EVENT_RESULT */
    uint32_t woken;                   /* goroutines that it let continue; the first one is `other` */
    uint32_t stretch; /* this row and the next `stretch` - 1 are a stretch that repeats; or 0 */
    uint64_t repeats; /* how often it came, all in all */
};

struct go_timeline_column {
    uint64_t goroutine, parent;
    uint32_t function, created_at;
    enum go_state state;
    int64_t wait_reason; /* of GO_STATE_BLOCKED; -1: none */
    uint32_t waits_at;   /* site of the operation that it waits in; 0: not known */
    bool stuck, in_cycle;

    bool created, begun, waits, hidden; /* private, here and below: while rows are made */
    uint64_t woken_by, case_sends;
    uint8_t operation;   /* the last one that may wait */
    uint32_t first_site; /* of an operation */
};

struct go_timeline {
    struct go_timeline_column *columns; /* by goid */
    size_t column_count;
    size_t left_out; /* stuck goroutines, or where none is stuck all, for which there is no column */
    struct go_timeline_row *rows;
    size_t row_count, row_capacity;
    uint64_t earlier; /* rows before the first that is kept; repeated ones not counted */
    uint64_t from_ns; /* of the first event */

    size_t most_rows, most_columns, column_capacity; /* private, here and below */
    bool chosen; /* the columns are what they are; else goroutines that stuck ones meet are added */
    const struct go_program *program;
    struct go_place_source places;
};

struct go_timeline_options {
    bool all;                   /* all goroutines of the program's own, all rows */
    size_t rows;                /* that are kept; 0: GO_TIMELINE_ROWS */
    const uint64_t *goroutines; /* these, instead of those that matter */
    size_t goroutine_count;
};

/* Finds the columns, reads the program's events, and makes the rows: `replay` is at its end, `verdict` is its
 * verdict. The program must outlive the timeline. Release also after a failure: -ENOMEM, or what reading
 * met. */
int go_timeline_read(struct tracestore *store, const struct go_program *program,
                     struct go_place_source places, struct go_replay *replay,
                     const struct go_verdict *verdict, const struct go_timeline_options *options,
                     struct go_timeline *ret_timeline, struct error *err);
void go_timeline_release(struct go_timeline *timeline);

/* The same in its steps, for events from elsewhere: begin, all events once through meet, all again through
 * add, end. -ENOMEM, or what `places` says. */
int go_timeline_begin(struct go_timeline *timeline, const struct go_program *program,
                      struct go_place_source places, struct go_replay *replay,
                      const struct go_verdict *verdict, const struct go_timeline_options *options);
int go_timeline_meet(struct go_timeline *timeline, struct go_replay *replay,
                     const struct process_event *event);
int go_timeline_add(struct go_timeline *timeline, const struct process_event *event);
void go_timeline_end(struct go_timeline *timeline);

/* The index of a goroutine's column; -1: it has none. */
long go_timeline_column_of(const struct go_timeline *timeline, uint64_t goroutine);

/* -------------------------------------------------------------------- words */

/* The file that most places of the rows are in; NULL: there is none. Good as long as the source of places.
 * Fails as that does. */
int go_timeline_file(const struct go_timeline *timeline, struct go_place_source places,
                     const char **ret_file);

/* What a row says of its goroutine: "mutex lock :21, blocks". `file` is left out (NULL: none is). In
 * memory from malloc. */
int go_timeline_words(const struct go_timeline *timeline, const struct go_timeline_row *row,
                      struct go_place_source places, const char *file, char **ret_text);
/* What became of the goroutine of a column: "stuck: chan send :26". */
int go_timeline_end_words(const struct go_timeline *timeline, const struct go_timeline_column *column,
                          struct go_place_source places, const char *file, char **ret_text);
/* "g18 main.Monitor", "g1 main". */
int go_timeline_head(const struct go_timeline_column *column, struct go_place_source places, char **ret_text);

#endif
