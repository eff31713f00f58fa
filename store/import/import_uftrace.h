/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Import of the directory that `uftrace record` makes (format version 4, uftrace 0.6 to today).
 *
 * `info` begins with a header and tells the command; `task.txt` has a line for each session (a program in a
 * process, with the file `sid-SID.map` of its images), thread, fork and dlopen; `IMAGE.sym` names functions
 * by addresses relative to where the image was mapped; `TID.dat` are a thread's records of 16 bytes: a time
 * of CLOCK_MONOTONIC, a type (entry, exit, lost, event), a depth and an address.
 *
 * An exit closes the call of its depth. Calls that are deeper, and those of the same depth or deeper at an
 * entry, have ended without an exit record (longjmp, lost records, recordings of entries only): they are
 * closed as well, and the thread's returns count as inferred. An exit whose call is not there (a child of
 * fork leaves functions that its parent entered) is a loss of one call and its return. Records of events, and
 * what the kernel and perf recorded in files of their own, are left out.
 */
#ifndef TRACESTORE_IMPORT_UFTRACE_H
#define TRACESTORE_IMPORT_UFTRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/api/tracestore.h"

struct uftrace_plan;

/* Reads the texts of `dir` and checks every record, so that a later uftrace_plan_write does not meet damage.
 * Fails with -ENOENT (no directory, or none of uftrace), -EBADMSG (damaged: the message says where), -ENOTSUP
 * (another version or byte order, or recorded with arguments). Free with uftrace_plan_free. */
int uftrace_plan_new(const char *dir, struct uftrace_plan **ret_plan, struct error *err);
/* Accepts NULL. */
void uftrace_plan_free(struct uftrace_plan *plan);

/* Makes a run as u16_plan_write does. Times are exact relative to each other; their place in the calendar is
 * the second in which the recording ended, as `info` tells it. */
int uftrace_plan_write(struct uftrace_plan *plan, struct tracestore *store, const char *name,
                       char *(*demangle)(const char *name), int64_t *ret_run_id, struct error *err);

/* ----------------------------------------------------------------------- the parts that read untrusted bytes
 * `path` is for messages. All fail with -EBADMSG and a line for people, or -ENOMEM. */

struct uftrace_info {
    bool estimated;   /* entries were recorded, no exits */
    char *command;    /* "" when it is not told */
    int exit_status;  /* as in tracestore_run, -1: not told */
    int64_t recorded; /* seconds since 1970 of the recording's end, 0: not told */
};
/* -ENOTSUP as well. Free with uftrace_info_release. */
int uftrace_info_parse(const uint8_t *bytes, size_t size, const char *path, struct uftrace_info *ret_info,
                       struct error *err);
void uftrace_info_release(struct uftrace_info *info);

enum uftrace_task_kind { UFTRACE_SESSION, UFTRACE_TASK, UFTRACE_FORK, UFTRACE_DLOPEN };
struct uftrace_task {
    enum uftrace_task_kind kind;
    uint64_t ns;
    int32_t tid, pid;   /* of a fork: of the child; pid of a dlopen: 0 */
    int32_t parent_pid; /* of a fork */
    char sid[17];       /* of a session and of a dlopen */
    char *path;         /* of a session's program, and of a dlopen's library; else NULL */
    uint64_t base;      /* of a dlopen */
};
struct uftrace_tasks {
    struct uftrace_task *tasks;
    size_t count, capacity;
};
int uftrace_tasks_parse(const char *text, size_t size, const char *path, struct uftrace_tasks *tasks,
                        struct error *err);
void uftrace_tasks_release(struct uftrace_tasks *tasks);

struct uftrace_map {
    uint64_t start, end; /* end 0: as far as its symbols go */
    uint64_t from_ns;    /* of a library that came by dlopen */
    char *path;
    char build_id[48];
    size_t symbols; /* index of its symbol file, SIZE_MAX: none */
};
struct uftrace_maps {
    struct uftrace_map *maps;
    size_t count, capacity;
};
int uftrace_maps_parse(const char *text, size_t size, const char *path, struct uftrace_maps *maps,
                       struct error *err);
int uftrace_maps_add(struct uftrace_maps *maps, const struct uftrace_map *map, struct error *err);
void uftrace_maps_release(struct uftrace_maps *maps);

struct uftrace_symbol {
    uint64_t address; /* relative to the map's start */
    char *name;       /* NULL: only says where the one before it ends */
    uint32_t id;      /* the store's function_id, 0: not registered yet */
};
struct uftrace_symbols {
    struct uftrace_symbol *symbols; /* by address */
    size_t count, capacity;
    int64_t image_id; /* of the store, 0: not registered yet */
};
int uftrace_symbols_parse(const char *text, size_t size, const char *path, struct uftrace_symbols *symbols,
                          struct error *err);
/* NULL: there is no function at the address. */
struct uftrace_symbol *uftrace_symbols_find(const struct uftrace_symbols *symbols, uint64_t address);
void uftrace_symbols_release(struct uftrace_symbols *symbols);

#define UFTRACE_RECORD_BYTES 16u

enum uftrace_record_type { UFTRACE_ENTRY, UFTRACE_EXIT, UFTRACE_LOST, UFTRACE_EVENT };
struct uftrace_record {
    uint64_t ns;
    enum uftrace_record_type type;
    bool more;        /* arguments follow */
    unsigned depth;   /* 0 to 1023 */
    uint64_t address; /* of a loss: the number of records */
};
/* Decodes one record of 16 bytes. False: it is none. */
bool uftrace_record_parse(const uint8_t *bytes, struct uftrace_record *ret_record);

/* What a record means for the calls of its thread; zero-initialised at the begin of a thread. */
struct uftrace_stack {
    struct {
        uint64_t address;
        unsigned depth;
    } * calls;
    size_t count, capacity;
    size_t base; /* calls of the program before the last exec: they are never closed */
};
struct uftrace_step {
    size_t closes;  /* so many calls end before the record, without a record of their own */
    bool opens;     /* then a call begins */
    bool returns;   /* or the innermost one returns */
    bool unmatched; /* or a call that is not there does */
};
int uftrace_stack_step(struct uftrace_stack *stack, const struct uftrace_record *record,
                       struct uftrace_step *ret_step, struct error *err);
void uftrace_stack_release(struct uftrace_stack *stack);

#endif
