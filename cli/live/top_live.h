/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tracectl top of live processes: what is sampled repeatedly, and how it is shown.
 *
 * A source delivers the present state; the same loop shows it on a screen (ncurses), as text or as
 * JSON.
 */
#ifndef TRACECTL_CLI_LIVE_TOP_LIVE_H
#define TRACECTL_CLI_LIVE_TOP_LIVE_H

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/common/function_choice.h"
#include "cli/common/pid_list.h"
#include "collector/budget/budget_status.h"

struct error;

struct top_options {
    struct pid_list pids;
    const char *config; /* of the daemon that is asked; NULL: `pids` are looked at */
    struct function_choice choice;
    double budget; /* 0.05: five percent */
    uint64_t delay_ns;
    unsigned long iterations; /* 0: until it ends */
    unsigned long limit;      /* rows of text; 0: all */
    bool batch;
};

/* What there is at the moment. */
struct top_view {
    char title[256];             /* what is sampled */
    bool has_totals;             /* else the two below are unset */
    struct budget_totals totals; /* since the beginning */
    double counted;              /* calls a second of all functions that have probes: top_counted() */
    double used;                 /* since the last sample: 0.05 when probes took five percent */
    const char *where;           /* the title of the functions' `image`: "IMAGE" */
    struct budget_function_status *functions; /* most calls per second first */
    size_t count;
};

struct top_source {
    /* Lets `ns` pass. `*ret_ended`: no process is left. */
    int (*wait)(void *context, uint64_t ns, bool *ret_ended, struct error *err);
    /* What it delivers is valid until the next sample. */
    int (*look)(void *context, struct top_view *ret_view, struct error *err);
    void *context;
};

/* Shows it until it ends, Ctrl-C, or as often as is wanted. */
int top_watch(const struct top_options *options, const struct top_source *source, struct error *err);

/* The sources: processes, whose calls are counted by probes of our own; a daemon and what it records. */
int top_processes(const struct top_options *options, struct error *err);
int top_daemon(const struct top_options *options, struct error *err);

/* ------------------------------------------------------------------------------------ for top_watch() */

enum { TOP_HEAD_LINES = 2, TOP_COLUMNS = 5, TOP_CELL = 512 };

/* What stands in view->counted. */
double top_counted(const struct top_view *view);

/* The lines above the functions; the cells of a function. */
void top_head(const struct top_view *view, char lines[TOP_HEAD_LINES][TOP_CELL]);
void top_cells(const struct top_view *view, const struct budget_function_status *function,
               char cells[TOP_COLUMNS][TOP_CELL]);
extern const char
    *const top_titles[TOP_COLUMNS]; /* as table_new() wants them; the last but one: view->where */

int top_print(const struct top_view *view, unsigned long limit, struct error *err);

/* The screen. top_screen_key() answers a key, if one was pressed, and says whether it is to end. What is
 * shown must live until it is shown again. */
int top_screen_open(struct error *err);
void top_screen_show(const struct top_view *view);
bool top_screen_key(void);
void top_screen_close(void);

#endif
