/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the writers of store/export_*.c share: the run's catalog, and the walk through its events. A writer is
 * a struct export_sink; export_walk drives it.
 */
#ifndef TRACESTORE_EXPORT_RUN_H
#define TRACESTORE_EXPORT_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "store/db/db.h"
#include "store/export/export_formats.h"

struct export_process {
    int64_t process_id;
    int32_t pid;
    int rank; /* -1: none */
    char *exe, *argv;
    uint64_t number; /* of the export, from 1: unlike a pid it never comes twice */
    char *title;     /* for people: "rank 3 NAME (pid 77)" */
};

struct export_function {
    const char *name, *image, *file; /* never NULL; file "": unknown */
    uint32_t function_id;            /* 0: of the one that stands for all unknown functions */
    int line;
};

#define EXPORT_FUNCTION_CACHE 1024u

struct export_run {
    struct tracestore *store;
    const struct tracestore_run *run;
    const struct export_options *options;
    FILE *out;
    struct error *err;

    struct tracestore_thread *threads; /* those to be exported */
    size_t thread_count;
    struct export_process *processes;
    size_t process_count;
    struct tracestore_function *rows;
    struct export_function *functions; /* by id; one more behind the last: the unknown function */
    size_t function_count;
    struct {
        uint32_t id, index;
    } cache[EXPORT_FUNCTION_CACHE];

    bool timed;         /* the run kept times; without them events are a microsecond apart */
    bool real_ids;      /* pids and tids are there and tell processes and threads apart */
    uint64_t origin_ns; /* when the run started */
    struct export_totals totals;
};

/* Reads the catalog. Free with export_run_release. */
int export_run_open(struct export_run *run, struct tracestore *store, const struct tracestore_run *info,
                    const struct export_options *options, FILE *out, struct error *err);
void export_run_release(struct export_run *run);

/* Index into `functions`; function_count when the id is not known. */
size_t export_function_index(struct export_run *run, uint32_t function_id);

const struct export_process *export_process_of(const struct export_run *run,
                                               const struct tracestore_thread *thread);

/* Numbers that tell processes and threads apart in the export: the real ones where they do. */
uint64_t export_pid(const struct export_run *run, const struct export_process *process);
uint64_t export_tid(const struct export_run *run, const struct tracestore_thread *thread);

/* "P.T NAME" in memory from malloc, NULL: out of memory. */
char *export_thread_title(const struct tracestore_thread *thread);

/* The names of all functions, the unknown one included, each as `make` writes it; by index. */
int export_names(struct export_run *run, char *(*make)(const char *name), char ***ret_names);
void export_names_free(const struct export_run *run, char **names);

/* How times were made, for the file's metadata. */
const char *export_times_text(const struct export_run *run);

/* ------------------------------------------------------------------------------------------ call sites */

struct export_site {
    uint32_t site_id; /* 0: an empty entry */
    char *caller, *image, *file;
    uint64_t address;
    int line; /* 0: unknown */
};

#define EXPORT_SITE_CACHE 4096u

/* Call sites are read when they are met, the last ones used are kept. Zero-initialised. */
struct export_sites {
    sqlite3_stmt *find;
    struct export_site *entries;
};

/* *ret_site NULL: the site is unknown. Valid until the next call. */
int export_sites_find(struct export_sites *sites, const struct export_run *run, uint32_t site_id,
                      const struct export_site **ret_site);
void export_sites_release(struct export_sites *sites);

/* ------------------------------------------------------------------------------------------ the walk */

enum export_state { EXPORT_RETURNED, EXPORT_OPEN, EXPORT_UNKNOWN };

/* "returned", "open" or "unknown", as in the table `calls`. */
const char *export_state_name(enum export_state state);

struct export_event {
    struct event event; /* as stored; of an unseen one only depth, kind and function */
    size_t function;    /* index into run->functions; of a call and of a return */
    uint64_t at_ns;     /* its place in time: behind that of the event before it in the thread */
    /* A call that began before the first event of a stretch, a return that was somewhere in a stretch that is
     * not there: they only keep calls and returns in pairs, and are at the time of what they stand beside. */
    bool unseen;
    enum export_state state;        /* of a call */
    const struct export_site *site; /* of a call, NULL: unknown, or not asked for */
    uint64_t count;                 /* of a loss: events, 0: unknown */
    const char *cause;              /* of a loss */
};

/* Something that was not seen and has no place in a thread's stream. */
struct export_gap {
    const struct tracestore_thread *thread; /* NULL: not known which */
    bool blind;                             /* a function was not observed; otherwise events were lost */
    const char *name;                       /* of the function of a blind stretch, else NULL */
    uint64_t from_ns, to_ns;                /* to_ns 0: to the end; of a loss both are when it was noticed */
    uint64_t count;                         /* of a loss, 0: unknown */
    const char *cause;
};

struct export_sink {
    bool wants_sites;
    int (*thread)(void *sink, const struct tracestore_thread *thread);
    int (*event)(void *sink, const struct export_event *event);
    int (*thread_end)(void *sink);
    int (*gap)(void *sink, const struct export_gap *gap); /* behind all threads */
};

/* Drives the sink through all threads of `run`, each in its order, and then the gaps. What a callback fails
 * with, having filled run->err, ends the walk. */
int export_walk(struct export_run *run, const struct export_sink *sink, void *context);

/* ------------------------------------------------------------------------------------------ places in time
 */

/*
 * Times are kept for some events only, the anchors: of the others an interval is known. The events of one
 * interval are placed in it at equal distances from each other and from the anchors around it. For that they
 * must be counted before the first is placed: a second iterator runs ahead, so that memory stays bounded
 * however many events there are between two anchors.
 */
struct export_clock {
    struct event_iter *ahead; /* NULL: the run kept no times */
    struct event pending;     /* of `ahead`, not yet in a group */
    bool has_pending, ended;
    uint64_t from_ns, span_ns; /* of the group */
    uint64_t count, index;     /* of its events; of the next to be placed */
    uint64_t last_ns;          /* place of the event before */
    uint64_t origin_ns;        /* for events before the first anchor, and for those without times */
};

int export_clock_open(struct export_clock *clock, const struct export_run *run,
                      const struct tracestore_thread *thread, uint64_t first_seq);
void export_clock_release(struct export_clock *clock);

/* The place of the next event; events come in order. Fails with -ENOMEM or what reading the store met;
 * damage is passed over. */
int export_clock_place(struct export_clock *clock, const struct event *event, uint64_t *ret_ns,
                       struct error *err);

#endif
