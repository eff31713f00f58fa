/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a uftrace directory holds, between the pass that checks and the one that writes. */
#ifndef TRACESTORE_IMPORT_UFTRACE_PLAN_H
#define TRACESTORE_IMPORT_UFTRACE_PLAN_H

#include "store/import/import_uftrace.h"

/* A program in a process: from the process's begin, or from an exec, on. */
struct uftrace_session {
    const struct uftrace_task *task;
    struct uftrace_maps maps;
};

struct uftrace_symbol_file {
    char *name; /* in the directory */
    struct uftrace_symbols symbols;
};

struct uftrace_thread {
    int32_t tid, pid;
    size_t order;    /* of its appearance in task.txt */
    uint64_t begins; /* ns of its first record, 0: it has none */
    bool is_main;
};

struct uftrace_plan {
    char *dir;
    struct uftrace_info info;
    struct uftrace_tasks tasks;
    struct uftrace_session *sessions;
    size_t session_count, session_capacity;
    struct uftrace_symbol_file *files;
    size_t file_count, file_capacity;
    struct uftrace_thread *threads; /* by process, in each the main thread first */
    size_t thread_count, thread_capacity;
    uint64_t first_ns, last_ns; /* of all records */
};

/* The session that a process is in at a time, which may be that of the process it was forked from; NULL: none
 * is known. */
struct uftrace_session *uftrace_session_at(const struct uftrace_plan *plan, int32_t pid, uint64_t ns);

/* Whether the process execs between the two times: its session at `ns` began behind `since_ns`. */
bool uftrace_execs_between(const struct uftrace_plan *plan, int32_t pid, uint64_t since_ns, uint64_t ns);

/* Calls `take` with each record of a thread. `take` returns 0 or a negative errno, which ends the reading. */
int uftrace_read_records(const struct uftrace_plan *plan, const struct uftrace_thread *thread,
                         int (*take)(void *context, const struct uftrace_record *record), void *context,
                         struct error *err);

#endif
